"""What users of NumPy expect beyond the standard, and what libraries of numerics have beside.

NumPy's functions have NumPy's parameters; the others are explained where they are defined.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from fusec.library import cumulative, reductions
from fusec.xp import activations, special
from fusec.xp.activations import *  # noqa: F403
from fusec.xp.array import Array
from fusec.xp.calls import Axis, Operand, array_of, call, given, joint, several
from fusec.xp.creation import Shape, arange
from fusec.xp.datatypes import finfo
from fusec.xp.documentation import composed, documented
from fusec.xp.elementwise import abs as absolute
from fusec.xp.elementwise import copysign, floor, less_equal, sin, sqrt
from fusec.xp.numpy_names import fallback
from fusec.xp.numpy_rows import ROWS
from fusec.xp.products import matmul
from fusec.xp.recording import eager
from fusec.xp.searching import argmax, argmin, argsort, where
from fusec.xp.special import *  # noqa: F403
from fusec.xp.special import floating
from fusec.xp.statistics import any as some
from fusec.xp.statistics import mean

# --- NumPy's ---------------------------------------------------------------------------------------------------------


@cache
def _from_numpy(name: str) -> Any:
    found = fallback(name, __name__, np, "", ROWS)
    sentence, example, result = ROWS[name]
    found.__doc__ = composed(f"{sentence}\n\n>>> {example}\n{result}", ())
    return found


# --- new arrays ------------------------------------------------------------------------------------------------------


@documented
def seq(shape: Shape, start: Any = 0, step: Any = 1) -> Array:
    """The numbers start, start + step, ... in C order, exact for large integers too.

    start: the first number. step: the distance of two.

    >>> xp.extra.seq((2, 2), 1, 2)
    Array([[1, 3],
           [5, 7]])
    """
    count = int(np.prod(shape, dtype=object))
    found: Array = (start + arange(count) * step).reshape(shape)
    return found


@documented
def logseq(shape: Shape, start: Any = 0, step: Any = 1, base: Any = 10) -> Array:
    """Base to the powers start, start + step, ... in C order.

    start: the first exponent. step: the distance of two. base: a number.

    >>> xp.extra.logseq(4, 4, -1, 2)
    Array([16.,  8.,  4.,  2.])
    """
    return base ** floating(seq(shape, start, step))  # type: ignore[no-any-return]


# --- of each element -------------------------------------------------------------------------------------------------


@documented
def nearly_equal(x1: Operand, x2: Operand, /) -> Array:
    """Whether they differ by no more than 2 * eps * (abs(x1) + abs(x2)), eps that of their common dtype.

    >>> xp.extra.nearly_equal(xp.asarray([0.1 + 0.2, 1.0]), xp.asarray([0.3, 1.1]))
    Array([ True, False])
    """
    x1, x2 = floating(x1), floating(x2)
    eps = finfo(np.result_type(x1.dtype, x2.dtype)).eps
    return less_equal(absolute(x1 - x2), 2 * eps * (absolute(x1) + absolute(x2)))


@documented
def round_half_away(x: Operand, /) -> Array:
    """The nearest integer, of two the one that is farther from 0.

    >>> xp.extra.round_half_away(xp.asarray([0.5, 2.5, -2.5]))
    Array([ 1.,  3., -3.])
    """
    x = array_of(x)
    if x.dtype.kind not in "fc":
        found: Array = x
        return found
    size = absolute(x)
    down = floor(size)
    return copysign(down + (size - down >= 0.5), x)


@documented
def sinc_unnormalized(x: Operand, /) -> Array:
    """sin(x) / x, 1 at 0.

    >>> xp.extra.sinc_unnormalized(xp.asarray([0.0]))
    Array([1.])
    """
    x = floating(x)
    return where(x == 0, 1, sin(x) / where(x == 0, 1, x))  # type: ignore[no-any-return]


@documented
def mul_i(x: Operand, /) -> Array:
    """The imaginary unit times x.

    >>> xp.extra.mul_i(xp.asarray([1 + 2j]))
    Array([-2.+1.j])
    """
    return with_imag(-array_of(x).imag, array_of(x).real)


@documented
def with_real(x1: Operand, x2: Operand, /) -> Array:
    """Complex numbers with the real part x2 and the imaginary part of x1.

    >>> xp.extra.with_real(xp.asarray([1 + 2j]), xp.asarray([5.0]))
    Array([5.+2.j])
    """
    return with_imag(x2, array_of(x1).imag)


@documented
def with_imag(x1: Operand, x2: Operand, /) -> Array:
    """Complex numbers with the real part of x1 and the imaginary part x2.

    >>> xp.extra.with_imag(xp.asarray([1 + 2j]), xp.asarray([5.0]))
    Array([1.+5.j])
    """
    return joint(_complex, array_of(x1).real, array_of(x2))


def _complex(real: Any, imag: Any) -> Any:
    found = np.empty_like(real + imag, dtype=np.result_type(real.dtype, imag.dtype, np.complex64))
    found.real[...] = real
    found.imag[...] = imag
    return found


@documented
def popcount(x: Operand, /) -> Array:
    """How many bits of the absolute value are set.

    >>> xp.extra.popcount(xp.asarray([5, 8]))
    Array([2, 1], dtype=uint8)
    """
    return call(np.bitwise_count, x)


@documented
def poly(x: Operand, /, *coefficients: Operand) -> Array:
    """The polynomial a0 + a1 * x + a2 * x**2 + ..., by Horner's rule.

    coefficients: a0, a1, ..., numbers or arrays that broadcast against x.

    >>> xp.extra.poly(xp.asarray([2]), 1, 2, 3)
    Array([17])
    """
    x = array_of(x)
    found: Any = x * 0
    for each in reversed(coefficients):
        found = found * x + each
    return found  # type: ignore[no-any-return]


# --- totals ----------------------------------------------------------------------------------------------------------


@documented
def rms(x: Operand, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """The square root of the mean of squares.

    >>> round(float(xp.extra.rms(xp.asarray([1.0, 2.0, 3.0, 5.0, 7.0, 11.0]))), 5)
    5.90198
    """
    size = absolute(floating(x))
    return sqrt(mean(size * size, axis=axis, keepdims=keepdims))


@documented
def minmax(x: Operand, /, axis: Axis = None, *, keepdims: bool = False) -> tuple[Array, Array]:
    """The least and the greatest element, in one pass.

    >>> xp.extra.minmax(xp.asarray([3, 1, 2]))
    (Array(1), Array(3))
    """
    least, greatest = several(reductions.minmax, array_of(x), **given(axis=axis, keepdims=keepdims))
    return least, greatest


@documented
def mean_var(
    x: Operand, /, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False
) -> tuple[Array, Array]:
    """The mean and the variance, in one pass.

    >>> xp.extra.mean_var(xp.asarray([1.0, 3.0]))
    (Array(2.), Array(1.))
    """
    further = given(axis=axis, keepdims=keepdims, correction=correction or None)
    middle, spread = several(reductions.mean_var, floating(x), **further)
    return middle, spread


@documented
def mulsum(x1: Operand, x2: Operand, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """The sum of x1 * x2, which broadcast; nothing is conjugated.

    >>> float(xp.extra.mulsum(xp.asarray([1.0, 2.0]), xp.asarray([3.0, 4.0])))
    11.0
    """
    return joint(reductions.mulsum, x1, array_of(x2), **given(axis=axis, keepdims=keepdims))


@documented
def none(x: Operand, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """Whether all elements are zero.

    >>> bool(xp.extra.none(xp.asarray([False, False])))
    True
    """
    found: Array = ~some(x, axis=axis, keepdims=keepdims)
    return found


@documented
def max_index(x: Operand, /, axis: int | None = None) -> Array:
    """The positions among all elements, in C order, of the greatest ones along an axis.

    >>> xp.extra.max_index(xp.asarray([[1, 5], [7, 3]]), axis=1)
    Array([1, 2])
    """
    return _flat(argmax, array_of(x), axis)


@documented
def min_index(x: Operand, /, axis: int | None = None) -> Array:
    """The positions among all elements, in C order, of the least ones along an axis.

    >>> xp.extra.min_index(xp.asarray([[1, 5], [7, 3]]), axis=1)
    Array([0, 3])
    """
    return _flat(argmin, array_of(x), axis)


def _flat(function: Any, x: Array, axis: int | None) -> Array:
    """Positions along an axis as positions among all elements."""
    if axis is None:
        return function(x)  # type: ignore[no-any-return]
    positions = arange(x.size).reshape(x.shape)
    found = function(x, axis=axis, keepdims=True)
    return call(np.take_along_axis, positions, found, axis=axis)._viewed(np.squeeze, axis)


@documented
def sort_index(x: Operand, /, axis: int = -1) -> Array:
    """The positions among all elements, in C order, of the elements sorted along an axis; it has the shape of x.

    >>> xp.extra.sort_index(xp.asarray([[3, 1], [2, 4]]))
    Array([[1, 0],
           [2, 3]])
    """
    x = array_of(x)
    return call(np.take_along_axis, arange(x.size).reshape(x.shape), argsort(x, axis=axis), axis=axis)


@documented
def where2(x: Operand, /) -> tuple[Array, Array]:
    """The positions in C order of the elements that are not zero, and of those that are; evaluates x.

    >>> xp.extra.where2(xp.asarray([True, False, True]))
    (Array([0, 2]), Array([1]))
    """
    x = array_of(x)
    return eager(np.flatnonzero, (x,), {}), eager(np.flatnonzero, (x == 0,), {})


# --- along an axis, and products -------------------------------------------------------------------------------------


@documented
def cummax(x: Operand, /, axis: int | None = None) -> Array:
    """The greatest of the elements up to each one.

    >>> xp.extra.cummax(xp.asarray([1, 3, 2]))
    Array([1, 3, 3])
    """
    return call(cumulative.cummax, x, **given(axis=axis))


@documented
def cummin(x: Operand, /, axis: int | None = None) -> Array:
    """The least of the elements up to each one.

    >>> xp.extra.cummin(xp.asarray([3, 1, 2]))
    Array([3, 1, 1])
    """
    return call(cumulative.cummin, x, **given(axis=axis))


@documented
def logcumsumexp(x: Operand, /, axis: int | None = None) -> Array:
    """The logarithms of the sums of exp(x) up to each element, without overflow between.

    >>> xp.round(xp.extra.logcumsumexp(xp.asarray([0.0, 0.0])), 4)
    Array([0.    , 0.6931])
    """
    return call(cumulative.logcumsumexp, floating(x), **given(axis=axis))


@documented
def gemm(a: Operand, b: Operand, c: Operand = None, /, *, alpha: Any = 1, beta: Any = 1) -> Array:
    """Alpha * (a @ b) + beta * c.

    a, b: matrices, or batches of them. c: an array that broadcasts against the product. alpha, beta: numbers.

    >>> xp.extra.gemm(xp.asarray([[1, 2]]), xp.asarray([[3], [4]]), xp.asarray([[5]]), alpha=2)
    Array([[27]])
    """
    found: Array = alpha * matmul(a, b)
    return found if c is None else found + beta * array_of(c)


OWN = (
    "cummax cummin gemm logcumsumexp logseq max_index mean_var min_index minmax mul_i mulsum nearly_equal none poly"
    " popcount rms round_half_away seq sinc_unnormalized sort_index where2 with_imag with_real"
).split()
__all__ = sorted([*ROWS, *OWN, *activations.__all__, *special.__all__])


def __getattr__(name: str) -> Any:
    if name in ROWS:
        return _from_numpy(name)
    return fallback(name, __name__, None, "", __all__)


def __dir__() -> list[str]:
    """The public names, and Python's own."""
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
