"""Entries of constant tables: permutations of registers where the target has them, else loads from memory.

x86-64 permutes a register, or two, by the low bits of every lane's index in about a cycle (VPERMPS, VPERMI2PS and their
kin); longer tables take several of these and a choice by the next bit. What LLVM offers without intrinsics, a vector
taken apart and an element extracted for every lane, does not come to such instructions.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.base.dtypes import FLOAT32, FLOAT64, DType
from fusec.codegen.llvm.values import Builder, Value, float_literal, integer, integer_literal, register_type

_MOST_REGISTERS = 8  # of a table: permutations of more of them, and the choices between these, cost as much as loads


def lookup(b: Builder, entries: Sequence[int], dtype: DType, index: Value) -> Value:
    """The entry, by its bits, that the low bits of an integer choose; every lane has its own index."""
    length = (
        0 if b.options.permutes < 512 and dtype.bits > 32 else b.options.permutes // dtype.bits
    )  # entries in a register
    if index.varying and b.lanes > 1 and length and len(entries) <= _MOST_REGISTERS * length:
        return _permuted(b, entries, dtype, b.cast_integer(b.spread(index), f"i{dtype.bits}"))
    return _loaded(b, entries, dtype, index)


# --- from memory -----------------------------------------------------------------------------------------------


def _loaded(b: Builder, entries: Sequence[int], dtype: DType, index: Value) -> Value:
    llvm, count = register_type(dtype), len(entries)
    array = f"[{count} x {llvm}]"
    table = b.table(f"{array} [{_literals(entries, llvm)}]")
    index = b.cast_integer(b.spread(index) if index.varying else index, "i64")
    index = b.binary("and", index, integer(count - 1))
    if not index.varying:
        place = b.let(f"getelementptr {array}, ptr {table}, i64 0, i64 {index.text}")
        return Value(llvm, b.let(f"load {llvm}, ptr {place}"))
    vector, places = b.vector_type(llvm), b.vector_type("ptr")
    mask, suffix = b.vector_type("i1"), b.suffix(Value(llvm, "", varying=True))
    name = f"llvm.masked.gather.{suffix}.v{b.lanes}p0"
    b.declare(f"declare {vector} @{name}({places}, i32, {mask}, {vector})")
    place = b.let(f"getelementptr {llvm}, ptr {table}, {b.typed(index)}")
    given = f"{places} {place}, i32 {dtype.nbytes}, {mask} splat (i1 true), {vector} poison"
    return Value(llvm, b.let(f"call {vector} @{name}({given})"), varying=True)


def _literals(entries: Sequence[int], llvm: str) -> str:
    literal = integer_literal if llvm[0] == "i" else float_literal
    return ", ".join(f"{llvm} {literal(bits, llvm)}" for bits in entries)


# --- by permutation --------------------------------------------------------------------------------------------


def _permuted(b: Builder, entries: Sequence[int], dtype: DType, index: Value) -> Value:
    """The lanes in registers of the target's width, each permuted by itself; integers as the floats of their bits."""
    given, llvm = register_type(dtype), register_type(FLOAT32 if dtype.bits == 32 else FLOAT64)
    length = b.options.permutes // dtype.bits
    if len(entries) < length:
        entries = list(entries) * (length // len(entries))
    parts = registers(b, index.text, index.type, length)
    found = joined(b, [_register(b, entries, given, part, length) for part in parts], llvm, length)
    if given != llvm:
        found = b.let(f"bitcast {b.vector_type(llvm)} {found} to {b.vector_type(given)}")
    return Value(given, found, varying=True)


def registers(b: Builder, text: str, llvm: str, length: int) -> list[str]:
    """A vector as registers of `length` lanes; a shorter one is repeated."""
    if b.lanes == length:
        return [text]
    vector = b.vector_type(llvm)
    starts = range(0, max(b.lanes, length), length)
    return [
        b.let(
            f"shufflevector {vector} {text}, {vector} poison, {_order([(start + i) % b.lanes for i in range(length)])}"
        )
        for start in starts
    ]


def joined(b: Builder, found: list[str], llvm: str, length: int) -> str:
    """The registers as one vector of all lanes."""
    width = length
    while len(found) > 1:
        vector, order = f"<{width} x {llvm}>", _order(range(2 * width))
        pairs = zip(found[::2], found[1::2], strict=True)
        found = [b.let(f"shufflevector {vector} {left}, {vector} {right}, {order}") for left, right in pairs]
        width *= 2
    if width > b.lanes:
        vector = f"<{width} x {llvm}>"
        return b.let(f"shufflevector {vector} {found[0]}, {vector} poison, {_order(range(b.lanes))}")
    return found[0]


def _order(lanes: Sequence[int]) -> str:
    return f"<{len(lanes)} x i32> <{', '.join(f'i32 {lane}' for lane in lanes)}>"


def _register(b: Builder, entries: Sequence[int], given: str, index: str, length: int) -> str:
    """The entries for one register of indices; given: their type, integers of whose bits floats are made."""
    llvm = {"i32": "float", "i64": "double"}.get(given, given)
    vector, integers = f"<{length} x {llvm}>", f"<{length} x i{64 if llvm == 'double' else 32}>"
    pieces = [f"<{_literals(entries[start : start + length], given)}>" for start in range(0, len(entries), length)]
    if given != llvm:
        pieces = [b.let(f"bitcast <{length} x {given}> {piece} to {vector}") for piece in pieces]
    if b.options.permutes == 512:
        single, double = _PERMUTE[llvm], _PERMUTE_TWO[llvm]
        if len(pieces) == 1:
            b.declare(f"declare {vector} @{single}({vector}, {integers})")
            return b.let(f"call {vector} @{single}({vector} {pieces[0]}, {integers} {index})")
        b.declare(f"declare {vector} @{double}({vector}, {integers}, {vector})")
        found = [
            b.let(f"call {vector} @{double}({vector} {low}, {integers} {index}, {vector} {high})")
            for low, high in zip(pieces[::2], pieces[1::2], strict=True)
        ]
        return _chosen(b, found, vector, integers, index, 2 * length)
    b.declare(f"declare {vector} @{_PERMUTE_256}({vector}, {integers})")
    found = [b.let(f"call {vector} @{_PERMUTE_256}({vector} {piece}, {integers} {index})") for piece in pieces]
    return _chosen(b, found, vector, integers, index, length)


_PERMUTE = {"float": "llvm.x86.avx512.permvar.sf.512", "double": "llvm.x86.avx512.permvar.df.512"}
_PERMUTE_TWO = {"float": "llvm.x86.avx512.vpermi2var.ps.512", "double": "llvm.x86.avx512.vpermi2var.pd.512"}
_PERMUTE_256 = "llvm.x86.avx2.permps"


def _chosen(b: Builder, found: list[str], vector: str, integers: str, index: str, bit: int) -> str:
    """One of the candidates by the bits of the index from `bit` on."""
    kind, count = integers[integers.index("i") :].rstrip(">"), integers[1 : integers.index(" ")]
    while len(found) > 1:
        part = b.let(f"and {integers} {index}, splat ({kind} {bit})")
        is_low = b.let(f"icmp eq {integers} {part}, zeroinitializer")
        pairs = zip(found[::2], found[1::2], strict=True)
        found = [b.let(f"select <{count} x i1> {is_low}, {vector} {low}, {vector} {high}") for low, high in pairs]
        bit *= 2
    return found[0]
