// complex_float32(complex64 x, complex64 y, bool c, complex64 s) -> (float32 re, float32 im, complex64 swapped, bool equal, bool differs, complex64 chosen, complex64 one, complex64 from_scalar, float32 nested)
// layout 1:x=1,y=1,c=1,re=1,im=1,swapped=1,equal=1,differs=1,chosen=1,one=1,from_scalar=1,nested=1;;a16, 4 elements at once
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

struct complex64 { float re, im; };

static __device__ bool fusec_equal_complex64(complex64 a, complex64 b) {
    return a.re == b.re && a.im == b.im;
}

extern "C" __global__ void __launch_bounds__(256) complex_float32(
    long long size,
    const complex64* x_data,
    const complex64* y_data,
    const bool* c_data,
    float* re_data,
    float* im_data,
    complex64* swapped_data,
    bool* equal_data,
    bool* differs_data,
    complex64* chosen_data,
    complex64* one_data,
    complex64* from_scalar_data,
    float* nested_data,
    complex64 s)
{
    const unsigned threads = gridDim.x * blockDim.x;
    for (unsigned base = 4 * (blockIdx.x * blockDim.x + threadIdx.x); base < size; base += 4 * threads) {
        const int count = size - base < 4 ? (int)(size - base) : 4;
        const fusec_group<complex64, 4> x_group = fusec_load<4>(x_data + base, count);
        const fusec_group<complex64, 4> y_group = fusec_load<4>(y_data + base, count);
        const fusec_group<bool, 4> c_group = fusec_load<4>(c_data + base, count);
        fusec_group<float, 4> re_group;
        fusec_group<float, 4> im_group;
        fusec_group<complex64, 4> swapped_group;
        fusec_group<bool, 4> equal_group;
        fusec_group<bool, 4> differs_group;
        fusec_group<complex64, 4> chosen_group;
        fusec_group<complex64, 4> one_group;
        fusec_group<complex64, 4> from_scalar_group;
        fusec_group<float, 4> nested_group;
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
            const complex64 x = x_group.v[k];
            const complex64 y = y_group.v[k];
            const bool c = c_group.v[k];
            re_group.v[k] = x.re;
            im_group.v[k] = y.im;
            swapped_group.v[k] = complex64{x.im, y.re};
            equal_group.v[k] = fusec_equal_complex64(x, y);
            differs_group.v[k] = !fusec_equal_complex64(x, y);
            chosen_group.v[k] = c ? x : complex64{x.im, y.re};
            one_group.v[k] = complex64{1.0f, -2.0f};
            from_scalar_group.v[k] = complex64{s.re, s.im};
            nested_group.v[k] = (c ? s : y).re;
        }
        fusec_store<4>(re_data + base, re_group, count);
        fusec_store<4>(im_data + base, im_group, count);
        fusec_store<4>(swapped_data + base, swapped_group, count);
        fusec_store<4>(equal_data + base, equal_group, count);
        fusec_store<4>(differs_data + base, differs_group, count);
        fusec_store<4>(chosen_data + base, chosen_group, count);
        fusec_store<4>(one_data + base, one_group, count);
        fusec_store<4>(from_scalar_data + base, from_scalar_group, count);
        fusec_store<4>(nested_data + base, nested_group, count);
    }
}
