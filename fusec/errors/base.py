"""The machinery of user errors: a value that says what is wrong, and the exception that carries it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

from fusec import diagnostics
from fusec.source import Span


class FusecError(Exception):
    """A mistake in what the user gave: `error` is the value, `span` the place in the text, if it has one."""

    def __init__(self, error: UserError, span: Span | None = None) -> None:
        super().__init__(error, span)
        self.error = error
        self.span = span

    def __str__(self) -> str:
        return diagnostics.render(
            self.error.code, self.error.text(), self.span, self.error.text("label"), self.error.text("hint")
        )


class FusecTypeError(FusecError, TypeError):
    """A FusecError that is also a TypeError."""


class FusecValueError(FusecError, ValueError):
    """A FusecError that is also a ValueError."""


class FusecIndexError(FusecError, IndexError):
    """A FusecError that is also an IndexError."""


class FusecRuntimeError(FusecError, RuntimeError):
    """A FusecError that is also a RuntimeError: the machine, not the program, is in the way."""


CATALOGUE: dict[str, type[UserError]] = {}


@dataclass(frozen=True)
class UserError:
    """Base of the catalogue. Class attributes: `code` (F and three digits, never reused), `message`, `label` (under
    the caret), `hint` (the cure), as format strings over the fields; `exception`, what is raised; `about`, a longer
    explanation that ``fusec explain CODE`` prints.
    """

    code: ClassVar[str] = ""
    message: ClassVar[str] = ""
    label: ClassVar[str] = ""
    hint: ClassVar[str] = ""
    about: ClassVar[str] = ""
    exception: ClassVar[type[FusecError]] = FusecValueError

    def __init_subclass__(cls) -> None:
        if cls.code:
            assert cls.code not in CATALOGUE or CATALOGUE[cls.code].__qualname__ == cls.__qualname__, (
                f"{cls.__name__} and {CATALOGUE[cls.code].__name__} share the code {cls.code}"
            )
            CATALOGUE[cls.code] = cls

    def text(self, part: str = "message") -> str:
        """One of the class's format strings, filled in with the fields."""
        template: str = getattr(type(self), part)
        return template.format(**{field.name: getattr(self, field.name) for field in fields(self)})

    def at(self, span: Span | None = None) -> FusecError:
        """The exception to raise: ``raise UnknownName(...).at(span)``."""
        return type(self).exception(self, span)
