"""A call of a reduction with arrays on a CUDA device: the phases one after the other on one stream, nothing waits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fusec.arguments import layouts
from fusec.arguments.layouts import View
from fusec.arguments.operands import is_number, may_overlap, outputs_of
from fusec.arguments.signature import Parameter
from fusec.base import locks
from fusec.base.records import dataclass, replace
from fusec.base.rounding_mode import usual
from fusec.codegen import ON_DEVICE
from fusec.compiler import disk_cache, pipeline
from fusec.compiler import reduction_pipeline as stages
from fusec.compiler.reduction_pipeline import MASK, Source
from fusec.dispatch import bind, fast_path_device_reduction
from fusec.dispatch import device as device_calls
from fusec.dispatch.bind import Axis, Bound, Given, plain_axis
from fusec.dispatch.device_steps import Step, Steps, room_of, view_of
from fusec.dispatch.host_reduction import empty_totals
from fusec.dispatch.planned import Planned
from fusec.environment import debug
from fusec.errors.arguments import OutputIsNotAnArray, OutputOverlapsItself, OutputsOverlap
from fusec.errors.reductions import WhereNotBool
from fusec.ir.reductions import AXIS
from fusec.kinds.reduction import Phase, Request, arrange
from fusec.runtime import cuda

if TYPE_CHECKING:
    from fusec.dispatch.planned_reduction import Reducing
    from fusec.runtime.cuda import CompiledModule, DeviceArray

MODULES = 512  # compiled kernels kept in memory


@dataclass(frozen=True)
class Plan:
    """A compiled reduction for one combination of dtypes, shapes, strides, axes and device."""

    bound: Bound
    steps: Steps


@dataclass
class Call:
    """The arguments of one call.

    inputs: by name, numbers left out. values: the numbers. outputs: as given, or None. mask: the array of where=.
    stream: a handle. device: where all arrays are.
    """

    inputs: dict[str, DeviceArray]
    values: dict[str, object]
    outputs: list[DeviceArray] | None
    mask: DeviceArray | None
    axis: Axis
    keepdims: bool
    stream: int
    device: int

    @property
    def sources(self) -> list[DeviceArray]:
        """All arrays that are read."""
        return [*self.inputs.values(), *([] if self.mask is None else [self.mask])]

    @property
    def key(self) -> object:
        """What the plan depends on."""
        described = [
            (each.dtype, each.shape, each.strides, each.pointer % cuda.VECTOR_BYTES)
            for each in (*self.sources, *(self.outputs or ()))
        ]
        marks = (tuple(self.inputs), self.mask is None, self.outputs is None, tuple(self.values), self.keepdims)
        axis = tuple(self.axis) if isinstance(self.axis, list) else self.axis
        return (tuple(described), marks, axis, self.device)


def run(
    kernel: Reducing,
    args: tuple[object, ...],
    out: object,
    axis: Axis,
    keepdims: bool,
    where: object,
    stream: object,
) -> tuple[object, ...]:
    """Enqueue a reduction on a stream of the arrays' device and return all outputs; does not wait.

    Raises what `fusec.dispatch.host_reduction.run` raises, and the errors of `fusec.errors.targets`.
    """
    given = args[kernel.nin :] if out is None else outputs_of(out)
    call = read(kernel, args, given, axis, keepdims, where, stream)
    like = next(arg for arg in (*args, *given, where) if cuda.is_device_array(arg))
    if call.outputs is not None and _disturbed(call):
        made = [_new(like, each.shape, each, call) for each in call.outputs]
        aside = replace(call, outputs=[cuda.describe(each, call.stream) for each in made])
        if kernel.device_plan(aside).bound.read:
            for source, target in zip(given, made, strict=True):
                device_calls.run(Planned.copier(), (source, target), -1, call.stream, None)
        _reduce(kernel, aside, like)
        for source, target in zip(made, given, strict=True):
            device_calls.run(Planned.copier(), (source, target), -1, call.stream, None)
        return given
    outputs = _reduce(kernel, call, like)
    plan = kernel.device_plan(call)
    reads = bool(plan.bound.read)  # then outputs start as zeros, which the short way leaves out
    if not reads and call.mask is None and stream is None and cuda.source_of(like) is not None:
        choice = (call.axis, call.keepdims, bool(given))
        pairs = zip(plan.bound.shapes, kernel.out_params, strict=True)
        typed = [(shape, plan.bound.types[param.name]) for shape, param in pairs]
        note = partial(setattr, kernel, "last", plan.bound)
        kind = fast_path_device_reduction.Kind(choice, typed, plan.steps, note, kernel.following(*choice))
        fast_path_device_reduction.remember(kernel, (*args[: kernel.nin], *given), call, kind)
    return given or tuple(cuda.deliver(like, each) for each in outputs)


def _reduce(kernel: Reducing, call: Call, like: object) -> list[object]:
    """Run the plan of a call; the outputs, new ones if there are none."""
    plan = kernel.device_plan(call)
    bound, made, outputs = plan.bound, list[object](), call.outputs
    if outputs is None:
        typed = zip(kernel.out_params, bound.shapes, strict=True)
        made = [
            cuda.allocate(like, shape, bound.types[param.name], device=call.device, stream=call.stream)
            for param, shape in typed
        ]
        outputs = [cuda.describe(each, call.stream) for each in made]
        for param, each in zip(kernel.out_params, outputs, strict=True):
            if param.name in bound.read:
                nbytes = prod(each.shape) * each.dtype.nbytes
                cuda.fill_with_zeros(each.pointer, nbytes, call.device, call.stream)
    if bound.is_empty:
        _store_empty(kernel, bound, outputs, call)
    else:
        launch(kernel, plan.steps, call, outputs)
    return made


def launch(kernel: Reducing, steps: Steps, call: Call, outputs: Sequence[DeviceArray]) -> None:
    """Enqueue the kernels of a call in order with whatever else uses its arrays."""
    if not steps.order:
        return
    cuda.acquire([*call.sources, *outputs], call.stream, call.device)
    addresses = {name: each.pointer for name, each in call.inputs.items()}
    addresses |= {param.name: each.pointer for param, each in zip(kernel.out_params, outputs, strict=True)}
    if call.mask is not None:
        addresses[MASK] = call.mask.pointer
    steps.run(addresses, call.values, kernel.name, call.device, call.stream)
    cuda.release(outputs, call.stream, call.device)


def _new(like: object, shape: tuple[int, ...], of: DeviceArray, call: Call) -> object:
    return cuda.allocate(like, shape, of.dtype, device=call.device, stream=call.stream)


# --- reading -------------------------------------------------------------------------------------------------------


def read(
    kernel: Reducing,
    args: tuple[object, ...],
    given: tuple[object, ...],
    axis: Axis,
    keepdims: bool,
    where: object,
    stream: object,
) -> Call:
    """Sort the arguments into device arrays and numbers; raises for anything else."""
    handle = cuda.stream_for((*args, *given, where), stream)
    inputs: dict[str, DeviceArray] = {}
    values: dict[str, object] = {}
    for param, arg in zip(kernel.in_params, args, strict=False):
        if is_number(arg):
            values[param.name] = arg
        else:
            inputs[param.name] = cuda.describe(arg, handle)
    outputs = [_output(kernel, *pair, handle) for pair in zip(kernel.out_params, given, strict=False)]
    _check_outputs(kernel, [view_of(each) for each in outputs])
    call = Call(inputs, values, outputs or None, None, plain_axis(axis), bool(keepdims), handle, 0)
    call.device = cuda.same_device([*call.sources, *outputs])
    if where is not True and where is not None:
        if isinstance(where, (bool, np.bool_, list)):
            where = cuda.from_numpy(np.asarray(where), call.device, handle)
        call.mask = cuda.describe(where, handle)
        call.device = cuda.same_device([*call.sources, *outputs])
        if call.mask.dtype.name != "bool":
            raise WhereNotBool(kernel.name, str(call.mask.dtype)).at()
    return call


def _output(kernel: Reducing, param: Parameter, given: object, stream: int) -> DeviceArray:
    if given is None or is_number(given):
        raise OutputIsNotAnArray(kernel.name, param.name, repr(given)).at()
    found = cuda.describe(given, stream)
    cuda.check_writable(found)
    return found


def _check_outputs(kernel: Reducing, views: Sequence[View]) -> None:
    """No output may share memory with itself or with another."""
    for at, (param, view) in enumerate(zip(kernel.out_params, views, strict=False)):
        if layouts.has_internal_overlap(view):
            raise OutputOverlapsItself(kernel.name, param.name).at()
        for other in range(at):
            if may_overlap(view, views[other]):
                raise OutputsOverlap(kernel.name, kernel.out_params[other].name, param.name).at()


def _disturbed(call: Call) -> bool:
    """Whether an output lies where inputs are read: totals are then stored elsewhere first."""
    return any(may_overlap(view_of(output), view_of(each)) for output in call.outputs or () for each in call.sources)


# --- plans ---------------------------------------------------------------------------------------------------------


def make_plan(kernel: Reducing, call: Call) -> Plan:
    """Bind types, order the walk, compile every phase."""
    given = Given(
        inputs={name: view_of(each) for name, each in call.inputs.items()},
        numbers=frozenset(call.values),
        outputs=None if call.outputs is None else tuple(map(view_of, call.outputs)),
        mask=None if call.mask is None else view_of(call.mask),
        axis=call.axis,
        keepdims=call.keepdims,
    )
    bound = bind.bind(kernel, given)
    steps: list[Step] = []
    nbytes, before = 0, list[tuple[str, int]]()
    for phase in bound.phases:
        between, before = before, []
        for stored, name, dtype in bound.partials if phase.role in ("first", "next") else ():
            between = [*between, (stored, nbytes)]
            before.append((name, nbytes))
            nbytes += room_of(phase.space, dtype)
        steps.append(_step(kernel, bound, phase, call.device, between))
    return Plan(bound, Steps(tuple(steps), nbytes))


def _step(kernel: Reducing, bound: Bound, phase: Phase, device: int, between: Sequence[tuple[str, int]]) -> Step:
    arch = cuda.device(device).arch
    with locks.lock, usual():  # one thread compiles, the others wait
        module = _module(kernel.definition, bound.request, phase.kind, arch)
    known = {AXIS: phase.extents[phase.axis], **bound.sizes}
    arguments = arrange(module.kernel, phase, phase.threads, bound.raw, known)
    threads = prod(phase.threads)
    return Step(module, arguments, cuda.Launcher(module, threads, device), threads, tuple(between))


@lru_cache(maxsize=MODULES)
def _module(definition: Source, request: Request, phase: Phase, arch: str) -> CompiledModule:
    """The compiled kernel of phases of one kind."""
    store = disk_cache.default_cache()
    key = pipeline.digest(
        "reduction on cuda", definition.texts, request.key, phase.role, phase.axis, phase.layout.key, arch,
        cuda.bindings_version(),
    )  # fmt: skip
    packed = None if store is None or debug.is_wanted(3) else store.get("kernel", key)
    loaded = None if packed is None else disk_cache.unpack_kernel(packed)
    if loaded is not None:
        return cuda.CompiledModule.unpacked(*loaded)
    module = cuda.compile(stages.generate(definition, request, phase, ON_DEVICE), arch)
    if store is not None:
        store.put(
            "kernel", key, disk_cache.pack_kernel(module.kernel, module.packed()), f"{module.kernel.label} {arch}"
        )
    return module


# --- running -------------------------------------------------------------------------------------------------------


def _store_empty(kernel: Reducing, bound: Bound, outputs: Sequence[DeviceArray], call: Call) -> None:
    """Totals of no elements."""
    held = [_on_host(each, call).reshape(bound.kept) for each in outputs] if bound.read else None
    for value, each in zip(empty_totals(kernel, bound, call.values, held), outputs, strict=True):
        value = value.reshape(each.shape) if value.shape else value
        source = cuda.from_numpy(value, call.device, call.stream)
        device_calls.run(Planned.copier(), (source, each.given), -1, call.stream, None)


def _on_host(array: DeviceArray, call: Call) -> NDArray[Any]:
    """A copy of what the array holds."""
    made = cuda.empty(array.shape, array.dtype, device=call.device, stream=call.stream)
    device_calls.run(Planned.copier(), (array.given, made), -1, call.stream, None)
    return made.numpy()
