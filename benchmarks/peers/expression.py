"""Turns a workload's array code into an expression text, for libraries that take one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workloads import Workload


@dataclass(frozen=True)
class Term:
    """A piece of expression text; arithmetic on it gives longer text."""

    text: str
    constant: Callable[[float], str]

    def _join(self, sign: str, other: Term | float, swapped: bool = False) -> Term:
        text = other.text if isinstance(other, Term) else self.constant(other)
        left, right = (text, self.text) if swapped else (self.text, text)
        return Term(f"({left} {sign} {right})", self.constant)

    def __add__(self, other: Term | float) -> Term:
        return self._join("+", other)

    def __radd__(self, other: float) -> Term:
        return self._join("+", other, swapped=True)

    def __sub__(self, other: Term | float) -> Term:
        return self._join("-", other)

    def __mul__(self, other: Term | float) -> Term:
        return self._join("*", other)

    def __rmul__(self, other: float) -> Term:
        return self._join("*", other, swapped=True)

    def __truediv__(self, other: Term | float) -> Term:
        return self._join("/", other)

    def __rtruediv__(self, other: float) -> Term:
        return self._join("/", other, swapped=True)

    def __pow__(self, other: Term | float) -> Term:
        return self._join("**", other)

    def __neg__(self) -> Term:
        return Term(f"(-{self.text})", self.constant)


class Functions:
    """The namespace that turns a call into text; names the library lacks raise AttributeError."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def __getattr__(self, name: str) -> Callable[[Term], Term]:
        if name not in self.names:
            raise AttributeError(name)
        return lambda term: Term(f"{name}({term.text})", term.constant)


def texts(
    work: Workload, operands: int, functions: frozenset[str], constant: Callable[[float], str]
) -> list[str] | None:
    """One expression over x0, x1, … for every output, or None if the library lacks a function."""
    if work.integer:
        return None  # a loop is no expression
    try:
        terms = work.compute(Functions(functions), *(Term(f"x{at}", constant) for at in range(operands)))
    except AttributeError:
        return None
    return [term.text for term in (terms if isinstance(terms, tuple) else (terms,))]
