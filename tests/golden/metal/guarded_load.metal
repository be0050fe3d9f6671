// neighbour(raw int32 A) -> (int32 z, bool w)
// layout 1:z=1,w=1;A=1c;a16
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: by the pragmas from Metal 3.2 on; before, turn fast math (fastMathEnabled) and contraction off
#include <metal_stdlib>
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
using namespace metal;

struct neighbour_arguments {
    long size;
    long A_size;
};

kernel void neighbour(
    device const int* A [[buffer(0)]],
    device int* z_data [[buffer(1)]],
    device bool* w_data [[buffer(2)]],
    constant neighbour_arguments& arguments [[buffer(3)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const long A_size = arguments.A_size;
    const long i = position;
    if (i >= size) return;
    const long t = i + 1;
    z_data[i] = t < A_size ? (int)((uint)A[t] + A[t]) : 0;
    const long t_2 = i + 1;
    w_data[i] = t_2 < A_size && A[t_2] < 50;
}
