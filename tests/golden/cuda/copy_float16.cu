// copy(float16 x) -> (float16 z)
// layout 1:x=1,z=1;;a16, 8 elements at once
// needs arrays aligned to 16 bytes; fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: compile with --fmad=false (nvcc, NVRTC), and without --use_fast_math

// K neighbours, loaded and stored by instructions of up to 16 bytes
template <class T, int K> struct alignas(sizeof(T) * K < 16 ? sizeof(T) * K : 16) fusec_group {
    T v[K];
};

// the bytes of a group; copied as words, so that small elements do not take a register each
template <int N> struct alignas(N < 16 ? N : 16) fusec_words {
    unsigned w[N / 4];
};

// the first `count` of K neighbours; the last of them stands for those beyond
template <int K, class T> static __device__ fusec_group<T, K> fusec_load(const T* from, int count) {
    fusec_group<T, K> group;
    if (count == K) {
        *(fusec_words<sizeof(T) * K>*)&group = *(const fusec_words<sizeof(T) * K>*)from;
    } else {
        for (int k = 0; k < K; ++k) group.v[k] = from[k < count ? k : count - 1];
    }
    return group;
}

template <int K, class T> static __device__ void fusec_store(T* to, const fusec_group<T, K>& group, int count) {
    if (count == K) {
        *(fusec_group<T, K>*)to = group;
    } else {
        for (int k = 0; k < K; ++k) {
            if (k < count) to[k] = group.v[k];
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) copy(
    long long size,
    const unsigned short* x_data,
    unsigned short* z_data)
{
    const unsigned threads = gridDim.x * blockDim.x;
    for (unsigned base = 8 * (blockIdx.x * blockDim.x + threadIdx.x); base < size; base += 8 * threads) {
        const int count = size - base < 8 ? (int)(size - base) : 8;
        const fusec_group<unsigned short, 8> x_group = fusec_load<8>(x_data + base, count);
        fusec_group<unsigned short, 8> z_group;
        #pragma unroll
        for (int k = 0; k < 8; ++k) {
            const unsigned short x = x_group.v[k];
            z_group.v[k] = x;
        }
        fusec_store<8>(z_data + base, z_group, count);
    }
}
