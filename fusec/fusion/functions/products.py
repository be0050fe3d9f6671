"""Products of vectors and matrices in fused functions.

Kernels compute products with few results and products of short rows; BLAS computes the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from math import prod
from typing import Any

import numpy as np

from fusec.arguments.layouts import joined_shape
from fusec.fusion.functions.joining import MOST
from fusec.fusion.functions.libraries import Asked, LibraryFunction
from fusec.fusion.functions.reducing import REDUCTIONS
from fusec.fusion.functions.routines import reshaped, stack, trace_of, traced
from fusec.fusion.trace.array_forms import ArrayForm
from fusec.fusion.trace.conditions import indexed, require, require_extents
from fusec.fusion.trace.tables import FUNCTIONS, METHODS
from fusec.fusion.trace.trace_values import Array
from fusec.fusion.trace.tracer import Tracer

A_B = ("a", "b")
FEW = 16  # results at most of a product that kernels sum
LONG = 128  # elements at least of the rows of such a product; rows at least of a product of short rows
SHORT = (8, 4)  # elements at most of short rows, if one operand is a vector, and if both are matrices
SHORT_ON_DEVICES = 8  # of both matrices, if the right one has few columns
FEW_BETWEEN = 4  # interleaved rows at most of one matrix; BLAS is faster for more
SUMMED = frozenset(np.typecodes["AllInteger"] + "fdFD")  # dtypes of their results
Rule = Callable[[Array, Array], bool]  # whether kernels sum a product of these operands
GUFUNCS = frozenset(name for name, each in vars(np).items() if isinstance(each, np.ufunc) and each.signature)
"""The ufuncs of whole vectors and matrices."""


def _of_ufunc(ufunc: np.ufunc, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """np.matmul, vecdot, matvec, vecmat: a call of a ufunc of whole vectors and matrices."""
    if len(args) > ufunc.nin:
        args, options = args[: ufunc.nin], {**options, "out": args[ufunc.nin]}
    if ufunc is np.matmul:
        return _matmul(*args, **options)
    by_kernels = _along if ufunc is np.vecdot else None
    function = LibraryFunction(ufunc, f"np.{ufunc.__name__}", tuple(range(ufunc.nin)), by_kernels=by_kernels)
    return function(*args, **options)


def _or_multiplied(name: str, of_arrays: LibraryFunction) -> Callable[..., Any]:
    """A product that multiplies if one of its operands is a number."""

    @wraps(of_arrays, assigned=(), updated=())
    def multiplied(a: Any, b: Any, out: Any = None) -> Any:
        if not np.ndim(a) or not np.ndim(b):
            pair = [_as_array(each) for each in (a, b)]
            is_of_blas = max(map(np.ndim, pair)) <= 2 and FUNCTIONS["result_type"](*pair).char in "fdFD"
            return np.multiply(*pair, order="C" if is_of_blas else "K", **({} if out is None else {"out": out}))
        return of_arrays(a, b, **({} if out is None else {"out": out}))

    multiplied.__name__ = multiplied.__qualname__ = name
    return multiplied


def _of_any(of_arrays: LibraryFunction) -> Callable[..., Any]:
    """np.tensordot, also of numbers."""

    @wraps(of_arrays, assigned=(), updated=())
    def product(a: Any, b: Any, axes: Any = 2) -> Any:
        return of_arrays(*(each if np.ndim(each) else _as_array(each) for each in (a, b)), axes=axes)

    product.__name__ = product.__qualname__ = "tensordot"
    return product


def _as_array(given: Any) -> Any:
    """An operand whose dtype counts even if it is a number of Python."""
    return given.astype(given.dtype) if isinstance(given, Tracer) else np.asarray(given)[()]


def outer(a: Any, b: Any, out: Any = None) -> Any:
    """np.outer."""
    trace = trace_of(a, b)
    one, other = (reshaped(traced(each, trace), -1) for each in (a, b))
    return np.multiply(one[:, None], other[None, :], **({} if out is None else {"out": out}))


# --- products that kernels sum ---------------------------------------------------------------------------------------


def summed(a: Any, b: Any, **options: Any) -> Any:
    """A product as kernels compute it: sums for vectors and for long rows with few results, element-wise work for short
    rows; None for any other product.
    """
    trace = trace_of(a, b)
    a, b = traced(a, trace), traced(b, trace)
    is_asked = _rule(trace, is_summed)
    if options or not is_asked(a._seen, b._seen):
        return None
    require([a, b], is_asked)
    if _rule(trace, is_short)(a._seen, b._seen):
        return _spelled_out(a, b)
    dtype = np.result_type(a._seen, b._seen)
    known: dict[object, Any] = {}

    def total(row: Any, column: Any) -> Any:
        pair = frozenset((row._read().expr, column._read().expr))
        if pair not in known:
            known[pair] = REDUCTIONS["sum"](np.multiply(row, column), None, dtype)
        return known[pair]

    columns = b.T if b._seen.ndim == 2 else b
    return _of_rows(a, lambda row: _of_rows(columns, lambda column: total(row, column)))


def _spelled_out(a: Any, b: Any) -> Any:
    """A product of short rows, written as the sum of one product for each place in a row, in order."""
    require_extents(a, [a._seen.ndim - 1])
    require_extents(b, [max(0, b._seen.ndim - 2)])
    is_copied = _is_copied(a._seen, b._seen)
    require([a, b], lambda *seen: _is_copied(*seen) == is_copied)
    if is_copied:
        b = np.copy(b, order="C")
        b._trace.settle(b._memory)
    found = None
    for at in range(a._seen.shape[-1]):
        row = a[..., at] if a._seen.ndim == 1 or b._seen.ndim == 1 else a[..., at, None]
        column = b[at] if b._seen.ndim == 1 else b[..., at, :] if a._seen.ndim == 1 else b[..., at, None, :]
        each = np.multiply(row, column, order="C")
        found = each if found is None else np.add(found, each, order="C")
    return found


def _of_stacks(a: Any, b: Any, **options: Any) -> Any:
    """np.matmul of matrices, or of stacks of matrices, that kernels sum; None for any other."""
    trace = trace_of(a, b)
    one, other = traced(a, trace), traced(b, trace)
    is_asked = _rule(trace, is_short_stack)
    if options or not is_asked(one._seen, other._seen):
        return summed(a, b, **options)
    require([one, other], is_asked)
    return _spelled_out(one, other)


def _of_vectors(a: Any, b: Any, **options: Any) -> Any:
    """np.inner of vectors; None for matrices."""
    return summed(a, b, **options) if np.ndim(a) == np.ndim(b) == 1 else None


def _conjugated(a: Any, b: Any, **options: Any) -> Any:
    """np.vdot of vectors; None for matrices."""
    return _of_vectors(np.conj(a) if np.result_type(a).kind == "c" else a, b, **options)


def _along(a: Any, b: Any, axis: int = -1, **options: Any) -> Any:
    """np.vecdot of integers and bools, and of vectors; None for any other."""
    kind = np.result_type(a, b)
    if options or kind.kind not in "iub" or not np.ndim(a) or not np.ndim(b):
        return _conjugated(a, b, **options) if axis == -1 else None
    a, b = np.moveaxis(a, axis, -1), np.moveaxis(b, axis, -1)
    if a.shape[-1] != b.shape[-1]:
        return None
    if kind.kind == "b":
        return np.any(np.logical_and(a, b), axis=-1)
    return np.sum(np.multiply(a, b), axis=-1, dtype=kind)


def _of_rows(x: Any, function: Callable[[Any], Any]) -> Any:
    """What a function makes of a vector, or of each row of a matrix."""
    if x._seen.ndim == 1:
        return function(x)
    require_extents(x, [0])
    return stack([function(x._view(indexed(x, (at,)))) for at in range(len(x._seen))])


def is_summed(a: Array, b: Array) -> bool:
    """Whether kernels sum a product: one of vectors, of long rows with few results, or of short rows.

    If only one operand has several long rows, they must lie one behind the other, or be few: BLAS reads others faster.
    """
    a, b = _as_form(a), _as_form(b).T
    kind = np.result_type(a.dtype, b.dtype).char
    if kind not in SUMMED or not {a.ndim, b.ndim} <= {1, 2} or a.shape[-1] != b.shape[-1]:
        return False
    if a.ndim == b.ndim == 1 or is_short(a, b.T):
        return True
    counts = [each.shape[0] for each in (a, b) if each.ndim == 2]
    if a.shape[-1] < LONG or max(counts) > MOST or not 0 < prod(counts) <= FEW:
        return False
    several = [each for each in (a, b) if each.ndim == 2 and each.shape[0] > 1]
    return len(several) != 1 or prod(counts) <= FEW_BETWEEN or abs(several[0].strides[1]) <= abs(several[0].strides[0])


def _as_form(given: Any) -> Any:
    """An operand as an array, or what stands for one."""
    return given if isinstance(given, ArrayForm) else np.asarray(given)


def is_short(a: Array, b: Array) -> bool:
    """Whether a product has many rows that are so short that adding one up is less work than a call of BLAS.

    The rows of a right operand with many columns must lie one behind the other, or be worth a copy that does.
    """
    counts = [*a.shape[:-1], *b.shape[:-2], *b.shape[max(1, b.ndim - 1) :]]
    is_matrix = min(a.ndim, b.ndim) > 1
    if not counts or not 0 < a.shape[-1] <= SHORT[is_matrix] or max(counts) < LONG:
        return False
    return not _is_turned(b) or _is_copied(a, b)


def _has_few_columns(a: Array, b: Array) -> bool:
    """Whether a product of matrices has rows that are short enough for kernels on devices, whose libraries multiply
    such matrices slowly.
    """
    a, b = _as_form(a), _as_form(b)
    if min(a.ndim, b.ndim) < 2 or np.result_type(a.dtype, b.dtype).char not in SUMMED:
        return False
    if joined_shape((a.shape[:-2], b.shape[:-2])) is None:
        return False
    rows = prod(a.shape[:-1])
    return rows >= LONG and 0 < a.shape[-1] == b.shape[-2] <= SHORT_ON_DEVICES and 0 < b.shape[-1] <= FEW


def _rule(trace: Any, rule: Rule) -> Rule:
    """A rule for operands of a trace; those on devices may have few columns."""
    return rule if trace.device == "cpu" else _ON_DEVICES[rule]


def _or_few_columns(rule: Rule) -> Rule:
    return lambda a, b: rule(a, b) or _has_few_columns(a, b)


def _is_turned(b: Array) -> bool:
    """Whether a right operand has many columns, and rows whose elements lie apart."""
    return b.ndim > 1 and b.shape[-1] > FEW and abs(b.strides[-1]) > abs(b.strides[-2])


def _is_copied(a: Array, b: Array) -> bool:
    """Whether a right operand is laid out row by row first: each of its elements is read often."""
    return _is_turned(b) and a.ndim > 1 and a.shape[-2] >= LONG


def is_short_stack(a: Array, b: Array) -> bool:
    """Whether np.matmul of stacks of matrices is such a product."""
    a, b = _as_form(a), _as_form(b)
    shapes = a.shape, b.shape
    if max(map(len, shapes)) < 3 or not min(map(len, shapes)) or np.result_type(a.dtype, b.dtype).char not in SUMMED:
        return False
    if joined_shape(shape[:-2] for shape in shapes) is None:
        return False
    return shapes[0][-1] == shapes[1][-2:][0] and is_short(a, b)


_RULES: tuple[Rule, ...] = (is_summed, is_short, is_short_stack)
_ON_DEVICES = {rule: _or_few_columns(rule) for rule in _RULES}


def _not_stacked(asked: Asked) -> Any:
    """`_not_summed` for np.matmul."""
    if not asked.options and len(asked.examples) == len(A_B) and is_short_stack(*asked.examples):
        raise ValueError("kernels sum this product")
    return _not_summed(asked)


def _not_summed(asked: Asked) -> Any:
    """What BLAS makes. Raises ValueError for operands whose product kernels sum: their plan is another."""
    if not asked.options and len(asked.examples) == len(A_B) and is_summed(*asked.examples):
        raise ValueError("kernels sum this product")
    return asked.by_stand_ins()


_matmul = LibraryFunction(np.matmul, "np.matmul", (0, 1), outcome=_not_stacked, by_kernels=_of_stacks)
_dot = LibraryFunction(np.dot, "np.dot", (0, 1), A_B, outcome=_not_summed, by_kernels=summed)
FUNCTIONS.update(
    {
        "dot": _or_multiplied("dot", _dot), "outer": outer,
        "inner": _or_multiplied("inner", LibraryFunction(np.inner, "np.inner", (0, 1), A_B, by_kernels=_of_vectors)),
        "vdot": LibraryFunction(np.vdot, "np.vdot", (0, 1), A_B, by_kernels=_conjugated),
        "tensordot": _of_any(LibraryFunction(np.tensordot, "np.tensordot", (0, 1), A_B)),
    }
)  # fmt: skip
METHODS.update({"dot": FUNCTIONS["dot"], "_product": _of_ufunc})
