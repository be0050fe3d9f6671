"""Errors of the Python interpreter: its end, and several of them in a process (codes F790 to F799)."""

from __future__ import annotations

import sys

from fusec.errors.base import FusecError, FusecRuntimeError, UserError


class InterpreterEnds(UserError, code="F790", exception=FusecRuntimeError):
    """A first use when modules can no longer be imported."""

    message = "Python is shutting down, and can no longer import what this call needs"
    hint = "call it earlier, for instance in a function registered with atexit"
    about = (
        "When Python shuts down, it takes its modules apart. Kernels called then, from __del__ or from a thread that "
        "still runs, cannot load what they need; only calls that were made several times before, with arguments of the "
        "same kind, still work. Functions registered with atexit run earlier, while everything works."
    )


class OneInterpreter(UserError, code="F791", exception=FusecRuntimeError):
    """A second interpreter in a process, where NumPy supports only one."""

    message = "fusec needs NumPy, which works in only one interpreter of a process: {reason}"
    hint = "use threads of the interpreter that has NumPy, or another process (multiprocessing)"
    reason: str


def explained(error: ImportError) -> FusecError | None:
    """What to raise for an import that the interpreter itself prevents; None if that is not why it failed."""
    if sys.meta_path is None:
        return InterpreterEnds().at()
    if "more than once per process" in str(error) or "does not support loading in subinterpreters" in str(error):
        return OneInterpreter(str(error)).at()
    return None
