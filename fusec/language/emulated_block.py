"""Blocks of a kernel in Python: each position is a Python thread, of which one runs at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fusec.errors.checks import BlockMisused
from fusec.language.intrinsics import HERE, Index


class _GivenUpError(BaseException):
    """Ends a position that waits, when another one has failed."""


class PythonBlock:
    """One block; `run` calls a function for each position in turn, from barrier to barrier.

    index: of the block, along each axis.
    """

    def __init__(self, kernel: str, block: tuple[int, ...], index: tuple[int, ...]) -> None:
        self.kernel, self.block, self.index = kernel, block, index
        self.arrays: dict[object, NDArray[Any]] = {}
        self.given_up = False

    def run(self, work: Callable[[], object]) -> None:
        """Run all positions to their ends. Raises the exception of a position, or BlockMisused."""
        positions = [_Position(self, thread, work) for thread in np.ndindex(*self.block)]
        try:
            while True:
                go_on = [each.resume() for each in positions]
                failed = next((each.failure for each in positions if each.failure is not None), None)
                if failed is not None:
                    raise failed
                if not any(go_on):
                    return
                if not all(go_on):
                    raise BlockMisused(self.kernel, "only a part of a block comes to a barrier").at()
        finally:
            self.given_up = True
            for each in positions:
                each.give_up()


class _Position:
    """A position of a block; see `fusec.language.intrinsics.Thread`."""

    def __init__(self, block: PythonBlock, thread: tuple[int, ...], work: Callable[[], object]) -> None:
        self._block, self._work = block, work
        pairs = zip(block.index, block.block, thread, strict=True)
        self.position = _index(tuple(at * extent + inside for at, extent, inside in pairs))
        self.thread, self.block = _index(thread), _index(block.index)
        self.failure: BaseException | None = None
        self.is_over = False
        self._mine, self._others = threading.Semaphore(0), threading.Semaphore(0)
        self._runner = threading.Thread(target=self._run, daemon=True)
        self._runner.start()

    def resume(self) -> bool:
        """Run up to the next barrier, or to the end; whether it was a barrier."""
        if not self.is_over:
            self._mine.release()
            self._others.acquire()
        return not self.is_over

    def give_up(self) -> None:
        """End the thread that runs the position, wherever it is."""
        self.resume()
        self._runner.join()

    def meet(self) -> None:
        """Wait for the others of the block."""
        self._others.release()
        self._wait()

    def shared(self, site: object, shape: int | Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
        """The array of the block that a place in the text makes, filled with what is likely to be noticed."""
        arrays = self._block.arrays
        if site not in arrays:
            arrays[site] = np.zeros(shape, dtype)
            if arrays[site].dtype != np.bool_:
                arrays[site].view(np.uint8)[...] = 0xFF
        return arrays[site]

    def _wait(self) -> None:
        self._mine.acquire()
        if self._block.given_up:
            raise _GivenUpError

    def _run(self) -> None:
        HERE.set(self)
        try:
            self._wait()
            self._work()
        except _GivenUpError:
            pass
        except BaseException as failure:  # raised again by the thread that called the kernel
            self.failure = failure
        self.is_over = True
        self._others.release()


def _index(parts: tuple[int, ...]) -> Index:
    return parts[0] if len(parts) == 1 else parts
