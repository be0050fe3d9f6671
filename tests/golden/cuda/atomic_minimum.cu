// atomic_minimum(float32 x) -> (raw float32 bins)
// layout 1:x=1;bins=1c;a16
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: compile with --fmad=false (nvcc, NVRTC), and without --use_fast_math

static __device__ float fusec_atomic_minimum_float32(float* address, float value) {
    unsigned* const at = (unsigned*)address;
    unsigned seen = *at, assumed;
    do {
        assumed = seen;
        const float old = __uint_as_float(assumed);
        const float next = value < old || old != old ? value : old;
        seen = atomicCAS(at, assumed, __float_as_uint(next));
    } while (seen != assumed);
    return __uint_as_float(seen);
}

extern "C" __global__ void __launch_bounds__(256) atomic_minimum(
    long long size,
    const float* x_data,
    float* bins)
{
    const long long threads = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += threads) {
        const float x = x_data[i];
        fusec_atomic_minimum_float32(bins + i % 5, x);
    }
}
