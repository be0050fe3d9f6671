"""Numbers that Python computes at each call from numbers that are passed to the function."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from operator import itemgetter
from typing import Any

from fusec.base.records import dataclass

Fetch = Callable[[Sequence[Any], Any], Any]
"""From the arguments of a call, and what its plan holds, to an array, a number or a result."""


class OtherNumberError(Exception):
    """A number is an exception, or has another type than in the traced call, as `n ** x` may."""


@dataclass(eq=False)
class Computed:
    """A number that each call computes before its kernels run, exactly as the function does."""

    place: int  # among what the plan holds
    function: Callable[..., Any]
    operands: tuple[Fetch, ...]
    kind: type  # that it had in the traced call
    arguments: tuple[int, ...]  # what it is made of

    def compute(self, args: Sequence[Any], held: MutableMapping[int, Any] | list[Any]) -> None:
        """Store the number in its place. Raises OtherNumberError."""
        try:
            found = self.function(*[fetch(args, held) for fetch in self.operands])
        except Exception:  # a division by zero, which the function may catch
            raise OtherNumberError from None
        if type(found) is not self.kind:
            raise OtherNumberError
        held[self.place] = found


def constant(value: object) -> Fetch:
    """What every call has."""
    return lambda *_: value


def argument(place: int) -> Fetch:
    """One of the arguments."""
    return lambda args, _: args[place]


def held(place: int) -> Fetch:
    """The value of a place in the plan."""
    return lambda _, found: found[place]


def natural(exponent: int) -> int:
    """The exponent of an integer. Raises NumPy's error for negative ones."""
    if exponent < 0:
        raise ValueError("Integers to negative integer powers are not allowed.")
    return exponent


def picking(keys: Sequence[Any]) -> Callable[[Any], tuple[object, ...]]:
    """A function that extracts the values of some keys from a mapping or a sequence, as a tuple."""
    match keys:
        case []:
            return lambda _: ()
        case [key]:
            return lambda known: (known[key],)
    return itemgetter(*keys)
