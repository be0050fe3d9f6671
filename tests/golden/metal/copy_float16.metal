// copy(float16 x) -> (float16 z)
// layout 1:x=1,z=1;;a16
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: by the pragmas from Metal 3.2 on; before, turn fast math (fastMathEnabled) and contraction off
#include <metal_stdlib>
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
using namespace metal;

struct copy_arguments {
    long size;
};

kernel void copy(
    device const half* x_data [[buffer(0)]],
    device half* z_data [[buffer(1)]],
    constant copy_arguments& arguments [[buffer(2)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const uint i = position;
    if (i >= size) return;
    const half x = x_data[i];
    z_data[i] = x;
}
