"""Writes to lazy arrays.

Note [Places]: a trace knows the places of views. So a recorded write to a part of an array holds for one place, and a
loop over all places would have each of its writes traced. For this reason each form remembers the first few small parts
that were written, and writes to these are recorded. Any other small part is written at once. It has few elements, and
the plans that compute and convert its operands do not depend on the place. Reads of an array with a pending write
follow the same law: a read of any other small part has the write done, and is a view. If an array has so few elements
that to walk all costs less than to trace a step, larger parts follow this law too, but more of them are remembered.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache, wraps
from inspect import signature
from math import isfinite, prod
from typing import Any

import numpy as np

from fusec.base import locks
from fusec.xp.forms import CPU, Form, is_held
from fusec.xp.operators import ALONE, answer_of
from fusec.xp.powers import is_by_products
from fusec.xp.recording import (
    BY_VALUE,
    EAGER_BLOCKS,
    INTEGERS,
    NUMBERS,
    WRITERS,
    Recorded,
    is_computed,
    record,
    valued,
    wrapped,
    written_now,
)
from fusec.xp.refusals import refusal, refusing
from fusec.xp.sharing import finish_readers, writer_with
from fusec.xp.steps import Operation, TapeNumber, TapePlace
from fusec.xp.trie import TRIE, TapeState

MAX_PLACES = 4  # small parts of a form to which writes are recorded
MAX_LARGE = 16  # other parts of a form that costs less to walk than to trace for another place
LITTLE = 1 << 16  # elements of such a form
SMALL = 4  # a part with at most one in so many elements is small
EXACT = 2**53  # float64 holds all integers up to here


def write(function: Callable[..., Any], target: Any, *args: Any, **options: Any) -> None:
    """Record a call of a function that writes its first argument, which is done now if that is no lazy array."""
    if not isinstance(target, Recorded):
        written_now(function, (target, *args), options, target)
        return
    if target._tape is None and target._form.device == CPU and not target._value.flags.writeable:
        what = "output array" if function in IN_PLACE else "assignment destination"
        raise refusal(ValueError(f"{what} is read-only"))
    record(_without_result(function), target, *args, **options)


def apart_from_out(
    function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """The arguments of a function of NumPy's but for ``out``, which may be given by position; and that, or None."""
    names = _names(function)
    at = names.index("out") if "out" in names else len(args)
    others = {**options, **dict(zip(names[at:], args[at:], strict=False))}
    out = others.pop("out", None)
    return args[:at], others, out


@cache
def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of what a function takes by position; none if it does not tell."""
    try:
        found = signature(function).parameters.values()
    except ValueError:
        return PARAMETERS.get(function, ())
    return tuple([each.name for each in found if each.kind <= each.POSITIONAL_OR_KEYWORD])


PARAMETERS = {np.concatenate: ("arrays", "axis", "out"), np.dot: ("a", "b", "out")}
"""Of builtins, which do not tell them in every version of NumPy."""


def _without_result(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without its result."""
    found = _known.get(function)
    if found is None:

        @wraps(function)
        def call(target: Any, *args: Any, **options: Any) -> None:
            function(target, *args, **options)

        with locks.lock:
            found = _known.setdefault(function, call)
            WRITERS.add(found)
            if function in NUMBER_AT:
                BY_VALUE[found] = (NUMBER_AT[function],)
    return found


IN_PLACE: dict[Callable[..., Any], np.ufunc] = {
    operator.iadd: np.add, operator.isub: np.subtract, operator.imul: np.multiply, operator.itruediv: np.true_divide,
    operator.ifloordiv: np.floor_divide, operator.imod: np.remainder, operator.ipow: np.power,
    operator.imatmul: np.matmul, operator.ilshift: np.left_shift, operator.irshift: np.right_shift,
    operator.iand: np.bitwise_and, operator.ior: np.bitwise_or, operator.ixor: np.bitwise_xor,
}  # fmt: skip
"""Operators that write their first operand, with NumPy's ufunc of each."""
NUMBER_AT: dict[Callable[..., Any], int] = {operator.setitem: 2, np.copyto: 1, **dict.fromkeys(IN_PLACE, 1)}
"""Functions that write by means of a number, with its place among the arguments."""

_known: dict[Callable[..., Any], Callable[..., Any]] = {}


# --- writes that were recorded before ----------------------------------------------------------------------------


def in_place(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """An operator that writes its first operand, but makes a new number of what is a number in NumPy."""
    plain, ufunc = getattr(operator, f"__{function.__name__[1:]}__"), IN_PLACE[function]

    def operate(self: Any, other: Any) -> Any:
        if self._form.is_number:
            return plain(self, other)
        if not (isinstance(other, Recorded) or type(other) in NUMBERS):
            found = answer_of(other, ufunc, (self, other), out=(self,))
            if found is not ALONE:
                return found
        if function is operator.ipow and is_by_products(other, self._form.dtype):
            write(_raise, self, other)
            return self
        again = _Again(function, self, other)
        if not again.is_taken():
            write(function, self, other)
            again.keep(function)
        return self

    return operate


def _raise(x: Any, exponent: float) -> None:
    x **= exponent


class _Again:
    """A write of an array or a number. Such a write may have been recorded before."""

    __slots__ = ("key", "node", "number", "tape")

    def __init__(self, function: Any, target: Any, value: Any) -> None:
        tape, kind = target._tape, value.__class__
        if tape is None:
            tape, at = writer_with(target._value)
        else:
            at = target._at
        behind: Any = None
        self.number: Any = ALONE
        if kind in NUMBERS:
            if kind is not int or value in (target._form.limits or INTEGERS):
                behind, self.number = kind, value
        elif kind is target.__class__ and tape is not None:
            there = value._tape
            behind = value._at if there is tape else tape.places.get(id(value._value)) if there is None else None
        self.tape = None if at is None or behind is None or EAGER_BLOCKS else tape
        if self.tape is not None:
            self.node, self.key = self.tape.node, (function, at, behind)

    def is_taken(self) -> bool:
        """Record the write if such a write was recorded before. Whether it is recorded now."""
        tape = self.tape
        if tape is None or (step := self.node.get(self.key)) is None:
            return False
        after, start, _ = step
        token, slots = object(), tape.slots
        slots.setdefault(start, token)
        if not (start in slots and slots[start] is token):  # no call until the tape has moved. Note [Claims]
            return False
        if self.number is ALONE:
            tape.node = after
        else:
            slots[start + 1], tape.node = self.number, after
        return True

    def keep(self, function: Callable[..., Any], *between: Any) -> None:
        """Keep the step that was recorded in the usual way, if it is the same for all numbers of the type.

        between: the arguments of the function between the target and the value. The step is looked up by what it does:
        the tape may have taken other steps meanwhile, of other threads.
        """
        if self.tape is None:
            return
        _, at, behind = self.key
        value = TapePlace(behind) if self.number is ALONE else TapeNumber(behind, 0)
        step = Operation(_without_result(function), (TapePlace(at), *between, value), {})
        after = self.node.behind(step.key)
        if type(after) is TapeState and not after.writes:
            TRIE.note(self.node, self.key, (after, after.start, None))


# --- small parts -------------------------------------------------------------------------------------------------


def store(target: Any, key: Any, value: Any) -> None:
    """Write a value to a part of an array: record the write, or do it at once. Note [Places]."""
    form, place = target._form, _place(key)
    if value.__class__ in NUMBERS or (place is not None and isinstance(value, np.generic)):
        check_number(value, form)
    if place is None or form.device != CPU:
        write(operator.setitem, target, key, value)
        return
    again = _Again(place, target, value)
    if again.is_taken():
        return
    if place in form.places or not _is_elsewhere(target, key, place):
        if _is_there(target, key, value):  # as after x[i] += y
            return
    elif _written(target, key, value):
        return
    write(operator.setitem, target, key, value)
    again.keep(operator.setitem, key)


def _is_there(target: Any, key: Any, value: Any) -> bool:
    """Whether a value is this part of an array itself, in the same memory."""
    if value.__class__ is not target.__class__ or target._tape is not None or value._tape is not None:
        return False
    if value._form.device != CPU or value._form.dtype != target._form.dtype:
        return False
    part, given = target._value[key], value._value
    if part.__class__ is not np.ndarray:  # a NumPy scalar, which is a copy
        return False
    return (part.ctypes.data, part.shape, part.strides) == (given.ctypes.data, given.shape, given.strides)


@refusing
def check_number(number: Any, form: Form) -> None:
    """Raise NumPy's error for a number that elements cannot hold, but for Python's integers, which the trace checks."""
    kind = type(number)
    if kind is complex and form.dtype.kind in "iuf":
        np.zeros((), form.dtype)[...] = number
    elif form.limits is not None and (kind is float or isinstance(number, np.generic)):
        with np.errstate(all="ignore"):
            np.zeros((), form.dtype)[...] = number.real if isinstance(number, np.complexfloating) else number


def _is_elsewhere(target: Any, key: Any, place: Any) -> bool:
    """Whether a key selects a part to which writes are not recorded. Remembers the first few parts."""
    form = target._form
    most = _most(target, key)
    if most is None or len(form.places) >= most:
        return most is not None
    form.places += (place,)
    return False


def is_read_elsewhere(array: Any, key: Any) -> bool:
    """Whether a read of an array with a pending write is not recorded. Remembers the first few parts."""
    form, place = array._form, _place(key)
    if place is None:
        return True
    if place in form.reads or (most := _most(array, key)) is None:
        return False
    if len(form.reads) >= most:
        return True
    form.reads += (place,)
    return False


def _most(array: Any, key: Any) -> int | None:
    """How many parts of an array are remembered before one like that of a key is not recorded; None if it always is."""
    shape = array._form.shape
    try:
        part = (np.broadcast_to(_ZERO, shape) if array._tape is not None else array._value)[key]
    except IndexError:
        return None  # the trace raises the error, with the line
    count = prod(shape)
    if SMALL * part.size <= count:
        return MAX_PLACES
    return MAX_LARGE if count <= LITTLE else None


_ZERO = np.zeros(())


def _place(key: Any) -> Any:
    """A key of integers and slices as a constant; None for any other key."""
    kind = type(key)
    if kind is int:
        return key
    if kind is slice:
        start, stop, step = key.start, key.stop, key.step
        for each in (start, stop, step):
            if each is not None and type(each) is not int:
                return None
        return slice, start, stop, step
    if kind is tuple:
        places = tuple([_place(each) for each in key])
        return None if None in places else places
    return key if key is ... else None


def _written(target: Any, key: Any, value: Any) -> bool:
    """Write a part of an array now, what NumPy converts in another way by a kernel. Whether it is written."""
    dtype = target._form.dtype
    if isinstance(value, np.ndarray) and not _is_kept(value.dtype, dtype):
        if type(value) is not np.ndarray or not is_held(value.dtype.newbyteorder("=")):
            return False
        value = wrapped(value)
    if isinstance(value, Recorded):
        if value._form.device != CPU:
            return False
        if not _is_kept(value._form.dtype, dtype):
            if value._form.dtype.kind == "c":
                return False
            array: Any = value
            value = array.astype(dtype)  # as kernels do
        if not is_computed(value):
            return False
        value = valued(value)
    elif not isinstance(value, np.ndarray) and not _fits(value, target._form):
        return False
    if not is_computed(target):
        return False
    memory = valued(target)
    if not memory.flags.writeable:
        return False
    finish_readers(memory)
    try:
        with np.errstate(all="ignore"):
            memory[key] = value
    except (TypeError, ValueError):
        return False  # the trace raises the error, with the line
    return True


def _is_kept(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether NumPy converts between dtypes as kernels do: with at most one rounding."""
    return source == target or np.can_cast(source, target) or source.kind == target.kind != "c"


def _fits(number: Any, form: Form) -> bool:
    """Whether NumPy converts a Python number as kernels do."""
    kind = type(number)
    if kind is int:
        return (
            number in form.limits if form.limits is not None else form.dtype.kind in "fc" and -EXACT <= number <= EXACT
        )
    if kind is float and form.limits is not None:
        return isfinite(number) and int(number) in form.limits
    return kind is bool or (kind is float and form.dtype.kind in "fc") or (kind is complex and form.dtype.kind == "c")
