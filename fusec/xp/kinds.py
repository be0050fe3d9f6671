"""What tapes that differ in extents have in common.

Note [Kinds]: a program that runs on arrays of many sizes has other states for each size, but it is traced and planned
only for the first one. States are of one kind if they differ only in the extents of their leaves, and agree in which of
these are 0, 1 or equal to each other. A kind knows what its steps make of shapes, and what must be true of these
(`StepRule`). It also knows the traced plans from which plans for other extents are made (`PlanTemplate` of
fusec/fusion/schedule/resizing.py). A rule may hold for some extents only. So each rule leads to a kind of its own,
whose rules hold where all rules before them hold. A trace may continue behind rules that another trace has found. These
do not state the conditions of this trace. So its next rule states the conditions of all its steps so far.

Each rule, leaf and refused step of a kind belongs to a state that was made for it. So kinds have no more of these than
states have entries, and all are forgotten when states are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.base.recent import Recent
from fusec.xp.forms import CPU, Form, as_number, form, form_of

if TYPE_CHECKING:
    from fusec.fusion.trace.conditions import Condition
    from fusec.fusion.trace.derived import CallShapes, Derived

MAX_RULES = 4  # of a step
MAX_PLANS = 512  # from which plans for other extents are made
Pair = tuple["Derived", "Derived"]


class TapeKind:
    """What states that differ only in extents have in common.

    leaves: the kinds behind another leaf, by dtype, gaps and extents. rules: those of traced steps, by key. refused:
    steps that cannot be taken, and why.
    """

    __slots__ = ("leaves", "refused", "rules")

    def __init__(self) -> None:
        self.leaves: dict[Any, TapeKind] = {}
        self.rules: dict[Any, list[StepRule]] = {}
        self.refused: dict[Any, Any] = {}

    def add(self, key: Any, rule: StepRule) -> TapeKind | None:
        """The kind behind a traced step; None if the step has too many rules."""
        rules = self.rules.setdefault(key, [])
        if len(rules) == MAX_RULES:
            return None
        rules.append(rule)
        return rule.behind


class Kinds:
    """Kinds behind leaves, and the plans from which others are made."""

    def __init__(self) -> None:
        self.plans: Recent[Any, Any] = Recent(MAX_PLANS)  # by kind and the places in use

    def behind_leaf(self, kind: TapeKind, leaf: Form, extents: dict[int, int]) -> TapeKind | None:
        """The kind behind a leaf; None if the leaf belongs to none. extents: those of the leaves so far, numbered."""
        if leaf.device != CPU:
            return None
        from fusec.arguments.layouts import gaps_of  # which the namespace itself does not need

        gaps = () if leaf.strides is None else gaps_of(leaf.shape, leaf.strides, leaf.dtype.itemsize)
        if gaps is None:
            return None
        key = (leaf.dtype, gaps, *[extents.setdefault(each, len(extents)) for each in leaf.shape])
        return kind.leaves.get(key) or kind.leaves.setdefault(key, TapeKind())


def outline_of(leaf: Form) -> Any:
    """An outline of an array of a form, whose elements may not be read."""
    if leaf.strides is None:
        return leaf
    from fusec.arguments.operands import strided

    return strided(np.empty(1, leaf.dtype), leaf.shape, leaf.strides)


KINDS = Kinds()


class StepRule:
    """What a step makes of shapes.

    results: shapes or views, each with its dtype, and whether NumPy has a number instead; None for a number or a
    missing result. conditions, pairs: what must be true. together, writes, may_fail: as in `TapeState`. behind: the
    kind behind the step.
    """

    __slots__ = ("behind", "conditions", "may_fail", "pairs", "results", "together", "writes")

    def __init__(
        self, results: Sequence[tuple[Any, Derived, bool] | None], conditions: Sequence[Condition],
        pairs: Sequence[Pair], together: Any, writes: tuple[int, ...],
    ) -> None:  # fmt: skip
        self.results, self.conditions, self.pairs = results, conditions, pairs
        self.together, self.writes, self.may_fail, self.behind = together, writes, False, TapeKind()

    def forms(self, shapes: CallShapes) -> tuple[Form | None, ...] | None:
        """The forms of the results for leaves of these shapes; None if the step must be traced for them."""
        from fusec.fusion.trace.conditions import hold
        from fusec.fusion.trace.derived import OtherShapesError

        try:
            if not hold(shapes, self.conditions, self.pairs):
                return None
            return tuple([None if each is None else _form(each, shapes) for each in self.results])
        except (OtherShapesError, ValueError, IndexError):  # the trace says what is wrong
            return None


def _form(result: tuple[Any, Derived, bool], shapes: CallShapes) -> Form:
    dtype, rule, is_number = result
    found = shapes.of(rule)
    made = form(dtype, found) if type(found) is tuple else form_of(found)
    return as_number(made) if is_number else made
