// atomic_add(int32 x) -> (raw int32 bins)
// layout 1:x=1;bins=1c;a16
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: compile with --fmad=false (nvcc, NVRTC), and without --use_fast_math

extern "C" __global__ void __launch_bounds__(256) atomic_add(
    long long size,
    const int* x_data,
    int* bins)
{
    const long long threads = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += threads) {
        const int x = x_data[i];
        atomicAdd(bins + i % 5, x);
    }
}
