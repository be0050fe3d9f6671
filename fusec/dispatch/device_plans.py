"""Repeated calls on a device: the results of the first call of a kind, found by a few attributes of its arrays.

The first call leaves a `CachedCall` here if all its arrays come from one library, were used on the stream that is
current there, and nothing had to be copied, cleared or waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fusec.arguments.layouts import bounds
from fusec.arguments.scalars import SCALAR_TYPES
from fusec.base import locks
from fusec.base.recent import Recent
from fusec.base.records import replace
from fusec.dispatch.cached_launches import in_sequence
from fusec.dispatch.call import KernelCall
from fusec.dispatch.device import CUDA, DeviceCode
from fusec.dispatch.fast_path_device import ArrayPair, CachedCall, entry_of
from fusec.dispatch.overlap import ArrayArgument, may_coincide
from fusec.dispatch.plan import Plan
from fusec.runtime import cuda
from fusec.runtime.cuda import DeviceArray

MAX_READY = 256  # kinds of call remembered by one kernel
MAX_ENTRIES = 4  # of them with a function of their own; calls that are none of these pass them all


class DeviceFastPath:
    """The calls of one object that have a `CachedCall`; all others go to `fallback`.

    An object may stand for several kernels, such as the variants of a function, if the number and the types of the
    arguments tell them apart.
    """

    def __init__(self, fallback: Callable[..., object], install: Callable[[Callable[..., object]], None]) -> None:
        """install: makes a function the first to be called."""
        self.fallback = fallback
        self._install = install
        self._readers: dict[type, Callable[[Any], tuple[Any, object]]] = {}
        self._ready: Recent[object, CachedCall] = Recent(MAX_READY)  # by what arguments must have in common
        self._front: Callable[..., object] = self.call
        self._entries: set[tuple[object, ...]] = set()
        install(self.call)

    def add(self, args: Sequence[object], ready: CachedCall) -> None:
        """Store a kind of call by its arguments."""
        numbers = dict.fromkeys((type(arg) for arg in args if isinstance(arg, SCALAR_TYPES)), _read_number)
        with locks.lock:
            self._readers |= {**numbers, ready.source.kind: ready.source.read}
            self._ready[tuple(self._readers[type(arg)](arg)[1] for arg in args)] = ready

    def call(self, *args: object, **kwargs: Any) -> object:
        """Run, or call the fallback."""
        readers = self._readers
        everything = args
        if kwargs:
            if len(kwargs) != 1 or "out" not in kwargs:
                return self.fallback(*args, **kwargs)
            everything = (*args, kwargs["out"])
        values, marks = [], []
        try:
            for arg in everything:
                value, mark = readers[type(arg)](arg)
                values.append(value)
                marks.append(mark)
            key = tuple(marks)
            ready = self._ready.get(key)
            if ready is None or (kwargs and len(args) != ready.nin):
                return self.fallback(*args, **kwargs)
            if ready.sequence is None:
                ready = self._hasten(key, ready, everything)
            results = ready.run(everything, values)
        except Exception:  # an unknown type or kind of call, an array that refuses, no memory: told by the long way
            return self.fallback(*args, **kwargs)
        return results

    def _hasten(self, key: tuple[object, ...], ready: CachedCall, args: tuple[object, ...]) -> CachedCall:
        """Make a sequence of the launches, and put a function for this kind of call before all that are there.

        Raises LookupError while a CUDA graph captures the call, since code is loaded.
        """
        if cuda.is_captured(ready.source.stream(ready.device)):
            raise LookupError
        ready = replace(ready, sequence=ready.in_sequence())
        with locks.lock:
            self._ready[key] = ready
            if len(self._entries) < MAX_ENTRIES and key not in self._entries and ready.source.facts:
                self._entries.add(key)
                self._front = entry_of(ready, args, self._front)
                self._install(self._front)
        return ready


def _read_number(value: object) -> tuple[object, object]:
    return value, type(value)


# --- making --------------------------------------------------------------------------------------------------------


def library_of(args: Sequence[object], device: int, stream: int) -> cuda.ArrayLibrary | None:
    """The library of all arrays of a call, if calls with the stream that is current there can be repeated."""
    arrays = [arg for arg in args if not isinstance(arg, SCALAR_TYPES)]
    source = cuda.source_of(arrays[0])
    if source is None or any(type(each) is not source.kind for each in arrays) or source.stream(device) != stream:
        return None
    return source


def cached_call(plan: Plan[DeviceCode], call: KernelCall[DeviceArray]) -> CachedCall | None:
    """The fast path of calls of this kind; None if the library of the arrays has none.

    Requires: nothing was copied, cleared or left out by a mask.
    """
    kernel, device = call.kernel, call.device
    source = library_of(call.args, device, call.stream)
    if source is None:
        return None
    bound, makers = plan.bound, list[Callable[[], tuple[Any, int]]]()
    if not call.is_given:
        for each in plan.outputs:
            makers.append(source.maker(each.shape, each.order or range(len(each.shape)), each.dtype, device))
    given = call.arguments(CUDA)[: len(call.args)]
    if kernel.kind.overlap == "stage outputs":  # results are stored before all elements are read
        given = [None if each is None else each._replace(raw=True) for each in given]
    return CachedCall(
        makers=tuple(makers),
        pairs=_pairs_of(given, kernel.is_written),
        source=source,
        device=device,
        nin=kernel.nin,
        returns=kernel.returns,
        note=partial(kernel.remember, bound),
        nbytes=plan.nbytes,
        in_sequence=partial(in_sequence, plan, kernel.signature, device),
    )


def _pairs_of(arrays: Sequence[ArrayArgument | None], written: Sequence[bool]) -> tuple[ArrayPair, ...]:
    """The pairs of arrays that every call must compare: one of them written, both given by the caller.

    arrays: of the parameters, from the first, that the caller passes. written: of every parameter.
    """
    together = [None if each is None else each._replace(view=each.view._replace(pointer=0)) for each in arrays]
    found = []
    for second, output in enumerate(together):
        for first, other in enumerate(together):
            if output is None or other is None or not written[second] or first == second:
                continue
            if written[first] and first > second:  # the pair of two outputs was seen
                continue
            (low, high), (other_low, other_high) = bounds(output.view), bounds(other.view)  # from their addresses
            is_harmless = not written[first] and may_coincide(other, output)
            found.append(ArrayPair(first, second, other_low - high, other_high - low, is_harmless))
    return tuple(found)
