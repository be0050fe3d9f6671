"""A thread that compiles while calls are answered in another way, and that steps back as long as they are.

It lives as long as there is something to do. It begins once no new kind of call has come for a moment, and lets such
calls pass between two stages: what it does holds the interpreter lock and the lock of all stages, for which they would
wait.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

from fusec.base import locks

QUIET = 0.01  # seconds without a new kind of call, after which it begins
LONGEST = 0.25  # seconds that it waits for such a moment
STEP = 0.001  # seconds between two looks
LAST = 20.0  # seconds that the end of Python waits for what is under way

_guard = threading.RLock()  # of what follows; nothing else is locked under it
_jobs: deque[Callable[[], None]] = deque()
_thread: threading.Thread | None = None
_since = _last = 0.0  # when the oldest job came, and when a new kind of call was answered last
_answering = 0  # calls of new kinds that are under way
_awaited = 0  # calls that wait for it
_is_urgent = _is_over = False
generation = 0  # of jobs: a child process does none of its parent's


def submit(job: Callable[[], None]) -> bool:
    """Have something done, which must not raise exceptions; False if there is nobody to do it."""
    global _since
    with _guard:
        if _is_over:
            return False
        if not _jobs:
            _since = time.perf_counter()
        _jobs.append(job)
        return _thread is not None or _started()


def _started() -> bool:
    """Start the thread. Whether there is one; without, nothing is left to do."""
    global _thread, _is_urgent
    _is_urgent = False
    _thread = threading.Thread(target=_work, name="fusec-compiler", daemon=True)
    try:
        _thread.start()
    except RuntimeError:  # no threads any more, or none here
        _thread = None
        _jobs.clear()
    except BaseException:  # an interrupt: if the thread has not started, the next call that is interpreted starts one
        _thread = None
        raise
    return _thread is not None


def go_on() -> None:
    """Start the thread if something is left to do, since its start was interrupted."""
    if _jobs and _thread is None:
        with _guard:
            if _jobs and _thread is None and not _is_over:
                _started()


@contextmanager
def stepping_back() -> Iterator[None]:
    """Answer a new kind of call, which the background lets pass."""
    global _answering, _last
    with _guard:
        _answering += 1
    try:
        go_on()
        yield
    finally:
        with _guard:
            _answering -= 1
            _last = time.perf_counter()


def hurry() -> None:
    """Begin at once: what is under way is wanted."""
    global _is_urgent
    _is_urgent = True


def let_pass() -> None:
    """In the background: wait while new kinds of calls are answered. Nothing elsewhere."""
    if _answering and is_here():
        until = time.perf_counter() + LONGEST
        with locks.set_aside():
            while _answering and not (_awaited or _is_over) and time.perf_counter() < until:
                time.sleep(STEP)


@contextmanager
def awaited() -> Iterator[None]:
    """Wait for what it does: it lets nothing pass meanwhile."""
    global _awaited
    with _guard:
        _awaited += 1
    hurry()
    try:
        yield
    finally:
        with _guard:
            _awaited -= 1


def in_parallel() -> AbstractContextManager[None]:
    """Without the lock of all stages, so that others pass, if there is a background, or this is it."""
    return nullcontext() if _thread is None else locks.set_aside()


def is_here() -> bool:
    """Whether this is the thread of the background."""
    return _thread is not None and _thread.ident == threading.get_ident()


def _work() -> None:
    global _thread, _is_urgent
    with _guard:
        if _thread is not None and _thread is not threading.current_thread():
            return  # there is another one, since the start of this one was interrupted
        _thread = threading.current_thread()
    while True:
        _wait()
        with _guard:
            if _is_over or not _jobs:
                _thread, _is_urgent = None, False
                return
            job = _jobs.popleft()
        job()
        del job  # and the kernel that it belongs to


def _wait() -> None:
    """Wait for the moment to begin."""
    while not _is_urgent and not _is_over:
        now = time.perf_counter()
        if now > _since + LONGEST or (not _answering and now > _last + QUIET):
            return
        time.sleep(STEP)


def _end() -> None:
    """Let the thread end before Python does: LLVM must not be at work then. What has not begun is left.

    A thread that is stuck is left, too: in Python 3.11 an interrupt in the middle of an import may lock all imports.
    """
    global _is_over
    thread = _thread
    _is_over = True
    _jobs.clear()
    if thread is not None and thread is not threading.current_thread():
        with suppress(KeyboardInterrupt):
            thread.join(LAST)


def _begin_again() -> None:
    """A child process has no such thread."""
    global _guard, _jobs, _thread, _answering, _awaited, _is_urgent, generation
    _guard, _jobs, _thread = threading.RLock(), deque(), None
    _answering, _awaited, _is_urgent = 0, 0, False
    generation += 1


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)
