"""Metal Shading Language, in the safe math mode without contraction, which keeps IEEE 754 except for subnormals.

One thread computes one element; the space is one-dimensional, or two-dimensional where 32-bit positions do not
suffice. Of a text that asks for blocks a threadgroup computes one element. Arrays are buffers 0, 1, ... in the order of
the kernel's pointer slots; all other slots, in their order, are the fields of one struct, laid out as C does, in the
buffer after them. Threadgroups are multiples of 32 threads where the text has SIMD-group functions.
"""

from __future__ import annotations

import re

from fusec.base import dtypes
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Fp, Kernel, Layout
from fusec.codegen import c_family
from fusec.codegen.c_family.conversions import storage_casts
from fusec.codegen.c_family.file import Part, indented
from fusec.codegen.c_family.frame import Dialect, Frame
from fusec.codegen.c_family.names import CXX_WORDS
from fusec.codegen.c_family.routines import Words, complex_helpers, integer_helpers, odd_helpers, storage_helpers
from fusec.codegen.c_family.spelling import COMPLEX_STRUCTS, Cast, OpKey, Spelling, library_calls
from fusec.errors.targets import TooManyArrays
from fusec.ir.expr import Space
from fusec.ir.loops import Program, way_of

BUFFERS = 31  # buffer arguments of a kernel; one of them holds everything that is not an array
FUNCTION = "static "
HEAD = """\
// exact bits: by the pragmas from Metal 3.2 on; before, turn fast math (fastMathEnabled) and contraction off
#include <metal_stdlib>
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
using namespace metal;"""  # the safe mode alone still contracts within a statement

TYPES: dict[DType, str] = {
    dtypes.BOOL: "bool",
    dtypes.INT8: "char",
    dtypes.INT16: "short",
    dtypes.INT32: "int",
    dtypes.INT64: "long",
    dtypes.UINT8: "uchar",
    dtypes.UINT16: "ushort",
    dtypes.UINT32: "uint",
    dtypes.UINT64: "ulong",
    dtypes.FLOAT16: "half",
    dtypes.BFLOAT16: "ushort",
    dtypes.FLOAT8_E4M3FN: "uchar",
    dtypes.FLOAT8_E5M2: "uchar",
    dtypes.FLOAT32: "float",
    dtypes.COMPLEX64: COMPLEX_STRUCTS[dtypes.COMPLEX64],
}
NATIVE = frozenset({dtypes.FLOAT16})


def generate(program: Program, layout: Layout, single: bool = False, fp: Fp = "strict") -> Kernel:
    """The Metal kernel of a program for one memory layout; dispatch one thread for every element.

    single: literals without suffix were read as float32, so they are not to blame for a float64. fp: the mode
    the passes ran in.
    Raises NoSuchTypeOnTarget for float64 and complex128, AtomicUnsupported, TooManyArrays.
    """
    return c_family.generate(program, layout, DIALECT, single, fp)


# --- ops ---------------------------------------------------------------------------------------------------------


def _ops() -> dict[OpKey, str]:
    ops = library_calls(dtypes.FLOAT32)
    ops["sqrt", dtypes.FLOAT32] = "precise::sqrt({})"
    for dtype in dtypes.INTEGERS:
        c_type = TYPES[dtype]
        ops["multiply_high", dtype] = f"mulhi(({c_type})({{}}), ({c_type})({{}}))"
        ops["count_ones", dtype] = f"(int)popcount(({c_type})({{}}))"
        ops["count_leading_zeros", dtype] = f"(int)clz(({c_type})({{}}))"
    return ops


APPROXIMATE: dict[OpKey, str] = {
    ("divide", dtypes.FLOAT32): "fast::divide({}, {})",
    **{
        (name, dtypes.FLOAT32): f"fast::{name}({{}})"
        for name in ("sqrt", "rsqrt", "exp", "exp2", "exp10", "log", "log2", "log10", "sin", "cos", "tan", "tanh")
    },
}


def _bitcasts() -> dict[Cast, str]:
    pairs = [
        (dtypes.FLOAT32, dtypes.INT32),
        (dtypes.FLOAT32, dtypes.UINT32),
        (dtypes.FLOAT16, dtypes.INT16),
        (dtypes.FLOAT16, dtypes.UINT16),
    ]
    both = pairs + [(target, source) for source, target in pairs]
    return {(source, target): f"as_type<{TYPES[target]}>(({TYPES[source]})({{}}))" for source, target in both}


def _casts() -> dict[Cast, str]:
    casts = {cast: text for cast, text in storage_casts(NATIVE).items() if all(dtype in TYPES for dtype in cast)}
    for target in dtypes.INTEGERS:
        casts[dtypes.FLOAT32, target] = f"fusec_float32_to_{target}({{}})"
    return casts


# --- helpers -----------------------------------------------------------------------------------------------------


def _conversion_helpers(words: Words) -> dict[str, str]:
    """Floats to integers by comparison: what lies outside is undefined in a plain cast."""
    helpers: dict[str, str] = {}
    for target in dtypes.INTEGERS:
        name = f"fusec_float32_to_{target}"
        high = float(1 << (target.bits - (target.kind == "signed")))
        last = _last(target)
        lines = [f"if (!(x > {_power(-high)})) return x == x ? {_first(target)} : 0;"]
        if target.kind == "unsigned":
            lines = ["if (!(x > 0.0f)) return 0;"]
        lines.append(f"return x < {_power(high)} ? (<{target}>)x : {last};")
        helpers[name] = words.define(target, name, "<float32> x", "\n".join(lines), "saturates; nan gives 0")
    return helpers


def _power(value: float) -> str:
    return f"{'-' if value < 0 else ''}0x1p{len(bin(int(abs(value)))) - 3}f"


def _first(target: DType) -> str:
    if target.bits < 32:
        return str(-(1 << (target.bits - 1)))
    suffix = "l" if target.bits == 64 else ""
    return f"-{(1 << (target.bits - 1)) - 1}{suffix} - 1"


def _last(target: DType) -> str:
    unsigned = target.kind == "unsigned"
    suffix = ("u" if unsigned and target.bits >= 32 else "") + ("l" if target.bits == 64 else "")
    return f"{(1 << (target.bits - (not unsigned))) - 1}{suffix}"


_MOVED = """\
// the address some bytes further on
template <class T> static device T* fusec_moved(device T* base, long nbytes) {
    return (device T*)((device char*)base + nbytes);
}"""


def _helpers() -> dict[str, str]:
    words = Words(FUNCTION, TYPES, "as_type<uint>({})", "as_type<float>({})", "(int)clz({})")
    helpers = {"fusec_moved": _MOVED}
    helpers |= integer_helpers(words) | _conversion_helpers(words) | odd_helpers(words)
    helpers |= storage_helpers(words, NATIVE) | complex_helpers(words, (dtypes.COMPLEX64,))
    for prefix, space in (("", "device"), ("shared_", "threadgroup")):
        for op in _ORDER:
            name = f"fusec_atomic_{op}_{prefix}float"
            helpers[name] = _float_loop(op, name, space)
        for c_type in ("int", "uint"):
            name = f"fusec_atomic_compare_exchange_{prefix}{c_type}"
            helpers[name] = _exchange_loop(c_type, name, space)
    for op in ("add", "subtract", "exchange"):
        name = f"fusec_atomic_{op}_shared_float"
        helpers[name] = _float_loop(op, name, "threadgroup")
    return helpers | {f"fusec_shuffle{word}_ulong": _SHUFFLE_64.format(word=word) for word in SHUFFLES}


# --- atomics -----------------------------------------------------------------------------------------------------

_ORDER = {"minimum": "<", "maximum": ">"}


def _atomic(op: str, dtype: DType, wanted: bool, space: Space) -> str | None:
    """32-bit integers, sums and order of float32; of 64 bits only the order of uint64, without the old value.

    In shared memory there are those of integers of 32 bits, by which the others are made.
    """
    if op in ("load", "store"):
        return None
    word, inside = ("threadgroup", "shared_") if space == "shared" else ("device", "")
    if dtype == dtypes.UINT64 and op in _ORDER and not (wanted or inside):
        return f"atomic_{op[:3]}_explicit((device atomic_ulong*)({{p}}), {{0}}, memory_order_relaxed)"
    atomic = {dtypes.INT32: "int", dtypes.UINT32: "uint", dtypes.FLOAT32: "float"}.get(dtype)
    is_float = dtype == dtypes.FLOAT32
    if atomic is None or (is_float and op in ("and", "or", "xor", "compare_exchange")):
        return None
    if op == "compare_exchange":
        return f"fusec_atomic_compare_exchange_{inside}{atomic}({{p}}, {{0}}, {{1}})"
    if is_float and (op in _ORDER or inside):
        return f"fusec_atomic_{op}_{inside}float({{p}}, {{0}})"
    pointer = f"({word} atomic_{atomic}*)({{p}})"
    verb = op if op == "exchange" else f"fetch_{op[:3]}"
    return f"atomic_{verb}_explicit({pointer}, ({TYPES[dtype]})({{0}}), memory_order_relaxed)"


def _float_loop(op: str, name: str, space: str) -> str:
    """An update of a float by compare-and-swap of its bits."""
    seen = "as_type<float>(seen)"
    value = {"add": f"{seen} + value", "subtract": f"{seen} - value"}.get(op, "value")
    going = f"value {_ORDER[op]} {seen} || {seen} != {seen}" if op in _ORDER else "true"
    return f"""\
{FUNCTION}float {name}({space} float* address, float value) {{
    {space} atomic_uint* at = ({space} atomic_uint*)address;
    uint seen = atomic_load_explicit(at, memory_order_relaxed);
    while ({going}) {{
        const uint next = as_type<uint>({value});
        if (atomic_compare_exchange_weak_explicit(at, &seen, next, memory_order_relaxed, memory_order_relaxed)) break;
    }}
    return {seen};
}}"""


def _exchange_loop(c_type: str, name: str, space: str) -> str:
    """The weak exchange may fail without cause; this one fails only where the values differ."""
    return f"""\
{FUNCTION}{c_type} {name}({space} {c_type}* p, {c_type} expected, {c_type} value) {{
    {space} atomic_{c_type}* at = ({space} atomic_{c_type}*)p;
    {c_type} seen = expected;
    while (!atomic_compare_exchange_weak_explicit(at, &seen, value, memory_order_relaxed, memory_order_relaxed)) {{
        if (seen != expected) break;
    }}
    return seen;
}}"""


# --- the kernel --------------------------------------------------------------------------------------------------


def _frame(frame: Frame) -> list[Part]:
    pointers = [(slot, name) for slot, name in frame.slots if slot.kind == "pointer"]
    values = [(slot, name) for slot, name in frame.slots if slot.kind != "pointer"]
    if len(pointers) >= BUFFERS:
        raise TooManyArrays(frame.program.name, len(pointers), BUFFERS - 1, "metal").at()
    fresh = frame.names.fresh
    arguments, struct, position = fresh("arguments"), fresh(f"{frame.name}_arguments"), fresh("position")
    fields = [f"    {TYPES[slot.dtype]} {name};" for slot, name in values]
    params = [f"{frame.parameter(slot, name)} [[buffer({at})]]" for at, (slot, name) in enumerate(pointers)]
    params.append(f"constant {struct}& {arguments} [[buffer({len(pointers)})]]")
    at, size = frame.places.index, frame.places.use("size").text
    lines = [f"const {TYPES[slot.dtype]} {name} = {arguments}.{name};" for slot, name in values]
    asked, extents = "thread_position_in_grid", "threads_per_grid"
    if frame.program.block:
        asked, extents, thread = "threadgroup_position_in_grid", "threadgroups_per_grid", fresh("thread")
        params.append(f"uint {thread} [[thread_index_in_threadgroup]]")
        lines += [*frame.shared, *frame.threads(thread)]
    if frame.layout.wide:
        grid = fresh("grid")
        params += [f"uint2 {position} [[{asked}]]", f"uint2 {grid} [[{extents}]]"]
        lines.append(f"const long {at} = (long){position}.y * {grid}.x + {position}.x;")
    else:
        params.append(f"uint {position} [[{asked}]]")
        lines.append(f"const {'long' if frame.is_long else 'uint'} {at} = {position};")
    lines += [f"if ({at} >= {size}) return;", *frame.coordinates(at), *frame.scalar_copies(), *frame.body]
    declared = "\n".join([f"struct {struct} {{", *fields, "};"])
    kernel = f"kernel void {frame.name}(\n    {(',' + chr(10) + '    ').join(params)})\n{{"
    kernel = "\n".join([kernel, *indented(lines, 1), "}"])
    return [("", frame.header()), ("", HEAD), *frame.above, (struct, declared), (frame.name, kernel)]


_WORDS = """device constant thread threadgroup kernel vertex fragment metal half bfloat uchar ushort uint ulong size_t
ptrdiff_t texture2d sampler atomic as_type precise fast access simd ray_data object_data visible stitchable
abs acos acosh all any asin asinh atan atan2 atanh ceil clamp copysign cos cosh cospi cross ctz distance divide dot exp
exp10 exp2 extract_bits fabs fdim floor fmax fmax3 fmin fmin3 fmod fract frexp ilogb insert_bits isfinite isinf isnan
isnormal isunordered ldexp length log log10 log2 mad24 madhi madsat max max3 median3 min min3 mix modf mul24 nextafter
normalize pow powr reflect refract reverse_bits rint rotate round rsqrt saturate select sign signbit sin sincos sinh
sinpi smoothstep sqrt step sub_sat add_sat tan tanh tanpi trunc distance_squared vec matrix packed_float3
INFINITY NAN M_PI_F FLT_MAX INT_MAX"""


def _reserved() -> frozenset[str]:
    scalars = ("char", "short", "int", "long", "uchar", "ushort", "uint", "ulong", "half", "float", "bool", "bfloat")
    vectors = {f"{scalar}{count}" for scalar in scalars for count in (2, 3, 4)}
    in_ops = set(re.findall(r"[A-Za-z_]\w*", " ".join(_ops().values())))
    return CXX_WORDS | vectors | in_ops | frozenset(_WORDS.split())


def _shuffle(dtype: DType, distance: int) -> str:
    """The template of a shuffle; 64-bit integers, which Metal does not shuffle, travel in halves, bools as integers."""
    word, lane = way_of(distance)
    if dtype.bits == 64:
        return f"({TYPES[dtype]})fusec_shuffle{word}_ulong((ulong){{}}, {lane})"
    value = "(uint){}" if dtype == dtypes.BOOL else "{}"
    call = f"simd_shuffle{word}({value}, (ushort){lane})"
    return f"({TYPES[dtype]}){call}" if dtype == dtypes.BOOL else call


SHUFFLES = ("", "_up", "_down", "_xor")
_SHUFFLE_64 = """\
static ulong fusec_shuffle{word}_ulong(ulong x, int distance) {{
    const uint low = (uint)x, high = (uint)(x >> 32);
    return (ulong)simd_shuffle{word}(high, (ushort)distance) << 32 | simd_shuffle{word}(low, (ushort)distance);
}}"""

SPELLING = Spelling(
    target="metal",
    types=TYPES,
    native=NATIVE,
    long_suffix="l",
    function=FUNCTION,
    rare=FUNCTION,
    specialised=lambda *given: given[-1],
    pointers={"global": "device ", "local": "thread ", "shared": "threadgroup "},
    ops=_ops(),
    casts=_casts(),
    bitcasts=_bitcasts(),
    float_bits={dtypes.FLOAT32: "as_type<float>({}u)", dtypes.FLOAT16: "as_type<half>((ushort){})"},
    signed_remainder=False,
    reserved=_reserved(),
    helpers=_helpers(),
    atomic=_atomic,
    groups=False,
    leave="return",
    approximate=APPROXIMATE,
    shuffle=_shuffle,
    table="constant",
    barrier="threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);",
)
DIALECT = Dialect(SPELLING, _frame)
GENERATOR = c_family.generator_of(DIALECT)
