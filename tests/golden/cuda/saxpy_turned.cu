// saxpy(float32 a, float32 x, float32 y) -> (float32 z)
// layout 2:x=1s,y=s1,z=s1;;ta16, 4 elements at once
// needs blocks of at least 256 threads; fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: compile with --fmad=false (nvcc, NVRTC), and without --use_fast_math

// the address some bytes further on
template <class T> static __device__ T* fusec_moved(T* base, long long nbytes) {
    return (T*)((char*)base + nbytes);
}

extern "C" __global__ void __launch_bounds__(256) saxpy(
    long long size,
    long long extent0,
    long long extent1,
    float a,
    const float* x_data,
    long long x_stride1,
    const float* y_data,
    long long y_stride0,
    float* z_data,
    long long z_stride0)
{
    __shared__ float x_tile[32][32];
    const unsigned tiles = (unsigned)size / (unsigned)extent0 / (unsigned)extent1 * (((unsigned)extent0 + 31) / 32) * (((unsigned)extent1 + 31) / 32);
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const unsigned begin = (unsigned)tile % (((unsigned)extent1 + 31) / 32) * 32;
        const unsigned begin_2 = (unsigned)tile / (((unsigned)extent1 + 31) / 32) % (((unsigned)extent0 + 31) / 32) * 32;
        float x_ahead[4] = {};
        float y_ahead[4];
        #pragma unroll
        for (unsigned k = 0; k < 4; ++k) {
            const unsigned at = threadIdx.x + 256 * k;
            const unsigned along = at % 32, across = at / 32;
            const unsigned i0 = begin_2 + along;
            const unsigned i1 = begin + across;
            if (i0 >= (unsigned)extent0 || i1 >= (unsigned)extent1 || threadIdx.x >= 256) continue;
            x_ahead[k] = fusec_moved(x_data, i1 * x_stride1)[i0];
        }
        #pragma unroll
        for (unsigned k = 0; k < 4; ++k) {
            const unsigned at = threadIdx.x + 256 * k;
            const unsigned along = at / 32, across = at % 32;
            const unsigned i0 = begin_2 + along;
            const unsigned i1 = begin + across;
            if (i0 >= (unsigned)extent0 || i1 >= (unsigned)extent1 || threadIdx.x >= 256) continue;
            y_ahead[k] = fusec_moved(y_data, i0 * y_stride0)[i1];
        }
        #pragma unroll
        for (unsigned k = 0; k < 4; ++k) {
            const unsigned at = threadIdx.x + 256 * k;
            const unsigned along = at % 32, across = at / 32;
            if (threadIdx.x >= 256) continue;
            x_tile[along][across ^ along] = x_ahead[k];
        }
        __syncthreads();
        #pragma unroll
        for (unsigned k = 0; k < 4; ++k) {
            const unsigned at = threadIdx.x + 256 * k;
            const unsigned along = at / 32, across = at % 32;
            const unsigned i0 = begin_2 + along;
            const unsigned i1 = begin + across;
            if (i0 >= (unsigned)extent0 || i1 >= (unsigned)extent1 || threadIdx.x >= 256) continue;
            const float x = x_tile[along][across ^ along];
            const float y = y_ahead[k];
            float z = 0.0f;
            // 1: float d = a * x;
            const float d = a * x;
            // 2: z = d + y;
            z = d + y;
            fusec_moved(z_data, i0 * z_stride0)[i1] = z;
        }
        __syncthreads();
    }
}
