"""np.einsum in fused functions: views, element-wise work and sums where these do, products of matrices where not."""

from __future__ import annotations

import functools
import itertools
import string
from collections.abc import Sequence
from functools import wraps
from math import prod
from typing import Any

import numpy as np

from fusec.base.records import dataclass, replace
from fusec.fusion.functions.libraries import Asked, LibraryFunction, Place
from fusec.fusion.functions.operands import plain_leaf
from fusec.fusion.functions.products import SUMMED, is_summed, summed
from fusec.fusion.functions.reducing import REDUCTIONS
from fusec.fusion.functions.routines import trace_of, traced
from fusec.fusion.trace import tracer
from fusec.fusion.trace.conditions import require, require_extents
from fusec.fusion.trace.numbers import plain
from fusec.fusion.trace.tables import FUNCTIONS
from fusec.fusion.trace.trace_values import Array, ArrayValue, ViewOf

MOST_SPELLED = 16  # products that kernels add up for an element of a contraction of windows
MAX_COPY = 1 << 20  # bytes of an operand that are laid out anew for BLAS at a time


def _labels(text: str, dimensions: Sequence[int]) -> list[str]:
    """The labels of each operand, and last those of the result, without dots. Raises ValueError."""
    given, arrow, result = text.replace(" ", "").partition("->")
    terms = given.split(",")
    free = [each for each in string.ascii_letters if each not in text]
    rest = [ndim - len(term.replace("...", "")) for term, ndim in zip(terms, dimensions, strict=True)]
    most = max((count for term, count in zip(terms, rest, strict=True) if "..." in term), default=0)
    dots = "".join(free[:most])
    found = [term.replace("...", dots[most - count :]) for term, count in zip(terms, rest, strict=True)]
    if arrow:
        return [*found, result.replace("...", dots)]
    letters = "".join(terms)
    once = sorted(each for each in set(letters) - {"."} if letters.count(each) == 1)
    return [*found, dots + "".join(once)]


def _as_text(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """Operands that each have a list of labels after them, as a text and operands."""
    if isinstance(operands[0], str):
        return operands[0], list(operands[1:])
    lists = [operands[at] for at in range(1, len(operands), 2)]
    result = ["->", operands[-1]] if len(operands) % 2 else []
    names = dict(zip(sorted({each for each in itertools.chain(*lists, *result[1:]) if each is not ...}),
                     string.ascii_letters, strict=False))  # fmt: skip

    def text(labels: Sequence[Any]) -> str:
        return "".join("..." if each is ... else names[each] for each in labels)

    return ",".join(map(text, lists)) + "".join(["->", *map(text, result[1:])] if result else []), list(
        operands[0 : len(lists) * 2 : 2]
    )


_plain = LibraryFunction(np.einsum, "np.einsum", tuple(range(32)), ())


@wraps(_plain, assigned=(), updated=())
def einsum(*operands: Any, out: Any = None, optimize: Any = False, **options: Any) -> Any:
    """np.einsum."""
    trace = trace_of(*operands)
    text, given = _as_text(operands)
    arrays = [traced(each, trace) for each in given]
    if options or len(arrays) > 2:
        return _plain(text, *arrays, **options, optimize=optimize, **({} if out is None else {"out": out}))
    asked = Asked(np.einsum, (text, *map(Place, range(len(arrays)))), {}, [each._seen for each in arrays])
    wanted = asked.by_stand_ins()
    labels = _labels(text, [each.ndim for each in arrays])
    orders = [_order_of(each._seen) for each in arrays]
    require(arrays, lambda *seen: list(map(_order_of, seen)) == orders)
    found = _of_one(arrays[0], labels, wanted) if len(arrays) == 1 else _of_two(arrays, labels, wanted, asked)
    if out is None:
        return found
    out[...] = found
    return out


def _of_one(x: Any, labels: list[str], wanted: Any) -> Any:
    term, result = labels
    if set(term) == set(result):
        return x._view(ViewOf(_by_labels, (f"{term}->{result}",)))
    return _shaped(_summed(_diagonal(x, term), "".join(dict.fromkeys(term)), result), wanted)


def _by_labels(array: Array, text: str) -> Array:
    """A view of an array, as np.einsum makes it of labels."""
    found: Array = np.einsum(text, array)
    return found


def _order_of(array: Array) -> tuple[list[int], list[int]]:
    """What the memory order of a result depends on: which strides are longer, and which extents are 0 or 1."""
    steps = sorted({abs(step) for step in array.strides})
    return [min(extent, 2) for extent in array.shape], [steps.index(abs(step)) for step in array.strides]


def _of_two(arrays: list[Any], labels: list[str], wanted: Any, asked: Asked) -> Any:
    left, right, result = labels
    shared = [each for each in left if each in right and each not in result]
    size = dict(zip(left, arrays[0].shape, strict=True)), dict(zip(right, arrays[1].shape, strict=True))
    rows = [each for each in result if each not in right and size[0][each] > 1]
    columns = [each for each in result if each not in left and size[1][each] > 1]
    if shared and rows and columns and all(size[0][each] == size[1][each] for each in left if each in right):
        if len(left) == len(right) == len(result) == 2:
            a, b = arrays[0] if left[1] in shared else arrays[0].T, arrays[1] if right[0] in shared else arrays[1].T
            found = summed(a, b)
            if found is not None:
                return _shaped(found if result[0] in left else found.T, wanted)
            require([a, b], lambda *seen: not is_summed(*seen))
        found = _spelled_out(arrays, labels, shared)
        if found is not None:
            return _shaped(found, wanted)
        function = Contraction(left, right, result)

        def outcome(again: Asked) -> Any:
            return replace(asked, examples=again.examples).by_stand_ins()

        return LibraryFunction(function, "np.einsum", (0, 1), (), outcome=outcome)(*arrays)
    order = result + "".join(dict.fromkeys(each for each in left + right if each not in result))
    dtype = np.asarray(wanted).dtype
    parts = [_spread(_diagonal(x, term), term, order) for x, term in zip(arrays, (left, right), strict=True)]
    return _shaped(_summed(np.multiply(*(each.astype(dtype, copy=False) for each in parts)), order, result), wanted)


def _spelled_out(arrays: Sequence[Any], labels: Sequence[str], shared: Sequence[str]) -> Any:
    """A contraction of windows that adds up few products, written as sums that kernels compute for each element; None
    for other contractions. BLAS would need a copy of the windows.
    """
    left, right, result = labels
    order = result + "".join(shared)
    counts = [arrays[0].shape[left.index(each)] for each in shared]
    is_plain = all(len(set(term)) == len(term) for term in (left, right)) and {*left, *right} == {*order}
    views = [x for x in arrays if x._steps]  # others are no windows
    are_windows = [_overlaps(x._seen) for x in views]
    if views:
        require(views, lambda *seen: list(map(_overlaps, seen)) == are_windows)
    if not is_plain or not any(are_windows) or not 0 < prod(counts) <= MOST_SPELLED or not _is_summable(arrays):
        return None
    for x, term in zip(arrays, (left, right), strict=True):
        require_extents(x, [term.index(each) for each in shared])
    one, other = (_spread(x, term, order) for x, term in zip(arrays, (left, right), strict=True))
    places = itertools.product(*map(range, counts))
    return functools.reduce(np.add, [np.multiply(one[(..., *at)], other[(..., *at)]) for at in places])


def _overlaps(array: Array) -> bool:
    """Whether elements of an array share memory."""
    if 0 in array.shape:
        return False
    pairs = zip(array.shape, array.strides, strict=True)
    reach: int = sum([(extent - 1) * abs(stride) for extent, stride in pairs]) + array.itemsize
    return reach < array.nbytes


def _is_summable(arrays: Sequence[Any]) -> bool:
    return np.result_type(*(x._seen for x in arrays)).char in SUMMED


def _diagonal(x: Any, term: str) -> Any:
    """A view with every label once."""
    once = "".join(dict.fromkeys(term))
    return x if once == term else x._view(ViewOf(_by_labels, (f"{term}->{once}",)))


def _spread(x: Any, term: str, order: str) -> Any:
    """A view with the axes of all labels; those that it lacks have one element."""
    once = list(dict.fromkeys(term))
    x = x._view(ViewOf(np.transpose, (tuple([once.index(each) for each in order if each in once]),)))
    return x[tuple(slice(None) if each in once else None for each in order)]


def _summed(x: Any, order: str, result: str) -> Any:
    """The sums over labels that the result lacks, in its order of axes."""
    axes = tuple(at for at, each in enumerate(order) if each not in result)
    found = REDUCTIONS["sum"](x, axes, x.dtype) if axes else x
    rest = [each for each in order if each in result]
    return np.transpose(found, [rest.index(each) for each in result]) if rest else found


def _shaped(found: Any, wanted: Any) -> Any:
    """A result as NumPy lays it out."""
    if not isinstance(wanted, np.ndarray) or found._is_scalar:
        return tracer.made(found._trace, found._read(), not isinstance(wanted, np.ndarray))
    return tracer.made(found._trace, ArrayValue(found._read().scalar, wanted))


@dataclass(frozen=True)
class Contraction:
    """A product of two arrays by labels, as products of matrices."""

    left: str
    right: str
    result: str

    def __call__(self, a: Array, b: Array) -> Array:
        """The product."""
        (a, left), (b, right) = self._own(a, self.left, self.right), self._own(b, self.right, self.left)
        large, term = (a, left) if a.nbytes >= b.nbytes else (b, right)
        batch = [each for each in left if each in right and each in self.result]
        inner = _outermost_first([each for each in left if each in right and each not in self.result], large, term)
        rows = _outermost_first([each for each in left if each not in right], a, left)
        columns = _outermost_first([each for each in right if each not in left], b, right)
        own = rows if large is a else columns
        if (large is a) == (_run(own[-1], large, term) > _run(inner[-1], large, term)):  # copied in long runs
            a, left, rows, b, right, columns = b, right, columns, a, left, rows
        a = a.transpose([left.index(each) for each in (*batch, *rows, *inner)])
        b = b.transpose([right.index(each) for each in (*batch, *inner, *columns)])
        found = _multiplied(a, b, len(batch), len(inner))
        order = [*batch, *rows, *columns]
        return found.transpose([order.index(each) for each in self.result])

    def _own(self, array: Array, term: str, other: str) -> tuple[Array, str]:
        """An operand with each label once, and none that only it has and the result lacks."""
        own = "".join(each for each in dict.fromkeys(term) if each in other or each in self.result)
        return (array, term) if own == term else (np.einsum(f"{term}->{own}", array), own)


def _outermost_first(labels: list[str], array: Array, term: str) -> list[str]:
    """Labels in the order of their axes in memory."""
    return sorted(labels, key=lambda each: -abs(array.strides[term.index(each)]))


def _run(label: str, array: Array, term: str) -> tuple[int, int]:
    """How well a copy goes along an axis: the longer the better, if its elements are neighbours."""
    at = term.index(label)
    return -abs(array.strides[at]), array.shape[at]


def _multiplied(a: Array, b: Array, batch: int, inner: int) -> Array:
    """The product of arrays with axes (batch, rows, inner) and (batch, inner, columns).

    What is not laid out as BLAS needs it is copied in parts, so that no large copy is made; on a device at once, since
    every part there is some launches.
    """
    rows, columns = a.shape[batch : a.ndim - inner], b.shape[batch + inner :]
    copied = [0, 0]
    if isinstance(a, np.ndarray):
        copied = [_copied_bytes(a, batch, a.ndim - inner), _copied_bytes(b, batch, batch + inner)]
    which = int(copied[1] > copied[0])
    shape = (rows, columns)[which]
    if copied[which] > MAX_COPY and shape and max(shape) > 1:
        at = int(np.argmax(shape))
        count = min(shape[at], -(-copied[which] // MAX_COPY))
        lead = batch + at if which == 0 else batch + inner + at
        parts = np.array_split((a, b)[which], count, lead)
        made = [
            _multiplied(part, b, batch, inner) if which == 0 else _multiplied(a, part, batch, inner) for part in parts
        ]
        return np.concatenate(made, batch + at if which == 0 else batch + len(rows) + at)
    lead_shape, length = a.shape[:batch], int(np.prod(a.shape[a.ndim - inner :]))
    flat_a = a.reshape(*lead_shape, int(np.prod(rows)), length)
    flat_b = b.reshape(*lead_shape, length, int(np.prod(columns)))
    found: Array = np.matmul(flat_a, flat_b).reshape(*lead_shape, *rows, *columns)
    return found


def _copied_bytes(array: Array, batch: int, middle: int) -> int:
    """How many bytes are copied if the axes before and after the middle each become one."""
    shape = array.shape
    flat = (*shape[:batch], int(np.prod(shape[batch:middle])), int(np.prod(shape[middle:])))
    try:
        np.reshape(array, flat, copy=False)
    except ValueError:
        return array.nbytes
    return 0


def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    """np.lib.stride_tricks.sliding_window_view; what is computed is stored, since every element is in many windows."""
    x = traced(x, trace_of(x))
    trace, memory = x._trace, x._memory
    if memory.value is not None and plain_leaf(trace, memory.value) is None:
        trace.settle(memory)
    windows, given = np.lib.stride_tricks.sliding_window_view, (_plain_numbers(window_shape), _plain_numbers(axis))
    return x._view(ViewOf(windows, given, (("subok", subok), ("writeable", writeable))))


def _plain_numbers(given: Any) -> Any:
    """Numbers of extents as those of Python."""
    return tuple(map(plain, given)) if isinstance(given, tuple | list) else plain(given)


FUNCTIONS.update({"einsum": einsum, "lib.stride_tricks.sliding_window_view": sliding_window_view})
