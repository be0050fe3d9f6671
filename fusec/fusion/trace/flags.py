"""The flags of traced arrays."""

from __future__ import annotations

from collections.abc import Callable
from operator import getitem
from typing import Any

from fusec.errors.fusing import NotFusable
from fusec.fusion.trace.conditions import TracedView, require
from fusec.fusion.trace.lines import here

LAID_OUT = frozenset("c_contiguous f_contiguous contiguous fortran forc fnc C_CONTIGUOUS F_CONTIGUOUS C F".split())
"""Those that say how an array lies in memory, which calls of other extents are asked for."""


class Flags:
    """x.flags, which can only be read."""

    def __init__(self, x: TracedView) -> None:
        object.__setattr__(self, "_x", x)

    def __getattr__(self, name: str) -> Any:
        return self._found(name, getattr)

    def __getitem__(self, name: str) -> Any:
        return self._found(name, getitem)

    def _found(self, name: str, read: Callable[[Any, str], Any]) -> Any:
        now = read(self._x._seen.flags, name)
        if name in LAID_OUT:
            require([self._x], lambda array: read(array.flags, name) == now)
        elif self._x._memory.is_argument:
            raise NotFusable(f"x.flags.{name} of an argument", "pass what it says as an argument").at(here())
        return now

    def __setattr__(self, name: str, _: Any) -> None:
        raise NotFusable(f"setting x.flags.{name}", "do it to the result").at(here())

    __setitem__ = __setattr__
