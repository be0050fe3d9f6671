// early_return(int32 x, int32 y) -> (int32 z)
// layout 1:x=1,y=1,z=1;;a16
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: by the pragmas from Metal 3.2 on; before, turn fast math (fastMathEnabled) and contraction off
#include <metal_stdlib>
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
using namespace metal;

struct early_return_arguments {
    long size;
};

kernel void early_return(
    device const int* x_data [[buffer(0)]],
    device const int* y_data [[buffer(1)]],
    device int* z_data [[buffer(2)]],
    constant early_return_arguments& arguments [[buffer(3)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const uint i = position;
    if (i >= size) return;
    const int x = x_data[i];
    const int y = y_data[i];
    int z = 0;
    if (x == 3) {
        z_data[i] = -1;
        return;
    }
    for (int j = 0; j < y; ++j) {
        z = (int)((uint)z + x);
        if (z > 40) {
            z_data[i] = -1;
            return;
        }
    }
    z_data[i] = z;
}
