"""What computes a call of a library on a device: kernels, and calls of CUDA's own libraries, in a row.

The arrays of a recipe have places: first the operands of the call, then its results, then memory that the recipe works
in. All that it needs follows from how they lie; a call that is repeated only fills in addresses.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from fusec.base import dtypes
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import strides_in_order
from fusec.base.records import replace
from fusec.dispatch.copier import copier
from fusec.dispatch.planned import Planned
from fusec.dispatch.spec import CallOptions
from fusec.fusion.functions.libraries import asked_of, called_plainly, filled
from fusec.fusion.functions.matrix_products import Arrangement
from fusec.fusion.trace.trace_values import LibraryCall
from fusec.runtime import cuda

FEW_CALLS = 16  # of a library, by which a call is done before copies that make them fewer


class Part(NamedTuple):
    """An array, or a part of one. start: bytes from the first element of the array at a place."""

    place: int
    start: int
    form: Arrangement

    def of(self, shape: Iterable[int], start: int = 0) -> Part:
        """The part of this shape that starts so many bytes further."""
        rest = (self.form.rest + start) % cuda.VECTOR_BYTES
        return Part(self.place, self.start + start, self.form._replace(shape=tuple(shape), rest=rest))

    def as_real(self) -> Part:
        """The real parts of complex numbers."""
        return self._replace(form=self.form._replace(row=dtypes.real_type(self.form.row)))


class KernelStage(NamedTuple):
    """A kernel. operands: arrays and numbers, then results. axes: those that a reduction leaves out."""

    kernel: Planned
    operands: tuple[Part | float, ...]
    axes: tuple[int, ...] | None = None


class LibraryStage(NamedTuple):
    """A call of one of CUDA's libraries. operands: places, and bytes from the first elements there.

    call: takes the addresses, the device and the stream.
    """

    call: Callable[[Sequence[int], int, int], None]
    operands: tuple[tuple[int, int], ...]


class Recipe(NamedTuple):
    """Stages in order. rooms: the memory that they work in."""

    rooms: tuple[Arrangement, ...]
    stages: tuple[KernelStage | LibraryStage, ...]


class Cleared(NamedTuple):
    """Fills dense memory with zeros."""

    nbytes: int

    def run(self, addresses: Sequence[int], device: int, stream: int) -> None:
        """Enqueue it."""
        cuda.fill_with_zeros(addresses[0], self.nbytes, device, stream)


class RecipeBuilder:
    """Collects stages. forms: of the operands, which may be numbers, and of the results."""

    def __init__(self, forms: Sequence[Any]) -> None:
        self.forms = [*forms]
        self._given = len(forms)
        self.stages: list[KernelStage | LibraryStage] = []

    def made(self) -> Recipe:
        """The whole."""
        return Recipe(tuple(self.forms[self._given :]), tuple(self.stages))

    def whole(self, place: int) -> Part:
        """All of an array."""
        return Part(place, 0, self.forms[place])

    def room(self, shape: Sequence[int], row: DType, order: Sequence[int] | None = None) -> Part:
        """Memory for an array that is dense with its axes in an order, outermost first; None: C order."""
        order = range(len(shape)) if order is None else order
        self.forms.append(Arrangement(tuple(shape), strides_in_order(shape, order, row.nbytes), row))
        return self.whole(len(self.forms) - 1)

    def clear(self, part: Part) -> None:
        """Fill dense memory with zeros."""
        self.call(Cleared(part.form.nbytes).run, [part])

    def copy(self, source: Part, target: Part, change: str = "x", factor: float = 1.0) -> None:
        """Store elements of an array, or what is made of them, in another one. Nothing is stored of no elements."""
        if 0 in target.form.shape:
            return
        row = dtypes.real_type(target.form.row)
        kernel = copies(source.form.row != target.form.row, change, None if factor == 1 else row)
        numbers = () if factor == 1 else (factor,)
        self.stages.append(KernelStage(kernel, (source, *numbers, target)))

    def call(self, call: Callable[[Sequence[int], int, int], None], parts: Iterable[Part]) -> None:
        """Call a library with the addresses of arrays."""
        self.stages.append(LibraryStage(call, tuple((each.place, each.start) for each in parts)))


@cache
def copies(converts: bool, change: str = "x", factor: DType | None = None) -> Planned:
    """A kernel that copies an array, or what is made of its elements; see `copier`."""
    spec = copier(converts, change, factor)
    return Planned(spec.definition, spec.signature)


# --- calls -----------------------------------------------------------------------------------------------------------


def named(call: LibraryCall, operands: Sequence[Any]) -> dict[str, Any]:
    """All arguments of a call by the names of the function's parameters."""
    plain = called_plainly(call.function)
    args, options = (tuple(operands), {}) if plain is not None else asked_of(call.function)
    args, options = filled(args, operands), filled(options, operands)
    function = attrgetter(call.name.removeprefix("np."))(np)
    return inspect.signature(function).bind(*args, **options).arguments


def form_of(given: Any) -> Any:
    """How an array lies; a number as it is."""
    if not isinstance(given, cuda.DeviceArray):
        return given
    return Arrangement(given.shape, given.strides, given.dtype, given.pointer % cuda.VECTOR_BYTES)


def part_of(array: cuda.DeviceArray, part: Part) -> cuda.DeviceArray:
    """A part of an array."""
    form = part.form
    return replace(array, pointer=array.pointer + part.start, shape=form.shape, strides=form.strides, dtype=form.row)


def run(recipe: Recipe, given: Sequence[Any], device: int, stream: int) -> None:
    """Enqueue a recipe on a stream. given: operands, then the memory of results. Raises CudaMathRefused."""
    arrays = [*given]
    for form in recipe.rooms:
        order = sorted(range(len(form.shape)), key=lambda axis: -form.strides[axis])
        arrays.append(cuda.describe(cuda.empty(form.shape, form.row, order, device, stream), stream))
    for stage in recipe.stages:
        if isinstance(stage, LibraryStage):
            stage.call([arrays[place].pointer + start for place, start in stage.operands], device, stream)
            continue
        operands = [part_of(arrays[each.place], each) if isinstance(each, Part) else each for each in stage.operands]
        stage.kernel.run(tuple(operands), None, CallOptions(stage.axes, stream=stream))
