"""The launches of a call that is only noted: kernels, arguments, and the arrays that they leave to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.arguments.layouts import Shape, View
from fusec.arguments.operands import view_of
from fusec.base.diagnostics import counted
from fusec.base.kernel_abi import Fp, Kernel
from fusec.base.records import dataclass, field, replace
from fusec.codegen import target_of
from fusec.dispatch.engine import needs_staging, protect, read_call
from fusec.dispatch.notes import NotedCall, Notes
from fusec.dispatch.planned import Planned
from fusec.dispatch.shown import machine_of
from fusec.dispatch.spec import PLAIN, CallOptions
from fusec.kinds.launch import MASK, Launch

if TYPE_CHECKING:
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
    order: list[NotedCall | NotedLibraryCall] = field(default_factory=list)
    moved: dict[int, Any] = field(default_factory=dict)  # what stands for arrays on a device, by their identity
    shared: list[list[NotedCall | NotedLibraryCall]] = field(default_factory=list)  # calls of one launch each
    following: list[NotedCall | NotedLibraryCall] = field(default_factory=list)  # calls that need no launch likewise
    planned: list[NotedCall | NotedLibraryCall] = field(default_factory=list)  # of plans, whose ends need no launch

    def call(self, kernel: Planned, args: tuple[object, ...], out: object, options: CallOptions) -> tuple[object, ...]:
        """Note a call of a kernel; outputs without meaning, in the memory order of those of a call."""
        backend, call = read_call(kernel, args, out, options)
        inputs, before = list(map(self.known, args[: kernel.nin])), dict(call.inputs)
        if call.is_given or kernel.writes_inputs:
            protect(backend, call)
        for at, param in enumerate(kernel.in_params):
            if param.name in before and call.inputs[param.name] is not before[param.name]:
                (inputs[at],) = self.call(Planned.copier(), (args[at],), None, PLAIN)  # an output overlaps it
        noted = NotedCall(kernel, args, out, options)
        outputs = noted.outputs()
        if call.is_given and needs_staging(backend, call):
            for each, given in zip(self.call(kernel, tuple(inputs), None, options), outputs, strict=True):
                self.call(Planned.copier(), (each, given), None, PLAIN)
            return outputs
        self._add(replace(noted, args=tuple(inputs), out=outputs))
        return outputs if call.is_given else tuple(map(self.fresh, outputs))

    def library_call(self, name: str, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """Note a call of a library; results are what later calls read."""
        self.order.append(NotedLibraryCall(name, tuple(map(self.known, operands)), tuple(map(self.fresh, results))))

    def share(self, calls: Sequence[NotedCall | NotedLibraryCall], is_first: bool) -> None:
        """Calls are the next kernel of a launch; of one that first copies an input they are several."""
        if is_first:
            self.shared.append([])
        if len(calls) == 1:
            self.shared[-1] += calls

    def _add(self, call: NotedCall) -> None:
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
    size: int  # threads, or their blocks if the kernel has blocks of its own; on the host positions
    between: Sequence[object] = ()  # keeps the memory of some of the arrays

    @property
    def title(self) -> str:
        """What the kernel is called."""
        return title_of(self.kernel)

    @property
    def count(self) -> str:
        """How many positions, threads or blocks the launch has."""
        kernel = self.kernel
        if not isinstance(kernel, Kernel) or not target_of(kernel.target).threads:
            return f"{self.size:,}"
        if kernel.block:
            return f"{counted(self.size, 'block')} of {kernel.block} threads"
        if kernel.lanes > 1:
            return f"{counted(self.size, 'element')}, {kernel.lanes} a thread"
        return counted(self.size, "thread")


@dataclass(eq=False)
class ListedTogether:
    """One launch of several kernels."""

    kernel: Kernel
    parts: Sequence[ListedLaunch]  # in the order in which the kernel takes their arguments
    has_end: bool = False  # the second of two follows when all blocks of the first are done

    @property
    def title(self) -> str:
        """What the kernel is called."""
        return self.kernel.title

    @property
    def count(self) -> str:
        """How many threads or blocks the launch has; of several parts, how many parts."""
        return self.parts[0].count if self.has_end else f"{len(self.parts)} parts of the grid"


def title_of(kernel: Kernel | Program) -> str:
    """What a kernel or a program is called."""
    return kernel.title if isinstance(kernel, Kernel) else kernel.name


Listed = ListedLaunch | ListedTogether | NotedLibraryCall


def launches_of(noted: NotedCall, target: str, fp: Fp | None) -> list[ListedLaunch]:
    """The launches of a noted call, whose outputs are given."""
    kernel, row = noted.kernel, target_of(target)
    kind = kernel.kind
    backend, call = read_call(kernel, noted.args, noted.out, noted.options)
    given = call.given(backend)
    bound = kind.bind(kernel, given, machine_of(target), None)
    if fp is not None:
        bound = replace(bound, request=replace(bound.request, fp=fp))
    launches = (
        kind.on_device(kernel, bound, machine_of(target)).launches if row.threads else bound.chain or bound.launches
    )
    arrays = {**given.inputs, **({} if given.mask is None else {MASK: given.mask})}
    arrays |= {param.name: each for param, each in zip(kernel.out_params, given.outputs or (), strict=False)}
    made_between = {
        name: (np.empty(shape, dtype.numpy), dtype) for each in launches for name, shape, dtype in each.made
    }
    arrays |= {name: view_of(array, dtype) for name, (array, dtype) in made_between.items()}
    found = []
    for launch in launches:
        if not launch.positions:
            continue
        made: Kernel | Program
        if row.shows == "program":
            made = kind.program(kernel.definition, bound.request, launch)
        else:
            made = kind.generate(kernel.definition, bound.request, launch, target, 1)
        extents = launch.threads if row.threads else launch.extents
        held, known = list(made_between.values()), {**launch.known, **bound.sizes}
        outputs, size = _outputs(kernel), prod(extents) if row.threads else launch.positions
        found.append(ListedLaunch(made, launch, extents, bound.raw, known, arrays, call.values, outputs, size, held))
    return found


def _outputs(kernel: KernelSpec) -> frozenset[str]:
    """The parameters that a kernel writes."""
    return frozenset([param.name for param, written in zip(kernel.params, kernel.is_written, strict=True) if written])
