// window(raw float32 a, raw int16 b) -> (float32 out0)
// layout 2:out0=s1;a=2c,b=2;a16
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

static long fusec_maximum_int64(long x, long y) {
    return y > x ? y : x;
}

static long fusec_minimum_int64(long x, long y) {
    return y < x ? y : x;
}

struct window_arguments {
    long size;
    long extent0;
    long extent1;
    long a_shape1;
    long b_stride0;
    long b_stride1;
    long out0_stride0;
};

kernel void window(
    device const float* a [[buffer(0)]],
    device const short* b [[buffer(1)]],
    device float* out0_data [[buffer(2)]],
    constant window_arguments& arguments [[buffer(3)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const long extent0 = arguments.extent0;
    const long extent1 = arguments.extent1;
    const long a_shape1 = arguments.a_shape1;
    const long b_stride0 = arguments.b_stride0;
    const long b_stride1 = arguments.b_stride1;
    const long out0_stride0 = arguments.out0_stride0;
    const long i = position;
    if (i >= size) return;
    const long i0 = (uint)i / (uint)extent1;
    const long i1 = (uint)i % (uint)extent1;
    float out0_1 = 0.0f;
    if (i0 >= 1 && i0 < extent0 - 2 && i1 >= 2 && i1 < extent1 - 1) {
        // 3: left, right = a[0, -2], b[-1, 1]
        const float left = a[i0 * a_shape1 + (i1 + -2)];
        const short right = *fusec_moved(b, (i0 + -1) * b_stride0 + (i1 + 1) * b_stride1);
        // 4: if left < right:
        if (left < right) {
            // 5: return left - 3 * a[2, 0]
            out0_1 = left - a[(i0 + 2) * a_shape1 + i1] * 3.0f;
        } else {
            // 6: return right + a
            out0_1 = right + a[i0 * a_shape1 + i1];
        }
    } else {
        const float left_1 = a[i0 * a_shape1 + fusec_minimum_int64(fusec_maximum_int64(i1 + -2, 0), extent1 - 1)];
        const short right_1 = *fusec_moved(b, fusec_minimum_int64(fusec_maximum_int64(i0 + -1, 0), extent0 - 1) * b_stride0 + fusec_minimum_int64(fusec_maximum_int64(i1 + 1, 0), extent1 - 1) * b_stride1);
        if (left_1 < right_1) {
            out0_1 = left_1 - a[fusec_minimum_int64(fusec_maximum_int64(i0 + 2, 0), extent0 - 1) * a_shape1 + i1] * 3.0f;
        } else {
            out0_1 = right_1 + a[i0 * a_shape1 + i1];
        }
    }
    fusec_moved(out0_data, i0 * out0_stride0)[i1] = out0_1;
}
