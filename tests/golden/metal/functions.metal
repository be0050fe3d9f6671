// functions_and_structs(int32 x, int32 y) -> (int32 z)
// layout 1:x=1,y=1,z=1;;a16
// needs fewer than 2^31 elements, and bytes from end to end of an array
// exact bits: by the pragmas from Metal 3.2 on; before, turn fast math (fastMathEnabled) and contraction off
#include <metal_stdlib>
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
using namespace metal;

struct Pair { int first; int kernel_second; };

static Pair swap(Pair p) {
    return Pair{p.kernel_second, p.first};
}

static int bump(thread int* at, int by) {
    const int old = *at;
    *at = (int)((uint)old + by);
    return old;
}

static int exp_2(int v) {
    for (int j = 0; j < 3; ++j) {
        if (v > 10) {
            return j;
        }
        v = (int)((uint)v + v);
    }
    return 9;
}

struct functions_and_structs_arguments {
    long size;
};

kernel void functions_and_structs(
    device const int* x_data [[buffer(0)]],
    device const int* y_data [[buffer(1)]],
    device int* z_data [[buffer(2)]],
    constant functions_and_structs_arguments& arguments [[buffer(3)]],
    uint position [[thread_position_in_grid]])
{
    const long size = arguments.size;
    const uint i = position;
    if (i >= size) return;
    const int x = x_data[i];
    const int y = y_data[i];
    int z = 0;
    Pair pair = {};
    pair.first = x;
    pair = swap(pair);
    int cell[2] = {y};
    int half_2 = 0;
    half_2 = bump(cell, x);
    bump(cell, 1);
    z = (int)((uint)pair.kernel_second + cell[0]);
    z = (int)((uint)z + ((uint)exp_2(x) + half_2));
    z_data[i] = z;
}
