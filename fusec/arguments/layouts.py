"""From shapes and strides to a Layout: broadcasting, ordering and merging axes, overlap of memory.

Works on plain numbers, so that host and device arrays of any library are treated alike.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple

from fusec.base.dtypes import DType, real_type
from fusec.base.kernel_abi import VECTOR_BYTES, Layout, Step, strides_in_order
from fusec.base.records import dataclass

Shape = tuple[int, ...]

LISTED = 4096  # elements that are listed to see whether they overlap
SHORT, LONG = 32, 32  # elements of a last axis that is worth no loop of its own, and of one before it that is
LEAST_RAGGED = 256  # bytes of a row that vectors walk though it is not aligned to them
TILE = 32  # elements along both sides of a square that is turned
SMALL_STEPS = (2, 3, 4)  # elements from one to the next; beyond, vectors throw away most of what they hold
WIDE = 1 << 31  # positions and byte offsets below this fit a signed 32-bit index


class View(NamedTuple):
    """An array as memory: address of its first element, extents, strides in bytes, dtype."""

    pointer: int
    shape: Shape
    strides: Shape
    dtype: DType

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)


@dataclass(frozen=True)
class MergedSpace:
    """An iteration space after merging."""

    extents: Shape
    strides: tuple[Shape, ...]  # of every operand, in bytes
    offsets: tuple[int, ...]  # of every operand, in bytes: not 0 where an axis was reversed to walk memory upwards
    strips: bool = False  # see Layout


def common_shape(left: Shape, right: Shape) -> Shape | int:
    """The broadcast shape of two shapes, or the axis of the result on which they differ."""
    if left == right or not right:
        return left
    if not left:
        return right
    ndim = max(len(left), len(right))
    a = (1,) * (ndim - len(left)) + left
    b = (1,) * (ndim - len(right)) + right
    extents = []
    for axis in range(ndim):
        if a[axis] != b[axis] and 1 not in (a[axis], b[axis]):
            return axis
        extents.append(b[axis] if a[axis] == 1 else a[axis])
    return tuple(extents)


def joined_shape(shapes: Iterable[Shape]) -> Shape | None:
    """The shape to which all of some shapes broadcast; None if there is none."""
    found: Shape = ()
    for shape in shapes:
        joined = common_shape(found, shape)
        if isinstance(joined, int):
            return None
        found = joined
    return found


def pattern_of_extents(shapes: Sequence[Shape]) -> tuple[object, ...]:
    """Which extents of some arrays are 0, 1, or equal: equal patterns may share a trace."""
    known: dict[int, int] = {0: 0, 1: 1}
    return tuple(tuple(known.setdefault(extent, len(known)) for extent in shape) for shape in shapes)


def gaps_of(shape: Shape, strides: Shape, itemsize: int) -> tuple[int, ...] | None:
    """The layout of an array with gaps: its last stride, and where gaps are; () without gaps.

    None if its axes are not in C order.
    """
    if strides == strides_in_order(shape, range(len(shape)), itemsize):
        return ()
    inner = [extent * stride for extent, stride in zip(shape[1:], strides[1:], strict=True)]
    if strides[-1] < itemsize or min(shape) < 2 or any(map(operator.lt, strides, inner)):
        return None
    return strides[-1], *map(operator.gt, strides, inner)


def broadcast_strides(view: View, shape: Shape) -> Shape:
    """The strides of `view` broadcast to `shape`: 0 along every repeated axis."""
    lead = len(shape) - len(view.shape)
    inner = (0 if extent == 1 else stride for extent, stride in zip(view.shape, view.strides, strict=True))
    return (0,) * lead + tuple(inner)


def nest(shape: Shape, operands: Sequence[Shape], *, reorder: bool, merge: bool, strips: bool = False) -> MergedSpace:
    """The loop nest over `shape` for operands with these strides.

    reorder: axes may be permuted and reversed so that memory is walked in its own order (not if the body uses the
    index). merge: neighbouring axes that every operand walks evenly become one (not if the body asks for coordinates).
    strips: a last axis that is short may be walked as one with the axis before it.
    """
    axes = [axis for axis, extent in enumerate(shape) if extent != 1] if merge else list(range(len(shape)))
    strides = [[row[axis] for axis in axes] for row in operands]
    extents = [shape[axis] for axis in axes]
    offsets = [0] * len(operands)
    if reorder and len(axes) > 0:
        _walk_upwards(extents, strides, offsets)
        _order(extents, strides)
    if merge:
        _merge(extents, strides)
    if not extents:
        extents, strides = [1], [[0] for _ in operands]
    strips = strips and len(extents) > 1 and 1 < extents[-1] <= SHORT and extents[-2] >= LONG
    return MergedSpace(tuple(extents), tuple(tuple(row) for row in strides), tuple(offsets), strips)


def _walk_upwards(extents: list[int], strides: list[list[int]], offsets: list[int]) -> None:
    """Reverse every axis along which no operand moves up and some operand moves down."""
    for axis, extent in enumerate(extents):
        column = [row[axis] for row in strides]
        if min(column, default=0) < 0 and max(column) <= 0:
            for operand, row in enumerate(strides):
                offsets[operand] += (extent - 1) * row[axis]
                row[axis] = -row[axis]


def _order(extents: list[int], strides: list[list[int]]) -> None:
    """Sort axes so that the last operand (an output) moves least along the innermost, ties by the others."""
    rows = strides[::-1]
    order = sorted(range(len(extents)), key=lambda axis: tuple(-abs(row[axis]) for row in rows))
    extents[:] = [extents[axis] for axis in order]
    for row in strides:
        row[:] = [row[axis] for axis in order]


def _merge(extents: list[int], strides: list[list[int]]) -> None:
    """Join an axis with the next inner one wherever every operand steps over the inner one evenly."""
    axis = len(extents) - 2
    while axis >= 0:
        inner = extents[axis + 1]
        if all(row[axis] == row[axis + 1] * inner for row in strides):
            extents[axis : axis + 2] = [extents[axis] * inner]
            for row in strides:
                row[axis : axis + 2] = [row[axis + 1]]
        axis -= 1


def is_c_contiguous(view: View) -> bool:
    """True if the elements are in C order without gaps."""
    expected = view.dtype.nbytes
    for extent, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


def bounds(view: View) -> tuple[int, int]:
    """The lowest address of the elements and one past the highest; equal for an empty array."""
    low = high = view.pointer
    for extent, stride in zip(view.shape, view.strides, strict=True):
        if extent == 0:
            return view.pointer, view.pointer
        if stride < 0:
            low += (extent - 1) * stride
        else:
            high += (extent - 1) * stride
    return low, high + view.dtype.nbytes


def are_apart(spans: Iterable[tuple[int, int]]) -> bool:
    """Whether spans of memory, each from its first address to one past its last, lie one behind the other."""
    return all(end <= start for (_, end), (start, _) in itertools.pairwise(sorted(spans)))


def has_internal_overlap(view: View) -> bool:
    """True if two elements share memory, or if this is too expensive to decide."""
    span = view.dtype.nbytes
    if view.size == 0:
        return False
    for stride, extent in sorted((abs(s), e) for s, e in zip(view.strides, view.shape, strict=True) if e > 1):
        if stride < span:
            return stride == 0 or _may_collide(view)
        span = stride * (extent - 1) + span
    return False


def _may_collide(view: View) -> bool:
    """Whether small interleaved arrays share bytes, found by listing the elements; larger ones are taken to."""
    if view.size > LISTED:
        return True
    starts = [0]
    for stride, extent in zip(view.strides, view.shape, strict=True):
        starts = [start + position * stride for start in starts for position in range(extent)]
    starts.sort()
    return any(after - before < view.dtype.nbytes for before, after in itertools.pairwise(starts))


def make_layout(
    space: MergedSpace,
    arrays: Sequence[tuple[str, View]],
    raw: Sequence[tuple[str, View]],
    *,
    c_order: bool,
    vectors: bool = False,
) -> Layout:
    """The Layout of a nest: `arrays` are its operands in order, `raw` the arrays that the body indexes itself.

    vectors: the target loads several elements at once where 16-byte alignment allows.
    """
    widest = size = prod(space.extents)
    steps = []
    for (name, view), row in zip(arrays, space.strides, strict=True):
        unit = view.dtype.nbytes
        inner = Step.ZERO if row[-1] == 0 and size != 1 else Step.UNIT if row[-1] == unit or size == 1 else Step.ANY
        outer = [Step.UNIT if stride == unit else Step.ANY for stride in row[:-1]]
        if space.strips:
            outer[-1] = step_over(row[-2], row[-1] * space.extents[-1], outer[-1])
        steps.append((name, (*outer, inner)))
        widest = max(widest, sum(abs(s) * (e - 1) for s, e in zip(row, space.extents, strict=True)) + unit)
    for _, view in raw:
        widest = max(widest, bounds(view)[1] - bounds(view)[0])
    described = tuple((name, (len(view.shape), is_c_contiguous(view))) for name, view in raw)
    aligned = _common_alignment(space, [view for _, view in arrays], [view for _, view in raw], vectors)
    units = [view.dtype.nbytes for _, view in arrays]
    tiled = vectors and _is_tiled(space, units)
    ragged = vectors and aligned < VECTOR_BYTES and _is_ragged(space, [view for _, view in arrays])
    return Layout(
        len(space.extents),
        tuple(steps),
        described,
        c_order,
        widest >= WIDE,
        aligned,
        tiled=tiled,
        strips=space.strips,
        ragged=ragged,
    )


def gaps_in(
    space: MergedSpace, arrays: Sequence[tuple[str, View]], raw: Sequence[tuple[str, View]]
) -> tuple[tuple[str, int], ...]:
    """The arrays of a nest of which small numbers of elements lie from one to the next, and those of raw arrays.

    Rows of raw arrays may have gaps behind them, so that one element is such a number too.
    """
    walked: list[tuple[str, int, int, tuple[int, ...]]] = []
    for (name, view), row in zip(arrays, space.strides, strict=True):
        walked.append((name, view.dtype.nbytes, row[-1], SMALL_STEPS))
    for name, view in raw:
        if view.strides and not is_c_contiguous(view):
            walked.append((name, view.dtype.nbytes, view.strides[-1], (1, *SMALL_STEPS)))
    return tuple((name, count) for name, unit, stride, counts in walked for count in counts if stride == count * unit)


def step_over(stride: int, inside: int, step: Step) -> Step:
    """The step along the axis before the last of an operand that moves so far along the last. step: UNIT, or ANY."""
    return Step.ZERO if stride == 0 else Step.DENSE if stride == inside else step


def _is_tiled(space: MergedSpace, units: Sequence[int]) -> bool:
    """Whether operands run along another axis than the last one, and all these axes have the length of a tile."""
    axes = {
        row.index(unit)
        for row, unit in zip(space.strides, units, strict=True)
        if unit in row and row[-1] not in (0, unit)
    }
    return bool(axes) and min(space.extents[axis] for axis in (*axes, -1)) >= TILE


def _common_alignment(space: MergedSpace, arrays: Sequence[View], raw: Sequence[View], vectors: bool) -> int:
    """16 if vectors of 16 bytes are wanted and every walk allows them, else the natural alignment, else 1.

    Only these three values occur, so that alignment does not multiply the number of compiled kernels.
    """
    natural = min((_natural(view) for view in (*arrays, *raw)), default=1)
    best = VECTOR_BYTES if vectors else natural
    for view, row, offset in zip(arrays, space.strides, space.offsets, strict=True):
        unit = view.dtype.nbytes
        if _alignment(view.pointer + offset, row) < _natural(view):
            return 1
        if row[-1] == unit and _alignment(view.pointer + offset, row[:-1]) < best:
            best = natural
    if any(_alignment(view.pointer, view.strides) < _natural(view) for view in raw):
        return 1
    return best


def _is_ragged(space: MergedSpace, arrays: Sequence[View]) -> bool:
    """Whether vectors pay in rows of elements that are aligned as a machine wants them."""
    if space.extents[-1] * min((view.dtype.nbytes for view in arrays), default=0) < LEAST_RAGGED:
        return False
    rows = zip(arrays, space.strides, space.offsets, strict=True)
    return all(_alignment(view.pointer + offset, row) >= _natural(view) for view, row, offset in rows)


def _natural(view: View) -> int:
    """The alignment that a machine wants for one element; complex numbers align as their parts."""
    return real_type(view.dtype).nbytes


def _alignment(address: int, strides: Shape) -> int:
    """The largest power of two up to 64 that divides the address and all strides."""
    bits = address | 64
    for stride in strides:
        bits |= stride
    return bits & -bits
