"""What a fuzzer finds, and what every door holds its programs to."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import NoReturn, TypeVar

from fusec.errors.base import CATALOGUE, FusecError

Result = TypeVar("Result")

LONGEST_MESSAGE = 4000  # characters
OF_VALUES = ("F720",)  # a bool is compared with a number that no bool equals


class RefusedError(Exception):
    """A program that is rightly refused; there is nothing to check."""


class FindingError(Exception):
    """Something wrong. kind: "bits", "exception", "refused", "message", "dtype" and the like; text: the program."""

    def __init__(self, kind: str, detail: str, text: str) -> None:
        super().__init__(f"{kind}: {detail}\n{text}")
        self.kind, self.detail, self.text = kind, detail, text


def attempt(run: Callable[[], Result], text: str) -> Result | FusecError:
    """What `run` returns, or the catalogued error that it raises. Raises FindingError for any other exception."""
    try:
        return run()
    except FindingError:
        raise
    except FusecError as error:
        check_message(error, text)
        return error
    except Exception as error:
        raise FindingError("exception", "".join(traceback.format_exception(error)[-12:]), text) from None


def accepted(run: Callable[[], Result], text: str) -> Result:
    """What `run` returns. Raises FindingError for any exception: the program is valid by construction.

    Raises RefusedError for an error that depends on values, which no generator looks at.
    """
    found = attempt(run, text)
    if isinstance(found, FusecError):
        refused(found, text)
    return found


def refused(error: FusecError, text: str) -> NoReturn:
    """Raise RefusedError if an error depends on values, FindingError if not."""
    if error.error.code in OF_VALUES:
        raise RefusedError
    raise FindingError("refused", str(error), text)


def check_message(error: FusecError, text: str) -> None:
    """Raise FindingError unless an error is one of the catalogue, with a message of reasonable length."""
    try:
        message = str(error)
        message.encode(errors="surrogateescape")
    except Exception as problem:
        raise FindingError("message", f"{error.error!r} cannot be shown: {problem!r}", text) from None
    if error.error.code not in CATALOGUE or error.error.code not in message:
        raise FindingError("message", f"{message} is not of the catalogue", text)
    if len(message) > LONGEST_MESSAGE:
        raise FindingError("message", f"{len(message)} characters: {message[:200]}", text)
