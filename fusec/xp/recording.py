"""Recording operations on lazy arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import accumulate
from typing import Any, ClassVar
from weakref import ref

import numpy as np

from fusec.base import locks
from fusec.base.contexts import holding
from fusec.environment.settings import value_of
from fusec.errors import FusecTypeError
from fusec.errors.lazy import NotADType
from fusec.xp.claims import MovedError, stand_by
from fusec.xp.forms import CPU, Form, as_number, form, form_of, is_held, native, refused
from fusec.xp.joining import absorb
from fusec.xp.loading import mixed, on_device
from fusec.xp.refusals import as_array, failure, note_line, refusal
from fusec.xp.sharing import WRITTEN, finish_readers, finish_writers, settle, writers
from fusec.xp.steps import Operation, TapeNumber, TapePlace, UnknownConstantError
from fusec.xp.tape import Tape
from fusec.xp.trie import EAGER, NEEDS_NUMBER, TRIE

MAX_STEPS = 256  # of a tape, which is evaluated before it takes another one
MAX_JOINED = (
    2 * MAX_STEPS
)  # of tapes that become one; longer ones are evaluated first, each by a plan that others share
NUMBERS = (float, int, bool, complex)
INTEGERS = range(-(2**63), 2**63)
BY_VALUE: dict[Callable[..., Any], tuple[int, ...]] = {np.where: (1, 2), np.clip: (1, 2)}
"""Functions that do the same for all numbers of a type, with the places of these among the arguments."""

WRITERS: set[Callable[..., Any]] = set()
"""Functions that write their first argument."""


EAGER_BLOCKS: list[None] = [None] if value_of("FUSEC_EAGER") else []
"""One entry for each eager block in any thread."""

_is_eager: ContextVar[bool] = ContextVar("is_eager", default=bool(EAGER_BLOCKS))
LOOKS: list[Any] = [None]
"""Another object after each look at the value of an array."""


class Recorded:
    """An array on a tape, at a place; or one with a value, which is on none."""

    __slots__ = ("__weakref__", "_at", "_form", "_tape", "_value")
    _tape: Tape | None
    _at: int
    _form: Form
    _value: Any
    kind: ClassVar[Any]  # the class of arrays


_new: Callable[[type], Any] = Recorded.__new__


def wrapped(value: Any) -> Any:
    """The array with a value in host memory; a value in another byte order is copied. Raises NotADType."""
    return with_form(*_formed(value))


def _formed(value: Any) -> tuple[np.ndarray[Any, Any], Form]:
    """A value as a plain NumPy array in the machine's byte order, and its form, which for NumPy's numbers says so.

    Raises NotADType, also for a masked array, whose mask would be lost.
    """
    if type(value) is not np.ndarray:
        if isinstance(value, np.ma.MaskedArray):
            raise NotADType("a masked array", "an operand of lazy arrays", "pass x.filled(value) or x.data").at()
        is_number, value = isinstance(value, np.generic), as_array(value)
        if is_number:
            return value, as_number(form_of(value))
    try:
        return value, form_of(value)
    except FusecTypeError:
        value = native(value)
        return value, form_of(value)


def with_form(value: Any, form: Form) -> Any:
    """The array with a value of a form."""
    made = _new(Recorded.kind)
    made._value, made._form, made._tape = value, form, None
    return made


def lazy(value: Any) -> Any:
    """The array with a value on a device, or in host memory."""
    return wrapped(value) if isinstance(value, np.ndarray) else with_form(value, on_device().form_of(value))


def beside(value: Any, other: Any) -> Any:
    """The array with a value from host memory, copied to where another array is."""
    found = wrapped(value)
    return found if other._form.device == CPU else lazy(on_device().placed(found._value, other._form.device))


def valued(array: Any) -> Any:
    """The value of an array, which is computed now unless it is there."""
    LOOKS[0] = object()
    tape = array._tape
    try:
        while tape is not None:
            tape.evaluate(array)
            tape = array._tape
        if WRITTEN:
            finish_writers(array)
    except Exception as problem:
        raise failure(problem)  # noqa: B904 - it says so
    return array._value


def is_computed(array: Any) -> bool:
    """Whether an array has its value, which is computed now unless that fails."""
    while (tape := array._tape) is not None:
        tape.evaluate()
        if array._tape is not None and array._tape.has_failed:
            return False
    while WRITTEN and (found := writers(array._value)):
        for each in found:
            each.evaluate()
        if any(each.has_failed for each in writers(array._value)):
            return False
    return True


def record(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The result of a function of NumPy that is called later: an array, a tuple or list of arrays, or None.

    Raises what the function raises for arrays of these forms, in the catalogue's words.
    """
    while True:
        try:
            found = _recorded(function, args, options)
            break
        except MovedError:
            continue
        except Exception as problem:
            raise refusal(problem, function)  # noqa: B904 - it says so
    return _settled(found, args, tuple(options.values())) if EAGER_BLOCKS else found


@contextmanager
def eagerly() -> Iterator[None]:
    """Compute operations as they are recorded while a block runs."""
    with holding(_is_eager, True):
        with locks.lock:
            EAGER_BLOCKS.append(None)
        try:
            yield
        finally:
            with locks.lock:
                EAGER_BLOCKS.pop()


def _settled(found: Any, *operands: Any) -> Any:
    """The result of an operation. In an eager block, it is computed now, and so are the arrays that were written."""
    if _is_eager.get():
        for each in _arrays((*operands, found)):
            valued(each)
    return found


# --- any function ------------------------------------------------------------------------------------------------


def _recorded(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    tape = _tape_of(_arrays((args, tuple(options.values()))))
    plain, given = set[int](), args
    numbers = _numbers_among(function, args)
    if numbers:  # the arguments may be asked for once more
        args = tuple([_formed(each)[0] if isinstance(each, np.ndarray) else each for each in args])
    spec = _spec(tape, args, plain)
    for at, place in enumerate(numbers):
        spec = (*spec[:place], TapeNumber(type(args[place]), at), *spec[place + 1 :])
    try:
        named = {name: _spec(tape, each, plain) for name, each in options.items()}
        step = Operation(function, spec, named)
    except UnknownConstantError:
        return eager(function, args, options)
    if tape.node.ends:
        end_before(tape, step.key, _arrays((args, tuple(options.values()))))
    values = [args[at] for at in numbers]
    while True:
        node = tape.node
        after = tape.after(node, step.key, step, values)
        if after is None:
            continue
        if values and (after is EAGER or after is NEEDS_NUMBER):
            step, values = Operation(function, _spec(tape, args, plain), named), []
            continue
        if after is EAGER:
            return eager(function, args, options)
        if not plain.isdisjoint(after.writes):
            return written_now(function, given, options, *given, *options.values())
        made = [_new_at(tape, at, form) for at, form in enumerate(after.forms, after.start) if form is not None]
        results: list[Any] = [ref(each) for each in made]
        held = [*(results or [object()]), *values]
        for at in after.writes:  # others have it as it was
            if not after.is_there and not tape.slots[at].flags.writeable:  # the trace has seen another array, maybe
                raise ValueError("assignment destination is read-only")
            finish_readers(tape.slots[at], tape)
        if tape.came_to(after, held):
            if after.may_fail:
                note_line(held[0])
            if after.writes:
                settle(tape)
            return None if not made else made[0] if after.alone else after.together(made)
        stand_by(tape, node)


def _numbers_among(function: Callable[..., Any], args: tuple[Any, ...]) -> list[int]:
    """Which arguments are numbers that belong to the tape, since the operation is the same for other numbers."""
    places = [at for at in BY_VALUE.get(function, ()) if at < len(args) and type(args[at]) in NUMBERS]
    if not places:
        return places
    limits = [each._form.limits or INTEGERS for each in args if isinstance(each, Recorded)]
    limits += [_element(each).limits or INTEGERS for each in args if isinstance(each, np.ndarray)]
    return [at for at in places if type(args[at]) is not int or all(args[at] in each for each in limits)]


def _element(given: np.ndarray[Any, Any]) -> Form:
    """The form of an element of a NumPy array. Raises NotADType."""
    return form(given.dtype.newbyteorder("="), ())


def _new_at(tape: Tape, at: int, form: Form) -> Any:
    made = _new(Recorded.kind)
    made._tape, made._at, made._form = tape, at, form
    return made


def _arrays(given: Any) -> Iterator[Any]:
    """All lazy arrays in some arguments."""
    if isinstance(given, Recorded):
        yield given
    elif type(given) in (tuple, list):
        for each in given:
            yield from _arrays(each)


def _spec(tape: Tape, given: Any, plain: set[int]) -> Any:
    """An argument, with places for arrays. plain: takes the places of NumPy's, which no tape writes any more."""
    if isinstance(given, Recorded):
        return TapePlace(_place(tape, given))
    if isinstance(given, np.ndarray):
        made = with_form(*_formed(given))
        if WRITTEN and writers(made._value):
            finish_writers(made)
            raise MovedError
        at = tape.leaf(made._value, made._form)
        plain.add(at)
        return TapePlace(at)
    if type(given) in (tuple, list):
        return type(given)(_spec(tape, each, plain) for each in given)
    return given


def _place(tape: Tape, array: Any) -> int:
    """The place of an array on a tape. Raises MovedError."""
    there = array._tape
    if there is None:
        return tape.leaf(array._value, array._form)
    if there is not tape:
        raise MovedError
    return int(array._at)


def _tape_of(arrays: Iterable[Any]) -> Tape:
    """The tape for an operation on these arrays. Raises MovedError and DevicesDoNotMix."""
    arrays = [*arrays]
    for each in arrays[1:]:
        if each._form.device != arrays[0]._form.device:
            raise mixed(arrays[0]._form.device, each._form.device)
    found = _tapes_of(arrays)
    if not found:
        return Tape(TRIE.root, {}, {})
    if found[0].node.depth >= MAX_STEPS:
        found[0].evaluate(*arrays)
        raise MovedError
    if len(found) > 1 and sum(each.node.depth for each in found) > MAX_JOINED:
        for each in found:
            each.evaluate(*arrays)
        raise MovedError
    return _joined(found)


def tape_of_all(arrays: Iterable[Any], most: int) -> Tape | None:
    """The tape of arrays that are pending, with all that they depend on; None if none is.

    most: steps; tapes that would make it longer stay apart.
    """
    arrays = [*arrays]
    while found := _tapes_of(arrays):
        if len(found) == 1:
            return found[0]
        found = [each for each in found if each.node.device == found[0].node.device]
        steps = [*accumulate(each.node.depth for each in found)]
        try:
            return _joined(
                [each for each, all_steps in zip(found, steps, strict=True) if all_steps <= most] or found[:1]
            )
        except MovedError:
            continue
    return None


def _tapes_of(arrays: Iterable[Any]) -> list[Tape]:
    """The tapes on which arrays are, and those that write them, the longest first."""
    found: dict[Tape, None] = {}
    for each in arrays:
        tape = each._tape
        if tape is not None:
            found[tape] = None
        elif WRITTEN:
            found.update(dict.fromkeys(writers(each._value)))
    return sorted(found, key=lambda each: each.node.depth, reverse=True)


def end_before(tape: Tape, key: Any, arrays: Iterable[Any]) -> None:
    """Evaluate a tape if another one shall take a step, of this key and operands. Raises MovedError if so."""
    if key in tape.node.ends and not tape.has_failed:
        tape.evaluate(*arrays)
        raise MovedError


def _joined(tapes: list[Tape]) -> Tape:
    """One tape of several. Raises MovedError."""
    absorb(*tapes)
    return tapes[0]


def eager(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The results of a function for values, which are computed now. Raises what it raises, in the catalogue's words."""
    try:
        return _run_now(function, args, options)
    except Exception as problem:
        raise refusal(problem, function)  # noqa: B904 - it says so


def written_now(function: Callable[..., Any], args: Any, options: dict[str, Any], *targets: Any) -> Any:
    """The result of a function that writes arrays of NumPy's, among others: users see at once what is written there."""
    for each in targets:
        if isinstance(each, (Recorded, np.ndarray)):
            finish_readers(valued(each) if isinstance(each, Recorded) else np.asarray(each))
    return eager(function, args, options)


def _run_now(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    devices = {each._form.device: None for each in _arrays((args, tuple(options.values())))}
    if len(devices) > 1:
        raise mixed(*[*devices][:2])
    if devices and (wanted := options.get("dtype")) is not None and not is_held(dtype := np.dtype(wanted)):
        raise refused(dtype)
    if function in WRITERS:
        finish_readers(valued(args[0]))
    given, named = _values(args), {name: _values(each) for name, each in options.items()}
    if devices and CPU not in devices:
        return _all_wrapped(on_device().call(function, given, named))
    found = function(*given, **named)
    if isinstance(found, np.ndarray) and any(found is each for each in (*args, *options.values())):
        return found  # which the function has written
    return _all_wrapped(found)


def _values(given: Any) -> Any:
    if isinstance(given, Recorded):
        return valued(given)
    if type(given) in (tuple, list):
        return type(given)(map(_values, given))
    if isinstance(given, dict):
        return {name: _values(each) for name, each in given.items()}
    return given


def _all_wrapped(found: Any) -> Any:
    if isinstance(found, (np.ndarray, np.generic)):
        return wrapped(found) if is_held(found.dtype.newbyteorder("=")) else found
    if type(found) in (tuple, list):
        return type(found)(map(_all_wrapped, found))
    if isinstance(found, tuple):  # a named one
        return type(found)(*map(_all_wrapped, found))
    if isinstance(found, dict):
        return {name: _all_wrapped(each) for name, each in found.items()}
    return lazy(found) if hasattr(found, "__cuda_array_interface__") else found
