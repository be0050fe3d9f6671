"""The states of all tapes: a trie whose edges are steps.

Note [Overlaps]: a plan for leaves that share memory with written ones holds for one pattern, the distances between
them. A loop over parts of an array may meet a new pattern in each round. So once there are a few behind a first
write, plans run on copies of the leaves that are only read before it. If this is not enough, since several parts are
written, or read after the write, the step that needs the second of them begins a tape of its own, which finds the first
write done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from fusec.base import locks
from fusec.base.recent import Recent
from fusec.xp.forms import CPU, Form
from fusec.xp.kinds import KINDS, TapeKind
from fusec.xp.steps import Operation, numbers_of

if TYPE_CHECKING:
    from fusec.fusion.devices.device_repeats import DeviceRepeats
    from fusec.fusion.fused_plan import FusedPlan

MAX_NODES = 1 << 15  # beyond, the trie starts again
MAX_PATTERNS = 8  # in which leaves share memory behind a state, with a plan for each
MAX_PLANS = 1024  # older ones are dropped, and made again if they are needed

EAGER: Any = object()
"""The entry of a step that cannot be traced: its operands are evaluated."""

NEEDS_NUMBER: Any = object()
"""The entry of a step that depends on the value of its number."""


class TapeState(dict[Any, Any]):
    """A state of tapes. Its entries are the next states, by key of the step, each with the place and form of its first
    result. Recording needs nothing else.

    start: the place of the first result of its step. forms: those of the results; None for numbers among them.
    alone: whether the step has one result; otherwise `together` makes one object of all, such as a tuple.
    writes: the places of arrays with values that this step is the first one to write. arrays: the places of all results
    so far, empty before they are asked for.
    refused: the steps that cannot be taken, by key, and why. may_fail: whether the step may fail for some elements.
    device: that of all arrays; None before the first one. is_there: whether this is not host memory. mark: stands for
    the state in keys. kind: that of all states that differ only in extents; None if there is none. extents: those of
    the leaves, numbered. first: the first state that writes; patterns: how many plans are behind it for leaves that
    share memory; ends: the steps that are not taken since there are many, by key. Note [Overlaps].
    """

    __slots__ = (
        "alone", "arrays", "count", "depth", "device", "ends", "extents", "first", "forms", "is_there", "kind",
        "mark", "may_fail", "parent", "patterns", "plans", "refused", "start", "step", "together", "writes",
    )  # fmt: skip

    def __init__(
        self, parent: TapeState | None, step: Any, forms: tuple[Form | None, ...],
        together: Callable[[list[Any]], Any] | None = None, kind: TapeKind | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.parent, self.step, self.forms = parent, step, forms
        self.alone, self.together = together is None, together
        self.mark = object()
        self.may_fail = False
        self.start: int = 0 if parent is None else parent.count
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.count: int = self.start + len(forms)
        self.plans: dict[Any, ref[TapePlan]] = {}
        self.refused: dict[Any, Any] = {}
        self.first: TapeState | None = None if parent is None else parent.first
        self.patterns, self.ends = 0, frozenset[Any]()
        self.writes: tuple[int, ...] = ()
        self.arrays: tuple[int, ...] = ()
        self.device: Any = step.device if type(step) is Form else None if parent is None else parent.device
        self.is_there = self.device not in (None, CPU)
        self.extents: dict[int, int] = {0: 0, 1: 1} if parent is None else parent.extents
        self.kind = TapeKind() if parent is None else kind
        if type(step) is Form and parent is not None and parent.kind is not None:
            self.extents = {**self.extents}
            self.kind = KINDS.behind_leaf(parent.kind, step, self.extents)

    def behind(self, key: Any) -> Any:
        """The next state, or why there is none; None if that is not known."""
        found = self.get(key)
        return found[0] if found is not None else self.refused.get(key)

    def refuse(self, key: Any, why: Any, is_shared: bool) -> Any:
        """Note why a step cannot be taken. is_shared: whether that holds for all extents."""
        TRIE.count()
        if is_shared and self.kind is not None and key not in self.kind.refused:
            self.kind.refused[key] = why
        return self.refused.setdefault(key, why)

    def note_writes(self, writes: tuple[int, ...], may_fail: bool = False) -> None:
        """Note what the step is the first one to write, and whether it may fail."""
        self.writes, self.may_fail = writes, may_fail
        if writes and self.first is None:
            self.first = self

    @property
    def has_many_patterns(self) -> bool:
        """Whether leaves are copied, since they share memory in many ways. Note [Overlaps]."""
        return self.first is not None and self.first.patterns > MAX_PATTERNS

    def note_pattern(self, late: Mapping[int, int], pattern: Any) -> None:
        """Count a new pattern; beyond a few, note which step is better taken by another tape.

        late: the leaves that cannot be copied, with depths.
        """
        assert self.first is not None, "a state that writes"
        self.first.patterns += 1
        if not self.has_many_patterns:
            return
        groups: dict[int, list[int]] = {}
        for at, group in pattern[0]:
            if at in late:
                groups.setdefault(group, []).append(late[at])
        depth = min((sorted(each)[1] for each in groups.values() if len(each) > 1), default=0)
        if self.first.depth < depth <= self.depth:
            state = self.path()[depth - 1]
            before: Any = state.parent
            for key in [key for key, step in [*before.items()] if step[0] is state]:
                before.pop(key, None)
            before.ends |= {state.step.key if type(state.step) is Operation else state.step}

    def path(self, depth: int = 0) -> list[TapeState]:
        """All states after the first, in order, or those beyond some depth."""
        found: list[TapeState] = []
        node = self
        while node.parent is not None and node.depth > depth:
            found.append(node)
            node = node.parent
        return found[::-1]

    def is_behind(self, other: TapeState) -> bool:
        """Whether a path to here leads over another state."""
        node = self
        while node.depth > other.depth:
            assert node.parent is not None, "only the first state has none"
            node = node.parent
        return node is other

    def find_arrays(self) -> tuple[int, ...]:
        """The places of all results so far, in order."""
        steps = [each for each in self.path() if type(each.step) is not Form]
        self.arrays = tuple(
            [at for each in steps for at, form in enumerate(each.forms, each.start) if form is not None]
        )
        return self.arrays

    def leaves(self) -> Iterator[int]:
        """The places of arrays with values and of numbers."""
        for node in self.path():
            if type(node.step) is Form:
                yield node.start
            else:
                yield from node.numbers()

    def numbers(self) -> range:
        """The places of the step's numbers, which follow those of its results."""
        return range(self.count - numbers_of(self.step), self.count)


class TapePlan:
    """The plan for tapes of one state. forms: those of the results, once they are known. repeats: calls on a device.

    may_fail: whether it may fail after a write, for other reasons than a lack of memory. is_plain: whether it writes
    nothing and runs on the host; pick: takes the values of leaves and the numbers from the slots of a tape. late: the
    leaves that cannot be copied, by number, with the depths of the states that need them so.
    """

    __slots__ = ("__weakref__", "forms", "is_plain", "late", "leaves", "may_fail", "pick", "plan", "repeats")

    def __init__(
        self, plan: FusedPlan, leaves: tuple[int, ...], may_fail: bool, is_there: bool, late: Mapping[int, int]
    ) -> None:
        """is_there: whether it runs on a device."""
        from fusec.fusion.trace.numbers import picking

        self.plan, self.leaves, self.may_fail, self.late = plan, leaves, may_fail, late
        plan.is_careful = True
        self.is_plain, self.pick = not (plan.writes or is_there), picking(leaves)
        self.forms: tuple[Form, ...] | None = None
        self.repeats: DeviceRepeats | None = None

    def apart(self, flat: list[Any]) -> list[Any]:
        """The leaves and numbers with copies of those that share memory with written ones, if copies will do."""
        written = [flat[at] for at in self.plan.writes]
        found = [*flat]
        for at, each in enumerate(flat):
            if at not in self.late and type(each) is np.ndarray and any(np.may_share_memory(each, x) for x in written):
                found[at] = each.copy(order="K")
        return found


class Trie:
    """All states, and the plans of those that have been evaluated."""

    __slots__ = ("nodes", "plans", "root")

    def __init__(self) -> None:
        self.root, self.nodes = TapeState(None, None, ()), 0
        self.plans: Recent[Any, TapePlan] = Recent(MAX_PLANS)

    def keep(self, key: Any, found: TapeState) -> TapeState:
        """Add a state behind its parent; return the one that is there."""
        return self.note_state(key, found)[0]  # type: ignore[no-any-return]

    def note_state(self, key: Any, found: TapeState) -> tuple[Any, ...]:
        """The same; return the entry that is there."""
        assert found.parent is not None, "the first state is there"
        return self.note(found.parent, key, (found, found.start, found.forms[0]))

    def note(self, node: TapeState, key: Any, step: tuple[Any, ...]) -> tuple[Any, ...]:
        """Add an entry to a state, unless it has one. Returns its entry."""
        self.count()
        return node.setdefault(key, step)  # type: ignore[no-any-return]

    def count(self) -> None:
        """Count an entry, or a step that a state refuses. Beyond the limit, all states are forgotten."""
        with locks.lock:
            self.nodes += 1
            if self.nodes > MAX_NODES:
                self.root, self.nodes = TapeState(None, None, ()), 0


TRIE = Trie()
