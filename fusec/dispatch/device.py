"""A call with arrays on a CUDA device: the host's rules for shapes and types, the device's for memory and streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from fusec.arguments import layouts
from fusec.arguments.layouts import Shape, View
from fusec.arguments.operands import is_number, memory_order
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Kernel, strides_in_order
from fusec.base.records import dataclass
from fusec.codegen import ON_DEVICE
from fusec.compiler import pipeline
from fusec.compiler.pipeline import Specialisation
from fusec.dispatch import device_plans, fast_path_device, host
from fusec.dispatch.overlap import ArrayArgument, disturbed
from fusec.dispatch.plan import DevicePlan
from fusec.dispatch.spec import KernelSpec
from fusec.errors.arguments import OutputIsNotAnArray
from fusec.kinds.elementwise import make_space
from fusec.kinds.slots import arrange
from fusec.runtime import cuda

if TYPE_CHECKING:
    from fusec.runtime.cuda import CompiledModule, DeviceArray


@dataclass
class DeviceCall:
    """A call of a kernel, read."""

    kernel: KernelSpec
    args: tuple[object, ...]
    arrays: list[DeviceArray | None]  # of all parameters; None for numbers and for outputs to allocate
    types: dict[str, DType]
    shape: Shape  # of the space
    stream: int  # a handle
    device: int

    @property
    def on(self) -> cuda.StreamOn:
        """Where it is enqueued."""
        return cuda.StreamOn(self.stream, self.device)

    @property
    def given(self) -> bool:
        """Whether outputs were passed."""
        return len(self.args) > self.kernel.nin

    @property
    def views(self) -> list[View | None]:
        """The arrays as memory."""
        return [
            None if each is None else View(each.pointer, each.shape, each.strides, each.dtype) for each in self.arrays
        ]

    @property
    def held(self) -> list[ArrayArgument | None]:
        """The arrays as what may overlap."""
        pairs = zip(self.kernel.params, self.views, strict=True)
        return [None if view is None else ArrayArgument(param.name, view, raw=param.raw) for param, view in pairs]

    @property
    def like(self) -> object:
        """The first array, whose library new ones have."""
        return next(arg for arg, each in zip(self.args, self.arrays, strict=False) if each is not None)


def run(
    kernel: KernelSpec,
    args: tuple[object, ...],
    size: int | Shape,
    stream: object = None,
    block_size: int | None = None,
) -> tuple[object, ...]:
    """Enqueue a kernel on a stream of the arrays' device and return all outputs; does not wait.

    Raises what calls.run raises, and the errors of `fusec.errors.targets` for drivers, devices and streams.
    """
    call = _read(kernel, args, size, stream)
    is_usual = size == -1 and block_size is None
    if call.given or any(param.non_const for param in kernel.in_params):
        is_usual = not _copy_disturbed(call) and is_usual
    outputs = args[kernel.nin :] or _allocate(call)
    done = _launch(call, block_size)
    if done is not None and is_usual:
        _remember(call, done)
    return outputs if call.given else tuple(cuda.deliver(call.like, each) for each in outputs)


def planned(
    kernel: KernelSpec, args: tuple[object, ...], size: int | Shape, block_size: int | None
) -> tuple[DevicePlan, int]:
    """The plan of a call, and the threads of its blocks; nothing is run, and outputs are not allocated."""
    call = _read(kernel, args, size, None)
    if not call.given:
        shape, device = call.shape, call.device
        for position, (param, order) in enumerate(zip(kernel.out_params, _orders(call), strict=True), kernel.nin):
            dtype = call.types[param.name]
            strides = strides_in_order(shape, order, dtype.nbytes)
            call.arrays[position] = cuda.DeviceArray(0, shape, strides, dtype, device, False, None, None, None)
    plan = _plan(call)
    return plan, cuda.threads_of_block(plan.module, call.device, block_size)


def _read(kernel: KernelSpec, args: tuple[object, ...], size: int | Shape, stream: object) -> DeviceCall:
    """Sort the arguments into arrays and numbers, and find types and shape; raises for anything else."""
    handle = cuda.stream_for(args, stream)
    arrays = _describe(kernel, args, handle)
    device = cuda.same_device(each for each in arrays if each is not None)
    types = kernel.signature.bind([None if each is None else each.dtype for each in arrays])
    shapes = [None if each is None else each.shape for each in arrays]
    shape = host.loop_shape(kernel, shapes, size)
    host.check_shapes(kernel, shapes, shape, size)
    return DeviceCall(kernel, args, arrays, types, shape, handle, device)


def _describe(kernel: KernelSpec, args: tuple[object, ...], stream: int) -> list[DeviceArray | None]:
    arrays: list[DeviceArray | None] = []
    for position, (param, arg) in enumerate(zip(kernel.params, args, strict=False)):
        if is_number(arg) or arg is None:
            if position >= kernel.nin or arg is None:
                raise OutputIsNotAnArray(kernel.name, param.name, repr(arg)).at()
            arrays.append(None)
            continue
        arrays.append(cuda.describe(arg, stream))
        if position >= kernel.nin or param.non_const:
            cuda.check_writable(arrays[-1])  # type: ignore[arg-type]
    return arrays + [None] * (kernel.nargs - len(arrays))


def _allocate(call: DeviceCall) -> tuple[object, ...]:
    """New outputs in the library of the first array, laid out like the inputs; the launch clears them if it must."""
    kernel = call.kernel
    made = tuple(
        cuda.allocate(call.like, call.shape, call.types[param.name], order, call.on)
        for param, order in zip(kernel.out_params, _orders(call), strict=True)
    )
    call.arrays[kernel.nin :] = [cuda.describe(each, call.stream) for each in made]
    return made


def _orders(call: DeviceCall) -> list[tuple[int, ...]]:
    """The axes of new outputs from outermost to innermost in memory: those of the inputs, of raw ones C order."""
    kernel, shape = call.kernel, call.shape
    inputs = zip(kernel.in_params, call.views, strict=False)
    rows = [layouts.broadcast_strides(each, shape) for param, each in inputs if each is not None and not param.raw]
    return [tuple(range(len(shape))) if param.raw else memory_order(shape, rows) for param in kernel.out_params]


def _copy_disturbed(call: DeviceCall) -> bool:
    """Copy inputs that a given output overlaps in another order, if any; refuse outputs that overlap each other."""
    found = disturbed(call.kernel, call.held)
    for position in found:
        (copy,) = run(KernelSpec.copier(), (call.args[position],), -1, call.stream, None)
        call.arrays[position] = cuda.describe(copy, call.stream)
    return bool(found)


def _launch(call: DeviceCall, block_size: int | None) -> DevicePlan | None:
    """Enqueue; what a repeated call can use again, None if it would have more to do than to launch."""
    if 0 in call.shape:
        return None
    kernel, (stream, device) = call.kernel, (call.stream, call.device)
    plan = _plan(call)
    kernel.remember(plan.spec)
    pairs = zip(kernel.params, call.arrays, strict=True)
    addresses = {param.name: each.pointer for param, each in pairs if each is not None}
    values = {param.name: arg for param, arg in zip(kernel.params, call.args, strict=False)}
    words = plan.arguments.fill(addresses, values, kernel.name)
    outputs = [each for each in call.arrays[kernel.nin :] if each is not None]
    cuda.acquire([each for each in call.arrays if each is not None], stream, device)
    fills = plan.module.kernel.fills
    cleared = [] if call.given else [param.raw or param.name in fills for param in kernel.out_params]
    for is_cleared, each in zip(cleared, outputs, strict=False):
        if is_cleared:
            cuda.fill_with_zeros(each.pointer, prod(each.shape) * each.dtype.nbytes, device, stream)
    cuda.launch(plan.module, words, plan.space.size, call.on, block_size)
    cuda.release(outputs, stream, device)
    return None if any(cleared) else plan


def _plan(call: DeviceCall) -> DevicePlan:
    """The plan of a call, made and stored at the first call of its kind."""
    described = [
        None if each is None else (each.dtype, each.shape, each.strides, each.pointer % cuda.VECTOR_BYTES)
        for each in call.arrays
    ]
    key = (call.shape, call.device, *described)
    kernel: KernelSpec = call.kernel
    found: DevicePlan | None = kernel.device_plans.get(key)
    return kernel.device_plans.keep(key, _make_plan(call)) if found is None else found


def _make_plan(call: DeviceCall) -> DevicePlan:
    """Lay out the space, compile."""
    kernel, named = call.kernel, list(zip(call.kernel.params, call.views, strict=True))
    views = [(param, each) for param, each in named if each is not None]
    space = make_space(call.shape, views, uses_index=kernel.uses_index, reduce_dims=kernel.reduce_dims, vectors=True)
    numbers = frozenset(param.name for param, each in named if each is None)
    spec = Specialisation(tuple(call.types.items()), numbers, space.layout, kernel.fp)
    generate = partial(pipeline.generate, kernel.definition, spec, ON_DEVICE)
    module = compiled("elementwise", kernel.definition.texts, (spec.key,), call.device, generate)
    return DevicePlan(module, arrange(module.kernel, space, space.extents, space.raw, {}), space, spec)


def _remember(call: DeviceCall, done: DevicePlan) -> None:
    """Let later calls of this kind take the short way, if the library of all the arrays has one."""
    kernel, args, views, device = call.kernel, call.args, call.views, call.device
    source = device_plans.library_of(args, device, call.stream)
    if source is None:
        return
    launcher = cuda.Launcher(done.module, done.space.size, device)
    ready = fast_path_device.CachedCall(
        launches=(device_plans.cached_launch(kernel.signature, launcher, done.arguments, {}),),
        makers=tuple(
            source.maker(view.shape, layouts.order_in_memory(view), view.dtype, device)
            for view in views[len(args) :]
            if view is not None
        ),
        pairs=device_plans.pairs_of(call.held[: len(args)], kernel.is_written),
        source=source,
        device=device,
        nin=kernel.nin,
        returns=kernel.returns,
        note=partial(kernel.remember, done.spec),
    )
    kernel.repeat(args, ready)


def compiled(
    sort: str, texts: Mapping[str, object], key: tuple[object, ...], device: int, generate: Callable[[], Kernel]
) -> CompiledModule:
    """The machine code of a kernel for a device.

    sort, texts, key: all that the kernel depends on, apart from this version of fusec and the device.
    """
    arch = cuda.device(device).arch
    name = pipeline.digest(f"{sort} on {ON_DEVICE}", texts, *key, arch, cuda.bindings_version())

    def build(kernel: Kernel) -> bytes:
        return cuda.compile(kernel, arch).packed()

    return pipeline.machine_code(name, arch, generate, build, cuda.CompiledModule.unpacked)
