"""Operations as tapes record them: functions of places and constants.

An operation on one or two arrays, or on an array and a number, is a tuple of a function and places; the type of the
number stands in place of it. All others are an `Operation`. If an operation is the same for all numbers of a type, the
numbers are part of the tape, not of the operation: they are in the places behind the results.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from fusec.base import locks
from fusec.base.rounding_mode import default_rounding


class TapePlace(int):
    """A place on a tape, among the arguments of a step."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is TapePlace and int(self) == int(other)

    def __hash__(self) -> int:
        return int(self)


class TapeNumber(NamedTuple):
    """An argument of a step: a number that belongs to the tape. at: its place among the numbers of the step."""

    kind: type
    at: int


class Operation:
    """A call of a function. args, options: with `TapePlace` for arrays. key: equal for equal calls.

    count: how many numbers are among args.
    """

    __slots__ = ("args", "count", "function", "key", "options")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Raises UnknownConstantError."""
        self.function, self.args, self.options = function, args, options
        self.count = sum(type(each) is TapeNumber for each in args)
        self.key: Hashable = (function, _key(args), *options, _key(tuple(options.values())))

    def run(self, found: Sequence[Any], numbers: Sequence[Any]) -> Any:
        """The result for the arrays at the places, and for numbers."""
        options = {name: placed(each, found) for name, each in self.options.items()}
        args = [numbers[each.at] if type(each) is TapeNumber else placed(each, found) for each in self.args]
        return self.function(*args, **options)


class UnknownConstantError(Exception):
    """An argument is no constant: what is equal to it may be another one for the function."""


def numbers_of(step: Any) -> int:
    """How many numbers a step takes from its tape."""
    if type(step) is tuple:
        return sum(type(each) is type for each in step[1:])
    return step.count if type(step) is Operation else 0


def moved(step: Any, to: Sequence[int]) -> Any:
    """The same step with other places."""
    if type(step) is tuple:
        return (step[0], *[each if type(each) is type else to[each] for each in step[1:]])
    options = {name: placed(each, to, TapePlace) for name, each in step.options.items()}
    return Operation(step.function, placed(step.args, to, TapePlace), options)


class _Places(dict[int, int]):
    """A mapping of each place to itself that notes which were asked for."""

    def __missing__(self, at: int) -> int:
        self[int(at)] = int(at)
        return int(at)


def read_by(step: Any) -> Iterable[int]:
    """The places that a step reads."""
    found: Any = _Places()
    moved(step, found)
    return [*found]


@cache
def _exact() -> Callable[[Any], Hashable | None]:
    """What tells constants apart; it is imported with the tracers, when the first operation is recorded."""
    with locks.lock, default_rounding():
        from fusec.fusion.outside.constants import exact
    return exact


def _key(given: Any) -> Hashable:
    if type(given) is TapePlace:
        return given
    if type(given) is TapeNumber:
        return TapeNumber, given
    if type(given) in (tuple, list):
        return type(given), *map(_key, given)
    if type(given) is slice:
        return slice, _key((given.start, given.stop, given.step))
    found = _exact()(given)
    if found is None:
        raise UnknownConstantError(given)
    return found


def placed(given: Any, found: Sequence[Any], make: Callable[[Any], Any] = lambda each: each) -> Any:
    """A value with what is found at places instead of these."""
    if type(given) is TapePlace:
        return make(found[given])
    if type(given) in (tuple, list):
        return type(given)(placed(each, found, make) for each in given)
    if type(given) is slice:
        return slice(*(placed(each, found, make) for each in (given.start, given.stop, given.step)))
    return given
