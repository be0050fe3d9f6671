"""The meanings of names, and the places that can be read and written."""

from __future__ import annotations

from fusec.base.dtypes import DType
from fusec.base.records import dataclass
from fusec.frontends.c import syntax as s
from fusec.ir.expr import Expr, Pointer, Struct
from fusec.ir.loops import Declare, Stmt


@dataclass
class Variable:
    """A local variable, function parameter or scalar argument."""

    name: str
    type: DType | Struct
    const: str = ""  # why it may not be assigned, "" if it may


@dataclass(frozen=True)
class Address:
    """A place in memory, and the value of a pointer to it."""

    pointer: Expr
    element: DType  # as the text sees it, which may differ in sign from what is stored
    const: str = ""  # why it may not be written, "" if it may
    offset: Expr | None = None  # bytes, of an address that was cast to one of bytes: it can only be moved and cast back


@dataclass(frozen=True)
class FieldPlace:
    """A field of a local struct."""

    variable: Variable
    parts: tuple[str, ...]  # the fields of the IR that hold it, several if it is a struct itself
    type: DType | Struct


@dataclass(frozen=True)
class StructAddress:
    """A struct in memory."""

    pointers: tuple[Expr, ...]  # the address of each field of the IR
    type: Struct
    const: str = ""  # why it may not be written, "" if it may
    pointer: bool = False  # the name is that of a pointer to it


@dataclass
class LocalArrayOf:
    """A local array of one or more dimensions, stored row by row."""

    name: str
    element: DType
    lengths: tuple[int, ...]
    const: str = ""


@dataclass
class PointerVariable:
    """A pointer variable."""

    name: str
    element: DType  # the declared dtype of the target
    const: str = ""
    type: Pointer | None = None  # None until the first assignment tells what memory it points into
    declared: tuple[list[Stmt], int] | None = None  # where its Declare stands, to be completed then
    in_bytes: bool = False  # made by a cast to a pointer to bytes

    def settle(self, type_: Pointer) -> None:
        """Fix the type, and complete the declaration."""
        self.type = type_
        if self.declared is not None:
            block, at = self.declared
            block[at] = Declare(self.name, type_, line=block[at].line)


@dataclass
class RawArray:
    """A raw array parameter."""

    name: str
    dtype: DType
    ndim: int | None  # None until an index by axes tells
    const: str = ""


@dataclass(frozen=True)
class Indexer:
    """``_ind``, the iteration space."""

    axes: tuple[int, ...] | None = None  # those that it has; None for all
    size: Expr | None = None  # its elements, if not the space's


@dataclass(frozen=True)
class NamedConstant:
    """A named constant."""

    value: Expr


@dataclass(frozen=True)
class GlobalArray:
    """A constant array of the preamble, declared again in each function that uses it."""

    declaration: s.Declaration
    declarator: s.Declarator


Place = Variable | Address | FieldPlace | StructAddress
Symbol = Place | LocalArrayOf | PointerVariable | RawArray | Indexer | NamedConstant | GlobalArray
