// saxpy(float32 a, float32 x, float32 y) -> (float32 z)
// layout 3:x=ss1,y=s10,z=1ss;;wa16
// exact bits: by the pragmas from Metal 3.2 on; before, turn fast math (fastMathEnabled) and contraction off
#include <metal_stdlib>
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
using namespace metal;

// the address some bytes further on
template <class T> static device T* fusec_moved(device T* base, long nbytes) {
    return (device T*)((device char*)base + nbytes);
}

struct saxpy_arguments {
    long size;
    long extent1;
    long extent2;
    float a;
    long x_stride0;
    long x_stride1;
    long y_stride0;
    long z_stride1;
    long z_stride2;
};

kernel void saxpy(
    device const float* x_data [[buffer(0)]],
    device const float* y_data [[buffer(1)]],
    device float* z_data [[buffer(2)]],
    constant saxpy_arguments& arguments [[buffer(3)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]])
{
    const long size = arguments.size;
    const long extent1 = arguments.extent1;
    const long extent2 = arguments.extent2;
    const float a = arguments.a;
    const long x_stride0 = arguments.x_stride0;
    const long x_stride1 = arguments.x_stride1;
    const long y_stride0 = arguments.y_stride0;
    const long z_stride1 = arguments.z_stride1;
    const long z_stride2 = arguments.z_stride2;
    const long i = (long)position.y * grid.x + position.x;
    if (i >= size) return;
    const long i0 = i / extent2 / extent1;
    const long i1 = i / extent2 % extent1;
    const long i2 = i % extent2;
    const float x = fusec_moved(x_data, i0 * x_stride0 + i1 * x_stride1)[i2];
    const float y = fusec_moved(y_data, i0 * y_stride0)[i1];
    float z = 0.0f;
    // 1: float d = a * x;
    const float d = a * x;
    // 2: z = d + y;
    z = d + y;
    fusec_moved(z_data, i1 * z_stride1 + i2 * z_stride2)[i0] = z;
}
