"""Reductions of traced arrays, with NumPy's rules: totals become leaves that later values read."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from math import prod as product
from typing import Any

import numpy as np

from fusec.base.dtypes import BOOL, FLOAT64, DType, compute_type, real_type
from fusec.errors.fusing import NotFusable
from fusec.frontends.python.arithmetic import condition
from fusec.frontends.python.types import carrier
from fusec.frontends.python.values import Scalar, converted
from fusec.fusion.functions.joining import apart
from fusec.fusion.trace import elementwise
from fusec.fusion.trace import tracer as tracers
from fusec.fusion.trace.tables import FUNCTIONS, METHODS
from fusec.fusion.trace.trace import Trace, check_fits, constant, here, rounded_to
from fusec.fusion.trace.trace_values import ArrayValue, Total, ViewOf, joint_order, leaves_of, phantom
from fusec.ir.expr import apply, const
from fusec.ir.graph import SPREAD
from fusec.library.dtype_rules import WIDE
from fusec.math.moments import over, square
from fusec.math.value import Term

Tracer = tracers.Tracer


def normalised(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes to reduce, from the first on. Raises NumPy's AxisError."""
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, (tuple, list)):
        axis = operator.index(axis)
    elif ndim:
        axis = tuple(map(operator.index, axis))
    if ndim == 0 and axis in (0, -1):
        return ()
    return tuple(sorted(np.lib.array_utils.normalize_axis_tuple(axis, ndim)))


def one_axis(axis: Any, ndim: int) -> int:
    """An axis, from the first on. Raises NumPy's AxisError."""
    return int(np.lib.array_utils.normalize_axis_index(operator.index(axis), ndim))


def totals(
    trace: Trace, op: str, value: ArrayValue, axes: tuple[int, ...], result: DType, identity: ArrayValue | None = None
) -> ArrayValue:
    """The totals of a value in the type that computes `result`; reduced axes keep one element.

    identity: what totals of no elements are.
    """
    shape = tuple(1 if axis in axes else extent for axis, extent in enumerate(value.shape))
    seen = phantom(shape, result.numpy, joint_order(((shape, value.phantom.strides),), shape))
    count = product(value.shape[axis] for axis in axes)
    if count == 1:
        scalar = Scalar(result, rounded_to(value.expr, result))
        return ArrayValue(scalar, seen)
    if count == 0 or 0 in shape:
        assert identity is not None or 0 in shape, "refused before"
        scalar = (identity or constant(0, result)).scalar
        return ArrayValue(Scalar(result, scalar.expr), seen)
    parts = apart(trace, value, axes) if op != SPREAD else []
    if parts:
        return _folded_parts(trace, op, parts, result, seen)
    buffers = [trace.leaves[each].buffer for each in leaves_of(value.expr)]
    if all(each is None for each in buffers):
        value = trace.settled(value)
    held = value
    if op != SPREAD:
        held = ArrayValue(Scalar(result, converted(value.expr, carrier(result))), value.phantom)
    buffer = trace.temporary(seen, result)
    trace.statements.append(Total(buffer, op, held, axes))
    return trace.leaf(buffer, (), buffer.phantom)


def _folded_parts(trace: Trace, op: str, parts: list[ArrayValue], result: DType, seen: Any) -> ArrayValue:
    """The totals of few values, taken one after the other as along a column of so many elements."""
    first, *others = (converted(each.expr, carrier(result)) for each in parts)
    for each in others:
        first = apply(op, first, each)
    found = ArrayValue(Scalar(result, rounded_to(first, result)), seen)
    trace.extents.combine(found, parts)
    return found


@lru_cache(maxsize=256)
def number(value: int, dtype: DType) -> ArrayValue:
    """A number that totals begin with."""
    return constant(value, dtype)


def without_axes(value: ArrayValue, axes: tuple[int, ...], trace: Trace) -> ArrayValue:
    """The value without the reduced axes."""
    return tracers.viewed(trace, value, ViewOf(np.squeeze, (axes,))) if axes else value


def _prepared(x: Any, axis: Any, where: Any) -> tuple[Trace, ArrayValue, tuple[int, ...], ArrayValue | None]:
    """The value, its axes, and the mask; the value and mask have one shape."""
    tracer = x if isinstance(x, Tracer) else next(each for each in (x, where) if isinstance(each, Tracer))
    trace: Trace = tracer._trace
    value = tracers._operand(trace, x)
    axes = normalised(axis, len(value.shape))
    mask = (
        None
        if where is True or where is None or where is np._NoValue
        else elementwise.mask(tracers._operand(trace, where))
    )
    return trace, value, axes, mask


def _finished(trace: Trace, value: ArrayValue, axes: tuple[int, ...], keepdims: Any, out: Any) -> Any:
    if keepdims is np._NoValue or not keepdims:
        value = without_axes(value, axes, trace)
    if isinstance(out, tuple):
        (out,) = out
    if out is not None:
        if not isinstance(out, Tracer):
            raise NotFusable("out= of a reduction that is not an argument", "make it with np.zeros_like").at(here())
        if out.shape != value.shape:
            raise ValueError(f"output array has shape {out.shape}, the totals have {value.shape}")
        out._write(value)
        return out
    return tracers.made(trace, value, True)


def _masked(trace: Trace, value: ArrayValue, mask: ArrayValue | None, identity: ArrayValue) -> ArrayValue:
    if mask is None:
        return value
    check_fits("where=", mask.shape, value.shape)
    return elementwise.choose(trace, mask, value, identity)


def _initial(trace: Trace, initial: Any, dtype: DType) -> ArrayValue | None:
    """What initial= says."""
    if initial is None or initial is np._NoValue:
        return None
    if isinstance(initial, (int, float, complex)):  # NumPy's error for one that the dtype does not hold
        holder = np.empty((), dtype.numpy)
        holder[()] = initial
        return constant(holder[()], dtype)
    return trace.adapted(tracers._operand(trace, initial), dtype)


def _started(trace: Trace, op: str, value: ArrayValue, start: ArrayValue | None) -> ArrayValue:
    if start is None:
        return value
    scalar = Scalar(value.dtype, rounded_to(apply(op, start.expr, value.expr), value.dtype))
    return trace.combined(scalar, [value, start])


def _folded(op: str, start: int, *, skips_nan: bool = False) -> Callable[..., Any]:
    def reduce(
        x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None,
        where: Any = True,
    ) -> Any:  # fmt: skip
        trace, value, axes, mask = _prepared(x, axis, where)
        result = WIDE.get(value.dtype.kind, value.dtype) if dtype is None else elementwise.known_dtype(dtype)
        if dtype is None and isinstance(out, Tracer):
            result = elementwise.known_dtype(np.result_type(result.numpy, out.dtype))
        if skips_nan:
            value = _numbers(trace, value, start)
        value = _masked(trace, value, mask, number(start, value.dtype))
        held = trace.adapted(value, result) if result.is_integer or result == BOOL else _computed(value, result)
        total_op = {"add": "bitwise_or", "multiply": "bitwise_and"}[op] if result == BOOL else op
        found = totals(trace, total_op, held, axes, result, number(start, result))
        found = _started(trace, op, found, _initial(trace, initial, found.dtype))
        return _finished(trace, found, axes, keepdims, out)

    return reduce


def _computed(value: ArrayValue, result: DType) -> ArrayValue:
    """A value in the type that totals are held in, not rounded to narrow floats."""
    wide = compute_type(result)
    return ArrayValue(Scalar(wide, converted(value.expr, wide)), value.phantom)


def _numbers(trace: Trace, value: ArrayValue, instead: float) -> ArrayValue:
    """A value with a number in place of nan."""
    if value.dtype.kind not in ("float", "complex"):
        return value
    (test,) = elementwise.apply_ufunc(trace, np.isnan, [value])
    return elementwise.choose(trace, test, constant(instead, value.dtype), value)


def _extreme(op: str, *, skips_nan: bool = False) -> Callable[..., Any]:
    upwards = op == "maximum"

    def reduce(
        x: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
    ) -> Any:
        trace, value, axes, mask = _prepared(x, axis, where)
        start = _initial(trace, initial, value.dtype)
        if mask is not None:
            if start is None:
                raise ValueError(
                    f"reduction operation '{op}' does not have an identity, so to use a where mask one has to specify "
                    "'initial'"
                )
            value = _masked(trace, value, mask, start)
        if 0 in value.shape and start is None:
            np.max(np.empty(value.shape), axis)  # NumPy's error
        if value.dtype.is_complex:
            found = _lexicographic(trace, value, axes, (upwards, skips_nan), start)
        else:
            name = {"maximum": "fmax", "minimum": "fmin"}[op] if skips_nan and value.dtype.is_float else op
            if value.dtype == BOOL:
                name = "bitwise_or" if upwards else "bitwise_and"
            found = _started(trace, name, totals(trace, name, value, axes, value.dtype, start), start)
        return _finished(trace, found, axes, keepdims, out)

    return reduce


def _lexicographic(
    trace: Trace, value: ArrayValue, axes: tuple[int, ...], which: tuple[bool, bool], start: ArrayValue | None
) -> ArrayValue:
    """The extreme complex number: by real parts, then by imaginary ones; nan if any part is, or if all numbers are.

    which: whether it is the greatest, and whether numbers with a nan are left out. start: one more number.
    """
    upwards, skips_nan = which
    ufunc = (np.fmax if upwards else np.fmin) if skips_nan else (np.maximum if upwards else np.minimum)
    part, op = real_type(value.dtype), ufunc.__name__
    re, im = (apply(each, value.expr) for each in ("real", "imag"))
    broken = apply("logical_or", apply("isnan", re), apply("isnan", im))
    end, nan = const(-np.inf if upwards else np.inf, part), const(np.nan, part)
    if skips_nan:
        re, end = apply("where", broken, nan, re), nan
    starts: list[ArrayValue | None] = [None, None]
    if start is not None:
        starts = [ArrayValue(Scalar(part, apply(each, start.expr)), start.phantom) for each in ("real", "imag")]
    first = totals(trace, op, ArrayValue(Scalar(part, re), value.phantom), axes, part, starts[0])
    chosen = apply("where", apply("equal", re, first.expr), im, end)
    chosen = apply("where", broken, nan, chosen)
    second = totals(trace, op, trace.combined(Scalar(part, chosen), [value, first]), axes, part, starts[1])
    real = apply("where", apply("isnan", second.expr), second.expr, first.expr)
    found = trace.combined(Scalar(value.dtype, apply("complex", real, second.expr)), [first, second])
    if start is None:
        return found
    (found,) = elementwise.apply_ufunc(trace, ufunc, [found, start])
    return found


def _truth(op: str) -> Callable[..., Any]:
    def reduce(
        x: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, dtype: Any = None, where: Any = True,
        initial: Any = None,
    ) -> Any:  # fmt: skip
        del dtype
        trace, value, axes, mask = _prepared(x, axis, where)
        value = ArrayValue(Scalar(BOOL, condition(value.scalar)), value.phantom)
        identity = constant(op == "bitwise_and", BOOL)
        value = _masked(trace, value, mask, identity)
        found = totals(trace, op, value, axes, BOOL, identity)
        found = _started(trace, op, found, _initial(trace, initial, BOOL))
        return _finished(trace, found, axes, keepdims, out)

    return reduce


def _bitwise(op: str, *, is_truth: bool = False) -> Callable[..., Any]:
    """The method reduce of a ufunc of bits, or of np.logical_xor."""

    def reduce(
        x: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None,
        where: Any = True,
    ) -> Any:  # fmt: skip
        trace, value, axes, mask = _prepared(x, axis, where)
        if is_truth:
            value = ArrayValue(Scalar(BOOL, condition(value.scalar)), value.phantom)
        elif value.dtype.kind in ("float", "complex"):
            getattr(np, op).reduce(np.empty(1, value.dtype.numpy))  # NumPy's error
        result = value.dtype if dtype is None else elementwise.known_dtype(dtype)
        identity = constant(np.array(-1 if op == "bitwise_and" else 0).astype(result.numpy), result)
        value = _masked(trace, trace.adapted(value, result), mask, identity)
        found = totals(trace, op, value, axes, result, identity)
        return _finished(trace, _started(trace, op, found, _initial(trace, initial, result)), axes, keepdims, out)

    return reduce


def _refuse_number(value: ArrayValue, axis: Any) -> None:
    """Raise NumPy's AxisError for an axis of a number, which its sums have, but neither its means nor variances."""
    if axis is not None and not value.shape:
        np.lib.array_utils.normalize_axis_tuple(axis if isinstance(axis, (tuple, list)) else operator.index(axis), 0)


def _floating(value: ArrayValue, dtype: Any) -> DType:
    if dtype is not None:
        return elementwise.known_dtype(dtype)
    return value.dtype if value.dtype.kind in ("float", "complex") else FLOAT64


def _counted(
    trace: Trace, value: ArrayValue, axes: tuple[int, ...], mask: ArrayValue | None, real: DType
) -> ArrayValue:
    """How many elements a total has."""
    if mask is None:
        return trace.count(value, axes, real)
    ones = elementwise.choose(trace, mask, number(1, real), number(0, real))
    (_, ones) = trace.ready([value, ones])
    ones = trace.combined(ones.scalar, [ones, value])
    return totals(trace, "add", ones, axes, real, number(0, real))


def _over(trace: Trace, total: ArrayValue, by: ArrayValue) -> ArrayValue:
    """A real or complex value divided by a real one."""
    return trace.combined(Scalar(total.dtype, over(Term(total.expr), Term(by.expr)).expr), [total, by])


def _mean_of(
    trace: Trace, value: ArrayValue, axes: tuple[int, ...], mask: ArrayValue | None, result: DType
) -> tuple[ArrayValue, ArrayValue]:
    """Mean, not rounded to narrow floats, and the count."""
    wide = compute_type(result)
    count = _counted(trace, value, axes, mask, real_type(wide))
    masked = _masked(trace, value, mask, number(0, value.dtype))
    total = totals(trace, "add", _computed(masked, result), axes, wide, number(0, wide))
    return _over(trace, total, count), count


def mean(
    x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """np.mean."""
    trace, value, axes, mask = _prepared(x, axis, where)
    _refuse_number(value, axis)
    result = _floating(value, dtype)
    if result.kind in ("float", "complex"):
        found, _ = _mean_of(trace, value, axes, mask, result)
    else:  # integers are added up as such
        total = REDUCTIONS["sum"](x, axes, result.numpy, keepdims=True, where=where)._read()
        found = _over(trace, trace.adapted(total, FLOAT64), _counted(trace, value, axes, mask, FLOAT64))
    return _finished(trace, trace.adapted(found, result), axes, keepdims, out)


def nanmean(
    x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """np.nanmean."""
    axis = normalised(axis, np.ndim(x))
    if dtype is not None and np.result_type(x).kind in "fc" and np.dtype(dtype).kind not in "fc":
        raise TypeError("If a is inexact, then dtype must be inexact")
    return mean(x, axis, dtype, out, keepdims, where=np.logical_and(where, ~np.isnan(x)))


def _squares(
    trace: Trace, value: ArrayValue, axes: tuple[int, ...], mask: ArrayValue | None, result: DType
) -> tuple[ArrayValue, ArrayValue]:
    """The sum of squared distances from the mean, and the count."""
    middle, count = _mean_of(trace, value, axes, mask, result)
    real = real_type(compute_type(result))
    value, middle = trace.ready([value, middle])
    far = apply("subtract", _computed(value, result).expr, middle.expr)
    squares = trace.combined(Scalar(real, square(Term(far)).expr), [value, middle])
    squares = _masked(trace, squares, mask, number(0, real))
    return totals(trace, "add", squares, axes, real, number(0, real)), count


def var(
    x: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
    where: Any = True, mean: Any = None, correction: Any = None, root: bool = False,
) -> Any:  # fmt: skip
    """np.var, and np.std with `root`."""
    del mean
    trace, value, axes, mask = _prepared(x, axis, where)
    _refuse_number(value, axis)
    result, ddof = _floating(value, dtype), ddof if correction in (None, np._NoValue) else correction
    if result.kind not in ("float", "complex") or value.dtype.is_complex > result.is_complex:
        cure = "pass a dtype of floats that holds the values, and convert the result: its steps would be rounded to it"
        raise NotFusable(f"{'np.std' if root else 'np.var'} with dtype={str(result)!r}", cure).at(here())
    if root and isinstance(out, Tracer) and not np.can_cast(real_type(result).numpy, out.dtype, "same_kind"):
        np.sqrt(np.empty(1), out=np.empty(1, out.dtype))  # NumPy's error
    real = real_type(compute_type(result))
    if mask is None and product(value.shape[axis] for axis in axes) > 1:
        count = _counted(trace, value, axes, mask, real)
        total = totals(trace, SPREAD, _computed(value, result), axes, real, number(0, real))
    else:
        total, count = _squares(trace, value, axes, mask, result)
    free = trace.combined(Scalar(real, apply("subtract", count.expr, const(ddof, real))), [count])
    free = ArrayValue(Scalar(real, apply("maximum", free.expr, const(0, real))), free.phantom)
    found = _over(trace, total, free)
    if root:
        found = ArrayValue(Scalar(real, apply("sqrt", found.expr)), found.phantom)
    return _finished(trace, trace.adapted(found, real_type(result)), axes, keepdims, out)


def std(*args: Any, **options: Any) -> Any:
    """np.std."""
    return var(*args, **options, root=True)


def ptp(x: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    """np.ptp."""
    high, low = (REDUCTIONS[name](x, axis, keepdims=keepdims) for name in ("max", "min"))
    if out is None:
        return np.subtract(high, low)
    if out.shape != high.shape:
        raise ValueError(f"output array has shape {out.shape}, the totals have {high.shape}")
    out[...] = high  # as NumPy stores it before it subtracts
    return np.subtract(out, low, out=out)


def count_nonzero(x: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """np.count_nonzero."""
    return REDUCTIONS["sum"](x.astype(bool), axis, keepdims=keepdims)


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": _folded("add", 0), "prod": _folded("multiply", 1),
    "nansum": _folded("add", 0, skips_nan=True), "nanprod": _folded("multiply", 1, skips_nan=True),
    "max": _extreme("maximum"), "min": _extreme("minimum"), "amax": _extreme("maximum"), "amin": _extreme("minimum"),
    "nanmax": _extreme("maximum", skips_nan=True), "nanmin": _extreme("minimum", skips_nan=True),
    "any": _truth("bitwise_or"), "all": _truth("bitwise_and"), "mean": mean, "nanmean": nanmean, "var": var,
    "std": std, "ptp": ptp, "count_nonzero": count_nonzero,
}  # fmt: skip
FUNCTIONS.update(REDUCTIONS)
METHODS.update(
    {
        **{f"_{name}": _bitwise(name) for name in ("bitwise_or", "bitwise_and", "bitwise_xor")},
        "_logical_xor": _bitwise("bitwise_xor", is_truth=True), "_fmax": REDUCTIONS["nanmax"],
        "_fmin": REDUCTIONS["nanmin"],
    }
)  # fmt: skip
METHODS.update({name: REDUCTIONS[name] for name in ("sum", "prod", "max", "min", "any", "all", "mean", "var", "std")})
