"""The states of all tapes: a trie whose edges are steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fusec.base import locks
from fusec.base.recent import Recent
from fusec.xp.forms import CPU, Form

if TYPE_CHECKING:
    from fusec.fusion.fused_plan import FusedPlan

MAX_NODES = 1 << 15  # the trie starts again beyond
MAX_PLANS = 256

EAGER: Any = object()
"""The entry of a step that cannot be traced: its operands are evaluated."""

NEEDS_NUMBER: Any = object()
"""The entry of a step that depends on the value of its number."""


class TapeState(dict[Any, Any]):
    """A state of tapes. Its entries are the next states, by key of the step, each with the place and form of its first
    result, which are all that recording asks for.

    start: the place of the first result of its step; forms: those of the results; None for a number among them;
    alone: whether the step has one result; writes: the places of arrays with values that it writes as the first one;
    refused: steps that cannot be taken, by key, and why. device: of all arrays, None before the first one;
    is_there: whether it is another one than the host's memory.
    """

    __slots__ = (
        "alone", "count", "depth", "device", "forms", "is_there", "parent", "plans", "refused", "start", "step",
        "writes",
    )  # fmt: skip

    def __init__(self, parent: TapeState | None, step: Any, forms: tuple[Form | None, ...], alone: bool = True) -> None:
        super().__init__()
        self.parent, self.step, self.forms, self.alone = parent, step, forms, alone
        self.start: int = 0 if parent is None else parent.count
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.count: int = self.start + len(forms)
        self.plans: dict[tuple[int, ...], TapePlan] = {}
        self.refused: dict[Any, Any] = {}
        self.writes: tuple[int, ...] = ()
        self.device: Any = step.device if type(step) is Form else None if parent is None else parent.device
        self.is_there = self.device not in (None, CPU)

    def behind(self, key: Any) -> Any:
        """The next state, or why there is none; None if that is not known."""
        found = self.get(key)
        return found[0] if found is not None else self.refused.get(key)

    def path(self) -> list[TapeState]:
        """All states after the first, in order."""
        found: list[TapeState] = []
        node = self
        while node.parent is not None:
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

    def leaves(self) -> Iterator[int]:
        """The places of arrays with values and of numbers."""
        for node in self.path():
            if type(node.step) is Form:
                yield node.start
            elif node.takes_number:
                yield node.start + 1

    @property
    def takes_number(self) -> bool:
        """Whether the step takes a number, whose place is behind the result's."""
        return type(self.step) is tuple and any(type(each) is type for each in self.step[1:])


class TapePlan:
    """What evaluates tapes of one state. forms: of the results, once they are known."""

    __slots__ = ("forms", "leaves", "plan")

    def __init__(self, plan: FusedPlan, leaves: tuple[int, ...]) -> None:
        self.plan, self.leaves = plan, leaves
        self.forms: tuple[Form, ...] | None = None


class Trie:
    """All states, and the plans of those that have been evaluated."""

    def __init__(self) -> None:
        self.root, self.nodes = TapeState(None, None, ()), 0
        self.plans: Recent[Any, TapePlan] = Recent(MAX_PLANS)

    def keep(self, key: Any, found: TapeState) -> TapeState:
        """Add a state behind its parent; return the one that is there."""
        assert found.parent is not None, "the first state is there"
        with locks.lock:
            self.nodes += 1
            if self.nodes > MAX_NODES:
                self.root, self.nodes = TapeState(None, None, ()), 0
        kept: TapeState = found.parent.setdefault(key, (found, found.start, found.forms[0]))[0]
        return kept


TRIE = Trie()
