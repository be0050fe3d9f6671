"""A call of a kernel of any kind: its arguments are read where they are, and its plan runs there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from fusec.arguments.operands import is_foreign, outputs_of
from fusec.base import locks
from fusec.base.records import replace
from fusec.dispatch import tiers
from fusec.dispatch.call import WHERE, Backend, KernelCall, KernelWithPlans, Memory, read
from fusec.dispatch.host import HOST
from fusec.dispatch.overlap import ArrayArgument, check_outputs, disturbed, is_staged, run_aside
from fusec.dispatch.plan import NewArray, Plan
from fusec.dispatch.spec import CallOptions, KernelSpec


def backend_of(args: Sequence[object]) -> Backend[Any]:
    """What runs a call: that of a device if one of the arrays is on one."""
    foreign = [arg for arg in args if is_foreign(arg)]
    if not foreign:
        return HOST
    with locks.lock:
        from fusec.runtime import cuda

    if not any(map(cuda.is_device_array, foreign)):
        return HOST
    with locks.lock:
        from fusec.dispatch.device import CUDA

    return CUDA


def is_on_device(args: Sequence[object]) -> bool:
    """Whether one of the arrays of a call is."""
    return backend_of(args) is not HOST


def read_call(
    kernel: KernelSpec, args: tuple[object, ...], out: object, options: CallOptions
) -> tuple[Backend[Any], KernelCall[Any]]:
    """What runs a call, and the call as it sees it."""
    given = args[kernel.nin :] if out is None else outputs_of(out)
    inputs = args[: kernel.nin] if given else args
    backend = backend_of((*inputs, *given, options.where))
    return backend, read(backend, kernel, inputs, given, options)


def run(kernel: KernelWithPlans, args: tuple[object, ...], out: object, options: CallOptions) -> tuple[object, ...]:
    """Run a call where its arrays are; all outputs. A call on a device is enqueued on a stream.

    Raises what reading and binding raise, and the errors of targets.
    """
    backend, call = read_call(kernel, args, out, options)
    given, is_copied = call.args[kernel.nin :], False
    if call.outputs is not None or kernel.writes_inputs:
        is_copied = protect(backend, call)
    if backend is HOST:
        interpreted = tiers.answered(kernel, call)
        if interpreted is not None:
            return given or backend.deliver(call, interpreted)
    if kernel.checks:
        kernel.kind.check(kernel, kernel.plan(backend, call).bound, call)
    if call.outputs is not None and needs_staging(backend, call):
        _run_aside(backend, kernel, call)
        return given
    plan, made = kernel.plan(backend, call), list[object]()
    if call.outputs is None:
        plan, made = _with_outputs(backend, kernel, plan, call)
    execute(backend, plan, call)
    if backend is not HOST and not is_copied:
        kernel.repeat(plan, call)
    return given or backend.deliver(call, made)


def execute(backend: Backend[Memory], plan: Plan[Any], call: KernelCall[Memory]) -> None:
    """Run the plan of a call that has outputs."""
    assert call.outputs is not None, "they are given, or allocated"
    if plan.bound.is_empty:
        _store_empty(backend, plan, call, call.outputs)
    elif not plan.is_idle:
        backend.run(plan, call, call.outputs)


def _with_outputs(
    backend: Backend[Memory], kernel: KernelWithPlans, plan: Plan[Any], call: KernelCall[Memory]
) -> tuple[Plan[Any], list[object]]:
    """Give a call new outputs: its plan, and these as users see them."""
    pairs = [backend.allocate(call, new) for new in plan.outputs]
    call.outputs = tuple([each for _, each in pairs])
    if not backend.are_as_planned(call.outputs):
        plan = kernel.plan(backend, call)
    return plan, [each for each, _ in pairs]


# --- memory that overlaps ------------------------------------------------------------------------------------------


def protect(backend: Backend[Memory], call: KernelCall[Memory]) -> bool:
    """Refuse outputs that share memory; copy inputs that they overlap, if the kind does so. Whether any was copied."""
    kernel, arrays = call.kernel, call.arguments(backend)
    if kernel.kind.overlap == "stage outputs":
        check_outputs(kernel.name, [each for each in arrays[kernel.nin :] if each is not None])
        return False
    found = disturbed(kernel, arrays)
    for position in found:
        name = kernel.params[position].name
        call.inputs[name] = backend.copied(call.inputs[name], call)
    return bool(found)


def needs_staging(backend: Backend[Memory], call: KernelCall[Memory]) -> bool:
    """Whether results are stored elsewhere first, since an output may lie where inputs do."""
    kernel = call.kernel
    if kernel.kind.overlap != "stage outputs":
        return False
    arrays = call.arguments(backend)
    inputs = [each for each in arrays[: kernel.nin] if each is not None]
    if call.mask is not None:
        inputs.append(ArrayArgument("", call.view(backend, call.mask, WHERE)))
    return is_staged(inputs, [each for each in arrays[kernel.nin :] if each is not None], kernel.in_place)


def _run_aside(backend: Backend[Memory], kernel: KernelWithPlans, call: KernelCall[Memory]) -> None:
    """Run a call whose results are stored elsewhere first."""
    assert call.outputs is not None, "outputs that overlap are given"
    made = []
    for param, each in zip(kernel.out_params, call.outputs, strict=True):
        view = backend.view(each, param.name, kernel.name)
        made.append(backend.allocate(call, NewArray(param, view.shape, view.dtype))[1])
    aside = replace(call, outputs=tuple(made), bound=None, plan=None)
    plan = kernel.plan(backend, aside)  # one for their strides

    def copy(source: Memory, target: Memory) -> None:
        backend.copy(source, target, call)

    run_aside(call.outputs, made, bool(plan.bound.read), copy, partial(execute, backend, plan, aside))


# --- totals of no elements -----------------------------------------------------------------------------------------


def _store_empty(
    backend: Backend[Memory], plan: Plan[Any], call: KernelCall[Memory], outputs: Sequence[Memory]
) -> None:
    from fusec.dispatch.empty_totals import empty_totals

    kernel, bound, held = call.kernel, plan.bound, None
    if bound.read:
        held = [backend.content(each, call) for each in outputs]
    values = empty_totals(kernel, bound, call.values, held)
    for param, value, each in zip(kernel.out_params, values, outputs, strict=True):
        shape = backend.view(each, param.name, kernel.name).shape
        is_total = value.shape and param.name not in kernel.elements
        backend.store(value.reshape(shape) if is_total else value, each, call)
