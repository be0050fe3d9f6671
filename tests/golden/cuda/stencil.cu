// window(raw float32 a, raw int16 b) -> (float32 out0)
// layout 2:out0=s1;a=2c,b=2;a16, 8 rows at once
// needs results apart from the arrays with neighbours; fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: compile with --fmad=false (nvcc, NVRTC), and without --use_fast_math

// the address some bytes further on
template <class T> static __device__ T* fusec_moved(T* base, long long nbytes) {
    return (T*)((char*)base + nbytes);
}

static __device__ long long fusec_maximum_int64(long long x, long long y) {
    return y > x ? y : x;
}

static __device__ long long fusec_minimum_int64(long long x, long long y) {
    return y < x ? y : x;
}

extern "C" __global__ void __launch_bounds__(256, 2) window(
    long long size,
    long long extent0,
    long long extent1,
    const float* __restrict__ a,
    long long a_shape1,
    const short* __restrict__ b,
    long long b_stride0,
    long long b_stride1,
    float* out0_data,
    long long out0_stride0)
{
    const long long threads = (long long)gridDim.x * blockDim.x;
    const long long strips0 = extent0 > 3 ? (extent0 - 3) / 8 : 0;
    const long long taken0 = strips0 * 8;
    const long long strips1 = extent1 > 3 ? (extent1 - 3) : 0;
    const long long taken1 = strips1;
    const long long others0 = (extent0 - taken0) * extent1;
    const long long others1 = taken0 * (extent1 - taken1);
    for (long long border = (long long)blockIdx.x * blockDim.x + threadIdx.x; border < others0 + others1; border += threads) {
        long long i0, i1;
        if (border < others0) {
            i0 = (unsigned)border / (unsigned)extent1;
            i1 = (unsigned)border % (unsigned)extent1;
            if (i0 >= 1) i0 += taken0;
        } else {
            i0 = (unsigned)(border - others0) / (unsigned)(extent1 - taken1) + 1;
            i1 = (unsigned)(border - others0) % (unsigned)(extent1 - taken1);
            if (i1 >= 2) i1 += taken1;
        }
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
    for (long long strip = (long long)blockIdx.x * blockDim.x + threadIdx.x; strip < strips0 * strips1; strip += threads) {
        const long long begin = (unsigned)strip / (unsigned)strips1 * 8 + 1;
        const long long left_2 = (unsigned)strip % (unsigned)strips1 + 2;
        float a_near[10][3];
        short b_near[8][1];
        #pragma unroll
        for (int row = 0; row < 10; ++row) {
            #pragma unroll
            for (int column = 0; column < 3; ++column) {
                a_near[row][column] = a[(begin + row) * a_shape1 + (left_2 + column - 2)];
            }
        }
        #pragma unroll
        for (int row = 0; row < 8; ++row) {
            #pragma unroll
            for (int column = 0; column < 1; ++column) {
                b_near[row][column] = *fusec_moved(b, (begin + row - 1) * b_stride0 + (left_2 + column + 1) * b_stride1);
            }
        }
        #pragma unroll
        for (int k = 0; k < 8; ++k) {
            const long long i0 = begin + k;
            const long long i1 = left_2;
            float out0_1 = 0.0f;
            // 3: left, right = a[0, -2], b[-1, 1]
            const float left = a_near[k][0];
            const short right = b_near[k][0];
            // 4: if left < right:
            if (left < right) {
                // 5: return left - 3 * a[2, 0]
                out0_1 = left - a_near[k + 2][2] * 3.0f;
            } else {
                // 6: return right + a
                out0_1 = right + a_near[k][2];
            }
            fusec_moved(out0_data, i0 * out0_stride0)[i1] = out0_1;
        }
    }
}
