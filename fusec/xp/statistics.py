"""Totals of elements along axes, and what runs along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.xp.array import Array
from fusec.xp.calls import Axis, DType, Operand, array_of, call, given, operand_of
from fusec.xp.documentation import documented
from fusec.xp.promotion import check
from fusec.xp.signatures import CHECKED

__all__ = ["all", "any", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std", "sum", "var"]


@documented
def all(x: Operand, /, axis: Axis = None, *, keepdims: bool = False, **options: Any) -> Array:  # noqa: A001
    """Whether no element is zero.

    >>> xp.all(xp.asarray([[True, False], [True, True]]), axis=1)
    Array([False,  True])
    """
    return call(np.all, x, **given(axis=axis, keepdims=keepdims), **options)


@documented
def any(x: Operand, /, axis: Axis = None, *, keepdims: bool = False, **options: Any) -> Array:  # noqa: A001
    """Whether some element is not zero.

    >>> xp.any(xp.asarray([[True, False], [False, False]]), axis=1)
    Array([ True, False])
    """
    return call(np.any, x, **given(axis=axis, keepdims=keepdims), **options)


@documented
def max(x: Operand, /, axis: Axis = None, *, keepdims: bool = False, **options: Any) -> Array:  # noqa: A001
    """The greatest element; nan if there is one.

    >>> xp.max(xp.asarray([[1, 5], [7, 3]]), axis=0)
    Array([7, 5])
    """
    return call(np.max, x, **given(axis=axis, keepdims=keepdims), **options)


@documented
def min(x: Operand, /, axis: Axis = None, *, keepdims: bool = False, **options: Any) -> Array:  # noqa: A001
    """The least element; nan if there is one.

    >>> xp.min(xp.asarray([[1, 5], [7, 3]]), axis=0)
    Array([1, 3])
    """
    return call(np.min, x, **given(axis=axis, keepdims=keepdims), **options)


@documented
def mean(x: Operand, /, axis: Axis = None, *, keepdims: bool = False, **options: Any) -> Array:
    """The arithmetic mean; nan of no elements.

    >>> xp.mean(xp.asarray([[1.0, 2.0], [3.0, 5.0]]), axis=1)
    Array([1.5, 4. ])
    """
    return call(np.mean, x, **given(axis=axis, keepdims=keepdims), **options)


@documented
def sum(  # noqa: A001
    x: Operand, /, axis: Axis = None, dtype: DType = None, *, keepdims: bool = False, **options: Any
) -> Array:
    """The sum of elements; that of small integers and bools in 64 bits.

    >>> xp.sum(xp.asarray([[1, 2], [3, 4]]), axis=0)
    Array([4, 6])
    """
    return call(np.sum, x, **given(axis=axis, dtype=dtype, keepdims=keepdims), **options)


@documented
def prod(x: Operand, /, axis: Axis = None, dtype: DType = None, *, keepdims: bool = False, **options: Any) -> Array:
    """The product of elements; that of small integers and bools in 64 bits.

    >>> xp.prod(xp.asarray([[1, 2], [3, 4]]), axis=0)
    Array([3, 8])
    """
    return call(np.prod, x, **given(axis=axis, dtype=dtype, keepdims=keepdims), **options)


@documented
def std(x: Operand, /, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False, **options: Any) -> Array:
    """The standard deviation.

    >>> float(xp.std(xp.asarray([1.0, 3.0])))
    1.0
    """
    return call(np.std, x, **given(axis=axis, keepdims=keepdims, correction=correction or None), **options)


@documented
def var(x: Operand, /, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False, **options: Any) -> Array:
    """The variance.

    >>> float(xp.var(xp.asarray([1.0, 3.0]), correction=1))
    2.0
    """
    return call(np.var, x, **given(axis=axis, keepdims=keepdims, correction=correction or None), **options)


@documented
def cumulative_sum(
    x: Operand, /, *, axis: int | None = None, dtype: DType = None, include_initial: bool = False, **options: Any
) -> Array:
    """The sums of the elements up to each one.

    axis: an integer; None only if x has one axis.

    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6])
    """
    found = given(axis=axis, dtype=dtype, include_initial=include_initial)
    return call(np.cumulative_sum, x, **found, **options)


@documented
def cumulative_prod(
    x: Operand, /, *, axis: int | None = None, dtype: DType = None, include_initial: bool = False, **options: Any
) -> Array:
    """The products of the elements up to each one.

    axis: an integer; None only if x has one axis.

    >>> xp.cumulative_prod(xp.asarray([1, 2, 3]))
    Array([1, 2, 6])
    """
    found = given(axis=axis, dtype=dtype, include_initial=include_initial)
    return call(np.cumulative_prod, x, **found, **options)


@documented
def diff(
    x: Operand, /, n: int = 1, axis: int = -1, prepend: Operand | None = None, append: Operand | None = None
) -> Array:
    """The differences of neighbours along an axis, which has n elements less.

    n: how often differences are taken. prepend, append: what is put before or behind first, of the same shape but
    along the axis.

    >>> xp.diff(xp.asarray([1, 4, 9]))
    Array([3, 5])
    """
    ends = {name: operand_of(each) for name, each in given(prepend=prepend, append=append).items()}
    if CHECKED:
        check("diff", [array_of(x), *ends.values()])
    return call(np.diff, x, n, axis=axis, **ends)
