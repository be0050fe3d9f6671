"""One kernel of a call; kinds of kernels have launches of classes of their own."""

from __future__ import annotations

from math import prod

from fusec.arguments.layouts import Shape
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Layout
from fusec.base.records import dataclass, field


@dataclass(frozen=True)
class Launch:
    """The code of a kernel, where it runs, and how its operands lie."""

    layout: Layout  # what the code is specialised for
    extents: Shape  # the space of the kernel on a CPU
    # Name, strides in bytes along the walk, and the offset in bytes where it starts.
    operands: tuple[tuple[str, Shape, int], ...]
    arrays: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)  # what operands are called among all launches
    made: tuple[tuple[str, Shape, DType], ...] = field(default=(), kw_only=True)  # arrays for later launches, likewise

    def code(self, threads: bool) -> str:
        """A text that differs for launches with different code. threads: for targets with many threads."""
        return (self.threads_layout if threads else self.layout).key

    @property
    def extent(self) -> int:
        """Elements along the axis."""
        return self.extents[-1]

    @property
    def positions(self) -> int:
        """How many times the kernel's work is done on a CPU."""
        return prod(self.extents)

    @property
    def threads(self) -> Shape:
        """The space of the kernel on targets with many threads."""
        return self.extents

    @property
    def threads_layout(self) -> Layout:
        """What the code is specialised for there."""
        return self.layout
