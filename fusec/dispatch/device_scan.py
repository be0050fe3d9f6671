"""A call of a scan with arrays on a CUDA device: its kernels one after the other on one stream, nothing waits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from math import prod
from typing import TYPE_CHECKING

from fusec.arguments.operands import may_overlap, outputs_of
from fusec.base import locks
from fusec.base.records import dataclass, replace
from fusec.base.rounding_mode import usual
from fusec.codegen import ON_DEVICE
from fusec.compiler import disk_cache as disk
from fusec.compiler import pipeline
from fusec.compiler import scan_pipeline as stages
from fusec.compiler.scan_pipeline import ScanDefinition
from fusec.dispatch import device as device_calls
from fusec.dispatch import device_reduction as reducing
from fusec.dispatch import fast_path_device_reduction
from fusec.dispatch.device_reduction import Call
from fusec.dispatch.device_steps import Step, Steps, room_of, view_of
from fusec.dispatch.host_scan import Bound, bind
from fusec.dispatch.planned import Planned
from fusec.environment import debug
from fusec.ir.reductions import AXIS
from fusec.kinds.reduction import Request, arrange
from fusec.kinds.scan import MANY_THREADS, Form
from fusec.kinds.scan import Step as Walked
from fusec.runtime import cuda

if TYPE_CHECKING:
    from fusec.dispatch.planned_scan import Scanning
    from fusec.runtime.cuda import CompiledModule

MODULES = 512  # compiled kernels kept in memory


@dataclass(frozen=True)
class Plan:
    """A compiled scan for one combination of dtypes, shapes, strides, axis and device."""

    bound: Bound
    steps: Steps


def run(
    kernel: Scanning, args: tuple[object, ...], out: object, axis: int | None, stream: object, *, reverse: bool
) -> tuple[object, ...]:
    """Enqueue a scan on a stream of the arrays' device and return all outputs; does not wait.

    Raises what `fusec.dispatch.host_scan.run` raises, and the errors of `fusec.errors.targets`.
    """
    given = args[kernel.nin :] if out is None else outputs_of(out)
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
    if stream is None and (axis is None or type(axis) is int) and cuda.source_of(like) is not None:
        _remember(kernel, (*args[: kernel.nin], *given), call, (axis, reverse, bool(given)))
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
    reducing.launch(kernel, plan.steps, call, outputs)
    return made


def _remember(kernel: Scanning, args: tuple[object, ...], call: Call, choice: tuple[int | None, bool, bool]) -> None:
    """Let later calls of this kind take the short way, but for outputs that start as zeros."""
    plan = kernel.device_scan_plan(call, choice[1])
    if plan.bound.read:
        return
    typed = [(plan.bound.shape, plan.bound.types[param.name]) for param in kernel.out_params]
    note = partial(setattr, kernel, "last_scan", plan.bound)
    kind = fast_path_device_reduction.Kind(choice, typed, plan.steps, note, kernel.otherwise(*choice))
    fast_path_device_reduction.remember(kernel, args, call, kind)


def make_plan(kernel: Scanning, call: Call, reverse: bool) -> Plan:
    """Bind types, order the walk, compile every kernel."""
    inputs = {name: view_of(each) for name, each in call.inputs.items()}
    outputs = None if call.outputs is None else tuple(map(view_of, call.outputs))
    bound = bind(kernel, inputs, frozenset(call.values), outputs, call.axis, reverse, MANY_THREADS)
    steps, offsets, nbytes = [], dict[str, int](), 0
    for walked in bound.steps:
        for name, shape, dtype in walked.made:
            offsets[name] = nbytes
            nbytes += room_of(shape, dtype)
        steps.append(_step(kernel, bound, walked, call.device, offsets))
    return Plan(bound, Steps(tuple(steps), nbytes))


def _step(kernel: Scanning, bound: Bound, walked: Walked, device: int, offsets: Mapping[str, int]) -> Step:
    """One kernel. offsets: where arrays lie in memory of the call, by what they are called among all steps."""
    arch = cuda.device(device).arch
    with locks.lock, usual():  # one thread compiles, the others wait
        module = _module(kernel.scan, bound.request, walked.form, arch)
    arguments = arrange(module.kernel, walked, walked.space, bound.raw, {AXIS: walked.extent})
    between = tuple((name, offsets[known]) for name, known in walked.arrays if known in offsets)
    threads = prod(walked.space)
    return Step(module, arguments, cuda.Launcher(module, threads, device), threads, between)


@lru_cache(maxsize=MODULES)
def _module(definition: ScanDefinition, request: Request, form: Form, arch: str) -> CompiledModule:
    """The compiled kernel of a form."""
    store = disk.default_cache()
    key = pipeline.digest("scan on cuda", definition.texts, request.key, form.key, arch, cuda.bindings_version())
    packed = None if store is None or debug.is_wanted(3) else store.get("kernel", key)
    loaded = None if packed is None else disk.unpack_kernel(packed)
    if loaded is not None:
        return cuda.CompiledModule.unpacked(*loaded)
    module = cuda.compile(stages.generate(definition, request, form, ON_DEVICE), arch)
    if store is not None:
        store.put("kernel", key, disk.pack_kernel(module.kernel, module.packed()), f"{module.kernel.label} {arch}")
    return module
