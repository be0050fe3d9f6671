// functions_and_structs(int32 x, int32 y) -> (int32 z)
// layout 1:x=1,y=1,z=1;;a16
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: compile with --fmad=false (nvcc, NVRTC), and without --use_fast_math

struct Pair { int first; int kernel_second; };

static __device__ Pair swap(Pair p) {
    return Pair{p.kernel_second, p.first};
}

static __device__ int bump(int* at, int by) {
    const int old = *at;
    *at = (int)((unsigned)old + by);
    return old;
}

static __device__ int exp_2(int v) {
    for (int j = 0; j < 3; ++j) {
        if (v > 10) {
            return j;
        }
        v = (int)((unsigned)v + v);
    }
    return 9;
}

extern "C" __global__ void __launch_bounds__(256) functions_and_structs(
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
        Pair pair = {};
        pair.first = x;
        pair = swap(pair);
        int cell[2] = {y};
        int half = 0;
        half = bump(cell, x);
        bump(cell, 1);
        z = (int)((unsigned)pair.kernel_second + cell[0]);
        z = (int)((unsigned)z + ((unsigned)exp_2(x) + half));
        z_data[i] = z;
    }
}
