"""What tapes of other extents have in common.

Note [Kinds]: a program that runs on arrays of many sizes comes to other states with each of them, but only the first
time is anything traced or planned. States that differ in the extents of their leaves alone, and agree in which of these
are 0, 1 or equal to each other, are of one kind. A kind knows what its steps make of shapes, and what must be true of
them (`StepRule`), and the traced plans that make those of other extents (`PlanTemplate` of
fusec/fusion/schedule/resizing.py). What depends on extents in other ways is traced for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fusec.base import locks
from fusec.base.recent import Recent
from fusec.xp.forms import CPU, Form, form, form_of

if TYPE_CHECKING:
    from fusec.fusion.trace.conditions import Condition
    from fusec.fusion.trace.extents import CallShapes, Derived

MAX_KINDS = 1 << 14  # they begin again beyond
MAX_PLANS = 512  # that make plans for other extents
Pair = tuple["Derived", "Derived"]


class TapeKind:
    """What all states have in common that differ in extents alone. behind: the next kinds, by key of the step;
    rules: of steps that were traced, or why they are none.
    """

    __slots__ = ("behind", "rules")

    def __init__(self) -> None:
        self.behind: dict[Any, TapeKind] = {}
        self.rules: dict[Any, Any] = {}


class Kinds:
    """All kinds, and the plans that make others."""

    def __init__(self) -> None:
        self.root, self.count = TapeKind(), 0
        self.plans: Recent[Any, Any] = Recent(MAX_PLANS)  # by kind and the places in use

    def after(self, kind: TapeKind, key: Any) -> TapeKind:
        """The kind behind a step."""
        found = kind.behind.get(key)
        if found is not None:
            return found
        with locks.lock:
            self.count += 1
            if self.count > MAX_KINDS:
                self.root, self.count = TapeKind(), 0
        return kind.behind.setdefault(key, TapeKind())

    def behind_leaf(self, kind: TapeKind, leaf: Form, extents: dict[int, int]) -> TapeKind | None:
        """The kind behind a leaf; None of one that shares none. extents: of the leaves so far, numbered."""
        if leaf.strides is not None or leaf.device != CPU:
            return None
        return self.after(kind, (leaf.dtype, *[extents.setdefault(each, len(extents)) for each in leaf.shape]))


KINDS = Kinds()


class StepRule:
    """What a step makes of shapes. results: shapes or views, each with its dtype; None for numbers and for no result;
    conditions, pairs: what must be true; together, writes: as those of `TapeState`.
    """

    __slots__ = ("conditions", "pairs", "results", "together", "writes")

    def __init__(
        self, results: Sequence[tuple[Any, Derived] | None], conditions: Sequence[Condition], pairs: Sequence[Pair],
        together: Any, writes: tuple[int, ...],
    ) -> None:  # fmt: skip
        self.results, self.conditions, self.pairs = results, conditions, pairs
        self.together, self.writes = together, writes

    def forms(self, shapes: CallShapes) -> tuple[Form | None, ...] | None:
        """The forms of the results for such leaves; None if the step must be traced for them."""
        from fusec.fusion.trace.extents import OtherShapesError, agree

        try:
            if not all(each.check(shapes) for each in self.conditions) or not agree(self.pairs, shapes):
                return None
            return tuple([None if each is None else _form(each[0], shapes.of(each[1])) for each in self.results])
        except (OtherShapesError, ValueError, IndexError):  # the trace says what is wrong
            return None


def _form(dtype: Any, found: Any) -> Form:
    return form(dtype, found) if type(found) is tuple else form_of(found)
