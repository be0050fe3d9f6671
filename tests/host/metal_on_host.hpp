// Lets the Metal text that fusec emits be compiled by clang as C++17 and run on a CPU: one thread after the other, or,
// with HOST_FIBERS defined, as programs of a threadgroup (fibers_metal.hpp).
// Address spaces are real ones, so a pointer without its space does not compile; no standard header is included, so
// neither does a C function that Metal lacks, nor `double`. With HOST_FLAT there is one address space, so that every
// access can be watched, which clang does in the first only; such text was checked before.
#pragma once
#pragma clang system_header
#ifdef HOST_FIBERS
#include "fibers_metal.hpp"
#define HOST_ATOMIC __attribute__((noinline, no_sanitize("thread"), unused)) static
#define HOST_TOUCH(at) fiber_atomic((const volatile void*)at, sizeof *at, 0, __builtin_return_address(0))
#define HOST_SET(at) fiber_atomic((const volatile void*)at, sizeof *at, 1, __builtin_return_address(0))
#else
#define HOST_ATOMIC inline
#define HOST_TOUCH(at)
#define HOST_SET(at)
#endif
#ifdef HOST_FLAT
#define device
#define constant const
#define threadgroup
#else
#define device __attribute__((address_space(1)))
#define constant const __attribute__((address_space(2)))
#define threadgroup __attribute__((address_space(3)))
#endif
#define thread
#define kernel static

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef _Float16 half;
typedef uint uint2 __attribute__((ext_vector_type(2)));
typedef uint uint3 __attribute__((ext_vector_type(3)));

template <class To, class From> inline To as_type(From from) {
    static_assert(sizeof(To) == sizeof(From), "as_type keeps the width");
    return __builtin_bit_cast(To, from);
}

// Metal copies structs between address spaces, which clang does for scalars only: complex numbers get a constructor from
// device memory, and the executor spells stores of them as calls.
struct complex64 {
    float re, im;
    complex64() = default;
    complex64(float real, float imag) : re(real), im(imag) {}
    complex64(const complex64&) = default;
    complex64& operator=(const complex64&) = default;
#ifndef HOST_FLAT
    complex64(const device complex64& other) : re(other.re), im(other.im) {}
    complex64(constant complex64& other) : re(other.re), im(other.im) {}
    complex64(const threadgroup complex64& other) : re(other.re), im(other.im) {}
#endif
};
#if defined(HOST_FIBERS) && !defined(HOST_FLAT)  // a text that is only checked stores structs so
template <class T> void host_assign(device T&, const T&);
template <class T> void host_assign(threadgroup T&, const T&);
template <class T> void host_assign(T&, const T&);
#endif
inline void host_store(device complex64* to, complex64 value) {
    to->re = value.re;
    to->im = value.im;
}

namespace metal {
inline float floor(float x) { return __builtin_floorf(x); }
inline float ceil(float x) { return __builtin_ceilf(x); }
inline float trunc(float x) { return __builtin_truncf(x); }
inline float rint(float x) { return __builtin_rintf(x); }
inline float fabs(float x) { return __builtin_fabsf(x); }
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
namespace precise {
inline float sqrt(float x) { return __builtin_sqrtf(x); }
}

#define HOST_WHOLE(T, U, W)                                                                     \
    inline T popcount(T x) { return (T)__builtin_popcountll((U)x); }                            \
    inline T clz(T x) { return x ? (T)(__builtin_clzll((U)x) - (64 - 8 * (int)sizeof(T))) : (T)(8 * sizeof(T)); } \
    inline T mulhi(T a, T b) { return (T)(((W)a * (W)b) >> (8 * sizeof(T))); }
HOST_WHOLE(char, uchar, int)
HOST_WHOLE(uchar, uchar, uint)
HOST_WHOLE(short, ushort, int)
HOST_WHOLE(ushort, ushort, uint)
HOST_WHOLE(int, uint, long)
HOST_WHOLE(uint, uint, ulong)
HOST_WHOLE(long, ulong, __int128)
HOST_WHOLE(ulong, ulong, unsigned __int128)
#undef HOST_WHOLE

// Atomics: only what the Metal specification lists. A weak exchange fails every other time, as it may.
enum memory_order { memory_order_relaxed };
template <class T> struct atomic { T value; };
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<float> atomic_float;
typedef atomic<ulong> atomic_ulong;
static_assert(sizeof(long) == 8, "long has 64 bits in Metal");
#define HOST_UPDATE_IN(space, name, T, next)                                              \
    HOST_ATOMIC T atomic_##name##_explicit(space atomic<T>* at, T x, memory_order) {      \
        HOST_TOUCH(at);                                                                   \
        T old = at->value;                                                                \
        at->value = (next);                                                               \
        return old;                                                                       \
    }
#define HOST_MOVE_IN(space, T)                                                            \
    HOST_ATOMIC T atomic_load_explicit(const space atomic<T>* at, memory_order) {         \
        HOST_TOUCH(at);                                                                   \
        return at->value;                                                                 \
    }                                                                                     \
    HOST_ATOMIC void atomic_store_explicit(space atomic<T>* at, T x, memory_order) {      \
        HOST_SET(at);                                                                     \
        at->value = x;                                                                    \
    }                                                                                     \
    HOST_UPDATE_IN(space, exchange, T, x)
#define HOST_INTEGER_IN(space, T)                                                         \
    HOST_MOVE_IN(space, T)                                                                \
    HOST_UPDATE_IN(space, fetch_add, T, (T)((uint)old + (uint)x))                         \
    HOST_UPDATE_IN(space, fetch_sub, T, (T)((uint)old - (uint)x))                         \
    HOST_UPDATE_IN(space, fetch_and, T, old & x) HOST_UPDATE_IN(space, fetch_or, T, old | x) \
    HOST_UPDATE_IN(space, fetch_xor, T, old ^ x) HOST_UPDATE_IN(space, fetch_min, T, x < old ? x : old) \
    HOST_UPDATE_IN(space, fetch_max, T, x > old ? x : old)
HOST_INTEGER_IN(device, int)
HOST_INTEGER_IN(device, uint)
HOST_MOVE_IN(device, float)
HOST_UPDATE_IN(device, fetch_add, float, old + x)
HOST_UPDATE_IN(device, fetch_sub, float, old - x)
#ifndef HOST_FLAT
HOST_INTEGER_IN(threadgroup, int)
HOST_INTEGER_IN(threadgroup, uint)
#endif
#undef HOST_UPDATE_IN
#undef HOST_MOVE_IN
#undef HOST_INTEGER_IN
HOST_ATOMIC void atomic_min_explicit(device atomic_ulong* at, ulong x, memory_order) {
    HOST_TOUCH(at);
    if (x < at->value) at->value = x;
}
HOST_ATOMIC void atomic_max_explicit(device atomic_ulong* at, ulong x, memory_order) {
    HOST_TOUCH(at);
    if (x > at->value) at->value = x;
}
#define HOST_SWAP_IN(space)                                                               \
    template <class T>                                                                    \
    HOST_ATOMIC bool atomic_compare_exchange_weak_explicit(                               \
        space atomic<T>* at, T* expected, T x, memory_order, memory_order) {              \
        HOST_TOUCH(at);                                                                   \
        static bool spurious = false;                                                     \
        spurious = !spurious;                                                             \
        if (spurious || at->value != *expected) {                                         \
            *expected = at->value;                                                        \
            return false;                                                                 \
        }                                                                                 \
        at->value = x;                                                                    \
        return true;                                                                      \
    }
HOST_SWAP_IN(device)
#ifndef HOST_FLAT
HOST_SWAP_IN(threadgroup)
#endif
#undef HOST_SWAP_IN
}  // namespace metal

#pragma clang poison double goto asm
