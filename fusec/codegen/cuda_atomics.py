"""Atomic updates on CUDA: native instructions where the hardware has them, compare-and-swap loops elsewhere."""

from __future__ import annotations

from fusec.base.dtypes import BOOL, COMPUTE_FLOATS, FLOAT32, INT64, INTEGERS, STORAGE_FLOATS, UINT64, DType
from fusec.codegen.c_family.routines import Words
from fusec.ir.expr import Space

_WIDE = "(unsigned long long*){p}"
_NATIVE = {
    "add": "atomicAdd({p}, {0})",
    "subtract": "atomicSub({p}, {0})",
    "minimum": "atomicMin({p}, {0})",
    "maximum": "atomicMax({p}, {0})",
    "and": "atomicAnd({p}, {0})",
    "or": "atomicOr({p}, {0})",
    "xor": "atomicXor({p}, {0})",
    "exchange": "atomicExch({p}, {0})",
    "compare_exchange": "atomicCAS({p}, {0}, {1})",
}
_CALLS = {op: template.split("(")[0] for op, template in _NATIVE.items()}
_SHARED_WORDS = {"load": "{p}", "store": "{p}, {0}"}
WORDS = tuple(dtype for dtype in INTEGERS if dtype.bits >= 32)  # that loads and stores of one thread take whole


def atomic_template(op: str, dtype: DType, wanted: bool, space: Space = "global") -> str | None:
    """The template of an update of `dtype` in global or shared memory, whose addresses are alike; None for complex.

    Minimum and maximum of floats replace a nan; compare-and-exchange of floats compares values, not bits.
    """
    del space
    if dtype.is_complex:
        return None
    if op in _SHARED_WORDS:
        return f"fusec_atomic_{op}_{dtype}({_SHARED_WORDS[op]})" if dtype in WORDS else None
    if dtype.is_integer and dtype.bits == 32:
        return _NATIVE[op]
    if dtype in (INT64, UINT64):
        return _wide(op, dtype, wanted)
    if dtype in COMPUTE_FLOATS and op == "add":
        return _NATIVE[op]
    if dtype in COMPUTE_FLOATS and op == "subtract":
        return "atomicAdd({p}, -({0}))"
    if dtype == FLOAT32 and op == "exchange":
        return _NATIVE[op]
    arguments = "{p}, {0}, {1}" if op == "compare_exchange" else "{p}, {0}"
    return f"fusec_atomic_{op}_{dtype}({arguments})"


def _wide(op: str, dtype: DType, wanted: bool) -> str:
    """64-bit integers: the signed ones share the instructions of the unsigned, except for order."""
    if op in ("minimum", "maximum") or (dtype == UINT64 and op != "subtract"):
        return _NATIVE[op]
    if op == "subtract":
        pointer = "{p}" if dtype == UINT64 else _WIDE
        text = f"atomicAdd({pointer}, 0 - (unsigned long long)({{0}}))"
    else:
        operands = ["(unsigned long long)({0})"] + (["(unsigned long long)({1})"] if op == "compare_exchange" else [])
        text = f"{_CALLS[op]}({_WIDE}, {', '.join(operands)})"
    return f"(long long){text}" if wanted and dtype == INT64 else text


def atomic_helpers(words: Words) -> dict[str, str]:
    """Compare-and-swap loops for every update `atomic_template` names."""
    helpers = {name: text for dtype in WORDS for name, text in _shared_words(dtype, words)}
    small = [dtype for dtype in INTEGERS if dtype.bits < 32]
    for dtype in (BOOL, *small, *STORAGE_FLOATS, *COMPUTE_FLOATS):
        for op in _NATIVE:
            name = f"fusec_atomic_{op}_{dtype}"
            if atomic_template(op, dtype, wanted=True) == _NATIVE[op]:
                continue
            if dtype.is_float and op in ("and", "or", "xor"):
                continue
            helpers[name] = _loop(name, op, dtype, words)
    return helpers


def _shared_words(dtype: DType, words: Words) -> list[tuple[str, str]]:
    """Loads and stores that other threads see, and that no cache of one multiprocessor answers: relaxed ones of PTX."""
    c_type = words.types[dtype]
    load, store = (f"fusec_atomic_{op}_{dtype}" for op in _SHARED_WORDS)
    reads, writes = f"return *(const volatile {c_type}*)address;", f"*(volatile {c_type}*)address = value;"
    return [
        (load, f"{words.function}{c_type} {load}(const {c_type}* address) {{\n    {reads}\n}}"),
        (store, f"{words.function}void {store}({c_type}* address, {c_type} value) {{\n    {writes}\n}}"),
    ]


def _loop(name: str, op: str, dtype: DType, words: Words) -> str:
    c_type = words.types[dtype]
    second = f", {c_type} other" if op == "compare_exchange" else ""
    word = "unsigned long long" if dtype.bits == 64 else "unsigned"
    if dtype.bits >= 32:
        find = f"{word}* const at = ({word}*)address;"
        read, write = _bits_as(dtype, "assumed"), _as_bits(dtype, "next")
        result = _bits_as(dtype, "seen")
    else:
        find = (
            "const int shift = 8 * (int)((unsigned long long)address & 3);\n"
            "    unsigned* const at = (unsigned*)((unsigned long long)address - shift / 8);"
        )
        mask = f"{(1 << dtype.bits) - 1:#x}u"
        carrier = "unsigned short" if dtype.bits == 16 else "unsigned char"
        read, result = f"({c_type})(assumed >> shift & {mask})", f"({c_type})(seen >> shift & {mask})"
        write = f"(assumed & ~({mask} << shift)) | (unsigned)({carrier})next << shift"
    return f"""\
{words.function}{c_type} {name}({c_type}* address, {c_type} value{second}) {{
    {find}
    {word} seen = *at, assumed;
    do {{
        assumed = seen;
        const {c_type} old = {read};
        const {c_type} next = {_updated(op, dtype, words)};
        seen = atomicCAS(at, assumed, {write});
    }} while (seen != assumed);
    return {result};
}}"""


def _bits_as(dtype: DType, bits: str) -> str:
    return f"__uint_as_float({bits})" if dtype == FLOAT32 else f"__longlong_as_double((long long){bits})"


def _as_bits(dtype: DType, value: str) -> str:
    return f"__float_as_uint({value})" if dtype == FLOAT32 else f"(unsigned long long)__double_as_longlong({value})"


def _updated(op: str, dtype: DType, words: Words) -> str:
    """The new value from `old`, `value` and, for compare-and-exchange, `other`."""
    c_type = words.types[dtype]
    old, value = "old", "value"
    if dtype in STORAGE_FLOATS:
        old, value = (f"fusec_{dtype}_to_float32({each})" for each in (old, value))
    nan = f" || {old} != {old}" if dtype.is_float else ""
    match op:
        case "exchange":
            return "value"
        case "compare_exchange":
            return f"{old} == {value} ? other : old"
        case "minimum":
            return f"{value} < {old}{nan} ? value : old"
        case "maximum":
            return f"{value} > {old}{nan} ? value : old"
    symbol = {"add": "+", "subtract": "-", "and": "&", "or": "|", "xor": "^"}[op]
    if dtype in STORAGE_FLOATS:
        return f"fusec_float32_to_{dtype}({old} {symbol} {value})"
    return f"({c_type})({old} {symbol} {value})" if not dtype.is_float else f"{old} {symbol} {value}"
