"""The comment that lists launches, with sizes and arguments, and the arrays that lie between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.arguments.layouts import View, bounds
from fusec.arguments.operands import view_of
from fusec.base import dtypes
from fusec.base.diagnostics import counted
from fusec.base.kernel_abi import Kernel, Slot
from fusec.base.records import dataclass, field
from fusec.kernels.launches import KeptNotes, Listed, ListedLaunch, ListedTogether, NotedLibraryCall
from fusec.kinds.slots import arrange

WIDTH = 110  # of lines of the comment


@dataclass(eq=False)
class MemoryUse:
    """Memory that launches use."""

    view: View
    name: str = ""
    writers: list[int] = field(default_factory=list)  # launches in order; none for memory that is only read
    readers: list[int] = field(default_factory=list)
    is_returned: bool = False
    labels: Sequence[str] = ()  # of launches and calls, in order
    same_as: str = ""  # an argument before it whose memory it is

    @property
    def words(self) -> str:
        """The dtype and the shape."""
        return f"{self.view.dtype} {self.view.shape}{self.same_as and f', memory of {self.same_as}'}"

    def holds(self, view: View) -> bool:
        """Whether a view is a part of this memory."""
        (low, high), (first, last) = bounds(self.view), bounds(view)
        return low <= first and last <= high

    @property
    def fate(self) -> str:
        """Who writes it, and who reads it then."""
        readers = [at for at in self.readers if not self.writers or at > self.writers[0]]
        return f"{self.by('written', self.writers)}{self.by('read', readers)}{', returned' if self.is_returned else ''}"

    def by(self, verb: str, users: Sequence[int]) -> str:
        """Who does something with it: launches by their numbers, calls of libraries by their letters."""
        found = [self.labels[at - 1] for at in dict.fromkeys(users)]
        launches, calls = list(filter(str.isdigit, found)), list(filter(str.isalpha, found))
        words = [f"{'launches' if len(launches) > 1 else 'launch'} {', '.join(launches)}"] if launches else []
        words += [f"{'calls' if len(calls) > 1 else 'call'} {', '.join(calls)}"] if calls else []
        return f", {verb} by {' and '.join(words)}" if words else ""


def _labels(listed: Sequence[Listed]) -> list[str]:
    """What the comment calls each launch, from 1, and each call of a library, from A."""
    found, calls = list[str](), 0
    for each in listed:
        is_call = isinstance(each, NotedLibraryCall)
        calls += is_call
        found.append(_letters(calls) if is_call else str(len(found) + 1 - calls))
    return found


def _letters(number: int) -> str:
    """A, B, ..., Z, AA, AB, ..."""
    return (_letters((number - 1) // 26) if number > 26 else "") + chr(ord("A") + (number - 1) % 26)


class MemoryUses:
    """All memory of a call: arguments, what launches make, and arrays from outside of the function.

    call: its arguments by name, and its result. Temporaries may lie where others were before, so which of them a view
    is a part of depends on the launch.
    """

    def __init__(self, notes: KeptNotes, call: tuple[object, object], listed: Sequence[Listed]) -> None:
        self.found: list[MemoryUse] = []
        self.labels = _labels(listed)
        arguments, result = call
        self.origin = notes.origin
        self._at: dict[object, MemoryUse] = {}
        for name, each in _arrays_in(arguments, moved=notes.moved):
            if isinstance(each, np.ndarray):
                self._add_argument(_view(each), name)
        self.given = len(self.found)
        named = arguments.items() if isinstance(arguments, Mapping) else ()
        self.numbers = {
            name: each
            for name, each in named
            if isinstance(each, (int, float, complex, np.number)) and not isinstance(each, bool)
        }
        for at, entry in enumerate(listed, 1):
            read, written = _uses(entry)
            for view in read:
                self.of(view, at).readers.append(at)
            for view in written:
                self.of(view, at).writers.append(at)
        for array in (self.origin(each) for _, each in _arrays_in(result)):
            if isinstance(array, np.ndarray):
                self._last(_view(array)).is_returned = True
        counts: dict[str, int] = {}
        for place in self.found[self.given :]:
            sort = "c" if not place.writers else "r" if place.is_returned else "t"
            counts[sort] = counts.get(sort, 0) + 1
            place.name = f"{sort}{counts[sort]}"

    def _add_argument(self, view: View, name: str) -> None:
        first = next((each for each in self.found if bounds(each.view) == bounds(view)), None)
        self.found.append(MemoryUse(view, name, labels=self.labels, same_as="" if first is None else first.name))

    def _last(self, view: View) -> MemoryUse:
        """The newest memory that holds a view; what is not known is no part of a call."""
        known = (each for each in reversed(self.found) if not each.same_as and each.holds(view))
        return next(known, MemoryUse(view, labels=self.labels))

    def of(self, view: View, at: int) -> MemoryUse:
        """The memory of a view in a launch, which is new if nothing is known of it."""
        key = (at, *bounds(view))
        if key not in self._at:
            self._at[key] = found = self._last(view)
            if not any(each is found for each in self.found):
                self.found.append(found)
        return self._at[key]

    def name(self, view: View, at: int, offset: int = 0) -> str:
        """What the comment calls a pointer, some bytes behind the first element of a view."""
        place = self.of(view, at)
        offset += view.pointer - place.view.pointer
        return f"{place.name} + {counted(offset, 'byte')}" if offset else place.name

    def called(self, given: Any) -> str:
        """The name of the argument that holds an array, or is a number; "" for what is none."""
        if isinstance(given, np.ndarray):
            return self._last(_view(given)).name
        is_number = isinstance(given, (int, float, complex, np.number))
        return next((name for name, each in self.numbers.items() if is_number and each == given), "")

    def number(self, value: Any, at: int, slot: Slot | None = None) -> str:
        """A number that is passed by value; a complex one of which the slot takes a part."""
        made = self.origin(value)
        if isinstance(made, np.ndarray):
            return f"what {self.of(_view(made), at).name} holds"
        value = value.item() if isinstance(value, np.generic) else value
        if slot is not None and slot.dtype.bits == 128:
            value = (complex(value).real, complex(value).imag)[slot.axis]
        return repr(value)


def _arrays_in(given: object, name: str = "", moved: Mapping[int, Any] | None = None) -> Iterator[tuple[str, Any]]:
    """The arrays in an object, and NumPy's numbers, with what they are called there. moved: what stands for some."""
    found = given if moved is None else moved.get(id(given), given)
    match found:
        case np.ndarray() | np.generic() if not found.dtype.hasobject:
            yield name, found
        case dict() | Mapping():
            for key, each in found.items():
                yield from _arrays_in(each, f"{name}[{key!r}]" if name else str(key), moved)
        case tuple() | list():
            for at, each in enumerate(found):
                yield from _arrays_in(each, f"{name}[{at}]", moved)


def _view(array: Any) -> View:
    return view_of(array, dtypes.from_numpy(array.dtype) or dtypes.UINT8)


def _uses(listed: Listed) -> tuple[list[View], list[View]]:
    """The arrays that a launch reads, and those that it writes."""
    if isinstance(listed, NotedLibraryCall):
        read = [each for each in listed.operands if isinstance(each, np.ndarray)]
        return list(map(_view, read)), list(map(_view, listed.results))
    if isinstance(listed, ListedTogether):
        uses = list(map(_uses, listed.parts))
        return [view for read, _ in uses for view in read], [view for _, made in uses for view in made]
    called = dict(listed.launch.arrays)
    names = [name for name, _, _ in listed.launch.operands] + list(listed.raw)
    written = listed.outputs | {name for name, _, _ in listed.launch.made}
    found: tuple[list[View], list[View]] = ([], [])
    for name in dict.fromkeys(called.get(each, each) for each in names):
        found[name in written].append(listed.arrays[name])
    return found


def lines_of(name: str, places: MemoryUses, listed: Sequence[Listed]) -> Iterator[str]:
    """The lines of the comment."""
    launches = sum(not isinstance(each, NotedLibraryCall) for each in listed)
    what = counted(launches, "launch", "launches")
    what += f" and {counted(len(listed) - launches, 'library call')}" if launches < len(listed) else ""
    yield f"{name}: {what}{' in this order' if len(listed) > 1 else ''}"
    for each in places.found[: places.given]:
        yield f"  {each.name}: {each.words}{each.by('written', each.writers)}"
    for title, number in places.numbers.items():
        yield f"  {title}: {places.number(number, 0)}, a number"
    for each in places.found[places.given :]:
        if not each.writers:
            yield f"  {each.name}: {each.words}, from outside of the function"
    for at, entry in enumerate(listed, 1):
        label = places.labels[at - 1]
        if isinstance(entry, NotedLibraryCall):
            yield from _lines(f"  {label}. {entry.name}: ", _operands(entry, at, places))
        elif isinstance(entry, ListedTogether):
            end = "; the last goes on; done = 0 before and after" if entry.has_end else ""
            yield f"  {label}. {entry.title} over {entry.count}{end}:"
            for part in entry.parts:
                yield from _lines(f"     {part.title} over {part.count}: ", _arguments(part, at, places))
        else:
            yield from _lines(f"  {label}. {entry.title} over {entry.count}: ", _arguments(entry, at, places))
    for each in places.found[places.given :]:
        if each.writers:
            size = counted(each.view.size * each.view.dtype.nbytes, "byte")
            yield f"  {each.name}: {each.words}, {size}{each.fate}"


def _operands(call: NotedLibraryCall, at: int, places: MemoryUses) -> list[str]:
    """What a library reads and makes."""

    def used(verb: str, each: Any) -> str:
        is_array = isinstance(each, np.ndarray)
        return f"{verb} {places.name(_view(each), at)}" if is_array else f"is given {places.number(each, at)}"

    return [used("reads", each) for each in call.operands] + [used("makes", each) for each in call.results]


def _lines(start: str, words: Sequence[str]) -> Iterator[str]:
    """A line that goes on below itself between its words."""
    line = start + ", ".join(words[:1])
    for word in words[1:]:
        if len(line) + len(word) > WIDTH:
            yield line + ","
            line = "     " + word
        else:
            line += f", {word}"
    yield line


def _arguments(listed: ListedLaunch, at: int, places: MemoryUses) -> list[str]:
    """The arguments of a launch, for a kernel in the order of its parameters."""
    called = dict(listed.launch.arrays)
    if not isinstance(listed.kernel, Kernel):
        names = dict.fromkeys([name for name, _, _ in listed.launch.operands] + list(listed.raw))
        found = [f"{name} = {places.name(listed.arrays[called.get(name, name)], at)}" for name in names]
        return [*found, *(f"{name} = {places.number(each, at)}" for name, each in listed.numbers.items())]
    arguments = arrange(listed.kernel, listed.launch, listed.extents, listed.raw, listed.known)
    pointers = {number: (name, offset) for number, name, offset in arguments.pointers}
    scalars = {number: name for number, name, _, _ in arguments.scalars}
    found = []
    for number, slot in enumerate(listed.kernel.slots):
        if number in pointers:
            name, offset = pointers[number]
            value = places.name(listed.arrays[name], at, offset)
        elif number in scalars:
            value = places.number(listed.numbers[scalars[number]], at, slot)
        else:
            value = str(arguments.template[number])
        found.append(f"{_word(slot)} = {value}")
    return found


def _word(slot: Slot) -> str:
    """What the comment calls an argument."""
    match slot.kind:
        case "size":
            return "size"
        case "extent":
            return f"extent {slot.axis}"
        case "stride" | "raw_stride":
            return f"stride {slot.axis} of {slot.param}"
        case "raw_extent":
            return f"extent {slot.axis} of {slot.param}"
        case "raw_size":
            return f"size of {slot.param}"
    return slot.param.removeprefix("_")
