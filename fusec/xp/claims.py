"""Who may record the next step of a tape.

Note [Claims]: threads record on one tape without a lock. Whoever puts something into the slot of the next place, by
`dict.setdefault`, which is atomic, has claimed the step. It then looks whether its claim is still there, fills the
slots and moves the tape to its new node, all without a call of Python: neither a signal nor another thread comes
between that look and the move. Others find the slot taken, wait for the move, and begin again from the node that they
find then. Whoever puts an `Owner` there has the tape for itself: it evaluates it, or moves all of it to another tape.
So the next place owns `node`, `places` and `written`, which change together: a step is taken with all
that belongs to it, such as numbers and what it writes, or not at all. `run` and `shapes` belong to who has
`fusec.base.locks.lock`, under which new steps are traced. A step is traced only while its place is free, since others
would record other steps there, for which a trace begins from the first step.

A claim whose thread was interrupted would stay for ever. So whoever has waited for a while frees the place. That is
safe even if the claim is alive, of a slow thread or of the frame that the handler of a signal has interrupted: the
claimer sees that its claim is gone and begins again, behind the steps that came between.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from itertools import starmap
from operator import call
from threading import get_ident
from typing import Any

PATIENCE = 100  # looks at a place that is taken, before it is freed
PAUSE = 1e-4  # seconds between looks


class MovedError(Exception):
    """The arrays of a tape have been evaluated, or are on another tape now."""


class Owner:
    """What a thread puts into a slot to have the tape for itself."""

    __slots__ = ("thread",)

    def __init__(self) -> None:
        self.thread = get_ident()


def took(slots: dict[int, Any], start: int, holder: Any, changes: Iterable[tuple[Any, ...]]) -> bool:
    """Claim a place and make changes, all or none. Whether the place was free.

    changes: calls of builtins, each with its arguments, that allocate nothing: in some versions of Python, to allocate
    may be to collect garbage, and thus to run other threads.
    """
    run_all: Any = deque(maxlen=0).extend
    calls = starmap(call, changes)
    slots.setdefault(start, holder)
    if start in slots and slots[start] is holder:  # one call of C makes all changes
        run_all(calls)
        return True
    return False


def stand_by(tape: Any, node: Any, is_recording: bool = True) -> None:
    """Wait until another thread, which has claimed the place behind a state, has moved the tape on; free it at last.

    Raises MovedError if that thread has the tape for itself and the caller records a step.
    """
    slots, at = tape.slots, node.count
    claim = slots.get(at)
    for look in range(PATIENCE):
        if tape.node is not node or claim is None:
            return
        if claim.__class__ is Owner:
            if is_recording:
                tape.wait()
                raise MovedError
            return
        time.sleep(PAUSE if look > 10 else 0)  # each time the other thread may go on
        before, claim = claim, slots.get(at)
        if claim is not before and claim.__class__ is not Owner:
            return
    is_stale = claim.__class__ is not Owner and tape.node is node
    if is_stale and at in slots and slots[at] is claim:  # no call until it is freed
        del slots[at]
