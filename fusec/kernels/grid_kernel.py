"""Explicit kernels: functions over a grid that index their arrays themselves, as callable objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from fusec.arguments.layouts import Shape
from fusec.arguments.operands import Form, admitted, host_array, is_lent, is_number, output_array
from fusec.arguments.signature import types_named
from fusec.base.diagnostics import counted
from fusec.base.kernel_abi import MAX_BLOCK
from fusec.base.records import replace
from fusec.dispatch.planned import block_size_of, hide_internal_frames
from fusec.dispatch.spec import CallOptions
from fusec.errors.arguments import UnsupportedArgument
from fusec.errors.checks import BadBlock, GridNotInBlocks
from fusec.errors.python import BadParameter, UnexpectedArgument
from fusec.frontends.python import name_usage
from fusec.frontends.python.blocks import block_text
from fusec.frontends.python.definition import PythonDefinition
from fusec.frontends.python.grid import grid_loop
from fusec.kernels.elementwise_function import Decoration, Elementwise, Selection, Variant

if TYPE_CHECKING:
    from fusec.dispatch.explain import Explanation
    from fusec.frontends.python.extents import Extents


class ExplicitVariant(Variant):
    """An explicit kernel for arrays of certain numbers of axes."""

    def __init__(self, owner: Explicit, selection: Selection, definition: PythonDefinition) -> None:
        super().__init__(owner, selection, definition, neighbours=True, updated=owner.updated)
        self.follows_raw, self.no_return = False, True

    @cached_property
    def grid(self) -> Extents:
        """The extents of the grid."""
        from fusec.frontends.python.extents import Extents

        assert isinstance(self.definition, PythonDefinition), "variants are made of functions"
        return Extents(self.definition)

    def deciding(self, numbers: Mapping[str, object]) -> dict[str, object]:
        """The numbers that the grid depends on."""
        return {name: value for name, value in numbers.items() if name in self.grid.reads}


class Explicit(Elementwise):
    """An explicit kernel; see `fusec.kernel`. block: positions of a block along each axis of the grid, () without."""

    kind = "kernel"
    reserved = ("stream", "block_size")

    def __init__(self, made_of: Decoration, block: tuple[int, ...] = ()) -> None:
        super().__init__(made_of)
        self.block = block
        grid_loop(self.tree)
        self.outputs, self.returns_tuple = (), False

    @cached_property
    def arrays(self) -> tuple[str, ...]:
        """The parameters that are arrays, as the text uses them. Raises BadParameter if there is none."""
        used = name_usage.arrays(self.tree.body) | self.updated
        found = tuple(param for param in self.params if param in used)
        if not found:
            cure = "index an array, as in out[i] = value; fusec.elementwise makes functions of numbers"
            raise BadParameter(f"'{self.name}' has no array", cure).at(self.tree.span)
        return found

    @cached_property
    def written(self) -> tuple[str, ...]:
        """The arrays that the kernel changes."""
        found = name_usage.stored(self.tree.body) | self.updated
        return tuple(name for name in self.arrays if name in found)

    @cached_property
    def updated(self) -> frozenset[str]:
        """The arrays that it may update atomically."""
        names = self.captured().functions[-1].names
        atomic = {name for name, what in names if what[0] == "intrinsic" and what[1].startswith("atomic_")}
        return frozenset(name_usage.updated(self.tree.body, frozenset(atomic)))

    # --- calling -------------------------------------------------------------------------------------------------

    @hide_internal_frames
    def _from_python(self, *args: object, stream: object = None, block_size: object = None, **named: object) -> object:
        variant, inputs, grid = self.prepared(args, named)
        self.launch(variant, inputs, CallOptions(size=grid, stream=stream, block_size=self._threads(block_size)))
        return None

    def _threads(self, block_size: object) -> int | None:
        """The threads of a block that a call asks for, if it does. Raises UnexpectedArgument."""
        threads = block_size_of(block_size)
        if threads is not None and self.block:
            cure = f"its blocks have {block_text(self.block)} positions, as block= of fusec.kernel says"
            raise UnexpectedArgument(self.name, "block_size=", cure).at()
        return threads

    def prepared(
        self, args: tuple[object, ...], named: Mapping[str, object]
    ) -> tuple[Variant, tuple[object, ...], Shape]:
        """The variant for these arguments, the arguments in order, and the grid, counted in blocks if it has any."""
        if len(args) > len(self.params) or ("out" in named and "out" not in self.params):
            cure = f"its parameters are: {', '.join(self.params)}; arrays are changed in place"
            given = counted(len(args), "argument") if len(args) > len(self.params) else "out="
            raise UnexpectedArgument(self.name, given, cure).at()
        self.check_named(named)
        values = tuple(self._admitted(name, each) for name, each in zip(self.params, args, strict=False))
        variant, inputs, _ = self.bound(values, {name: self._admitted(name, each) for name, each in named.items()})
        return variant, inputs, self._grid(variant, inputs)

    def _admitted(self, name: str, value: object) -> object:
        """An argument that has a shape; one that the kernel writes stays the memory that it is."""
        if name not in self.arrays:
            return admitted(value, name, self.name)
        if is_number(value) or (is_lent(value) and hasattr(value, "shape")) or _is_on_device(value):
            return value
        return (output_array if name in self.written else host_array)(value, name, self.name)

    def _grid(self, variant: Variant, inputs: tuple[object, ...]) -> Shape:
        shapes: dict[str, tuple[int, ...]] = {}
        numbers: dict[str, object] = {}
        for param, value in zip(variant.in_params, inputs, strict=True):
            if param.raw:
                shapes[param.name] = _shape(value, param.name, self.name)
            else:
                numbers[param.name] = value
        assert isinstance(variant, ExplicitVariant), "variants of explicit kernels"
        return self._in_blocks(variant.grid.of(shapes, numbers))

    def _in_blocks(self, grid: Shape) -> Shape:
        """How many blocks the grid has along each axis. Raises GridNotInBlocks."""
        if not self.block:
            return grid
        for axis, (extent, each) in enumerate(zip(grid, self.block, strict=False)):
            if extent % each:
                shown = block_text(grid), block_text(self.block)
                raise GridNotInBlocks(self.name, *shown, axis, each).at()
        if len(grid) != len(self.block):
            return grid  # lowering refuses it, and shows where the grid stands
        return tuple(extent // each for extent, each in zip(grid, self.block, strict=True))

    def form(self, name: str, value: object) -> Form:
        """How a variant sees an argument: arrays with their number of axes. Raises BadParameter for the wrong kind."""
        if name in self.arrays:
            if is_number(value):
                what = f"'{name}' of kernel '{self.name}' must be an array"
                raise BadParameter(what, "pass an array for it, at least np.array(value)").at()
            return f"array {len(_shape(value, name, self.name))}"
        if not is_number(value):
            what = f"'{name}' of kernel '{self.name}' is used as a number"
            raise BadParameter(what, "pass a number, or index it in the kernel").at()
        return super().form(name, value)

    @hide_internal_frames
    def explain(self, *args: object, stream: object = None, block_size: object = None, **named: object) -> Explanation:
        """Report how a call with these arguments runs: the grid, lanes, types, bytes moved. Nothing is run."""
        del stream
        variant, inputs, grid = self.prepared(args, named)
        return variant.explained(inputs, CallOptions(size=grid, block_size=self._threads(block_size)))

    # --- variants ------------------------------------------------------------------------------------------------

    def variant_of(self, selection: Selection) -> Variant:
        """A variant for arrays with certain numbers of axes."""
        written = self.written
        arrays = tuple((name, int(selection.forms[name].partition(" ")[2]), name in written) for name in self.arrays)
        inputs = tuple(
            replace(param, raw=param.name in self.arrays, non_const=param.name in written) for param in selection.inputs
        )
        definition = self.definition_of(selection, arrays=arrays, block=self.block)
        return ExplicitVariant(self, replace(selection, inputs=inputs), definition)

    def form_shown(self, name: str) -> Form:
        """How a parameter is passed before any call: with as many axes as it has indices."""
        return f"array {name_usage.indices(self.tree.body).get(name, 1)}"

    def shown_variant(
        self, types: Mapping[str, object] | None, scalars: Sequence[str]
    ) -> tuple[Variant, Mapping[str, object], Sequence[str]]:
        """What source() shows before any call; parameters that are not arrays are passed by value."""
        defaults = dict(self.captured().functions[-1].defaults)
        given = types_named(types, next(iter(self.params), "x"))
        given |= {name: dtype for name, dtype in self.declared().items() if dtype is not None and name not in given}
        numbers = [name for name in self.params if name not in self.arrays]
        by_value = [name for name in numbers if name in scalars or name in given or name not in defaults]
        return super().shown_variant(given, tuple(dict.fromkeys((*scalars, *by_value))))

    @property
    def own_options(self) -> tuple[object, ...]:
        """The block."""
        return (self.block,)


def block_of(given: object) -> tuple[int, ...]:
    """The block of `block=`, () for None. Raises BadBlock."""
    if given is None:
        return ()
    parts = given if isinstance(given, (tuple, list)) else (given,)
    found = []
    for part in parts:
        if isinstance(part, (bool, np.bool_)) or not isinstance(part, (int, np.integer)):
            raise BadBlock(repr(given), f"{part!r} is not an integer").at()
        if part < 1:
            raise BadBlock(repr(given), f"{part} is not at least 1").at()
        found.append(int(part))
    if not found:
        raise BadBlock(repr(given), "it has no axis").at()
    if prod(found) > MAX_BLOCK:
        raise BadBlock(repr(given), f"it has {prod(found)} positions, and GPUs run at most {MAX_BLOCK}").at()
    return tuple(found)


def _is_on_device(value: object) -> bool:
    return not isinstance(value, np.ndarray) and getattr(value, "__cuda_array_interface__", None) is not None


def _shape(value: object, param: str, kernel: str) -> Shape:
    """The shape of an array of any library. Raises UnsupportedArgument for what has none."""
    found = getattr(value, "shape", None)
    if found is None:
        interface = getattr(value, "__cuda_array_interface__", None) or getattr(value, "__array_interface__", {})
        found = interface.get("shape")
    if found is None:
        raise UnsupportedArgument(kernel, param, str(type(value))).at()
    return tuple(int(extent) for extent in found)
