"""Kernel strings: structs with constructors and functions, vector types, enumerations, functions of raw arrays."""

import re

import numpy as np
from programs import Case, spread

from fusec import passes
from fusec.base.dtypes import COMPUTE_FLOATS, INT32, DType, from_numpy
from fusec.frontends.c.lower import lower, parse
from fusec.frontends.c.texts import KernelTexts
from fusec.passes.resolve import resolve_axes

STRUCTS = """
template <typename T> struct span_st {
    typedef T value_type;
    T low, high;
    int count;
    __device__ span_st() : low(0), high(-1), count(0) { }
    __device__ span_st(T v) : span_st(v, v) { }
    __device__ span_st(T a, T b) : low(min(a, b)), high(max(a, b)), count(1) { if (a == b) count = 3; }
    __device__ void add(const span_st& other) {
        if (other.low < low) low = other.low;
        high = max(high, other.high);
        count += other.count;
    }
    __device__ T width() const { return high - low; }
};
struct box { span_st<float> x, y; float weight = 2.5f; };
template <typename T> __device__ span_st<T> join(span_st<T> a, const span_st<T>& b) { a.add(b); return a; }
__device__ void grow(box& b, float by) { b.x.add(span_st<float>(by)); b.weight += b.x.count; }
__device__ void move(box* b, float by) {
    for (int k = 0, n = b->x.count; k < n; ++k) { b->y.low += by; grow(*b, by * k); }
}
"""
STRUCTS_BODY = """
span_st<float> s(x, y), t = y;
box b = {s, t};
if (x < y) move(&b, x); else grow(b, y);
z = join(b.x, b.y).width() * b.weight + join(s, t).count;
"""
VECTORS = """
enum side : short { LEFT = -1, RIGHT = 3 };
enum class axis { row, column = 4 };
__device__ float3 cross(const float3& a, float3 b) {
    return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
__device__ side choose(float v) { if (v < 0) return LEFT; return RIGHT; }
"""
VECTORS_BODY = """
float3 v = cross(make_float3(x, y, 1), float3{y, -x, 2});
int2 place = make_int2(x * 3, (int)axis::column);
place.x += choose(x - y);
z = 0;
for (auto part : {v.x, v.y, v.z}) { if (part < -9) continue; z += part; }
float kept[3];
for (auto& each : kept) each = z += place.x * place.y;
z = kept[0] - kept[2];
"""
ARRAYS = """
template <typename A> __device__ int lower(const A& a, float v) {
    int low = 0, high = a.size();
    while (low < high) {
        int middle = (low + high) / 2;
        if (a[middle] == v) return middle;
        if (a[middle] < v) low = middle + 1; else high = middle;
    }
    return -low - 1;
}
template <typename A, typename B> __device__ void put(const A& a, B& b, int k) {
    if (k < 0) return;
    b[k] = a[k] * 2;
}
"""
ARRAYS_BODY = """
int k = lower(table, x);
put(table, out, k);
z = k + (y > 0 ? table[lower(table, 4) & 7] : lower(table, y));
"""
QUOTIENTS = ("z = x / 25; w = x / (T)-0.1;", "z = x / 6; w = x / (T)14;", "z = x / (T)(2.5); w = x / (T)0.7;")
CHAIN_BODY = " else ".join(f"if (x < {k}) z = {k} * y;" for k in range(-30, 30)) + " else z = x;"


def text_cases() -> list[Case]:
    """Each over values that take every way through it."""
    rng = np.random.default_rng(5)
    x, y = (rng.integers(-40, 40, 150).astype("float32") / 2 for _ in range(2))
    arrays = {"x": x, "y": y, "z": np.zeros(150, "float32")}
    tables = {"table": np.arange(40, dtype="float32")[::2].copy(), "out": np.zeros(20, "float32")}
    return [
        _case("text structs", STRUCTS, STRUCTS_BODY, arrays),
        _case("text vectors", VECTORS, VECTORS_BODY, arrays),
        _case("text functions of raw arrays", ARRAYS, ARRAYS_BODY, {**arrays, **tables}),
        _case("text chain", "", CHAIN_BODY, arrays),
        *(_case(f"text quotients of {dtype} {at}", "", body, _divided(dtype))
          for dtype in COMPUTE_FLOATS for at, body in enumerate(QUOTIENTS)),
    ]  # fmt: skip


def _divided(dtype: DType) -> dict[str, np.ndarray]:
    x = spread(x=dtype)["x"]
    return {"x": x, "z": np.zeros_like(x), "w": np.zeros_like(x)}


def _case(name: str, preamble: str, body: str, arrays: dict[str, np.ndarray]) -> Case:
    return case_of(name, body, arrays, preamble=preamble)


def case_of(
    name: str,
    body: str,
    arrays: dict[str, np.ndarray],
    scalars: dict[str, object] | None = None,
    preamble: str = "",
    wide: bool = False,
) -> Case:
    """A kernel string over arrays: z, w and out are results, table and out are raw; T is the type of x.

    scalars: int32 each.
    """
    written, raw, scalars = ("z", "w", "out"), ("table", "out"), scalars or {}
    params = {each: f"{'raw ' * (each in raw)}{from_numpy(array.dtype)} {each}" for each, array in arrays.items()} | {
        each: f"int32 {each}" for each in scalars
    }
    given = (", ".join(params[each] for each in params if (each in written) is results) for results in (False, True))
    body = f"typedef {from_numpy(arrays['x'].dtype)} T;\n{body}" if "(T)" in body else body
    text = parse(KernelTexts(*given, body, re.sub(r"\W+", "_", name), preamble))
    types = {each: from_numpy(array.dtype) for each, array in arrays.items()} | dict.fromkeys(scalars, INT32)
    ndims = {each: 1 for each in arrays if each in raw}
    program = lower(text, types, ndims=ndims, scalars=frozenset(scalars))
    shape = arrays["z" if "z" in arrays else "x"].shape
    program = passes.run(resolve_axes(program, {"": len(shape), **ndims}), check=True)
    return Case(name, program, arrays, shape, scalars, wide)
