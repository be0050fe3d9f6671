"""Functions of an element and its neighbours, as callable objects that run for every element of an array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusec.base.diagnostics import counted
from fusec.base.records import replace
from fusec.errors.python import BadBoundary, BadParameter
from fusec.frontends.capture.closure import constant_of
from fusec.frontends.python import name_usage
from fusec.frontends.python.definition import Border
from fusec.kernels.elementwise_function import Decoration, Elementwise, Selection, Variant

MODES = ("constant", "nearest", "reflect", "mirror", "wrap", "skip")
SAME = {
    "grid-constant": "constant",
    "grid-mirror": "reflect",
    "grid-wrap": "wrap",
    "edge": "nearest",
    "symmetric": "reflect",
}


def border_of(boundary: str | Sequence[str], cval: object, axes: Sequence[int]) -> Border:
    """The treatment of the border by a stencil. Raises BadBoundary."""
    if not isinstance(boundary, (str, tuple, list)):
        raise BadBoundary(
            f"boundary={boundary!r} is not a string", f"boundaries are {', '.join(map(repr, MODES))}"
        ).at()
    given = (boundary,) if isinstance(boundary, str) else tuple(boundary)
    modes = tuple(SAME.get(mode, mode) for mode in given)
    for mode in modes:
        if mode not in MODES:
            raise BadBoundary(f"unknown boundary {mode!r}", f"boundaries are {', '.join(map(repr, MODES))}").at()
    if not modes or ("skip" in modes and set(modes) != {"skip"}):
        raise BadBoundary("boundary='skip' is for all axes or none", "choose another one for the other axes").at()
    which = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
    if any(not isinstance(axis, int) or axis < 0 for axis in which) or len(set(which)) != len(which):
        raise BadBoundary(f"axes={axes!r} are not different axes", "count them from 0").at()
    if len(modes) > 1 and which and len(which) != len(modes):
        raise BadBoundary(
            f"{len(modes)} boundaries for {counted(len(which), 'axis', 'axes')}",
            "give one for each axis, or one for all",
        ).at()
    number = constant_of(cval)
    if number[0] not in ("python", "complex", "numpy") or (isinstance(cval, np.ndarray) and cval.ndim):
        raise BadBoundary(f"cval={cval!r} is not a number", "pass a number").at()
    return modes, number, which


class Stencil(Elementwise):
    """A function of an element and its neighbours; see `fusec.stencil`."""

    kind = "stencil"
    is_elementwise = False

    def __init__(self, made_of: Decoration, border: Border) -> None:
        self.border = border
        super().__init__(made_of)
        found = name_usage.indexed(self.tree.body)
        self.indexed = tuple(name for name in self.params if name in found)
        if not self.indexed:
            cure = "write a[0, 1] for a neighbour of a, or use fusec.elementwise"
            raise BadParameter(f"'{self.name}' reads no neighbours", cure).at(self.tree.span)

    def variant_of(self, selection: Selection) -> Variant:
        """A variant in which the indexed parameters are arrays with neighbours. Raises BadParameter for numbers."""
        given = {name for name, _ in (*selection.constants, *selection.numbers)}
        given |= {param.name for param in selection.inputs if param.dtype}
        for name in self.indexed:
            if name in given and self.declared()[name] is None:
                raise BadParameter(f"'{name}' of stencil '{self.name}' must be an array", "pass an array for it").at()
        inputs = tuple(replace(param, raw=param.name in self.indexed) for param in selection.inputs)
        definition = self.definition_of(selection, indexed=self.indexed, border=self.border)
        return Variant(self, replace(selection, inputs=inputs), definition, neighbours=True)

    @property
    def own_options(self) -> tuple[object, ...]:
        """The treatment of the border."""
        return (self.border,)
