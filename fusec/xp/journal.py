"""Evaluations that write: all of an evaluation or nothing of it, whenever it is interrupted.

Note [Interrupts]: the handler of a signal may raise an error between any two instructions of Python, but not within a
call of C. So what must not be torn apart is one call of C: results come into the list of a journal by the call that
computes them, and arrays get their values by `at_once`. While the list is empty, an evaluation has not happened, and
what it may have written is undone from copies. Once a result is there, the evaluation has happened, and whoever comes
next gives the arrays their values. A builtin writes within one call and needs no copies.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import starmap
from operator import call, setitem
from types import BuiltinFunctionType
from typing import Any

import numpy as np


class Journal:
    """What an evaluation has done that writes.

    used: the arrays in use, each behind its place. planned: the plan.
    """

    __slots__ = ("kept", "planned", "results", "used")

    def __init__(self, planned: Any, used: Sequence[tuple[int, Any]]) -> None:
        self.planned, self.used = planned, used
        self.kept: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []  # what is written, and a copy
        self.results: list[Any] = []  # one, once all is computed

    def run(self, function: Callable[..., Any], given: Iterable[Any]) -> None:
        """Call a function, and note its result."""
        self.results.extend(starmap(function, (given,)))

    def keep(self, values: Sequence[Any], needed: bool) -> None:
        """Copy what will be written. Raises MemoryError if the copies are needed, since the evaluation may fail."""
        try:
            self.kept = [(each, each.copy()) for each in values if each.flags.writeable]
        except MemoryError:
            if needed:
                raise

    def undo(self) -> None:
        """Write the old elements."""
        at_once([(setitem, value, ..., copy) for value, copy in self.kept])


def is_one_call(function: Any) -> bool:
    """Whether a function cannot be interrupted."""
    return type(function) is BuiltinFunctionType


def at_once(calls: Iterable[tuple[Any, ...]]) -> None:
    """Call builtins, all or none: each call is a builtin and its arguments."""
    deque(starmap(call, [*calls]), maxlen=0)
