// local_array(int32 x, int32 y) -> (int32 z)
// layout 1:x=1,y=1,z=1;;a16
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: compile with --fmad=false (nvcc, NVRTC), and without --use_fast_math

extern "C" __global__ void __launch_bounds__(256) local_array(
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
        int buffer[8] = {x, 5};
        int first = buffer[0];
        for (int j = 0; j < 8; ++j) {
            buffer[j] = (int)((unsigned)j * x + y);
        }
        int* p = buffer + 2;
        p = p + 1;
        const int old = *p;
        *p = (int)((unsigned)old + y);
        first = old;
        const int old_2 = *p;
        *p = 9 > old_2 || old_2 != old_2 ? 9 : old_2;
        p[1] = (int)((unsigned)p[1] + x);
        z = (int)((unsigned)*p + first + buffer[4]);
        z_data[i] = z;
    }
}
