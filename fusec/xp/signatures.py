"""Calls that were recorded before, found again by what was passed, before any argument is made plain.

Note [Signatures]: a function of the namespace checks and completes its arguments before it records a step. What comes
of that depends on the state of the tape, the places of arrays and the other arguments alone. So the state keeps the
step under those, too, and the next such call takes it with one look-up. A call is kept only if it has recorded exactly
one step, with one array, and no element was looked at meanwhile.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast
from weakref import ref

import numpy as np

from fusec.xp.recording import LOOKS, Recorded
from fusec.xp.tape import WRITTEN

F = TypeVar("F", bound=Callable[..., Any])

CHECKED: list[None] = []
"""One entry for each block, in any thread, in which functions check their operands first: no step is found before."""

MAX_ITEMS = 32  # of a list or tuple among the arguments
PLAIN = frozenset(
    {int, bool, str, type(None), type, type(...), np.ufunc, type(np.sum)}
    | {type(np.dtype(each)) for each in "?bhilqBHILQefdFD"}
)
"""Types whose equal values are the same argument."""

_new: Callable[[type], Any] = Recorded.__new__


def repeated(function: F) -> F:
    """The function, whose steps are found again before it runs."""

    @functools.wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        key: list[Any] = [run]
        tape = _signed(key, args, None)
        if options and tape is not MISSED:
            for name, each in options.items():
                key.append(name)
                tape = _signed(key, (each,), tape)
                if tape is MISSED:
                    break
        if tape is MISSED or tape is None or CHECKED:
            return function(*args, **options)
        node, found = tape.node, tuple(key)
        step = node.get(found)
        if step is None:
            return _noted(function, args, options, (tape, node, found))
        after, start, form = step
        made = _new(Recorded.kind)
        made._tape, made._at, made._form = tape, start, form
        weak = ref(made)
        if tape.slots.setdefault(start, weak) is not weak:
            return function(*args, **options)
        tape.node = after
        return made

    return cast("F", run)


MISSED: Any = object()
"""Instead of a tape: the arguments have no signature."""


def _signed(key: list[Any], args: Any, tape: Any, nested: bool = False) -> Any:
    """Add arguments to a key: places of arrays; other values behind their types. The tape of all arrays, or MISSED."""
    own = Recorded.kind
    for each in args:
        kind = each.__class__
        if kind is own:
            there = each._tape
            if there is not tape or there is None:
                if there is None:
                    tape = _with_value(key, each, args, tape)
                    if tape is MISSED:
                        return MISSED
                    continue
                if tape is not None:
                    return MISSED
                tape = there
            key.append(each._at)
        elif kind in PLAIN:
            key += (kind, each)
        elif kind is slice:
            start, stop, step = each.start, each.stop, each.step
            for one in (start, stop, step):
                if one is not None and one.__class__ is not int:
                    return MISSED
            key += (slice, start, stop, step)
        elif (kind is tuple or kind is list) and not nested and len(each) <= MAX_ITEMS:
            key += (kind, len(each))
            tape = _signed(key, each, tape, nested=True)
            if tape is MISSED:
                return MISSED
        elif kind is float:  # 0.0 is equal to -0.0, and nan not to itself
            key += (float, each if each and each == each else repr(each))
        else:
            return MISSED
    return tape


def _with_value(key: list[Any], array: Any, args: Any, tape: Any) -> Any:
    """Add an array with a value, which is on the tape of another one; that tape, or MISSED."""
    if tape is None:
        tape = next((each._tape for each in args if each.__class__ is Recorded.kind and each._tape is not None), None)
    at = None if tape is None or WRITTEN else tape.places.get(id(array._value))
    if at is None:
        return MISSED
    key.append(at)
    return tape


def _noted(function: Callable[..., Any], args: Any, options: Any, signature: tuple[Any, Any, Any]) -> Any:
    """Call the function, and keep the step that it takes."""
    tape, node, key = signature
    looks = LOOKS[0]
    made = function(*args, **options)
    if made.__class__ is Recorded.kind and made._tape is tape and LOOKS[0] is looks:
        after = tape.node
        is_next = after.parent is node and made._at == after.start
        if is_next and after.alone and len(after.forms) == 1 and not after.writes:
            node[key] = (after, after.start, after.forms[0])
    return made
