"""A target that fusec does not have: C++ for OpenCL, as CONTRIBUTING says that one is added; see `test_targets`."""

from fusec.base.dtypes import (
    BOOL,
    COMPLEX64,
    COMPLEX128,
    FLOAT32,
    FLOAT64,
    INTEGERS,
    STORAGE_FLOATS,
    DType,
    unsigned_of,
)
from fusec.codegen import c_family
from fusec.codegen.c_family.conversions import storage_casts
from fusec.codegen.c_family.file import Part, indented
from fusec.codegen.c_family.frame import Dialect, Frame
from fusec.codegen.c_family.names import CXX_WORDS
from fusec.codegen.c_family.routines import Words, complex_helpers, integer_helpers, odd_helpers, storage_helpers
from fusec.codegen.c_family.spelling import COMPLEX_STRUCTS, Spelling, library_calls
from fusec.ir.loops import way_of

WIDTHS = {8: "char", 16: "short", 32: "int", 64: "long"}
TYPES = {dtype: ("u" if dtype.kind == "unsigned" else "") + WIDTHS[dtype.bits] for dtype in INTEGERS}
TYPES |= {dtype: TYPES[unsigned_of(dtype.bits)] for dtype in STORAGE_FLOATS}
TYPES |= {BOOL: "bool", FLOAT32: "float", FLOAT64: "double"}
TYPES |= {dtype: COMPLEX_STRUCTS[dtype] for dtype in (COMPLEX64, COMPLEX128)}
PAIRS = {FLOAT32: ("int", "uint"), FLOAT64: ("long", "ulong")}

OPS = library_calls(FLOAT32) | library_calls(FLOAT64) | {("sqrt", dtype): "sqrt({})" for dtype in PAIRS}
OPS |= {("multiply_high", dtype): "mul_hi({}, {})" for dtype in INTEGERS}
OPS |= {("count_ones", dtype): "(int)popcount({})" for dtype in INTEGERS}
OPS |= {("count_leading_zeros", dtype): "(int)clz({})" for dtype in INTEGERS}
CASTS = storage_casts(frozenset()) | {
    (source, target): f"({{0}} == {{0}} ? convert_{TYPES[target]}_sat_rtz({{0}}) : 0)"
    for source in PAIRS
    for target in INTEGERS
}
BITCASTS = {(real, DType(f"{sign}int{real.bits}", kind, real.bits)): f"as_{sign}{WIDTHS[real.bits]}({{}})"
            for real in PAIRS for sign, kind in (("", "signed"), ("u", "unsigned"))}  # fmt: skip
BITCASTS |= {(target, source): f"as_{TYPES[source]}({{}})" for source, target in BITCASTS}

WORDS = Words("", TYPES, "as_uint({})", "as_float({})", "(int)clz({})")
HELPERS = {
    "fusec_moved": "#define fusec_moved(base, nbytes) ((__typeof__(base))((__global char*)(base) + (nbytes)))",
    **integer_helpers(WORDS), **odd_helpers(WORDS), **storage_helpers(WORDS, frozenset()),
    **complex_helpers(WORDS, (COMPLEX64, COMPLEX128)),
}  # fmt: skip


def shuffle(dtype: DType, distance: int) -> str:
    word, lane = way_of(distance)
    return f"sub_group_shuffle{word}({{}}, {lane})"


def frame(kernel: Frame) -> list[Part]:
    at, size = kernel.places.index, kernel.places.use("size").text
    lines = [f"const {'long' if kernel.is_long else 'uint'} {at} = get_global_id(0);", f"if ({at} >= {size}) return;"]
    lines += [*kernel.coordinates(at), *kernel.scalar_copies(), *kernel.body]
    params = ",\n    ".join(kernel.parameter(slot, name) for slot, name in kernel.slots)
    text = "\n".join([f"__kernel void {kernel.name}(\n    {params})\n{{", *indented(lines, 1), "}"])
    return [("", kernel.header()), ("", "#pragma OPENCL FP_CONTRACT OFF"), *kernel.above, (kernel.name, text)]


SPELLING = Spelling(
    target="opencl", types=TYPES, native=frozenset(), long_suffix="l", function="", rare="",
    specialised=lambda *given: given[-1],
    pointers={"global": "__global ", "local": "", "shared": "__local "}, ops=OPS, casts=CASTS, bitcasts=BITCASTS,
    float_bits={FLOAT32: "as_float({}u)", FLOAT64: "as_double({}ul)"}, signed_remainder=False,
    reserved=CXX_WORDS | {"uchar", "ushort", "uint", "ulong", "half"}, helpers=HELPERS, atomic=lambda *_: None,
    groups=False, leave="return", approximate={}, shuffle=shuffle, table="__constant",
    barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
)  # fmt: skip
GENERATOR = c_family.generator_of(Dialect(SPELLING, frame))
