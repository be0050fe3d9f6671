"""What NumPy's ufuncs have beside a call: options such as out=, and methods such as reduce."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.xp.array import Array
from fusec.xp.calls import array_of, call, change, into, operand_of
from fusec.xp.recording import record

COUNTS = ("identity", "nargs", "nin", "nout", "ntypes", "types")


def with_options(ufunc: np.ufunc, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What a ufunc makes of operands, with further options of NumPy's."""
    operands = tuple(map(operand_of, args))
    if "out" in options:
        return into(ufunc, options.pop("out"), operands, options)
    if not any(type(each) is Array for each in operands):
        operands = (array_of(operands[0]), *operands[1:])
    return record(ufunc, *operands, **options)


def give_methods(function: Any, ufunc: np.ufunc) -> None:
    """Give a function the attributes and methods of a ufunc."""
    vars(function).update({name: getattr(ufunc, name) for name in COUNTS})
    if ufunc.signature is None and ufunc.nout == 1:
        vars(function).update({name: _method(getattr(ufunc, name)) for name in METHODS[ufunc.nin]})


def _method(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a ufunc: of lazy arrays, later."""

    def run(x: Any, /, *args: Any, **options: Any) -> Any:
        if method.__name__ == "at":
            return change(method, x, args, options)
        return call(method, x, *args, **options)

    run.__name__, run.__doc__ = method.__name__, f"NumPy's {method.__qualname__}, recorded."
    return run


METHODS: dict[int, tuple[str, ...]] = {1: ("at",), 2: ("accumulate", "at", "outer", "reduce", "reduceat")}


def recorded_ufunc(ufunc: np.ufunc) -> Callable[..., Any]:
    """A ufunc that lazy arrays take: several results are a tuple."""

    def run(*args: Any, **options: Any) -> Any:
        if len(args) > ufunc.nin:
            args, options["out"] = args[: ufunc.nin], args[ufunc.nin :]
        found = with_options(ufunc, args, options)
        return tuple(found) if ufunc.nout > 1 else found

    run.__name__ = run.__qualname__ = ufunc.__name__
    run.__doc__ = ufunc.__doc__
    give_methods(run, ufunc)
    return run
