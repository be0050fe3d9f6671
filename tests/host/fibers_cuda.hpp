// The part of CUDA C that only makes sense in a block: shared memory, barriers, exchanges of a warp, fences.
#pragma once
#include "fibers.hpp"

#define threadIdx (fiber_here.thread)
#define blockIdx (fiber_here.block)
#define blockDim (fiber_here.threads)
#define gridDim (fiber_here.blocks)
#define warpSize 32

#define HOST_BOTH (FIBER_SHARED | FIBER_DEVICE)
static inline void __syncthreads(unsigned line = __builtin_LINE()) {
    fiber_barrier(HOST_BOTH, FIBER_NONE, 0, "__syncthreads", line);
}
static inline int __syncthreads_or(int x, unsigned line = __builtin_LINE()) {
    return (int)fiber_barrier(HOST_BOTH, FIBER_OR, x != 0, "__syncthreads_or", line);
}
static inline int __syncthreads_and(int x, unsigned line = __builtin_LINE()) {
    return (int)fiber_barrier(HOST_BOTH, FIBER_AND, x != 0, "__syncthreads_and", line);
}
static inline int __syncthreads_count(int x, unsigned line = __builtin_LINE()) {
    return (int)fiber_barrier(HOST_BOTH, FIBER_COUNT, x != 0, "__syncthreads_count", line);
}
// A mask of 0 names no lane, which is an error here too: the runtime takes 0 for "all", so it is passed on as another lane.
static inline unsigned host_mask(unsigned mask) { return mask ? mask : 1u << (fiber_here.lane ^ 1); }
static inline void __syncwarp(unsigned mask = ~0u, unsigned line = __builtin_LINE()) {
    fiber_warp(FIBER_SYNC, host_mask(mask), 0, 0, 32, HOST_BOTH, "__syncwarp", line);
}
static inline unsigned __ballot_sync(unsigned mask, int x, unsigned line = __builtin_LINE()) {
    return (unsigned)fiber_warp(FIBER_BALLOT, host_mask(mask), x != 0, 0, 32, 0, "__ballot_sync", line);
}
static inline int __any_sync(unsigned mask, int x, unsigned line = __builtin_LINE()) {
    return (int)fiber_warp(FIBER_ANY, host_mask(mask), x != 0, 0, 32, 0, "__any_sync", line);
}
static inline int __all_sync(unsigned mask, int x, unsigned line = __builtin_LINE()) {
    return (int)fiber_warp(FIBER_ALL, host_mask(mask), x != 0, 0, 32, 0, "__all_sync", line);
}
// No program may count on lanes running together, so each is alone here.
static inline unsigned __activemask() { return 1u << fiber_here.lane; }

// The barrier of a cluster, which its blocks have for all their barriers.
static inline void __cluster_barrier_arrive() {}
static inline void __cluster_barrier_wait(unsigned line = __builtin_LINE()) {
    fiber_barrier(HOST_BOTH, FIBER_NONE, 0, "__cluster_barrier_wait", line);
}
static inline unsigned __clusterSizeInBlocks() { return fiber_cluster(); }
static inline void* __cluster_map_shared_rank(const void* at, unsigned block) { return fiber_other(at, block); }

// Only the types that CUDA has: there, bool and char are converted to int.
#define HOST_EXCHANGE(T, name, op, A)                                                                              \
    static inline T name(unsigned mask, T x, A argument, int width = 32, unsigned line = __builtin_LINE()) {       \
        unsigned long word = 0;                                                                                    \
        __builtin_memcpy(&word, &x, sizeof x);                                                                     \
        word = fiber_warp(op, host_mask(mask), word, (unsigned)argument, (unsigned)width, 0, #name, line);         \
        __builtin_memcpy(&x, &word, sizeof x);                                                                     \
        return x;                                                                                                  \
    }
#define HOST_EXCHANGES(T)                                                                                       \
    HOST_EXCHANGE(T, __shfl_sync, FIBER_INDEX, int) HOST_EXCHANGE(T, __shfl_up_sync, FIBER_UP, unsigned)         \
    HOST_EXCHANGE(T, __shfl_down_sync, FIBER_DOWN, unsigned) HOST_EXCHANGE(T, __shfl_xor_sync, FIBER_XOR, int)   \
    static inline unsigned __match_any_sync(unsigned mask, T x, unsigned line = __builtin_LINE()) {             \
        unsigned long word = 0;                                                                                 \
        __builtin_memcpy(&word, &x, sizeof x);                                                                  \
        return (unsigned)fiber_warp(FIBER_MATCH, host_mask(mask), word, 0, 32, 0, "__match_any_sync", line);     \
    }
HOST_EXCHANGES(int)
HOST_EXCHANGES(unsigned)
HOST_EXCHANGES(long)
HOST_EXCHANGES(unsigned long)
HOST_EXCHANGES(long long)
HOST_EXCHANGES(unsigned long long)
HOST_EXCHANGES(float)
HOST_EXCHANGES(double)
#undef HOST_EXCHANGES
#undef HOST_EXCHANGE
#undef HOST_BOTH

static inline void __threadfence() { fiber_fence(); }
static inline void __threadfence_system() { fiber_fence(); }
static inline void __threadfence_block() {}  // what relies on it alone is a race here
template <class T> static inline T __ldg(const T* at) { return *at; }
