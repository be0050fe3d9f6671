"""One kernel of a call, what its code is specialised for, and the machine that it keeps busy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import prod

from fusec.arguments.layouts import Shape
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Fp, Layout
from fusec.base.records import dataclass, field, replace
from fusec.kinds.rows import MOST_BLOCKS


@dataclass(frozen=True)
class Launch:
    """The code of a kernel, where it runs, and how its operands lie. Some kinds have a class of their own."""

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
    def known(self) -> Mapping[str, int]:
        """The numbers that its code may ask for."""
        return {}

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


MASK = "_where"  # the input that says which elements take part


@dataclass(frozen=True)
class Request:
    """What the code of a call is specialised for, apart from the launch."""

    types: tuple[tuple[str, DType], ...]  # of parameters
    scalars: frozenset[str]  # inputs passed by value
    fp: Fp
    # Of kernels along axes:
    ndim: int = 1  # axes of the walk as the texts see it
    reduced: tuple[int, ...] = (0,)  # the axes that are reduced
    ndims: tuple[tuple[str, int], ...] = ()  # axes of raw arrays
    masked: bool = False  # some elements may be left out

    @cached_property
    def key(self) -> str:
        """A text that differs for different requests."""
        types = ",".join(f"{name}:{dtype}" for name, dtype in self.types)
        rest = (self.ndim, self.reduced, self.ndims, self.masked, self.fp)
        return f"{types};{','.join(sorted(self.scalars))};{rest}"


@dataclass(frozen=True)
class Machine:
    """The size from which one kernel keeps a machine busy.

    groups: that scan rows of their own. columns: positions that scan columns of their own. least: elements in all from
    which more than one kernel pays. chain: blocks from which a row is a chain, 0 where there are none. twice: whether
    to do what is expensive twice, on all threads, takes less time than once on one. vectors: threads load several
    elements at once where these lie at the right addresses. waits: blocks may wait for those that have started before.
    handed: columns of a scan from which their chunks take longer to read than totals to go from one chunk to the next.
    row_blocks: that together hold rows of several chunks between walks, 0 if none does.
    """

    groups: int
    columns: int
    least: int
    chain: int = 0
    twice: bool = True
    vectors: bool = False
    waits: bool = False
    handed: int = 1
    row_blocks: int = 0


MANY_THREADS = Machine(groups=4096, columns=1 << 16, least=1 << 13, vectors=True, row_blocks=1)
"""Some groups for each of the schedulers of a large GPU; less than `least` elements are one launch."""


WAITING = replace(MANY_THREADS, waits=True, handed=1 << 11)
"""The same where blocks that have started go on until they end. A few chunks of so many columns take a microsecond."""


CLUSTERS = replace(WAITING, row_blocks=MOST_BLOCKS)
"""The same where clusters of blocks see each other's shared memory."""


ONE_THREAD = Machine(1, 1, 1)
"""One kernel whatever comes, so the shortest texts."""
