// add(float32 x, int64 _axis) -> (float32 z)
// layout 2:x=s1,z=10;;pa4
// axis: elements along the axis that is reduced; size: 32 threads for each of its chunks
// needs blocks of a multiple of 32 threads; fewer than 2^31 elements, and bytes from end to end of an array
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

struct add_arguments {
    long size;
    long extent1;
    long x_stride0;
    long axis;
};

kernel void add(
    device const float* x_data [[buffer(0)]],
    device float* z_data [[buffer(1)]],
    constant add_arguments& arguments [[buffer(2)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const long extent1 = arguments.extent1;
    const long x_stride0 = arguments.x_stride0;
    const long axis = arguments.axis;
    const long i = position;
    if (i >= size) return;
    const long i0 = (uint)i / (uint)extent1;
    const long i1 = (uint)i % (uint)extent1;
    const long member = i1 & 31;
    const long chunk = i1 >> 5;
    const long start = chunk * 8192;
    const long t = axis - start;
    const long covered = t < 8192 ? t : 8192;
    float held0_0[4] = {};
    const long whole0 = covered >> 7;
    #pragma unroll 8
    for (long round0 = 0; round0 < whole0; ++round0) {
        #pragma unroll
        for (long lane0 = 0; lane0 < 4; ++lane0) {
            const long place0 = round0 * 128 + lane0 * 32 + member;
            const float x_0 = fusec_moved(x_data, i0 * x_stride0)[start + place0];
            const float new0_0 = x_0;
            if (round0 == 0) {
                held0_0[lane0] = new0_0;
            } else {
                held0_0[lane0] = combine(held0_0[lane0], new0_0);
            }
        }
    }
    #pragma unroll
    for (long last0 = 0; last0 < 4; ++last0) {
        const long place0_last = whole0 * 128 + last0 * 32 + member;
        if (place0_last < covered) {
            const float x_0_last = fusec_moved(x_data, i0 * x_stride0)[start + place0_last];
            const float new0_last_0 = x_0_last;
            if (whole0 == 0) {
                held0_0[last0] = new0_last_0;
            } else {
                held0_0[last0] = combine(held0_0[last0], new0_last_0);
            }
        }
    }
    #pragma unroll
    for (long low0_2 = 0; low0_2 < 2; ++low0_2) {
        if ((low0_2 + 2) * 32 + member < covered) {
            held0_0[low0_2] = combine(held0_0[low0_2], held0_0[low0_2 + 2]);
        }
    }
    if (32 + member < covered) {
        held0_0[0] = combine(held0_0[0], held0_0[1]);
    }
    float mine0_0 = held0_0[0];
    float theirs0_0 = 0.0f;
    theirs0_0 = simd_shuffle_down(mine0_0, (ushort)16);
    if (member + 16 < covered) {
        mine0_0 = combine(mine0_0, theirs0_0);
    }
    theirs0_0 = simd_shuffle_down(mine0_0, (ushort)8);
    if (member + 8 < covered) {
        mine0_0 = combine(mine0_0, theirs0_0);
    }
    theirs0_0 = simd_shuffle_down(mine0_0, (ushort)4);
    if (member + 4 < covered) {
        mine0_0 = combine(mine0_0, theirs0_0);
    }
    theirs0_0 = simd_shuffle_down(mine0_0, (ushort)2);
    if (member + 2 < covered) {
        mine0_0 = combine(mine0_0, theirs0_0);
    }
    theirs0_0 = simd_shuffle_down(mine0_0, (ushort)1);
    if (member + 1 < covered) {
        mine0_0 = combine(mine0_0, theirs0_0);
    }
    float part = 0.0f;
    part = simd_shuffle(mine0_0, (ushort)0);
    const float total = part;
    if (member == 0) {
        z_data[i0] = total;
    }
}
