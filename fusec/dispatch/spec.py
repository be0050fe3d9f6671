"""What a kernel is, what its kind does at each step of a call, and the facts of a call: data that every step reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack

from fusec.arguments.layouts import Shape, View
from fusec.arguments.operands import Array
from fusec.arguments.signature import Parameter, Signature, Takes
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Fp, Kernel
from fusec.base.kernel_abi import Step as Stride
from fusec.base.recent import Recent
from fusec.base.records import dataclass
from fusec.compiler.pipeline import Known, Source
from fusec.kinds.launch import ONE_THREAD, Launch, Machine, Request

if TYPE_CHECKING:
    from fusec.ir.loops import Program
    from fusec.kinds.rows import Level
    from fusec.kinds.scan import Walk

MAX_PLANS = 256  # combinations of shapes and strides remembered by one kernel
STRIDES = {Stride.ZERO: "repeated", Stride.UNIT: "contiguous", Stride.ANY: "strided"}  # as reports call them

Axis = object  # None, an integer, or a sequence of integers
Lines = list[tuple[str, str]]
"""A part of a report: topics and what they say."""


# --- calls ---------------------------------------------------------------------------------------------------------


class CallOptions(NamedTuple):
    """What a call gives besides its arrays and numbers; kinds of kernels look at their own."""

    axis: Axis = None
    keepdims: bool = False
    where: object = True  # a bool array of the elements that take part, or True
    reverse: bool = False
    size: int | Shape = -1  # elements, or the shape of the space; -1 where the arrays say it
    stream: object = None  # for arrays on a device
    block_size: int | None = None  # likewise

    @property
    def key(self) -> tuple[object, ...]:
        """The part of a plan's key that depends on them. True is no axis, but equals 1."""
        axis = tuple(self.axis) if isinstance(self.axis, list) else self.axis
        return type(axis), axis, self.keepdims, self.reverse, self.size


PLAIN = CallOptions()


class Given(NamedTuple):
    """The arguments of a call as memory."""

    inputs: Mapping[str, View]  # numbers left out
    numbers: frozenset[str]  # the names of those
    outputs: tuple[View, ...] | None  # None to allocate them
    mask: View | None  # the array of where=
    options: CallOptions

    def types(self, kernel: KernelSpec) -> dict[str, DType]:
        """The dtypes of all parameters. Raises what the signature raises."""
        dtypes = [self.inputs[param.name].dtype if param.name in self.inputs else None for param in kernel.in_params]
        outputs = [None] * kernel.nout if self.outputs is None else [each.dtype for each in self.outputs]
        return kernel.signature.bind([*dtypes, *outputs])


@dataclass(frozen=True)
class Bound:
    """The facts about a call that are known before anything is compiled."""

    types: Mapping[str, DType]  # of all parameters
    shape: Shape  # of the walk
    shapes: tuple[Shape, ...]  # of the outputs
    launches: tuple[Launch, ...]  # in order; none if nothing is to be run
    raw: Mapping[str, View]  # the arrays that the texts address
    request: Request
    read: frozenset[str] = frozenset()  # outputs that are read, so that those to allocate start as zeros
    orders: Mapping[str, Shape] = {}  # axes of outputs to allocate from outermost to innermost, where not in C order
    views: Mapping[str, View] = {}  # of element-wise kernels: all arrays, outputs to allocate at address 0
    # Of kernels along axes:
    kept: Shape = ()  # of totals, without axes kept for their place
    count: int = 0  # elements of one total
    sizes: Mapping[str, int] = {}  # the numbers that kernels may ask for: elements of a total, and totals
    is_empty: bool = False  # totals have no elements
    walk: Walk | None = None  # of a scan, over all elements; None if there are none
    chain: tuple[Launch, ...] = ()  # of a scan: what a CPU runs block by block in place of the launches


# --- kinds ---------------------------------------------------------------------------------------------------------


def _no_check(*_: object) -> None:
    """Checked kernels of most kinds look at indices as they run."""


@dataclass(frozen=True)
class Kind:
    """A row: the work of a kind of kernel at each step of a call. Its launches may have a class of their own."""

    name: str
    along_axes: bool  # calls take axes and masks, and there is a fast path for each choice of axes
    keeps_shape: bool  # results have the shape of the arguments, and their container
    # If an output lies where inputs do: what is copied or stored elsewhere first.
    overlap: Literal["copy inputs", "stage outputs"]
    bind: Callable[[KernelSpec, Given, Machine, Mapping[str, DType] | None], Bound]
    # Definition, request, launch, target, number of the kernel among those of its name in one file.
    generate: Callable[[Any, Request, Any, str, int], Kernel]
    program: Callable[[Any, Request, Any], Program]  # definition, request, launch: the IR for many threads
    interpret: Callable[[KernelSpec, Bound, dict[str, Array], Mapping[str, object]], None]  # arrays, numbers by name
    describe: Callable[[KernelSpec, Bound, Sequence[Kernel]], tuple[int, Lines]]  # bytes moved, and what kernels do
    # Kernel, what is asked for, types, parameters passed by value: the call that source() shows.
    canonical: Callable[[Any, Any, Mapping[str, DType], tuple[str, ...]], Bound]
    effort: Callable[[KernelSpec, Bound], float] = lambda *_: inf  # seconds of that; infinite: it is compiled instead
    check: Callable[..., None] = _no_check  # looks at the indices of a call before it runs
    # Elements that a position stands for, and positions that one of so many threads takes side by side; None if the
    # kernel itself knows how many rows belong together.
    grain: Callable[[Any, int], tuple[int, int]] | None = lambda *_: (1, 1)
    machine: Callable[[int], Machine] = lambda _: ONE_THREAD  # what keeps so many threads busy
    fitted: Callable[[KernelSpec, Bound], Bound] = lambda _, bound: bound  # the launches as a CPU compiles them
    on_device: Callable[[KernelSpec, Bound, Machine], Bound] = lambda _, bound, __: bound  # launches for many threads


FP: dict[Fp, str] = {
    "strict": "strict: every operation rounds once",
    "contract": "contract: a product and a sum are one fma",
    "fast": "fast: approximate, and a product and a sum are one fma",
}


def fp_line(kernel: KernelSpec) -> tuple[str, str]:
    """The line of a report about the floating-point mode."""
    return "fp", FP[kernel.fp]


# --- kernels -------------------------------------------------------------------------------------------------------


class SpecOptions(TypedDict, total=False):
    """What constructors of kernels hand on."""

    fp: Fp  # "strict" without
    uses_index: bool  # the definition may ask for positions
    updated: frozenset[str]  # raw arrays that it may update atomically
    # Of element-wise kernels:
    reduce_dims: bool  # axes are merged that all operands walk evenly, unless False
    no_return: bool  # calls return None
    return_tuple: bool  # calls return a tuple even of one output
    # Of kernels along axes:
    elements: frozenset[str]  # outputs that have the shape of the arguments, not of the totals
    in_place: frozenset[tuple[str, str]]  # outputs and inputs that may be the same memory
    once: frozenset[str]  # inputs with one element for each total
    levels: Callable[[], tuple[Level, ...]]  # of reductions whose rows are walked several times; none if not known


class KernelSpec:
    """A definition, a signature and a kind, and how calls treat the arguments."""

    takes_outputs = True  # calls may give the outputs after the inputs
    names_output = False  # they may give the only one as out=
    follows_raw = False  # raw arrays have the shape of the iteration space
    checks = ""  # what calls look for, see `fusec.dispatch.checked`

    def __init__(self, definition: Source, signature: Signature, kind: Kind, **options: Unpack[SpecOptions]) -> None:
        self.definition, self.signature, self.kind = definition, signature, kind
        self.name = signature.name
        self.in_params, self.out_params, self.params = signature.inputs, signature.outputs, signature.params
        self.nin, self.nout, self.nargs = len(self.in_params), len(self.out_params), len(self.params)
        self.writes_inputs = any(param.non_const for param in self.in_params)
        self.fp: Fp = options.get("fp", "strict")
        self.uses_index = options.get("uses_index", False)
        self.updated = options.get("updated", frozenset())
        self.reduce_dims = options.get("reduce_dims", True)
        self.no_return, self.return_tuple = options.get("no_return", False), options.get("return_tuple", False)
        self.elements, self.in_place = options.get("elements", frozenset()), options.get("in_place", frozenset())
        self.once, self.levels = options.get("once", frozenset()), options.get("levels", tuple)
        self.executables: Known = Recent(MAX_PLANS)
        self.alike: Recent[object, Any] = Recent(MAX_PLANS)  # what makes the facts of calls of other extents
        self.alike_on_host: Recent[object, Any] = Recent(MAX_PLANS)  # the same on the host, with plans
        self.last: Bound | None = None  # what was called last, which source() shows without types

    @property
    def is_written(self) -> list[bool]:
        """Whether the kernel writes the array of each parameter."""
        return [param.non_const or position >= self.nin for position, param in enumerate(self.params)]

    @property
    def returns(self) -> Literal["outputs", "tuple", "nothing"]:
        """What calls return: several outputs as a tuple, always a tuple, or None."""
        if self.no_return:
            return "nothing"
        return "tuple" if self.return_tuple else "outputs"

    def remember(self, bound: Bound) -> None:
        """Record the last call: source() without types shows it."""
        self.last = bound

    def converts(self, name: str, types: Mapping[str, DType]) -> bool:
        """True if the parameter takes any number that converts, False if the type of the number counts."""
        del name, types
        return True

    def takes(self, param: Parameter) -> Takes:
        """Whose numbers a call like this one may have for a parameter."""
        del param
        return "any"

    def deciding(self, numbers: Mapping[str, object]) -> Mapping[str, object]:
        """The numbers of a call that determine its number of elements."""
        del numbers
        return {}

    def binds_outputs(self, types: Mapping[str, DType], numbers: frozenset[str]) -> bool:
        """True if input arrays alone fix the dtypes of all outputs; types: of a call; numbers: passed by value."""
        del types
        fixed = {param.type_name for param in self.in_params if param.name not in numbers}
        return all(param.dtype is not None or param.type_name in fixed for param in self.out_params)


def is_one_axis(axis: Axis) -> bool:
    """Whether calls with this axis may have fast paths, which go by it."""
    return type(axis) in (int, NoneType)
