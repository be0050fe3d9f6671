/* Bandwidth reference: copy and triad over float32 arrays, each with ordinary and with non-temporal stores. */
#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Threads take contiguous blocks of whole cache lines, so that none shares a line with another. */
#define BLOCKS(n, threads, body)                                                    \
    _Pragma("omp parallel for schedule(static) num_threads(threads)")               \
    for (int64_t block = 0; block < (threads); block++) {                           \
        int64_t lines = ((n) / 16 + (threads) - 1) / (threads) * 16;                \
        int64_t low = block * lines, high = low + lines < (n) ? low + lines : (n);  \
        body                                                                        \
    }

void copy(float *restrict z, const float *x, const float *y, int64_t n, int threads)
{
    (void)y;
    BLOCKS(n, threads, for (int64_t i = low; i < high; i++) z[i] = x[i];)
}

void triad(float *restrict z, const float *x, const float *y, int64_t n, int threads)
{
    BLOCKS(n, threads, for (int64_t i = low; i < high; i++) z[i] = 3.0f * x[i] + y[i];)
}

#ifdef __SSE2__
void copy_streaming(float *restrict z, const float *x, const float *y, int64_t n, int threads)
{
    (void)y;
    BLOCKS(n, threads,
        for (int64_t i = low; i < high; i += 4) _mm_stream_ps(z + i, _mm_loadu_ps(x + i));
        _mm_sfence();)
}

void triad_streaming(float *restrict z, const float *x, const float *y, int64_t n, int threads)
{
    __m128 three = _mm_set1_ps(3.0f);
    BLOCKS(n, threads,
        for (int64_t i = low; i < high; i += 4)
            _mm_stream_ps(z + i, _mm_add_ps(_mm_mul_ps(three, _mm_loadu_ps(x + i)), _mm_loadu_ps(y + i)));
        _mm_sfence();)
}
#endif
