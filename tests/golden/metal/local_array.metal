// local_array(int32 x, int32 y) -> (int32 z)
// layout 1:x=1,y=1,z=1;;a16
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: by the pragmas from Metal 3.2 on; before, turn fast math (fastMathEnabled) and contraction off
#include <metal_stdlib>
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
using namespace metal;

struct local_array_arguments {
    long size;
};

kernel void local_array(
    device const int* x_data [[buffer(0)]],
    device const int* y_data [[buffer(1)]],
    device int* z_data [[buffer(2)]],
    constant local_array_arguments& arguments [[buffer(3)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const uint i = position;
    if (i >= size) return;
    const int x = x_data[i];
    const int y = y_data[i];
    int z = 0;
    int buffer[8] = {x, 5};
    int first = buffer[0];
    for (int j = 0; j < 8; ++j) {
        buffer[j] = (int)((uint)j * x + y);
    }
    thread int* p = buffer + 2;
    p = p + 1;
    const int old = *p;
    *p = (int)((uint)old + y);
    first = old;
    const int old_2 = *p;
    *p = 9 > old_2 || old_2 != old_2 ? 9 : old_2;
    p[1] = (int)((uint)p[1] + x);
    z = (int)((uint)*p + first + buffer[4]);
    z_data[i] = z;
}
