"""The ranges of integer locals at each point of a function: interval analysis over structured statements.

State is a mapping from locals to bounds; a local that is not in it may have any value of its dtype. All functions keep
it in a `BoundsOf`, which prices expressions by it. Loops are entered with bounds that hold in every round, found by
running the body until nothing changes; bounds that keep moving jump to what the condition compares with, then to the
end of the dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fusec.base.dtypes import BOOL, DType
from fusec.base.ops import MIRRORED, NEGATED
from fusec.codegen.c_family.bounds import Bounds, BoundsOf, dtype_bounds, is_whole
from fusec.ir import loops as ir
from fusec.ir.expr import Apply, Expr, scalar_type, type_of
from fusec.ir.walk import changed_names, inner_first, locals_of, statements

State = dict[str, Bounds]
ROUNDS = 8  # of a loop's analysis; a loop that needs more is entered knowing nothing of what it changes
DEPTH = 3  # loops inside each other that are analysed; each multiplies the rounds


class LoopBounds(NamedTuple):
    """What holds where the condition is tested, where the body starts, before the step, and after the loop."""

    test: State
    body: State
    step: State
    after: State


def pass_by(bounds: BoundsOf, stmt: ir.Stmt) -> None:
    """Update the known ranges to those after a statement."""
    _BoundsWalk(bounds).statement(stmt)


def analyse(bounds: BoundsOf, loop: ir.While) -> LoopBounds:
    """The ranges in a loop that is about to be entered; `bounds` is not changed."""
    before = dict(bounds.locals)
    found, _ = _BoundsWalk(bounds).loop(loop)
    bounds.restore(before)
    return found


def assume(bounds: BoundsOf, condition: Expr, holds: bool) -> None:
    """Add what a condition says about locals where it holds, or where it does not."""
    match condition:
        case Apply("logical_not", (inner,)):
            assume(bounds, inner, not holds)
        case Apply("logical_and" | "bitwise_and", (left, right), dtype) if holds and dtype == BOOL:
            assume(bounds, left, True)
            assume(bounds, right, True)
        case Apply("logical_or" | "bitwise_or", (left, right), dtype) if not holds and dtype == BOOL:
            assume(bounds, left, False)
            assume(bounds, right, False)
        case Apply(op, (left, right)) if op in NEGATED and is_whole(type_of(left)):
            op = op if holds else NEGATED[op]
            first, second = _bounds(bounds, left), _bounds(bounds, right)
            _narrow(bounds, left, op, second)
            _narrow(bounds, right, MIRRORED.get(op, op), first)


def _bounds(bounds: BoundsOf, value: Expr) -> Bounds:
    """From the operands up, so that recursion stays shallow."""
    for node in inner_first([value]):
        if is_whole(type_of(node)):
            bounds(node)
    return bounds(value)


def _narrow(bounds: BoundsOf, value: Expr, op: str, other: Bounds) -> None:
    """`value op other` holds; `value` may be a local behind conversions that keep its value."""
    while isinstance(value, Apply) and value.op == "convert" and _keeps(value.args[0], value.type):
        value = value.args[0]
    if not isinstance(value, ir.Local):
        return
    low, high = bounds(value)
    match op:
        case "less":
            high = min(high, other[1] - 1)
        case "less_equal":
            high = min(high, other[1])
        case "greater":
            low = max(low, other[0] + 1)
        case "greater_equal":
            low = max(low, other[0])
        case "equal":
            low, high = max(low, other[0]), min(high, other[1])
        case _ if other[0] == other[1]:  # not equal to a constant: that trims an end
            low, high = low + (low == other[0]), high - (high == other[0])
    if low <= high:
        bounds.learn(value.name, (low, high))


def _keeps(source: Expr, target: DType) -> bool:
    found = type_of(source)
    if not isinstance(found, DType) or not is_whole(found) or not is_whole(target):
        return False
    inner, outer = dtype_bounds(found), dtype_bounds(target)
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _joined(states: Sequence[State]) -> State | None:
    """What holds wherever one of the states does; None for none."""
    if not states:
        return None
    first, *others = states
    result = dict(first)
    for state in others:
        for name in list(result):
            if name in state:
                low, high = result[name]
                result[name] = min(low, state[name][0]), max(high, state[name][1])
            else:
                del result[name]
    return result


class _BoundsWalk:
    """Runs statements over bounds; `breaks` and `continues` collect what holds where these leave the innermost loop."""

    def __init__(self, bounds: BoundsOf, depth: int = 0) -> None:
        self.bounds, self.depth = bounds, depth
        self.breaks: list[State] = []
        self.continues: list[State] = []

    def block(self, body: Sequence[ir.Stmt]) -> bool:
        """Run statements in order; False if their end is not reached."""
        return all(self.statement(stmt) for stmt in body)

    def statement(self, stmt: ir.Stmt) -> bool:
        """Run one statement; False if its end is not reached."""
        match stmt:
            case ir.Declare(name, dtype, value):
                if is_whole(dtype):
                    self.bounds.learn(name, (0, 0) if value is None else _bounds(self.bounds, value))
            case ir.Assign(name, value):
                if is_whole(type_of(value)):
                    self.bounds.learn(name, _bounds(self.bounds, value))
            case ir.Atomic(result=name) | ir.AtomicLoad(name) | ir.CallStatement(result=name) | ir.Shuffle(name):
                self.bounds.forget(name)
            case ir.If():
                return self.branches(stmt)
            case ir.While():
                found, ends = self.loop(stmt)
                self.bounds.restore(found.after)
                return ends
            case ir.Break():
                self.breaks.append(dict(self.bounds.locals))
                return False
            case ir.Continue():
                self.continues.append(dict(self.bounds.locals))
                return False
            case ir.Return():
                return False
        return True

    def branches(self, stmt: ir.If) -> bool:
        """Run both branches, each where its side of the condition holds."""
        before, ends = dict(self.bounds.locals), []
        for holds, body in ((True, stmt.then), (False, stmt.orelse)):
            self.bounds.restore(before)
            assume(self.bounds, stmt.condition, holds)
            if self.block(body):
                ends.append(dict(self.bounds.locals))
        self.bounds.restore(_joined(ends) or {})
        return bool(ends)

    def loop(self, loop: ir.While) -> tuple[LoopBounds, bool]:
        """What holds where in a loop, and whether its end is reached."""
        changed = changed_names((loop,))
        head = dict(self.bounds.locals)
        for _ in range(ROUNDS if self.depth < DEPTH else 0):
            found, back, ends = self.round(loop, head)
            merged = _joined([head, back]) if back is not None else head
            if merged == head:
                return found, ends
            head = self.widened(loop, head, merged or {})
        found, _, ends = self.round(loop, {name: known for name, known in head.items() if name not in changed})
        return found, ends

    def round(self, loop: ir.While, head: State) -> tuple[LoopBounds, State | None, bool]:
        """One round from `head`: what holds where, what holds at the head again, and whether the loop ends."""
        inner = _BoundsWalk(self.bounds, self.depth + 1)
        test = head if loop.test_first else {}
        exits: list[State] = []
        self.bounds.restore(head)
        if loop.test_first:
            exits.append(self.left(loop))
            assume(self.bounds, loop.condition, True)
        body = dict(self.bounds.locals)
        if inner.block(loop.body):
            inner.continues.append(dict(self.bounds.locals))
        step = _joined(inner.continues)
        back = None
        if step is not None:
            self.bounds.restore(step)
            self.block(loop.step)
            if not loop.test_first:
                test = dict(self.bounds.locals)
                exits.append(self.left(loop))
                assume(self.bounds, loop.condition, True)
            back = dict(self.bounds.locals)
        after = _joined([*exits, *inner.breaks])
        return LoopBounds(test, body, step or {}, after or {}), back, after is not None

    def left(self, loop: ir.While) -> State:
        """What holds where the condition has just failed; `bounds` is left as it is."""
        before = dict(self.bounds.locals)
        assume(self.bounds, loop.condition, False)
        after = dict(self.bounds.locals)
        self.bounds.restore(before)
        return after

    def widened(self, loop: ir.While, old: State, new: State) -> State:
        """Bounds beyond those that moved: the next number the condition compares with, else the end of the dtype."""
        limits = self.limits(loop)
        dtypes = {each.name: each.value for each in statements((loop,)) if isinstance(each, ir.Assign)}
        result: State = {}
        for name, (low, high) in new.items():
            full = dtype_bounds(scalar_type(dtypes[name])) if name in dtypes else None
            if (low, high) != old[name]:
                if full is None:
                    continue
                low = low if low == old[name][0] else max((n for n in limits if n <= low), default=full[0])
                high = high if high == old[name][1] else min((n for n in limits if n >= high), default=full[1])
                low, high = max(low, full[0]), min(high, full[1])
            result[name] = low, high
        return result

    def limits(self, loop: ir.While) -> set[int]:
        """The numbers around all bounds of what the condition compares the changing locals with."""
        changed = changed_names((loop,))
        compared = (node for node in inner_first([loop.condition]) if isinstance(node, Apply) and node.op in NEGATED)
        fixed = (
            arg for node in compared for arg in node.args if is_whole(type_of(arg)) and not locals_of((arg,)) & changed
        )
        return {end + around for arg in fixed for end in _bounds(self.bounds, arg) for around in (-1, 0, 1)}
