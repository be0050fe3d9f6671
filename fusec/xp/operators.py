"""Operators of lazy arrays, which are recorded most: one look-up for a step that was taken before.

These are functions of Python. Builtins stand for them once native entries evaluate what is recorded, see
`fusec/xp/native.py`; what these leave out comes back here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

from fusec.base import locks
from fusec.xp import powers
from fusec.xp.claims import MovedError, stand_by
from fusec.xp.forms import is_held
from fusec.xp.joining import both
from fusec.xp.powers import is_by_products
from fusec.xp.recording import (
    EAGER_BLOCKS,
    NUMBERS,
    Recorded,
    _new_at,
    _place,
    _settled,
    _tape_of,
    beside,
    eager,
    end_before,
    record,
    wrapped,
)
from fusec.xp.refusals import refusal
from fusec.xp.sharing import TAPES, WRITTEN, forget_some
from fusec.xp.tape import Tape
from fusec.xp.trie import EAGER, NEEDS_NUMBER, TRIE

ALONE: Any = object()
"""What stands beside the operand of an operator of one array."""

COMPARED = (np.equal, np.not_equal)
_new: Callable[[type], Any] = Recorded.__new__


class Recorder:
    """A function that records an operator. builtin: what does the same; names: of arrays' methods for which it stands;
    users: are told of the builtin.
    """

    __slots__ = ("builtin", "function", "is_swapped", "names", "operands", "run", "users")

    def __init__(self, run: Callable[..., Any], function: Callable[..., Any], operands: int, is_swapped: bool) -> None:
        self.run, self.function, self.operands, self.is_swapped = run, function, operands, is_swapped
        self.builtin: Callable[..., Any] | None = None
        self.names: list[str] = []
        self.users: list[Callable[[Any], None]] = []


RECORDERS: list[Recorder] = []


def recorder(made: Recorder) -> Callable[..., Any]:
    """Its function, once it is noted."""
    with locks.lock:
        RECORDERS.append(made)
    return made.run


def tell(run: Callable[..., Any], user: Callable[[Any], None]) -> None:
    """Have a user of a recorder told of the builtin."""
    for each in RECORDERS:
        if each.run is run:
            each.users.append(user)


def binary(function: Callable[..., Any], swapped: bool = False) -> Callable[[Any, Any], Any]:
    """The operator of two arrays, or of an array and a number, that records a function."""

    def operate(self: Any, other: Any) -> Any:
        tape, kind, own = self._tape, other.__class__, self.__class__
        if tape is None or EAGER_BLOCKS:
            if EAGER_BLOCKS or kind is not own or (tape := other._tape) is None:
                return _begun(function, self, other, swapped)
            at, behind = None if WRITTEN else tape.places.get(id(self._value)), other._at
            if at is None:
                at = _beside_others(tape, self)
        elif kind is own:
            if (there := other._tape) is None:
                behind = None if WRITTEN else tape.places.get(id(other._value))
                if behind is None:
                    behind = _beside_others(tape, other)
            elif there is tape or (tape := both(tape, there)) is not None:
                behind = other._at
            else:
                return operated(function, self, other, swapped)
            at = self._at
        elif kind is np.ndarray:
            at, behind = self._at, None if WRITTEN else tape.places.get(id(other))
        else:
            at, behind = self._at, kind
            if kind is int and (limits := self._form.limits) is not None and other not in limits:
                return operated(function, self, other, swapped)
        try:
            after, start, form = tape.node[(function, behind, at) if swapped else (function, at, behind)]
        except KeyError:
            return operated(function, self, other, swapped)
        made = _new(own)
        made._tape, made._at, made._form = tape, start, form
        weak, slots = ref(made), tape.slots
        slots.setdefault(start, weak)
        if not (start in slots and slots[start] is weak):  # no call until the tape has moved. Note [Claims]
            return operated(function, self, other, swapped)
        if behind is kind:
            slots[start + 1], tape.node = other, after
        else:
            tape.node = after
        return made

    return recorder(Recorder(operate, function, 2, swapped))


def power() -> Callable[[Any, Any], Any]:
    """``x ** y``. Exponents that NumPy computes without pow are operations of their own, so that kernels multiply."""
    alone: dict[tuple[type, Any], Callable[[Any], Any]] = {}
    plain = binary(operator.pow)

    def use(builtin: Any) -> None:
        nonlocal plain
        plain = builtin

    def use_for(key: tuple[type, Any]) -> Callable[[Any], None]:
        return partial(alone.__setitem__, key)

    tell(plain, use)
    for kind, exponents in powers.ALONE.items():
        for exponent in exponents:
            alone[kind, exponent] = run = unary(_to_the(exponent))
            tell(run, use_for((kind, exponent)))

    def operate(self: Any, other: Any, modulus: Any = None) -> Any:
        kind = other.__class__
        if modulus is not None:
            return NotImplemented
        if kind is int or kind is float:
            run = alone.get((kind, other))
            if run is not None:
                return run(self)
            if is_by_products(other, self._form.dtype):
                return record(operator.pow, self, other)
        return plain(self, other)

    return operate


def _to_the(exponent: float) -> Callable[[Any], Any]:
    def power(x: Any) -> Any:
        return x**exponent

    return power


def _beside_others(tape: Tape, array: Any) -> int | None:
    """The place on a tape of an array with a value; None if it cannot just be added."""
    if WRITTEN:
        return None
    try:
        return tape.leaf(array._value, array._form)
    except MovedError:
        return None


def unary(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """The operator of one array that records a function."""

    def operate(self: Any) -> Any:
        tape = self._tape
        if tape is None or EAGER_BLOCKS:
            return _begun(function, self, ALONE, False)
        try:
            after, start, form = tape.node[function, self._at]
        except KeyError:
            return operated(function, self, ALONE, False)
        made = _new(self.__class__)
        made._tape, made._at, made._form = tape, start, form
        weak, slots = ref(made), tape.slots
        slots.setdefault(start, weak)
        if not (start in slots and slots[start] is weak):  # no call until the tape has moved. Note [Claims]
            return operated(function, self, ALONE, False)
        tape.node = after
        return made

    return recorder(Recorder(operate, function, 1, False))


def _begun(function: Callable[..., Any], self: Any, other: Any, swapped: bool) -> Any:
    """The first operation of a tape, on arrays that have values."""
    if EAGER_BLOCKS:
        return operated(function, self, other, swapped)
    kind, own, value = other.__class__, self.__class__, self._value
    slots, places = {0: value}, {id(value): 0}
    try:
        after = TRIE.root[self._form][0]
        if kind is own:
            beside, behind = other._value, 0
            if beside is not value:
                after = after[other._form][0]
                slots[1], places[id(beside)], behind = beside, 1, 1
        else:
            behind = kind
            if kind is int and (limits := self._form.limits) is not None and other not in limits:
                return operated(function, self, other, swapped)
        if other is ALONE:
            after, start, form = after[function, 0]
        else:
            after, start, form = after[(function, behind, 0) if swapped else (function, 0, behind)]
    except KeyError:
        return operated(function, self, other, swapped)
    if WRITTEN:
        return operated(function, self, other, swapped)
    made, tape = _new(own), _new(Tape)
    slots[start] = ref(made)
    if behind is kind and other is not ALONE:
        slots[start + 1] = other
    tape.node, tape.slots, tape.places, tape.is_closed = after, slots, places, False
    made._tape, made._at, made._form = tape, start, form
    TAPES.append(ref(tape))  # from here on, another thread may evaluate it
    forget_some()
    return made


def operated(function: Callable[..., Any], self: Any, other: Any, swapped: bool) -> Any:
    """The same operation, whatever the operands are. Raises what the function raises, in the catalogue's words."""
    try:
        return _answered(function, self, other, swapped)
    except Exception as problem:
        raise refusal(problem)  # noqa: B904 - it says so


def _answered(function: Callable[..., Any], self: Any, other: Any, swapped: bool) -> Any:
    if isinstance(other, np.generic) or type(other) in (list, tuple):
        other = beside(other, self)
    elif isinstance(other, np.ndarray):
        if function in COMPARED and not is_held(other.dtype.newbyteorder("=")):  # NumPy answers for each element
            other = other.astype(object)
            return eager(function, (other, self) if swapped else (self, other), {"dtype": bool})
        other = wrapped(other)
    while True:
        try:
            found = _operated(function, self, other, swapped)
            break
        except MovedError:
            continue
    return _settled(found, self, other) if EAGER_BLOCKS else found


def answer_of(other: Any, function: Any, operands: tuple[Any, Any], **options: Any) -> Any:
    """What an operand of another library makes of an operation by NumPy's protocol; ALONE if it has no say."""
    ask = getattr(type(other), "__array_ufunc__", ALONE)
    if ask is None:
        return NotImplemented
    is_foreign = ask is not ALONE and isinstance(function, np.ufunc) and not isinstance(other, (np.ndarray, np.generic))
    found = ask(other, function, "__call__", *operands, **options) if is_foreign else ALONE
    return ALONE if found is NotImplemented else found  # it does not know lazy arrays


def _operated(function: Callable[..., Any], self: Any, other: Any, swapped: bool) -> Any:
    kind = type(other)
    is_number = kind in NUMBERS
    if not (is_number or other is ALONE or isinstance(other, Recorded)):
        ufunc = np.power if function is operator.pow else function
        found = answer_of(other, ufunc, (other, self) if swapped else (self, other))
        if found is not ALONE:
            return found
        if function in COMPARED:  # NumPy answers for each element
            return eager(function, (self, np.asarray(other, object)), {"dtype": bool})
        return NotImplemented
    arrays = [each for each in (self, other) if isinstance(each, Recorded)]
    if kind is int and self._form.limits is not None and other not in self._form.limits:
        return record(function, *((other, self) if swapped else (self, other)))  # it decides about the result
    tape = _tape_of(arrays)
    operands: list[Any] = [_place(tape, each) for each in arrays]
    operands += [kind] if is_number else []
    key = (function, *(operands[::-1] if swapped else operands))
    if tape.node.ends:
        end_before(tape, key, arrays)
    while True:
        node = tape.node
        after = tape.after(node, key, key, (other,) if is_number else ())
        if after is None:
            continue
        if after is EAGER or after is NEEDS_NUMBER:
            args = (self,) if other is ALONE else (other, self) if swapped else (self, other)
            return eager(function, args, {}) if after is EAGER else record(function, *args)
        made = _new_at(tape, after.start, after.forms[0])
        if tape.came_to(after, (ref(made), other) if is_number else (ref(made),)):
            return made
        stand_by(tape, node)
