"""A kernel whose every name means something to C++, CUDA, Metal or the printer itself."""

import numpy as np
from programs import Case

from fusec import passes
from fusec.base.dtypes import FLOAT32, INT32
from fusec.frontends.c import lower
from fusec.frontends.c.definition import Definition

PREAMBLE = """
struct vec { float device; int half4; int vec3; int fusec_group; int vec; int register_; int new_; };
struct complex64_ { int re; int im; };
struct threadgroup { int x; };
struct umax { int NULL; int std; };
__device__ float fusec_group(float fragment) { float sampler = fragment; return sampler * 2; }
__device__ float fusec_pick_2(float ushort2) { return ushort2 + 1; }
__device__ float fusec_strided_2(float t) { return t - 1; }
__device__ int saturate(int uint) { return uint > 3 ? 3 : uint; }
__device__ int mulhi(int ulong) { return ulong + 1; }
__device__ int umin(int a, int b) { return a < b ? a : b; }
__device__ int llmax(int vertex) { return vertex + 2; }
__device__ int clz(int address) { return address ^ 1; }
__device__ int select(int at) { return at - 3; }
__device__ int rotate(vec metal_stdlib) { metal_stdlib.vec3 += 1; return metal_stdlib.vec3; }
__device__ int float_as_int(int visible) { return visible; }
"""
OPERATION = """
float kernel = threads, float3 = x, thread = 2 * x, threadgroup_ = 3;
int i0 = base, k = 5 + base, gid = 6 + base, grid = base, position = base, arguments = base, data = base;
int out_data = base, threads_data = base, size_ = base, group = base, old = base, seen = base, whole = base;
int fusec_load = base, fusec_store = base, fusec_quotient_int32 = base, near = base, value = base, fusec_moved = base;
vec metal = {1.5f, 2};
threadgroup simd;
simd.x = base;
umax any = {base, 3};
metal.device = 3 * x; metal.half4 = base; metal.vec3 += base; metal.fusec_group = base; metal.vec = base;
float fusec_float32_to_int32 = fusec_strided_2(fusec_pick_2(fusec_group(kernel)));
int min_ = max(base, device), float2int = base, uint3 = base, as_type = base, next_element = base, blockIdx_ = base;
for (int x_group = 0; x_group < 3; ++x_group) { if (x_group == device) continue; k += x_group; }
int fragment = umin(base, 3) + llmax(4) + clz(base) + select(base) + rotate(metal) + float_as_int(base) + mulhi(base);
out = fusec_float32_to_int32 + float3 + thread + threadgroup_ + metal.device + metal.half4 + metal.vec3 + size[i]
    + metal.fusec_group + metal.vec + in_ + simd.x + any.NULL * any.std;
count = i0 + k + gid + grid + position + arguments + data + out_data + threads_data + size_ + group + old + seen + whole
    + fusec_load + fusec_store + fusec_quotient_int32 + near + value + fusec_moved + min_ + float2int + uint3 + as_type
    + next_element + blockIdx_ + fragment + constant[i] / base + saturate(k);
"""


def name_case() -> Case:
    """Structs, fields, functions, parameters and locals with such names; raw and grouped arrays too."""
    inputs = {"size": FLOAT32, "constant": INT32, "threads": FLOAT32, "base": INT32, "device": INT32, "x": FLOAT32}
    inputs |= {"in_": FLOAT32}
    raw = ("size", "constant")
    outputs = {"out": FLOAT32, "count": INT32}
    parsed = lower.parse(
        Definition(
            in_params=", ".join(f"{'raw ' if name in raw else ''}{dtype} {name}" for name, dtype in inputs.items()),
            out_params=", ".join(f"{dtype} {name}" for name, dtype in outputs.items()),
            operation=OPERATION,
            name="kernel",
            preamble=PREAMBLE,
        )
    )
    program = passes.run(lower.lower(parsed, inputs | outputs, ndims=dict.fromkeys(raw, 1), scalars=frozenset()))
    rng = np.random.default_rng(2)
    arrays = {name: rng.integers(-9, 9, 21).astype(dtype.numpy) for name, dtype in (inputs | outputs).items()}
    return Case("names", program, arrays, (21,))
