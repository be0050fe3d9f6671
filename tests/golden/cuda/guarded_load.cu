// neighbour(raw int32 A) -> (int32 z, bool w)
// layout 1:z=1,w=1;A=1c;a16, 4 elements at once
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

extern "C" __global__ void __launch_bounds__(256) neighbour(
    long long size,
    const int* A,
    long long A_size,
    int* z_data,
    bool* w_data)
{
    const long long threads = (long long)gridDim.x * blockDim.x;
    for (long long base = 4 * ((long long)blockIdx.x * blockDim.x + threadIdx.x); base < size; base += 4 * threads) {
        const int count = size - base < 4 ? (int)(size - base) : 4;
        fusec_group<int, 4> z_group;
        fusec_group<bool, 4> w_group;
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
            const long long i = base + (k < count ? k : count - 1);
            const long long t = i + 1;
            z_group.v[k] = t < A_size ? (int)((unsigned)A[t] + A[t]) : 0;
            const long long t_2 = i + 1;
            w_group.v[k] = t_2 < A_size && A[t_2] < 50;
        }
        fusec_store<4>(z_data + base, z_group, count);
        fusec_store<4>(w_data + base, w_group, count);
    }
}
