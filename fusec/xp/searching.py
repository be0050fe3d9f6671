"""Where elements are: indexing by arrays, searching, sets and sorting."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fusec.xp.array import Array
from fusec.xp.calls import Axis, Operand, array_of, call, given, operand_of
from fusec.xp.documentation import documented
from fusec.xp.promotion import check
from fusec.xp.recording import eager, record
from fusec.xp.signatures import CHECKED

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "count_nonzero",
    "isin",
    "nonzero",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "where",
]

# --- indexing and searching ----------------------------------------------------------------------------------------


@documented
def take(x: Operand, indices: Operand, /, axis: int | None = None, **options: Any) -> Array:
    """The elements at positions along an axis.

    indices: integers, any shape; it replaces the axis. axis: None for all elements in C order, as one axis.

    >>> xp.take(xp.asarray([10, 20, 30]), xp.asarray([2, 0]), axis=0)
    Array([30, 10])
    """
    return call(np.take, x, operand_of(indices), axis=axis, **options)


@documented
def take_along_axis(x: Operand, indices: Operand, /, axis: int | None = -1) -> Array:
    """The elements at positions along an axis, other ones for each line of it.

    indices: integers; the shape broadcasts against x but along the axis.

    >>> xp.take_along_axis(xp.asarray([[1, 2], [3, 4]]), xp.asarray([[1], [0]]))
    Array([[2],
           [3]])
    """
    return call(np.take_along_axis, x, array_of(indices), axis=axis)


@documented
def argmax(x: Operand, /, axis: int | None = None, *, keepdims: bool = False, **options: Any) -> Array:
    """The position of the greatest element, of the first one if there are several.

    axis: an integer; None for the position among all elements in C order.

    >>> xp.argmax(xp.asarray([[1, 5], [7, 3]]), axis=1)
    Array([1, 0])
    """
    return call(np.argmax, x, **given(axis=axis, keepdims=keepdims), **options)


@documented
def argmin(x: Operand, /, axis: int | None = None, *, keepdims: bool = False, **options: Any) -> Array:
    """The position of the least element, of the first one if there are several.

    axis: an integer; None for the position among all elements in C order.

    >>> xp.argmin(xp.asarray([[1, 5], [7, 3]]), axis=1)
    Array([0, 1])
    """
    return call(np.argmin, x, **given(axis=axis, keepdims=keepdims), **options)


@documented
def count_nonzero(x: Operand, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """How many elements are not zero.

    >>> xp.count_nonzero(xp.asarray([[1, 0], [2, 3]]), axis=0)
    Array([2, 1])
    """
    return call(np.count_nonzero, x, **given(axis=axis, keepdims=keepdims))


@documented
def nonzero(x: Operand, /) -> tuple[Array, ...]:
    """The indices of elements that are not zero: for each axis an array of them; evaluates x.

    >>> xp.nonzero(xp.asarray([0, 3, 0, 4]))
    (Array([1, 3]),)
    """
    return tuple(eager(np.nonzero, (array_of(x),), {}))


@documented
def searchsorted(x1: Operand, x2: Operand, /, side: str = "left", sorter: Operand | None = None) -> Array:
    """Where elements would be put into a sorted array.

    x1: one axis, sorted. x2: what to put in; the result has its shape.
    side: 'left' for the first possible place, 'right' for the last one. sorter: what sorts x1, as argsort gives it.

    >>> xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([3, 6]))
    Array([1, 3])
    """
    return call(np.searchsorted, x1, operand_of(x2), side=side, **given(sorter=sorter))


@documented
def where(condition: Operand, x1: Operand = None, x2: Operand = None, /) -> Any:
    """The elements of x1 where the condition holds, those of x2 elsewhere; all three broadcast.

    condition: bools; alone, the indices of those that hold, as `nonzero` gives them.

    >>> xp.where(xp.asarray([True, False]), xp.asarray([1, 2]), 0)
    Array([1, 0])
    """
    if x1 is None and x2 is None:
        return nonzero(condition)
    if x1 is None or x2 is None:
        raise ValueError("either both or neither of x and y should be given")
    if CHECKED:
        check("where", (x1, x2))
    return call(np.where, condition, operand_of(x1), operand_of(x2))


# --- sets ----------------------------------------------------------------------------------------------------------


class UniqueAll(NamedTuple):
    """The distinct elements, where each is first, which one each element is, and how often each occurs."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """The distinct elements, and how often each occurs."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """The distinct elements, and which one each element is."""

    values: Array
    inverse_indices: Array


@documented
def isin(x1: Operand, x2: Operand, /, *, invert: bool = False, **options: Any) -> Array:
    """Whether each element of x1 is among those of x2; the result has the shape of x1.

    x2: any shape.

    >>> xp.isin(xp.asarray([1, 2, 3]), xp.asarray([2, 5]))
    Array([False,  True, False])
    """
    if CHECKED:
        check("isin", (x1, x2))
    return call(np.isin, x1, operand_of(x2), **given(invert=invert), **options)


@documented
def unique_all(x: Operand, /) -> UniqueAll:
    """The distinct elements in order, with their first positions, inverse indices and counts; evaluates x.

    >>> xp.unique_all(xp.asarray([3, 1, 3])).counts
    Array([1, 2])
    """
    return UniqueAll(*_unique(x, return_index=True, return_inverse=True, return_counts=True))


@documented
def unique_counts(x: Operand, /) -> UniqueCounts:
    """The distinct elements in order, and how often each occurs; evaluates x.

    >>> xp.unique_counts(xp.asarray([3, 1, 3])).values
    Array([1, 3])
    """
    return UniqueCounts(*_unique(x, return_counts=True))


@documented
def unique_inverse(x: Operand, /) -> UniqueInverse:
    """The distinct elements in order, and which one each element is, in the shape of x; evaluates x.

    >>> xp.unique_inverse(xp.asarray([3, 1, 3])).inverse_indices
    Array([1, 0, 1])
    """
    return UniqueInverse(*_unique(x, return_inverse=True))


@documented
def unique_values(x: Operand, /) -> Array:
    """The distinct elements in order, on one axis; every nan is distinct; evaluates x.

    >>> xp.unique_values(xp.asarray([3, 1, 3]))
    Array([1, 3])
    """
    return _unique(x)  # type: ignore[no-any-return]


def _unique(x: Operand, **wanted: bool) -> Any:
    return eager(np.unique, (array_of(x),), {**wanted, "equal_nan": False})


# --- sorting -------------------------------------------------------------------------------------------------------


ORDER = {False: None, True: "stable"}  # as kind=, which CuPy takes too


@documented
def argsort(
    x: Operand, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True, **options: Any
) -> Array:
    """The positions of elements in order of size, of nan last.

    axis: an integer; None for all elements in C order, as one axis.

    >>> xp.argsort(xp.asarray([3, 1, 2]))
    Array([1, 2, 0])
    """
    if options:
        return call(np.argsort, x, axis=axis, **options)
    if not descending:
        return call(np.argsort, x, axis=axis, kind=ORDER[stable])
    turned = array_of(x) if axis is not None else array_of(x).reshape(-1)
    along = -1 if axis is None else axis
    found = record(np.argsort, record(np.flip, turned, axis=along), axis=along, kind=ORDER[stable])
    return (turned.shape[along] - 1) - record(np.flip, found, axis=along)  # type: ignore[no-any-return]


@documented
def sort(
    x: Operand, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True, **options: Any
) -> Array:
    """The elements in order of size, nan last; with descending=True, first.

    axis: an integer; None for all elements in C order, as one axis.

    >>> xp.sort(xp.asarray([3, 1, 2]), descending=True)
    Array([3, 2, 1])
    """
    found = call(np.sort, x, axis=axis, **(options or {"kind": ORDER[stable]}))
    return record(np.flip, found, axis=-1 if axis is None else axis) if descending else found
