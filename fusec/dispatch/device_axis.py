"""A call of a reduction or a scan with arrays on a CUDA device: launches in order on one stream, nothing waits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fusec.arguments.operands import is_number
from fusec.arguments.signature import Parameter
from fusec.base.records import dataclass
from fusec.codegen import ON_DEVICE
from fusec.compiler.reduction_pipeline import MASK
from fusec.dispatch import device
from fusec.dispatch.axes import plain_axis
from fusec.dispatch.axis_spec import Along, AxisSpec, Bound, Given
from fusec.dispatch.device_steps import DeviceLaunch, Steps, room_of, view_of
from fusec.dispatch.host_axis import empty_totals, key_of_axes
from fusec.dispatch.overlap import ArrayArgument, check_outputs, is_staged
from fusec.dispatch.spec import KernelSpec
from fusec.errors.arguments import OutputIsNotAnArray
from fusec.errors.reductions import WhereNotBool
from fusec.ir.reductions import AXIS
from fusec.kinds.launch import Launch
from fusec.kinds.scan import MANY_THREADS
from fusec.kinds.slots import arrange
from fusec.runtime import cuda

if TYPE_CHECKING:
    from fusec.runtime.cuda import DeviceArray


@dataclass(frozen=True)
class DeviceAxisPlan:
    """A compiled kernel for one combination of dtypes, shapes, strides, axes and device."""

    bound: Bound
    steps: Steps


@dataclass
class DeviceAxisCall:
    """The arguments of one call."""

    inputs: dict[str, DeviceArray]  # numbers left out
    values: dict[str, object]  # the numbers
    outputs: list[DeviceArray] | None  # as given
    mask: DeviceArray | None  # the array of where=
    along: Along
    stream: int  # a handle
    device: int  # where all arrays are

    @property
    def sources(self) -> list[DeviceArray]:
        """All arrays that are read."""
        return [*self.inputs.values(), *([] if self.mask is None else [self.mask])]

    @property
    def key(self) -> object:
        """The key of the plan."""
        described = [
            (each.dtype, each.shape, each.strides, each.pointer % cuda.VECTOR_BYTES)
            for each in (*self.sources, *(self.outputs or ()))
        ]
        marks = (tuple(self.inputs), self.mask is None, self.outputs is None, tuple(self.values))
        return (tuple(described), marks, *key_of_axes(self.along), self.device)


def new_output(like: object, shape: tuple[int, ...], of: DeviceArray, call: DeviceAxisCall) -> object:
    """An array of the library of another one."""
    return cuda.allocate(like, shape, of.dtype, on=cuda.StreamOn(call.stream, call.device))


def copy(source: object, target: object, stream: int) -> None:
    """Enqueue a copy of an array's elements."""
    device.run(KernelSpec.copier(), (source, target), -1, stream, None)


def execute(kernel: AxisSpec, plan: DeviceAxisPlan, call: DeviceAxisCall, like: object) -> list[object]:
    """Run the plan of a call; the outputs, new ones of the library of `like` if there are none."""
    bound, made, outputs = plan.bound, list[object](), call.outputs
    if outputs is None:
        typed = zip(kernel.out_params, bound.shapes, strict=True)
        made = [
            cuda.allocate(like, shape, bound.types[param.name], on=cuda.StreamOn(call.stream, call.device))
            for param, shape in typed
        ]
        outputs = [cuda.describe(each, call.stream) for each in made]
        for param, each in zip(kernel.out_params, outputs, strict=True):
            if param.name in bound.read:
                nbytes = prod(each.shape) * each.dtype.nbytes
                cuda.fill_with_zeros(each.pointer, nbytes, call.device, call.stream)
    if bound.is_empty:
        _store_empty(kernel, bound, outputs, call)
    elif plan.steps.order:
        _launch(kernel, plan.steps, call, outputs)
    return made


def _launch(kernel: AxisSpec, steps: Steps, call: DeviceAxisCall, outputs: Sequence[DeviceArray]) -> None:
    """Enqueue the kernels of a call in order with whatever else uses its arrays."""
    cuda.acquire([*call.sources, *outputs], call.stream, call.device)
    addresses = {name: each.pointer for name, each in call.inputs.items()}
    addresses |= {param.name: each.pointer for param, each in zip(kernel.out_params, outputs, strict=True)}
    if call.mask is not None:
        addresses[MASK] = call.mask.pointer
    steps.run(addresses, call.values, kernel.name, call.device, call.stream)
    cuda.release(outputs, call.stream, call.device)


# --- reading -------------------------------------------------------------------------------------------------------


def read(
    kernel: AxisSpec, args: tuple[object, ...], given: tuple[object, ...], along: Along, stream: object
) -> DeviceAxisCall:
    """Sort the arguments into device arrays and numbers; raises for anything else."""
    where = along.where
    handle = cuda.stream_for((*args, *given, where), stream)
    inputs: dict[str, DeviceArray] = {}
    values: dict[str, object] = {}
    for param, arg in zip(kernel.in_params, args, strict=False):
        if is_number(arg):
            values[param.name] = arg
        else:
            inputs[param.name] = cuda.describe(arg, handle)
    outputs = [_output(kernel, *pair, handle) for pair in zip(kernel.out_params, given, strict=False)]
    check_outputs(kernel.name, _outputs(kernel, outputs))
    axes = Along(plain_axis(along.axis), bool(along.keepdims), True, bool(along.reverse))
    call = DeviceAxisCall(inputs, values, outputs or None, None, axes, handle, 0)
    call.device = cuda.same_device([*call.sources, *outputs])
    if where is not True and where is not None:
        if isinstance(where, (bool, np.bool_, list)):
            where = cuda.from_numpy(np.asarray(where), call.device, handle)
        call.mask = cuda.describe(where, handle)
        call.device = cuda.same_device([*call.sources, *outputs])
        if call.mask.dtype.name != "bool":
            raise WhereNotBool(kernel.name, str(call.mask.dtype)).at()
    return call


def _output(kernel: AxisSpec, param: Parameter, given: object, stream: int) -> DeviceArray:
    if given is None or is_number(given):
        raise OutputIsNotAnArray(kernel.name, param.name, repr(given)).at()
    found = cuda.describe(given, stream)
    cuda.check_writable(found)
    return found


def is_disturbed(kernel: AxisSpec, call: DeviceAxisCall) -> bool:
    """Whether an output overlaps inputs: results are then stored elsewhere first."""
    inputs = [ArrayArgument("", view_of(each)) for each in call.sources]
    return is_staged(inputs, _outputs(kernel, call.outputs or ()), frozenset())


def _outputs(kernel: AxisSpec, arrays: Sequence[DeviceArray]) -> list[ArrayArgument]:
    return [ArrayArgument(param.name, view_of(each)) for param, each in zip(kernel.out_params, arrays, strict=False)]


# --- plans ---------------------------------------------------------------------------------------------------------


def make_plan(kernel: AxisSpec, call: DeviceAxisCall) -> DeviceAxisPlan:
    """Bind types, order the walk, compile every launch."""
    given = Given(
        inputs={name: view_of(each) for name, each in call.inputs.items()},
        numbers=frozenset(call.values),
        outputs=None if call.outputs is None else tuple(map(view_of, call.outputs)),
        mask=None if call.mask is None else view_of(call.mask),
        along=call.along,
    )
    bound = kernel.kind.bind(kernel, given, MANY_THREADS, None)
    steps, offsets, nbytes = [], dict[str, int](), 0
    for launch in bound.launches:
        for name, shape, dtype in launch.made:
            offsets[name] = nbytes
            nbytes += room_of(shape, dtype)
        steps.append(_step(kernel, bound, launch, call.device))
    return DeviceAxisPlan(bound, Steps(tuple(steps), nbytes, offsets))


def _step(kernel: AxisSpec, bound: Bound, launch: Launch, number: int) -> DeviceLaunch:
    """One kernel. number: of the device."""
    generate = partial(kernel.kind.generate, kernel.definition, bound.request, launch, ON_DEVICE, 1)
    key = (bound.request.key, launch.code(True))
    module = device.compiled(kernel.kind.name, kernel.definition.texts, key, number, generate)
    known = {AXIS: launch.extent, **bound.sizes}
    arguments = arrange(module.kernel, launch, launch.threads, bound.raw, known)
    threads = prod(launch.threads)
    return DeviceLaunch(module, arguments, cuda.Launcher(module, threads, number), threads)


# --- running -------------------------------------------------------------------------------------------------------


def _store_empty(kernel: AxisSpec, bound: Bound, outputs: Sequence[DeviceArray], call: DeviceAxisCall) -> None:
    """Totals of no elements."""
    held = [_on_host(each, call).reshape(bound.kept) for each in outputs] if bound.read else None
    for value, each in zip(empty_totals(kernel, bound, call.values, held), outputs, strict=True):
        value = value.reshape(each.shape) if value.shape else value
        copy(cuda.from_numpy(value, call.device, call.stream), each.given, call.stream)


def _on_host(array: DeviceArray, call: DeviceAxisCall) -> NDArray[Any]:
    """A copy of what the array holds."""
    made = cuda.empty(array.shape, array.dtype, device=call.device, stream=call.stream)
    copy(array.given, made, call.stream)
    return made.numpy()
