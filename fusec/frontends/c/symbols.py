"""The meanings of names, and the places that can be read and written."""

from __future__ import annotations

from fusec.base.dtypes import DType
from fusec.base.records import dataclass
from fusec.frontends.c import syntax as s
from fusec.ir.expr import Expr, Pointer, Struct
from fusec.ir.loops import Declare, Stmt


@dataclass
class Variable:
    """A local variable, function parameter or scalar argument.

    const: why it may not be assigned, "" if it may.
    """

    name: str
    type: DType | Struct
    const: str = ""


@dataclass(frozen=True)
class Address:
    """A place in memory, and the value of a pointer to it.

    pointer: the IR pointer. element: the dtype as the text sees it, which may differ in sign from what is stored.
    const: why it may not be written, "" if it may. offset: for an address that was cast to one of bytes, how many bytes
    further on it lies; such an address can only be moved and cast back.
    """

    pointer: Expr
    element: DType
    const: str = ""
    offset: Expr | None = None


@dataclass(frozen=True)
class FieldPlace:
    """A field of a local struct. parts: the fields of the IR that hold it, several if it is a struct itself."""

    variable: Variable
    parts: tuple[str, ...]
    type: DType | Struct


@dataclass(frozen=True)
class StructAddress:
    """A struct in memory, each field of the IR at an address of its own. pointer: the name is that of a pointer to it.

    const: why it may not be written, "" if it may.
    """

    pointers: tuple[Expr, ...]
    type: Struct
    const: str = ""
    pointer: bool = False


@dataclass
class LocalArrayOf:
    """A local array of one or more dimensions, stored row by row."""

    name: str
    element: DType
    lengths: tuple[int, ...]
    const: str = ""


@dataclass
class PointerVariable:
    """A pointer variable; `type` is None until the first assignment tells what memory it points into.

    element: the declared dtype of the target. declared: where its Declare stands, to be completed then. in_bytes: it
    was made by a cast to a pointer to bytes.
    """

    name: str
    element: DType
    const: str = ""
    type: Pointer | None = None
    declared: tuple[list[Stmt], int] | None = None
    in_bytes: bool = False

    def settle(self, type_: Pointer) -> None:
        """Fix the type, and complete the declaration."""
        self.type = type_
        if self.declared is not None:
            block, at = self.declared
            block[at] = Declare(self.name, type_, line=block[at].line)


@dataclass
class RawArray:
    """A raw array parameter. ndim: None until an index by axes tells."""

    name: str
    dtype: DType
    ndim: int | None
    const: str = ""


@dataclass(frozen=True)
class Indexer:
    """``_ind``, the iteration space. axes: those that it has; None for all. size: its elements, if not the space's."""

    axes: tuple[int, ...] | None = None
    size: Expr | None = None


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
