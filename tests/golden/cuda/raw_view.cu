// gather(raw int32 A) -> (raw int32 B, raw int64 C)
// layout 1:;A=3,B=1c,C=1;a16
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: compile with --fmad=false (nvcc, NVRTC), and without --use_fast_math

// the address some bytes further on
template <class T> static __device__ T* fusec_moved(T* base, long long nbytes) {
    return (T*)((char*)base + nbytes);
}

// a / b; 0 if b is 0
static __device__ long long fusec_quotient_int64(long long a, long long b) {
    if (b == 0) return 0;
    if (b == -1) return (long long)(0 - (unsigned long long)a);
    return a / b;
}

// a % b, with the sign of a; 0 if b is 0
static __device__ long long fusec_modulo_int64(long long a, long long b) {
    if (b == 0 || b == -1) return 0;
    return (long long)(a - a / b * b);
}

// byte offset of the element at a position in C order
static __device__ long long fusec_strided_3(long long index, long long n1, long long n2, long long s0, long long s1, long long s2) {
    return index / n2 / n1 * s0 + index / n2 % n1 * s1 + index % n2 * s2;
}

static __device__ long long fusec_pick_3(long long axis, long long a0, long long a1, long long a2) {
    return axis == 0 ? a0 : axis == 1 ? a1 : a2;
}

extern "C" __global__ void __launch_bounds__(256) gather(
    long long size,
    const int* A,
    long long A_size,
    long long A_shape1,
    long long A_shape2,
    long long A_stride0,
    long long A_stride1,
    long long A_stride2,
    int* B,
    long long* C,
    long long C_stride0)
{
    const long long threads = (long long)gridDim.x * blockDim.x;
    #pragma unroll 1
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += threads) {
        const long long t = fusec_quotient_int64(i, A_shape2);
        const int value = *fusec_moved(A, fusec_quotient_int64(t, A_shape1) * A_stride0 + fusec_modulo_int64(t, A_shape1) * A_stride1 + fusec_modulo_int64(i, A_shape2) * A_stride2);
        const int mirror = *fusec_moved(A, fusec_strided_3(A_size - 1 - i, A_shape1, A_shape2, A_stride0, A_stride1, A_stride2));
        const long long facts = fusec_pick_3(i % 3, A_stride0, A_stride1, A_stride2) + 3ll;
        B[i] = (int)((unsigned)value - mirror);
        *fusec_moved(C, i * C_stride0) = facts;
    }
}
