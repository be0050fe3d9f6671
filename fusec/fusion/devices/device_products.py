"""Products on devices by cuBLAS, see `fusec.fusion.functions.matrix_products`: what it cannot read, or what has another
dtype than is multiplied, is copied first.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from fusec.base import dtypes
from fusec.base.dtypes import DType
from fusec.fusion.devices.recipes import FEW_CALLS, Recipe, RecipeBuilder
from fusec.fusion.functions.matrix_products import (
    MAX_KNOWN,
    Arrangement,
    Label,
    MatrixCalls,
    Terms,
    axes_in,
    fewest_calls,
    is_product,
    steps_of,
    terms_of,
)
from fusec.fusion.trace.trace_values import LibraryCall
from fusec.runtime import cuda

LIBRARY = cuda.cublas


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


def computes(call: LibraryCall) -> bool:
    """Whether cuBLAS computes a call."""
    return is_product(call)


# --- from strides to arguments ---------------------------------------------------------------------------------------


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
    copies = {at: Copied(axes_in(terms.labels[at], order), rows[at], at in conjugated) for at in sorted(copied)}
    return Product(copies, tuple(calls))


def _multiplied_as(left: DType, right: DType, result: DType) -> DType:
    """The dtype in which operands are given to cuBLAS."""
    return left if left == right and cuda.multiplies(left, result) else result


def _tries(
    terms: Sequence[Sequence[Label]], forms: Sequence[Arrangement], extents: Mapping[Label, int], must: set[int]
) -> Iterator[tuple[tuple[int, ...], set[int], Sequence[Label], MatrixCalls]]:
    """Ways to compute a product: what each costs, which arrays are copied, the order of labels in copies, its calls."""
    nbytes = [prod(form.shape) * form.row.nbytes for form in forms]
    several = [{*each} for count in range(4) for each in itertools.combinations(range(3), count)]
    orders = _orders(terms, forms, extents)
    for copied in sorted(several, key=lambda each: sum(nbytes[at] for at in each)):
        is_done = False
        for order in orders if must <= copied else ():
            steps = [
                steps_of(labels, form, order if at in copied else None)
                for at, (labels, form) in enumerate(zip(terms, forms, strict=True))
            ]
            tried = fewest_calls(steps, extents, order)
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
    left, right, result = (steps_of(labels, form, None) for labels, form in zip(terms, forms, strict=True))

    def kind(label: Label) -> int:
        return 0 if label in left and label in right else 1 if label in left else 2

    kept = sorted((each for each in extents if each in result), key=lambda each: (kind(each), -result[each]))
    inner = [each for each in extents if each not in result]
    orders = [[*kept, *sorted(inner, key=lambda each: -abs(own.get(each, 0)))] for own in (left, right)]
    return orders[: 1 + (orders[0] != orders[1])]


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
