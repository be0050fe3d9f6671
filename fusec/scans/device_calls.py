"""A call of a scan with arrays on a CUDA device: its kernels one after the other on one stream, nothing waits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from fusec import cache, debug, device_calls, forking, pipeline
from fusec.ir.reductions import AXIS
from fusec.modes import usual
from fusec.operands import may_overlap
from fusec.planned import Planned
from fusec.records import dataclass, replace
from fusec.reductions import device_calls as reducing
from fusec.reductions.device_calls import Call, view_of
from fusec.reductions.pipeline import Request
from fusec.reductions.plans import Arguments, arrange
from fusec.runtime import cuda
from fusec.scans import pipeline as stages
from fusec.scans.calls import Bound, bind
from fusec.scans.pipeline import ScanDefinition
from fusec.scans.plans import MANY_THREADS, Form, Step

if TYPE_CHECKING:
    from fusec.runtime.cuda import DeviceArray, Module
    from fusec.scans.kernels import Scanning

MODULES = 512  # compiled kernels kept in memory


@dataclass(frozen=True)
class Plan:
    """A compiled scan for one combination of dtypes, shapes, strides, axis and device."""

    bound: Bound
    steps: tuple[tuple[Step, Module, Arguments], ...]


def run(
    kernel: Scanning, args: tuple[object, ...], out: object, axis: int | None, stream: object, *, reverse: bool
) -> tuple[object, ...]:
    """Enqueue a scan on a stream of the arrays' device and return all outputs; does not wait.

    Raises what `fusec.scans.calls.run` raises, and the errors of `fusec.errors.targets`.
    """
    given: tuple[object, ...] = args[kernel.nin :]
    if out is not None:
        given = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    call = reducing.read(kernel, args, given, axis, False, True, stream)
    like = next(arg for arg in (*args, *given) if cuda.is_device_array(arg))
    if call.outputs is not None and _disturbed(call):
        made = [
            cuda.allocate(like, each.shape, each.dtype, device=call.device, stream=call.stream) for each in call.outputs
        ]  # of the dtypes and shapes asked for, so that the plan checks them
        aside = replace(call, outputs=[cuda.describe(each, call.stream) for each in made])
        if kernel.device_scan_plan(aside, reverse).bound.read:
            for source, target in zip(given, made, strict=True):
                device_calls.run(Planned.copier(), (source, target), -1, call.stream, None)
        _scan(kernel, aside, like, reverse)
        for source, target in zip(made, given, strict=True):
            device_calls.run(Planned.copier(), (source, target), -1, call.stream, None)
        return given
    outputs = _scan(kernel, call, like, reverse)
    return given or tuple(cuda.deliver(like, each) for each in outputs)


def _disturbed(call: Call) -> bool:
    """Whether an output lies where inputs are read."""
    return any(may_overlap(view_of(output), view_of(each)) for output in call.outputs or () for each in call.sources)


def _scan(kernel: Scanning, call: Call, like: object, reverse: bool) -> list[object]:
    """Run the plan of a call; the outputs, if it makes new ones."""
    plan = kernel.device_scan_plan(call, reverse)
    made, outputs = list[object](), call.outputs
    if outputs is None:
        made = [
            cuda.allocate(like, plan.bound.shape, plan.bound.types[each.name], device=call.device, stream=call.stream)
            for each in kernel.out_params
        ]
        outputs = [cuda.describe(each, call.stream) for each in made]
        for param, each in zip(kernel.out_params, outputs, strict=True):
            if param.name in plan.bound.read:
                nbytes = prod(each.shape) * each.dtype.nbytes
                cuda.fill_with_zeros(each.pointer, nbytes, call.device, call.stream)
    if plan.steps:
        cuda.acquire([*call.sources, *outputs], call.stream, call.device)
        _launch(kernel, plan, call, outputs)
        cuda.release(outputs, call.stream, call.device)
    return made


def _launch(kernel: Scanning, plan: Plan, call: Call, outputs: Sequence[DeviceArray]) -> None:
    """The kernels in order; memory between them comes from the device's pool and goes back after the last use."""
    addresses = {name: each.pointer for name, each in call.inputs.items()}
    addresses |= {param.name: each.pointer for param, each in zip(kernel.out_params, outputs, strict=True)}
    held: list[object] = []
    for step, module, arguments in plan.steps:
        for name, shape, dtype in step.made:
            between = cuda.empty(shape, dtype, device=call.device, stream=call.stream)
            addresses[name] = between.pointer
            held.append(between)
        named = {name: addresses[name] for name in plan.bound.raw}
        named |= {name: addresses[known] for name, known in step.arrays}
        words = arguments.fill(named, call.values, kernel.name)
        cuda.launch(module, words, prod(step.space), call.stream, device=call.device)


def make_plan(kernel: Scanning, call: Call, reverse: bool) -> Plan:
    """Bind types, order the walk, compile every kernel."""
    inputs = {name: view_of(each) for name, each in call.inputs.items()}
    outputs = None if call.outputs is None else tuple(map(view_of, call.outputs))
    bound = bind(kernel, inputs, frozenset(call.values), outputs, call.axis, reverse, MANY_THREADS)
    arch, steps = cuda.device(call.device).arch, []
    for step in bound.steps:
        with forking.lock, usual():  # one thread compiles, the others wait
            module = _module(kernel.scan, bound.request, step.form, arch)
        steps.append((step, module, arrange(module.kernel, step, step.space, bound.raw, {AXIS: step.extent})))
    return Plan(bound, tuple(steps))


@lru_cache(maxsize=MODULES)
def _module(definition: ScanDefinition, request: Request, form: Form, arch: str) -> Module:
    """The compiled kernel of a form."""
    store = cache.default_cache()
    key = pipeline.digest("scan on cuda", definition.texts, request.key, form.key, arch, cuda.bindings_version())
    packed = None if store is None or debug.is_wanted(3) else store.get("kernel", key)
    loaded = None if packed is None else cache.unpack_kernel(packed)
    if loaded is not None:
        return cuda.Module.unpacked(*loaded)
    module = cuda.compile(stages.generate(definition, request, form, "cuda"), arch)
    if store is not None:
        store.put("kernel", key, cache.pack_kernel(module.kernel, module.packed()), f"{module.kernel.label} {arch}")
    return module
