"""Calls that were recorded before, found again by what was passed, before any argument is made plain.

Note [Signatures]: a function of the namespace checks and completes its arguments before it records a step. What comes
of that depends on the state of the tape, the places of arrays and the other arguments alone. So the state keeps the
step under those, too, and the next such call takes it with one look-up. A call is kept only if it has recorded exactly
one step, with one array, and no element was looked at meanwhile.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, TypeVar, cast
from weakref import ref

import numpy as np

from fusec.xp.claims import MovedError
from fusec.xp.forms import Form
from fusec.xp.joining import both
from fusec.xp.recording import EAGER_BLOCKS, LOOKS, Recorded
from fusec.xp.refusals import note_line, refusal
from fusec.xp.sharing import WRITTEN, writer_with
from fusec.xp.tape import Tape
from fusec.xp.trie import TRIE

F = TypeVar("F", bound=Callable[..., Any])

CHECKED: list[None] = []
"""One entry for each block, in any thread, in which functions check their operands first: no step is found before."""

MAX_ITEMS = 32  # of a list or tuple among the arguments
PLAIN = frozenset(
    {int, bool, str, type(None), type, type(...), np.ufunc, type(np.sum)}
    | {type(np.dtype(each)) for each in "?bhilqBHILQefdFD"}
)
"""Types whose equal values are the same argument."""

WHOLE = frozenset({int, type(None)})
_new: Callable[[type], Any] = Recorded.__new__


def repeated(function: F) -> F:
    """The function, whose steps are found again before it runs, and whose errors are of the catalogue."""

    @functools.wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        try:
            key: list[Any] = [run]
            tape: Any = None
            floats: tuple[float, ...] = ()
            for each in args:
                kind = each.__class__
                if kind in PLAIN:
                    key += (kind, each)
                elif kind is Recorded.kind and (there := each._tape) is not None and (there is tape or tape is None):
                    tape = there
                    key.append(each._at)
                elif kind is float:
                    key.append(float)
                    floats += (each,)
                elif (tape := _signed(key, (each,), tape, args)) in AGAIN:
                    return (function if tape is MISSED else run)(*args, **options)
            for name, each in options.items():
                key.append(name)
                if each.__class__ in PLAIN:
                    key += (each.__class__, each)
                elif (tape := _signed(key, (each,), tape, args)) in AGAIN:
                    return (function if tape is MISSED else run)(*args, **options)
            if tape is None or CHECKED or EAGER_BLOCKS:
                return function(*args, **options)
            node, found = tape.node, tuple(key)
            step = node.get(found)
            if step is not None:
                after, start, form, numbers = step
                numbers = floats or numbers
            else:
                valued = (found, *map(_as_key, floats)) if floats else found
                step = node.get(valued)
                if step is None:
                    return _noted(function, args, options, (tape, node, valued, found, floats))
                after, start, form, numbers = step
            made = _new(Recorded.kind)
            if tape.__class__ is _Beginning:
                tape = Tape(node, tape.slots, tape.places)
            made._tape, made._at, made._form = tape, start, form
            weak, slots = ref(made), tape.slots
            if numbers:
                is_taken = tape.came_to(after, (weak, *numbers))
            else:
                slots.setdefault(start, weak)
                if is_taken := start in slots and slots[start] is weak:  # no call until the move. Note [Claims]
                    tape.node = after
            if not is_taken:
                return function(*args, **options)
            if after.may_fail:
                note_line(weak)
            return made
        except Exception as problem:
            raise refusal(problem, function)  # noqa: B904 - it says so

    return cast("F", run)


MISSED: Any = object()
"""Instead of a tape: the arguments have no signature."""
JOINED: Any = object()
"""Instead of a tape: two tapes have become one, so that places are others."""
AGAIN = (MISSED, JOINED)


def sliced(tape: Tape, array: Any, key: slice) -> Any:
    """A slice of an array on a tape, if such a slice was recorded before; otherwise None. Note [Signatures]."""
    begin, end, every = key.start, key.stop, key.step
    if (
        not (begin.__class__ in WHOLE and end.__class__ in WHOLE and every.__class__ in WHOLE)
        or CHECKED
        or EAGER_BLOCKS
    ):
        return None
    node = tape.node
    found = (slice, array._at, begin, end, every)
    step = node.get(found)
    if step is None:
        return _noted(array._part.__wrapped__, (array, key), {}, (tape, node, found, found, ()))
    after, start, form, _ = step
    made = _new(array.__class__)
    made._tape, made._at, made._form = tape, start, form
    weak, slots = ref(made), tape.slots
    slots.setdefault(start, weak)
    if not (start in slots and slots[start] is weak):  # no call until the tape has moved. Note [Claims]
        return None
    tape.node = after
    return made


def _signed(key: list[Any], given: Any, tape: Any, args: Any, nested: bool = False) -> Any:
    """Add some arguments to a key: places of arrays; other values behind their types.

    args: those by position, or the list in which they are. The result is the tape of all arrays, MISSED or JOINED.
    """
    own = Recorded.kind
    for each in given:
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
                    is_begun = tape.__class__ is _Beginning
                    return MISSED if is_begun or both(tape, there) is None else JOINED
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
            tape = _signed(key, each, tape, each, nested=True)
            if tape in AGAIN:
                return tape
        elif kind is float:
            key += (float, _as_key(each))
        else:
            return MISSED
    return tape


class _Beginning:
    """What a tape of arrays with values would be."""

    __slots__ = ("node", "places", "slots")

    def __init__(self) -> None:
        self.node, self.slots, self.places = TRIE.root, dict[int, Any](), dict[int, int]()

    def leaf(self, value: Any, form: Form) -> int | None:
        """The place of another array with a value; None if no tape has come to such a state."""
        step = self.node.get(form)
        if step is None:
            return None
        self.node, at, _ = step
        self.slots[at], self.places[id(value)] = value, at
        return at  # type: ignore[no-any-return]


def _as_key(number: float) -> Any:
    """What stands for a float in keys: 0.0 is equal to -0.0, and nan not to itself."""
    return number if number and number == number else repr(number)


def _with_value(key: list[Any], array: Any, args: Any, tape: Any) -> Any:
    """Add an array with a value, which is on the tape of others, or begins one with others; that tape, or MISSED."""
    if WRITTEN:
        return _with_written(key, array, tape)
    if tape is None:
        tape = next((each._tape for each in args if each.__class__ is Recorded.kind and each._tape is not None), None)
        if tape is None:
            tape = _Beginning()
    at = tape.places.get(id(array._value))
    if at is None:
        try:
            at = tape.leaf(array._value, array._form)
        except MovedError:
            return MISSED
    if at is None:
        return MISSED
    key.append(at)
    return tape


def _with_written(key: list[Any], array: Any, tape: Any) -> Any:
    """The same while a write is pending: the array is on a tape that writes, which is that of the others."""
    writer, at = writer_with(array._value)
    if at is None or (tape is not None and tape is not writer):
        return MISSED
    key.append(at)
    return writer


def _noted(function: Callable[..., Any], args: Any, options: Any, signature: tuple[Any, Any, Any, Any, Any]) -> Any:
    """Call the function, and keep the step that it records: for all floats by position, or for these."""
    beginning, node, key, typed, floats = signature
    looks = LOOKS[0]
    made = function(*args, **options)
    if made.__class__ is Recorded.kind and (tape := made._tape) is not None and LOOKS[0] is looks:
        after = tape.node
        is_next = after.parent is node and made._at == after.start and after.alone and not after.writes
        if is_next and (tape is beginning or tape.places == beginning.places):
            numbers = tuple([tape.slots[at] for at in after.numbers()])
            if typed is not key and len(numbers) == len(floats) and all(map(operator.is_, numbers, floats)):
                key = typed
            TRIE.note(node, key, (after, after.start, after.forms[0], numbers))
    return made
