"""What `source` and the command line show of a kernel: its texts for any target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, Self

from fusec.arguments.layouts import Shape
from fusec.base.records import dataclass, field, replace
from fusec.codegen import DEFAULT_TARGET, TARGETS, target_of
from fusec.compiler import pipeline, texts
from fusec.compiler.pipeline import Source, Specialisation

if TYPE_CHECKING:
    from fusec.base.kernel_abi import Fp, Kernel


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


@dataclass(frozen=True)
class Elements:
    """An element-wise kernel for certain types and memory."""

    definition: Source
    spec: Specialisation

    def kernels(self, target: str) -> list[Kernel]:
        """The one that it is."""
        return [pipeline.generate(self.definition, self.spec, target)]

    def text(self, target: str) -> str:
        """Its text."""
        return pipeline.text_of(self.definition, self.spec, target)

    def in_mode(self, fp: Fp | None) -> Elements:
        """The same in another floating-point mode; None for its own."""
        return self if fp is None else replace(self, spec=replace(self.spec, fp=fp))


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
