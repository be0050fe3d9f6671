"""Calls of NumPy's functions, recorded: with anything that becomes an array, and with out=."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fusec.xp.array import Array, called
from fusec.xp.promotion import check
from fusec.xp.recording import NUMBERS, beside, record, wrapped
from fusec.xp.signatures import CHECKED
from fusec.xp.writes import write

Operand = Any
"""A lazy array; also an array of NumPy's, a number or a list, which become one."""

Axis = int | tuple[int, ...] | None
DType = Any
"""What NumPy takes for a dtype."""


def array_of(given: Operand) -> Array:
    """Anything as an array."""
    return given if type(given) is Array else wrapped(given)


def operand_of(given: Operand) -> Any:
    """Anything as an array, but Python's numbers as they are."""
    return given if type(given) is Array or type(given) in NUMBERS else array_of(given)


def call(function: Callable[..., Any], x: Operand, /, *args: Any, **options: Any) -> Array:
    """What a function of NumPy's makes of an array, later."""
    x = x if type(x) is Array else _first_of(x, args)
    if "out" in options:
        found: Array = into(function, options.pop("out"), (x, *args), options)
        return found
    return record(function, x, *args, **options)  # type: ignore[no-any-return]


def several(function: Callable[..., Any], *args: Any, **options: Any) -> tuple[Array, ...]:
    """The arrays that a function of NumPy's makes, later."""
    return tuple(record(function, *args, **options) or ())


def joint(function: Callable[..., Any], *operands: Operand, **options: Any) -> Array:
    """What a function of NumPy's makes of several operands that have a dtype in common, later."""
    if CHECKED:
        check(function.__name__, operands)
    return call(function, operands[0], *map(operand_of, operands[1:]), **options)


def _first_of(given: Operand, others: Iterable[Any]) -> Array:
    """The first operand as an array; a number, which may be anywhere, is where the first other array is."""
    if type(given) in NUMBERS:
        for each in others:
            if type(each) is Array:
                return beside(given, each)  # type: ignore[no-any-return]
    return array_of(given)


def sequence_of(arrays: Iterable[Operand], name: str) -> list[Array]:
    """A sequence of operands that have a dtype in common."""
    found = [*map(array_of, arrays)]
    if CHECKED:
        check(name, found)
    return found


def given(**options: Any) -> dict[str, Any]:
    """The options that are not None and not False, which are NumPy's defaults."""
    return {name: each for name, each in options.items() if each is not None and each is not False}


# --- writes ----------------------------------------------------------------------------------------------------------


def into(function: Callable[..., Any], out: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Have a function write into an array, which is returned; None for a new one."""
    if isinstance(out, tuple) and len(out) > 1:
        return [_stored(found, target) for found, target in zip(record(function, *args, **options), out, strict=True)]
    (target,) = out if isinstance(out, tuple) else (out,)
    return called(function, args, options, target)


def _stored(found: Array, target: Any) -> Any:
    """A result in the array for it, if there is one."""
    if target is None:
        return found
    target[...] = found
    return target


def change(function: Callable[..., Any], target: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Have a function of NumPy's change its first argument."""
    if type(target) is Array:
        write(_changing, target, function, args, tuple(options.items()))
    else:
        write(function, target, *args, **options)


def _changing(target: Any, function: Callable[..., Any], args: Any, options: Any) -> None:
    function(target, *args, **dict(options))
