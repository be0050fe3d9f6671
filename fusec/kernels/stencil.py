"""Functions of an element and its neighbours, as callable objects that run for every element of an array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fusec.arguments.operands import Form
from fusec.arguments.signature import Parameter
from fusec.base.kernel_abi import Fp
from fusec.base.records import replace
from fusec.dispatch.checked import Checks
from fusec.errors.python import BadBoundary, BadParameter
from fusec.frontends.capture.closure import Captured, Origin, constant_of
from fusec.frontends.python import name_usage
from fusec.frontends.python.definition import Border, Capture, FunctionText, PythonDefinition
from fusec.kernels.elementwise_function import Elementwise, FunctionSignature, Variant, restored

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
            f"{len(modes)} boundaries for {len(which)} axes", "give one for each axis, or one for all"
        ).at()
    number = constant_of(cval)
    if number[0] not in ("python", "complex", "numpy") or (isinstance(cval, np.ndarray) and cval.ndim):
        raise BadBoundary(f"cval={cval!r} is not a number", "pass a number").at()
    return modes, number, which


class Stencil(Elementwise):
    """A function of an element and its neighbours; see `fusec.stencil`."""

    kind = "stencil"
    is_elementwise = False

    def __init__(
        self, origin: Origin, name: str, fp: Fp, kept: Mapping[str, object], border: Border, checks: Checks = ""
    ) -> None:
        self.border = border
        super().__init__(origin, name, fp, kept, checks)
        found = name_usage.indexed(self.tree.body)
        self.indexed = tuple(name for name in self.params if name in found)
        if not self.indexed:
            cure = "write a[0, 1] for a neighbour of a, or use fusec.elementwise"
            raise BadParameter(f"'{self.name}' reads no neighbours", cure).at(self.tree.span)

    def variant_of(
        self,
        inputs: tuple[Parameter, ...],
        captured: Captured,
        constants: tuple[tuple[str, Capture], ...],
        numbers: tuple[tuple[str, str], ...],
        scalars: frozenset[str],
        forms: Mapping[str, Form],
    ) -> Variant:
        """A variant in which the indexed parameters are arrays with neighbours. Raises BadParameter for numbers."""
        del forms
        given = {*(name for name, _ in (*constants, *numbers)), *(param.name for param in inputs if param.dtype)}
        for name in self.indexed:
            if name in given and self.declared()[name] is None:
                raise BadParameter(f"'{name}' of stencil '{self.name}' must be an array", "pass an array for it").at()
        inputs = tuple(replace(param, raw=param.name in self.indexed) for param in inputs)
        definition = PythonDefinition(
            self.name, captured.functions, self.outputs, constants, numbers, self.indexed, self.border
        )
        outputs = tuple(Parameter(name, name, None) for name in self.outputs)
        signature = FunctionSignature(self.name, inputs, outputs, definition)
        return Variant(self, definition, signature, scalars, self.fp, neighbours=True)

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (
            self.captured().functions,
            self.name,
            self.fp,
            self.__module__,
            self.__qualname__,
            self.border,
            self.checks,
        )


def _restore(
    functions: tuple[FunctionText, ...],
    name: str,
    fp: Fp,
    module: str,
    qualname: str,
    border: Border,
    checks: Checks = "",
) -> Elementwise:
    """Rebuild a pickled stencil from its text."""
    return restored(Stencil(Captured(functions), name, fp, {}, border, checks), module, qualname)
