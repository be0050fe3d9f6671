// The part of Metal that only makes sense in a threadgroup. Included before the names of address spaces become keywords.
#pragma once
#include "fibers.hpp"

typedef unsigned int host_pair __attribute__((ext_vector_type(2)));
typedef unsigned int host_triple __attribute__((ext_vector_type(3)));

// What an attribute such as [[thread_position_in_grid]] gives, in the type of the parameter.
struct host_extent {
    fiber_dim at;
    operator unsigned int() const { return at.x; }
    operator unsigned short() const { return (unsigned short)at.x; }
    operator host_pair() const { return host_pair{at.x, at.y}; }
    operator host_triple() const { return host_triple{at.x, at.y, at.z}; }
};
inline host_extent host_thread_position_in_threadgroup() { return {fiber_here.thread}; }
inline host_extent host_threadgroup_position_in_grid() { return {fiber_here.block}; }
inline host_extent host_threads_per_threadgroup() { return {fiber_here.threads}; }
inline host_extent host_threadgroups_per_grid() { return {fiber_here.blocks}; }
inline host_extent host_threads_per_grid() {
    const fiber_dim &a = fiber_here.blocks, &b = fiber_here.threads;
    return {{a.x * b.x, a.y * b.y, a.z * b.z}};
}
inline host_extent host_thread_position_in_grid() {
    const fiber_dim &a = fiber_here.block, &b = fiber_here.threads, &c = fiber_here.thread;
    return {{a.x * b.x + c.x, a.y * b.y + c.y, a.z * b.z + c.z}};
}
inline host_extent host_thread_index_in_threadgroup() { return {{fiber_here.linear, 0, 0}}; }
inline host_extent host_thread_index_in_simdgroup() { return {{fiber_here.lane, 0, 0}}; }
inline host_extent host_simdgroup_index_in_threadgroup() { return {{fiber_here.warp, 0, 0}}; }
inline host_extent host_simdgroups_per_threadgroup() { return {{fiber_here.warps, 0, 0}}; }
inline host_extent host_threads_per_simdgroup() { return {{32, 0, 0}}; }

namespace metal {
enum class mem_flags { mem_none = 0, mem_threadgroup = FIBER_SHARED, mem_device = FIBER_DEVICE };
constexpr mem_flags operator|(mem_flags a, mem_flags b) { return (mem_flags)((int)a | (int)b); }

inline void threadgroup_barrier(mem_flags flags, unsigned line = __builtin_LINE()) {
    fiber_barrier((unsigned)flags, FIBER_NONE, 0, "threadgroup_barrier", line);
}
inline void simdgroup_barrier(mem_flags flags, unsigned line = __builtin_LINE()) {
    fiber_warp(FIBER_SYNC, 0, 0, 0, 32, (unsigned)flags, "simdgroup_barrier", line);
}

// Only the types that Metal has: 64 bits go as two words, bool not at all. Lanes that do not come are an error here, though
// Metal lets the active ones go on: which those are is not for a program to count on.
#define HOST_EXCHANGE(T, name, op)                                                                       \
    inline T name(T x, unsigned short argument, unsigned line = __builtin_LINE()) {                       \
        unsigned long word = 0;                                                                           \
        __builtin_memcpy(&word, &x, sizeof x);                                                            \
        word = fiber_warp(op, 0, word, argument, 32, 0, #name, line);                                     \
        __builtin_memcpy(&x, &word, sizeof x);                                                            \
        return x;                                                                                         \
    }
#define HOST_EXCHANGES(T)                                                                                 \
    HOST_EXCHANGE(T, simd_shuffle, FIBER_INDEX) HOST_EXCHANGE(T, simd_broadcast, FIBER_INDEX)             \
    HOST_EXCHANGE(T, simd_shuffle_up, FIBER_UP) HOST_EXCHANGE(T, simd_shuffle_down, FIBER_DOWN)           \
    HOST_EXCHANGE(T, simd_shuffle_xor, FIBER_XOR)
HOST_EXCHANGES(char)
HOST_EXCHANGES(unsigned char)
HOST_EXCHANGES(short)
HOST_EXCHANGES(unsigned short)
HOST_EXCHANGES(int)
HOST_EXCHANGES(unsigned int)
HOST_EXCHANGES(host_pair)
HOST_EXCHANGES(_Float16)
HOST_EXCHANGES(float)
#undef HOST_EXCHANGES
#undef HOST_EXCHANGE

inline bool simd_any(bool x, unsigned line = __builtin_LINE()) {
    return fiber_warp(FIBER_ANY, 0, x, 0, 32, 0, "simd_any", line);
}
inline bool simd_all(bool x, unsigned line = __builtin_LINE()) {
    return fiber_warp(FIBER_ALL, 0, x, 0, 32, 0, "simd_all", line);
}
struct simd_vote {
    typedef unsigned long vote_t;
    vote_t bits;
    explicit operator vote_t() const { return bits; }
};
inline simd_vote simd_ballot(bool x, unsigned line = __builtin_LINE()) {
    return {fiber_warp(FIBER_BALLOT, 0, x, 0, 32, 0, "simd_ballot", line)};
}
#define HOST_UNORDERED(name) \
    template <class T> T name(T) __attribute__((unavailable("the order in which it combines lanes is not defined")));
HOST_UNORDERED(simd_sum)
HOST_UNORDERED(simd_product)
HOST_UNORDERED(simd_prefix_inclusive_sum)
HOST_UNORDERED(simd_prefix_exclusive_sum)
HOST_UNORDERED(simd_prefix_inclusive_product)
HOST_UNORDERED(simd_prefix_exclusive_product)
HOST_UNORDERED(quad_sum)
#undef HOST_UNORDERED
}  // namespace metal
