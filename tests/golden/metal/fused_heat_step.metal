// heat_step: 2 launches in this order
//   u: float32 (100,), written by launch 2
//   rate: 0.25, a number
//   1. heat_step_1 over 98 threads: size = 98, a0 = u + 4 bytes, s0 = 0.25, a1 = u + 8 bytes, a2 = u, z0 = t1
//   2. heat_step_2 over 98 threads: size = 98, a0 = t1, z0 = u + 4 bytes
//   t1: float32 (98,), 392 bytes, written by launch 1, read by launch 2

// heat_step_1(float32 a0, float32 s0, float32 a1, float32 a2) -> (float32 z0)
// layout 1:a0=1,a1=1,a2=1,z0=1;;pa4u
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: by the pragmas from Metal 3.2 on; before, turn fast math (fastMathEnabled) and contraction off
#include <metal_stdlib>
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
using namespace metal;

struct heat_step_arguments {
    long size;
    float s0;
};

kernel void heat_step_1(
    device const float* a0_data [[buffer(0)]],
    device const float* a1_data [[buffer(1)]],
    device const float* a2_data [[buffer(2)]],
    device float* z0_data [[buffer(3)]],
    constant heat_step_arguments& arguments [[buffer(4)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const float s0 = arguments.s0;
    const uint i = position;
    if (i >= size) return;
    const float a0_in = a0_data[i];
    const float a1_in = a1_data[i];
    const float a2_in = a2_data[i];
    z0_data[i] = a0_in + s0 * (a1_in - a0_in * 2.0f + a2_in);
}

// heat_step_2(float32 a0) -> (float32 z0)
// layout 1:a0=1,z0=1;;pa4u
// needs fewer than 2^31 elements, and bytes from end to end of an array

struct heat_step_arguments_heat_step_2 {
    long size;
};

kernel void heat_step_2(
    device const float* a0_data [[buffer(0)]],
    device float* z0_data [[buffer(1)]],
    constant heat_step_arguments_heat_step_2& arguments [[buffer(2)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const uint i = position;
    if (i >= size) return;
    const float a0_in = a0_data[i];
    z0_data[i] = a0_in;
}
