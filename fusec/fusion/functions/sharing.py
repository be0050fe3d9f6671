"""NumPy's functions along an axis, such as transforms and sorts, by several threads.

Each thread has some of the rows; NumPy lets others run while it works on them, and gives every row the same bits as if
it had all.
"""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from functools import cache, partial, wraps
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fusec.fusion.functions.long_transforms import TRANSFORMS, in_short_rows
from fusec.fusion.trace.trace_values import outermost_first
from fusec.runtime.cpu import memory
from fusec.runtime.cpu.machine import thread_count

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

LEAST = 1 << 14  # elements of a part, 0.1 ms and more of work: waking a thread of Python takes 0.05
_ARE_ALIKE = not hasattr(np, "_get_promotion_state")  # threads: those of NumPy 2.1 promote as NumPy 1 did
_PARTS = 2  # of a thread; the more, the less the others wait for the last one


class Slab(NamedTuple):
    """Some of the places along an axis, which is counted from the last one if that axis may go."""

    axis: int
    places: slice

    def of(self, array: Any) -> Any:
        """The part of an array."""
        rest = (slice(None),) * (self.axis if self.axis >= 0 else -1 - self.axis)
        return array[(*rest, self.places)] if self.axis >= 0 else array[(..., self.places, *rest)]


def shared(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of an array and, perhaps, an axis, whose results threads write to parts of a new array."""
    signature = inspect.signature(function)

    @wraps(function)
    def call(a: Any, *args: Any, **options: Any) -> Any:
        if type(a) is not np.ndarray or a.size < 2 * LEAST:
            return function(a, *args, **options)
        given = signature.bind(a, *args, **options)
        axis = given.arguments.get("axis", signature.parameters["axis"].default)
        parts = parts_of(a, axis, thread_count()) if type(axis) is int else []
        if len(parts) < 2:
            return function(a, *args, **options)
        return _assembled(a, parts, lambda part: function(part, *args, **options))

    return call


def parts_of(a: Any, axis: int, threads: int) -> list[Slab]:
    """Parts that hold whole rows along an axis, of the array and of results that may lack the axis; none for one."""
    count = min(a.size // LEAST, threads * _PARTS)
    if not -a.ndim <= axis < a.ndim or threads < 2 or count < 2 or not _ARE_ALIKE:
        return []
    axis %= a.ndim
    before, after = range(axis), range(axis + 1, a.ndim)
    along = max((*before, *after), key=lambda each: a.shape[each], default=axis)
    extent = a.shape[along]
    count = min(count, extent)
    if along == axis or count < 2:
        return []
    cuts = [extent * number // count for number in range(count + 1)]
    along -= a.ndim if along > axis else 0
    return [Slab(along, slice(start, stop)) for start, stop in itertools.pairwise(cuts)]


def _assembled(a: Any, parts: Sequence[Slab], function: Callable[[Any], Any]) -> Any:
    """The results of a function for parts of an array, in one array that lies in memory as each of them does."""
    lock, made = Lock(), list[Any]()

    def work(part: Slab) -> None:
        found = function(part.of(a))
        with lock:
            if not made:
                extents = list(found.shape)
                extents[part.axis] = a.shape[part.axis]
                made.append(memory.empty(extents, found.dtype, outermost_first(found)))
        part.of(made[0])[...] = found

    _run([partial(work, each) for each in parts])
    return made[0]


def _run(jobs: Sequence[Callable[[], None]]) -> None:
    """Do all jobs, some of them in other threads. Raises what the first one raises that does."""
    pending: Iterator[Callable[[], None]] = iter(jobs)
    lock = Lock()

    def work() -> None:
        while True:
            with lock:
                job = next(pending, None)
            if job is None:
                return
            job()

    try:
        others = [_pool().submit(copy_context().run, work) for _ in range(min(len(jobs), thread_count()) - 1)]
    except RuntimeError:  # the process ends, or has no more threads
        others = []
    try:
        work()
    finally:
        started = [other for other in others if not other.cancel()]
        errors = [other.exception() for other in started]
    for error in errors:
        if error is not None:
            raise error


@cache
def _pool() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(thread_count() - 1, "fusec-library")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


@cache
def transform(name: str) -> Callable[..., Any]:
    """One of NumPy's transforms along an axis."""
    return shared(in_short_rows(name, transform) if name in TRANSFORMS else getattr(np.fft, name))


def transforms(name: str) -> Callable[..., Any]:
    """One of NumPy's transforms along several axes, which are transforms along one after the other."""
    function: Callable[..., Any] = getattr(np.fft, name)
    kind = name.rstrip("2n")
    once, forward, inverse = map(transform, (kind, "fft", "ifft"))
    default = (-2, -1) if name.endswith("2") else None

    @wraps(function)
    def call(a: Any, s: Any = None, axes: Any = default, norm: Any = None, **options: Any) -> Any:
        along = range(np.ndim(a)) if axes is None else axes
        is_plain = type(a) is np.ndarray and s is None and not options and _are_axes(along)
        if not is_plain or a.size < 2 * LEAST:
            return function(a, s, axes, norm, **options)
        *others, last = along
        if kind == "irfft":
            for axis in others:
                a = inverse(a, axis=axis, norm=norm)
            return once(a, axis=last, norm=norm)
        a = once(a, axis=last, norm=norm)
        for axis in reversed(others):
            a = (inverse if kind == "ifft" else forward)(a, axis=axis, norm=norm)
        return a

    return call


def _are_axes(given: Any) -> bool:
    """Whether these are some axes, each of them once."""
    is_list = isinstance(given, (tuple, list, range)) and all(type(each) is int for each in given)
    return is_list and 0 < len(given) == len(set(given))
