"""Host arrays, and kernels on the CPU's threads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.arguments.layouts import View
from fusec.arguments.operands import (
    Array,
    dtype_of,
    host_array,
    is_number,
    output_array,
    view_of,
    wrapper_of,
)
from fusec.arguments.signature import Parameter
from fusec.base import locks
from fusec.base.records import replace
from fusec.codegen import ON_HOST
from fusec.compiler import pipeline
from fusec.dispatch.alike import keep_plan, known_plan
from fusec.dispatch.call import NO_DEVICE, KernelCall
from fusec.dispatch.overlap import ArrayArgument
from fusec.dispatch.plan import CompiledLaunch, NewArray, Plan, planned
from fusec.dispatch.spec import Bound, Given, KernelSpec
from fusec.environment import debug
from fusec.errors.arguments import OutputTooLarge
from fusec.kinds.launch import Launch
from fusec.kinds.slots import arrange

if TYPE_CHECKING:
    from fusec.runtime.cpu.engine import Executable

BYTES = np.dtype(np.uint8)
POSITIONAL = "what follows the inputs is an output; "


class Host:
    """The backend of NumPy's arrays and of whatever shares its memory with NumPy."""

    def stream(self, call: KernelCall[Array]) -> int:
        """There are none."""
        del call
        return 0

    def device(self, call: KernelCall[Array]) -> int:
        """The host is none."""
        del call
        return NO_DEVICE

    def read(self, argument: object, param: Parameter, call: KernelCall[Array]) -> Array:
        """A plain NumPy array."""
        return (output_array if param.non_const else host_array)(argument, param.name, call.kernel.name)

    def output(self, argument: object, param: Parameter, call: KernelCall[Array]) -> Array:
        """A plain NumPy array."""
        taken = "" if call.kernel.kind.along_axes or not is_number(argument) else POSITIONAL
        return output_array(argument, param.name, call.kernel.name, taken)

    def mask(self, where: object, call: KernelCall[Array]) -> Array:
        """A plain NumPy array."""
        return np.asarray(where) if is_number(where) else host_array(where, "where", call.kernel.name)

    def layout(self, array: Array) -> object:
        """What plans depend on."""
        return array.dtype, array.shape, array.strides, array.flags.aligned

    def view(self, array: Array, param: str, kernel: str) -> View:
        """The array as memory."""
        return view_of(array, dtype_of(array, param, kernel))

    def argument(self, array: Array, param: Parameter, call: KernelCall[Array]) -> ArrayArgument:
        """The array, whose elements are compared with those of others."""
        return ArrayArgument(param.name, call.view(self, array, param.name), param.raw)

    # --- plans -----------------------------------------------------------------------------------------------------

    def bound(self, kernel: KernelSpec, given: Given) -> Bound:
        """The facts of a call, with the launches of this machine."""
        with locks.lock:
            from fusec.runtime.cpu.machine import thread_count

        kind = kernel.kind
        return kind.fitted(kernel, kind.bind(kernel, given, kind.machine(thread_count()), None))

    def is_compiled(self, kernel: KernelSpec, bound: Bound) -> bool:
        """Whether the code of all launches is at hand."""
        return all(
            pipeline.is_compiled(
                kernel.kind.name, kernel.definition, (bound.request.key, each.code(False)), kernel.executables
            )
            for each in bound.chain or bound.launches
        )

    def plan(self, kernel: KernelSpec, given: Given, device: int, bound: Bound | None = None) -> Plan[Executable]:
        """Bind types, order the walk, compile every launch."""
        del device
        known = self.again(kernel, given) if bound is None else None
        return known or self._plan(kernel, given, bound)

    @locks.fork_safe
    def _plan(self, kernel: KernelSpec, given: Given, bound: Bound | None) -> Plan[Executable]:
        bound = self.bound(kernel, given) if bound is None else bound
        if bound.chain:
            from fusec.dispatch import composites

            steps = [self._compiled(kernel, bound, each) for each in bound.chain]
            if chained := composites.chain(kernel, bound, steps):
                return planned(kernel, bound, [chained], [step.code.kernel for step in steps])
            bound = replace(bound, chain=())
        steps = [self._compiled(kernel, bound, each) for each in bound.launches]
        made = planned(kernel, bound, steps, [step.code.kernel for step in steps])
        if not debug.is_wanted(1):  # otherwise each call shows what it compiles
            keep_plan(kernel, given, made, self.bound)
        return made

    def again(self, kernel: KernelSpec, given: Given) -> Plan[Executable] | None:
        """The plan of a call whose code an earlier call of other extents compiled; None if no such call is known."""
        found = known_plan(kernel, given)
        if found is None or pipeline.is_watched():
            return None
        return self.arranged(kernel, *found)

    def arranged(self, kernel: KernelSpec, bound: Bound, known: Plan[Executable]) -> Plan[Executable]:
        """The plan of a call with the code of another one."""
        steps = [
            self._arranged(kernel, bound, launch, step.code)
            for launch, step in zip(bound.launches, known.steps, strict=True)
        ]
        return planned(kernel, bound, steps, known.kernels)

    def _compiled(self, kernel: KernelSpec, bound: Bound, launch: Launch) -> CompiledLaunch[Executable]:
        """A kernel with what no call changes filled in."""
        kind = kernel.kind
        generate = partial(kind.generate, kernel.definition, bound.request, launch, ON_HOST, 1)
        key = (bound.request.key, launch.code(False))
        executable = pipeline.compiled(kind.name, kernel.definition.texts, key, generate, kernel.executables)
        return self._arranged(kernel, bound, launch, executable)

    def _arranged(
        self, kernel: KernelSpec, bound: Bound, launch: Launch, executable: Executable
    ) -> CompiledLaunch[Executable]:
        """Machine code, arranged for the extents of a launch."""
        with locks.lock:
            from fusec.runtime.cpu import engine
            from fusec.runtime.cpu.machine import thread_count

        kind = kernel.kind
        if kind.grain is None:
            executable = engine.with_rows(executable, launch.extents[-1], launch.positions)
        else:
            executable = engine.with_grain(executable, *kind.grain(launch, thread_count()))
        known = {**launch.known, **bound.sizes}
        return CompiledLaunch(launch, executable, arrange(executable.kernel, launch, launch.extents, bound.raw, known))

    # --- running ---------------------------------------------------------------------------------------------------

    def allocate(self, call: KernelCall[Array], new: NewArray) -> tuple[Array, Array]:
        """A new array. Raises OutputTooLarge."""
        with locks.lock:
            from fusec.runtime.cpu import memory

        make, dtype = memory.zeros if new.zeroed else memory.empty, new.dtype.numpy
        try:
            made: Array = make(new.shape, dtype, new.order)
        except (MemoryError, OSError, ValueError) as problem:  # ValueError: beyond what an address can say
            nbytes = prod(new.shape) * dtype.itemsize
            raise OutputTooLarge(call.kernel.name, new.param.name, new.shape, nbytes).at() from problem
        return made, made

    def are_as_planned(self, arrays: Sequence[Array]) -> bool:
        """They are."""
        del arrays
        return True

    def copied(self, array: Array, call: KernelCall[Array]) -> Array:
        """A copy in the order of the array."""
        del call
        return np.array(array, order="K")  # not the copy() of a subclass

    def copy(self, source: Array, target: Array, call: KernelCall[Array]) -> None:
        """Copy an array's elements."""
        del call
        target[...] = source

    def content(self, array: Array, call: KernelCall[Array]) -> Array:
        """The array itself."""
        del call
        return array

    def store(self, value: Array, target: Array, call: KernelCall[Array]) -> None:
        """Store totals of no elements."""
        del call
        target[...] = value

    def run(self, plan: Plan[Executable], call: KernelCall[Array], outputs: Sequence[Array]) -> None:
        """The kernels in order; what one leaves, later ones read."""
        arrays = call.arrays(outputs)
        addresses = {name: call.view(self, each, name).pointer for name, each in arrays.items()}
        if plan.nbytes:
            from fusec.runtime.cpu import memory

            between = memory.empty((plan.nbytes,), BYTES)
            start = between.__array_interface__["data"][0]
            addresses |= {name: start + offset for name, offset in plan.offsets.items()}
        for step in plan.steps:
            slots = step.arguments.fill(addresses, call.values, call.kernel.name)
            step.code.run(slots.buffer_info()[0], step.launch.positions)

    def threads_of_block(self, plan: Plan[Executable], call: KernelCall[Array]) -> int:
        """There are no blocks."""
        del plan, call
        return 1

    def deliver(self, call: KernelCall[Array], made: Sequence[Any]) -> tuple[object, ...]:
        """The outputs, in the container of the inputs."""
        wrap = wrapper_of(call.args)
        return tuple(made) if wrap is None else tuple([wrap(each) for each in made])


HOST = Host()
