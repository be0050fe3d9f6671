"""Functions of integers, recorded as they run: what they make of others is worked out by straight-line code.

A function that is given a `Symbol` in place of each integer computes as it always does, and the recording takes down
each operation and the answer to each comparison. For other integers with the same answers it would take the same way.
So these are asked first; then the operations make its result. Nothing is known of integers with other answers.
"""

from __future__ import annotations

import operator
import re
from array import array
from collections.abc import Callable, Sequence
from enum import Enum
from math import inf
from typing import Any, TypeVar

T = TypeVar("T")
MOST = 4000  # lines of a recorded function
NAME = re.compile(r"\bt\d+\b")  # of what lines make
CONSTANT = (int, str, float, bool, type(None), bytes, Enum, type, frozenset, set)


class NotRecordedError(Exception):
    """A function does more with an integer than arithmetic and comparisons."""


class SymbolTape:
    """What a function does with some integers."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.is_over = False
        self.outside: dict[str, Any] = {}  # functions and constants, by their names in the lines
        self._known: dict[str, Any] = {}
        self._asked: dict[str, bool] = {}

    def made(self, text: str, now: int) -> Symbol:
        """The integer that an expression makes, the same for the same expression."""
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = Symbol(self, f"t{len(self.lines)}", now)
            self._add(f"{found.name} = {text}")
        return found

    def ask(self, text: str, answer: bool) -> bool:
        """Note the answer to a comparison."""
        if text not in self._asked:
            self._asked[text] = answer
            self._add(f"if {'not ' if answer else ''}({text}): return None")
        return answer

    def called(self, function: Callable[..., Any], operands: Sequence[Any]) -> Symbol:
        """The number that a function makes of others."""
        texts = [each.name if type(each) is Symbol else self._known_as(each) for each in operands]
        now = function(*[each.now if type(each) is Symbol else each for each in operands])
        return self.made(f"{self._known_as(function)}({', '.join(texts)})", now)

    def _known_as(self, given: Any) -> str:
        """The name of a function, or of an operand that is the same in all calls."""
        name = f"f{id(given)}"
        self.outside[name] = given
        return name

    def _add(self, line: str) -> None:
        if self.is_over or len(self.lines) >= MOST:
            raise NotRecordedError
        self.lines.append(line)


class Symbol:
    """An integer in a recording. now: what it is in the recorded run."""

    __slots__ = ("name", "now", "tape")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # NumPy's numbers leave operations to it

    def __init__(self, tape: SymbolTape, name: str, now: int) -> None:
        self.tape, self.name, self.now = tape, name, now

    def __bool__(self) -> bool:
        return self.tape.ask(self.name, bool(self.now))

    def part(self, text: str, now: Any) -> Symbol:
        """What is read of it, which need not be a number."""
        return self.tape.made(f"{self.name}{text}", now)

    def _refuse(self, *_: Any) -> Any:
        """What needs the integer itself."""
        raise NotRecordedError

    __index__ = __int__ = __float__ = __format__ = __str__ = __pow__ = __rpow__ = _refuse
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __divmod__ = __rdivmod__ = __round__ = _refuse


def _text(given: Any) -> tuple[str, int]:
    """An operand in an expression, and what it is now."""
    if type(given) is Symbol:
        return given.name, given.now
    if type(given) not in (int, float) or given != given or abs(given) == inf:
        raise NotRecordedError
    return repr(given), given


NEUTRAL = {"+": 0, "*": 1, "|": 0}  # operands that make no difference, in either order


def _arithmetic(function: Callable[[int, int], int], sign: str, is_turned: bool) -> Callable[[Symbol, Any], Symbol]:
    def operate(self: Symbol, other: Any) -> Any:
        if type(other) is int and other == NEUTRAL.get(sign) and type(self.now) is int:
            return self
        (one, now), (two, then) = (_text(each) for each in ((other, self) if is_turned else (self, other)))
        return self.tape.made(f"{one} {sign} {two}", function(now, then))

    return operate


def _comparison(function: Callable[[int, int], bool], sign: str) -> Callable[[Symbol, Any], bool]:
    def compare(self: Symbol, other: Any) -> bool:
        if other is None:
            return function is operator.ne
        two, then = _text(other)
        return self.tape.ask(f"{self.name} {sign} {two}", function(self.now, then))

    return compare


def _unary(function: Callable[[int], int], before: str, after: str) -> Callable[[Symbol], Symbol]:
    return lambda self: self.tape.made(f"{before}{self.name}{after}", function(self.now))


for _name, _sign in (("add", "+"), ("sub", "-"), ("mul", "*"), ("truediv", "/"), ("floordiv", "//"), ("mod", "%"),
                     ("and", "&"), ("or", "|"), ("xor", "^")):  # fmt: skip
    _function = getattr(operator, f"__{_name}__")
    setattr(Symbol, f"__{_name}__", _arithmetic(_function, _sign, False))
    setattr(Symbol, f"__r{_name}__", _arithmetic(_function, _sign, True))
for _name, _sign in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")):
    setattr(Symbol, f"__{_name}__", _comparison(getattr(operator, _name), _sign))
for _name, _before, _after in (("neg", "-", ""), ("pos", "+", ""), ("invert", "~", ""), ("abs", "abs(", ")")):
    setattr(Symbol, f"__{_name}__", _unary(getattr(operator, _name), _before, _after))


ARITHMETIC = frozenset((operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
                        operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne))  # fmt: skip
"""The functions whose operators symbols have."""


def called(function: Callable[..., Any], given: Sequence[Any]) -> Any:
    """What a function makes of numbers, some of which may be those of a recorded run."""
    symbol = next((each for each in given if type(each) is Symbol), None) if function not in ARITHMETIC else None
    return function(*given) if symbol is None else symbol.tape.called(function, given)


def is_symbol(given: Any) -> bool:
    """Whether a number is one of a recorded run."""
    return type(given) is Symbol


def numbers_of(function: Callable[..., tuple[int, ...]], given: Sequence[Any], count: int) -> Sequence[int]:
    """The so many numbers that a function makes of others, some of which may be those of a recorded run."""
    found = called(function, given)
    if type(found) is not Symbol:
        return found  # type: ignore[no-any-return]
    now: Any = found.now
    parts: Any = [found.part(f"[{at}]", now[at]) for at in range(count)]
    return parts  # type: ignore[no-any-return]


def words_of(given: list[int]) -> array[int]:
    """Integers as memory has them; those of a recorded run as they are."""
    return given if Symbol in map(type, given) else array("q", given)  # type: ignore[return-value]


def type_of(given: Any) -> type:
    """The type of a number, also of one in a recorded run: the same operations make the same types."""
    return type(given.now) if type(given) is Symbol else type(given)


def recorded(
    function: Callable[[Sequence[Any]], T], given: Sequence[int], now: T, are_same: Callable[[T, T], bool] = operator.eq
) -> Callable[..., T | None] | None:
    """What makes the result of a function of integers, or None for integers with other answers, each an argument.

    None if the function cannot be recorded. now: its result for the given integers, which is made again and compared.
    """
    tape = SymbolTape()
    names = [f"v{at}" for at in range(len(given))]
    try:
        found = function([Symbol(tape, name, each) for name, each in zip(names, given, strict=True)])
        tape.is_over = True
        constants: dict[str, Any] = {**tape.outside}
        text = _expression(found, constants) or _constant(found, constants)
        lines = [f"def made({', '.join(names)}):", *_needed(tape.lines, text), f"return {text}"]
        space: dict[str, Any] = {}
        exec("\n    ".join(lines), constants, space)
        made: Callable[..., T | None] = space["made"]
        found_again = made(*given)
        return made if found_again is not None and are_same(found_again, now) else None
    except Exception:  # of whatever the function does with symbols
        return None


def _needed(lines: Sequence[str], text: str) -> list[str]:
    """The lines without operations of which neither others nor a result are made. Questions and calls, which may fail,
    stay.
    """
    names, found = {*NAME.findall(text)}, list[str]()
    for line in reversed(lines):
        name, is_operation, made = line.partition(" = ")
        if not is_operation or "(" in made or name in names:
            names.update(NAME.findall(made if is_operation else line))
            found.append(line)
    return found[::-1]


def _constant(given: Any, constants: dict[str, Any]) -> str:
    """The name of what no integer changes, or what it is written as."""
    if type(given) in (int, bool):
        return f"({given!r})"
    name = f"k{len(constants)}"
    constants[name] = given
    return name


def _expression(given: Any, constants: dict[str, Any]) -> str:
    """What makes a value again; "" of one without symbols."""
    kind = type(given)
    if kind is Symbol:
        return str.__str__(given.name)
    if isinstance(given, CONSTANT):
        return ""
    if kind is dict:
        parts = {name: _expression(each, constants) for name, each in given.items()}
        if not any(parts.values()):
            return ""
        pairs = [
            f"{_constant(name, constants)}: {part or _constant(given[name], constants)}" for name, part in parts.items()
        ]
        return "{" + ", ".join(pairs) + "}"
    if kind in (tuple, list):
        texts = _parts(given, constants)
        left, right = ("(", ",)") if kind is tuple else ("[", "]")
        return f"{left}{', '.join(texts)}{right}" if texts else ""
    if isinstance(given, tuple):  # a named one
        texts = _parts(given, constants)
        return f"{_constant(kind, constants)}({', '.join(texts)})" if texts else ""
    if hasattr(kind, "__record_values__"):
        names, values = kind.__record_values__
        texts = _parts(values(given) if len(names) > 1 else [getattr(given, each) for each in names], constants)
        keywords = [f"{name}={text}" for name, text in zip(names, texts, strict=True)] if texts else []
        return f"{_constant(kind, constants)}({', '.join(keywords)})" if texts else ""
    return ""


def _parts(given: Sequence[Any], constants: dict[str, Any]) -> list[str]:
    """What makes each of some values; none if all are without symbols."""
    found = [_expression(each, constants) for each in given]
    if not any(found):
        return []
    return [text or _constant(each, constants) for text, each in zip(found, given, strict=True)]
