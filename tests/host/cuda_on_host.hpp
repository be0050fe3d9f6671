// Lets the CUDA C that fusec emits be compiled as C++17 and run on a CPU: one thread after the other, or, with HOST_FIBERS
// defined, as block programs with barriers (fibers_cuda.hpp). What the hardware defines and C++ does not (saturating
// conversions) is defined here as the PTX manual has it; everything else a sanitizer may complain about.
#pragma once
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#define __global__
#define __device__
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __constant__ static
#define __align__(n) alignas(n)
#define __launch_bounds__(...)
#define __cluster_dims__(...)

namespace host {
struct dim { unsigned x, y, z; };
template <class To, class From> inline To bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "bit casts keep the width");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
// cvt.rzi of the PTX manual: saturates; nan gives 0 only from f32 to 32 bits, else the pattern 100...0.
template <class Int, class Float> inline Int whole(Float x) {
    if (x != x) return sizeof(Float) == 4 && sizeof(Int) == 4 ? 0 : (Int)(1ull << (8 * sizeof(Int) - 1));
    const Float low = (Float)std::numeric_limits<Int>::min(), high = std::ldexp((Float)1, std::numeric_limits<Int>::digits);
    if (x <= low) return std::numeric_limits<Int>::min();
    return x >= high ? std::numeric_limits<Int>::max() : (Int)x;
}
inline unsigned short narrow(float x) { return bits<unsigned short>((_Float16)x); }
inline unsigned short narrow(double x) { return bits<unsigned short>((_Float16)x); }
inline float widen(unsigned short x) { return (float)bits<_Float16>(x); }

template <class... Params, std::size_t... At>
void call(void (*kernel)(Params...), void** arguments, std::index_sequence<At...>) {
    kernel(*(std::remove_const_t<std::remove_reference_t<Params>>*)arguments[At]...);
}
}  // namespace host

#ifdef HOST_FIBERS
#include "fibers_cuda.hpp"

namespace host {
template <class... Params> void call(void (*kernel)(Params...), void** arguments) {
    call(kernel, arguments, std::index_sequence_for<Params...>());
}
}  // namespace host
// Not inlined, so that no access of an update is watched but the update itself.
#define HOST_ATOMIC __attribute__((noinline, no_sanitize("thread"), unused)) static
#define HOST_TOUCH(at) fiber_atomic(at, sizeof *at, 0, __builtin_return_address(0))
#else
#define HOST_ATOMIC static inline
#define HOST_TOUCH(at)
static thread_local host::dim threadIdx, blockIdx, blockDim, gridDim;  // launches of several threads at a time

namespace host {
// order: 0 first to last, 1 last to first, 2 every thread by a step that visits all in disorder.
template <class... Params>
void launch(void (*kernel)(Params...), unsigned blocks, unsigned threads, int order, void** arguments) {
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    const unsigned total = blocks * threads;
    for (unsigned n = 0; n < total; ++n) {
        const unsigned at = order == 0 ? n : order == 1 ? total - 1 - n : (unsigned)(n * 7919ull % total);
        blockIdx = {at / threads, 0, 0};
        threadIdx = {at % threads, 0, 0};
        call(kernel, arguments, std::index_sequence_for<Params...>());
    }
}
}  // namespace host
#endif

static inline int __float_as_int(float x) { return host::bits<int>(x); }
static inline unsigned __float_as_uint(float x) { return host::bits<unsigned>(x); }
static inline float __int_as_float(int x) { return host::bits<float>(x); }
static inline float __uint_as_float(unsigned x) { return host::bits<float>(x); }
static inline long long __double_as_longlong(double x) { return host::bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return host::bits<double>(x); }
static inline int __float2int_rz(float x) { return host::whole<int>(x); }
static inline unsigned __float2uint_rz(float x) { return host::whole<unsigned>(x); }
static inline long long __float2ll_rz(float x) { return host::whole<long long>(x); }
static inline unsigned long long __float2ull_rz(float x) { return host::whole<unsigned long long>(x); }
static inline int __double2int_rz(double x) { return host::whole<int>(x); }
static inline unsigned __double2uint_rz(double x) { return host::whole<unsigned>(x); }
static inline long long __double2ll_rz(double x) { return host::whole<long long>(x); }
static inline unsigned long long __double2ull_rz(double x) { return host::whole<unsigned long long>(x); }
static inline float __double2float_rz(double x) {
    const float near = (float)x;
    return std::fabs((double)near) > std::fabs(x) ? std::nextafter(near, 0.0f) : near;
}
static inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
static inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
static inline double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    return (unsigned)((((unsigned long long)high << 32) | low) >> (by & 31));
}
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned choice) {
    const unsigned long long bytes = (unsigned long long)b << 32 | a;
    unsigned found = 0;
    for (int k = 0; k < 4; ++k) found |= (unsigned)(bytes >> (choice >> 4 * k & 7) * 8 & 0xff) << 8 * k;
    return found;
}
static inline int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
static inline long long __mul64hi(long long a, long long b) { return (long long)(((__int128)a * b) >> 64); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}

// Atomics exist only for the types the hardware has; threads run one by one, so plain updates are indivisible.
#define HOST_UPDATE(name, T, value) \
    HOST_ATOMIC T name(T* at, T x) { HOST_TOUCH(at); const T old = *at; *at = (value); return old; }
#define HOST_WHOLE(T, U) \
    HOST_UPDATE(atomicAdd, T, (T)((U)old + (U)x)) HOST_UPDATE(atomicAnd, T, old & x) HOST_UPDATE(atomicOr, T, old | x) \
    HOST_UPDATE(atomicXor, T, old ^ x) HOST_UPDATE(atomicExch, T, x) HOST_UPDATE(atomicMin, T, x < old ? x : old) \
    HOST_UPDATE(atomicMax, T, x > old ? x : old) \
    HOST_ATOMIC T atomicCAS(T* at, T expected, T x) { \
        HOST_TOUCH(at); const T old = *at; if (old == expected) *at = x; return old; \
    }
HOST_WHOLE(int, unsigned)
HOST_WHOLE(unsigned, unsigned)
HOST_WHOLE(unsigned long long, unsigned long long)
HOST_UPDATE(atomicSub, int, (int)((unsigned)old - (unsigned)x))
HOST_UPDATE(atomicSub, unsigned, old - x)
HOST_UPDATE(atomicMin, long long, x < old ? x : old)
HOST_UPDATE(atomicMax, long long, x > old ? x : old)
HOST_UPDATE(atomicAdd, float, old + x)
HOST_UPDATE(atomicAdd, double, old + x)
HOST_UPDATE(atomicExch, float, x)
HOST_UPDATE(atomicInc, unsigned, old >= x ? 0 : old + 1)
HOST_UPDATE(atomicDec, unsigned, !old || old > x ? x : old - 1)
#undef HOST_UPDATE
#undef HOST_WHOLE
