"""Writes that no one sees: those whose elements another write replaces, and fills of arrays that writes cover.

NumPy's own functions compute in place, as `np.multiply(x, y, out=z[..., 0])` and then `z[..., 0] -= w`. The second
write takes the value of the first, so that a kernel computes both and stores one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence

from fusec.fusion.schedule.forwarding import is_small
from fusec.fusion.schedule.groups import alive, arrays_of
from fusec.fusion.schedule.repairs import change
from fusec.fusion.trace import trace_values as t
from fusec.fusion.trace.trace import Trace, widened
from fusec.ir.expr import Expr

NEAR = 8  # writes to one memory, among which another one to the same elements is looked for


def leave_out_overwritten(trace: Trace, needed: Collection[t.Buffer]) -> None:
    """Leave out such writes and fills. needed: buffers that are returned."""
    if trace.versions:
        trace.statements[:] = alive(trace, needed)  # what nobody needs reads nothing that others replace
        _Overwriting(trace).run()


class _Overwriting:
    """What is written and read, by groups of buffers that may share memory."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.places = {statement: at for at, statement in enumerate(trace.statements)}
        self.writes: dict[int, list[t.Write]] = {}
        self.reads: dict[int, dict[int, list[tuple[t.Statement, t.Leaf]]]] = {}  # by group and version
        self.calls: list[int] = []  # of libraries, the places
        self.gone: set[t.Statement] = set()
        for statement in trace.statements:
            self._note(statement, statement)
            if isinstance(statement, t.Write):
                self.writes.setdefault(statement.buffer.group, []).append(statement)
            elif isinstance(statement, t.LibraryCall):
                self.calls.append(self.places[statement])

    def _note(self, reader: t.Statement, statement: t.Statement) -> None:
        """Note that a statement reads what another one reads, which may be the same."""
        for leaf in arrays_of(statement, self.trace.leaves):
            if leaf.buffer is not None and leaf.buffer.group in self.trace.versions:
                self.reads.setdefault(leaf.buffer.group, {}).setdefault(leaf.version, []).append((reader, leaf))

    def run(self) -> None:
        """Leave out what can be."""
        for writes in self.writes.values():
            for at, write in enumerate(writes):
                later = _same(write, writes[at + 1 : at + 1 + NEAR])
                if later is not None and self._takes_over(write, later):
                    self.gone.add(write)
        for statement in self.trace.statements:
            if (
                isinstance(statement, t.Define)
                and statement.buffer.group in self.writes
                and self._is_covered(statement.buffer)
            ):
                self.gone.add(statement)
        self.trace.statements[:] = [each for each in self.trace.statements if each not in self.gone]

    def _takes_over(self, write: t.Write, later: t.Write) -> bool:
        """Have a write take the value of an earlier one to the same elements; False if more than it reads them."""
        value, known, own = write.value, dict[Expr, Expr](), list[t.Leaf]()
        versions = self.reads.get(write.buffer.group, {})
        for version in range(write.version, later.version):
            for reader, leaf in versions.get(version, ()):
                if reader in self.gone or _is_apart(leaf, write):
                    continue
                is_same = leaf.buffer is write.buffer and leaf.steps == write.steps and not leaf.is_whole
                if reader is not later or not is_same or value.shape != write.phantom.shape:
                    return False
                known[widened(leaf.input, write.buffer.dtype)] = value.expr
                own.append(leaf)
        first, last = self.places[write], self.places[later]
        if write.buffer.kind == "argument" and bisect_left(self.calls, first) < bisect_left(self.calls, last):
            return False  # a call may raise, and then the caller sees the first write
        if known:
            buffers = [self.trace.leaves[name].buffer for name in t.leaves_of(value.expr)]
            if any(each is not None and self._is_written(each, first, last) for each in buffers):
                return False
            if not is_small(t.replaced(later.value.expr, dict(known))):
                return False
            self._note(later, write)
            change(later, known)
            for leaf in own:
                versions[leaf.version].remove((later, leaf))
        return True

    def _is_written(self, buffer: t.Buffer, first: int, last: int) -> bool:
        """Whether the memory of a buffer is written between two places."""
        places = [self.places[each] for each in self.writes.get(buffer.group, ())]
        return bisect_right(places, first) < bisect_left(places, last)

    def _is_covered(self, buffer: t.Buffer) -> bool:
        """Whether writes cover an array before anything reads what it was filled with; states for which extents."""
        versions = self.reads.get(buffer.group, {}).items()
        read = [at for at, found in versions if any(reader not in self.gone for reader, _ in found)]
        writes = [each for each in self.writes[buffer.group] if each not in self.gone]
        axis = _covered(buffer, [each for each in writes if not read or each.version <= min(read)])
        if axis is None:
            return False
        trace, length = self.trace, buffer.phantom.shape[axis]
        own = trace.extents.attempt(lambda: trace.extents.of_buffer(buffer))
        if own is None:
            trace.has_looked = True
        else:
            trace.require([own], lambda shape: shape[axis] == length)
            trace.extents.laid[buffer] = own
        return True


def _same(write: t.Write, others: Sequence[t.Write]) -> t.Write | None:
    """The first of some writes that is to the same elements, if those before it are to other ones."""
    for each in others:
        if each.buffer is write.buffer and each.steps == write.steps:
            return each
        if not t.are_apart(each, write):
            return None
    return None


def _is_apart(leaf: t.Leaf, write: t.Write) -> bool:
    """Whether a leaf reads no element that a statement writes, whatever the extents are."""
    return not leaf.is_whole and leaf.buffer is write.buffer and t.are_apart_views(leaf.steps, write.steps)


def _covered(buffer: t.Buffer, writes: Sequence[t.Write]) -> int | None:
    """The axis along which the parts that writes take cover all of a buffer; None if there is none."""
    spans = dict[int, list[tuple[int, int]]]()
    for each in writes:
        found = t.part_of(each.steps[0], buffer.phantom.ndim) if len(each.steps) == 1 else None
        if found is not None and each.buffer is buffer:
            spans.setdefault(found[0], []).append(found[1])
    for axis, parts in spans.items():
        end = 0
        for start, stop in sorted(parts):
            end = max(end, stop) if start <= end else end
        if end >= buffer.phantom.shape[axis]:
            return axis
    return None
