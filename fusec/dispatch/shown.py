"""What `source` and the command line show of a kernel: its texts for any target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, Self

from fusec.arguments.layouts import Shape
from fusec.arguments.signature import types_named
from fusec.base.records import dataclass, field, replace
from fusec.codegen import DEFAULT_TARGET, TARGETS, target_of
from fusec.compiler import pipeline, texts
from fusec.errors.arguments import UnknownScalar
from fusec.kinds.launch import MANY_THREADS, ONE_THREAD, WAITING, Launch, Machine

if TYPE_CHECKING:
    from fusec.base.kernel_abi import Fp, Kernel
    from fusec.dispatch.spec import Bound, KernelSpec
    from fusec.ir.loops import Program


@dataclass(frozen=True)
class Showing:
    """What source() is asked for: a target, and the call whose kernels are shown."""

    target: str = DEFAULT_TARGET
    types: Mapping[str, object] | None = None  # of placeholders or parameters
    scalars: Sequence[str] = ()  # parameters passed by value
    shape: Shape | None = None  # of contiguous arguments
    axis: object = None
    reverse: bool = False
    shapes: Mapping[str, Shape] = field(default_factory=dict)  # of parameters, where `shape` is not that of all
    numbers: Mapping[str, object] = field(default_factory=dict)  # what functions are given for some of `scalars`

    @property
    def of_last(self) -> bool:
        """Whether the last call is shown, since nothing is said of another one."""
        return self.types is None and self.shape is None and self.axis is None and not (self.scalars or self.shapes)


class ShownKernels(Protocol):
    """The kernels of one call of a kernel."""

    def kernels(self, target: str) -> list[Kernel]:
        """For a target, each with its own name."""

    def text(self, target: str) -> str:
        """The text of all of them."""

    def in_mode(self, fp: Fp | None) -> Self:
        """The same in another floating-point mode; None for its own."""


def canonical(kernel: KernelSpec, asked: Showing) -> Bound:
    """A call of contiguous arrays of a shape; raw ones have one axis.

    A scan for a CPU is one kernel, whatever its threads. Raises TypesIncomplete, UnknownScalar, and what a call raises
    for its axes.
    """
    names = [param.name for param in kernel.in_params]
    for name in asked.scalars:
        if name not in names:
            raise UnknownScalar(kernel.name, name, ", ".join(names)).at()
    types = kernel.signature.bind_names(types_named(asked.types))
    return pipeline.by_value(names, asked.scalars, partial(kernel.kind.canonical, kernel, asked, types))


def machine_of(target: str) -> Machine:
    """What the kernels that are shown for a target keep busy."""
    row = target_of(target)
    return WAITING if row.waits else MANY_THREADS if row.threads else ONE_THREAD


@dataclass(frozen=True)
class CallKernels:
    """The kernels of a call."""

    kernel: KernelSpec
    bound: Bound

    def kernels(self, target: str) -> list[Kernel]:
        """Those of all launches in order, equal ones once, each with its own name."""
        kind, bound, threads = self.kernel.kind, self.bound, target_of(target).threads
        counts: dict[str, int] = {}
        found = []
        for launch in _distinct(bound.launches if threads else bound.chain or bound.launches, threads):
            made = kind.generate(self.kernel.definition, bound.request, launch, target, 1)
            counts[made.name] = counts.get(made.name, 0) + 1
            if (number := counts[made.name]) > 1:
                made = kind.generate(self.kernel.definition, bound.request, launch, target, number)
            found.append(made)
        return found

    def text(self, target: str) -> str:
        """The text of all of them; those for many threads, whatever the call ran on."""
        kernel, bound, threads = self.kernel, self.bound, target_of(target).threads
        if threads:
            bound = kernel.kind.on_device(kernel, bound, machine_of(target))

        def programs() -> list[Program]:
            distinct = _distinct(bound.launches, threads)
            return [kernel.kind.program(kernel.definition, bound.request, each) for each in distinct]

        return texts.joined(target, lambda: CallKernels(kernel, bound).kernels(target), programs)

    def in_mode(self, fp: Fp | None) -> CallKernels:
        """The same in another floating-point mode; None for its own."""
        if fp is None:
            return self
        return replace(self, bound=replace(self.bound, request=replace(self.bound.request, fp=fp)))


def _distinct(launches: Sequence[Launch], threads: bool) -> list[Launch]:
    """Launches with different code, in order. threads: code for targets with many threads."""
    found: dict[str, Launch] = {}
    for launch in launches:
        found.setdefault(launch.code(threads), launch)
    return list(found.values())


@dataclass(frozen=True)
class Several:
    """The kernels of several calls, one after another."""

    parts: tuple[ShownKernels, ...]

    def kernels(self, target: str) -> list[Kernel]:
        """All of them, in order."""
        return [kernel for each in self.parts for kernel in each.kernels(target)]

    def text(self, target: str) -> str:
        """One file if the target joins kernels and their names differ, else one text after another."""
        if len(self.parts) == 1:
            return self.parts[0].text(target)
        if target_of(target).joins:
            kernels = self.kernels(target)
            if len({kernel.name for kernel in kernels}) == len(kernels):
                return texts.one_file(kernels)
        texts_of, mark = [each.text(target) for each in self.parts], TARGETS[target].comment
        return "\n".join(f"{mark} part {at} of {len(texts_of)}\n{text}" for at, text in enumerate(texts_of, 1))

    def in_mode(self, fp: Fp | None) -> Several:
        """The same in another floating-point mode; None for its own."""
        return Several(tuple(each.in_mode(fp) for each in self.parts))
