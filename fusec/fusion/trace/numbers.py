"""Numbers that Python computes at each call from numbers that are passed to the function."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Literal

import numpy as np

from fusec.base.records import dataclass
from fusec.errors.fusing import NegativePower
from fusec.fusion.trace.lines import here

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
    """A number that a function computes from the extents of traced arrays. Kernels take it as a parameter.

    A comparison states that its answer stays the same. Any other use but arithmetic states that the number stays the
    same. value: Python's own number; derived: how calls compute it, None if they do not; extents: where this is stated.
    """

    __slots__ = ("derived", "extents", "value")
    __hash__ = None  # type: ignore[assignment]  # set below

    def __init__(self, extents: Any, value: Any, derived: Any) -> None:
        self.extents, self.value, self.derived = extents, value, derived

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class that isinstance sees."""
        return type(self.value)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **options: Any) -> Any:
        if any(getattr(type(each), "__fusec_tracer__", False) for each in args):
            return NotImplemented
        if method == "__call__" and not options and all(type(each) in OPERANDS for each in args):
            found = _made(ufunc, args)
            if type(found) is ExtentNumber and getattr(found.value, "dtype", np.dtype("O")).kind in "if":
                return found
        return getattr(ufunc, method)(*map(plain, args), **options)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        del copy
        return np.asarray(plain(self), dtype)

    def __getattr__(self, name: str) -> Any:
        if not hasattr(self.value, name):
            raise AttributeError(f"'{type(self.value).__name__}' object has no attribute '{name}'")
        return getattr(plain(self), name)


OPERANDS = (int, float, ExtentNumber, np.int64, np.float64)
"""The types of numbers that make numbers of extents with others."""


def is_extent(given: Any) -> bool:
    """Whether a number is computed from extents."""
    return type(given) is ExtentNumber


def length(given: Any) -> Any:
    """len() in traced functions: for a traced array, an extent from which numbers can be computed."""
    return given._length() if getattr(type(given), "__fusec_tracer__", False) else len(given)


def plain(given: Any) -> Any:
    """The value of an extent number, which then holds for this call alone; anything else as it is."""
    if type(given) is not ExtentNumber:
        return given
    if given.derived is not None:
        given.extents.fix(given.derived)
    return given.value


def _arithmetic(name: str, is_turned: bool) -> Callable[[Any, Any], Any]:
    """An operator that computes another number from extents."""
    operate = getattr(operator, name)

    def apply(self: Any, other: Any) -> Any:
        if getattr(type(other), "__fusec_tracer__", False):
            return NotImplemented
        if type(other) not in OPERANDS:
            pair = (other, plain(self)) if is_turned else (plain(self), other)
            return operate(*pair)
        pair = (other, self) if is_turned else (self, other)
        return _made(operate, pair)

    return apply


def _made(operate: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """What an operator makes of numbers, some of which are computed from extents."""
    extents = next(each.extents for each in operands if is_extent(each))
    if any(is_extent(each) and each.derived is None for each in operands):
        found = operate(*[each.value if is_extent(each) else each for each in operands])
        return ExtentNumber(extents, found, None)
    try:
        derived = extents.computed(operate, [each.derived if is_extent(each) else each for each in operands])
    except Exception:  # such as ZeroDivisionError, which the function may catch
        return operate(*map(plain, operands))
    return ExtentNumber(extents, derived.now, derived)


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    """A comparison, whose answer is stated."""
    operate = getattr(operator, name)

    def apply(self: Any, other: Any) -> Any:
        if getattr(type(other), "__fusec_tracer__", False):
            return NotImplemented
        if type(other) not in OPERANDS:
            return operate(plain(self), other)
        if type(other) is ExtentNumber and other.derived is self.derived is not None:
            return operate(self.value, other.value)
        return plain(_made(operate, (self, other)))

    return apply


def _of_plain(name: str) -> Callable[..., Any]:
    """A method of Python's numbers that needs the value."""

    def ask(self: Any, *args: Any) -> Any:
        function = getattr(type(self.value), name, None)
        return NotImplemented if function is None else function(plain(self), *map(plain, args))

    return ask


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
    setattr(ExtentNumber, f"__{_name}__", _arithmetic(_name, False))
    setattr(ExtentNumber, f"__r{_name}__", _arithmetic(_name, True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(ExtentNumber, f"__{_name}__", _comparison(_name))
ExtentNumber.__bool__ = lambda self: plain(_made(operator.truth, (self,)))  # type: ignore[attr-defined]
for _name in (
    "pow rpow divmod rdivmod and rand or ror xor rxor lshift rlshift rshift rrshift neg pos abs invert index int float"
    " hash round trunc floor ceil repr str format reduce reduce_ex"
).split():
    setattr(ExtentNumber, f"__{_name}__", _of_plain(f"__{_name}__"))


def natural(exponent: int) -> int:
    """The exponent of an integer. Raises NegativePower."""
    if exponent < 0:
        raise NegativePower().at(here())
    return exponent


def picking(keys: Sequence[Any]) -> Callable[[Any], tuple[object, ...]]:
    """A function that extracts the values of some keys from a mapping or a sequence, as a tuple."""
    match keys:
        case []:
            return lambda _: ()
        case [key]:
            return lambda known: (known[key],)
    return itemgetter(*keys)
