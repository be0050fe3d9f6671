"""How an elementwise kernel walks its operands."""

from __future__ import annotations

from math import prod

from fusec.arguments import layouts
from fusec.arguments.layouts import Shape, View
from fusec.base.records import dataclass, replace
from fusec.kinds.copies import copies_of
from fusec.kinds.launch import Launch


@dataclass(frozen=True)
class Operands:
    """The arrays of a call by name, inputs first."""

    walked: tuple[tuple[str, View], ...]  # element by element
    raw: tuple[tuple[str, View], ...]  # that the body addresses itself
    updated: frozenset[str] = frozenset()  # those of them that it may update atomically


def launch_over(
    shape: Shape, operands: Operands, *, uses_index: bool, reduce_dims: bool, vectors: bool = False
) -> Launch:
    """Merge axes, choose the order of the walk, and classify the strides.

    uses_index: the body asks for its position, so the walk is in C order of `shape`. reduce_dims: axes may be merged.
    vectors: see `Machine`.
    """
    strides = [layouts.broadcast_strides(view, shape) for _, view in operands.walked]
    merge = reduce_dims or not uses_index
    nest = layouts.nest(shape, strides, reorder=not uses_index, merge=merge, strips=not vectors)
    layout = layouts.make_layout(nest, operands.walked, operands.raw, c_order=uses_index, vectors=vectors)
    layout = replace(layout, gaps=layouts.gaps_in(nest, operands.walked, () if vectors else operands.raw))
    if vectors and operands.updated:
        layout = replace(layout, copies=copies_of(operands.raw, operands.updated, prod(shape)))
    names = (name for name, _ in operands.walked)
    return Launch(layout, nest.extents, tuple(zip(names, nest.strides, nest.offsets, strict=True)))
