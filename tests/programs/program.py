"""What a program is: a plain function of NumPy arrays, with the arguments to run it on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

PROGRAMS: dict[str, Program] = {}
"""All programs by name; the modules beside this one fill it."""

Rng = np.random.Generator


@dataclass(frozen=True)
class Program:
    """A function, and what it is run on. arguments: from a generator and a size. rtol: 0 where NumPy is exact."""

    function: Callable[..., Any]
    arguments: Callable[[Rng, int], tuple[Any, ...]]
    rtol: float
    atol: float

    def given(self, seed: int, size: int) -> tuple[Any, ...]:
        """New arguments."""
        return self.arguments(np.random.default_rng(seed), size)


def program(
    arguments: Callable[[Rng, int], tuple[Any, ...]], rtol: float = 0.0, atol: float = 0.0
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function in the table."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        assert function.__name__ not in PROGRAMS
        PROGRAMS[function.__name__] = Program(function, arguments, rtol, atol)
        return function

    return enter
