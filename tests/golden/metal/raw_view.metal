// gather(raw int32 A) -> (raw int32 B, raw int64 C)
// layout 1:;A=3,B=1c,C=1;a16
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: by the pragmas from Metal 3.2 on; before, turn fast math (fastMathEnabled) and contraction off
#include <metal_stdlib>
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
using namespace metal;

// the address some bytes further on
template <class T> static device T* fusec_moved(device T* base, long nbytes) {
    return (device T*)((device char*)base + nbytes);
}

// a / b; 0 if b is 0
static long fusec_quotient_int64(long a, long b) {
    if (b == 0) return 0;
    if (b == -1) return (long)(0 - (ulong)a);
    return a / b;
}

// a % b, with the sign of a; 0 if b is 0
static long fusec_modulo_int64(long a, long b) {
    if (b == 0 || b == -1) return 0;
    return (long)(a - a / b * b);
}

// byte offset of the element at a position in C order
static long fusec_strided_3(long index, long n1, long n2, long s0, long s1, long s2) {
    return index / n2 / n1 * s0 + index / n2 % n1 * s1 + index % n2 * s2;
}

static long fusec_pick_3(long axis, long a0, long a1, long a2) {
    return axis == 0 ? a0 : axis == 1 ? a1 : a2;
}

struct gather_arguments {
    long size;
    long A_size;
    long A_shape1;
    long A_shape2;
    long A_stride0;
    long A_stride1;
    long A_stride2;
    long C_stride0;
};

kernel void gather(
    device const int* A [[buffer(0)]],
    device int* B [[buffer(1)]],
    device long* C [[buffer(2)]],
    constant gather_arguments& arguments [[buffer(3)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const long A_size = arguments.A_size;
    const long A_shape1 = arguments.A_shape1;
    const long A_shape2 = arguments.A_shape2;
    const long A_stride0 = arguments.A_stride0;
    const long A_stride1 = arguments.A_stride1;
    const long A_stride2 = arguments.A_stride2;
    const long C_stride0 = arguments.C_stride0;
    const long i = position;
    if (i >= size) return;
    const long t = fusec_quotient_int64(i, A_shape2);
    const int value = *fusec_moved(A, fusec_quotient_int64(t, A_shape1) * A_stride0 + fusec_modulo_int64(t, A_shape1) * A_stride1 + fusec_modulo_int64(i, A_shape2) * A_stride2);
    const int mirror = *fusec_moved(A, fusec_strided_3(A_size - 1 - i, A_shape1, A_shape2, A_stride0, A_stride1, A_stride2));
    const long facts = fusec_pick_3(i % 3, A_stride0, A_stride1, A_stride2) + 3l;
    B[i] = (int)((uint)value - mirror);
    *fusec_moved(C, i * C_stride0) = facts;
}
