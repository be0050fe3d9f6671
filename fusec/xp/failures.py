"""What can still be computed of a tape whose evaluation has failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import ref

from fusec.xp.forms import Form
from fusec.xp.steps import Operation, moved, read_by
from fusec.xp.trie import TRIE, TapeState

Used = Sequence[tuple[int, Any]]
"""Arrays in use, each behind its place."""


def evaluate_parts(tape: Any, node: TapeState) -> None:
    """Compute the arrays in use without steps that none of them needs; if that fails, those that do not fail."""
    used = tape._used()
    if _is_computed(tape, node, used):
        tape.close()
    elif not tape.written:
        good = [each for each in used if _is_computed(tape, node, [each], is_kept=False)]
        if good and _is_computed(tape, node, good):
            for at, _ in good:
                tape.slots[at] = object()


def _is_computed(tape: Any, node: TapeState, used: Used, is_kept: bool = True) -> bool:
    """Whether some arrays can be computed apart from all others. is_kept: they get these values."""
    part = None
    try:
        part = part_of(tape, node, used)
        if part is None:
            return False
        if is_kept:
            part._evaluate(part.node)
        else:
            found = part._used()
            part._results(part._planned(part.node, tuple([at for at, _ in found])), part.node, found)
    except Exception:
        if part is not None:
            part._settle()
        return False
    return True


def part_of(tape: Any, node: TapeState, used: Used) -> Any:
    """A tape with the steps that some arrays need, and all writes; None if these are all steps."""
    chosen = {at for at, _ in used}
    needed, kept = {*chosen}, []
    for each in reversed(path := node.path()):
        is_write = type(each.step) is not Form and not any(form is not None for form in each.forms)
        if is_write or not needed.isdisjoint(range(each.start, each.count)):
            kept.append(each)
            needed.update(() if type(each.step) is Form else read_by(each.step))
    if len(kept) == len(path):
        return None
    part, to = type(tape)(TRIE.root, {}, {}), [-1] * node.count
    part.is_closed = True  # so that no other thread finds it
    for each in reversed(kept):
        held = [tape.slots[at] for at in range(each.start, each.count)]
        if type(each.step) is Form:
            to[each.start] = part.leaf(held[0], each.step)
            continue
        others = [type(one) is ref and at not in chosen for at, one in enumerate(held, each.start)]
        held = [object() if is_other else one for is_other, one in zip(others, held, strict=True)]
        step = moved(each.step, to)
        after = part.take(step.key if type(step) is Operation else step, step, held)
        to[each.start : each.count] = range(after.start, after.count)
    return part
