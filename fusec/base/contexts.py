"""Values that hold in a context, for as long as a block runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Held = TypeVar("Held")
Result = TypeVar("Result")

INTERCEPTOR: ContextVar[Any] = ContextVar("INTERCEPTOR", default=None)
"""What answers calls of kernels; see `fusec.dispatch.interception`."""


@contextmanager
def holding(variable: ContextVar[Held], value: Held) -> Iterator[None]:
    """Give a variable that has a default a value in this context until the block ends."""
    before = variable.get()
    try:
        try:  # an interrupt may come as soon as the value is set
            variable.set(value)
            yield
        finally:
            variable.set(before)
    finally:
        variable.set(before)  # again, should an interrupt have come before the first


def run_holding(variable: ContextVar[Held], value: Held, function: Callable[[], Result]) -> Result:
    """What a function returns while a variable holds a value; an interrupt at any line leaves the variable as it was.

    One that comes between a block and the methods of the object that holds the value could not be seen there.
    """
    before = variable.get()
    try:
        try:
            variable.set(value)
            return function()
        finally:
            variable.set(before)
    finally:
        variable.set(before)  # again, should an interrupt have come before the first
