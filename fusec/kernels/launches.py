"""The launches of a call that is only noted: kernels, arguments, and the arrays that they leave to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.arguments.layouts import Shape, View, broadcast_strides
from fusec.arguments.operands import memory_order, view_of
from fusec.base.kernel_abi import Fp, Kernel, strides_in_order
from fusec.base.records import dataclass, field, replace
from fusec.codegen import target_of
from fusec.compiler import pipeline
from fusec.compiler.pipeline import Specialisation
from fusec.compiler.reduction_pipeline import MASK
from fusec.dispatch import host_axis
from fusec.dispatch.axis_spec import Along
from fusec.dispatch.explain_axis import machine_of
from fusec.dispatch.interpret import completed
from fusec.dispatch.notes import NotedAxisCall, NotedElementwiseCall, Notes
from fusec.dispatch.planned import Planned
from fusec.ir.reductions import AXIS
from fusec.kinds.elementwise import make_space
from fusec.kinds.launch import Launch

if TYPE_CHECKING:
    from fusec.dispatch.planned_axis import AxisKernel
    from fusec.dispatch.spec import KernelSpec
    from fusec.ir.loops import Program


@dataclass(frozen=True)
class NotedLibraryCall:
    """What a library computes between kernels."""

    name: str
    operands: tuple[Any, ...]
    results: tuple[Any, ...]


@dataclass(eq=False)
class KeptNotes(Notes):
    """Noted calls with their outputs, which later calls read.

    Outputs of one element hold numbers of their own, by which copies of them are known.
    """

    marks: dict[tuple[str, bytes], Any] = field(default_factory=dict)
    order: list[NotedAxisCall | NotedElementwiseCall | NotedLibraryCall] = field(default_factory=list)
    moved: dict[int, Any] = field(default_factory=dict)  # what stands for arrays on a device, by their identity

    def elementwise(self, kernel: Planned, args: tuple[object, ...], size: int | Shape) -> tuple[object, ...]:
        """Note a call of an element-wise kernel; outputs without meaning, in the memory order of those of a call."""
        call, types, shape = completed(kernel, args, size)
        inputs, outputs = list(map(self.known, args[: kernel.nin])), tuple(call.arrays[kernel.nin :])
        for at, (given, read) in enumerate(zip(args[: kernel.nin], call.arrays, strict=False)):
            if (
                isinstance(given, np.ndarray)
                and read is not None
                and given.size
                and not np.may_share_memory(given, read)
            ):
                (inputs[at],) = self.elementwise(Planned.copier(), (given,), -1)  # an output overlaps it
        if not call.given:
            pairs = list(zip(kernel.in_params, call.arrays, strict=False))
            views = [view_of(each, types[param.name]) for param, each in pairs if each is not None and not param.raw]
            order = memory_order(shape, [broadcast_strides(each, shape) for each in views])
            named = list(zip(kernel.out_params, outputs, strict=True))
            outputs = tuple(each if param.raw else _in_order(each, order) for param, each in named)
        self._add(NotedElementwiseCall(kernel, (*inputs, *outputs), size))
        return outputs if call.given else tuple(map(self.fresh, outputs))

    def along_axes(self, kernel: AxisKernel, args: tuple[object, ...], out: object, along: Along) -> tuple[object, ...]:
        """Note a call of a kernel along axes; outputs without meaning."""
        call = NotedAxisCall(kernel, args, out, along)
        outputs = call.outputs()
        inputs = tuple(map(self.known, args[: kernel.nin]))
        if out is None and len(args) == kernel.nin:
            self._add(replace(call, args=inputs, out=outputs))
            return tuple(map(self.fresh, outputs))
        if host_axis.is_disturbed(kernel, host_axis.read(kernel, args, out, along)):
            for each, given in zip(self.along_axes(kernel, inputs, None, along), outputs, strict=True):
                self.elementwise(Planned.copier(), (each, given), -1)
        else:
            self._add(replace(call, args=inputs, out=outputs))
        return outputs

    def library_call(self, name: str, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """Note a call of a library; results are what later calls read."""
        self.order.append(NotedLibraryCall(name, tuple(map(self.known, operands)), tuple(map(self.fresh, results))))

    def _add(self, call: NotedAxisCall | NotedElementwiseCall) -> None:
        self.calls.append(call)
        self.order.append(call)

    def fresh(self, array: Any) -> Any:
        """A new array, which gets a number of its own if it has one element."""
        if array.size == 1 and array.dtype != np.bool_:
            start = 0.739 if array.dtype.kind not in "iu" else 90 if array.itemsize < 4 else 7_390_851
            array[...] = start + len(self.marks) * (1 if start > 1 else 1 / 128)
            self.marks[array.dtype.str, array.tobytes()] = array
        return array

    def known(self, value: Any) -> Any:
        """The output that an array of one element is a copy of, else the value itself."""
        return self.origin(value) if isinstance(value, np.ndarray) else value

    def origin(self, value: Any) -> Any:
        """The same for numbers too."""
        if not isinstance(value, np.ndarray | np.generic) or value.size != 1:
            return value
        return self.marks.get((value.dtype.str, value.tobytes()), value)


def _in_order(array: Any, order: Sequence[int]) -> Any:
    """An array like another one, whose axes lie in some order from outermost to innermost."""
    return np.lib.stride_tricks.as_strided(array, strides=strides_in_order(array.shape, order, array.itemsize))


@dataclass(eq=False)
class ListedLaunch:
    """One launch of a kernel, of which there is a text or, on targets that show it, a program."""

    kernel: Kernel | Program
    launch: Launch
    extents: Shape
    raw: Mapping[str, View]
    known: Mapping[str, int]  # numbers that no call changes
    arrays: Mapping[str, View]  # by what they are called among all launches of the call
    numbers: Mapping[str, object]
    outputs: frozenset[str]  # of the call, by parameter
    size: int  # threads, or on the host positions
    between: Sequence[object] = ()  # keeps the memory of some of the arrays

    @property
    def title(self) -> str:
        """What the kernel is called."""
        return title_of(self.kernel)


def title_of(kernel: Kernel | Program) -> str:
    """What a kernel or a program is called."""
    return kernel.title if isinstance(kernel, Kernel) else kernel.name


Listed = ListedLaunch | NotedLibraryCall


def launches_of(call: NotedElementwiseCall | NotedAxisCall, target: str, fp: Fp | None) -> list[ListedLaunch]:
    """The launches of a noted call, whose outputs are given."""
    if isinstance(call, NotedElementwiseCall):
        return _of_elements(call, target, fp)
    return _along_axes(call, target, fp)


def _of_elements(noted: NotedElementwiseCall, target: str, fp: Fp | None) -> list[ListedLaunch]:
    kernel, row = noted.kernel, target_of(target)
    call, types, shape = completed(kernel, noted.args, noted.size)
    if 0 in shape:
        return []
    pairs = zip(kernel.params, call.arrays, strict=True)
    views = [(param, view_of(each, types[param.name])) for param, each in pairs if each is not None]
    space = make_space(
        shape, views, uses_index=kernel.uses_index, reduce_dims=kernel.reduce_dims, vectors=row.threads
    )  # fmt: skip
    spec = Specialisation(tuple(types.items()), call.numbers, space.layout, fp or kernel.fp)
    definition = kernel.definition
    made: Kernel | Program
    if row.shows == "program":
        made = pipeline.program_of(definition, spec)
    else:
        made = pipeline.generate(definition, spec, target)
    named = zip(kernel.params, noted.args, strict=False)
    numbers = {param.name: each for param, each in named if param.name in call.numbers}
    arrays = {param.name: view for param, view in views}
    return [ListedLaunch(made, space, space.extents, space.raw, {}, arrays, numbers, _outputs(kernel), space.size)]


def _along_axes(noted: NotedAxisCall, target: str, fp: Fp | None) -> list[ListedLaunch]:
    kernel, row = noted.kernel, target_of(target)
    kind = kernel.kind
    call = host_axis.read(kernel, noted.args, noted.out, noted.along)
    given = host_axis.given_of(kernel, call)
    bound = kind.bind(kernel, given, machine_of(target), None)
    if fp is not None:
        bound = replace(bound, request=replace(bound.request, fp=fp))
    launches = kind.on_device(kernel, bound).launches if row.threads else bound.chain or bound.launches
    arrays = {**given.inputs, **({} if given.mask is None else {MASK: given.mask})}
    arrays |= {param.name: each for param, each in zip(kernel.out_params, given.outputs or (), strict=False)}
    made_between = {
        name: (np.empty(shape, dtype.numpy), dtype) for each in launches for name, shape, dtype in each.made
    }
    arrays |= {name: view_of(array, dtype) for name, (array, dtype) in made_between.items()}
    found = []
    for launch in launches:
        made: Kernel | Program
        if row.shows == "program":
            made = kind.program(kernel.definition, bound.request, launch)
        else:
            made = kind.generate(kernel.definition, bound.request, launch, target, 1)
        extents = launch.threads if row.threads else launch.extents
        known = {AXIS: launch.extent, **bound.sizes}
        held = list(made_between.values())
        outputs, size = _outputs(kernel), prod(extents) if row.threads else launch.positions
        found.append(ListedLaunch(made, launch, extents, bound.raw, known, arrays, call.values, outputs, size, held))
    return found


def _outputs(kernel: KernelSpec) -> frozenset[str]:
    """The parameters that a kernel writes."""
    return frozenset([param.name for param, written in zip(kernel.params, kernel.is_written, strict=True) if written])
