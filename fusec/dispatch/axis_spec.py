"""The definition of a reduction or a scan, and of its calls: data that every step of a call reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from fusec.arguments.layouts import Shape, View
from fusec.arguments.operands import Array
from fusec.arguments.signature import Signature
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Kernel
from fusec.base.kernel_abi import Step as Stride
from fusec.base.recent import Recent
from fusec.base.records import dataclass
from fusec.compiler.pipeline import Source
from fusec.dispatch.planned import Planned
from fusec.dispatch.spec import MAX_PLANS, KernelSpec, SpecOptions
from fusec.kinds.launch import Launch
from fusec.kinds.reduction import Request
from fusec.kinds.scan import MANY_THREADS, Machine, Walk

if TYPE_CHECKING:
    from fusec.ir.loops import Program

STRIDES = {Stride.ZERO: "repeated", Stride.UNIT: "contiguous", Stride.ANY: "strided"}  # as reports call them

Axis = object  # None, an integer, or a sequence of integers


@dataclass(frozen=True)
class Along:
    """The axes of a call, and how it treats them."""

    axis: Axis = None
    keepdims: bool = False
    where: object = True  # a bool array of the elements that take part, or True
    reverse: bool = False


@dataclass(frozen=True)
class Given:
    """The arguments of a call as memory."""

    inputs: Mapping[str, View]  # numbers left out
    numbers: frozenset[str]  # the names of those
    outputs: tuple[View, ...] | None  # None to allocate them
    mask: View | None  # the array of where=
    along: Along


@dataclass(frozen=True)
class Bound:
    """The facts about a call that are known before anything is compiled."""

    types: Mapping[str, DType]  # of all parameters
    shape: Shape  # of the walk
    shapes: tuple[Shape, ...]  # of the outputs
    launches: tuple[Launch, ...]  # in order; none if nothing is to be run
    raw: Mapping[str, View]  # the arrays that the texts address
    request: Request
    read: frozenset[str]  # outputs that are read, so that those to allocate start as zeros
    kept: Shape = ()  # of totals, without axes kept for their place
    count: int = 0  # elements of one total
    sizes: Mapping[str, int] = {}  # the numbers that kernels may ask for: elements of a total, and totals
    is_empty: bool = False  # totals have no elements
    walk: Walk | None = None  # of a scan, over all elements; None if there are none
    chain: tuple[Launch, ...] = ()  # of a scan: what a CPU runs block by block in place of the launches


Lines = list[tuple[str, str]]
"""A part of a report: topics and what they say."""


@dataclass(frozen=True)
class AxisKind:
    """A row: the work of a kind of kernel along axes at each step of a call. Its launches have a class of their own."""

    name: str
    keeps_shape: bool  # results have the shape of the arguments, and their container; a call may go backwards
    bind: Callable[[AxisSpec, Given, Machine, Mapping[str, DType] | None], Bound]
    # Definition, request, launch, target, number of the kernel among those of its name in one file.
    generate: Callable[[Any, Request, Any, str, int], Kernel]
    program: Callable[[Any, Request, Any], Program]  # definition, request, launch: the IR for many threads
    interpret: Callable[[AxisSpec, Bound, dict[str, Array], Mapping[str, object]], None]  # arrays and numbers by name
    describe: Callable[[Bound, Sequence[Kernel]], tuple[int, Lines]]  # bytes moved, and what the kernels do
    # Elements that a position stands for, and positions that one of so many threads takes side by side.
    grain: Callable[[Any, int], tuple[int, int]] = lambda *_: (1, 1)
    machine: Callable[[int], Machine] = lambda _: MANY_THREADS  # what keeps so many threads busy
    fitted: Callable[[AxisSpec, Bound], Bound] = lambda _, bound: bound  # the launches as a CPU compiles them
    on_device: Callable[[AxisSpec, Bound], Bound] = lambda _, bound: bound  # the launches for many threads


class AxisSpec(KernelSpec):
    """A definition and a signature of a kind of kernel that runs along axes."""

    last: Bound | None

    def __init__(
        self, definition: Source, signature: Signature, kind: AxisKind, **options: Unpack[SpecOptions]
    ) -> None:
        super().__init__(definition, signature, **options)
        self.kind = kind
        self.checkers: Recent[object, Planned | None] = Recent(MAX_PLANS)  # what looks at indices, by request
