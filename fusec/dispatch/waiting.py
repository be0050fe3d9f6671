"""A kind of call whose kernels are compiled in the background."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from fusec.base import background, locks
from fusec.dispatch.spec import Bound

STEP = 0.0005  # seconds between two looks


class Waiting:
    """What calls of a kind know until their kernels are compiled.

    bound: the facts of calls that are interpreted meanwhile; None if calls wait.
    """

    def __init__(self, bound: Bound | None, prepare: Callable[[], object]) -> None:
        self.bound, self.seconds = bound, 0.0  # that such calls took
        self._prepare: Callable[[], object] | None = prepare
        self._generation = background.generation
        self._tokens = [True]  # whoever takes it does the work
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """Whether nobody works on it, or ever will; what went wrong comes to light in the next call."""
        return self._is_over or self._generation != background.generation

    def submit(self) -> bool:
        """Have it done in the background; False if that is not possible."""
        if not background.submit(self.run):
            self._is_over = True
        return not self._is_over

    def run(self) -> None:
        """Do the work, in the background."""
        with suppress(BaseException):  # the next call meets it too
            if self._prepare is not None and self._take():
                self._prepare()
        self.finish()

    def finish(self) -> None:
        """Interpret no more calls."""
        self._is_over, self._prepare = True, None

    def wait(self) -> None:
        """Return once it is done in the background; at once if it has not begun, or never will."""
        if self.is_over:
            return
        if self._take():
            self.finish()
            return
        with background.awaited(), locks.set_aside():
            while not self.is_over:
                time.sleep(STEP)

    def _take(self) -> bool:
        try:
            return self._tokens.pop()
        except IndexError:
            return False
