"""The differences between C-family targets: how each spells types, ops, helpers and kernels.

The shared printer asks a `Spelling`; it never tests which target it prints for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from fusec.base.dtypes import COMPLEX64, COMPLEX128, STORAGE_FLOATS, DType, unsigned_of
from fusec.base.ops import TABLE
from fusec.base.records import dataclass, field
from fusec.ir.expr import Pointer, Space, Struct, Type

OpKey = tuple[str, DType]
Cast = tuple[DType, DType]

COMPLEX_STRUCTS = {COMPLEX64: "complex64", COMPLEX128: "complex128"}
HELPER_PREFIX = "fusec_"  # every helper function starts with it, so that the printer finds what a text needs


def library_calls(dtype: DType, suffix: str = "") -> dict[OpKey, str]:
    """Templates of the primitive ops that C's library has functions for."""
    rows = [row for row in TABLE.values() if row.primitive and row.c]
    return {(row.name, dtype): f"{next(iter(row.c_names))}{suffix}({', '.join(['{}'] * row.arity)})" for row in rows}


class StructNames(NamedTuple):
    """The names of a struct and its fields in the text."""

    name: str
    fields: Mapping[str, str]


@dataclass(frozen=True)
class Spelling:
    """One C-family target.

    types: how each dtype is stored; storage floats without a type of their own are carried as unsigned integers.
    native: storage floats that do have a type of their own. long_suffix: of a 64-bit integer literal.
    function: what stands before a device function; rare: before one that few arguments need. pointers: what stands
    before a pointed-to type, by address space. specialised: the body of a function, given its name and parameters, or
    what is there instead on some devices.
    ops: templates for ops that are not operators, by name and operand dtype. casts, bitcasts: templates for changes of
    type that a plain cast does not do. float_bits: template of a float from the hexadecimal digits of its bits.
    signed_remainder: `%` is defined for negative operands. helpers: all helper functions by name, callees first.
    atomic: template (pointer {p}, operands {0} and {1}) of an atomic update, load or store in global or shared memory,
    None if there is none; its third argument says whether the old value is wanted. groups: a thread takes several
    neighbours where that pays. leave: the statement that ends the work of one element. approximate:
    templates that take the place of `ops` in the user's expressions where approximations will do. shuffle: template of
    the value that a position so much further in the group has, or with 0 the first one. table: what stands before a
    constant array at file scope. barrier: the statement by which the threads of a block meet; meeting: those
    of several blocks. tell: template of a store in arrays of so many blocks. structs, called: the
    names of structs and functions of the kernel that is printed.
    """

    target: str
    types: Mapping[DType, str]
    native: frozenset[DType]
    long_suffix: str
    function: str
    rare: str
    specialised: Callable[[str, Sequence[str], str], str]
    pointers: Mapping[Space, str]
    ops: Mapping[OpKey, str]
    casts: Mapping[Cast, str]
    bitcasts: Mapping[Cast, str]
    float_bits: Mapping[DType, str]
    signed_remainder: bool
    reserved: frozenset[str]
    helpers: Mapping[str, str]
    atomic: Callable[[str, DType, bool, Space], str | None]
    groups: bool
    leave: str
    approximate: Mapping[OpKey, str]
    shuffle: Callable[[DType, int], str]
    table: str
    barrier: str
    meeting: str = ""
    tell: str = ""
    structs: Mapping[Struct, StructNames] = field(default_factory=dict)
    called: Mapping[str, str] = field(default_factory=dict)

    def carrier(self, dtype: DType) -> DType:
        """The dtype whose C type holds `dtype`: an unsigned integer for storage floats the target has no type for."""
        if dtype in STORAGE_FLOATS and dtype not in self.native:
            return unsigned_of(dtype.bits)
        return dtype

    def type(self, of: Type) -> str:
        """The C type of a value."""
        match of:
            case DType():
                return self.types[of]
            case Struct():
                return self.structs[of].name
            case Pointer():
                const = "const " if of.const else ""
                return f"{self.pointers[of.space]}{const}{self.types[of.element]}*"

    def integer_type(self, bits: int, signed: bool) -> str:
        """The C integer of a width."""
        return self.types[DType(f"{'int' if signed else 'uint'}{bits}", "signed" if signed else "unsigned", bits)]
