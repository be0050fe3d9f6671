// saxpy(float32 a, float32 x, float32 y) -> (float32 z)
// layout 1:x=1,y=1,z=1;;a16
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: by the pragmas from Metal 3.2 on; before, turn fast math (fastMathEnabled) and contraction off
#include <metal_stdlib>
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
using namespace metal;

struct saxpy_arguments {
    long size;
    float a;
};

kernel void saxpy(
    device const float* x_data [[buffer(0)]],
    device const float* y_data [[buffer(1)]],
    device float* z_data [[buffer(2)]],
    constant saxpy_arguments& arguments [[buffer(3)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const float a = arguments.a;
    const uint i = position;
    if (i >= size) return;
    const float x = x_data[i];
    const float y = y_data[i];
    float z = 0.0f;
    // 1: float d = a * x;
    const float d = a * x;
    // 2: z = d + y;
    z = d + y;
    z_data[i] = z;
}
