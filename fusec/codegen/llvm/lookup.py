"""Entries of constant tables: permutations of registers where the target has them, else loads from memory.

x86-64 permutes a register, or two, by the low bits of every lane's index in about a cycle (VPERMPS, VPERMI2PS and their
kin); longer tables take several of these and a choice by the next bit. What LLVM offers without intrinsics, a vector
taken apart and an element extracted for every lane, does not come to such instructions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fusec.base.dtypes import FLOAT32, FLOAT64, DType
from fusec.codegen.llvm.memory import ALL_LANES, gather
from fusec.codegen.llvm.values import (
    Builder,
    Value,
    bit_width,
    float_literal,
    integer,
    integer_literal,
    joined,
    register_type,
    registers,
)

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
    places = Value("ptr", b.let(f"getelementptr {llvm}, ptr {table}, {b.typed(index)}"), varying=True)
    return gather(b, places, ALL_LANES, llvm, dtype.nbytes)


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


def _register(b: Builder, entries: Sequence[int], given: str, index: str, length: int) -> str:
    """The entries for one register of indices; given: their type, integers of whose bits floats are made."""
    llvm = {"i32": "float", "i64": "double"}.get(given, given)
    vector, numbers = f"<{length} x {llvm}>", f"<{length} x i{bit_width(llvm)}> {index}"
    pieces = [f"<{_literals(entries[start : start + length], given)}>" for start in range(0, len(entries), length)]
    if given != llvm:
        pieces = [b.let(f"bitcast <{length} x {given}> {piece} to {vector}") for piece in pieces]
    typed = [f"{vector} {piece}" for piece in pieces]
    if b.options.permutes < 512:
        return _chosen(b, [b.call(vector, _PERMUTE_256, each, numbers) for each in typed], vector, numbers, length)
    if len(typed) == 1:
        return b.call(vector, _PERMUTE[llvm], typed[0], numbers)
    pairs = zip(typed[::2], typed[1::2], strict=True)
    found = [b.call(vector, PERMUTE_TWO[llvm], low, numbers, high) for low, high in pairs]
    return _chosen(b, found, vector, numbers, 2 * length)


_PERMUTE = {"float": "llvm.x86.avx512.permvar.sf.512", "double": "llvm.x86.avx512.permvar.df.512"}
PERMUTE_TWO = {
    "float": "llvm.x86.avx512.vpermi2var.ps.512",
    "double": "llvm.x86.avx512.vpermi2var.pd.512",
    "i32": "llvm.x86.avx512.vpermi2var.d.512",
    "i64": "llvm.x86.avx512.vpermi2var.q.512",
}
_PERMUTE_256 = "llvm.x86.avx2.permps"


def _chosen(b: Builder, found: list[str], vector: str, index: str, bit: int) -> str:
    """One of the candidates by the bits of the index, given with its type, from `bit` on."""
    count, kind = re.findall(r"\w+", index)[0], re.findall(r"\w+", index)[2]
    while len(found) > 1:
        part = b.let(f"and {index}, splat ({kind} {bit})")
        is_low = b.let(f"icmp eq <{count} x {kind}> {part}, zeroinitializer")
        pairs = zip(found[::2], found[1::2], strict=True)
        found = [b.let(f"select <{count} x i1> {is_low}, {vector} {low}, {vector} {high}") for low, high in pairs]
        bit *= 2
    return found[0]
