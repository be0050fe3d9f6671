// counted_loop(int32 x, int32 y) -> (int32 z)
// layout 1:x=1,y=1,z=1;;a16
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: by the pragmas from Metal 3.2 on; before, turn fast math (fastMathEnabled) and contraction off
#include <metal_stdlib>
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
using namespace metal;

struct counted_loop_arguments {
    long size;
};

kernel void counted_loop(
    device const int* x_data [[buffer(0)]],
    device const int* y_data [[buffer(1)]],
    device int* z_data [[buffer(2)]],
    constant counted_loop_arguments& arguments [[buffer(3)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const uint i = position;
    if (i >= size) return;
    const int x = x_data[i];
    const int y = y_data[i];
    int z = 0;
    for (int j = 0; j < y; ++j) {
        if (j % 3 == 1) {
            continue;
        }
        if (z > 50) {
            break;
        }
        z = (int)((uint)z + x);
    }
    z_data[i] = z;
}
