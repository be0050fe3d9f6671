"""Products on devices by cuBLAS: which calls are products, and how strides become the arguments of cuBLAS's functions.

A product is said by labels of axes, as `np.einsum` has them. An axis in both operands and the result counts pairs of
matrices, one in both operands alone is summed, others are rows or columns. Neighbouring axes of a kind are one axis
where the strides of all arrays allow it. cuBLAS reads a matrix as it lies or transposed, if it has a unit stride; what
has none, or has another dtype than is multiplied, is copied first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from fusec.base import dtypes
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import strides_in_order
from fusec.fusion.devices.recipes import FEW_CALLS, MAX_KNOWN, Arrangement, Axis, Recipe, RecipeBuilder, joined
from fusec.fusion.functions.contractions import Contraction
from fusec.fusion.functions.libraries import called_by, calls_plainly
from fusec.fusion.trace.trace_values import LibraryCall
from fusec.runtime import cuda

LIBRARY = cuda.cublas

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


class Copied(NamedTuple):
    """A dense copy of an array. order: its axes from outermost to innermost. is_conjugate: not what the array holds."""

    order: tuple[int, ...]
    row: DType
    is_conjugate: bool = False


class PlannedCall(NamedTuple):
    """A call of cuBLAS. operands: the places of the arrays that it takes in order, and bytes from their starts."""

    gemm: cuda.Gemm
    operands: tuple[tuple[int, int], ...]


class Product(NamedTuple):
    """What cuBLAS is called with. copies: of arrays, by place, before calls, and of the result after them.

    is_empty: the result is zeros, since nothing is added up.
    """

    copies: Mapping[int, Copied]
    calls: tuple[PlannedCall, ...]
    is_empty: bool = False


# --- calls that are products -----------------------------------------------------------------------------------------


def computes(call: LibraryCall) -> bool:
    """Whether cuBLAS computes a call."""
    return len(call.operands) == 2 and len(call.buffers) == 1 and _labelled(call) is not None


def terms_of(call: LibraryCall, left: int, right: int) -> Terms:
    """The labels of a call that is a product. left, right: how many axes its operands have."""
    labelled = _labelled(call)
    assert labelled is not None, "a product"
    return labelled(left, right)


@lru_cache(MAX_KNOWN)
def _labelled(call: LibraryCall) -> Callable[[int, int], Terms] | None:
    """What labels the axes of a call's operands; None if cuBLAS does not compute the call."""
    row = call.buffers[0].dtype
    if row not in cuda.PRODUCT_ROWS:
        return None
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


# --- from strides to arguments ---------------------------------------------------------------------------------------


_NONE = Axis(1, (0, 0, 0))
Steps = dict[Label, int]


class _Try(NamedTuple):
    """Calls of cuBLAS for arrays that lie in some way. starts: of each, elements before operands and result."""

    sizes: cuda.ProductSizes
    matrices: tuple[cuda.Matrix, cuda.Matrix, cuda.Matrix]
    is_swapped: bool
    starts: list[tuple[int, ...]]
    cost: tuple[int, int]


@lru_cache(MAX_KNOWN)
def planned(terms: Terms, left: Arrangement, right: Arrangement, result: Arrangement) -> Product:
    """How cuBLAS computes a product of arrays that lie like this. Raises CudaMathMissing."""
    forms = left, right, result
    extents: dict[Label, int] = {}
    for labels, form in zip(terms.labels, forms, strict=True):
        for label, extent in zip(labels, form.shape, strict=True):
            extents[label] = extent if extents.get(label, 1) == 1 else extents[label]
    if not prod(result.shape):
        return Product({}, ())
    if not prod(extents.values()):
        return Product({}, (), True)
    row = _multiplied_as(left.row, right.row, result.row)
    must = {at for at, form in enumerate(forms) if any(step % form.row.nbytes for step in form.strides)}
    must |= {at for at, form in enumerate(forms[:2]) if form.row != row}
    conjugated = {0} if terms.conjugates and left.row in dtypes.COMPLEX else set()
    best = min(_tries(terms.labels, forms, extents, must | conjugated), key=lambda each: each[0])
    _, copied, order, tried = best
    gemm = cuda.Gemm(tried.sizes, tried.matrices, row, result.row)
    nbytes = row.nbytes, row.nbytes, result.row.nbytes
    places = (1, 0, 2) if tried.is_swapped else (0, 1, 2)
    calls = [PlannedCall(gemm, tuple((at, each[at] * nbytes[at]) for at in places)) for each in tried.starts]
    rows = row, row, result.row
    copies = {at: Copied(_axes(terms.labels[at], order), rows[at], at in conjugated) for at in sorted(copied)}
    return Product(copies, tuple(calls))


def _multiplied_as(left: DType, right: DType, result: DType) -> DType:
    """The dtype in which operands are given to cuBLAS."""
    return left if left == right and cuda.multiplies(left, result) else result


def _tries(
    terms: Sequence[Sequence[Label]], forms: Sequence[Arrangement], extents: Mapping[Label, int], must: set[int]
) -> Iterator[tuple[tuple[int, ...], set[int], Sequence[Label], _Try]]:
    """Ways to compute a product: what each costs, which arrays are copied, the order of labels in copies, its calls."""
    nbytes = [prod(form.shape) * form.row.nbytes for form in forms]
    several = [{*each} for count in range(4) for each in itertools.combinations(range(3), count)]
    orders = _orders(terms, forms, extents)
    for copied in sorted(several, key=lambda each: sum(nbytes[at] for at in each)):
        is_done = False
        for order in orders if must <= copied else ():
            steps = [
                _steps(labels, form, order if at in copied else None)
                for at, (labels, form) in enumerate(zip(terms, forms, strict=True))
            ]
            tried = _tried(steps, extents, order)
            if tried is not None:
                calls = max(tried.cost[0], FEW_CALLS)
                yield (calls, sum(nbytes[at] for at in copied), *tried.cost), copied, order, tried
                is_done = is_done or calls == FEW_CALLS
        if is_done:  # what copies more costs more
            return


def _orders(
    terms: Sequence[Sequence[Label]], forms: Sequence[Arrangement], extents: Mapping[Label, int]
) -> list[list[Label]]:
    """All labels in the orders of dense copies: pairs, rows and columns as the result has them, and then what is summed
    as either operand has it.
    """
    left, right, result = (_steps(labels, form, None) for labels, form in zip(terms, forms, strict=True))

    def kind(label: Label) -> int:
        return 0 if label in left and label in right else 1 if label in left else 2

    kept = sorted((each for each in extents if each in result), key=lambda each: (kind(each), -result[each]))
    inner = [each for each in extents if each not in result]
    orders = [[*kept, *sorted(inner, key=lambda each: -abs(own.get(each, 0)))] for own in (left, right)]
    return orders[: 1 + (orders[0] != orders[1])]


def _axes(labels: Sequence[Label], order: Sequence[Label]) -> tuple[int, ...]:
    """The axes of an array in an order of labels."""
    return tuple(sorted(range(len(labels)), key=lambda axis: order.index(labels[axis])))


def _steps(labels: Sequence[Label], form: Arrangement, order: Sequence[Label] | None) -> Steps:
    """Elements from one position along a label to the next, of labels that have several. order: of a dense copy."""
    strides = [step // form.row.nbytes for step in form.strides]
    if order is not None:
        strides = [*strides_in_order(form.shape, _axes(labels, order), 1)]
    found: Steps = {}
    for label, extent, step in zip(labels, form.shape, strides, strict=True):
        if extent > 1:
            found[label] = found.get(label, 0) + step
    return found


def _tried(steps: Sequence[Steps], extents: Mapping[Label, int], order: Sequence[Label]) -> _Try | None:
    """The fewest calls for arrays with these steps; None if cuBLAS cannot read or write one of them."""
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


def _of_matrices(row: Axis, column: Axis, inner: Axis, others: Sequence[Axis]) -> _Try | None:
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
        cuda.Matrix(*pair[0], steps[0]), cuda.Matrix(*pair[1], steps[1]), cuda.Matrix(False, leading, counted.steps[2])
    )  # fmt: skip
    shape = (column.extent, row.extent) if is_swapped else (row.extent, column.extent)
    cost = len(starts), -row.extent * column.extent
    return _Try(cuda.ProductSizes(*shape, inner.extent, counted.extent), matrices, is_swapped, starts, cost)


def _read(rows: int, down: int, columns: int, along: int) -> tuple[bool, int] | None:
    """How cuBLAS, which counts down columns, reads a matrix with these steps: whether transposed, and the elements from
    one column to the next as it lies; None if it cannot.
    """
    if (down == 1 or rows == 1) and (columns == 1 or along >= rows):
        return False, rows if columns == 1 else along
    if (along == 1 or columns == 1) and (rows == 1 or down >= columns):
        return True, columns if rows == 1 else down
    return None


# --- recipes ---------------------------------------------------------------------------------------------------------


def recipe(call: LibraryCall, forms: Sequence[Any], device: int) -> Recipe:
    """How a product of arrays is computed. forms: of the operands and the result. Raises CudaMathMissing."""
    del device
    left, right, result = (each._replace(rest=0) for each in forms)
    product = planned(terms_of(call, len(left.shape), len(right.shape)), left, right, result)
    made = RecipeBuilder(forms)
    parts = [made.whole(at) for at in range(len(forms))]
    for at, copied in product.copies.items():
        room = made.room(forms[at].shape, copied.row, copied.order)
        if at < len(forms) - 1:
            made.copy(parts[at], room, "conj(x)" if copied.is_conjugate else "x")
        parts[at] = room
    if product.is_empty:
        made.clear(made.whole(2))
    if product.calls:
        operands = [parts[at].of(parts[at].form.shape, start) for each in product.calls for at, start in each.operands]
        made.call(cuda.Products(tuple(each.gemm for each in product.calls)).run, operands)
    if 2 in product.copies:
        made.copy(parts[2], made.whole(2))
    return made.made()
