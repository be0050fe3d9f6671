"""The report of a call under fuse: the number of kernels, the work of each, and why they are separate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import prod
from typing import Any

from fusec.base.diagnostics import counted
from fusec.dispatch.drawing import LIBRARY, REASON
from fusec.dispatch.explain import NATIVE, RUNS_ALL, Explanation
from fusec.fusion.memory.calls import CallStep
from fusec.fusion.memory.results import Returned
from fusec.fusion.schedule.groups import LIBRARY_CALL, Group
from fusec.fusion.schedule.plan import KernelStep
from fusec.fusion.trace.sizes import is_expensive_op
from fusec.fusion.trace.trace_values import Buffer, Write, geometry, parts_of
from fusec.ir.expr import Apply
from fusec.ir.graph import Reduce
from fusec.kinds.reduction import Phase, has_end


def report(name: str, plan: Any) -> Explanation:
    """The report of a plan."""
    lines: list[tuple[str, str]] = []
    moved = number = 0
    before: Sequence[Phase] = ()
    called = ""  # what the kernel before is a call of
    for step in plan.steps:
        if isinstance(step, CallStep):
            number += step.call.kernels
            called = step.call.name if step.call.kernels else called
            lines.append((f"kernel {number}" if step.call.kernels else LIBRARY, str(step)))
            moved += step.nbytes
            continue
        phases = step.phases()
        is_end = step.follows and len(before) == len(phases) == 1
        before, is_new = phases, not (step.place or is_end)
        number += is_new
        topic = f"kernel {number}"
        lines.append((topic, f"{'at its end, ' if is_end else '' if is_new else 'beside it, '}{_described(step)}"))
        if step.group.reason and number > 1 and is_new:
            own = called and step.group.reason == LIBRARY_CALL
            lines.append((topic, f"{REASON}: {f'{called} has kernels of its own' if own else step.group.reason}"))
        called = ""
        for phase in phases[1:]:
            totals = f"{counted(phase.extent, 'total')} for each of {phase.positions // phase.chunks:,}"
            if phase is phases[-1] and has_end(phases):
                lines.append((topic, f"combines them at its end: {totals}"))
                continue
            number += 1
            topic = f"kernel {number}"
            lines.append((topic, f"combines the totals of the kernel before: {totals}"))
        moved += _bytes(step) + 2 * sum(_between(step, before) for before in phases[:-1])
    lines = [("kernels", str(number)), *_counted(lines)]
    lines += [("note", note) for note in plan.notes]
    least = min(_least(plan), moved)
    lines += [
        ("bytes moved", f"{moved:,}"),
        ("least possible", f"{least:,}: reads what is given, writes what is asked"),
    ]
    path = RUNS_ALL if plan.quick is None else NATIVE
    return Explanation(name, tuple(lines), moved, path, least_bytes=least)


def _counted(lines: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The lines; calls of libraries that are equal and follow one another share one."""
    for (topic, text), equal in groupby(lines):
        count = len(list(equal))
        if topic == LIBRARY and count > 1:
            yield topic, f"{count} x {text}"
        else:
            yield from [(topic, text)] * count


def _described(step: KernelStep) -> str:
    group = step.group
    ops = _operations(group)
    arrays = sum(leaf.buffer is not None for leaf in step.leaves)
    writes = len(step.stored)
    places = sum(isinstance(each, Write) for each in group.statements)
    what = f"{counted(ops, 'operation')} over {group.shape}"
    if group.axes is not None:
        totals = {each.op for expr in group.exprs.values() for each in parts_of(expr) if isinstance(each, Reduce)}
        along = "all axes" if len(group.axes) == len(group.shape) else f"axes {group.axes}"
        again = ", rows walked again in cache" if group.is_staged else ""
        what += f", {counted(len(totals), 'kind')} of totals ({', '.join(sorted(totals))}) along {along}{again}"
    stored = f", {places} of them in place" if places else ""
    parts = (each for expr in group.exprs.values() for each in parts_of(expr))
    expensive = sorted({each.op for each in parts if isinstance(each, Apply) and is_expensive_op(each.op)})
    read = f"{counted(arrays, 'array')} read, {writes} written{stored}"
    return f"{what}; {read}" + (f"; {', '.join(expensive)}" if expensive else "")


def _operations(group: Group) -> int:
    found = {part for expr in group.exprs.values() for part in parts_of(expr)}
    return sum(isinstance(part, Reduce) or (isinstance(part, Apply) and part.op != "convert") for part in found)


def _between(step: KernelStep, phase: Phase) -> int:
    """The bytes that a phase hands to the next: a total of each chunk, in the type of the output at least."""
    return phase.positions * sum(each.dtype.nbytes for each in step.kernel.signature.outputs if each.dtype is not None)


def _bytes(step: KernelStep) -> int:
    """Every array once."""
    read = sum(leaf.phantom.nbytes for leaf in step.leaves if leaf.buffer is not None)
    kernel = step.kernel.signature
    written = 0
    for param, each in zip(kernel.outputs, step.written, strict=True):
        assert param.dtype is not None, "graphs are typed"
        written += each.size * param.dtype.nbytes
    return read + written


def _least(plan: Any) -> int:
    """The bytes of all that is given and read, and of all that the caller gets or has written, each once."""
    given: dict[Buffer, dict[Any, int]] = {}
    written: dict[Any, int] = {}
    returned = set(_slots(plan.result))
    for step in plan.steps:
        for leaf in step.leaves:
            if leaf.buffer is not None and leaf.buffer.kind != "temporary" and not leaf.version:
                given.setdefault(leaf.buffer, {})[geometry(leaf.phantom)] = leaf.phantom.nbytes
        if isinstance(step, CallStep):
            pairs = zip(step.outputs, step.call.buffers, strict=True)
            written |= {slot: each.phantom.nbytes for slot, each in pairs if slot in returned}
            continue
        written |= {each.slot: prod(each.shape) * each.dtype.itemsize for each in step.fresh}
        changed = [each for each in step.stored if isinstance(each, Write) and each.buffer.kind == "argument"]
        written |= {(each.buffer, geometry(each.phantom)): each.phantom.nbytes for each in changed}
    read = sum(min(buffer.phantom.nbytes, sum(parts.values())) for buffer, parts in given.items())
    return read + sum(written.values())


def _slots(result: Any) -> Iterator[int]:
    """The slots of what is returned."""
    if isinstance(result, Returned):
        yield result.slot
    for each in getattr(result, "parts", ()):
        yield from _slots(each)
