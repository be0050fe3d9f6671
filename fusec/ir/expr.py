"""Pure expressions: constants and applications of ops, shared by both IRs; every node is interned.

Interning makes structurally equal nodes identical, so equality and hashing cost nothing, common subexpressions are
found by construction and a printed expression parses back to the very same object.

Annotations say what the fields of a class are: operands are `Expr`, nested statements are ``tuple[Stmt, ...]``.
`IRNode` reads and rebuilds all nodes by them.
"""

from __future__ import annotations

import inspect
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Literal, dataclass_transform

import numpy as np

from fusec.base.dtypes import DType
from fusec.base.ops import TABLE, result_type
from fusec.base.records import dataclass, field, values_of

Space = Literal["global", "local", "shared", "told"]


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct of scalars declared in a preamble: its name and its (field, dtype) pairs in order."""

    name: str
    fields: tuple[tuple[str, DType], ...]

    def field(self, name: str) -> DType:
        """The dtype of a field; KeyError if there is none of that name."""
        return dict(self.fields)[name]


@dataclass(frozen=True, slots=True)
class Pointer:
    """The type of an address of elements: in an argument array ("global"), in a local array ("local"), or in one that
    the threads of a block have together ("shared"; "told" as in `fusec.ir.loops.DeclareArray`).
    """

    element: DType
    space: Space
    const: bool = False


Type = DType | Struct | Pointer


class _Interned(type):
    """Metaclass: constructing a node that exists already returns the one that exists."""

    _nodes: weakref.WeakValueDictionary[tuple[object, ...], Any] = weakref.WeakValueDictionary()
    _lock = threading.Lock()

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        key = (cls, *args)
        if not kwargs:
            found = _Interned._nodes.get(key)
            if found is not None:
                return found
        node = super().__call__(*args, **kwargs)
        if kwargs:
            key = (cls, *node._values(node))
        with _Interned._lock:
            return _Interned._nodes.setdefault(key, node)

    @staticmethod
    def _unlock() -> None:
        _Interned._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Interned._unlock)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class IRNode:
    """Base of expressions and statements, which are frozen dataclasses: access to operands and nested statements."""

    _eq: ClassVar[bool] = True  # whether nodes compare by their fields
    _values: ClassVar[Any]  # a function: the values of all positional fields
    _single: ClassVar[tuple[int, ...]]  # places of the fields that are one operand, which come before the others
    _several: ClassVar[int | None]  # the place of the field that holds any number of operands
    _nested: ClassVar[tuple[int, ...]]  # places of the fields that hold statements

    def __init_subclass__(cls, eq: bool | None = None) -> None:
        cls._eq = cls._eq if eq is None else eq
        dataclass(frozen=True, eq=cls._eq)(cls)
        kinds = inspect.get_annotations(cls)
        names = list(kinds)
        single = [name for name, kind in kinds.items() if kind in ("Expr", "Expr | None", "Call")]
        several = [name for name, kind in kinds.items() if kind == "tuple[Expr, ...]"]
        nested = [name for name, kind in kinds.items() if kind == "tuple[Stmt, ...]"]
        cls._values = staticmethod(values_of(names))
        cls._single, cls._nested = tuple(map(names.index, single)), tuple(map(names.index, nested))
        cls._several = names.index(several[0]) if several else None
        children = _reader(single, several, "Expr | None" in kinds.values())
        for name, read in (("children", children), ("blocks", values_of(nested))):
            setattr(cls, name, _Once(name, read))

    @property
    def children(self) -> tuple[Expr, ...]:
        """The operands, left to right, without those of nested statements."""
        raise NotImplementedError

    def replaced(self, children: Sequence[Expr], blocks: Sequence[object] = ()) -> list[Any]:
        """The values of the fields, with other operands and nested statements."""
        values = [*self._values(self)]
        for place, value in zip(self._single, children, strict=False):
            values[place] = value
        if self._several is not None:
            values[self._several] = children[len(self._single) :]
        for place, block in zip(self._nested, blocks, strict=False):
            values[place] = block
        return values


class _Once:
    """An attribute that nodes keep once it is read: they never change, and walks read it over and over."""

    def __init__(self, name: str, read: Callable[[Any], object]) -> None:
        self.name, self.read = name, read

    def __get__(self, node: Any, owner: type | None = None) -> Any:
        if node is None:
            return self
        found = self.read(node)
        object.__setattr__(node, self.name, found)  # which needs no dict, as node.__dict__ does
        return found


def _reader(single: Sequence[str], several: Sequence[str], is_optional: bool) -> Callable[[Any], tuple[Expr, ...]]:
    """A function that gives a node's operands, by the names of the fields that hold them."""
    one = values_of(single)
    if is_optional:
        return lambda node: tuple([value for value in one(node) if value is not None])
    if not several:
        return one
    more = attrgetter(several[0])
    return (lambda node: (*one(node), *more(node))) if single else more


class Expr(IRNode, metaclass=_Interned, eq=False):
    """Base of all expressions; every concrete node has a `type`."""

    def rebuild(self, children: tuple[Expr, ...]) -> Expr:
        """The same node with other operands."""
        found: Expr = type(self)(*self.replaced(children))
        return found


class Const(Expr):
    """A constant, stored as bits so that -0.0, nan and every dtype are exact."""

    bits: int  # unsigned; a complex constant has the real part in the lower half
    type: DType

    @property
    def value(self) -> np.generic:
        """The constant as a NumPy scalar."""
        raw = self.bits.to_bytes(self.type.nbytes, "little")
        scalar: np.generic = np.frombuffer(raw, self.type.numpy)[0]
        return scalar


def const(value: object, dtype: DType) -> Const:
    """The constant of a Python or NumPy number, converted by the rules of NumPy's astype (integers wrap)."""
    if dtype.is_integer and isinstance(value, int):
        return Const(int(value) % (1 << dtype.bits), dtype)
    with np.errstate(all="ignore"):
        scalar = np.asarray(value).astype(dtype.numpy)
    return Const(int.from_bytes(scalar.tobytes(), "little"), dtype)


class Apply(Expr):
    """An op of the op table applied to operands. `where`, `logical_and` and `logical_or` evaluate on demand."""

    op: str
    args: tuple[Expr, ...]
    type: DType


class Lookup(Expr):
    """An entry of a constant table, which belongs to an elementary function or was captured by a kernel."""

    # a power of two of them, of one float of finite and not subnormal ones, or of one integer of 32 or 64 bits
    values: tuple[Const, ...]
    index: Expr  # an integer, of which the low bits count, so that every index is good
    type: DType

    def at(self, index: int) -> Const:
        """The entry at a known index."""
        return self.values[index % len(self.values)]


def apply(op: str, *args: Expr, target: DType | None = None) -> Apply:
    """Apply an op, with the result dtype by the rule of its row; `target` for convert and bitcast."""
    types = tuple(scalar_type(arg) for arg in args)
    return Apply(op, args, result_type(TABLE[op], types, target))


def convert(value: Expr, dtype: DType) -> Expr:
    """`value` as `dtype`; `value` itself if it has that dtype."""
    return value if type_of(value) == dtype else Apply("convert", (value,), dtype)


def type_of(value: Expr) -> Type:
    """The type of any expression."""
    found: Type = value.type  # type: ignore[attr-defined]
    return found


def scalar_type(value: Expr) -> DType:
    """The dtype of an expression that must be a scalar."""
    found = type_of(value)
    assert isinstance(found, DType), f"expected a scalar, got {found}"
    return found
