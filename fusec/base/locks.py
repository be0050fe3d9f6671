"""The lock that forks wait for, so that a child process finds consistent data.

Note [Forks]: a child has one thread, and whatever locks others held in the parent stay locked for ever: fusec's own,
llvmlite's, and those of modules being imported. So all that may hold one of them - compiling, caching, the first
import of a stage - happens under this one lock, and a fork waits for it. The smaller locks of the front end and of the
passes are taken under it too. Calls of compiled kernels do not take it. No user's code runs under it.

LLVM has a second lock, which is taken after the first if both are: what compiles in the background sets the first
aside meanwhile. Forks wait for both.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from fusec.base.rounding_mode import default_rounding

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

lock: Any = threading.RLock()
llvm: Any = threading.RLock()


class set_aside:  # noqa: N801 - it is used like a function
    """Give up the lock for a while, if this thread has it, however often.

    It is no generator: one that an interrupt has left on its way into the block would take the lock when it is
    collected, and nobody would give it up again.
    """

    __slots__ = ("_held",)

    def __enter__(self) -> None:
        self._held = lock._release_save() if lock._is_owned() else None  # as threading.Condition does

    def __exit__(self, *_: object) -> None:
        if self._held is not None:
            lock._acquire_restore(self._held)


def _acquire() -> None:
    lock.acquire()
    llvm.acquire()


def _release() -> None:
    for each in (llvm, lock):
        with suppress(RuntimeError):  # a fork that had begun when this module was imported
            each.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_acquire, after_in_parent=_release, after_in_child=_release)


def fork_safe(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The same function, run under the lock and in the default floating-point modes."""

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with lock, default_rounding():
            return function(*args, **kwargs)

    return call
