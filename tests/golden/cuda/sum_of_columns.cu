// add_first(float32 x, int64 _axis) -> (float32 _partial0)
// layout 2:x=s1,_partial0=s1;;pa4
// axis: elements along the axis that is reduced; size: a thread for each of its chunks
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: compile with --fmad=false (nvcc, NVRTC), and without --use_fast_math

// the address some bytes further on
template <class T> static __device__ T* fusec_moved(T* base, long long nbytes) {
    return (T*)((char*)base + nbytes);
}

static __device__ float combine(float a, float b) {
    return a + b;
}

extern "C" __global__ void __launch_bounds__(256, 2) add_first(
    long long size,
    long long extent1,
    const float* x_data,
    long long x_stride0,
    float* partial0_data,
    long long partial0_stride0,
    long long axis)
{
    const long long threads = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += threads) {
        const long long i0 = (unsigned)i / (unsigned)extent1;
        const long long i1 = (unsigned)i % (unsigned)extent1;
        const long long start = i0 * 64;
        const long long t = axis - start;
        const long long covered = t < 64 ? t : 64;
        float part = 0.0f;
        #pragma unroll 8
        for (long long step0 = 0; step0 < covered; ++step0) {
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
}
