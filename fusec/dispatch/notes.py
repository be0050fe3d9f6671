"""Calls that are noted in place of being run: what `explain` and `source` tell of functions that call kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.arguments.operands import outputs_of
from fusec.base.records import dataclass, field
from fusec.codegen import ON_HOST
from fusec.compiler.pipeline import Specialisation
from fusec.dispatch import explain_axis, host_axis
from fusec.dispatch.axis_spec import Along
from fusec.dispatch.explain import RUNS_ALL, Explanation
from fusec.dispatch.explain_axis import AlongAxes
from fusec.dispatch.interpret import completed
from fusec.dispatch.planned import is_on_device
from fusec.dispatch.shown import Elements, Several, ShownKernels

if TYPE_CHECKING:
    from fusec.arguments.layouts import Shape
    from fusec.dispatch.axis_spec import Bound
    from fusec.dispatch.planned import Planned
    from fusec.dispatch.planned_axis import AxisKernel


@dataclass(frozen=True)
class NotedElementwiseCall:
    """A call of an element-wise kernel."""

    kernel: Planned
    args: tuple[object, ...]
    size: int | Shape

    def outputs(self) -> tuple[Any, ...]:
        """What later calls may take for its outputs: the given ones as they are, others zeros."""
        if len(self.args) == self.kernel.nargs:
            return self.args[self.kernel.nin :]
        return tuple(completed(self.kernel, self.args, self.size)[0].arrays[self.kernel.nin :])

    def explained(self) -> Explanation:
        """The report of the call."""
        return self.kernel.explained(self.args, self.size)

    def shown(self, target: str) -> ShownKernels:
        """The kernel for contiguous arrays of the call's types."""
        del target
        call, types, _ = completed(self.kernel, self.args, self.size)
        spec: Specialisation = self.kernel.canonical(types, tuple(call.numbers))
        return Elements(self.kernel.definition, spec)


@dataclass(frozen=True)
class NotedAxisCall:
    """A call of a kernel along axes."""

    kernel: AxisKernel
    args: tuple[object, ...]
    out: object
    along: Along

    def bound(self, target: str) -> Bound:
        """What the call comes to on a machine with the threads of a target."""
        if is_on_device(self.args, self.out, self.along.where):
            return self.kernel.planned(self.args, self.along)[0]
        given = host_axis.given_of(self.kernel, host_axis.read(self.kernel, self.args, None, self.along))
        return self.kernel.kind.bind(self.kernel, given, explain_axis.machine_of(target), None)

    def outputs(self) -> tuple[Any, ...]:
        """What later calls may take for its outputs: the given ones as they are, others zeros."""
        given = self.args[self.kernel.nin :] if self.out is None else outputs_of(self.out)
        bound = self.bound(ON_HOST)
        pairs = zip(self.kernel.out_params, bound.shapes, strict=True)
        return given or tuple(np.zeros(shape, bound.types[param.name].numpy) for param, shape in pairs)

    def explained(self) -> Explanation:
        """The report of the call."""
        return self.kernel.explained((*self.args, *outputs_of(self.out)), self.along)

    def shown(self, target: str) -> ShownKernels:
        """The kernels of the call."""
        return AlongAxes(self.kernel, self.bound(target))


@dataclass(eq=False)
class Notes:
    """The calls of kernels in a context, none of which runs."""

    runs = False
    calls: list[NotedElementwiseCall | NotedAxisCall] = field(default_factory=list)

    def elementwise(self, kernel: Planned, args: tuple[object, ...], size: int | Shape) -> tuple[object, ...]:
        """Note a call of an element-wise kernel; outputs without meaning."""
        return self._noted(NotedElementwiseCall(kernel, args, size))

    def along_axes(self, kernel: AxisKernel, args: tuple[object, ...], out: object, along: Along) -> tuple[object, ...]:
        """Note a call of a kernel along axes; outputs without meaning."""
        return self._noted(NotedAxisCall(kernel, args, out, along))

    def _noted(self, call: NotedElementwiseCall | NotedAxisCall) -> tuple[object, ...]:
        made = call.outputs()  # refuses what the call would
        self.calls.append(call)
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
