// steps_from_zero: 3 launches in this order
//   x: int32 (10,)
//   1. steps_from_zero_1 over 10 threads: size = 10, a0 = x, stride 0 of a0 = 8, z0 = t1
//   2. steps_from_zero_2 over 1 thread: size = 1, z0 = t1
//   3. steps_from_zero_3 over 9 threads: size = 9, a0 = t1 + 4 bytes, a1 = t1, z0 = r1
//   t1: int32 (10,), 40 bytes, written by launches 1, 2, read by launch 3
//   r1: int32 (9,), 36 bytes, written by launch 3, returned

// steps_from_zero_1(int32 a0) -> (int32 z0)
// layout 1:a0=s,z0=1;;pa16ga02
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

struct steps_from_zero_arguments {
    long size;
    long a0_stride0;
};

kernel void steps_from_zero_1(
    device const int* a0_data [[buffer(0)]],
    device int* z0_data [[buffer(1)]],
    constant steps_from_zero_arguments& arguments [[buffer(2)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const long a0_stride0 = arguments.a0_stride0;
    const uint i = position;
    if (i >= size) return;
    const int a0_in = *fusec_moved(a0_data, i * a0_stride0);
    z0_data[i] = (int)((uint)a0_in * 2);
}

// steps_from_zero_2() -> (int32 z0)
// layout 1:z0=1;;pa16
// needs fewer than 2^31 elements, and bytes from end to end of an array

struct steps_from_zero_arguments_steps_from_zero_2 {
    long size;
};

kernel void steps_from_zero_2(
    device int* z0_data [[buffer(0)]],
    constant steps_from_zero_arguments_steps_from_zero_2& arguments [[buffer(1)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const uint i = position;
    if (i >= size) return;
    z0_data[i] = 0;
}

// steps_from_zero_3(int32 a0, int32 a1) -> (int32 z0)
// layout 1:a0=1,a1=1,z0=1;;pa4
// needs fewer than 2^31 elements, and bytes from end to end of an array

struct steps_from_zero_arguments_steps_from_zero_3 {
    long size;
};

kernel void steps_from_zero_3(
    device const int* a0_data [[buffer(0)]],
    device const int* a1_data [[buffer(1)]],
    device int* z0_data [[buffer(2)]],
    constant steps_from_zero_arguments_steps_from_zero_3& arguments [[buffer(3)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const uint i = position;
    if (i >= size) return;
    const int a0_in = a0_data[i];
    const int a1_in = a1_data[i];
    z0_data[i] = (int)((uint)a0_in - a1_in);
}
