"""Errors of traced operations. The function may catch one, and what it does then holds for the extents of its call."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import ParamSpec, TypeVar

from fusec.fusion.trace.trace import RECORDING

P = ParamSpec("P")
R = TypeVar("R")
SILENT = frozenset("__init__ __getattr__ __repr__ __str__ __format__ __hash__ __copy__ __deepcopy__".split())
"""Methods whose errors do not depend on extents."""


def restricting(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose errors restrict the trace to its own extents: others may raise none."""

    @wraps(function)
    def run(*args: P.args, **options: P.kwargs) -> R:
        try:
            return function(*args, **options)
        except Exception:
            recording = RECORDING.get()
            if recording is not None:
                recording.trace.has_looked = True
            raise

    return run


def restrict(kind: type) -> None:
    """Have the errors of a class's special methods and properties restrict the trace."""
    for name, found in list(vars(kind).items()):
        if isinstance(found, FunctionType) and name.startswith("__") and name not in SILENT:
            setattr(kind, name, restricting(found))
        elif isinstance(found, property) and found.fset is not None:
            setattr(kind, name, found.setter(restricting(found.fset)))
