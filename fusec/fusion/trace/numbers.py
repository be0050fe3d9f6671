"""Numbers that Python computes at each call from numbers that are passed to the function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Literal

from fusec.base.records import dataclass

Source = tuple[Literal["argument", "known", "computed"], Any]
"""Where a call finds a number: among the arguments, by its place; here, by its value; or computed, by its place."""


class OtherNumberError(Exception):
    """A number is an exception, or has another type than in the traced call, as `n ** x` may."""


@dataclass(eq=False)
class Computed:
    """A number that each call computes before its kernels run, exactly as the function does."""

    function: Callable[..., Any]
    operands: tuple[Source, ...]
    value: Any  # in the traced call
    arguments: tuple[int, ...]  # what it is made of


@dataclass(eq=False)
class NumberStep:
    """The same in a plan, over the slots of a call. kind: the type that it had in the traced call."""

    slot: int
    function: Callable[..., Any]
    operands: tuple[int, ...]
    kind: type

    def run(self, frame: list[Any]) -> None:
        """Store the number in its slot. Raises OtherNumberError."""
        try:
            found = self.function(*[frame[slot] for slot in self.operands])
        except Exception:  # a division by zero, which the function may catch
            raise OtherNumberError from None
        if type(found) is not self.kind:
            raise OtherNumberError
        frame[self.slot] = found


class ExtentNumber:
    """A number that a function makes of extents: kernels take it as a parameter, for its value differs by shape."""


class ExtentInt(int, ExtentNumber):
    """An extent of a traced array, or what integers make of some."""


class ExtentFloat(float, ExtentNumber):
    """What floats, or a division, make of extents."""


def plain(value: Any) -> Any:
    """A number made of extents as one of Python's own."""
    return int(value) if isinstance(value, ExtentInt) else float(value) if isinstance(value, ExtentFloat) else value


def _kept(name: str) -> Callable[[Any, Any], Any]:
    """Python's operator, whose result is known to be made of extents."""

    def operate(self: Any, other: Any) -> Any:
        if type(other) not in (int, float, ExtentInt, ExtentFloat):
            return NotImplemented
        found = getattr(plain(self), name)(plain(other))
        if found is NotImplemented:  # an int with a float
            found = getattr(float(self), name)(plain(other))
        return ExtentInt(found) if type(found) is int else ExtentFloat(found)

    return operate


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
    for _form in (f"__{_name}__", f"__r{_name}__"):
        setattr(ExtentInt, _form, _kept(_form))
        setattr(ExtentFloat, _form, _kept(_form))


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
