"""Repeated calls of a fused function with arrays on a device: read by a few attributes, and enqueued at once.

A call that the plan's launches have served leaves a `RepeatedCall` here if all its arrays come from one library, on the
stream that is current there. Later calls of its kind neither export arrays nor look for a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.arguments.layouts import View, are_apart, bounds
from fusec.base import dtypes, locks
from fusec.base.recent import Recent
from fusec.base.records import dataclass
from fusec.dispatch.device_plans import MAX_ENTRIES, library_of
from fusec.dispatch.fast_path_device import MAX_STREAMS, EntryParts, generated
from fusec.dispatch.interception import present
from fusec.fusion.devices import device_calls
from fusec.fusion.devices.device_sequences import PreparedKernels, PreparedPlan, returned
from fusec.fusion.memory.calls import CallStep
from fusec.fusion.memory.results import MISSED, Returned, ReturnedConstant, ReturnedItems, ServedCall
from fusec.fusion.memory.slots import SlotView
from fusec.fusion.outside.constants import DICTS, NUMBERS, exact, is_named_tuple, is_number, is_read, key_of
from fusec.fusion.trace.trace import RECORDING
from fusec.runtime import cuda

MAX_REPEATED = 256  # kinds of calls
MAX_ALIKE = 16  # of them, those that differ only in what the function reads from outside
Span = tuple[int, int, int]  # place of an array, and where its memory starts and ends, from its first element


class UnreadError(Exception):
    """An argument is of a kind that no call here has."""


class ArgumentReader:
    """The arguments of one call: arrays and numbers, addresses, objects with attributes, and what calls of one kind
    have in common.
    """

    def __init__(
        self,
        readers: Mapping[type, Any],
        values: Collection[int],
        objects: Collection[type],
        known: Mapping[int, tuple[Any, Any]],
    ) -> None:
        self._readers, self._values, self._readable, self._known = readers, values, objects, known
        self.flat: list[Any] = []
        self.addresses: list[int] = []
        self.objects: list[Any] = []
        self.marks: list[Any] = []

    def take(self, given: Any) -> None:
        """Read an argument. Raises UnreadError, and what an array raises."""
        kind = type(given)
        reader = self._readers.get(kind)
        if reader is not None:
            address, mark = reader(given)
            self.flat.append(given)
            self.addresses.append(address)
            self.marks.append(mark)
        elif kind is list or kind is tuple:
            self.marks += (kind, len(given))
            for each in given:
                self.take(each)
        elif kind in NUMBERS:
            self.marks.append((kind, exact(given)) if len(self.flat) in self._values else kind)
            self.flat.append(given)
            self.addresses.append(0)
        else:
            self._take_other(kind, given)

    def _take_other(self, kind: type, given: Any) -> None:
        found = self._known.get(id(given))
        if found is not None:
            self.marks.append(found[1])
        elif kind in self._readable or is_read(given):
            self.marks.append(kind)
            self.objects.append(given)
        elif kind in DICTS:
            self.marks += (kind, tuple(map(key_of, given)))
            for each in given.values():
                self.take(each)
        elif is_named_tuple(given):
            self.marks += (kind, len(given))
            for each in given:
                self.take(each)
        elif is_number(given):
            self.marks.append((given.dtype, exact(given) if len(self.flat) in self._values else None))
            self.flat.append(given)
            self.addresses.append(0)
        elif given is None or kind in (bool, str):
            self.marks.append((kind, given))
        else:
            raise UnreadError


@dataclass(eq=False)
class RepeatedCall:
    """One kind of call. makers: of new arrays, by slot. constants: arrays of the plan's own, by slot. written, spans:
    arrays that are written, and all. picked: marks of what the function reads from outside. rest: of the address of
    each array. allocators: of memory between kernels, by stream.
    """

    plan: Any
    prepared: PreparedPlan
    source: cuda.ArrayLibrary
    device: int
    makers: tuple[tuple[int, Callable[[], tuple[Any, int]]], ...]
    constants: tuple[tuple[int, Any], ...]
    written: tuple[Span, ...]
    spans: tuple[Span, ...]
    picked: tuple[Any, ...]
    allocators: dict[int, Callable[[], Any]]

    is_host = False

    def __post_init__(self) -> None:
        self.zeros = (0,) * self.prepared.own
        self._parts: dict[int, cuda.DeviceArray] = {}  # by identity of a view, which the plan keeps alive
        self.borrowing: dict[tuple[int, int, str, int], Any] = {}  # arrays over others' memory; see `RepeatedCalls`
        self.calls = {part: device_calls.targets_of(part) for part in self.prepared.parts if isinstance(part, CallStep)}
        self.shown = {each.slot for each in returned(self.plan)}  # slots of arrays that are of the call's library

    def picks(self, read: ArgumentReader) -> bool:
        """Add what the function reads from outside; False if something has changed."""
        plan = self.plan
        if plan.names is not None:
            for place, name, value in plan.names:
                if place.get(name, plan) is not value:
                    return False
            return all(getattr(function, name) is value for function, name, value in plan.functions)
        found = plan.guards.read(read.objects, (), self._described)
        if found is None or len(found) != len(self.picked):
            return False
        for each, mark in zip(found, self.picked, strict=True):
            address = 0
            if isinstance(each, cuda.DeviceArray):
                each = each.given
                address, other = self.source.read(each)
                if type(each) is not self.source.kind or other != mark:
                    return False
            elif mark is not None:
                return False
            read.flat.append(each)
            read.addresses.append(address)
        return True

    def _described(self, value: Any) -> cuda.DeviceArray:
        """An array from outside, which is not exported for that. Raises LookupError for one of another library."""
        found = self.source.look(value) if type(value) is self.source.kind else None
        if found is None:
            raise LookupError
        row, shape = found
        return cuda.DeviceArray(0, shape, self.source.strides(value), row, None, False, None, value, value)

    def are_apart(self, addresses: Sequence[int]) -> bool:
        """Whether written arrays share no memory with others."""
        if are_apart((addresses[place] + low, addresses[place] + high) for place, low, high in self.spans):
            return True
        for place, low, high in self.written:
            start, stop = addresses[place] + low, addresses[place] + high
            for other, other_low, other_high in self.spans:
                if other != place and addresses[other] + other_low < stop and start < addresses[other] + other_high:
                    return False
        return True

    def call(self, read: ArgumentReader) -> Any:
        """The result of a call; MISSED, and nothing is done, if it is not as the launches suppose.

        Raises LaunchFailed, and what libraries raise.
        """
        plan, prepared = self.plan, self.prepared
        if self.written and not self.are_apart(read.addresses):
            return MISSED
        frame, held, rests = [*read.flat, *plan.memory.own], None, 0
        stream, addresses = self.source.stream(self.device), [*read.addresses, 0, *self.zeros]
        try:
            plan.compute(frame)
            begun = [part.begun(frame) for part in prepared.kernels]
            if prepared.nbytes:
                held = self.between(stream)
                rests = addresses[len(read.addresses)] = held.pointer
            for slot, make in self.makers:
                frame[slot], address = make()
                addresses[slot] = address
                rests |= address
        except Exception:  # a number that is or does not fit otherwise, no memory: told by the long way
            return MISSED
        if rests % cuda.VECTOR_BYTES:
            return MISSED
        for slot, array in self.constants:
            array.stream, addresses[slot] = stream, array.pointer
        self._run(frame, addresses, begun, held, stream)
        result = plan.result.build(frame, self)
        for store in plan.stores:
            store.run(frame, self)
        return result

    def _run(self, frame: list[Any], addresses: list[int], begun: Sequence[Any], held: Any, stream: int) -> None:
        """Enqueue the kernels, and call libraries between them. held: the memory between kernels."""
        if len(self.prepared.parts) == 1 and begun:
            self.prepared.kernels[0].run(begun[0], addresses, stream)
            return
        words = iter(begun)
        calls = None
        for part in self.prepared.parts:
            if not isinstance(part, CallStep):
                part.run(next(words), addresses, stream)
                continue
            if calls is None:
                calls = device_calls.RepeatedCalls(self, frame, addresses, held, stream)
            calls.run(part)

    def between(self, stream: int) -> Any:
        """Memory between kernels."""
        allocate = self.allocators.get(stream)
        if allocate is None:
            if len(self.allocators) >= MAX_STREAMS:
                self.allocators.clear()
            allocate = self.allocators[stream] = cuda.allocator(self.prepared.nbytes, self.device, stream)
        return allocate()

    def lent(self, frame: list[Any], asked: Returned) -> Any:
        """What the user gets."""
        held, deliver = frame[asked.slot], self.source.deliver
        if deliver is not None and type(held) is cuda.CudaArray:
            held = frame[asked.slot] = deliver(held)
        return held if asked.view is None else self.seen(held, asked.view)

    def seen(self, array: Any, view: SlotView) -> Any:
        """A view of an array, in its library; None if the library has no such views."""
        part = self._parts.get(id(view))
        if part is None:
            row = dtypes.from_numpy(view.dtype)
            assert row is not None, "kernels take known dtypes"
            part = cuda.DeviceArray(0, view.shape, view.strides, row, self.device, view.readonly, None, None, None)
            self._parts[id(view)] = part
        return cuda.seen_as(array, part, view.offset)


class DeviceRepeats:
    """The repeated calls of one function. told: makes errors of memory what users see. known: its constants."""

    def __init__(self, told: Callable[[Exception], Exception], known: Mapping[int, tuple[Any, Any]]) -> None:
        self._told, self._known = told, known
        self._front: Callable[..., Any] | None = None  # the first of the functions for single kinds of calls
        self._entries: set[Any] = set()
        self._readers: dict[type, Any] = {}
        self._ready: Recent[Any, tuple[RepeatedCall, ...]] = Recent(MAX_REPEATED)

    def call(
        self, args: Sequence[Any], options: Mapping[str, Any], values: Collection[int], objects: Collection[type]
    ) -> Any:
        """The result of a call, or MISSED."""
        if present() is not None or RECORDING.get() is not None:
            return MISSED
        if self._front is not None and not options:
            found = self._front(*args)
            if found is not MISSED:
                return found
        read = ArgumentReader(self._readers, values, objects, self._known)
        try:
            key = self._key(read, args, options)
            ready = self._ready.get(key)
        except Exception:  # an array that refuses, or what no call here has: told by the long way
            return MISSED
        for each in ready or ():
            if not cuda.is_current(each.device):
                return MISSED
            count = len(read.flat)
            if each.picks(read):
                try:
                    return each.call(read)
                except MemoryError as problem:
                    raise self._told(problem) from problem.__cause__
            del read.flat[count:], read.addresses[count:]
        return MISSED

    def _key(self, read: ArgumentReader, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """What calls of one kind have in common. Raises UnreadError, and what an array raises."""
        for each in args:
            read.take(each)
        if options:
            read.marks += ("options", *options)
            for each in options.values():
                read.take(each)
        return tuple(read.marks)

    def add(self, args: Sequence[Any], options: Mapping[str, Any], served: ServedCall) -> None:
        """Keep a call that the launches of its plan have served, if later ones may be repeated from it."""
        ready = repeated(served)
        if ready is None:
            return
        self._readers[ready.source.kind] = ready.source.read
        read = ArgumentReader(self._readers, served.values, served.objects, self._known)
        try:
            key = self._key(read, args, options)
        except Exception:  # whatever it is, the long way takes such calls
            return
        if len(read.flat) != served.given:  # stream= is not an argument of the function
            return
        known = self._ready.get(key) or ()
        self._ready[key] = (ready, *known[: MAX_ALIKE - 1])
        if options or served.objects or len(self._entries) >= MAX_ENTRIES:
            return
        known_as = (key, id(ready.plan))  # which the function keeps
        if known_as in self._entries:
            return
        with locks.lock:
            entry = entry_of(ready, args, served.values, self._front or _missed)
            if entry is not None:
                self._entries.add(known_as)
                self._front = entry

    def clear(self) -> None:
        """Forget all calls."""
        self._ready.clear()
        self._entries.clear()
        self._front = None


def _missed(*args: Any) -> Any:
    """The answer to calls of no known kind."""
    del args
    return MISSED


def entry_of(
    ready: RepeatedCall, args: Sequence[Any], values: Collection[int], other: Callable[..., Any]
) -> Callable[..., Any] | None:
    """A function for calls with arguments like `args`, which hands all others to `other`; None if it would have more to
    do than to compare arguments and names, allocate, and launch. values: places of numbers that must be the same.
    """
    plan, prepared, source, kind = ready.plan, ready.prepared, ready.source, ready.source.kind
    (kernels,) = prepared.parts if len(prepared.parts) == 1 else (None,)
    is_plain = all(type(each) is kind or type(each) in NUMBERS for each in args) and source.facts and not source.deliver
    if not isinstance(kernels, PreparedKernels) or not is_plain or ready.picked:
        return None
    if plan.numbers or plan.bounds or plan.stores:
        return None
    own = plan.memory.own
    base = len(args) + 1 + len(own)  # what a place in front of which the own slots of a plan are counts from
    names: dict[str, Any] = {"plan": plan, "seen": ready.seen}
    places = {base + slot: f"new{at}" for at, (slot, _) in enumerate(ready.makers)}
    arrays = {base + slot: f"made{at}" for at, (slot, _) in enumerate(ready.makers)}
    finish = list[str]()
    for at, (slot, array) in enumerate(ready.constants):
        names[f"constant{at}"] = array
        places[base + slot] = str(array.pointer)
        finish.append(f"constant{at}.stream = on")
    places |= {at: f"p{at}" for at in range(len(args))} | {len(args): "held.pointer"}
    arrays |= {at: f"a{at}" for at in range(len(args))}
    words = [places[place % base] for place in kernels.places]
    for at, (slot, encoder) in enumerate(kernels.numbers):
        names[f"encode{at}"] = encoder
        if slot < 0:
            names[f"number{at}"] = own[slot]
        words.append(f"encode{at}({f'number{at}' if slot < 0 else f'a{slot}'})")
    answer = _answer(plan.result, lambda slot: arrays.get(slot if slot >= 0 else base + slot), names)
    if answer is None:
        return None
    parts = EntryParts(
        names=names,
        conditions=[*_same_numbers(args, values, names), *_same_outside(ready, names)],
        objections=_meetings(ready),
        makers=[make for _, make in ready.makers],
        between=ready.between if prepared.nbytes else None,
        launch=kernels.enqueue,
        words=words,
        finish=finish,
        answer=answer,
    )
    return generated(source, ready.device, args, parts, other)


def _same_numbers(args: Sequence[Any], values: Collection[int], names: dict[str, Any]) -> list[str]:
    """Conditions that numbers which the function needs as such are those of the call that was traced."""
    known = {at: exact(args[at]) for at in values if at < len(args) and type(args[at]) in NUMBERS}
    names |= {"exact": exact, **{f"value{at}": value for at, value in known.items()}}
    return [f"exact(a{at}) == value{at}" for at in known]


def _same_outside(ready: RepeatedCall, names: dict[str, Any]) -> list[str]:
    """Conditions that what the function reads from outside has not changed."""
    plan, found = ready.plan, list[str]()
    if plan.names is None:
        names |= {"read": plan.guards.read, "described": ready._described}
        return ["read((), (), described) == []"]
    for at, (place, name, value) in enumerate(plan.names):
        names |= {f"get{at}": place.get, f"outside{at}": value}
        found.append(f"get{at}({name!r}, plan) is outside{at}")
    for at, (function, name, value) in enumerate(plan.functions):
        names |= {f"function{at}": function, f"part{at}": value}
        found.append(f"function{at}.{name} is part{at}")
    return found


def _meetings(ready: RepeatedCall) -> list[str]:
    """Conditions under which written arrays share memory with others."""
    found = []
    for place, low, high in ready.written:
        for other, other_low, other_high in ready.spans:
            if other != place:
                found.append(f"{low - other_high} < p{other} - p{place} < {high - other_low}")
    return found


def _answer(result: Any, array: Callable[[int], str | None], names: dict[str, Any]) -> str | None:
    """What a call returns, as Python text; None for what is no array, and no tuple or list of such."""
    if isinstance(result, Returned):
        held = array(result.slot)
        if held is None or result.view is None:
            return held
        name = f"view{len(names)}"
        names[name] = result.view
        return f"seen({held}, {name})"
    if isinstance(result, ReturnedConstant) and result.value is None:
        return "None"
    if isinstance(result, ReturnedItems) and result.make in (tuple, list):
        parts = [_answer(each, array, names) for each in result.parts]
        if None not in parts:
            items = "".join(f"{each}, " for each in parts)
            return f"({items})" if result.make is tuple else f"[{items}]"
    return None


def repeated(served: ServedCall) -> RepeatedCall | None:
    """What later calls of a kind run; None if they must go the long way."""
    plan, (prepared, device, stream) = served.plan, served.served
    arrays = {at: each for at, each in enumerate(served.flat) if isinstance(each, cuda.DeviceArray)}
    if not arrays or plan.pattern is not None or plan.problem is not None:
        return None
    source = library_of([each.given for each in arrays.values()], device, stream)
    if source is None or not _can_be_lent(plan, prepared, source):
        return None
    makers = []
    for new in prepared.fresh:
        row, order = dtypes.from_numpy(new.dtype), new.order or range(len(new.shape))
        assert row is not None, "kernels write known dtypes"
        makers.append((new.slot, source.maker(new.shape, order, row, device)))
    spans = []
    for at, each in arrays.items():
        low, high = bounds(View(0, each.shape, each.strides, each.dtype))
        spans.append((at, low, high))
    given = [each.given if at in arrays else None for at, each in enumerate(served.flat)][served.given :]
    return RepeatedCall(
        plan=plan,
        prepared=prepared,
        source=source,
        device=device,
        makers=tuple(makers),
        constants=tuple((slot, plan.memory.on_devices[slot, device]) for slot in _constants(plan)),
        written=tuple(each for each in spans if each[0] in plan.writes),
        spans=tuple(spans),
        picked=tuple(None if each is None else source.read(each)[1] for each in given),
        allocators={},
    )


def _constants(plan: Any) -> list[int]:
    """The plan's own slots that hold arrays."""
    own = plan.memory.own
    return [at - len(own) for at, each in enumerate(own) if isinstance(each, np.ndarray)]


def _can_be_lent(plan: Any, prepared: PreparedPlan, source: cuda.ArrayLibrary) -> bool:
    """Whether arrays of a library may be what the user gets."""
    library, constants = source.library, _constants(plan)
    calls = [part for part in prepared.parts if isinstance(part, CallStep)]
    new: list[Any] = [*prepared.fresh, *(each for part in calls for each in device_calls.targets_of(part))]
    orders = {each.slot: each.order for each in new}
    for each in returned(plan):
        strides = () if each.view is None else each.view.strides
        if each.slot in constants or (library == "torch" and any(stride < 0 for stride in strides)):
            return False
        order = orders.get(each.slot) or ()
        if library == "jax" and (each.view is not None or [*order] != [*range(len(order))]):  # JAX has no such arrays
            return False
    return True
