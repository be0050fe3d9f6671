// Lets the Metal text that fusec emits be compiled by clang as C++17 and run on a CPU, one thread after the other.
// Address spaces are real ones, so a pointer without its space does not compile; no standard header is included, so
// neither does a C function that Metal lacks, nor `double`.
#pragma once
#pragma clang system_header
#define device __attribute__((address_space(1)))
#define constant __attribute__((address_space(2)))
#define threadgroup __attribute__((address_space(3)))
#define thread
#define kernel static

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef _Float16 half;
typedef uint uint2 __attribute__((ext_vector_type(2)));

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
    complex64(const device complex64& other) : re(other.re), im(other.im) {}
    complex64(const constant complex64& other) : re(other.re), im(other.im) {}
};
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
template <class T> inline T atomic_load_explicit(device atomic<T>* at, memory_order) { return at->value; }
#define HOST_UPDATE(name, T, next) \
    inline T atomic_##name##_explicit(device atomic<T>* at, T x, memory_order) { T old = at->value; at->value = (next); return old; }
#define HOST_INTEGER(T)                                                                              \
    HOST_UPDATE(fetch_add, T, (T)((uint)old + (uint)x)) HOST_UPDATE(fetch_sub, T, (T)((uint)old - (uint)x)) \
    HOST_UPDATE(fetch_and, T, old & x) HOST_UPDATE(fetch_or, T, old | x) HOST_UPDATE(fetch_xor, T, old ^ x) \
    HOST_UPDATE(fetch_min, T, x < old ? x : old) HOST_UPDATE(fetch_max, T, x > old ? x : old) HOST_UPDATE(exchange, T, x)
HOST_INTEGER(int)
HOST_INTEGER(uint)
HOST_UPDATE(fetch_add, float, old + x)
HOST_UPDATE(fetch_sub, float, old - x)
HOST_UPDATE(exchange, float, x)
#undef HOST_UPDATE
#undef HOST_INTEGER
inline void atomic_min_explicit(device atomic_ulong* at, ulong x, memory_order) { if (x < at->value) at->value = x; }
inline void atomic_max_explicit(device atomic_ulong* at, ulong x, memory_order) { if (x > at->value) at->value = x; }
template <class T>
inline bool atomic_compare_exchange_weak_explicit(device atomic<T>* at, T* expected, T x, memory_order, memory_order) {
    static bool spurious = false;
    spurious = !spurious;
    if (spurious || at->value != *expected) {
        *expected = at->value;
        return false;
    }
    at->value = x;
    return true;
}
}  // namespace metal

#pragma clang poison double goto asm
