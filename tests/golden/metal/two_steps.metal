// two_steps(int32 x, int32 y) -> (int32 z)
// layout 1:x=1,y=1,z=1;;a16
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: by the pragmas from Metal 3.2 on; before, turn fast math (fastMathEnabled) and contraction off
#include <metal_stdlib>
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
using namespace metal;

struct two_steps_arguments {
    long size;
};

kernel void two_steps(
    device const int* x_data [[buffer(0)]],
    device const int* y_data [[buffer(1)]],
    device int* z_data [[buffer(2)]],
    constant two_steps_arguments& arguments [[buffer(3)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const uint i = position;
    if (i >= size) return;
    const int x = x_data[i];
    const int y = y_data[i];
    int z = 0;
    int j = 0;
    int k = 0;
    while (j < x) {
        if (j == 2) {
            ++j;
            k = (int)((uint)k + j);
            continue;
        } else {
            z = (int)((uint)z + k);
        }
        ++j;
        k = (int)((uint)k + j);
    }
    z_data[i] = z;
}
