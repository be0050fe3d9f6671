// heat_step: 2 launches in this order
//   u: float32 (100,), written by launch 2
//   rate: 0.25, a number
//   1. heat_step_1 over 98 elements, 4 a thread: size = 98, a0 = u + 4 bytes, s0 = 0.25, a1 = u + 8 bytes, a2 = u,
//      z0 = t1
//   2. heat_step_2 over 98 elements, 4 a thread: size = 98, a0 = t1, z0 = u + 4 bytes
//   t1: float32 (98,), 392 bytes, written by launch 1, read by launch 2

// heat_step_1(float32 a0, float32 s0, float32 a1, float32 a2) -> (float32 z0)
// layout 1:a0=1,a1=1,a2=1,z0=1;;pa4u, 4 elements at once
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: compile with --fmad=false (nvcc, NVRTC), and without --use_fast_math

// how many elements a row begins behind an address that groups of K are aligned to
template <int K, class T> static __device__ int fusec_ahead(const T* row) {
    return (int)((size_t)row / sizeof(T) % K);
}

// K neighbours, loaded and stored by instructions of up to 16 bytes
template <class T, int K> struct alignas(sizeof(T) * K < 16 ? sizeof(T) * K : 16) fusec_group {
    T v[K];
};

// the bytes of a group; copied as words, so that small elements do not take a register each
template <int N> struct alignas(N < 16 ? N : 16) fusec_words {
    unsigned w[N / 4];
};

// K neighbours of a row at any address, from the element `base`; the nearest in the row stand for those beyond its ends
template <int K, class T> static __device__ fusec_group<T, K> fusec_load_from(const T* row, long long base, long long end) {
    constexpr int N = sizeof(T) * K, W = N / 4;
    fusec_group<T, K> group;
    const unsigned off = (unsigned)(size_t)(row + base) % alignof(fusec_group<T, K>);
    if (off == 0 && base >= 0 && base + K <= end) {
        *(fusec_words<N>*)&group = *(const fusec_words<N>*)(row + base);
    } else if (N <= 16 && base >= K && base + 2 * K <= end) {  // from two aligned groups
        const fusec_words<N>* const from = (const fusec_words<N>*)((const char*)(row + base) - off);
        const fusec_words<N> low = from[0], high = from[1];
        unsigned w[2 * W];
        for (int i = 0; i < W; ++i) {
            w[i] = low.w[i];
            w[W + i] = high.w[i];
        }
        for (int i = 0; i + 2 < 2 * W && W > 2; ++i) w[i] = off & 8 ? w[i + 2] : w[i];
        for (int i = 0; i + 1 < 2 * W && W > 1; ++i) w[i] = off & 4 ? w[i + 1] : w[i];
        for (int i = 0; i < W; ++i) {
            ((fusec_words<N>*)&group)->w[i] = sizeof(T) < 4 ? __funnelshift_r(w[i], w[i + 1], 8 * (off % 4)) : w[i];
        }
    } else {
        for (int k = 0; k < K; ++k) {
            const long long at = base + k;
            group.v[k] = row[at < 0 ? 0 : at < end ? at : end - 1];
        }
    }
    return group;
}

// those of K neighbours that are in their row
template <int K, class T> static __device__ void fusec_store_to(T* to, const fusec_group<T, K>& group, int start, int count) {
    if (start == 0 && count == K && (size_t)to % alignof(fusec_group<T, K>) == 0) {
        *(fusec_group<T, K>*)to = group;
    } else {
        for (int k = 0; k < K; ++k) {
            if (start <= k && k < count) to[k] = group.v[k];
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) heat_step_1(
    long long size,
    const float* a0_data,
    float s0,
    const float* a1_data,
    const float* a2_data,
    float* z0_data)
{
    const unsigned threads = gridDim.x * blockDim.x;
    const int ahead = fusec_ahead<4>(z0_data);
    for (long long base = (long long)4 * (blockIdx.x * blockDim.x + threadIdx.x) - ahead; base < size; base += 4 * threads) {
        const int start = base < 0 ? (int)-base : 0;
        const int count = size - base < 4 ? (int)(size - base) : 4;
        const fusec_group<float, 4> a0_group = fusec_load_from<4>(a0_data, base, size);
        const fusec_group<float, 4> a1_group = fusec_load_from<4>(a1_data, base, size);
        const fusec_group<float, 4> a2_group = fusec_load_from<4>(a2_data, base, size);
        fusec_group<float, 4> z0_group;
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
            const float a0_in = a0_group.v[k];
            const float a1_in = a1_group.v[k];
            const float a2_in = a2_group.v[k];
            z0_group.v[k] = a0_in + s0 * (a1_in - a0_in * 2.0f + a2_in);
        }
        fusec_store_to<4>(z0_data + base, z0_group, start, count);
    }
}

// heat_step_2(float32 a0) -> (float32 z0)
// layout 1:a0=1,z0=1;;pa4u, 4 elements at once
// needs fewer than 2^31 elements, and bytes from end to end of an array

extern "C" __global__ void __launch_bounds__(256) heat_step_2(
    long long size,
    const float* a0_data,
    float* z0_data)
{
    const unsigned threads = gridDim.x * blockDim.x;
    const int ahead = fusec_ahead<4>(z0_data);
    for (long long base = (long long)4 * (blockIdx.x * blockDim.x + threadIdx.x) - ahead; base < size; base += 4 * threads) {
        const int start = base < 0 ? (int)-base : 0;
        const int count = size - base < 4 ? (int)(size - base) : 4;
        const fusec_group<float, 4> a0_group = fusec_load_from<4>(a0_data, base, size);
        fusec_group<float, 4> z0_group;
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
            const float a0_in = a0_group.v[k];
            z0_group.v[k] = a0_in;
        }
        fusec_store_to<4>(z0_data + base, z0_group, start, count);
    }
}
