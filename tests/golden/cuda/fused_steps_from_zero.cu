// steps_from_zero: 3 launches in this order
//   x: int32 (10,)
//   1. steps_from_zero_1 over 10 elements, 4 a thread: size = 10, a0 = x, stride 0 of a0 = 8, z0 = t1
//   2. steps_from_zero_2 over 1 element, 4 a thread: size = 1, z0 = t1
//   3. steps_from_zero_3 over 9 threads: size = 9, a0 = t1 + 4 bytes, a1 = t1, z0 = r1
//   t1: int32 (10,), 40 bytes, written by launches 1, 2, read by launch 3
//   r1: int32 (9,), 36 bytes, written by launch 3, returned

// steps_from_zero_1(int32 a0) -> (int32 z0)
// layout 1:a0=s,z0=1;;pa16ga02, 4 elements at once
// needs arrays aligned to 16 bytes; fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: compile with --fmad=false (nvcc, NVRTC), and without --use_fast_math

// K neighbours, loaded and stored by instructions of up to 16 bytes
template <class T, int K> struct alignas(sizeof(T) * K < 16 ? sizeof(T) * K : 16) fusec_group {
    T v[K];
};

template <int K, class T> static __device__ void fusec_store(T* to, const fusec_group<T, K>& group, int count) {
    if (count == K) {
        *(fusec_group<T, K>*)to = group;
    } else {
        for (int k = 0; k < K; ++k) {
            if (k < count) to[k] = group.v[k];
        }
    }
}

// the address some bytes further on
template <class T> static __device__ T* fusec_moved(T* base, long long nbytes) {
    return (T*)((char*)base + nbytes);
}

extern "C" __global__ void __launch_bounds__(256) steps_from_zero_1(
    long long size,
    const int* a0_data,
    long long a0_stride0,
    int* z0_data)
{
    const unsigned threads = gridDim.x * blockDim.x;
    for (unsigned base = 4 * (blockIdx.x * blockDim.x + threadIdx.x); base < size; base += 4 * threads) {
        const int count = size - base < 4 ? (int)(size - base) : 4;
        fusec_group<int, 4> z0_group;
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
            const long long i = base + (k < count ? k : count - 1);
            const int a0_in = *fusec_moved(a0_data, i * a0_stride0);
            z0_group.v[k] = (int)((unsigned)a0_in * 2);
        }
        fusec_store<4>(z0_data + base, z0_group, count);
    }
}

// steps_from_zero_2() -> (int32 z0)
// layout 1:z0=1;;pa16, 4 elements at once
// needs arrays aligned to 16 bytes; fewer than 2^31 elements, and bytes from end to end of an array

extern "C" __global__ void __launch_bounds__(256) steps_from_zero_2(
    long long size,
    int* z0_data)
{
    const unsigned threads = gridDim.x * blockDim.x;
    for (unsigned base = 4 * (blockIdx.x * blockDim.x + threadIdx.x); base < size; base += 4 * threads) {
        const int count = size - base < 4 ? (int)(size - base) : 4;
        fusec_group<int, 4> z0_group;
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
            z0_group.v[k] = 0;
        }
        fusec_store<4>(z0_data + base, z0_group, count);
    }
}

// steps_from_zero_3(int32 a0, int32 a1) -> (int32 z0)
// layout 1:a0=1,a1=1,z0=1;;pa4
// needs fewer than 2^31 elements, and bytes from end to end of an array

extern "C" __global__ void __launch_bounds__(256) steps_from_zero_3(
    long long size,
    const int* a0_data,
    const int* a1_data,
    int* z0_data)
{
    const unsigned threads = gridDim.x * blockDim.x;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += threads) {
        const int a0_in = a0_data[i];
        const int a1_in = a1_data[i];
        z0_data[i] = (int)((unsigned)a0_in - a1_in);
    }
}
