// counted_loop(int32 x, int32 y) -> (int32 z)
// layout 1:x=1,y=1,z=1;;a16

#include <metal_stdlib>
using namespace metal;

// a % b, with the sign of a; 0 if b is 0
static int fusec_modulo_int32(int a, int b) {
    if (b == 0 || b == -1) return 0;
    return (int)(a - a / b * b);
}

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
        if (fusec_modulo_int32(j, 3) == 1) {
            continue;
        }
        if (z > 50) {
            break;
        }
        z = (int)((uint)z + x);
    }
    z_data[i] = z;
}
