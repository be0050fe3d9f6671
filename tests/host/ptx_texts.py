"""Kernels of CUDA C for tests of the PTX interpreter: right ones, and the same with one mistake each."""

SUMS = r"""
typedef unsigned long long u64;
#define KERNEL extern "C" __global__ void

// --- trees in shared memory: a block adds 128 numbers
#define TREE(name, FILL, BEFORE, INSIDE) \
    KERNEL name(const float* x, float* z) { \
        __shared__ float s[128]; \
        const int t = threadIdx.x; \
        FILL; \
        BEFORE; \
        for (int half = 64; half > 0; half /= 2) { \
            if (t < half) s[t] += s[t + half]; \
            INSIDE; \
        } \
        if (t == 0) z[blockIdx.x] = s[0]; \
    }
#define ALL s[t] = x[blockIdx.x * 128 + t]
TREE(tree, ALL, __syncthreads(), __syncthreads())
TREE(tree_without_first_barrier, ALL, , __syncthreads())
TREE(tree_without_inner_barrier, ALL, __syncthreads(), )
TREE(tree_half_filled, if (t < 64) ALL, __syncthreads(), __syncthreads())
TREE(tree_divergent_barrier, ALL, if (t < 64) __syncthreads(), __syncthreads())
TREE(tree_early_exit, if (t >= 120) return; ALL, __syncthreads(), __syncthreads())
TREE(tree_overrun, s[t + (t == 127)] = x[blockIdx.x * 128 + t], __syncthreads(), __syncthreads())

KERNEL tree_two_barriers(const float* x, float* z) {
    __shared__ float s[128];
    s[threadIdx.x] = x[threadIdx.x];
    if (threadIdx.x & 1) { __syncthreads(); z[0] = s[0]; } else { __syncthreads(); z[1] = s[1]; }
}

// --- trees of shuffles: a warp adds 32 numbers
#define WARP(name, MASK, GUARD, MOVE) \
    KERNEL name(const float* x, float* z) { \
        float v = x[blockIdx.x * blockDim.x + threadIdx.x]; \
        for (int half = 16; half > 0; half /= 2) { GUARD v += MOVE(MASK, v, half); } \
        if (threadIdx.x % 32 == 0) z[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = v; \
    }
WARP(warp_down, 0xffffffffu, , __shfl_down_sync)
WARP(warp_xor, 0xffffffffu, , __shfl_xor_sync)
WARP(warp_half_mask, 0x0000ffffu, , __shfl_xor_sync)
WARP(warp_divergent, 0xffffffffu, if (threadIdx.x % 32 < half), __shfl_down_sync)
KERNEL warp_absent_source(const float* x, float* z) {
    float v = x[threadIdx.x];
    if (threadIdx.x < 16) z[threadIdx.x] = __shfl_sync(0xffffu, v, 20);
}
KERNEL warp_two_halves(const float* x, float* z) { // each half has a mask of its own
    float v = x[threadIdx.x];
    if (threadIdx.x % 32 < 16) v += __shfl_xor_sync(0xffffu, v, 1); else v += __shfl_xor_sync(0xffff0000u, v, 2);
    z[threadIdx.x] = v;
}
KERNEL warp_up(const int* x, int* z) { // inclusive scan
    int v = x[threadIdx.x];
    for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(0xffffffffu, v, step);
        if (threadIdx.x % 32 >= step) v += other;
    }
    z[threadIdx.x] = v;
}
#define NEIGHBOUR(name, BETWEEN) \
    KERNEL name(const float* x, float* z) { \
        __shared__ float s[64]; \
        s[threadIdx.x] = x[threadIdx.x]; \
        BETWEEN; \
        z[threadIdx.x] = s[threadIdx.x ^ 1]; \
    }
NEIGHBOUR(neighbour, __syncwarp())
NEIGHBOUR(neighbour_racy, )
#define BROADCAST(name, BETWEEN) \
    KERNEL name(const float* x, float* z) { \
        __shared__ float s[1]; \
        if (threadIdx.x == 0) s[0] = x[0]; \
        __syncthreads(); \
        const float v = s[0]; \
        BETWEEN; \
        if (threadIdx.x == blockDim.x - 1) s[0] = v + 1; \
        __syncthreads(); \
        z[threadIdx.x] = s[0] + v; \
    }
BROADCAST(broadcast, __syncthreads())
BROADCAST(broadcast_racy, )
BROADCAST(broadcast_to_warps, __syncwarp())
KERNEL swapped(const float* x, float* z) { // by the lanes of each warp, in place
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = x[t];
    __syncwarp();
    const float other = s[t ^ 1];
    __syncwarp();
    s[t] = 2 * s[t] + other;
    __syncwarp();
    z[t] = s[t ^ 1];
}
KERNEL votes(const int* x, unsigned* z) {
    const int v = x[threadIdx.x];
    unsigned r = __ballot_sync(0xffffffffu, v > 0) + __any_sync(0xffffffffu, v == 7) * 3;
    r += __all_sync(0xffffffffu, v < 9);
    r ^= __match_any_sync(0xffffffffu, v) + __popc(__activemask());
    z[threadIdx.x] = r + __syncthreads_count(v > 3) * 65536;
}

// --- the last block adds what all blocks left
__device__ unsigned arrived;
KERNEL last_block(const int* x, int* partial, int* z) {
    __shared__ bool is_last;
    int v = x[blockIdx.x * 32 + threadIdx.x];
    for (int half = 16; half > 0; half /= 2) v += __shfl_down_sync(0xffffffffu, v, half);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = v;
        __threadfence();
        is_last = atomicAdd(&arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;
    int sum = 0;
    for (int i = threadIdx.x; i < gridDim.x; i += 32) sum += ((volatile int*)partial)[i];
    for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffffu, sum, half);
    if (threadIdx.x == 0) { *z = sum; arrived = 0; }
}
KERNEL tickets(unsigned* counter, int* z) { z[atomicAdd(counter, 1u)] = blockIdx.x * blockDim.x + threadIdx.x; }
KERNEL histogram(const unsigned* x, unsigned* z, int n) {
    extern __shared__ unsigned bins[];
    for (int i = threadIdx.x; i < 16; i += blockDim.x) bins[i] = 0;
    __syncthreads();
    const int first = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = first; i < n; i += gridDim.x * blockDim.x) atomicAdd(bins + x[i] % 16, 1u);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(z + threadIdx.x, bins[threadIdx.x]);
}
#define LARGEST(name, BEFORE, AFTER) \
    KERNEL name(const int* x, int* z) { /* by compare-and-swap, which starts with a plain read */ \
        __shared__ int most; \
        if (threadIdx.x == 0) most = -1000; \
        __syncthreads(); \
        BEFORE; \
        int old = most, seen; \
        do { \
            seen = old; \
            old = atomicCAS(&most, seen, seen > x[threadIdx.x] ? seen : x[threadIdx.x]); \
        } while (old != seen); \
        AFTER; \
        z[threadIdx.x] = most; \
    }
LARGEST(largest, , __syncthreads())
LARGEST(largest_too_early, , )
LARGEST(largest_before, if (threadIdx.x >= 64) { z[threadIdx.x] = most; return; }, __syncwarp())
KERNEL counted_alone(int* z) { // each thread a counter of its own
    __shared__ int s[64];
    s[threadIdx.x] = 3;
    atomicAdd(s + threadIdx.x, 4);
    z[threadIdx.x] = s[threadIdx.x];
}
KERNEL histogram_racy(const unsigned* x, unsigned* z, int n) {
    extern __shared__ unsigned bins[];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    bins[x[threadIdx.x] % 16] += 1;
    __syncthreads();
    if (threadIdx.x < 16) z[threadIdx.x] = bins[threadIdx.x];
}
"""

PLACES = r"""
#define KERNEL extern "C" __global__ void
KERNEL copy(const float* x, float* z, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = x[i];
}
KERNEL copy_past_the_end(const float* x, float* z, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) z[i] = x[i];
}
KERNEL copy_before_the_start(const float* x, float* z, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i - 1] = x[i];
}
struct alignas(16) Four { float v[4]; };
KERNEL copy_four(const float* x, float* z, int n) {
    const int i = 4 * threadIdx.x;
    if (i + 4 <= n) *(Four*)(z + i) = *(const Four*)(x + i);
}
KERNEL copy_four_misaligned(const float* x, float* z, int n) {
    const int i = 4 * threadIdx.x + 1;
    if (i + 4 <= n) *(Four*)(z + i) = *(const Four*)(x + i);
}
KERNEL null(float* z) { *(float*)(z == nullptr ? 0 : 64) = 1.0f; }
KERNEL forever(volatile int* z) { while (*z == 0) {} }
KERNEL divided(const int* x, const int* y, int* z) { z[threadIdx.x] = x[threadIdx.x] / y[threadIdx.x]; }

// --- calls, local memory, jumps through tables, structs by value
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
KERNEL recursion(const int* x, int* z) { z[threadIdx.x] = fibonacci(x[threadIdx.x]); }
struct Pair { double a; int b; };
__device__ __noinline__ Pair moved(Pair p, int* by) { p.a += *by; p.b -= *by; *by = 9; return p; }
KERNEL structs(Pair given, double* z, int* w) {
    int by = threadIdx.x;
    const Pair p = moved(given, &by);
    z[threadIdx.x] = p.a + by;
    w[threadIdx.x] = p.b;
}
KERNEL local_array(const int* x, int* z) {
    int row[16];
    for (int k = 0; k < 16; ++k) row[k] = k * k + threadIdx.x;
    int* other = x[0] > 100 ? z : row;
    z[threadIdx.x] = row[x[threadIdx.x] & 15] + other[1];
}
KERNEL chosen(const int* x, int* z) {
    const int v = x[threadIdx.x];
    switch (v) {
        case 0: z[threadIdx.x] = 5; break;
        case 1: z[threadIdx.x] = z[0] * 2; break;
        case 2:
            asm volatile("{ .reg .b32 t; add.s32 t, %1, 70; mov.b32 %0, t; }" : "=r"(z[threadIdx.x]) : "r"(v));
            break;
        case 3: z[threadIdx.x] = v * v * v; break;
        case 4: z[threadIdx.x] = __popc(v); break;
        case 5: z[threadIdx.x] = __clz(v); break;
        case 6: z[threadIdx.x] = __brev(v); break;
        default: z[threadIdx.x] = -1;
    }
}
__constant__ int table[4] = {3, 1, 4, 1};
__device__ int counter = 5;
KERNEL variables(int* z) { z[threadIdx.x] = table[threadIdx.x & 3] + counter; if (threadIdx.x == 0) counter = 6; }
KERNEL products(const unsigned long long* x, const unsigned long long* y, unsigned long long* z) { // x * y + (y, x)
    const unsigned long long a = x[threadIdx.x], b = y[threadIdx.x];
    unsigned long long low, high;
    asm("{ .reg .b64 l; .reg .b64 h; mul.lo.u64 l, %2, %3; mul.hi.u64 h, %2, %3;"
        " add.cc.u64 %0, l, %2; addc.u64 %1, h, %3; }" : "=l"(low), "=l"(high) : "l"(a), "l"(b));
    z[2 * threadIdx.x] = low;
    z[2 * threadIdx.x + 1] = high;
}
KERNEL coordinates(int* z) {
    const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const int size = blockDim.x * blockDim.y * blockDim.z;
    z[block * size + thread] = block * 1000 + thread;
}
"""
