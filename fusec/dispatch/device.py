"""Arrays on CUDA devices: the host's rules for shapes and types, the device's for memory and streams; nothing waits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fusec.arguments import layouts
from fusec.arguments.layouts import View
from fusec.arguments.operands import Array, is_number, memory_order
from fusec.arguments.signature import Parameter
from fusec.base.dtypes import UINT8
from fusec.codegen import ON_DEVICE
from fusec.compiler import pipeline
from fusec.dispatch.call import KernelCall
from fusec.dispatch.copier import copier
from fusec.dispatch.overlap import ArrayArgument
from fusec.dispatch.plan import CompiledLaunch, NewArray, Plan, planned
from fusec.dispatch.spec import PLAIN, Bound, Given, KernelSpec
from fusec.errors.arguments import OutputIsNotAnArray
from fusec.kinds.launch import CLUSTERS, WAITING, Launch, Machine
from fusec.kinds.slots import arrange
from fusec.runtime import cuda

if TYPE_CHECKING:
    from fusec.base.kernel_abi import Kernel
    from fusec.runtime.cuda import CompiledModule, DeviceArray


def machine_of(device: int | None) -> Machine:
    """What keeps a device busy, or any device where nobody knows which."""
    return CLUSTERS if device is not None and cuda.device(device).has_clusters else WAITING


class DeviceCode(NamedTuple):
    """The machine code of one kernel for one device."""

    module: CompiledModule
    threads: int  # of its launch


class Cuda:
    """The backend of arrays in the memory of CUDA devices."""

    def stream(self, call: KernelCall[DeviceArray]) -> int:
        """The stream that is given, else the current one of the arrays' library."""
        return cuda.stream_for((*call.args, call.options.where), call.options.stream)

    def device(self, call: KernelCall[DeviceArray]) -> int:
        """The device of all arrays. Raises for arrays of several."""
        return cuda.same_device([*call.sources, *(call.outputs or ())])

    def read(self, argument: object, param: Parameter, call: KernelCall[DeviceArray]) -> DeviceArray:
        """An array that work on the stream may use."""
        if argument is None:
            raise OutputIsNotAnArray(call.kernel.name, param.name, repr(argument)).at()
        found = cuda.describe(argument, call.stream)
        if param.non_const:
            cuda.check_writable(found)
        return found

    def output(self, argument: object, param: Parameter, call: KernelCall[DeviceArray]) -> DeviceArray:
        """An array that work on the stream may change."""
        if argument is None or is_number(argument):
            raise OutputIsNotAnArray(call.kernel.name, param.name, repr(argument)).at()
        found = cuda.describe(argument, call.stream)
        cuda.check_writable(found)
        return found

    def mask(self, where: object, call: KernelCall[DeviceArray]) -> DeviceArray:
        """The mask; one of the host is copied to the device."""
        if isinstance(where, (bool, np.bool_, list)):
            where = cuda.from_numpy(np.asarray(where), call.device, call.stream)
        return cuda.describe(where, call.stream)

    def layout(self, array: DeviceArray) -> object:
        """What plans depend on."""
        return array.dtype, array.shape, array.strides, array.pointer % cuda.VECTOR_BYTES

    def view(self, array: DeviceArray, param: str, kernel: str) -> View:
        """The array as memory."""
        del param, kernel
        return View(array.pointer, array.shape, array.strides, array.dtype)

    def argument(self, array: DeviceArray, param: Parameter, call: KernelCall[DeviceArray]) -> ArrayArgument:
        """The array, of which addresses alone are compared with those of others."""
        return ArrayArgument(param.name, self.view(array, param.name, call.kernel.name), raw=param.raw)

    # --- plans -----------------------------------------------------------------------------------------------------

    def plan(self, kernel: KernelSpec, given: Given, device: int, bound: Bound | None = None) -> Plan[DeviceCode]:
        """Bind types, order the walk, compile every launch."""
        bound = kernel.kind.bind(kernel, given, machine_of(device), None) if bound is None else bound
        steps = [self._compiled(kernel, bound, launch, device) for launch in bound.launches]
        return planned(kernel, bound, steps, [step.code.module.kernel for step in steps])

    def _compiled(self, kernel: KernelSpec, bound: Bound, launch: Launch, device: int) -> CompiledLaunch[DeviceCode]:
        """A kernel with what no call changes filled in, from the memory of this process, the disk cache or NVRTC."""
        kind, texts, arch = kernel.kind, kernel.definition.texts, cuda.device(device).arch
        key = (bound.request.key, launch.code(True), arch, cuda.bindings_version())
        name = pipeline.digest(f"{kind.name} on {ON_DEVICE}", texts, *key)
        generate = partial(kind.generate, kernel.definition, bound.request, launch, ON_DEVICE, 1)

        def build(made: Kernel) -> bytes:
            return cuda.compile(made, arch).packed()

        module = pipeline.machine_code(name, arch, generate, build, cuda.CompiledModule.unpacked)
        arguments = arrange(module.kernel, launch, launch.threads, bound.raw, {**launch.known, **bound.sizes})
        threads = prod(launch.threads)
        return CompiledLaunch(launch, DeviceCode(module, threads), arguments)

    # --- running ---------------------------------------------------------------------------------------------------

    def allocate(self, call: KernelCall[DeviceArray], new: NewArray) -> tuple[object, DeviceArray]:
        """A new array of the library of the first one."""
        on = cuda.StreamOn(call.stream, call.device)
        made = cuda.allocate(call.like, new.shape, new.dtype, new.order, on)
        found = cuda.describe(made, call.stream)
        if new.zeroed:
            cuda.fill_with_zeros(found.pointer, prod(found.shape) * found.dtype.nbytes, call.device, call.stream)
        return made, found

    def are_as_planned(self, arrays: Sequence[DeviceArray]) -> bool:
        """Whether vectors may be stored there, as plans suppose of outputs to allocate."""
        return all(each.pointer % cuda.VECTOR_BYTES == 0 for each in arrays)

    def copied(self, array: DeviceArray, call: KernelCall[DeviceArray]) -> DeviceArray:
        """A copy in the order of the array."""
        order = memory_order(array.shape, [layouts.broadcast_strides(self.view(array, "", ""), array.shape)])
        new = NewArray(call.kernel.params[0], array.shape, array.dtype, order)
        _, made = self.allocate(call, new)
        self.copy(array, made, call)
        return made

    def copy(self, source: DeviceArray, target: DeviceArray, call: KernelCall[DeviceArray]) -> None:
        """Enqueue a copy of an array's elements."""
        args, kernel = (source.given, target.given), copier()
        copying = KernelCall(kernel, args, {"x": source}, {}, (target,), None, PLAIN, call.stream, call.device, True)
        plan = kernel.plan(self, copying)
        if not plan.is_idle:
            self.run(plan, copying, (target,))

    def content(self, array: DeviceArray, call: KernelCall[DeviceArray]) -> Array:
        """A copy of what the array holds."""
        made = cuda.empty(array.shape, array.dtype, device=call.device, stream=call.stream)
        self.copy(array, cuda.describe(made, call.stream), call)
        return made.numpy()

    def store(self, value: Array, target: DeviceArray, call: KernelCall[DeviceArray]) -> None:
        """Store totals of no elements."""
        held = cuda.from_numpy(value, call.device, call.stream)
        self.copy(cuda.describe(held, call.stream), target, call)

    def run(self, plan: Plan[DeviceCode], call: KernelCall[DeviceArray], outputs: Sequence[DeviceArray]) -> None:
        """Enqueue the kernels in order with whatever else uses their arrays.

        Memory between them comes from the device's pool and returns after the last of them.
        """
        stream, device = call.stream, call.device
        arrays = call.arrays(outputs)
        cuda.acquire([*arrays.values()], stream, device)
        addresses = {name: each.pointer for name, each in arrays.items()}
        between = cuda.empty((plan.nbytes,), UINT8, device=device, stream=stream) if plan.nbytes else None
        if between is not None:
            addresses |= {name: between.pointer + offset for name, offset in plan.offsets.items()}
        on, block_size = cuda.StreamOn(stream, device), call.options.block_size
        for step in plan.steps:
            words = step.arguments.fill(addresses, call.values, call.kernel.name)
            cuda.launch(step.code.module, words, step.code.threads, on, block_size)
        cuda.release(outputs, stream, device)

    def threads_of_block(self, plan: Plan[DeviceCode], call: KernelCall[DeviceArray]) -> int:
        """As many as the call asks for, if the kernel can run them."""
        code = plan.steps[0].code
        return cuda.threads_of_block(code.module, call.device, code.threads, call.options.block_size)

    def deliver(self, call: KernelCall[DeviceArray], made: Sequence[Any]) -> tuple[object, ...]:
        """The outputs, in the library of the first array."""
        like = call.like
        return tuple([cuda.deliver(like, each) for each in made])


CUDA = Cuda()
