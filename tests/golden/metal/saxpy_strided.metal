// saxpy(float32 a, float32 x, float32 y) -> (float32 z)
// layout 2:x=1s,y=s1,z=s1;;a16
// needs fewer than 2^31 elements, and bytes from end to end of an array
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
    float a;
    long x_stride1;
    long y_stride0;
    long z_stride0;
};

kernel void saxpy(
    device const float* x_data [[buffer(0)]],
    device const float* y_data [[buffer(1)]],
    device float* z_data [[buffer(2)]],
    constant saxpy_arguments& arguments [[buffer(3)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const long extent1 = arguments.extent1;
    const float a = arguments.a;
    const long x_stride1 = arguments.x_stride1;
    const long y_stride0 = arguments.y_stride0;
    const long z_stride0 = arguments.z_stride0;
    const uint i = position;
    if (i >= size) return;
    const uint i0 = i / (uint)extent1;
    const uint i1 = i % (uint)extent1;
    const float x = fusec_moved(x_data, i1 * x_stride1)[i0];
    const float y = fusec_moved(y_data, i0 * y_stride0)[i1];
    float z = 0.0f;
    // 1: float d = a * x;
    const float d = a * x;
    // 2: z = d + y;
    z = d + y;
    fusec_moved(z_data, i0 * z_stride0)[i1] = z;
}
