"""The operations of graphs: each function checks its operands and makes a node with its dtype and shape.

Whatever makes graphs, a person, a parser or a trace, makes the nodes by these functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.base.diagnostics import counted, did_you_mean
from fusec.base.dtypes import INT64, DType
from fusec.base.ops import TABLE, result_type
from fusec.errors.graphs import GraphShapes, GraphTypes
from fusec.graphs.extents import Extent, Shape, Size, divided, product
from fusec.graphs.nodes import Broadcast, External, Fold, Map, Reshape, SizeNumber, Slice, Transpose, Update, shape_of
from fusec.ir.expr import Expr, scalar_type

FOLDS = ("add", "multiply", "minimum", "maximum", "fmin", "fmax", "bitwise_and", "bitwise_or", "bitwise_xor")
"""The associative ops by which elements may be combined."""

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
    if len({len(own), len(starts), len(steps), len(shape)}) != 1 or 0 in steps:
        raise GraphShapes(f"a slice of {shown(own)}", "it needs a start, a step other than 0, and a count by axis").at()
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
            raise GraphShapes(f"{shown(own)} reshaped to {shown(shape)}", "write the extent instead of -1").at()
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


def folded(op: str, value: Expr, axes: Sequence[int]) -> Expr:
    """The elements along some axes combined; these axes keep one element. Raises GraphTypes and GraphShapes."""
    if op not in FOLDS:
        raise GraphTypes(f"a fold by '{op}'", f"folds are by {', '.join(FOLDS)}").at()
    dtype = scalar_type(value)
    mapped(op, [value, value])  # for its checks
    own = shape_of(value)
    places = tuple(sorted({_axis(each, len(own)) for each in axes}))
    if len(places) != len(tuple(axes)):
        raise GraphShapes(f"axes {tuple(axes)} of {shown(own)}", "name an axis once").at()
    if not places:
        return value
    return Fold(op, value, places, dtype, tuple(1 if at in places else each for at, each in enumerate(own)))


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


def called(function: str, args: Sequence[Expr], results: Sequence[tuple[DType, Shape]]) -> list[External]:
    """The results of a function that graphs do not look into. Raises GraphShapes."""
    if any(isinstance(extent, int) and extent < 0 for _, shape in results for extent in shape) or not results:
        raise GraphShapes(f"the results of '{function}'", "give the dtype and the shape of each").at()
    kinds = tuple((dtype, tuple(shape)) for dtype, shape in results)
    return [External(function, tuple(args), kinds, at, *kind) for at, kind in enumerate(kinds)]


def _axis(given: int, ndim: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not -ndim <= given < ndim:
        raise GraphShapes(f"axis {given!r} of an array of {counted(ndim, 'axis', 'axes')}", "axes count from 0").at()
    return given % ndim
