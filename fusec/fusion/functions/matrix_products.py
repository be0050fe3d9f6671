"""Products of matrices among calls of NumPy's functions, and how strides become arguments of libraries' functions.

A product is said by labels of axes, as `np.einsum` has them. An axis in both operands and the result counts pairs of
matrices, one in both operands alone is summed, others are rows or columns. Neighbouring axes of a kind are one axis
where the strides of all arrays allow it. Libraries count down columns, and read a matrix as it lies or transposed, if
it has a unit stride.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from fusec.base import dtypes
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import strides_in_order
from fusec.base.matrices import Matrix, ProductSizes
from fusec.fusion.functions.contractions import Contraction
from fusec.fusion.functions.libraries import called_by, calls_plainly
from fusec.fusion.trace.trace_values import LibraryCall

MAX_KNOWN = 1024  # calls of each kind for which arguments are kept
ROWS = frozenset((dtypes.FLOAT16, dtypes.BFLOAT16, dtypes.FLOAT32, dtypes.FLOAT64, dtypes.COMPLEX64, dtypes.COMPLEX128))
"""The dtypes of products."""

Label = object


class Terms(NamedTuple):
    """The labels of the axes of two operands and of their product. Of complex numbers, some functions conjugate the
    first operand.
    """

    left: tuple[Label, ...]
    right: tuple[Label, ...]
    result: tuple[Label, ...]
    conjugates: bool = False

    @property
    def labels(self) -> tuple[tuple[Label, ...], ...]:
        """Those of the operands and the result."""
        return self.left, self.right, self.result


class Arrangement(NamedTuple):
    """How an array lies in memory: strides in bytes. rest: of its address, beyond whole vectors."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    row: DType
    rest: int = 0

    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
        return prod(self.shape) * self.row.nbytes


def is_product(call: LibraryCall) -> bool:
    """Whether a library computes a call."""
    return labels_axes(call) and call.buffers[0].dtype in ROWS


def labels_axes(call: LibraryCall) -> bool:
    """Whether a call is a product, of any dtype."""
    return len(call.operands) == 2 and len(call.buffers) == 1 and _labelled(call) is not None


def terms_of(call: LibraryCall, left: int, right: int) -> Terms:
    """The labels of a call that is a product. left, right: how many axes its operands have."""
    labelled = _labelled(call)
    assert labelled is not None, "a product"
    return labelled(left, right)


@lru_cache(MAX_KNOWN)
def _labelled(call: LibraryCall) -> Callable[[int, int], Terms] | None:
    """What labels the axes of a call's operands; None for a call that is no product."""
    function = called_by(call.function)
    if calls_plainly(call.function, function):
        if isinstance(function, Contraction):
            given = Terms(tuple(function.left), tuple(function.right), tuple(function.result))
            is_whole = set(given.left) ^ set(given.right) <= set(given.result)
            return (lambda *_: given) if is_whole else None
        return _PLAIN.get(function)
    if function is np.tensordot or function is np.vecdot:
        asked = _asked_axes(call.function, "axes" if function is np.tensordot else "axis")
        return None if asked is None else partial(_of_tensordot if function is np.tensordot else _of_vecdot, asked[0])
    return None


def _asked_axes(function: Any, name: str) -> tuple[Any] | None:
    """The axes that a call asks for by an option, if there is no other argument."""
    args, options = function.args[1][2:], function.args[2]
    if len(args) == 1 and not options and name == "axes":
        return (args[0],)
    return (options[name],) if not args and options.keys() == {name} else None


def _stacked(left: int, right: int, inner: tuple[int, int], own: tuple[int, int]) -> Terms:
    """Labels where the last axes are those of a product, and those before broadcast. inner: places of the axis that is
    summed, from the end; own: how many other axes of the product each operand has.
    """
    before = left - 1 - own[0], right - 1 - own[1]
    shared = [("pair", at) for at in reversed(range(max(before)))]

    def labels(count: int, place: int, name: str, has_own: int) -> tuple[Label, ...]:
        last: list[Label] = [name] * has_own
        last.insert(len(last) + 1 - place, "inner")
        return (*shared[len(shared) - count :], *last)

    first, second = labels(before[0], inner[0], "row", own[0]), labels(before[1], inner[1], "column", own[1])
    return Terms(first, second, (*shared, *["row"] * own[0], *["column"] * own[1]))


def _of_matmul(left: int, right: int) -> Terms:
    return _stacked(left, right, (1, 1 + (right > 1)), (int(left > 1), int(right > 1)))


def _contracted(left: int, right: int, first: Sequence[int], second: Sequence[int]) -> Terms:
    """Labels where some axes are summed, and others follow each other."""
    a: list[Label] = [("left", at) for at in range(left)]
    b: list[Label] = [("right", at) for at in range(right)]
    for one, other in zip(first, second, strict=True):
        a[one] = b[other] = ("inner", one)
    free = [each for each in (*a, *b) if isinstance(each, tuple) and each[0] != "inner"]
    return Terms(tuple(a), tuple(b), tuple(free))


def _of_dot(left: int, right: int) -> Terms:
    return _contracted(left, right, [left - 1], [max(0, right - 2)])


def _of_inner(left: int, right: int) -> Terms:
    return _contracted(left, right, [left - 1], [right - 1])


def _of_tensordot(axes: Any, left: int, right: int) -> Terms:
    if np.ndim(axes) == 0 and not isinstance(axes, (tuple, list)):
        first, second = range(left - int(axes), left), range(int(axes))
        return _contracted(left, right, list(first), list(second))
    one, other = (list(each) if isinstance(each, (tuple, list)) else [each] for each in axes)
    return _contracted(left, right, [at % left for at in one], [at % right for at in other])


def _of_vecdot(axis: int, left: int, right: int) -> Terms:
    terms = _stacked(left, right, (1, 1), (0, 0))

    def along(own: tuple[Label, ...]) -> tuple[Label, ...]:
        rest = [each for each in own if each != "inner"]
        rest.insert(axis % len(own), "inner")
        return tuple(rest)

    return Terms(along(terms.left), along(terms.right), terms.result, True)


_PLAIN: dict[Any, Callable[[int, int], Terms]] = {
    np.matmul: _of_matmul,
    np.dot: _of_dot,
    np.inner: _of_inner,
    np.tensordot: partial(_of_tensordot, 2),
    np.vecdot: partial(_of_vecdot, -1),
}
if hasattr(np, "matvec"):  # NumPy 2.2 and later
    _PLAIN[np.matvec] = lambda left, right: _stacked(left, right, (1, 1), (1, 0))
    _PLAIN[np.vecmat] = lambda left, right: _stacked(left, right, (1, 2), (0, 1))._replace(conjugates=True)


class Axis(NamedTuple):
    """Neighbouring axes as one. steps: of several arrays, in elements; 0 in an array without it."""

    extent: int
    steps: tuple[int, ...]


_NONE = Axis(1, (0, 0, 0))
Steps = dict[Label, int]


class MatrixCalls(NamedTuple):
    """Calls of a library for arrays that lie in some way. starts: of each, elements before operands and result."""

    sizes: ProductSizes
    matrices: tuple[Matrix, Matrix, Matrix]
    is_swapped: bool
    starts: list[tuple[int, ...]]
    cost: tuple[int, int]


def axes_in(labels: Sequence[Label], order: Sequence[Label]) -> tuple[int, ...]:
    """The axes of an array in an order of labels."""
    return tuple(sorted(range(len(labels)), key=lambda axis: order.index(labels[axis])))


def steps_of(labels: Sequence[Label], form: Arrangement, order: Sequence[Label] | None) -> Steps:
    """Elements from one position along a label to the next, of labels that have several. order: of a dense copy."""
    strides = [step // form.row.nbytes for step in form.strides]
    if order is not None:
        strides = [*strides_in_order(form.shape, axes_in(labels, order), 1)]
    found: Steps = {}
    for label, extent, step in zip(labels, form.shape, strides, strict=True):
        if extent > 1:
            found[label] = found.get(label, 0) + step
    return found


def fewest_calls(steps: Sequence[Steps], extents: Mapping[Label, int], order: Sequence[Label]) -> MatrixCalls | None:
    """The fewest calls for arrays with these steps; None if a library cannot read or write one of them."""
    kinds: dict[tuple[bool, ...], list[Axis]] = {}
    for label in order:
        has = tuple([label in each for each in steps])
        if any(has):
            first, second, third = (each.get(label, 0) for each in steps)
            axis = Axis(extents[label], (first, second, third))
            kinds.setdefault(has, []).append(axis)
    pairs, rows, columns, inner = (
        joined(kinds.get(has, []))
        for has in ((True,) * 3, (True, False, True), (False, True, True), (True, True, False))
    )
    if len(inner) > 1:
        return None
    found = []
    for row, column in itertools.product(rows or [_NONE], columns or [_NONE]):
        others = [each for each in (*pairs, *rows, *columns) if each is not row and each is not column]
        tried = _of_matrices(row, column, inner[0] if inner else _NONE, others)
        if tried is not None:
            found.append(tried)
    return min(found, key=lambda each: each.cost, default=None)


def joined(axes: Iterable[Axis]) -> list[Axis]:
    """Axes from outermost to innermost, neighbours as one where that is possible."""
    found: list[Axis] = []
    for axis in axes:
        if found and all(a == b * axis.extent for a, b in zip(found[-1].steps, axis.steps, strict=True)):
            axis = Axis(found.pop().extent * axis.extent, axis.steps)
        found.append(axis)
    return found


def _of_matrices(row: Axis, column: Axis, inner: Axis, others: Sequence[Axis]) -> MatrixCalls | None:
    """Calls for these axes of matrices. others: axes that count pairs of matrices."""
    (left, _, _), (_, right, _) = row.steps, column.steps
    own = _read(row.extent, row.steps[2], column.extent, column.steps[2])
    if own is None:
        return None
    is_swapped, leading = own
    one = (row.extent, left, inner.extent, inner.steps[0])
    other = (inner.extent, inner.steps[1], column.extent, right)
    pair = [_read(*each[2:], *each[:2]) for each in (other, one)] if is_swapped else [_read(*one), _read(*other)]
    if pair[0] is None or pair[1] is None:
        return None
    others = joined(sorted(others, key=lambda each: -each.steps[2]))
    counted = max((each for each in others if min(each.steps) >= 0), key=lambda each: each.extent, default=_NONE)
    rest = [each for each in others if each is not counted]
    starts = [
        tuple([sum(at * each.steps[which] for at, each in zip(place, rest, strict=True)) for which in range(3)])
        for place in itertools.product(*(range(each.extent) for each in rest))
    ]
    steps = (counted.steps[1], counted.steps[0]) if is_swapped else counted.steps[:2]
    matrices = (
        Matrix(*pair[0], steps[0]), Matrix(*pair[1], steps[1]), Matrix(False, leading, counted.steps[2])
    )  # fmt: skip
    shape = (column.extent, row.extent) if is_swapped else (row.extent, column.extent)
    cost = len(starts), -row.extent * column.extent
    return MatrixCalls(ProductSizes(*shape, inner.extent, counted.extent), matrices, is_swapped, starts, cost)


def _read(rows: int, down: int, columns: int, along: int) -> tuple[bool, int] | None:
    """How a library, which counts down columns, reads a matrix with these steps: whether transposed, and the elements
    from one column to the next as it lies; None if it cannot.
    """
    if (down == 1 or rows == 1) and (columns == 1 or along >= rows):
        return False, rows if columns == 1 else along
    if (along == 1 or columns == 1) and (rows == 1 or down >= columns):
        return True, columns if rows == 1 else down
    return None


@lru_cache(MAX_KNOWN)
def uncopied(terms: Terms, left: Arrangement, right: Arrangement, result: Arrangement) -> MatrixCalls | None:
    """The fewest calls of a library that copy nothing; None where there are none, or nothing is added up."""
    forms = left, right, result
    extents: dict[Label, int] = {}
    for labels, form in zip(terms.labels, forms, strict=True):
        for label, extent in zip(labels, form.shape, strict=True):
            extents[label] = extent if extents.get(label, 1) == 1 else extents[label]
    if not all(extents.values()) or (terms.conjugates and left.row in dtypes.COMPLEX):
        return None
    if any(step % form.row.nbytes for form in forms for step in form.strides):
        return None
    steps = [steps_of(labels, form, None) for labels, form in zip(terms.labels, forms, strict=True)]
    return fewest_calls(steps, extents, [*extents])
