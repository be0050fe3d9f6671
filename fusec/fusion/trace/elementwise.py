"""NumPy's element-wise functions on values: dtypes as NumPy resolves them, operations from the op table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.base import dtypes
from fusec.base.dtypes import BOOL, INT32, INT64, STORAGE_FLOATS, UINT8, DType
from fusec.base.ops import COMPARISONS
from fusec.errors.base import FusecWarning
from fusec.errors.fusing import NotFusable
from fusec.frontends.lowering import CallSite
from fusec.frontends.python import arithmetic
from fusec.frontends.python import values as python_values
from fusec.frontends.python.functions import FUNCTIONS
from fusec.frontends.python.types import (
    PY_BOOL,
    PY_INT,
    PYTHON_TYPES,
    Kind,
    PythonType,
    carrier,
    is_bool,
    is_integer,
    storage,
)
from fusec.frontends.python.values import Scalar, converted
from fusec.fusion.trace import numbers
from fusec.fusion.trace.tables import cure_for
from fusec.fusion.trace.trace import Trace, constant, here, holds, rounded_to
from fusec.fusion.trace.trace_values import ArrayValue
from fusec.ir.expr import Const, Expr, apply

WEAK = {kind: python for python, kind in PYTHON_TYPES.items()}
ORDERED = frozenset("less less_equal greater greater_equal".split())
EXTREMES = {"minimum": False, "maximum": True, "fmin": False, "fmax": True}
EXACT = frozenset("negative positive absolute abs minimum maximum fmin fmax copysign conjugate nextafter".split())
Make = Callable[[list[Scalar]], list[Scalar]]


def known_dtype(given: Any) -> DType:
    """The row of a NumPy dtype. Raises NotFusable."""
    found = dtypes.from_numpy(given)
    if found is None:
        raise NotFusable(f"dtype {np.dtype(given)}", f"convert it; supported are {', '.join(dtypes.BY_NAME)}").at(
            here()
        )
    return found


def resolved(
    ufunc: np.ufunc, kinds: Sequence[Kind], dtype: object = None, casting: Any = "same_kind"
) -> tuple[DType, ...]:  # fmt: skip
    """The dtypes of the loop that NumPy would choose: inputs, then outputs. Raises NumPy's errors."""
    given = [_resolvable(kind) for kind in kinds]
    options: dict[str, Any] = {}
    if dtype is not None:
        options["signature"] = (*([None] * ufunc.nin), *([np.dtype(dtype)] * ufunc.nout))  # type: ignore[call-overload]
    options["casting"] = "unsafe" if casting == "unsafe" else "same_kind"
    found = ufunc.resolve_dtypes((*given, *([None] * ufunc.nout)), **options)  # type: ignore[arg-type]
    if casting not in ("same_kind", "unsafe") and not ufunc.__name__.startswith("logical"):
        for at, (each, wanted) in enumerate(zip(given, found[: ufunc.nin], strict=True)):
            _check_cast(ufunc, at, each, wanted, casting)
    return tuple(map(known_dtype, found))


def _check_cast(ufunc: np.ufunc, at: int, given: Any, wanted: np.dtype[Any], casting: Any) -> None:
    """Raise NumPy's error for an input that is cast although a rule forbids it, but for Python numbers."""
    if isinstance(given, type):
        if casting == "equiv" and np.dtype(given) != wanted:
            raise TypeError(f"cannot cast Python {given.__name__} to {wanted} under the casting rule 'equiv'")
    elif not np.can_cast(given, wanted, casting):
        raise TypeError(
            f"Cannot cast ufunc '{ufunc.__name__}' input {at} from {given!r} to {wanted!r} with casting rule "
            f"'{casting}'"
        )


def _resolvable(kind: Kind) -> object:
    if isinstance(kind, PythonType):
        return np.dtype(bool) if kind == PY_BOOL else WEAK[kind]
    return kind.numpy


def apply_ufunc(
    trace: Trace, ufunc: np.ufunc, values: Sequence[ArrayValue], dtype: object = None, casting: Any = "same_kind"
) -> list[ArrayValue]:  # fmt: skip
    """The outputs of a ufunc. Raises NotFusable, and NumPy's error for operands without a loop."""
    if len(values) != ufunc.nin:
        raise TypeError(f"{ufunc.__name__}() takes {ufunc.nin} operands, but {len(values)} were given")
    name = ufunc.__name__
    if name not in FUNCTIONS and name not in SEVERAL:
        cure = cure_for("frompyfunc" if name.endswith(" (vectorized)") else name)
        raise NotFusable(f"'{name}'", cure).at(here())
    types = resolved(ufunc, [each.kind for each in values], dtype, casting)
    values = trace.ready(values)
    if name in ORDERED and types[0].is_complex:
        operands = [trace.adapted(each, kind).expr for each, kind in zip(values, types[:2], strict=True)]
        return [trace.combined(Scalar(BOOL, _ordered(name, *operands)), values)]
    if name in EXTREMES and types[0].is_complex:
        operands = [trace.adapted(each, types[0]).expr for each in values]
        return [trace.combined(Scalar(types[0], _extreme(name, *operands)), values)]
    if name in COMPARISONS.values() and dtype is None:
        scalars = _compared(trace, name, values, types)
    else:
        if name == "power" and types[0].kind == "signed" and values[1].is_weak and values[0].phantom.size:
            values[1] = _natural(trace, values[1])
        scalars = [trace.adapted(each, kind).scalar for each, kind in zip(values, types[: ufunc.nin], strict=True)]
        if name == "power" and values[1].scalar.literal is not None:
            scalars[1] = values[1].scalar  # some exponents are computed without pow, as NumPy does
    if name == "exp2" and types[0].is_complex:
        name, scalars = "exp", [arithmetic.binary("*", scalars[0], constant(np.log(2), types[0]).scalar, here())]
    site = CallSite(name, here())
    made = SEVERAL[name](site, scalars) if name in SEVERAL else [FUNCTIONS[name].make(site, scalars)]
    found = []
    for scalar, wanted in zip(made, types[ufunc.nin :], strict=True):
        found.append(trace.combined(finished(scalar, wanted, name), values))
    return found


def _natural(trace: Trace, exponent: ArrayValue) -> ArrayValue:
    """A Python number as the exponent of integers, which may not be negative."""
    if exponent.scalar.literal is None:
        return trace.computed(numbers.natural, [exponent])
    if exponent.kind == PY_INT:
        numbers.natural(int(exponent.scalar.literal.real))
    return exponent


def _compared(trace: Trace, name: str, values: Sequence[ArrayValue], types: Sequence[DType]) -> list[Scalar]:
    """Operands of a comparison; warns of a bool and a number that tell nothing of each other, which NumPy compares."""
    symbol = next(each for each, op in COMPARISONS.items() if op == name)
    left, right = (_told(trace, symbol, *pair) for pair in (values, values[::-1]))
    if not all(is_integer(each.kind) or is_bool(each.kind) for each in values):
        return [trace.adapted(each, kind).scalar for each, kind in zip((left, right), types[:2], strict=True)]
    found = [_as_it_is(trace, left.scalar, right.scalar), _as_it_is(trace, right.scalar, left.scalar)]
    if BOOL in (left.kind, right.kind) and any(isinstance(each.expr, Const) for each in found):
        return [arithmetic.counted(each, here()) for each in found]
    return found


def _told(trace: Trace, symbol: str, value: ArrayValue, other: ArrayValue) -> ArrayValue:
    """The first of two operands; a number that tells nothing of a bool warns, at each call if it is not a constant."""
    if not (value.is_weak or isinstance(value.expr, Const)) or other.kind != BOOL:
        return value
    place = here()
    seen: dict[Any, Any] = {}

    def tell(number: Any) -> Any:
        problem = arithmetic.constant_answer(symbol, other.scalar, python_values.literal(number))
        if problem is not None:
            text = str(problem.at(place))
            warnings.warn_explicit(text, FusecWarning, place.file.name, place.line, registry=seen)
        return number

    if isinstance(value.expr, Const):
        tell(value.expr.value.item() if value.scalar.literal is None else value.scalar.literal)
        return value
    return trace.computed(tell, [value])


def _as_it_is(trace: Trace, value: Scalar, other: Scalar) -> Scalar:
    """A Python integer that is compared: int64 if it is passed by value, since the other dtype may not hold it.

    Calls with an integer beyond int64 are traced for it.
    """
    is_passed = value.type == PY_INT and value.literal is None and isinstance(other.type, DType)
    if not is_passed or not is_integer(other.type):
        return value
    trace.compared.add(value.expr)
    return Scalar(INT64, value.expr)


def _ordered(name: str, a: Expr, b: Expr) -> Expr:
    """Complex numbers compared as NumPy does: by real parts, then by imaginary ones; false if any part is nan."""
    if name.startswith("greater"):
        return _ordered(name.replace("greater", "less"), b, a)
    (ar, ai), (br, bi) = ([apply(part, each) for part in ("real", "imag")] for each in (a, b))
    numbers = apply("logical_and", apply("equal", ai, ai), apply("equal", bi, bi))
    first = apply("logical_and", apply("less", ar, br), numbers)
    return apply("logical_or", first, apply("logical_and", apply("equal", ar, br), apply(name, ai, bi)))


def _extreme(name: str, a: Expr, b: Expr) -> Expr:
    """The complex number that comes first or last as `_ordered` has it; of two, nan or the other one."""
    test = "greater_equal" if EXTREMES[name] else "less_equal"
    gives_way = b if name.startswith("f") else a
    nan = apply("not_equal", gives_way, gives_way)
    return apply("where", apply("logical_or", _ordered(test, a, b), nan), a, b)


def finished(scalar: Scalar, wanted: DType, name: str) -> Scalar:
    """A result in its dtype, rounded as an array of that dtype would hold it."""
    if wanted in STORAGE_FLOATS and not (scalar.type == wanted and name in EXACT):
        return Scalar(wanted, rounded_to(scalar.expr, wanted))
    if storage(scalar.type) != wanted:
        return Scalar(wanted, converted(scalar.expr, carrier(wanted)))
    return Scalar(wanted, scalar.expr)


def mask(value: ArrayValue) -> ArrayValue:
    """The value of `where=`. Raises NumPy's error for numbers, which are not truth values."""
    if not value.is_weak and value.dtype != BOOL:
        raise TypeError(
            f"Cannot cast array data from {value.dtype.numpy!r} to {np.dtype(bool)!r} according to the rule 'safe'"
        )
    return value


def can_cast(value: ArrayValue, dtype: np.dtype[Any], casting: Any) -> bool:
    """Whether NumPy casts a value to a dtype; Python numbers go by their kind."""
    if value.is_weak and value.kind != PY_BOOL and casting in ("no", "safe", "same_kind"):
        return holds(known_dtype(dtype), value.kind)
    return np.can_cast(value.dtype.numpy, dtype, casting)


def choose(trace: Trace, condition: ArrayValue, then: ArrayValue, orelse: ArrayValue) -> ArrayValue:
    """np.where."""
    dtype = known_dtype(np.result_type(*(_example(each) for each in (then, orelse))))
    condition, then, orelse = trace.ready([condition, then, orelse])
    test = arithmetic.condition(condition.scalar)
    parts = [trace.adapted(each, dtype).expr for each in (then, orelse)]
    return trace.combined(Scalar(dtype, apply("where", test, *parts)), [condition, then, orelse])


def _example(value: ArrayValue) -> Any:
    """What NumPy promotes like the value."""
    if value.is_weak:
        return WEAK[value.kind](0) if value.kind != PY_BOOL else np.dtype(bool)  # type: ignore[index]
    return value.dtype.numpy


def result_type(values: Sequence[ArrayValue]) -> DType:
    """The dtype that NumPy gives to several values together."""
    return known_dtype(np.result_type(*map(_example, values)))


def result_type_of(given: Sequence[Any]) -> np.dtype[Any]:
    """np.result_type of arrays that are traced and of what is not."""
    return np.result_type(*(_example(each._read()) if hasattr(each, "_read") else each for each in given))


# --- ufuncs of several outputs ---------------------------------------------------------------------------------------


def _divmod(site: CallSite, args: list[Scalar]) -> list[Scalar]:
    return [arithmetic.binary(op, args[0], args[1], site.span) for op in ("//", "%")]


def _modf(_: CallSite, args: list[Scalar]) -> list[Scalar]:
    (x,) = args
    return [Scalar(x.type, apply("modf_fraction", x.expr)), Scalar(x.type, apply("trunc", x.expr))]


def _frexp(_: CallSite, args: list[Scalar]) -> list[Scalar]:
    (x,) = args
    return [Scalar(x.type, apply("frexp_mantissa", x.expr)), Scalar(INT32, apply("frexp_exponent", x.expr))]


def _bitwise_count(site: CallSite, args: list[Scalar]) -> list[Scalar]:
    size = FUNCTIONS["abs"].make(site, args)
    if size.type == BOOL:
        return [Scalar(UINT8, converted(size.expr, UINT8))]
    return [Scalar(UINT8, converted(apply("count_ones", size.expr), UINT8))]


SEVERAL: dict[str, Callable[[CallSite, list[Scalar]], list[Scalar]]] = {
    "divmod": _divmod, "modf": _modf, "frexp": _frexp, "bitwise_count": _bitwise_count,
}  # fmt: skip
