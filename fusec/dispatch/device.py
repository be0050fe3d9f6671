"""A call with arrays on a CUDA device: the host's rules for shapes and types, the device's for memory and streams."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from fusec.arguments import layouts
from fusec.arguments.layouts import Shape, View
from fusec.arguments.operands import is_number, memory_order
from fusec.arguments.signature import Parameter
from fusec.base import locks
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Kernel
from fusec.base.recent import Recent
from fusec.base.rounding_mode import default_rounding
from fusec.codegen import ON_DEVICE
from fusec.compiler import pipeline
from fusec.compiler.pipeline import Specialisation
from fusec.dispatch import device_plans, fast_path_device, host
from fusec.dispatch.overlap import ArrayArgument, check_outputs, is_copied
from fusec.dispatch.plan import DevicePlan
from fusec.dispatch.spec import KernelSpec
from fusec.errors.arguments import OutputIsNotAnArray
from fusec.kinds.elementwise import make_space
from fusec.kinds.slots import arrange
from fusec.runtime import cuda

if TYPE_CHECKING:
    from fusec.runtime.cuda import CompiledModule, DeviceArray

MODULES = 512  # compiled kernels kept in memory

_modules: Recent[str, CompiledModule] = Recent(MODULES)


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
    handle = cuda.stream_for(args, stream)
    arrays = _describe(kernel, args, handle)
    device = cuda.same_device(each for each in arrays if each is not None)
    types = kernel.signature.bind([None if each is None else each.dtype for each in arrays])
    shapes = [None if each is None else each.shape for each in arrays]
    shape = host.loop_shape(kernel, shapes, size)
    host.check_shapes(kernel, shapes, shape, size)
    given = len(args) > kernel.nin
    outputs = list(args[kernel.nin :])
    described = arrays
    if given or any(param.non_const for param in kernel.in_params):
        arrays = _protect(kernel, args, arrays, handle)
    is_usual = size == -1 and block_size is None and all(map(operator.is_, described, arrays))
    if not given:
        outputs = _allocate(kernel, args, arrays, types, shape, device, handle)
        arrays[kernel.nin :] = [cuda.describe(each, handle) for each in outputs]
    done = _launch(kernel, args, arrays, types, shape, (handle, device, block_size), given)
    if done is not None and is_usual:
        _remember(kernel, args, arrays, done, (handle, device))
    like = next(arg for arg, each in zip(args, arrays, strict=False) if each is not None)
    return tuple(outputs) if given else tuple(cuda.deliver(like, each) for each in outputs)


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


def _view(array: DeviceArray) -> View:
    return View(array.pointer, array.shape, array.strides, array.dtype)


def _allocate(
    kernel: KernelSpec,
    args: tuple[object, ...],
    arrays: Sequence[DeviceArray | None],
    types: dict[str, DType],
    shape: Shape,
    device: int,
    stream: int,
) -> list[object]:
    """New outputs in the library of the first array, laid out like the inputs; the launch clears them if it must."""
    like = next(arg for arg, each in zip(args, arrays, strict=False) if each is not None)
    inputs = zip(kernel.in_params, arrays, strict=False)
    rows = [
        layouts.broadcast_strides(_view(each), shape) for param, each in inputs if each is not None and not param.raw
    ]
    made = []
    for param in kernel.out_params:
        order = tuple(range(len(shape))) if param.raw else memory_order(shape, rows)
        array = cuda.allocate(like, shape, types[param.name], order, cuda.StreamOn(stream, device))
        made.append(array)
    return made


def _protect(
    kernel: KernelSpec, args: tuple[object, ...], arrays: list[DeviceArray | None], stream: int
) -> list[DeviceArray | None]:
    """Copy inputs that a given output overlaps in another order; refuse outputs that overlap each other."""
    pairs = _pairs(kernel, arrays)
    held = [None if each is None else ArrayArgument(param.name, _view(each), raw=param.raw) for param, each in pairs]
    is_written = [param.non_const or position >= kernel.nin for position, param in enumerate(kernel.params)]
    outputs = [each for each, written in zip(held, is_written, strict=True) if each is not None and written]
    check_outputs(kernel.name, outputs)
    protected = list(arrays)
    for position, each in enumerate(held):
        if each is not None and not is_written[position] and is_copied(each, outputs):
            (copy,) = run(KernelSpec.copier(), (args[position],), -1, stream, None)
            protected[position] = cuda.describe(copy, stream)
    return protected


def _pairs(kernel: KernelSpec, arrays: Sequence[DeviceArray | None]) -> list[tuple[Parameter, DeviceArray | None]]:
    return list(zip(kernel.params, arrays, strict=True))


def _launch(
    kernel: KernelSpec,
    args: tuple[object, ...],
    arrays: Sequence[DeviceArray | None],
    types: dict[str, DType],
    shape: Shape,
    where: tuple[int, int, int | None],
    given: bool,
) -> DevicePlan | None:
    """Enqueue; what a repeated call can use again, None if it would have more to do than to launch."""
    stream, device, block_size = where
    if 0 in shape:
        return None
    described = (
        (each.dtype, each.shape, each.strides, each.pointer % cuda.VECTOR_BYTES) for each in arrays if each is not None
    )
    key = (shape, device, tuple(each is None for each in arrays), *described)
    plan = kernel.device_plans.get(key)
    if plan is None:
        plan = kernel.device_plans.keep(key, _make_plan(kernel, arrays, types, shape, device))
    kernel.remember(plan.spec)
    module = plan.module
    addresses = {param.name: each.pointer for param, each in _pairs(kernel, arrays) if each is not None}
    values = {param.name: arg for param, arg in zip(kernel.params, args, strict=False)}
    words = plan.arguments.fill(addresses, values, kernel.name)
    present = [each for each in arrays if each is not None]
    cuda.acquire(present, stream, device)
    cleared = [] if given else [param.raw or param.name in module.kernel.fills for param in kernel.out_params]
    for is_cleared, each in zip(cleared, arrays[kernel.nin :], strict=False):
        if each is not None and is_cleared:
            cuda.fill_with_zeros(each.pointer, _view(each).size * each.dtype.nbytes, device, stream)
    cuda.launch(module, words, plan.space.size, cuda.StreamOn(stream, device), block_size)
    cuda.release([each for each in arrays[kernel.nin :] if each is not None], stream, device)
    return None if any(cleared) else plan


def _make_plan(
    kernel: KernelSpec, arrays: Sequence[DeviceArray | None], types: dict[str, DType], shape: Shape, device: int
) -> DevicePlan:
    """Lay out the space, compile."""
    views = [(param, _view(each)) for param, each in _pairs(kernel, arrays) if each is not None]
    space = make_space(shape, views, uses_index=kernel.uses_index, reduce_dims=kernel.reduce_dims, vectors=True)
    numbers = frozenset(param.name for param, each in _pairs(kernel, arrays) if each is None)
    spec = Specialisation(tuple(types.items()), numbers, space.layout, kernel.fp)
    generate = partial(pipeline.generate, kernel.definition, spec, ON_DEVICE)
    module = compiled("elementwise", kernel.definition.texts, (spec.key,), device, generate)
    return DevicePlan(module, arrange(module.kernel, space, space.extents, space.raw, {}), space, spec)


def _remember(
    kernel: KernelSpec,
    args: tuple[object, ...],
    arrays: Sequence[DeviceArray | None],
    done: DevicePlan,
    where: tuple[int, int],
) -> None:
    """Let later calls of this kind take the short way, if the library of all the arrays has one."""
    stream, device = where
    source = device_plans.library_of(args, device, stream)
    if source is None:
        return
    views = [None if each is None else _view(each) for each in arrays]
    written = [param.non_const or position >= kernel.nin for position, param in enumerate(kernel.params)]
    ready = fast_path_device.CachedCall(
        launches=(
            device_plans.cached_launch(
                kernel.signature, cuda.Launcher(done.module, done.space.size, device), done.arguments, {}
            ),
        ),
        makers=tuple(
            source.maker(view.shape, layouts.order_in_memory(view), view.dtype, device)
            for view in views[len(args) :]
            if view is not None
        ),
        pairs=device_plans.pairs_of(views, written, [param.raw for param in kernel.params], len(args)),
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
    """A compiled kernel for a device, from memory or the disk cache; one thread compiles, the others wait.

    sort, texts, key: all that the kernel depends on, apart from this version of fusec and the device.
    """
    arch = cuda.device(device).arch
    name = pipeline.digest(f"{sort} on {ON_DEVICE}", texts, *key, arch, cuda.bindings_version())
    with locks.lock, default_rounding():
        found = _modules.get(name)
        if found is None:

            def build(kernel: Kernel) -> bytes:
                return cuda.compile(kernel, arch).packed()

            kernel, code, _ = pipeline.machine_code(name, generate, build, arch)
            found = _modules.keep(name, cuda.CompiledModule.unpacked(kernel, code))
        return found
