"""The operations of graphs: each function checks its operands and makes a node with its dtype and shape.

Whatever makes graphs, a person, a parser or a trace, makes the nodes by these functions.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.base.diagnostics import counted, did_you_mean, shown_number
from fusec.base.dtypes import BOOL, COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, INT64, DType, real_type
from fusec.base.ops import TABLE, result_type
from fusec.errors.graphs import GraphShapes, GraphTypes
from fusec.errors.python import NumberTooLarge
from fusec.graphs import nodes
from fusec.graphs.extents import Extent, Shape, Size, divided, product
from fusec.graphs.nodes import Broadcast, External, Fold, Map, Reshape, SizeNumber, Slice, Transpose, Update, shape_of
from fusec.ir.expr import Const, Expr, const, scalar_type
from fusec.ir.graph import SPREAD

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

FOLDS = ("add", "multiply", "minimum", "maximum", "fmin", "fmax", "bitwise_and", "bitwise_or", "bitwise_xor", SPREAD)
"""The associative ops by which elements may be combined, and the sum of their squared distances from their mean."""

SCANS = ("add", "multiply", "maximum", "minimum")
"""The ops by which elements may be combined with those before them."""

LARGEST = int(sys.float_info.max)
SPREADS = (FLOAT32, FLOAT64, COMPLEX64, COMPLEX128)
Index = tuple[tuple[Size, ...], tuple[int, ...], Shape]
"""A slice: where it starts along each axis, the steps, and how many elements it takes."""


def shown(shape: Shape) -> str:
    """A shape as texts have it."""
    return f"[{', '.join(map(str, shape))}]"


def mapped(op: str, args: Sequence[Expr], target: DType | None = None) -> Map:
    """An op of the op table on corresponding elements. target: the dtype that convert and bitcast give.

    Raises GraphTypes and GraphShapes.
    """
    row = TABLE.get(op)
    if row is None:
        cure = did_you_mean(op, TABLE) or "the operations are those of fusec.base.ops.TABLE"
        raise GraphTypes(f"there is no operation '{op}'", cure).at()
    if len(args) != row.arity:
        raise GraphTypes(f"'{op}' takes {counted(row.arity, 'operand')}, given {len(args)}", "count them").at()
    types = [scalar_type(each) for each in args]
    alike = types[1:] if op == "where" else types[:1] if row.second is not None else types
    if len(set(alike)) > 1:
        given = " and ".join(dict.fromkeys(map(str, alike)))
        raise GraphTypes(f"'{op}' of {given}", "convert operands to one dtype: value.astype(dtype)").at()
    if op == "where" and types[0].name != "bool":
        raise GraphTypes(f"'where' asks a condition of {types[0]}", "compare it with 0").at()
    if alike[0].kind not in row.accepts or (row.second is not None and types[1].kind not in row.second):
        kinds = ", ".join(sorted(row.accepts))
        raise GraphTypes(f"'{op}' does not take {', '.join(map(str, types))}", f"it takes: {kinds}").at()
    if (target is None) == (row.result == "target"):
        raise GraphTypes(f"'{op}' {'needs' if target is None else 'takes no'} target dtype", "see its row").at()
    if op == "bitcast" and target is not None and target.bits != types[0].bits:
        raise GraphTypes(f"'bitcast' of {types[0]} to {target}", "both need the same width").at()
    return Map(op, tuple(args), result_type(row, tuple(types), target), common_shape([shape_of(each) for each in args]))


def converted(value: Expr, dtype: DType) -> Expr:
    """The value in another dtype; the value itself if it has that one."""
    return value if scalar_type(value) == dtype else mapped("convert", [value], dtype)


def common_shape(shapes: Sequence[Shape]) -> Shape:
    """The shape to which some broadcast. Raises GraphShapes."""
    ndim = max(map(len, shapes), default=0)
    found: list[Size] = [1] * ndim
    for shape in shapes:
        for axis, extent in enumerate(shape, ndim - len(shape)):
            if extent == 1 or extent == found[axis]:
                continue
            if found[axis] != 1:
                one, other = found[axis], extent
                is_open = isinstance(one, Extent) or isinstance(other, Extent)
                cure = "give sizes that are equal one name" if is_open else "an extent must be 1 or that of the others"
                what = f"axis {axis} of {' and '.join(map(shown, shapes))} is {one} and {other}"
                raise GraphShapes(f"shapes do not broadcast: {what}", cure).at()
            found[axis] = extent
    return tuple(found)


def number_of(extent: Size) -> SizeNumber:
    """An extent as an int64 without axes."""
    return SizeNumber(extent, INT64, ())


# --- views ---------------------------------------------------------------------------------------------------------


def sliced(value: Expr, index: Index) -> Expr:
    """Part of a value; see `index_of`."""
    starts, steps, shape = index
    own = shape_of(value)
    if len({len(own), len(starts), len(steps), len(shape)}) != 1 or not all(isinstance(each, int) for each in steps):
        cure = "it needs a start, a step that is an integer, and a count by axis"
        raise GraphShapes(f"a slice of {shown(own)} by {shown(steps)}", cure).at()
    if 0 in steps:
        raise GraphShapes(f"a slice of {shown(own)} by {shown(steps)}", "steps are integers other than 0").at()
    for extent, start, step, count in zip(own, starts, steps, shape, strict=True):
        last = start + (count - 1) * step
        known = [each for each in (start, last) if isinstance(each, int)]
        is_outside = isinstance(extent, int) and any(not 0 <= each < extent for each in known)
        if (count != 0 and (is_outside or any(each < 0 for each in known))) or (isinstance(count, int) and count < 0):
            what = f"elements {start}, {start + step}, ... of an axis of {extent}, {count} of them"
            raise GraphShapes(what, "a slice stays within the array").at()
    if shape == own and set(steps) <= {1} and not any(starts):
        return value
    return Slice(value, tuple(starts), tuple(steps), scalar_type(value), tuple(shape))


def index_of(extent: Size, given: slice) -> tuple[Size, int, Size]:
    """The start, the step and the count of a slice along an axis, as NumPy reads it; bounds may be extents.

    Of an axis whose extent is an integer, bounds outside are cut off; calls check those of others.
    """
    step = 1 if given.step is None else given.step
    if isinstance(step, bool) or not isinstance(step, int) or step == 0:
        raise GraphShapes(f"a slice with step {given.step!r}", "steps are integers other than 0").at()
    bounds = (given.start, given.stop)
    if isinstance(extent, int) and all(each is None or isinstance(each, int) for each in bounds):
        first, end, _ = given.indices(extent)
        return first, step, len(range(first, end, step))
    start: Size = (0 if step > 0 else extent - 1) if given.start is None else _from_front(extent, given.start)
    if given.stop is None:
        stop: Size = extent if step > 0 else -1
    else:
        stop = _from_front(extent, given.stop)
    span = stop - start if step > 0 else start - stop
    count = span if abs(step) == 1 else (span + abs(step) - 1) // abs(step)
    return start, step, count


def indexed(own: Shape, items: Sequence[object]) -> tuple[Index, Shape]:
    """The slice that an index takes, and the shape of what it gives. items: integers, slices, None and ...

    Raises GraphShapes.
    """
    items = list(items)
    for each in items:
        if not (each is None or each is ... or isinstance(each, (int, slice))) or isinstance(each, bool):
            cure = "indices are integers, slices, None and ..."
            raise GraphShapes(f"an index of type {type(each).__name__}", cure).at()
    missing = len(own) - sum(each is not None and each is not ... for each in items)
    if items.count(...) > 1 or missing < 0:
        raise GraphShapes(f"an index of {len(items)} items for {len(own)} axes", "leave some out").at()
    at = items.index(...) if ... in items else len(items)
    items[at : at + 1] = [slice(None)] * missing
    parts, shape = list[tuple[Size, int, Size]](), list[Size]()
    for each in items:
        if each is None:
            shape.append(1)
            continue
        extent = own[len(parts)]
        if isinstance(each, slice):
            parts.append(index_of(extent, each))
            shape.append(parts[-1][2])
        elif isinstance(each, int):
            if isinstance(extent, int) and not -extent <= each < extent:
                what = f"index {each} is out of bounds for axis {len(parts)} of {counted(extent, 'element')}"
                raise GraphShapes(what, "indices count from 0, or from the end as -1, -2, ...").at()
            parts.append((extent + each if each < 0 else each, 1, 1))
    starts, steps, extents = zip(*parts, strict=True) if parts else ((), (), ())
    return (starts, steps, extents), tuple(shape)


def _from_front(extent: Size, given: Size) -> Size:
    if isinstance(given, bool) or not isinstance(given, (int, Extent)):
        raise GraphShapes(f"a bound of a slice: {given!r}", "bounds are integers or extents").at()
    return extent + given if isinstance(given, int) and given < 0 else given


def transposed(value: Expr, axes: Sequence[int]) -> Expr:
    """The value with its axes in another order. Raises GraphShapes."""
    own = shape_of(value)
    places = tuple(_axis(each, len(own)) for each in axes)
    if sorted(places) != list(range(len(own))):
        raise GraphShapes(f"axes {tuple(axes)} of {shown(own)}", "name every axis once").at()
    if places == tuple(range(len(own))):
        return value
    return Transpose(value, places, scalar_type(value), tuple(own[each] for each in places))


def reshaped(value: Expr, shape: Shape) -> Expr:
    """The same elements in another shape, of which one extent may be -1. Raises GraphShapes."""
    own = shape_of(value)
    if -1 in shape:
        at = shape.index(-1)
        rest = product([*shape[:at], *shape[at + 1 :]])
        missing = divided(product(own), rest)
        if missing is None:
            what = f"{shown(own)} reshaped to {shown(shape)}: {product(own)} is no multiple of {rest} for all sizes"
            raise GraphShapes(what, "declare an extent as a multiple, such as '4*n', or choose other extents").at()
        shape = (*shape[:at], missing, *shape[at + 1 :])
    if product(shape) != product(own) or any(isinstance(each, int) and each < 0 for each in shape):
        what = f"{shown(own)} reshaped to {shown(shape)}: these have {product(own)} and {product(shape)} elements"
        raise GraphShapes(what, "keep the number of elements").at()
    return value if shape == own else Reshape(value, scalar_type(value), shape)


def broadcast(value: Expr, shape: Shape) -> Expr:
    """The value repeated to a shape. Raises GraphShapes."""
    own = shape_of(value)
    if len(own) > len(shape) or common_shape([own, shape]) != shape:
        raise GraphShapes(f"{shown(own)} broadcast to {shown(shape)}", "only extents of 1 are repeated").at()
    return value if shape == own else Broadcast(value, scalar_type(value), shape)


# --- what looks at several elements --------------------------------------------------------------------------------


MEANT = {
    "max": "maximum", "min": "minimum", "any": "bitwise_or", "all": "bitwise_and", "sum": "add", "prod": "multiply",
}  # fmt: skip


def folded(op: str, value: Expr, axes: Sequence[int]) -> Expr:
    """The elements along some axes combined; these axes keep one element. Raises GraphTypes and GraphShapes."""
    if op not in FOLDS:
        meant = f"write '{MEANT[op]}'; " if op in MEANT else ""
        raise GraphTypes(f"a fold by '{op}'", f"{meant}folds are by {', '.join(FOLDS)}").at()
    dtype = scalar_type(value)
    if op == SPREAD and dtype not in SPREADS:
        raise GraphTypes(f"a fold by '{op}' of {dtype}", "convert it to float32, float64 or a complex dtype").at()
    mapped("subtract" if op == SPREAD else op, [value, value])  # for its checks
    dtype = real_type(dtype) if op == SPREAD else dtype
    own = shape_of(value)
    places = tuple(sorted({_axis(each, len(own)) for each in axes}))
    if len(places) != len(tuple(axes)):
        raise GraphShapes(f"axes {tuple(axes)} of {shown(own)}", "name an axis once").at()
    if not places:
        return value
    return Fold(op, value, places, dtype, tuple(1 if at in places else each for at, each in enumerate(own)))


def accumulated(op: str, value: Expr, axis: int) -> Expr:
    """Elements combined with all before them along an axis. Raises GraphTypes and GraphShapes."""
    if op not in SCANS:
        raise GraphTypes(f"a scan by '{op}'", f"scans are by {', '.join(SCANS)}").at()
    mapped(op, [value, value])  # for its checks
    own = shape_of(value)
    return nodes.Accumulated(op, value, _axis(axis, len(own)), scalar_type(value), own)


def updated(value: Expr, part: Expr, index: Index) -> Update:
    """The value with other elements in a slice. Raises GraphTypes and GraphShapes."""
    if scalar_type(value) != scalar_type(part):
        what = f"elements of {scalar_type(part)} in an array of {scalar_type(value)}"
        raise GraphTypes(what, "convert them: part.astype(dtype)").at()
    sliced(value, index)  # for its checks
    starts, steps, extents = index
    if common_shape([shape_of(part), extents]) != extents:
        raise GraphShapes(f"{shown(shape_of(part))} stored in a slice of {shown(extents)}", "see the slice").at()
    return Update(value, part, tuple(starts), tuple(steps), tuple(extents), scalar_type(value), shape_of(value))


def positions(axis: int, shape: Shape) -> nodes.Positions:
    """Where each element of a shape is along an axis. Raises GraphShapes."""
    return nodes.Positions(_axis(axis, len(shape)), INT64, tuple(shape))


def check_held(given: ArrayLike, dtype: DType) -> None:
    """Refuse constants that a dtype does not hold: those that an integer cannot be, and integers beyond all floats.

    Raises NumberTooLarge.
    """
    found = np.asarray(given)
    if not found.size or found.dtype.kind not in "biufOV" or dtype == BOOL:
        return
    if not dtype.is_integer and found.dtype != object:
        return
    low, high = dtype.limits if dtype.is_integer else (-LARGEST, LARGEST)
    if found.dtype == object:  # integers beyond 64 bits, and what stands beside them
        found = np.array([each for each in found.flat if isinstance(each, (int, float))], object)
    for each in (found.min(), found.max()) if found.size else ():
        number = each.item() if isinstance(each, np.generic) else each
        if (dtype.is_integer or isinstance(number, int)) and not low - 1 < number < high + 1:
            cure = f"{dtype} holds {low} to {high}: give another" if dtype.is_integer else "no float is that large"
            what = "Python integer" if isinstance(number, int) else "number"
            raise NumberTooLarge(shown_number(number), dtype.name, cure, what).at()


def constant(value: Any, dtype: DType) -> Const:
    """A number as a constant, converted by the rules of NumPy's astype. Raises GraphTypes and NumberTooLarge."""
    if np.ndim(value):
        raise GraphTypes(f"an array of shape {np.shape(value)} as a number", "pass it to g.array").at()
    check_held(value, dtype)
    return const(value, dtype)


def literal(elements: Sequence[Expr], shape: Shape) -> nodes.Literal:
    """An array of constants of one dtype. Raises GraphTypes and GraphShapes."""
    given = [each for each in elements if isinstance(each, Const)]
    kinds = {each.type for each in given}
    if len(kinds) != 1 or len(given) < len(elements):
        raise GraphTypes("an array of anything but constants of one dtype", "use values of the graph").at()
    (dtype,) = kinds
    return literal_of(b"".join(each.bits.to_bytes(dtype.nbytes, "little") for each in given), dtype, shape)


def literal_of(data: bytes, dtype: DType, shape: Shape) -> nodes.Literal:
    """An array of constants, of its bytes, little-endian and in C order. Raises GraphTypes and GraphShapes."""
    count, rest = divmod(len(data), dtype.nbytes)
    if rest or not data:
        raise GraphTypes(f"{counted(len(data), 'byte')} as elements of {dtype}", "give all of some elements").at()
    wrong = data.translate(None, b"\0\1") if dtype == BOOL else b""
    if wrong:
        raise GraphTypes(f"the byte {wrong[0]} as an element of bool", "the bytes of bools are 0 and 1").at()
    if product(shape) != count or not all(isinstance(each, int) for each in shape):
        raise GraphShapes(f"{counted(count, 'constant')} as {shown(shape)}", "give one for each element").at()
    return nodes.Literal(data, dtype, tuple(shape))


def bounded(value: Expr, extent: Size, axis: int) -> nodes.Bounded:
    """Integers that must be indices of an axis. Raises GraphTypes."""
    if not scalar_type(value).is_integer:
        raise GraphTypes(f"indices of {scalar_type(value)}", "convert them: value.astype('int64')").at()
    return nodes.Bounded(value, extent, axis, scalar_type(value), shape_of(value))


def near(axis: int, offset: int, mode: str) -> nodes.Near:
    """An index for `taken`. Raises GraphTypes."""
    if mode not in nodes.MODES:
        raise GraphTypes(f"neighbours by '{mode}'", f"modes are {', '.join(nodes.MODES)}").at()
    return nodes.Near(axis, offset, mode, INT64, ())


def inside(value: Expr) -> nodes.Inside:
    """An index for `taken` that may lie outside of the array."""
    return nodes.Inside(value, INT64, shape_of(value))


def taken(value: Expr, index: Sequence[Expr], shape: Shape, outside: Expr) -> nodes.Take:
    """The elements of a value at an index for each axis. Raises GraphTypes and GraphShapes."""
    own = shape_of(value)
    if len(index) != len(own) or not own:
        what = f"{counted(len(index), 'index', 'indices')} for {counted(len(own), 'axis', 'axes')}"
        raise GraphShapes(what, "give one for each axis, of an array that has some").at()
    if any(scalar_type(each) != INT64 for each in index):
        raise GraphTypes("an index that is not int64", "convert it: value.astype('int64')").at()
    if any(each.axis >= len(shape) for each in index if isinstance(each, nodes.Near)):
        raise GraphShapes(f"neighbours along axes that {shown(shape)} has not", "axes count from 0").at()
    if scalar_type(outside) != scalar_type(value) or shape_of(outside):
        raise GraphTypes(f"{scalar_type(outside)} outside of {scalar_type(value)}", "pass one number of its dtype").at()
    if common_shape([*map(shape_of, index), shape]) != shape:
        raise GraphShapes(f"indices that do not broadcast to {shown(shape)}", "give their common shape").at()
    return nodes.Take(value, outside, tuple(index), scalar_type(value), tuple(shape))


def counted_from(index: Expr, extent: Size, axis: int) -> Expr:
    """Integers as indices of an axis, from its start; calls check them. Raises GraphTypes."""
    if isinstance(index, Const) and isinstance(extent, int) and -extent <= int(index.value) < extent:
        return const(int(index.value) % extent, INT64)
    wide = converted(bounded(index, extent, axis), INT64)
    behind = mapped("add", [wide, number_of(extent)])
    return mapped("where", [mapped("less", [wide, const(0, INT64)]), behind, wide])


def moved(value: Expr, moves: Mapping[int, tuple[int, int]], mode: str, outside: Expr) -> Expr:
    """The elements at other positions. moves: for axes how far away they are, and by how much the axis grows.

    Raises GraphTypes and GraphShapes.
    """
    own = shape_of(value)
    found = {_axis(axis, len(own)): each for axis, each in moves.items()}
    shape = tuple(extent + found.get(axis, (0, 0))[1] for axis, extent in enumerate(own))
    index = [near(axis, found[axis][0], mode) if axis in found else _along(axis, own) for axis in range(len(own))]
    return taken(value, index, shape, outside) if own else value


def roll(shift: object, axis: object) -> dict[int, tuple[int, int]]:
    """How elements move that are rolled along an axis. Raises GraphShapes."""
    if not (isinstance(shift, (int, np.integer)) and isinstance(axis, int)):
        cure = "pass one integer and one axis, and roll the result along other axes"
        raise GraphShapes(f"a roll by {shift!r} along axis {axis!r}", cure).at()
    return {axis: (-int(shift), 0)}


def margins(widths: object, ndim: int) -> dict[int, tuple[int, int]]:
    """How elements move that get others around them, so many before and after for each axis. Raises GraphShapes."""
    pairs = list(widths) if isinstance(widths, (list, tuple, np.ndarray)) else []
    if len(pairs) != ndim or any(np.shape(each) != (2,) or np.asarray(each).dtype.kind not in "iu" for each in pairs):
        cure = "pass a pair of integers for each axis: how many elements before and after"
        raise GraphShapes(f"{widths!r} around an array of {counted(ndim, 'axis', 'axes')}", cure).at()
    return {axis: (-int(low), int(low) + int(high)) for axis, (low, high) in enumerate(pairs)}


def _along(axis: int, own: Shape) -> Expr:
    """Where elements are along an axis, in a shape that broadcasts to all of them."""
    return positions(axis, tuple(extent if at == axis else 1 for at, extent in enumerate(own)))


def strided(value: Expr, starts: Sequence[int], steps: Sequence[int], shape: Shape) -> nodes.Strided:
    """Elements at regular distances. steps: for each axis of the value, those by the axes of the result.

    Raises GraphShapes.
    """
    own, axes = shape_of(value), len(shape)
    rows = tuple(tuple(steps[at * axes : (at + 1) * axes]) for at in range(len(own)))
    what = f"elements of {shown(own)} from {shown(tuple(starts))} by {shown(tuple(steps))}, {shown(shape)} of them"
    if len(starts) != len(own) or len(steps) != len(own) * axes:
        cure = "give a start for each axis of the value, and a step by each axis of the result"
        raise GraphShapes(what, cure).at()
    if any(isinstance(each, int) and each < 0 for each in shape):
        raise GraphShapes(what, "no axis has fewer than 0 elements").at()
    for extent, start, row in zip(own, starts, rows, strict=True):
        ends = [step * (count - 1) for step, count in zip(row, shape, strict=True)]
        if not all(isinstance(each, int) for each in (extent, start, *row, *ends)):
            raise GraphShapes(what, "elements at regular distances are chosen by integers, not by named extents").at()
        low = start + sum(min(each, 0) for each in ends)  # type: ignore[type-var,misc]
        high = start + sum(max(each, 0) for each in ends)  # type: ignore[type-var,misc]
        if not (low >= 0 and high < extent) and 0 not in shape:  # type: ignore[operator]
            raise GraphShapes(f"elements {low} to {high} of an axis of {extent}", "a view stays within the array").at()
    return nodes.Strided(value, tuple(starts), rows, scalar_type(value), tuple(shape))


def called(function: str, args: Sequence[Expr], results: Sequence[tuple[DType, Shape]]) -> list[External]:
    """The results of a function that graphs do not look into. Raises GraphShapes."""
    if any(isinstance(extent, int) and extent < 0 for _, shape in results for extent in shape) or not results:
        raise GraphShapes(f"the results of '{function}'", "give the dtype and the shape of each").at()
    kinds = tuple((dtype, tuple(shape)) for dtype, shape in results)
    return [External(function, tuple(args), kinds, at, *kind) for at, kind in enumerate(kinds)]


def multiplied(one: Expr, other: Expr) -> External:
    """The product of matrices, or vectors, as np.matmul has it. Raises GraphTypes and GraphShapes."""
    dtype, (left, right) = scalar_type(one), (shape_of(one), shape_of(other))
    if dtype != scalar_type(other) or dtype.numpy.isbuiltin != 1:
        what = f"a product of {dtype} and {scalar_type(other)}"
        raise GraphTypes(what, "convert them to one dtype of NumPy: value.astype(dtype)").at()
    if not left or not right or left[-1] != right[-2:][0]:
        cure = "the last axis of the first is the last but one of the second; equal sizes have one name"
        raise GraphShapes(f"a product of {shown(left)} and {shown(right)}", cure).at()
    shape = (*common_shape([left[:-2], right[:-2]]), *left[-2:-1], *(right[-1:] if len(right) > 1 else ()))
    return External(nodes.PRODUCT, (one, other), ((dtype, shape),), 0, dtype, shape)


def _axis(given: int, ndim: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not -ndim <= given < ndim:
        raise GraphShapes(f"axis {given!r} of an array of {counted(ndim, 'axis', 'axes')}", "axes count from 0").at()
    return given % ndim
