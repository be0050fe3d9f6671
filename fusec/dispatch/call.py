"""A call, read: its arrays as their backend sees them, its numbers, and what else it gives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar, Unpack

from fusec.arguments.layouts import View
from fusec.arguments.operands import Array, is_number
from fusec.arguments.signature import Parameter, Signature
from fusec.base.recent import Recent
from fusec.base.records import dataclass, field
from fusec.compiler.pipeline import Source
from fusec.dispatch.overlap import ArrayArgument
from fusec.dispatch.plan import NewArray, Plan
from fusec.dispatch.spec import MAX_PLANS, PLAIN, Bound, CallOptions, Given, KernelSpec, Kind, SpecOptions, is_one_axis
from fusec.dispatch.waiting import Waiting
from fusec.errors.reductions import WhereNotBool
from fusec.kinds.launch import MASK

Memory = TypeVar("Memory")  # an array as a backend sees it
NO_DEVICE = -1  # the host
WHERE = "where"  # the mask, in messages


@dataclass
class KernelCall(Generic[Memory]):
    """The arguments of one call of a kernel."""

    kernel: KernelSpec
    args: tuple[object, ...]  # as they came: the inputs, then the outputs if they are given
    inputs: dict[str, Memory]  # numbers left out
    values: dict[str, object]  # the numbers
    outputs: tuple[Memory, ...] | None  # as given
    mask: Memory | None  # the array of where=
    options: CallOptions
    stream: int = 0  # a handle
    device: int = NO_DEVICE  # where all arrays are
    is_given: bool = False  # outputs were passed, and not allocated
    bound: Bound | None = None  # the facts of a call on the host, if they are known
    plan: Plan[Any] | None = None  # the plan of a call on the host, if it is known
    viewed: dict[str, tuple[Memory, View]] = field(default_factory=dict)  # arrays as memory, by name

    @property
    def is_on_host(self) -> bool:
        """Whether all arrays are."""
        return self.device == NO_DEVICE

    @property
    def sources(self) -> list[Memory]:
        """All arrays that are read."""
        return [*self.inputs.values()] if self.mask is None else [*self.inputs.values(), self.mask]

    @property
    def like(self) -> object:
        """The first array as it came, whose library new ones have."""
        return next((arg for arg in self.args if not is_number(arg)), self.options.where)

    def arrays(self, outputs: Sequence[Memory] | None) -> dict[str, Memory]:
        """All arrays by their names among those of the kernel."""
        found = dict(self.inputs)
        for param, each in zip(self.kernel.out_params, outputs or (), strict=False):
            found[param.name] = each
        if self.mask is not None:
            found[MASK] = self.mask
        return found

    def key(self, backend: Backend[Memory]) -> object:
        """The key of the plan."""
        arrays = self.sources if self.outputs is None else [*self.sources, *self.outputs]
        marks = tuple(self.inputs), tuple(self.values), self.mask is None, self.outputs is None
        return tuple(map(backend.layout, arrays)), marks, self.options.key, self.device

    def given(self, backend: Backend[Memory]) -> Given:
        """The arguments as memory."""
        kernel = self.kernel
        inputs = {name: self.view(backend, each, name) for name, each in self.inputs.items()}
        outputs = None
        if self.outputs is not None:
            named = zip(kernel.out_params, self.outputs, strict=True)
            outputs = tuple([self.view(backend, each, param.name) for param, each in named])
        mask = None if self.mask is None else self.view(backend, self.mask, WHERE)
        return Given(inputs, frozenset(self.values), outputs, mask, self.options)

    def view(self, backend: Backend[Memory], array: Memory, name: str) -> View:
        """An array of some name as memory, which is asked once."""
        known = self.viewed.get(name)
        if known is None or known[0] is not array:
            known = self.viewed[name] = (array, backend.view(array, name, self.kernel.name))
        return known[1]

    def arguments(self, backend: Backend[Memory]) -> list[ArrayArgument | None]:
        """The array of each parameter as what may overlap others; None for numbers and for outputs to allocate."""
        arrays = self.arrays(self.outputs)
        params = self.kernel.params
        return [backend.argument(arrays[each.name], each, self) if each.name in arrays else None for each in params]


class Backend(Protocol[Memory]):
    """Where arrays are, and what runs kernels there."""

    def stream(self, call: KernelCall[Memory]) -> int:
        """The handle of the stream of a call."""

    def device(self, call: KernelCall[Memory]) -> int:
        """The number of the device where all arrays of a call are, NO_DEVICE for the host."""

    def read(self, argument: object, param: Parameter, call: KernelCall[Memory]) -> Memory:
        """The array of an input. Raises for what is none, and for what must be written but cannot."""

    def output(self, argument: object, param: Parameter, call: KernelCall[Memory]) -> Memory:
        """The array of an output. Raises likewise."""

    def mask(self, where: object, call: KernelCall[Memory]) -> Memory:
        """The array of where=, of whatever dtype."""

    def layout(self, array: Memory) -> object:
        """What plans depend on."""

    def view(self, array: Memory, param: str, kernel: str) -> View:
        """The array as memory. Raises UnsupportedDtype."""

    def argument(self, array: Memory, param: Parameter, call: KernelCall[Memory]) -> ArrayArgument:
        """The array as what may overlap others."""

    def plan(self, kernel: KernelSpec, given: Given, device: int, bound: Bound | None = None) -> Plan[Any]:
        """Bind types, order the walk, compile every launch. bound: what binding gives, if it is known."""

    def allocate(self, call: KernelCall[Memory], new: NewArray) -> tuple[object, Memory]:
        """A new array of the library of the call's arrays, as users see it and as memory. Raises OutputTooLarge."""

    def are_as_planned(self, arrays: Sequence[Memory]) -> bool:
        """Whether new arrays lie as plans suppose."""

    def copied(self, array: Memory, call: KernelCall[Memory]) -> Memory:
        """A copy in the order of the array."""

    def copy(self, source: Memory, target: Memory, call: KernelCall[Memory]) -> None:
        """Copy an array's elements."""

    def content(self, array: Memory, call: KernelCall[Memory]) -> Array:
        """What the array holds, for totals of no elements, which the host computes."""

    def store(self, value: Array, target: Memory, call: KernelCall[Memory]) -> None:
        """Store such totals."""

    def run(self, plan: Plan[Any], call: KernelCall[Memory], outputs: Sequence[Memory]) -> None:
        """Run the kernels of a plan in order."""

    def threads_of_block(self, plan: Plan[Any], call: KernelCall[Memory]) -> int:
        """How many threads a block of the first kernel has; 1 where there are no blocks."""

    def deliver(self, call: KernelCall[Memory], made: Sequence[Any]) -> tuple[object, ...]:
        """New outputs in the library of the call's arrays."""


def read(
    backend: Backend[Memory],
    kernel: KernelSpec,
    args: tuple[object, ...],
    given: tuple[object, ...],
    options: CallOptions,
) -> KernelCall[Memory]:
    """Sort the arguments into arrays and numbers; raises for anything else. given: the outputs, if they are."""
    everything = (*args, *given) if given else args
    call: KernelCall[Memory] = KernelCall(kernel, everything, {}, {}, None, None, _plain(options))
    call.stream = backend.stream(call)
    for param, arg in zip(kernel.in_params, args, strict=False):
        if is_number(arg):
            call.values[param.name] = arg
        else:
            call.inputs[param.name] = backend.read(arg, param, call)
    if given:
        named = zip(kernel.out_params, given, strict=True)
        call.outputs = tuple([backend.output(each, param, call) for param, each in named])
        call.is_given = True
    call.device, where = backend.device(call), options.where
    if where is not True and where is not None:
        call.mask = backend.mask(where, call)
        call.device = backend.device(call)
        found: Any = call.mask
        if found.dtype.name != "bool":
            raise WhereNotBool(kernel.name, str(found.dtype)).at()
    return call


def _plain(options: CallOptions) -> CallOptions:
    """The axes as Python's own integers, and flags as booleans."""
    axis, keepdims, reverse = options.axis, options.keepdims, options.reverse
    if options is PLAIN or (is_one_axis(axis) and type(keepdims) is bool and type(reverse) is bool):
        return options
    from fusec.dispatch.axes import plain_axis

    return options._replace(axis=plain_axis(axis), keepdims=bool(keepdims), reverse=bool(reverse))


class KernelWithPlans(KernelSpec):
    """A kernel with a plan for every kind of call."""

    def __init__(self, definition: Source, signature: Signature, kind: Kind, **options: Unpack[SpecOptions]) -> None:
        super().__init__(definition, signature, kind, **options)
        self.plans: dict[object, Recent[object, Plan[Any]]] = defaultdict(lambda: Recent(MAX_PLANS))  # by backend
        self.waiting: Recent[object, Waiting] = Recent(MAX_PLANS)  # kinds of calls that were interpreted

    def plan(self, backend: Backend[Memory], call: KernelCall[Memory]) -> Plan[Any]:
        """The plan of a call, made and stored at the first call of its kind."""
        key, plans = call.key(backend), self.plans[backend]
        found = plans.get(key)
        again = found is not None
        if found is None:
            waiting = self.waiting.get(key)
            if waiting is not None:
                waiting.wait()
            found = plans.get(key) or plans.keep(
                key, call.plan or backend.plan(self, call.given(backend), call.device, call.bound)
            )
        self.hasten(found, call, again)
        self.remember(found.bound)
        return found

    @property
    def is_waiting(self) -> bool:
        """Whether some of its calls are interpreted, since their kernels are not compiled yet."""
        return not all(each.is_over for each in self.waiting.values())

    def hasten(self, plan: Plan[Any], call: KernelCall[Any], again: bool) -> None:
        """Make later calls of this kind faster; again: an earlier call had this plan."""

    def repeat(self, plan: Plan[Any], call: KernelCall[Any]) -> None:
        """Take the fast path in later calls like this one on a device."""
