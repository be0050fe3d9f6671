"""How an elementwise kernel walks its operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusec.arguments import layouts
from fusec.arguments.layouts import Shape, View
from fusec.arguments.signature import Parameter
from fusec.base.records import dataclass
from fusec.kinds.launch import Launch


@dataclass(frozen=True)
class Space(Launch):
    """The iteration space of a call, whose axes may be merged, and how its operands lie in it, inputs first."""

    shape: Shape  # the broadcast shape
    raw: Mapping[str, View]  # the arrays that the body addresses itself
    views: Mapping[str, View]  # all arrays

    @property
    def size(self) -> int:
        """The number of elements that the operation runs for."""
        return self.positions


def make_space(
    shape: Shape,
    views: Sequence[tuple[Parameter, View]],
    *,
    uses_index: bool,
    reduce_dims: bool,
    vectors: bool = False,
) -> Space:
    """Merge axes, choose the order of the walk, and classify the strides.

    uses_index: the body asks for its position, so the walk is in C order of `shape`. reduce_dims: axes may be merged.
    """
    walked = [(param.name, view) for param, view in views if not param.raw]
    raw = [(param.name, view) for param, view in views if param.raw]
    strides = [layouts.broadcast_strides(view, shape) for _, view in walked]
    nest = layouts.nest(shape, strides, reorder=not uses_index, merge=reduce_dims or not uses_index)
    layout = layouts.make_layout(nest, walked, raw, c_order=uses_index, vectors=vectors)
    operands = tuple(zip((name for name, _ in walked), nest.strides, nest.offsets, strict=True))
    return Space(layout, nest.extents, operands, shape, dict(raw), dict([*walked, *raw]))
