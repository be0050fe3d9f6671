// complex_float32(complex64 x, complex64 y, bool c, complex64 s) -> (float32 re, float32 im, complex64 swapped, bool equal, bool differs, complex64 chosen, complex64 one, complex64 from_scalar, float32 nested)
// layout 1:x=1,y=1,c=1,re=1,im=1,swapped=1,equal=1,differs=1,chosen=1,one=1,from_scalar=1,nested=1;;a16
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: by the pragmas from Metal 3.2 on; before, turn fast math (fastMathEnabled) and contraction off
#include <metal_stdlib>
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
using namespace metal;

struct complex64 { float re, im; };

static bool fusec_equal_complex64(complex64 a, complex64 b) {
    return a.re == b.re && a.im == b.im;
}

struct complex_float32_arguments {
    long size;
    complex64 s;
};

kernel void complex_float32(
    device const complex64* x_data [[buffer(0)]],
    device const complex64* y_data [[buffer(1)]],
    device const bool* c_data [[buffer(2)]],
    device float* re_data [[buffer(3)]],
    device float* im_data [[buffer(4)]],
    device complex64* swapped_data [[buffer(5)]],
    device bool* equal_data [[buffer(6)]],
    device bool* differs_data [[buffer(7)]],
    device complex64* chosen_data [[buffer(8)]],
    device complex64* one_data [[buffer(9)]],
    device complex64* from_scalar_data [[buffer(10)]],
    device float* nested_data [[buffer(11)]],
    constant complex_float32_arguments& arguments [[buffer(12)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const complex64 s = arguments.s;
    const uint i = position;
    if (i >= size) return;
    const complex64 x = x_data[i];
    const complex64 y = y_data[i];
    const bool c = c_data[i];
    re_data[i] = x.re;
    im_data[i] = y.im;
    swapped_data[i] = complex64{x.im, y.re};
    equal_data[i] = fusec_equal_complex64(x, y);
    differs_data[i] = !fusec_equal_complex64(x, y);
    chosen_data[i] = c ? x : complex64{x.im, y.re};
    one_data[i] = complex64{1.0f, -2.0f};
    from_scalar_data[i] = complex64{s.re, s.im};
    nested_data[i] = (c ? s : y).re;
}
