"""The values of expressions of the Python subset while a kernel is lowered."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, dataclass_transform

from fusec.base import dtypes
from fusec.base.diagnostics import shown_number
from fusec.base.dtypes import BOOL, INT64, UINT64, DType, real_type
from fusec.base.records import dataclass, field
from fusec.base.source import Span
from fusec.errors.base import FusecError
from fusec.errors.python import NumberTooLarge
from fusec.frontends.python import foreseen
from fusec.frontends.python.types import PYTHON_TYPES, Kind, PythonType, carrier, storage
from fusec.ir.expr import Apply, Const, Expr, Space, apply, const, scalar_type

if TYPE_CHECKING:
    from fusec.frontends.python.syntax import FunctionNode

PythonNumber = bool | int | float | complex


@dataclass
class Uses:
    """How a Python number passed by value is used; dtypes: those it adapts to, None for no adaptation."""

    dtypes: set[DType | None] = field(default_factory=set)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class KernelValue:
    """Base of the values; each class of them is a frozen dataclass by being one."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class Scalar(KernelValue):
    """One number: its type as NumPy and Python have it, and the expression that computes it in that type's carrier.

    literal: its value if it is a Python number known now. uses: notes what becomes of a number passed by value.
    """

    type: Kind
    expr: Expr
    literal: PythonNumber | None = None
    uses: Uses | None = field(default=None, compare=False)

    def read(self, span: Span | None = None) -> Expr:
        """The value as it is. Raises NumberTooLarge for an integer literal beyond int64, in which such are computed."""
        if self.uses is not None:
            self.uses.dtypes.add(None)
        if isinstance(self.literal, int) and not holds(INT64, self.literal):
            raise too_large(self.literal, INT64).at(span)
        return self.expr


class Items(KernelValue):
    """A tuple."""

    items: tuple[Value, ...]


class Table(KernelValue):
    """An array of constants, or a part of one that an index chose as the kernel runs: that from `start` on.

    values: of the whole array in C order, in the dtype that they are computed in. start: int64, None for 0.
    """

    kind: Kind
    values: tuple[Const, ...]
    shape: tuple[int, ...]
    start: Expr | None = None


class Type(KernelValue):
    """A dtype or a Python type as a value: what converts when it is called."""

    kind: Kind


class Module(KernelValue):
    """A module whose functions are known by their names, whichever it is."""

    name: str


class Builtin(KernelValue):
    """A known function. strict: with the behaviour of Python's module math, where that differs from NumPy's."""

    name: str
    python: bool = False


class Method(KernelValue):
    """An attribute of a number that is called."""

    owner: Scalar
    name: str


class UserFunction(KernelValue):
    """A function of the user's; `key` finds it among those that the kernel was defined with."""

    name: str
    key: str


class Closure(KernelValue):
    """A function inside another, whose names from outside are those of the function around it.

    key: of the function that the text is of. defaults: of its parameters. held: what names of the function around it
    stand for, once it has left that; None before, since Python looks them up at every call.
    """

    name: str
    key: str
    tree: FunctionNode
    defaults: tuple[tuple[str, Value], ...]
    held: tuple[tuple[str, Value], ...] | None = None


class Neighbours(KernelValue):
    """An array of a stencil: the current element, or with an index one of its neighbours."""

    name: str
    dtype: DType


class ArrayParameter(KernelValue):
    """An array that a kernel indexes: one of the call, or one of fixed shape that an element or a block has itself."""

    name: str
    dtype: DType
    extents: tuple[Expr, ...]  # int64
    space: Space = "global"
    written: bool = True  # the kernel assigns to its elements
    is_flat: bool = False  # it stands for its elements in C order, ``x.flat``


class Intrinsic(KernelValue):
    """A function that only kernels have: an atomic update, the grid, a local array."""

    name: str


class Absent(KernelValue):
    """None, or the value of a call that returns nothing."""


Value = (
    Scalar | Items | Table | Type | Module | Builtin | Method | UserFunction | Closure | Neighbours
    | ArrayParameter | Intrinsic | Absent
)  # fmt: skip


def holds(dtype: DType, number: int) -> bool:
    """Whether an integer dtype has this value."""
    low, high = dtype.limits
    return low <= number <= high


def too_large(number: int, dtype: DType, shown: str = "") -> NumberTooLarge:
    """The error for an integer that a dtype does not hold; shown: how it is written, if not by its digits."""
    if dtype.is_float or dtype.is_complex:
        cure = "no float is that large: compute with smaller numbers"
    elif dtype == INT64 and holds(UINT64, number) and not shown:
        cure = f"convert it, uint64({number}), or write a float"
    elif dtype == INT64:
        cure = "no integer type is that wide: write a float, e.g. 2.0**70"
    else:
        wide = "int64" if holds(INT64, number) else "float64"
        cure = f"convert the other operand first: {wide}(x), np.{wide}(x) in a function, x.astype('{wide}') of an array"
    return NumberTooLarge(shown or shown_number(number), dtype.name, cure)


def placed(problem: FusecError, span: Span) -> FusecError:
    """The error with a place, if it is one of a number that was read where no place is known."""
    if problem.span is None and isinstance(problem.error, NumberTooLarge):
        return problem.error.at(span)
    return problem


def items_of(value: Value) -> tuple[Value, ...]:
    """The items of a tuple; of another value, that alone."""
    return value.items if isinstance(value, Items) else (value,)


def literal(value: PythonNumber) -> Scalar:
    """A Python number known now; one beyond int64 is refused where it is read, unless it was adapted before."""
    kind = PYTHON_TYPES[type(value)]
    return Scalar(kind, const(value, kind.dtype), value)


def show(value: Value) -> str:
    """A value in messages."""
    match value:
        case Scalar(type=kind):
            return str(kind)
        case Items(items=items):
            return f"a tuple of {len(items)}"
        case Table(kind=kind):
            return f"an array of {storage(kind)}"
        case Type(kind=kind):
            return f"the type {storage(kind) if isinstance(kind, DType) else kind.name}"
        case Module(name=name):
            return f"the module {name}"
        case Builtin(name=name) | UserFunction(name=name) | Method(name=name) | Closure(name=name):
            return f"the function {name}"
        case Neighbours(dtype=dtype):
            return str(dtype)
        case ArrayParameter(dtype=dtype):
            return f"an array of {dtype}"
        case Intrinsic(name=name):
            return f"the function fusec.{name}"
        case Absent():
            return "None"


def adapt(value: Scalar, kind: Kind, span: Span) -> Scalar:
    """`value` as another type, by NumPy's conversion of that type: Python numbers are rounded to narrow floats.

    Raises NumberTooLarge for an integer literal, and for a choice between integers of which one is such.
    """
    if value.type == kind:
        return value
    if value.literal is not None:
        return _adapted_literal(value, value.literal, kind, span)
    if value.uses is not None:
        value.uses.dtypes.add(kind if isinstance(kind, DType) else None)
    elif value.type == PYTHON_TYPES[int] and isinstance(kind, DType) and kind.is_integer:
        lost = [number for number in foreseen.integers(value.expr) if not holds(kind, number)]
        if lost:
            raise too_large(max(lost, key=abs), kind).at(span)
    if isinstance(value.type, PythonType) and kind in dtypes.STORAGE_FLOATS:
        value = Scalar(value.type, converted(value.expr, storage(kind)))
    return Scalar(kind, converted(value.expr, carrier(kind)))


def _as_held(number: PythonNumber, kind: DType) -> PythonNumber:
    """A number as a narrow float holds it, though it is computed in float32; infinity stays, which e4m3fn lacks."""
    if kind not in dtypes.STORAGE_FLOATS or math.isinf(float(number.real)):
        return number
    return float(const(float(number.real), kind).value.item())


def _adapted_literal(value: Scalar, number: PythonNumber, kind: Kind, span: Span) -> Scalar:
    target = carrier(kind)
    if isinstance(kind, PythonType):
        makers: dict[str, Callable[[PythonNumber], PythonNumber]]
        makers = {"int": int, "float": float, "complex": complex, "bool": bool}  # type: ignore[dict-item]
        if kind.rank >= value.type.rank:  # type: ignore[union-attr]
            try:
                return literal(makers[kind.name](number))
            except OverflowError:
                raise too_large(int(number), kind.dtype).at(span) from None  # type: ignore[arg-type]
        return Scalar(kind, converted(value.expr, target))
    if target.is_integer and isinstance(number, int):
        if not holds(target, number):
            raise too_large(number, target).at(span)
        return Scalar(kind, const(int(number), target))
    if target == BOOL:
        return Scalar(kind, const(bool(number), BOOL))
    if target.is_integer:
        return Scalar(kind, converted(value.expr, target))
    if isinstance(number, complex) and not target.is_complex:
        number = number.real
    try:
        return Scalar(kind, const(_as_held(number, kind), target))
    except OverflowError:  # an integer beyond the largest float64
        raise too_large(int(number), target).at(span) from None  # type: ignore[arg-type]


def converted(value: Expr, dtype: DType) -> Expr:
    """An expression as another dtype, folded where it is a constant that every target converts alike."""
    given = scalar_type(value)
    if given == dtype:
        return value
    if (
        isinstance(value, Const)
        and given in (BOOL, *dtypes.INTEGERS)
        and dtype in (*dtypes.INTEGERS, *dtypes.COMPUTE_FLOATS)
    ):
        return const(int(value.value), dtype)
    if dtype.is_complex and not given.is_complex:
        part = real_type(dtype)
        return apply("complex", converted(value, part), const(0, part))
    if given.is_complex and not dtype.is_complex and dtype != BOOL:
        return converted(apply("real", value), dtype)
    if dtype == BOOL:
        return truth(value)
    return apply("convert", value, target=dtype)


def truth(value: Expr) -> Expr:
    """Whether a number is not zero."""
    given = scalar_type(value)
    if given == BOOL:
        return value
    if isinstance(value, Apply) and value.op == "convert" and scalar_type(value.args[0]) == BOOL:
        return value.args[0]
    return apply("not_equal", value, const(0, given))


def rounded(value: Scalar, dtype: DType | None = None) -> Expr:
    """The value as memory holds it: narrow floats are rounded here. dtype: of the memory, if it is not the value's."""
    expr, target = value.read(), storage(value.type)
    if dtype is not None and dtype != target:
        return converted(expr, dtype)
    return expr if scalar_type(expr) == target else apply("convert", expr, target=target)
