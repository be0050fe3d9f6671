// add(float32 x, int64 _axis) -> (float32 z)
// layout 2:x=s1,z=10;;pa4
// axis: elements along the axis that is reduced; size: 32 threads for each of its chunks
// needs blocks of a multiple of 32 threads; fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: compile with --fmad=false (nvcc, NVRTC), and without --use_fast_math

// the address some bytes further on
template <class T> static __device__ T* fusec_moved(T* base, long long nbytes) {
    return (T*)((char*)base + nbytes);
}

static __device__ float combine(float a, float b) {
    return a + b;
}

extern "C" __global__ void __launch_bounds__(256, 2) add(
    long long size,
    long long extent1,
    const float* x_data,
    long long x_stride0,
    float* z_data,
    long long axis)
{
    const long long threads = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += threads) {
        const long long i0 = (unsigned)i / (unsigned)extent1;
        const long long i1 = (unsigned)i % (unsigned)extent1;
        const long long member = i1 & 31;
        const long long chunk = i1 >> 5;
        const long long start = chunk * 8192;
        const long long t = axis - start;
        const long long covered = t < 8192 ? t : 8192;
        float held0_0[4] = {};
        const long long whole0 = covered >> 7;
        #pragma unroll 8
        for (long long round0 = 0; round0 < whole0; ++round0) {
            #pragma unroll
            for (long long lane0 = 0; lane0 < 4; ++lane0) {
                const long long place0 = round0 * 128 + lane0 * 32 + member;
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
        for (long long last0 = 0; last0 < 4; ++last0) {
            const long long place0_last = whole0 * 128 + last0 * 32 + member;
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
        for (long long low0_2 = 0; low0_2 < 2; ++low0_2) {
            if ((low0_2 + 2) * 32 + member < covered) {
                held0_0[low0_2] = combine(held0_0[low0_2], held0_0[low0_2 + 2]);
            }
        }
        if (32 + member < covered) {
            held0_0[0] = combine(held0_0[0], held0_0[1]);
        }
        float mine0_0 = held0_0[0];
        float theirs0_0 = 0.0f;
        theirs0_0 = __shfl_down_sync(0xffffffffu, mine0_0, 16);
        if (member + 16 < covered) {
            mine0_0 = combine(mine0_0, theirs0_0);
        }
        theirs0_0 = __shfl_down_sync(0xffffffffu, mine0_0, 8);
        if (member + 8 < covered) {
            mine0_0 = combine(mine0_0, theirs0_0);
        }
        theirs0_0 = __shfl_down_sync(0xffffffffu, mine0_0, 4);
        if (member + 4 < covered) {
            mine0_0 = combine(mine0_0, theirs0_0);
        }
        theirs0_0 = __shfl_down_sync(0xffffffffu, mine0_0, 2);
        if (member + 2 < covered) {
            mine0_0 = combine(mine0_0, theirs0_0);
        }
        theirs0_0 = __shfl_down_sync(0xffffffffu, mine0_0, 1);
        if (member + 1 < covered) {
            mine0_0 = combine(mine0_0, theirs0_0);
        }
        float part = 0.0f;
        part = __shfl_sync(0xffffffffu, mine0_0, 0);
        const float total = part;
        if (member == 0) {
            z_data[i0] = total;
        }
    }
}
