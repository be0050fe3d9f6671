"""Operations as tapes record them: functions of places and constants.

Those of one or two arrays, or of an array and a number, are tuples of a function and places; the type of a number
stands where the number goes. All others are a `Operation`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cache
from typing import Any

from fusec.base import locks
from fusec.base.rounding_mode import default_rounding


class TapePlace(int):
    """A place on a tape, among the arguments of a step."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is TapePlace and int(self) == int(other)

    def __hash__(self) -> int:
        return int(self)


class Operation:
    """A call of a function. args, options: with `TapePlace` for arrays; key: equal for equal calls."""

    __slots__ = ("args", "function", "key", "options")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Raises UnknownConstantError."""
        self.function, self.args, self.options = function, args, options
        self.key: Hashable = (function, _key(args), *options, _key(tuple(options.values())))

    def run(self, found: Sequence[Any]) -> Any:
        """The result for what is at the places."""
        options = {name: placed(each, found) for name, each in self.options.items()}
        return self.function(*placed(self.args, found), **options)


class UnknownConstantError(Exception):
    """An argument is no constant: what is equal to it may be another one for the function."""


def moved(step: Any, to: Sequence[int]) -> Any:
    """The same step with other places."""
    if type(step) is tuple:
        return (step[0], *[each if type(each) is type else to[each] for each in step[1:]])
    options = {name: placed(each, to, TapePlace) for name, each in step.options.items()}
    return Operation(step.function, placed(step.args, to, TapePlace), options)


@cache
def _exact() -> Callable[[Any], Hashable | None]:
    """What tells constants apart; it is imported with the tracers, when the first operation is recorded."""
    with locks.lock, default_rounding():
        from fusec.fusion.outside.constants import exact
    return exact


def _key(given: Any) -> Hashable:
    if type(given) is TapePlace:
        return given
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
