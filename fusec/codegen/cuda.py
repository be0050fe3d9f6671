"""CUDA C: lean text for NVRTC, without a header; compile it with --fmad=false."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fusec.base import dtypes
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import COPYING_BLOCK, USUAL_BLOCK, Fp, Kernel, Layout
from fusec.base.ops import TABLE
from fusec.base.records import replace
from fusec.codegen import c_family
from fusec.codegen.c_family import facts
from fusec.codegen.c_family.conversions import storage_casts
from fusec.codegen.c_family.file import Part, indented
from fusec.codegen.c_family.frame import Dialect, Frame
from fusec.codegen.c_family.names import CXX_WORDS
from fusec.codegen.c_family.routines import (
    Words,
    complex_helpers,
    integer_helpers,
    needed,
    odd_helpers,
    storage_helpers,
)
from fusec.codegen.c_family.spelling import COMPLEX_STRUCTS, Cast, OpKey, Spelling, library_calls
from fusec.codegen.cuda_atomics import atomic_helpers, atomic_template
from fusec.codegen.cuda_clusters import CLUSTER_HELPERS, MEETING, TELL
from fusec.codegen.cuda_copies import BARRIER
from fusec.codegen.cuda_groups import FUNCTION, GROUP_HELPERS
from fusec.codegen.cuda_loops import loop
from fusec.codegen.cuda_together import beside, ended
from fusec.ir.loops import REGISTER, Program, way_of
from fusec.ir.reductions import ROUNDS

ARCH = 800  # of the devices that have the instructions below

TYPES: dict[DType, str] = {
    dtypes.BOOL: "bool",
    dtypes.INT8: "signed char",
    dtypes.INT16: "short",
    dtypes.INT32: "int",
    dtypes.INT64: "long long",
    dtypes.UINT8: "unsigned char",
    dtypes.UINT16: "unsigned short",
    dtypes.UINT32: "unsigned",
    dtypes.UINT64: "unsigned long long",
    dtypes.FLOAT16: "unsigned short",
    dtypes.BFLOAT16: "unsigned short",
    dtypes.FLOAT8_E4M3FN: "unsigned char",
    dtypes.FLOAT8_E5M2: "unsigned char",
    dtypes.FLOAT32: "float",
    dtypes.FLOAT64: "double",
    dtypes.COMPLEX64: COMPLEX_STRUCTS[dtypes.COMPLEX64],
    dtypes.COMPLEX128: COMPLEX_STRUCTS[dtypes.COMPLEX128],
}
BITS = "// exact bits: compile with --fmad=false (nvcc, NVRTC), and without --use_fast_math"
LOOSE = "// compile with --fmad=false (nvcc, NVRTC), and without --use_fast_math: approximate is only what says so"


def generate(program: Program, layout: Layout, fp: Fp = "strict") -> Kernel:
    """The CUDA kernel of a program for one memory layout; blocks have at most `USUAL_BLOCK` threads, or as many as the
    program says.

    A grid-stride loop covers any number of elements with any one-dimensional grid. fp: the mode the passes ran in.
    Raises AtomicUnsupported.
    """
    return c_family.generate(program, layout, DIALECT, fp=fp)


# --- ops ---------------------------------------------------------------------------------------------------------


def _ops() -> dict[OpKey, str]:
    ops = library_calls(dtypes.FLOAT32, "f") | library_calls(dtypes.FLOAT64)
    ops["sqrt", dtypes.FLOAT32], ops["sqrt", dtypes.FLOAT64] = "__fsqrt_rn({})", "__dsqrt_rn({})"
    ops["fma", dtypes.FLOAT32], ops["fma", dtypes.FLOAT64] = "__fmaf_rn({}, {}, {})", "__fma_rn({}, {}, {})"
    ops["multiply_high", dtypes.INT32], ops["multiply_high", dtypes.UINT32] = "__mulhi({}, {})", "__umulhi({}, {})"
    ops["multiply_high", dtypes.INT64], ops["multiply_high", dtypes.UINT64] = "__mul64hi({}, {})", "__umul64hi({}, {})"
    for dtype in dtypes.INTEGERS:
        unsigned = TYPES[DType(f"uint{dtype.bits}", "unsigned", dtype.bits)]
        if dtype.bits < 32:
            ops["multiply_high", dtype] = f"fusec_multiply_high_{dtype}({{}}, {{}})"
        wide = "ll" if dtype.bits == 64 else ""
        ops["count_ones", dtype] = f"__popc{wide}(({unsigned})({{}}))"
        signed = "long long" if wide else "int"
        ops["count_leading_zeros", dtype] = f"__clz{wide}(({signed})({{}}))"
        if dtype.bits < 32:
            ops["count_leading_zeros", dtype] = f"fusec_count_leading_zeros_{dtype}({{}})"
    return ops


# Note [Approximation]: in fp="fast" only these differ, in the user's expressions. --use_fast_math and --fmad=true would
# reach into elementary functions too, which need every operation as it stands. Not pow: __powf has no negative bases.
APPROXIMATE: dict[OpKey, str] = {
    ("divide", dtypes.FLOAT32): "__fdividef({}, {})",
    ("sqrt", dtypes.FLOAT32): "fusec_approximate_sqrt({})",
    ("rsqrt", dtypes.FLOAT32): "rsqrtf({})",
    ("tanh", dtypes.FLOAT32): "fusec_approximate_tanh({})",
    **{(row.name, dtypes.FLOAT32): f"{row.cuda}({{}})" for row in TABLE.values() if row.cuda and row.arity == 1},
    ("exp2", dtypes.FLOAT32): "exp2f({})",
}


def _bitcasts() -> dict[Cast, str]:
    return {
        (dtypes.FLOAT32, dtypes.INT32): "__float_as_int({})",
        (dtypes.FLOAT32, dtypes.UINT32): "__float_as_uint({})",
        (dtypes.INT32, dtypes.FLOAT32): "__int_as_float({})",
        (dtypes.UINT32, dtypes.FLOAT32): "__uint_as_float({})",
        (dtypes.FLOAT64, dtypes.INT64): "__double_as_longlong({})",
        (dtypes.FLOAT64, dtypes.UINT64): "fusec_float64_as_uint64({})",
        (dtypes.INT64, dtypes.FLOAT64): "__longlong_as_double({})",
        (dtypes.UINT64, dtypes.FLOAT64): "__longlong_as_double((long long)({}))",
    }


def _casts() -> dict[Cast, str]:
    casts = storage_casts(frozenset())
    casts[dtypes.FLOAT64, dtypes.FLOAT16] = "fusec_float64_to_float16({})"
    for source in (dtypes.FLOAT32, dtypes.FLOAT64):
        for target in dtypes.INTEGERS:
            casts[source, target] = f"fusec_{source}_to_{target}({{}})"
    casts[dtypes.FLOAT32, dtypes.INT32], casts[dtypes.FLOAT32, dtypes.UINT32] = (
        "__float2int_rz({})",
        "__float2uint_rz({})",
    )  # nan gives 0
    return casts


# --- helpers -----------------------------------------------------------------------------------------------------


def _conversion_helpers(words: Words) -> dict[str, str]:
    """Floats to integers. The hardware saturates; only float32 to 32 bits also turns nan into 0 (PTX ISA, cvt)."""
    helpers: dict[str, str] = {}
    short = {dtypes.FLOAT32: "float", dtypes.FLOAT64: "double"}
    instruction = {dtypes.INT32: "int", dtypes.UINT32: "uint", dtypes.INT64: "ll", dtypes.UINT64: "ull"}
    for source in (dtypes.FLOAT32, dtypes.FLOAT64):
        for target, suffix in instruction.items():
            name = f"fusec_{source}_to_{target}"
            body = f"return x == x ? __{short[source]}2{suffix}_rz(x) : 0;"
            helpers[name] = words.define(target, name, f"<{source}> x", body, "saturates; nan gives 0")
        for target in (dtypes.INT8, dtypes.INT16, dtypes.UINT8, dtypes.UINT16):
            name = f"fusec_{source}_to_{target}"
            low = -(1 << (target.bits - 1)) if target.kind == "signed" else 0
            high = low + (1 << target.bits) - 1
            whole = "__float2int_rz(x)" if source == dtypes.FLOAT32 else f"fusec_{source}_to_int32(x)"
            body = f"const int whole = {whole};\nreturn whole < {low} ? {low} : whole > {high} ? {high} : whole;"
            helpers[name] = words.define(target, name, f"<{source}> x", body, "saturates; nan gives 0")
    return helpers


def _narrow_integer_helpers(words: Words) -> dict[str, str]:
    helpers: dict[str, str] = {}
    for dtype in (dtypes.INT8, dtypes.INT16, dtypes.UINT8, dtypes.UINT16):
        name = f"fusec_multiply_high_{dtype}"
        product = f"return (int)((<uint32>)a * (<uint32>)b) >> {dtype.bits};"
        if dtype.kind == "unsigned":
            product = f"return (<uint32>)a * (<uint32>)b >> {dtype.bits};"
        helpers[name] = words.define(dtype, name, f"<{dtype}> a, <{dtype}> b", product)
        name = f"fusec_count_leading_zeros_{dtype}"
        body = f"return __clz((<uint{dtype.bits}>)x) - {32 - dtype.bits};"
        helpers[name] = words.define(dtypes.INT32, name, f"<{dtype}> x", body)
    return helpers


_ASM = f"""\
{FUNCTION}{{result}} fusec_{{name}}({{c_type}} x) {{{{
    {{result}} value;
    asm("{{instruction}} %0, %1;" : "={{out}}"(value) : "{{register}}"(x));
    return value;
}}}}"""

_ODD = f"""\
// toward zero, the last bit set if anything was lost
{FUNCTION}float fusec_odd_float64(double x) {{
    const float near = __double2float_rz(x);
    return near == x || x != x ? near : __uint_as_float(__float_as_uint(near) | 1u);
}}"""

_AS_UINT64 = f"""\
{FUNCTION}unsigned long long fusec_float64_as_uint64(double x) {{
    return (unsigned long long)__double_as_longlong(x);
}}"""


def _instruction(name: str, instruction: str, source: DType, target: DType) -> dict[str, str]:
    """The helper that is one instruction of PTX."""
    registers = {dtypes.FLOAT16: "h", dtypes.FLOAT32: "f", dtypes.FLOAT64: "d"}
    c_type, result, register, out = TYPES[source], TYPES[target], registers[source], registers[target]
    text = _ASM.format(result=result, name=name, c_type=c_type, instruction=instruction, out=out, register=register)
    return {f"fusec_{name}": text}


def _where_devices_have(asm: str, body: str) -> str:
    """The body of a function: instructions of PTX on devices of ARCH and later, else statements."""
    return f"#if __CUDA_ARCH__ >= {ARCH}\n{asm}\n#else\n{body}\n#endif"


def _rounded_in_pairs(text: str, instruction: str) -> str:
    """A helper of a float32 that gives 16 bits, as one instruction of PTX where devices have it.

    The instruction rounds two floats, since the one that rounds a single float has an eighth of its rate.
    """
    head, body = text.removesuffix("\n}").split("{\n", 1)
    asm = f"""\
    unsigned pair;
    asm("{instruction} %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(x));
    return (unsigned short)pair;"""
    return f"{head}{{\n{_where_devices_have(asm, body)}\n}}"


_MOVED = f"""\
// the address some bytes further on
template <class T> {FUNCTION}T* fusec_moved(T* base, long long nbytes) {{
    return (T*)((char*)base + nbytes);
}}"""

_ALIGNED = f"""\
// rows that begin at multiples of 16 bytes, of which several elements are loaded or stored at once
template <class T> {FUNCTION}T* fusec_aligned(T* row) {{
    return (T*)__builtin_assume_aligned(row, 16);
}}"""

_LOOP_HELPERS = {"fusec_moved": _MOVED, **GROUP_HELPERS}


def _helpers() -> dict[str, str]:
    words = Words(FUNCTION, TYPES, "__float_as_uint({})", "__uint_as_float({})", "__clzll((long long){})")
    helpers = {"fusec_moved": _MOVED, "fusec_aligned": _ALIGNED, "fusec_float64_as_uint64": _AS_UINT64}
    helpers |= integer_helpers(words) | _conversion_helpers(words) | _narrow_integer_helpers(words)
    helpers |= odd_helpers(words) | {"fusec_odd_float64": _ODD}
    helpers |= storage_helpers(words, frozenset({dtypes.FLOAT16}))
    half, single, double = dtypes.FLOAT16, dtypes.FLOAT32, dtypes.FLOAT64
    bfloat16 = "fusec_float32_to_bfloat16"
    helpers[bfloat16] = _rounded_in_pairs(helpers[bfloat16], "cvt.rn.bf16x2.f32")
    helpers |= _instruction("float16_to_float32", "cvt.f32.f16", half, single)
    helpers |= _instruction("float32_to_float16", "cvt.rn.f16.f32", single, half)
    helpers |= _instruction("float64_to_float16", "cvt.rn.f16.f64", double, half)
    for name in ("sqrt", "tanh"):
        helpers |= _instruction(f"approximate_{name}", f"{name}.approx.f32", single, single)
    helpers |= complex_helpers(words, (dtypes.COMPLEX64, dtypes.COMPLEX128))
    return helpers | atomic_helpers(words) | GROUP_HELPERS | CLUSTER_HELPERS


# Note [Loads ahead]: to keep the memory of an H200 busy, 30 KB must be under way to each multiprocessor. Threads that
# walk an axis are few, so each has to wait for many loads at once (`facts.rounds_at_once`). Left alone, ptxas gives a
# thread the 32 registers with which 2048 threads fit, and so a dozen loads; told that two blocks will do, it takes 56
# for 32. Threads that hold their elements between walks (`While.unrolled`) need registers for all of them, and some
# more: the bound asks for as many blocks as fit, if their threads have nearly so many. Threads that hold a whole lane
# each combine it in one chain, and need few others: softmax of long rows takes 80 registers, of which 64 are elements.

REGISTERS, OTHERS = 65536, 48  # of a multiprocessor; of a thread, beside those of the elements that it holds
FEW_OTHERS = 20  # the same of a thread that holds a whole lane
NEARLY = 0.85  # of the registers that a thread needs: with fewer, ptxas puts values into memory


# --- the kernel --------------------------------------------------------------------------------------------------


def _frame(frame: Frame) -> list[Part]:
    lines = loop(frame)
    params = ",\n    ".join(frame.parameter(slot, name) for slot, name in frame.slots)
    cluster = f"__cluster_dims__({frame.program.cluster}) " if frame.program.cluster > 1 else ""
    head = f'extern "C" __global__ void {cluster}__launch_bounds__({_bounds(frame)}) {frame.name}(\n    {params})\n{{'
    kernel = "\n".join([head, *indented(lines, 1), "}"])
    above = {name for name, _ in frame.above}
    helpers = [(name, _LOOP_HELPERS[name]) for name in needed([kernel], _LOOP_HELPERS) if name not in above]
    return [
        ("", frame.header()),
        ("", LOOSE if frame.fp == "fast" else BITS),
        *helpers,
        *frame.above,
        (frame.name, kernel),
    ]


def _bounds(frame: Frame) -> str:
    """The most threads of a block, and how many blocks a multiprocessor should have room for."""
    program, shared = frame.program, frame.strip or frame.tiles
    if frame.copies:
        return f"{COPYING_BLOCK}"
    threads = program.threads // program.cluster if program.block else USUAL_BLOCK
    held = facts.held_bytes(program.body)
    if held:
        has_lane = program.block and facts.held_slots(program.body) == ROUNDS and held < 2 * ROUNDS * REGISTER
        blocks = REGISTERS / (held // REGISTER + (FEW_OTHERS if has_lane else OTHERS)) / threads
        return f"{threads}, {max(1, min(round(blocks), int(blocks / NEARLY)))}"
    if shared and shared.blocks:
        return f"{threads}, {shared.blocks}"
    if program.block or not facts.walks(program.body):
        return f"{threads}"
    return f"{threads}, 2"


_LIBRARY = """abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi erf erfc erfcinv erfcx erfinv
exp exp10 exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb isfinite isinf isnan j0 j1 jn ldexp lgamma
llrint llround fdivide labs llabs llmax llmin ullmax ullmin umax umin norm3d norm4d rnorm3d rnorm4d rhypot
cyl_bessel_i0 cyl_bessel_i1 log log10 log1p log2 logb lrint lround max min modf nearbyint nextafter norm normcdf
normcdfinv pow remainder
remquo rint round rsqrt scalbln scalbn signbit sin sincos sincospi sinh sinpi sqrt tan tanh tgamma trunc y0 y1 yn"""
_BUILT_IN = """threadIdx blockIdx blockDim gridDim warpSize size_t ptrdiff_t clock clock64 printf assert malloc free
memcpy memset dim3 uint ushort all any ballot std va_list cudaError_t cudaStream_t tex1D tex2D tex3D surf1Dread
surf2Dread surf3Dread atomicAdd atomicSub atomicExch atomicMin atomicMax atomicInc atomicDec atomicCAS atomicAnd
atomicOr atomicXor double4_16a double4_32a long4_16a long4_32a longlong4_16a longlong4_32a"""


def _reserved() -> frozenset[str]:
    library = _LIBRARY.split()
    integers = [sign + base for sign in ("", "u") for base in ("char", "short", "int", "long", "longlong")]
    vectors = [f"{scalar}{count}" for scalar in (*integers, "float", "double") for count in range(1, 5)]
    vectors += [f"make_{vector}" for vector in vectors]
    in_ops = re.findall(r"[A-Za-z_]\w*", " ".join((*_ops().values(), *APPROXIMATE.values())))
    return CXX_WORDS | {*library, *(f"{word}f" for word in library), *_BUILT_IN.split(), *vectors, *in_ops}


def _shuffle(dtype: DType, distance: int) -> str:
    """The template of a shuffle; types of less than 32 bits travel as int."""
    value = "{}" if dtype.bits >= 32 else "(int){}"
    word, lane = way_of(distance)
    call = f"__shfl{word}_sync(0xffffffffu, {value}, {lane})"
    return call if dtype.bits >= 32 else f"({TYPES[dtype]}){call}"


_INSTRUCTIONS = {
    "fusec_maximum_float32": "max.NaN.f32 %0, %1, %2", "fusec_minimum_float32": "min.NaN.f32 %0, %1, %2",
    "fusec_fmax_float32": "max.f32 %0, %1, %2", "fusec_fmin_float32": "min.f32 %0, %1, %2",
}  # fmt: skip
"""Functions of float32 that are one instruction of PTX on devices of ARCH and later; 0.0 is greater than -0.0 there."""


def by_instruction(name: str, parameters: Sequence[str], body: str) -> str:
    """The body of a function, or one instruction where devices have it."""
    instruction = _INSTRUCTIONS.get(name)
    if instruction is None:
        return body
    given = ", ".join(f'"f"({each})' for each in parameters)
    asm = f'    float found;\n    asm("{instruction};" : "=f"(found) : {given});\n    return found;'
    return _where_devices_have(asm, body)


SPELLING = Spelling(
    target="cuda",
    specialised=by_instruction,
    types=TYPES,
    native=frozenset(),
    long_suffix="ll",
    function=FUNCTION,
    rare=f"{FUNCTION}__noinline__ ",
    pointers={"global": "", "local": "", "shared": "__shared__ ", "told": "__shared__ "},
    ops=_ops(),
    casts=_casts(),
    bitcasts=_bitcasts(),
    float_bits={dtypes.FLOAT32: "__int_as_float({})", dtypes.FLOAT64: "__longlong_as_double({})"},
    signed_remainder=True,
    reserved=_reserved(),
    helpers=_helpers(),
    atomic=atomic_template,
    groups=True,
    leave="continue",
    approximate=APPROXIMATE,
    shuffle=_shuffle,
    # not __constant__, whose cache reads one address at a time
    table="static __device__ const",
    barrier=BARRIER,
    meeting=MEETING,
    tell=TELL,
)
DIALECT = Dialect(SPELLING, _frame)
GENERATOR = replace(c_family.generator_of(DIALECT), beside=beside, ended=ended)
