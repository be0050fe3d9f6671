// saxpy(float32 a, float32 x, float32 y) -> (float32 z)
// layout 2:x=1s,y=s1,z=s1;;a16
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: compile with --fmad=false (nvcc, NVRTC), and without --use_fast_math

// the address some bytes further on
template <class T> static __device__ T* fusec_moved(T* base, long long nbytes) {
    return (T*)((char*)base + nbytes);
}

extern "C" __global__ void __launch_bounds__(256) saxpy(
    long long size,
    long long extent1,
    float a,
    const float* x_data,
    long long x_stride1,
    const float* y_data,
    long long y_stride0,
    float* z_data,
    long long z_stride0)
{
    const unsigned threads = gridDim.x * blockDim.x;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += threads) {
        const unsigned i0 = i / (unsigned)extent1;
        const unsigned i1 = i % (unsigned)extent1;
        const float x = fusec_moved(x_data, i1 * x_stride1)[i0];
        const float y = fusec_moved(y_data, i0 * y_stride0)[i1];
        float z = 0.0f;
        // 1: float d = a * x;
        const float d = a * x;
        // 2: z = d + y;
        z = d + y;
        fusec_moved(z_data, i0 * z_stride0)[i1] = z;
    }
}
