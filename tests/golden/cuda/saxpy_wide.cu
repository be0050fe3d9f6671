// saxpy(float32 a, float32 x, float32 y) -> (float32 z)
// layout 3:x=ss1,y=s10,z=1ss;;wa16
// exact bits: compile with --fmad=false (nvcc, NVRTC), and without --use_fast_math

// the address some bytes further on
template <class T> static __device__ T* fusec_moved(T* base, long long nbytes) {
    return (T*)((char*)base + nbytes);
}

extern "C" __global__ void __launch_bounds__(256) saxpy(
    long long size,
    long long extent1,
    long long extent2,
    float a,
    const float* x_data,
    long long x_stride0,
    long long x_stride1,
    const float* y_data,
    long long y_stride0,
    float* z_data,
    long long z_stride1,
    long long z_stride2)
{
    const long long threads = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += threads) {
        const long long i0 = i / extent2 / extent1;
        const long long i1 = i / extent2 % extent1;
        const long long i2 = i % extent2;
        const float x = fusec_moved(x_data, i0 * x_stride0 + i1 * x_stride1)[i2];
        const float y = fusec_moved(y_data, i0 * y_stride0)[i1];
        float z = 0.0f;
        // 1: float d = a * x;
        const float d = a * x;
        // 2: z = d + y;
        z = d + y;
        fusec_moved(z_data, i1 * z_stride1 + i2 * z_stride2)[i0] = z;
    }
}
