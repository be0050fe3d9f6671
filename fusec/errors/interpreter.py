"""Errors of the Python that runs fusec: one that ends, and one of several in a process (codes F790 to F799)."""

from __future__ import annotations

import sys
from typing import ClassVar

from fusec.errors.base import FusecError, FusecRuntimeError, UserError


class InterpreterEnds(UserError):
    """Something is used for the first time when modules can no longer be imported."""

    code: ClassVar[str] = "F790"
    message: ClassVar[str] = "Python is ending, and imports nothing any more that this call needs"
    hint: ClassVar[str] = "call it earlier, for instance in a function that atexit.register is given"
    about: ClassVar[str] = (
        "When Python ends it takes its modules apart. Kernels called from __del__ by then, or from a thread that still "
        "runs, cannot load what they need; only calls that were made several times before, with such arguments, still "
        "work. Functions registered with atexit run earlier, when everything works."
    )
    exception: ClassVar[type[FusecError]] = FusecRuntimeError


class OneInterpreter(UserError):
    """A second interpreter of the process uses fusec, and NumPy serves one."""

    code: ClassVar[str] = "F791"
    message: ClassVar[str] = "fusec needs NumPy, which serves one interpreter of a process only: {reason}"
    hint: ClassVar[str] = "use threads of the interpreter that has it, or another process (multiprocessing)"
    exception: ClassVar[type[FusecError]] = FusecRuntimeError
    reason: str


def explained(error: ImportError) -> FusecError | None:
    """What to raise for an import that the interpreter itself prevents; None if that is not why it failed."""
    if sys.meta_path is None:
        return InterpreterEnds().at()
    if "more than once per process" in str(error) or "does not support loading in subinterpreters" in str(error):
        return OneInterpreter(str(error)).at()
    return None
