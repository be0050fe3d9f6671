// atomic_add(int32 x) -> (raw int32 bins)
// layout 1:x=1;bins=1c;a16
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: by the pragmas from Metal 3.2 on; before, turn fast math (fastMathEnabled) and contraction off
#include <metal_stdlib>
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
using namespace metal;

struct atomic_add_arguments {
    long size;
};

kernel void atomic_add(
    device const int* x_data [[buffer(0)]],
    device int* bins [[buffer(1)]],
    constant atomic_add_arguments& arguments [[buffer(2)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const long i = position;
    if (i >= size) return;
    const int x = x_data[i];
    atomic_fetch_add_explicit((device atomic_int*)(bins + i % 5), (int)(x), memory_order_relaxed);
}
