"""Tapes that meet: one of them takes over all that the other has recorded, and its arrays."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from operator import setitem
from typing import Any
from weakref import ref

from fusec.xp.claims import MovedError, Owner, took
from fusec.xp.forms import Form
from fusec.xp.journal import at_once
from fusec.xp.sharing import register
from fusec.xp.steps import Operation, moved
from fusec.xp.tape import Tape
from fusec.xp.trie import TRIE, TapeState

Joint = tuple[TapeState, tuple[tuple[int, int], ...], tuple[tuple[int, int], ...], tuple[int, ...]]
"""The state after all that another tape has recorded; the new places of what is not there, and of the arrays among it;
those of all its leaves."""

_joining: Any = threading.RLock()
"""Held while one tape takes over another. It is taken before the lock that forks wait for, if both are."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_joining.acquire, after_in_parent=_joining.release, after_in_child=_joining.release)


def absorb(tape: Tape, *others: Tape) -> None:
    """Take over all that other tapes have recorded. Raises MovedError, and BeingComputed."""
    new = [each for each in others if not has_taken(tape, each)]
    if not new:
        return
    owner = Owner()
    with _joining:  # without the compilers' lock, which a thread that evaluates one of the tapes may need
        try:
            here, *nodes = [each.frozen(owner) for each in (tape, *new)]
            is_free = None not in nodes
            if here is not None and is_free:
                _take_over(tape, tape.draft(here), list(zip(new, nodes, strict=True)))
        finally:
            for each in (tape, *new):
                each.release(owner)
    if here is None or not is_free:
        for each in (tape, *new):
            each.wait()
        raise MovedError
    for each in new:
        each.close()


def both(one: Tape, other: Tape) -> Tape | None:
    """Two tapes joined into one; None if another thread has one of them."""
    if other.node.depth > one.node.depth:
        one, other = other, one
    if has_taken(one, other):
        return one
    try:
        absorb(one, other)
    except MovedError:
        return None
    return one


def _take_over(tape: Tape, draft: Tape, others: Iterable[tuple[Tape, Any]]) -> None:
    """Take over all or nothing, so that no write is recorded twice. Note [Interrupts] in `fusec/xp/journal.py`.

    draft: a copy of the tape, made once. others: tapes with their states.
    """
    changes: list[tuple[Any, ...]] = []
    for other, node in others:
        for at, place in enumerate(_taken_over(draft, other, node)):
            one = other.slots[at]
            if type(one) is ref and (array := one()) is not None:
                changes += [(setattr, array, "_at", place), (setattr, array, "_tape", tape)]
        changes.append((setattr, other, "is_closed", True))
    names = ("slots", "places", "written", "shapes", "run")
    changes += [(setattr, tape, name, getattr(draft, name)) for name in names]
    if draft.written:
        register(tape)
    at_once([*changes, (setattr, tape, "node", draft.node)])


def has_taken(tape: Tape, other: Tape) -> bool:
    """Take over what was taken over at this state before, all at once; whether that was possible."""
    here, node, places, slots, held = tape.node, other.node, tape.places, tape.slots, other.slots
    found: Joint | None = here.get((node.mark, *map(places.get, [*other.places])))
    if found is None or node.count in held:
        return False
    after, moves, arrays, leaves = found
    owner = Owner()
    try:
        if other.frozen(owner) is not node or other.slots is not held:
            return False
        changes: list[tuple[Any, ...]] = [(setitem, slots, place, held[at]) for at, place in moves]
        changes.append((places.update, dict(zip(other.places, leaves))))  # noqa: B905 - there are as many
        for at, place in arrays:
            each = held[at]
            if each.__class__ is ref and (array := each()) is not None:
                changes += [(setattr, array, "_at", place), (setattr, array, "_tape", tape)]
        changes += [(setattr, other, "is_closed", True), (setattr, tape, "node", after)]
        return tape.slots is slots and took(slots, here.count, object(), changes)
    finally:
        other.release(owner)


def _taken_over(tape: Tape, other: Tape, node: TapeState) -> list[int]:
    """Take another tape's steps one by one; their new places. They are noted if no other step comes between."""
    here, to = tape.node, list[int]()
    key = (node.mark, *map(tape.places.get, other.places))
    is_plain = True
    for each in node.path():
        if type(each.step) is Form:
            to.append(tape.leaf(other.slots[each.start], each.step))
        else:
            held = [other.slots[at] for at in range(each.start, each.count)]
            step = moved(each.step, to)
            after = tape.take(step.key if type(step) is Operation else step, step, held)
            to += range(after.start, after.count)
        is_plain = is_plain and not each.writes
    after = tape.node
    moves = tuple([(at, place) for at, place in enumerate(to) if place >= here.count])
    if is_plain and after.is_behind(here) and len(moves) == after.count - here.count > 0:
        arrays = tuple([(at, to[at]) for at in node.arrays or node.find_arrays() if to[at] >= here.count])
        TRIE.note(here, key, (after, moves, arrays, tuple([to[at] for at in other.places.values()])))
    return to
