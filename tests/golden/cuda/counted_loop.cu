// counted_loop(int32 x, int32 y) -> (int32 z)
// layout 1:x=1,y=1,z=1;;a16
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: compile with --fmad=false (nvcc, NVRTC), and without --use_fast_math

extern "C" __global__ void __launch_bounds__(256) counted_loop(
    long long size,
    const int* x_data,
    const int* y_data,
    int* z_data)
{
    const unsigned threads = gridDim.x * blockDim.x;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += threads) {
        const int x = x_data[i];
        const int y = y_data[i];
        int z = 0;
        for (int j = 0; j < y; ++j) {
            if (j % 3 == 1) {
                continue;
            }
            if (z > 50) {
                break;
            }
            z = (int)((unsigned)z + x);
        }
        z_data[i] = z;
    }
}
