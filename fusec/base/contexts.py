"""Values that hold in a context, for as long as a block runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Held = TypeVar("Held")


@contextmanager
def holding(variable: ContextVar[Held], value: Held) -> Iterator[None]:
    """Give a variable a value in this context until the block ends."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
