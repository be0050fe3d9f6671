// add_first(float32 x, int64 _axis) -> (float32 _partial0)
// layout 2:x=s1,_partial0=s1;;pa4
// axis: elements along the axis that is reduced; size: a thread for each of its chunks
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

static float combine(float a, float b) {
    return a + b;
}

struct add_first_arguments {
    long size;
    long extent1;
    long x_stride0;
    long partial0_stride0;
    long axis;
};

kernel void add_first(
    device const float* x_data [[buffer(0)]],
    device float* partial0_data [[buffer(1)]],
    constant add_first_arguments& arguments [[buffer(2)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const long extent1 = arguments.extent1;
    const long x_stride0 = arguments.x_stride0;
    const long partial0_stride0 = arguments.partial0_stride0;
    const long axis = arguments.axis;
    const long i = position;
    if (i >= size) return;
    const long i0 = (uint)i / (uint)extent1;
    const long i1 = (uint)i % (uint)extent1;
    const long start = i0 * 64;
    const long t = axis - start;
    const long covered = t < 64 ? t : 64;
    float part = 0.0f;
    #pragma unroll 8
    for (long step0 = 0; step0 < covered; ++step0) {
        const float x_0 = fusec_moved(x_data, (start + step0) * x_stride0)[i1];
        if (step0 == 0) {
            part = x_0;
        } else {
            part = combine(part, x_0);
        }
    }
    const float total = part;
    fusec_moved(partial0_data, i0 * partial0_stride0)[i1] = total;
}
