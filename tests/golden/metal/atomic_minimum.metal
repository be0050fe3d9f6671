// atomic_minimum(float32 x) -> (raw float32 bins)
// layout 1:x=1;bins=1c;a16
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: by the pragmas from Metal 3.2 on; before, turn fast math (fastMathEnabled) and contraction off
#include <metal_stdlib>
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
using namespace metal;

static float fusec_atomic_minimum_float(device float* address, float value) {
    device atomic_uint* at = (device atomic_uint*)address;
    uint seen = atomic_load_explicit(at, memory_order_relaxed);
    while (value < as_type<float>(seen) || as_type<float>(seen) != as_type<float>(seen)) {
        const uint next = as_type<uint>(value);
        if (atomic_compare_exchange_weak_explicit(at, &seen, next, memory_order_relaxed, memory_order_relaxed)) break;
    }
    return as_type<float>(seen);
}

struct atomic_minimum_arguments {
    long size;
};

kernel void atomic_minimum(
    device const float* x_data [[buffer(0)]],
    device float* bins [[buffer(1)]],
    constant atomic_minimum_arguments& arguments [[buffer(2)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const long i = position;
    if (i >= size) return;
    const float x = x_data[i];
    fusec_atomic_minimum_float(bins + i % 5, x);
}
