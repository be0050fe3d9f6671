"""The helper functions of C texts, by name, for operations that C leaves undefined and fusec defines.

Only those that a kernel needs, directly or through others, are printed above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from fusec.base import dtypes
from fusec.base.dtypes import DType
from fusec.base.records import dataclass

_CALL = re.compile(r"\bfusec_\w+")
_COMMENT = re.compile(r"^ *//.*$", re.MULTILINE)


def needed(texts: Iterable[str], available: Mapping[str, str]) -> list[str]:
    """The names of the helper functions that texts mention, directly or indirectly; callees first."""
    wanted: set[str] = set()
    pending = list(texts)
    while pending:
        found = {name for name in _CALL.findall(_COMMENT.sub("", pending.pop())) if name in available} - wanted
        wanted |= found
        pending += [available[name] for name in found]
    return [name for name in available if name in wanted]


@dataclass(frozen=True)
class Words:
    """How a target spells what helpers are made of: templates over {} except `function` and `types`."""

    function: str
    types: Mapping[DType, str]
    bits_of_float: str
    float_of_bits: str
    leading_zeros_64: str

    def define(self, result: DType, name: str, parameters: str, body: str, comment: str = "") -> str:
        """The text of one helper; `parameters` and `body` may name dtypes in angle brackets."""
        lines = "\n".join(f"    {line}" for line in self.spell(body).strip().split("\n"))
        head = f"{self.function}{self.types[result]} {name}({self.spell(parameters)})"
        return (f"// {comment}\n" if comment else "") + f"{head} {{\n{lines}\n}}"

    def spell(self, text: str) -> str:
        """Dtypes in angle brackets as C types."""
        return _DTYPE.sub(lambda found: self.types[_NAMES[found[1]]], text)


_NAMES = {
    dtype.name: dtype
    for dtype in (*dtypes.INTEGERS, dtypes.FLOAT32, dtypes.FLOAT64, dtypes.COMPLEX64, dtypes.COMPLEX128)
}
_DTYPE = re.compile(f"<({'|'.join(_NAMES)})>")


# Note [Wide counts]: where a shift is chosen by its count, the NVPTX part of LLVM takes the shift alone, since those of
# PTX clamp; but they see only the low 32 bits of a count of 64 (llvm-project #201165, and NVRTC 13.4 for sm_100 and
# later). So it is the shifted value that is chosen, not the result.


def integer_helpers(words: Words) -> dict[str, str]:
    """Division, remainder, shifts and absolute value for all operands, as the op table defines them."""
    helpers: dict[str, str] = {}
    for dtype in dtypes.INTEGERS:
        signed, bits = dtype.kind == "signed", dtype.bits
        ring = dtypes.unsigned_of(max(bits, 32))
        pair, count = f"<{dtype}> a, <{dtype}> b", f"<{dtype}> a, <{dtype}> count"

        def add(op: str, parameters: str, body: str, comment: str, dtype: DType = dtype) -> None:
            name = f"fusec_{op}_{dtype}"
            helpers[name] = words.define(dtype, name, parameters, body, comment)

        minus = f"if (b == -1) return (<{dtype}>)(0 - (<{ring}>)a);\n" if signed else ""
        add("quotient", pair, f"if (b == 0) return 0;\n{minus}return a / b;", "a / b; 0 if b is 0")
        remainder = f"if (b == 0{' || b == -1' if signed else ''}) return 0;\n"
        remainder += f"return (<{dtype}>)(a - a / b * b);" if signed else "return a % b;"
        add("modulo", pair, remainder, "a % b, with the sign of a; 0 if b is 0")
        outside = f"count < 0 || count >= {bits}" if signed else f"count >= {bits}"
        left = f"return {outside} ? 0 : (<{dtype}>)((<{ring}>)a << count);"
        right = f"a >> ({outside} ? {bits - 1} : count)" if signed else f"{outside} ? 0 : a >> count"
        if bits == 64:  # see Note [Wide counts]
            left = f"return (<{dtype}>)((<{ring}>)({outside} ? 0 : a) << (count & 63));"
            right = right if signed else f"({outside} ? 0 : a) >> (count & 63)"
        add("left_shift", count, left, "a << count as an endless register would")
        add("right_shift", count, f"return {right};", "a >> count as an endless register would")
        if signed:
            negated = f"return a < 0 ? (<{dtype}>)(0 - (<{ring}>)a) : a;"
            add("absolute", f"<{dtype}> a", negated, "the least number stays itself")
    return helpers


def complex_helpers(words: Words, wanted: Iterable[DType]) -> dict[str, str]:
    """Comparison and conversion of complex numbers."""
    helpers: dict[str, str] = {}
    fold = {dtypes.COMPLEX64: "0.0f", dtypes.COMPLEX128: "0.0"}
    for dtype in wanted:
        pair = f"<{dtype}> a, <{dtype}> b"
        equal, nonzero = f"fusec_equal_{dtype}", f"fusec_nonzero_{dtype}"
        body = "return a.re == b.re && a.im == b.im;"
        helpers[equal] = f"{words.function}bool {equal}({words.spell(pair)}) {{\n    {body}\n}}"
        body = f"return a.re != {fold[dtype]} || a.im != {fold[dtype]};"
        helpers[nonzero] = f"{words.function}bool {nonzero}({words.spell(f'<{dtype}> a')}) {{\n    {body}\n}}"
    if dtypes.COMPLEX128 in wanted:
        wide, narrow = "fusec_complex64_to_complex128", "fusec_complex128_to_complex64"
        parts = {
            wide: (dtypes.COMPLEX128, dtypes.COMPLEX64, "float64"),
            narrow: (dtypes.COMPLEX64, dtypes.COMPLEX128, "float32"),
        }
        for name, (target, source, part) in parts.items():
            body = f"return <{target}>{{(<{part}>)a.re, (<{part}>)a.im}};"
            helpers[name] = words.define(target, name, f"<{source}> a", body)
    return helpers


@dataclass(frozen=True)
class _Narrow:
    """A narrow float format: exponent bias, stored mantissa bits, greatest finite code, code of what exceeds it."""

    dtype: DType
    bias: int
    greatest: int
    beyond: int
    nan: int


_FORMATS = (
    _Narrow(dtypes.BFLOAT16, 127, 0x7F7F, 0x7F80, 0x7FC0),
    _Narrow(dtypes.FLOAT16, 15, 0x7BFF, 0x7C00, 0x7E00),
    _Narrow(dtypes.FLOAT8_E5M2, 15, 0x7B, 0x7C, 0x7E),
    _Narrow(dtypes.FLOAT8_E4M3FN, 7, 0x7E, 0x7F, 0x7F),  # no infinity: what exceeds 448 is nan
)


def storage_helpers(words: Words, native: frozenset[DType]) -> dict[str, str]:
    """Narrow floats to and from float32 by integer arithmetic, for formats the target has no type for."""
    helpers: dict[str, str] = {}
    for form in _FORMATS:
        if form.dtype not in native:
            widen, narrow = f"fusec_{form.dtype}_to_float32", f"fusec_float32_to_{form.dtype}"
            if form.dtype == dtypes.BFLOAT16:
                bits = words.float_of_bits.format("(<uint32>)x << 16")
                helpers[widen] = words.define(dtypes.FLOAT32, widen, "<uint16> x", f"return {bits};")
            else:
                helpers[widen] = _widen(words, widen, form)
            helpers[narrow] = _narrow(words, narrow, form)
    return helpers


def _widen(words: Words, name: str, form: _Narrow) -> str:
    width, mantissa = form.dtype.bits, form.dtype.mantissa
    top = 1 << (width - 1)
    least = float(2.0 ** (1 - form.bias - mantissa))
    special = form.greatest + 1
    infinite = f"0x7f800000u | (magnitude - {special:#x}u) << {23 - mantissa}"
    if form.beyond == form.nan:
        infinite = "0x7fc00000u"
    shifted = f"(magnitude << {23 - mantissa}) + {(127 - form.bias) << 23:#x}u"
    body = f"""
const <uint32> sign = (<uint32>)(x & {top:#x}) << {32 - width}, magnitude = x & {top - 1:#x};
if (magnitude < {1 << mantissa:#x}) {{  // subnormal
    const <float32> small = (<float32>)magnitude * {least.hex().replace("0x1.0000000000000p", "0x1p")}f;
    return sign ? -small : small;
}}
if (magnitude > {form.greatest:#x}) return {words.float_of_bits.format("sign | " + infinite)};
return {words.float_of_bits.format(f"sign | ({shifted})")};"""
    return words.define(dtypes.FLOAT32, name, f"<uint{width}> x", body)


def _narrow(words: Words, name: str, form: _Narrow) -> str:
    """Round to nearest even; a subnormal result by adding the power of two whose last place is the least subnormal."""
    width, mantissa = form.dtype.bits, form.dtype.mantissa
    top = 1 << (width - 1)
    drop = 23 - mantissa
    carrier = f"<uint{width}>"
    rebias = f" - {(127 - form.bias) << 23:#x}u" if form.bias != 127 else ""
    rounded = f"(magnitude + {(1 << (drop - 1)) - 1:#x}u + (magnitude >> {drop} & 1u){rebias}) >> {drop}"
    code = f"const <uint32> code = {rounded};"
    if form.bias != 127:
        anchor = f"0x1p{1 - form.bias - mantissa + 23}f"
        anchor_bits = (127 + 1 - form.bias - mantissa + 23) << 23
        value = words.float_of_bits.format("magnitude")
        sum_bits = words.bits_of_float.format(f"{value} + {anchor}")
        code = f"""const <uint32> code = magnitude < {(128 - form.bias) << 23:#x}u
    ? {sum_bits} - {anchor_bits:#x}u
    : {rounded};"""
    bounded = f"code > {form.greatest:#x}u ? {form.beyond:#x}u : code"
    if form.bias == 127 and form.beyond == form.greatest + 1:
        bounded = "code"  # infinity itself is the greatest code
    body = f"""
const <uint32> bits = {words.bits_of_float.format("x")}, magnitude = bits & 0x7fffffffu;
const <uint32> sign = bits >> {32 - width} & {top:#x}u;
{code}
return ({carrier})(sign | (magnitude > 0x7f800000u ? {form.nan:#x}u : {bounded}));"""
    return words.define(dtypes.unsigned_of(width), name, "<float32> x", body, "rounds to nearest, ties to even")


def odd_helpers(words: Words) -> dict[str, str]:
    """Integers as float32 rounded to odd, which a second rounding, to a narrow float, then rounds correctly."""
    zeros = words.leading_zeros_64.format("x")
    unsigned = f"""
const int drop = 40 - {zeros};  // bits beyond the 24 that a float holds
if (drop <= 0) return (<float32>)x;
const <uint64> kept = x >> drop;
return (<float32>)((kept << drop != x ? kept | 1 : kept) << drop);"""
    signed = (
        "const <float32> size = fusec_odd_uint64(x < 0 ? 0 - (<uint64>)x : (<uint64>)x);\nreturn x < 0 ? -size : size;"
    )
    comment = "toward zero, the last bit set if anything was lost"
    return {
        "fusec_odd_uint64": words.define(dtypes.FLOAT32, "fusec_odd_uint64", "<uint64> x", unsigned, comment),
        "fusec_odd_int64": words.define(dtypes.FLOAT32, "fusec_odd_int64", "<int64> x", signed, comment),
    }
