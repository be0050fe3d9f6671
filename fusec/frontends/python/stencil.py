"""Stencils: functions of an element and its neighbours, with every kind of border as a map of indices.

The text is lowered twice, for elements whose neighbours all exist and for those at a border, so that the first pay
nothing for the second.
"""

from __future__ import annotations

from collections.abc import Mapping

from fusec.base.diagnostics import counted
from fusec.base.dtypes import BOOL, INT64, DType
from fusec.base.records import dataclass, field
from fusec.base.source import Span
from fusec.errors.language import BadIndex
from fusec.errors.python import BadBoundary, StencilRadius
from fusec.frontends.python import syntax as s
from fusec.frontends.python.definition import Border
from fusec.frontends.python.dtype_calls import cast
from fusec.frontends.python.function_context import FunctionContext
from fusec.frontends.python.function_exits import straight
from fusec.frontends.python.kernel_context import value_of
from fusec.frontends.python.statements import PythonStatements
from fusec.frontends.python.types import carrier, is_bool, is_integer
from fusec.frontends.python.values import Neighbours, Scalar, converted, items_of, literal
from fusec.ir import borders
from fusec.ir.expr import Const, Expr, Pointer, apply
from fusec.ir.loops import At, If, Load, query

MAX_OFFSET = 2**31  # either way: indices moved by as much, and extents less as much, stay within int64


@dataclass
class Reach:
    """The reach of a stencil along each axis: the least and greatest offset; fixed: all offsets are known."""

    least: list[int] = field(default_factory=list)
    most: list[int] = field(default_factory=list)
    fixed: bool = True

    def note(self, axis: int, offset: int) -> None:
        """Widen the reach along an axis."""
        while len(self.least) <= axis:
            self.least.append(0)
            self.most.append(0)
        self.least[axis], self.most[axis] = min(self.least[axis], offset), max(self.most[axis], offset)

    @property
    def is_nothing(self) -> bool:
        """True if no neighbour is read."""
        return not any(self.least) and not any(self.most) and self.fixed


class StencilLowering:
    """What array parameters of a kernel that know their neighbours give, inside and at the border."""

    def __init__(self, context: FunctionContext, border: Border, ndims: Mapping[str, int], reach: Reach) -> None:
        self.context, self.ndims, self.reach = context, ndims, reach  # axes of each indexed array; how far it looks
        self.modes, cval, self.axes = border  # for each axis, or one for all; which axes indices are for, () for all
        found = value_of(cval, "cval")
        self.cval = found if isinstance(found, Scalar) else literal(0)  # what lies outside in mode "constant"
        self.interior = False
        context.neighbourhood = self

    def element(self, array: Neighbours, offsets: tuple[Scalar, ...], span: Span) -> Scalar:
        """A neighbour. Raises BadIndex for indices that do not fit the array."""
        ndim = self.ndims.get(array.name) or max(len(offsets), *(axis + 1 for axis in self.axes), 1)
        axes = self.axes or tuple(range(ndim))
        if offsets and len(offsets) != len(axes):
            cure = f"write {counted(len(axes), 'offset')}"
            cure += "" if self.axes else ", or give axes= the axes that the offsets are for"
            what = f"{counted(len(offsets), 'offset')} into '{array.name}', which has {counted(ndim, 'axis', 'axes')}"
            raise BadIndex(what, cure).at(span)
        if any(axis >= ndim for axis in axes):
            what = f"axes={axes}, and '{array.name}' has {counted(ndim, 'axis', 'axes')}"
            raise BadIndex(what, "count axes from 0").at(span)
        if offsets and len(self.modes) not in (1, len(axes)):
            what = f"{len(self.modes)} boundaries for the {counted(len(axes), 'axis', 'axes')} of '{array.name}'"
            raise BadBoundary(what, "give one for each axis, or one for all").at(span)
        index: list[Expr] = [query("coordinate", axis) for axis in range(ndim)]
        guard: Expr | None = None
        for at, (axis, offset) in enumerate(zip(axes, offsets, strict=False)):
            index[axis], inside = self._moved(at, axis, offset, span)
            if inside is not None:
                guard = inside if guard is None else apply("logical_and", guard, inside)
        place = At(array.name, tuple(index), Pointer(array.dtype, "global", True))
        value = converted(Load(place, array.dtype), carrier(array.dtype))
        if guard is not None:
            outside = self._beyond(array, span)
            value = apply("where", guard, value, outside)
        return Scalar(array.dtype, value)

    def offsets_of(self, node: s.Expression) -> tuple[Scalar, ...]:
        """The offsets of an index. Raises BadIndex."""
        offsets: list[Scalar] = []
        for each in items_of(self.context.value(node)):
            if not isinstance(each, Scalar) or not (is_integer(each.type) or is_bool(each.type)):
                cure = "a[-1, 0] is the preceding neighbour along the first axis"
                raise BadIndex("offsets are integers", cure).at(node.span)
            known = _number(each)
            if known is not None and abs(known) > MAX_OFFSET:
                what = f"the offset {known} is beyond {MAX_OFFSET}, the largest that a stencil supports"
                cure = "write a smaller one, or use fusec.kernel, which indexes arrays at any position"
                raise BadIndex(what, cure).at(node.span)
            offsets.append(each)
        return tuple(offsets)

    def _beyond(self, array: Neighbours, span: Span) -> Expr:
        """What lies outside of an array, in its dtype. Raises BadBoundary for what an integer or bool cannot be."""
        number, dtype = _number(self.cval), array.dtype
        if not _holds(dtype, number):
            what = f"cval={number} is not a value of {dtype}, the dtype of '{array.name}'"
            cure = f"pass a value that {dtype} holds, or convert the array: astype('float64')"
            raise BadBoundary(what, cure).at(span)
        return cast(self.cval, dtype, span).read()

    def _moved(self, at: int, axis: int, offset: Scalar, span: Span) -> tuple[Expr, Expr | None]:
        """A coordinate moved by an offset and mapped back inside; and whether it was inside, where that matters."""
        here = query("coordinate", axis)
        known = offset.literal
        if not isinstance(known, int):
            self.reach.fixed = False
            if "skip" in self.modes:
                raise StencilRadius().at(span)
        else:
            self.reach.note(axis, int(known))
            if known == 0:
                return here, None
        moved = apply("add", here, cast(offset, INT64, span).read())
        if self.interior:
            return moved, None
        return borders.mapped(self.modes[at] if len(self.modes) > 1 else self.modes[0], moved, query("shape", axis))

    # --- the whole ---

    def lower(self, lowering: PythonStatements) -> None:
        """Lower the text: for the types only, or finally, inside and at the border."""
        context, body = self.context, self.context.tree.body
        if lowering.ending is None or self.reach.is_nothing or not self.reach.fixed:
            straight(lowering)
            return
        start = dict(context.variables)
        skips = "skip" in self.modes
        with context.block(context.tree.span) as inner:
            self.interior = True
            lowering.body(body)
            if skips:
                lowering.complete()
        context.variables, self.interior = start, False
        going_on, context.reachable = context.reachable, True
        with context.block(context.tree.span) as border:
            if not skips:
                lowering.body(body)
        context.line = 0
        context.emit(If(self._inside(), tuple(inner), tuple(border)))
        context.reachable = going_on
        if not skips:
            lowering.complete()

    @property
    def is_twofold(self) -> bool:
        """True if both ways through the text, inside and at the border, store results: they end in one place."""
        return not self.reach.is_nothing and self.reach.fixed and "skip" not in self.modes

    def _inside(self) -> Expr:
        """Whether all neighbours of the element exist."""
        return borders.inside([-least for least in self.reach.least], self.reach.most)


def _number(value: Scalar) -> complex | None:
    """The number that a value is known to be, None if that shows when the kernel runs."""
    match value:
        case Scalar(literal=None, expr=Const() as known):
            return known.value.item()  # type: ignore[no-any-return]
    return value.literal


def _holds(dtype: DType, number: complex | None) -> bool:
    """Whether an integer dtype or bool has a number exactly; floats round numbers, and their parts."""
    if number is None or not (dtype.is_integer or dtype == BOOL):
        return True
    low = -(1 << (dtype.bits - 1)) if dtype.kind == "signed" else 0
    count = 2 if dtype == BOOL else 1 << dtype.bits
    return not isinstance(number, complex) and low <= number < low + count and number == int(number)
