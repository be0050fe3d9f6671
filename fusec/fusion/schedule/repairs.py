"""Values that get a buffer so that a schedule is right or good: what is read too late, and what kernels share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import prod

import numpy as np

from fusec.base.dtypes import compute_type
from fusec.base.records import replace
from fusec.frontends.python.values import Scalar
from fusec.fusion.memory.slots import replayed
from fusec.fusion.schedule.groups import Group, Shape, extents_of
from fusec.fusion.trace import trace_values as t
from fusec.fusion.trace.elsewhere import frames_of
from fusec.fusion.trace.sizes import is_expensive_op, size_of
from fusec.fusion.trace.trace import Trace, common_phantom, widened
from fusec.ir.expr import Apply, Expr, scalar_type
from fusec.ir.graph import Input, Neighbour, Position, Taken
from fusec.ir.walk import inner_first

SEVERAL = -1  # kernels that need a value
OFTEN = 4  # computations of an element that cost more than to store it, if it takes a division
SHARED = "several kernels need it, and it is costly to compute"
REPEATED = f"each element would be divided {OFTEN} times or more"


def copy_before(trace: Trace, first: t.Write, leaf: t.Leaf) -> t.Define:
    """Copy what a leaf reads before its memory is written; later statements read the copy."""
    assert leaf.buffer is not None, "numbers stay"
    at = trace.statements.index(first)
    value = trace.leaf(leaf.buffer, leaf.steps, leaf.phantom, leaf.version)
    trace.notes.append(f"an array of shape {leaf.phantom.shape} is copied, since it is read after it has changed")
    buffer = trace.temporary(leaf.phantom, leaf.buffer.dtype)
    known: dict[Expr, Expr] = {leaf.input: read_of(trace, buffer, (), leaf.is_whole)}
    for statement in trace.statements[at + 1 :]:
        change(statement, known)
    if first.value.phantom.shape != leaf.phantom.shape:
        change(first, known)
    found = t.Define(buffer, value)
    trace.statements.insert(at, found)
    return found


def read_of(trace: Trace, buffer: t.Buffer, steps: tuple[t.Step, ...], is_whole: bool) -> Input:
    """What reads a view of a buffer. is_whole: elements of it are taken elsewhere than at the position at hand."""
    value = trace.leaf(buffer, steps, replayed(buffer, steps))
    (name,) = t.leaves_of(value.expr)
    return trace.whole(trace.leaves[name], value).input if is_whole else name


def change(statement: t.Statement, known: dict[Expr, Expr]) -> bool:
    """Let a statement use other values in place of known ones, which grow; whether it did use some."""
    if isinstance(statement, t.LibraryCall):
        operands = [known.get(each, each) for each in statement.operands]
        is_changed = any(new is not old for new, old in zip(operands, statement.operands, strict=True))
        statement.operands = operands  # type: ignore[assignment]
        return is_changed
    value = statement.value
    found = t.replaced(value.expr, known)
    if found is not value.expr:
        statement.value = t.ArrayValue(replace(value.scalar, expr=found), value.phantom)
    return found is not value.expr


# --- what kernels share ----------------------------------------------------------------------------------------------


def computed_again(trace: Trace, groups: Sequence[Group]) -> list[Expr]:
    """The expensive values that several kernels compute, those within larger ones apart."""
    if len(groups) < 2:
        return []
    owners: dict[Expr, int] = {}
    for at, group in enumerate(groups):
        for part in inner_first(statement.value.expr for statement in group.statements):
            owners[part] = at if owners.get(part, at) == at else SEVERAL
    several = [part for part, at in owners.items() if at == SEVERAL]
    if not several:
        return []
    costly = _costly(trace, several)
    return outermost([part for part in several if part in costly])


def shared(trace: Trace, groups: Sequence[Group]) -> list[Expr]:
    """The same with those within larger ones that several kernels compute even if these are stored, inner ones first.

    A value that is stored is computed by the first kernel that needs it.
    """
    roots = [(at, statement.value.expr) for at, group in enumerate(groups) for statement in group.statements]
    parts = list(inner_first(root for _, root in roots))
    costly = _costly(trace, parts)
    first: dict[Expr, int] = {}
    last: dict[Expr, int] = {}
    for at, root in roots:
        first.setdefault(root, at)
        last[root] = at
    found = []
    for part in reversed(parts):
        low, high = first[part], last[part]
        if low != high and part in costly:
            found.append(part)
            high = low
        for child in part.children:
            first[child] = min(low, first.get(child, low))
            last[child] = max(high, last.get(child, high))
    return found[::-1]


def divided_again(trace: Trace, groups: Sequence[Group], often: int) -> list[Expr]:
    """The values with divisions that walks over larger arrays, or several kernels, compute `often` times an element.

    Inner values come first. A value within a larger one is among them if it is computed often even though the larger
    one is stored. A value that is constant along the last axis of a walk is computed once there.
    """
    if sum(prod(group.shape) for group in groups) < often * _fewest(trace, groups):
        return []
    walks: dict[Expr, dict[tuple[int, Shape], None]] = {}  # by value: its kernels, and the extents that they walk
    roots = []
    for at, group in enumerate(groups):
        for statement in group.statements:
            root = statement.value.expr
            if size_of(root).divides:
                roots.append(root)
                walks.setdefault(root, {})[at, extents_of(statement)] = None
    if not roots:
        return []
    by_shape = {group.shape: at for at, group in reversed([*enumerate(groups)]) if group.axes is None}
    found: list[Expr] = []
    for part in reversed([*inner_first(roots)]):  # users before their operands
        users = walks.get(part)
        if users is None:
            continue
        if isinstance(part, Apply) and part.op != "convert" and _is_stored_well(trace, part):
            shape = _shape_of(trace, part)
            counts: dict[int, int] = {}
            for at, walk in users:
                count = prod(walk) if _differs_inside(shape, walk) else prod(shape)
                counts[at] = max(count, counts.get(at, 0))
            if sum(counts.values()) >= often * max(prod(shape), 1):
                found.append(part)
                users = {(by_shape.get(shape, -1), shape): None}
        for child in _dividing(part):
            if child in walks:
                walks[child].update(users)
            else:
                walks[child] = users.copy()
    return found[::-1]


def outermost(parts: Sequence[Expr]) -> list[Expr]:
    """Those of some values that are not part of another one."""
    inside = set(inner_first(child for part in parts for child in part.children))
    return [part for part in parts if part not in inside]


def _fewest(trace: Trace, groups: Sequence[Group]) -> int:
    """The number of elements of the smallest array that kernels read; 1 if there is none."""
    exprs = (statement.value.expr for group in groups for statement in group.statements)
    leaves = (trace.leaves[name] for expr in exprs for name in size_of(expr).leaves)
    return max(1, min((leaf.phantom.size for leaf in leaves if leaf.buffer is not None), default=1))


def _dividing(expr: Expr) -> tuple[Expr, ...]:
    """The operands that have divisions at the position at hand."""
    return () if isinstance(expr, Taken) else tuple(each for each in expr.children if size_of(each).divides)


def _is_stored_well(trace: Trace, part: Apply) -> bool:
    """Whether a value divides, and is made of what memory holds at the position at hand."""
    size = size_of(part)
    is_here = size.divides and size.kinds.isdisjoint((Taken, Position, Neighbour))
    return is_here and any(trace.leaves[name].buffer is not None for name in size.leaves)


def _shape_of(trace: Trace, part: Expr) -> Shape:
    shapes = {trace.leaves[name].phantom.shape for name in size_of(part).leaves}
    return np.broadcast_shapes(*shapes) if len(shapes) > 1 else shapes.pop()


def _differs_inside(shape: Shape, walk: Shape) -> bool:
    """Whether values of a shape differ along the last axis of a walk that has more than one element."""
    last = next((at for at in range(1, 1 + len(walk)) if walk[-at] != 1), 0)
    return 0 < last <= len(shape) and shape[-last] != 1


def _costly(trace: Trace, parts: Iterable[Expr]) -> set[Expr]:
    """Those of some values, given with all their parts, that compute expensive operations on what memory holds."""
    expensive, reading, found = set[Expr](), set[Expr](), set[Expr]()
    for part in inner_first(parts):
        children = part.children
        if isinstance(part, Input):
            if trace.leaves[part].buffer is not None:
                reading.add(part)
            continue
        if any(each in reading for each in children):
            reading.add(part)
        if (isinstance(part, Apply) and is_expensive_op(part.op)) or any(each in expensive for each in children):
            expensive.add(part)
            if isinstance(part, Apply) and part in reading:
                found.add(part)
    return found


def store(trace: Trace, parts: Sequence[Expr], reason: str) -> Collection[t.Statement]:
    """Have buffers hold parts of values, inner ones first; the statements that have changed."""
    known: dict[Expr, Expr] = {}
    first: dict[t.Statement, list[t.Define]] = {}
    users = _users(trace, parts)
    for part in parts:
        dtype = scalar_type(part)
        inner = part.rebuild(tuple(t.replaced(child, known) for child in part.children))
        shape = common_phantom(frames_of(trace, inner), dtype)
        buffer = trace.temporary(shape, dtype)
        held = trace.leaf(buffer, (), buffer.phantom)
        known[part] = widened(t.leaves_of(held.expr)[0], compute_type(dtype))
        first.setdefault(users[part], []).append(t.Define(buffer, t.ArrayValue(Scalar(dtype, inner), shape)))
        trace.notes.append(f"a value of shape {shape.shape} is stored: {reason}")
    changed = {each for each in trace.statements if change(each, known)}
    trace.statements[:] = [new for each in trace.statements for new in (*first.get(each, ()), each)]
    return changed


def _users(trace: Trace, parts: Sequence[Expr]) -> dict[Expr, t.Statement]:
    """The first statement that computes each of some values."""
    found = dict[Expr, t.Statement]()
    seen: set[Expr] = set()
    wanted = set(parts)
    for statement in trace.statements:
        if not isinstance(statement, t.LibraryCall):
            for part in inner_first([statement.value.expr], seen):
                seen.add(part)
                if part in wanted:
                    found[part] = statement
    return found
