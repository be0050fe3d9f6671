"""What can still be computed of a tape whose evaluation has failed.

Note [Failures]: an error belongs to the operation that raises it, as in NumPy. So a tape whose evaluation fails is
parted. Steps that need the failed one, and whatever they write, go to a tape of their own, which stays pending.
Everything else is computed. Both parts may need the same steps, and then both take them. An array in whose memory one
part writes is a copy for the other part, which sees the old elements.

A write that needs a failed operation has not happened for NumPy, whose error comes before. So it is left out as soon as
the error is raised, which happens at the first look at an array that needs this write. Writes before and after it stay.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence, Set
from operator import setitem
from typing import Any
from weakref import ref

import numpy as np
from numpy.lib.array_utils import byte_bounds

from fusec.base import locks
from fusec.errors import FusecError, FusecOverflowError
from fusec.errors.lazy import BeingComputed
from fusec.xp.claims import Owner
from fusec.xp.forms import Form, form_of
from fusec.xp.journal import Journal, at_once
from fusec.xp.loading import on_device
from fusec.xp.refusals import CLASSES, line_of, pass_line
from fusec.xp.sharing import TAPES, WRITTEN, forget_some, may_share
from fusec.xp.steps import Operation, moved, read_by
from fusec.xp.tape import FLOATS, Tape
from fusec.xp.trie import TRIE, TapeState

Used = Sequence[tuple[int, Any]]
"""Arrays in use, each behind its place."""

ALIGNMENT = 64  # of memory, which copies keep


def parted(tape: Tape, node: TapeState, problem: BaseException, wanted: Sequence[Any]) -> BaseException | None:
    """Compute what does not need a failed operation. Returns the error that one of the wanted arrays comes to, or None.

    The caller has the tape for itself, and settles it.
    """
    if not _is_of_operation(problem):
        return problem
    tape.has_failed = True
    parting = _Parting(tape, node)
    try:
        return parting.run(problem, wanted)
    except (FusecError, MemoryError):  # there is no memory for copies, say
        return problem


def keep_elements(tape: Tape, value: Any) -> None:
    """Have a failed tape that reads a value read a copy of it, so that others may write it."""
    owner = Owner()
    try:
        if tape.frozen(owner) is None:
            tape.wait()
            return
        changes: list[tuple[Any, ...]] = []
        for one, at in [(tape.slots[at], at) for at in tape.places.values()]:
            if may_share(one, value):
                ((copy, _),) = _copied([one])
                changes += [(setitem, tape.slots, at, copy), (setitem, tape.places, id(copy), at)]
                changes.append((tape.places.pop, id(one)))
        at_once(changes)
    finally:
        tape.release(owner)


def _tell_line(tape: Tape, problem: BaseException) -> int | None:
    """Have an error say which line has recorded what fails: the trace saw the line of an equal step, or none.

    Returns the place of the step; None if it is not known.
    """
    for note in getattr(problem, "__notes__", ()):
        at = getattr(getattr(note, "place", None), "at", None)
        if at is not None:
            note.place = line_of(tape.slots.get(at)) or note.place
            return int(at)
    return None


def _is_of_operation(problem: BaseException) -> bool:
    """Whether an operation may have raised an error; the handler of a signal raises others."""
    if isinstance(problem, FusecError):
        return not isinstance(problem.error, BeingComputed)  # which such a handler may raise
    return isinstance(problem, (*CLASSES,))


class _Parting:
    """The parts of a tape. homes: of each place, the memory in which its array is; leaves that share memory have one.

    failed: the errors of operations, by number of the step. others: the memory of what fails for unknown steps.
    """

    def __init__(self, tape: Tape, node: TapeState) -> None:
        self.tape, self.node, self.path, self.used = tape, node, node.path(), tape.used()
        run = tape.traced_to(node)
        tape.run = self.traced = run
        self.homes: list[int] = [id(getattr(each, "_memory", None)) for each in run.tracers]
        self.leaves = {each.start: tape.slots[each.start] for each in self.path if type(each.step) is Form}
        self.writes = {number: _target(each.step) for number, each in enumerate(self.path) if _is_write(each)}
        self._join_leaves()
        own = {self.homes[at] for at in self.leaves}
        self.written = {self.homes[at] for at in self.writes.values()} & own
        self.failed: dict[int, BaseException] = {}
        self.others: set[int] = set()

    def _join_leaves(self) -> None:
        """Give leaves that share memory with a written one the same home."""
        for at in {self.homes[at] for at in self.writes.values()}:
            group = [leaf for leaf in self.leaves if self.homes[leaf] == at]
            for one in group:
                for leaf, value in self.leaves.items():
                    home = self.homes[leaf]
                    if home != at and may_share(value, self.leaves[one]):
                        self.homes = [at if each == home else each for each in self.homes]
                        group.append(leaf)

    def run(self, problem: BaseException, wanted: Sequence[Any]) -> BaseException | None:
        """See `parted`."""
        number = self._step_of(self.tape, problem)
        if number is None:
            self._try_each()
        else:
            self.failed[number] = problem
        while True:
            bad = self._tainted()
            found, without = self._error(wanted, bad, problem)
            if self._have_come_apart(bad, without):
                return found

    # --- what depends on what ------------------------------------------------------------------------------------

    def _step_of(self, tape: Tape, problem: BaseException, kept: Sequence[int] | None = None) -> int | None:
        """The number of the step that has failed; None if it is not known. kept: the steps of the tape, if not all."""
        at, path = _tell_line(tape, problem), tape.node.path()
        for number, each in enumerate(path):
            numbers = [tape.slots[one] for one in each.numbers()] if type(each.step) is not Form else []
            is_large = any(type(one) is int and one not in FLOATS for one in numbers)
            is_known = isinstance(problem, FusecOverflowError) and is_large
            if is_known if at is None else each.start <= at < each.count:
                return number if kept is None else kept[number]
        return None

    def _tainted(self) -> set[int]:
        """The memory of what needs failed operations."""
        found = set[int]()
        for number, each in enumerate(self.path):
            read = () if type(each.step) is Form else read_by(each.step)
            if number in self.failed or any(self.homes[at] in found for at in read):
                found.update(self._made_by(number))
        return found | self.others

    def _made_by(self, number: int) -> set[int]:
        """The memory that a step writes or makes."""
        if number in self.writes:
            return {self.homes[self.writes[number]]}
        each = self.path[number]
        return {self.homes[at] for at, form in enumerate(each.forms, each.start) if form is not None}

    def _needed(self, places: Iterable[int], homes: Iterable[int], without: Set[int] = frozenset()) -> list[int]:
        """The numbers of the steps that some arrays, and what is written to some memory, need; in order."""
        wanted = {*places}
        memory, found = {*homes, *(self.homes[at] for at in wanted)}, []
        for number in reversed(range(len(self.path))):
            each = self.path[number]
            if number in without:
                continue
            is_write = number in self.writes and self.homes[self.writes[number]] in memory
            if is_write or not wanted.isdisjoint(range(each.start, each.count)):
                found.append(number)
                if type(each.step) is not Form:
                    read = read_by(each.step)
                    wanted.update(read)
                    memory.update(self.homes[at] for at in read)
        return found[::-1]

    def _unwritten(self, first: int) -> set[int]:
        """The writes that have not happened for NumPy, whose error comes before."""
        if first in self.writes:
            return {first}
        poisoned, found = self._made_by(first), set()
        for number in range(first + 1, len(self.path)):
            each = self.path[number]
            if type(each.step) is Form:
                continue
            if all(self.homes[at] not in poisoned for at in read_by(each.step)):
                continue
            if number not in self.writes:
                poisoned |= self._made_by(number)
            elif self.homes[self.writes[number]] not in poisoned:
                found.add(number)
        return found

    def _homes_of(self, array: Any) -> set[int]:
        """The memory of an array on the tape, or of one with a value in whose memory the tape writes."""
        if array._tape is self.tape:
            return {self.homes[array._at]}
        written = [at for at in self.leaves if self.homes[at] in self.written]
        return {self.homes[at] for at in written if array._tape is None and may_share(self.leaves[at], array._value)}

    def _error(self, wanted: Sequence[Any], bad: Set[int], problem: Any) -> tuple[BaseException | None, set[int]]:
        """The first error that arrays come to, and the writes that are left out then."""
        asked = [each for each in wanted if not bad.isdisjoint(self._homes_of(each))]
        if not asked:
            return None, set()
        memory = {home for each in asked if each._tape is None for home in self._homes_of(each)}
        needed = self._needed([each._at for each in asked if each._tape is not None], memory)
        first = next((each for each in needed if each in self.failed), None)
        if first is None:
            return problem, set()
        found = self.failed[first]
        return found, set() if isinstance(found, MemoryError) else self._unwritten(first) & {*needed}

    # --- the parts -----------------------------------------------------------------------------------------------

    def _have_come_apart(self, bad: Set[int], without: Set[int]) -> bool:
        """Compute what is not in bad memory, and leave the rest pending, without some writes.

        Returns whether that is done; another operation may fail meanwhile, which is noted.
        """
        good = [each for each in self.used if self.homes[each[0]] not in bad]
        rest = [each for each in self.used if self.homes[each[0]] in bad]
        steps = self._needed([at for at, _ in good], self.written - bad)
        pending = self._needed([at for at, _ in rest], self.written & bad, without)
        if not steps and len(pending) == len(self.path):
            return True
        stored = {self.homes[self.writes[each]] for each in steps if each in self.writes}
        left, to = self._part(pending, rest, stored - bad)
        changes = self._changes(left, rest, to)
        if not steps:
            with locks.lock:
                at_once(changes)
            self.tape.close()
            return True
        part, _ = self._part(steps, good, stored & bad)
        part.others, self.tape.part = tuple(changes), part
        try:
            _compute(part)
        except Exception as problem:
            number = self._step_of(part, problem, steps)
            self.tape.settle()
            if number is None or number in self.failed or not _is_of_operation(problem):
                raise
            self.failed[number] = problem.with_traceback(None)  # which has this frame
            return False
        self.tape.settle()
        forget_some()
        return True

    def _part(self, numbers: Sequence[int], used: Used, homes: Set[int]) -> tuple[Tape, list[int]]:
        """A tape with some of the steps, and their places there. homes: memory that is copied."""
        part = Tape.__new__(Tape)
        part.node, part.slots, part.places, part.is_closed = TRIE.root, {}, {}, True  # so that no thread finds it
        chosen, to, copies = {at for at, _ in used}, [-1] * self.node.count, self._copies(numbers, homes)
        for each in (self.path[number] for number in numbers):
            held = [self.tape.slots[at] for at in range(each.start, each.count)]
            if type(each.step) is Form:
                to[each.start] = part.leaf(*copies.get(each.start, (held[0], each.step)))
                continue
            others = [type(one) is ref and at not in chosen for at, one in enumerate(held, each.start)]
            kept = [object() if is_other else one for is_other, one in zip(others, held, strict=True)]
            pass_line(held[0], kept[0])
            step = moved(each.step, to)
            after = part.take(step.key if type(step) is Operation else step, step, kept)
            to[each.start : each.count] = range(after.start, after.count)
        return part, to

    def _copies(self, numbers: Sequence[int], homes: Set[int]) -> dict[int, tuple[Any, Form]]:
        """Copies of the leaves in some memory among some steps, and their forms, by place."""
        found: dict[int, tuple[Any, Form]] = {}
        starts = {self.path[number].start for number in numbers}
        for home in homes:
            group = {at: value for at, value in self.leaves.items() if at in starts and self.homes[at] == home}
            if group:
                found.update(zip(group, _copied([*group.values()]), strict=True))
        return found

    def _changes(self, left: Tape, rest: Used, to: Sequence[int]) -> list[tuple[Any, ...]]:
        """What has the tape closed, and the rest of its arrays on another one."""
        found: list[tuple[Any, ...]] = [(setattr, self.tape, "is_closed", True)]
        if left.slots:
            left.has_failed = True
            found += [(setattr, left, "is_closed", False), (TAPES.append, ref(left))]
            found += [(WRITTEN.append, left)] if left.written else []
        for at, array in rest:
            found += [(setattr, array, "_at", to[at]), (setattr, array, "_tape", left)]
        return found

    def _try_each(self) -> None:
        """Find the memory whose contents cannot be computed."""
        for home in {self.homes[at] for at, _ in self.used} | self.written:
            used = [each for each in self.used if self.homes[each[0]] == home]
            steps = self._needed([at for at, _ in used], {home} & self.written)
            part, _ = self._part(steps, used, self.written)
            try:
                _compute(part)
            except Exception as problem:
                if not _is_of_operation(problem):
                    raise
                self.others.add(home)


def _compute(part: Tape) -> None:
    """Compute the arrays in use of a part, and keep the results in its journal."""
    used = part.used()
    planned = part.planned(part.node, tuple([at for at, _ in used]))
    results = part.results(planned, part.node, used)
    if part.journal is None:
        part.journal = Journal(planned, used)
        part.journal.results.append(results)


def _is_write(state: TapeState) -> bool:
    """Whether a step writes its first operand."""
    return type(state.step) is not Form and all(form is None for form in state.forms)


def _target(step: Any) -> int:
    """The place of the first operand."""
    return int(step.args[0] if type(step) is Operation else step[1])


def _copied(values: Sequence[Any]) -> list[tuple[Any, Form]]:
    """Copies that lie in memory as these arrays do, which may share it, and their forms."""
    if not isinstance(values[0], np.ndarray):
        if len(values) > 1:
            raise MemoryError("arrays on a device that share memory are copied one by one")
        copy = on_device().copied(values[0])
        return [(copy, on_device().form_of(copy))]
    bounds = [byte_bounds(each) if each.size else (each.ctypes.data,) * 2 for each in values]
    first, end = min(low for low, _ in bounds), max(high for _, high in bounds)
    memory = np.empty(end - first + ALIGNMENT, np.uint8)
    shift = (first - memory.ctypes.data) % ALIGNMENT
    memory[shift : shift + end - first] = np.ctypeslib.as_array((ctypes.c_uint8 * (end - first)).from_address(first))
    places = [each.ctypes.data - first + shift for each in values]
    copies = [
        np.ndarray(each.shape, each.dtype, memory, at, each.strides) for each, at in zip(values, places, strict=True)
    ]
    return [(each, form_of(each)) for each in copies]
