"""Calls that are noted in place of being run: what `explain` and `source` tell of functions that call kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.arguments.operands import outputs_of, strided
from fusec.base.kernel_abi import strides_in_order
from fusec.base.records import dataclass, field
from fusec.codegen import ON_DEVICE
from fusec.dispatch.engine import is_on_device, protect, read_call
from fusec.dispatch.explain import RUNS_ALL, Explanation
from fusec.dispatch.planned import Planned
from fusec.dispatch.shown import CallKernels, Several, ShownKernels, machine_of
from fusec.dispatch.spec import Bound, CallOptions


@dataclass(frozen=True)
class NotedCall:
    """A call of a kernel."""

    kernel: Planned
    args: tuple[object, ...]
    out: object
    options: CallOptions

    def bound(self, target: str) -> Bound:
        """What the call comes to on a machine with the threads of a target."""
        kernel = self.kernel
        if is_on_device((*self.args, *outputs_of(self.out), self.options.where)):
            return kernel.planned(self.args, self.options).bound
        backend, call = read_call(kernel, self.args, self.out, self.options)
        if call.is_given:
            protect(backend, call)
        return kernel.kind.bind(kernel, call.given(backend), machine_of(target), None)

    def outputs(self) -> tuple[Any, ...]:
        """What later calls may take for its outputs: the given ones as they are, others zeros."""
        given = self.args[self.kernel.nin :] or outputs_of(self.out)
        bound = self.bound(ON_DEVICE)  # which may hold longer rows
        if given:
            return given
        made = []
        for param, shape in zip(self.kernel.out_params, bound.shapes, strict=True):
            array = np.zeros(shape, bound.types[param.name].numpy)
            strides = strides_in_order(shape, bound.orders.get(param.name, range(len(shape))), array.itemsize)
            made.append(strided(array, array.shape, strides))
        return tuple(made)

    def explained(self) -> Explanation:
        """The report of the call."""
        return self.kernel.explained((*self.args, *outputs_of(self.out)), self.options)

    def shown(self, target: str) -> ShownKernels:
        """The kernels of the call; an element-wise one for contiguous arrays of the call's types."""
        kernel, bound = self.kernel, self.bound(target)
        if not kernel.kind.along_axes:
            bound = kernel.kind.canonical(kernel, None, bound.types, tuple(bound.request.scalars))
        return CallKernels(kernel, bound)


@dataclass(eq=False)
class Notes:
    """The calls of kernels in a context, none of which runs."""

    runs = False
    calls: list[NotedCall] = field(default_factory=list)

    def call(self, kernel: Planned, args: tuple[object, ...], out: object, options: CallOptions) -> tuple[object, ...]:
        """Note a call of a kernel; outputs without meaning."""
        noted = NotedCall(kernel, args, out, options)
        made = noted.outputs()  # refuses what the call would
        self.calls.append(noted)
        return made

    def report(self) -> Explanation:
        """One report of all calls, whose kernels are counted through."""
        reports = [each.explained() for each in self.calls]
        if len(reports) == 1:
            return reports[0]
        lines, number = [("kernels", str(sum(each.launches for each in reports)))], 0
        for each in reports:
            lines.append(("part", each.kernel))
            for topic, text in each.lines:
                if topic == "code" or topic.startswith("kernel "):
                    number += 1
                    topic = f"kernel {number}"
                lines.append((topic, text))
        moved = sum(each.bytes_moved for each in reports)
        places = ", ".join(dict.fromkeys(each.plan for each in reports))
        return Explanation("; ".join(each.kernel for each in reports), tuple(lines), moved, RUNS_ALL, places)

    def shown(self, target: str) -> ShownKernels:
        """The kernels of all calls."""
        return Several(tuple(each.shown(target) for each in self.calls))
