"""What is recorded of lazy arrays: a tape of operations, whose path through a trie finds the plan that runs them.

Note [Tapes]: arrays that depend on each other share a tape. A tape has slots, one for each place: values of leaves, and
weak references to arrays. Its node stands for all steps so far: forms of leaves, and operations over places. To record
an operation is to look its step up among the children of the node. Only a step that is not there is traced, which
finds the form of its result and all errors. Nothing is walked to evaluate a tape: its node knows the plan for the
places that are still in use.

Tracing and plans are imported when the first step is traced, which no program needs that only imports the namespace.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import Context
from operator import setitem
from threading import get_ident
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from fusec.base import locks
from fusec.base.contexts import INTERCEPTOR
from fusec.base.rounding_mode import default_rounding
from fusec.errors import FusecError, FusecOverflowError
from fusec.errors.lazy import BeingComputed
from fusec.xp.claims import PAUSE, Owner, stand_by, took
from fusec.xp.forms import Form, as_number, form_of
from fusec.xp.journal import Journal, at_once, is_one_call
from fusec.xp.kinds import KINDS, outline_of
from fusec.xp.loading import failures, lines, mixed, of_number, on_device
from fusec.xp.sharing import MOST, TAPES, WRITTEN, drop, forget, pending
from fusec.xp.steps import Operation, numbers_of
from fusec.xp.trie import EAGER, NEEDS_NUMBER, TRIE, TapePlan, TapeState

if TYPE_CHECKING:
    from fusec.fusion.fused_plan import FusedPlan
    from fusec.fusion.trace.derived import CallShapes
    from fusec.xp.tracing import TapeRun

FLOATS = range(-int(sys.float_info.max), int(sys.float_info.max) + 1)
"""Integers that every kernel of floats takes; others fail when their kernel comes."""
AT_FIRST: list[Callable[[], None]] = []
"""What is done once, when a tape is evaluated that was evaluated before."""


class Tape:
    """What is recorded of some arrays that depend on each other."""

    __slots__ = ("__dict__", "__weakref__", "is_closed", "node", "places", "slots")
    run: TapeRun | None = None  # of the steps that were traced last
    shapes: tuple[int, CallShapes] | None = None  # a number of steps, and the shapes of the leaves among them
    journal: Journal | None = None  # of an evaluation that writes
    written: tuple[Any, ...] = ()  # arrays with values that it writes
    ranges: tuple[tuple[int, int], ...] = ()  # of addresses of the first of these
    has_failed = False  # when it was evaluated last
    part: Tape | None = None  # what is computed of a tape that has failed
    others: tuple[tuple[Any, ...], ...] = ()  # what changes when such a part is computed

    def __init__(self, node: TapeState, slots: dict[int, Any], places: dict[int, int]) -> None:
        """places: of arrays with values, by identity, in their order."""
        self.node, self.slots, self.places, self.is_closed = node, slots, places, False
        TAPES.append(ref(self))
        if len(TAPES) > MOST[0]:
            forget()

    # --- recording -----------------------------------------------------------------------------------------------

    def leaf(self, value: Any, form: Form) -> int:
        """The place of an array with a value. Raises MovedError, and DevicesDoNotMix."""
        mark = id(value)
        at = self.places.get(mark)
        if at is not None:
            return at
        holder = [value]
        while True:
            node = self.node
            known = node.get(form)
            if known is None:
                if node.device not in (None, form.device):
                    raise mixed(node.device, form.device)
                known = TRIE.note_state(form, TapeState(node, form, (form,)))
            (after, at, _), slots = known, self.slots
            slots.setdefault(at, holder)
            if at in slots and slots[at] is holder:  # no call until the tape has moved. Note [Claims]
                slots[at], self.places[mark], self.node = value, at, after
                return at  # type: ignore[no-any-return]
            stand_by(self, node)

    def take(self, key: Any, step: Any, slots: Sequence[Any]) -> Any:
        """Take a step whose slots will hold this. Raises MovedError, and all that tracing raises."""
        while True:
            node = self.node
            after: Any = self.after(node, key, step, slots[len(slots) - numbers_of(step) :])
            if after is None:
                continue
            if after is EAGER or after is NEEDS_NUMBER or self.came_to(after, slots):
                return after
            stand_by(self, node)

    def came_to(self, after: TapeState, held: Sequence[Any]) -> bool:
        """Take the next step, whose slots will hold this; False if its place is taken."""
        slots, start, count = self.slots, after.start, len(held)
        if count > 3 or after.writes:
            return self._came_to(after, held)
        first, second, third = held if count == 3 else (*held, None) if count == 2 else (held[0], None, None)
        slots.setdefault(start, first)
        if not (start in slots and slots[start] is first):  # no call until the tape has moved. Note [Claims]
            return False
        if count == 1:
            self.node = after
        elif count == 2:
            slots[start + 1], self.node = second, after
        else:
            slots[start + 1], slots[start + 2], self.node = second, third, after
        return True

    def _came_to(self, after: TapeState, held: Sequence[Any]) -> bool:
        """The same for any step."""
        slots, start = self.slots, after.start
        changes: list[tuple[Any, ...]] = [(setitem, slots, at, each) for at, each in enumerate(held, start)]
        if not after.writes:
            return took(slots, start, held[0], [*changes, (setattr, self, "node", after)])
        with locks.lock:
            if not (self.is_closed or self in WRITTEN):
                changes.append((WRITTEN.append, self))
            self.written = self.written  # makes its dict, so that nothing is allocated below
            written = (*self.written, *[slots[at] for at in after.writes])
            changes += [(setattr, self, "written", written), (setattr, self, "node", after)]
            return took(slots, start, held[0], changes)

    def after(self, node: TapeState, key: Any, step: Any, numbers: Sequence[Any]) -> Any:
        """The state behind a step, which is traced if it is new; or what the trie says instead.

        None if another thread was recording a step, which is recorded now. Raises MovedError.
        """
        found = node.behind(key)
        if found is None:
            found = self._foreseen(node, key, step) or self._traced(node, key, step, numbers)
        if found is None:
            stand_by(self, node)
        return found

    def _traced(self, node: TapeState, key: Any, step: Any, numbers: Sequence[Any]) -> Any:
        """The same for a step that is new. None if the place behind the state is taken. Note [Claims]."""
        with locks.lock, default_rounding():
            if self.node is not node or node.count in self.slots:
                return None
            if (found := node.behind(key)) is not None:
                return found
            from fusec.errors.fusing import NeedsValues, NoSuchAttribute, NotFusable, NotTraceable
            from fusec.fusion.trace.trace import NeedsNumberError
            from fusec.xp.tracing import UntracedError

            run = self.traced_to(node)
            self.run = None  # unless all goes well
            written = len(run.trace.written)
            try:
                forms, together = run.take(step, numbers)
            except UntracedError:
                return node.refuse(key, EAGER, run.is_open)
            except FusecError as error:
                if not isinstance(error.error, (NeedsValues, NoSuchAttribute, NotFusable, NotTraceable)):
                    raise
                return node.refuse(key, EAGER, run.is_open)
            except NeedsNumberError:
                return node.refuse(key, NEEDS_NUMBER, run.is_open)
            made = TapeState(node, step, forms, together)
            if new := run.newly_written(written):
                leaves = [*made.leaves()]
                made.note_writes(tuple(leaves[each] for each in new))
            made.may_fail = run.may_fail
            if node.kind is not None:
                made.kind = run.tell(node.kind, key, together, made.writes, len(numbers))
            made = run.at = TRIE.keep(key, made)
            self.run = run
            return made

    def _foreseen(self, node: TapeState, key: Any, step: Any) -> Any:
        """The state behind a step traced for other extents, or why there is none; None if unknown. Note [Kinds]."""
        if (kind := node.kind) is None:
            return None
        if (why := kind.refused.get(key)) is not None:
            return node.refuse(key, why, False)
        with locks.lock:
            for rule in kind.rules.get(key, ()):
                forms = rule.forms(self._shapes_at(node))
                if forms is not None:
                    made = TapeState(node, step, forms, rule.together, rule.behind)
                    made.note_writes(rule.writes, rule.may_fail)
                    return TRIE.keep(key, made)
        return None

    def _shapes_at(self, node: TapeState) -> CallShapes:
        """The shapes of the leaves up to a state, and all that follows from them."""
        if self.shapes is None:
            from fusec.fusion.trace.derived import CallShapes

            self.shapes = 0, CallShapes([])
        depth, shapes = self.shapes
        outlines: Any = shapes.outlines
        for each in node.path(depth):
            outlines += [outline_of(each.step)] if type(each.step) is Form else [None] * len(each.numbers())
        self.shapes = max(depth, node.depth), shapes
        return shapes

    def traced_to(self, node: TapeState, pattern: Any = None) -> TapeRun:
        """A run that has taken all steps to a state; the tape forgets it."""
        from fusec.xp.tracing import TapeRun

        run, self.run = self.run, None
        if run is None or pattern is not None or not node.is_behind(run.at):
            run = TapeRun(TRIE.root, pattern)
        run.go(node, self.slots)
        return run

    # --- having it for oneself -----------------------------------------------------------------------------------

    def frozen(self, owner: Owner) -> TapeState | None:
        """The last state, after which nothing is recorded any more; None if another thread has the tape for itself."""
        while True:
            node, slots = self.node, self.slots
            holder = slots.setdefault(node.count, owner)
            if holder is owner:
                return node
            if holder.__class__ is Owner:
                return None
            stand_by(self, node, False)

    def _held_by(self, owner: Owner) -> TapeState | None:
        """The last state, if this owner has the tape for itself, even if its thread was interrupted then."""
        node = self.node
        return node if self.slots.get(node.count) is owner else None

    def release(self, owner: Owner) -> None:
        """Let others have the tape, if this owner has it and it is not closed."""
        node = self._held_by(owner)
        if node is not None and not self.is_closed:
            del self.slots[node.count]

    def draft(self, node: TapeState) -> Tape:
        """A copy of the tape, which the caller has for itself: it takes steps that come to the tape all at once."""
        made = Tape.__new__(Tape)
        made.node, made.slots, made.places = node, {**self.slots}, {**self.places}
        del made.slots[node.count]
        made.is_closed = True
        made.written = self.written
        with locks.lock:
            made.run, made.shapes, self.run, self.shapes = self.run, self.shapes, None, None
        return made

    def close(self) -> None:
        """The arrays have gone elsewhere."""
        self.is_closed = True
        if self.run is not None:
            self.run = None
        if self.written:
            drop(self)
            self.journal = None

    def wait(self) -> None:
        """Wait until the thread that has the tape for itself is done. Raises BeingComputed if that is this thread."""
        while (holder := self.slots.get(self.node.count)).__class__ is Owner and not self.is_closed:
            journal = (self.part or self).journal
            if journal is not None and journal.results:
                self.settle()  # that thread may have been interrupted
            elif holder.thread == get_ident():
                raise BeingComputed().at(lines().here())
            time.sleep(PAUSE)
        if self.is_closed and self.written:
            drop(self)

    # --- evaluation ----------------------------------------------------------------------------------------------

    def evaluate(self, *wanted: Any) -> None:
        """Compute all arrays of the tape that are in use; if an operation fails, those that do not need it.

        wanted: arrays. The error of an operation is raised if one of these needs it.
        """
        if INTERCEPTOR.get() is not None:  # a signal has interrupted what only notes its calls of kernels
            Context().run(self.evaluate, *wanted)
            return
        owner = Owner()
        try:
            node = self.frozen(owner)
            if node is None:
                self.wait()
                return
            if self.journal is not None or self.part is not None:
                self.settle()  # it was interrupted before
            if not self.is_closed:
                self._evaluate(node)
        except BaseException as problem:
            node = self._held_by(owner)
            if node is None:
                raise
            try:
                self.settle()
                found = problem if self.is_closed else failures().parted(self, node, problem, wanted)
            finally:
                self.settle()
                self._thaw(node)
            try:
                if found is problem:
                    raise
                if found is not None:
                    raise found from None
            finally:
                del found  # which has this frame in its traceback

    def _thaw(self, node: TapeState) -> None:
        """Let steps be recorded again, unless all is computed."""
        if not self.is_closed and not (self.journal is not None and self.journal.results):
            del self.slots[node.count]

    def settle(self) -> None:
        """Finish an interrupted evaluation that has computed all, or undo what it has written. Note [Interrupts]."""
        part, journal = self.part, self.journal
        if part is not None:
            with locks.lock:  # once: other threads may have what it changes
                if not self.is_closed:
                    part.settle()
            if self.is_closed:
                self.close()
            self.part = None
        elif journal is not None and journal.results:
            self._finish(journal.planned, journal.used, journal.results[0])
        elif journal is not None:
            journal.undo()
            self.journal = None

    def _evaluate(self, node: TapeState) -> None:
        used, slots = [], self.slots
        for at in node.arrays or node.find_arrays():
            each = slots[at]
            if each.__class__ is ref and (array := each()) is not None:
                used.append((at, array))
        live = tuple([at for at, _ in used])
        known = node.plans.get(live)
        planned = (None if known is None else known()) or self.planned(node, live)
        plan, forms = planned.plan, planned.forms
        is_plain = forms is not None and planned.is_plain
        run = plan.quick or plan.entry if is_plain else None
        if AT_FIRST and is_plain:
            with suppress(IndexError):  # another thread does it
                AT_FIRST.pop()()
        try:
            results = self.results(planned, node, used) if run is None else run(*planned.pick(slots))
        except Exception:  # before anything is written: the plan is another one, or fails again
            if run is None:
                raise
            results = self.results(planned, node, used)
        if forms is not None and is_plain and len(live) == 1:
            array = used[0][1]
            array._value, array._form, array._tape = results, forms[0], None
            self.close()
            return
        self._finish(planned, used, results)

    def _finish(self, planned: TapePlan, used: Sequence[tuple[int, Any]], results: Any) -> None:
        """Give arrays their values, all at once."""
        forms = planned.forms
        if len(used) < 2:
            results = (results,) * len(used)
        if forms is None:
            is_there = self.node.is_there
            results = results if is_there else [np.asarray(each) for each in results]
            pairs = zip(used, map(on_device().form_of if is_there else form_of, results), strict=True)
            found = [as_number(each) if array._form.is_number else each for (_, array), each in pairs]
            forms = planned.forms = tuple(found)
        changes: list[tuple[Any, ...]] = [(setattr, self, "is_closed", True), *self.others]
        for (_, array), value, form in zip(used, results, forms, strict=True):
            changes += [(setattr, array, "_value", value), (setattr, array, "_form", form)]
            changes.append((setattr, array, "_tape", None))
        at_once(changes)
        self.close()

    def used(self) -> list[tuple[int, Any]]:
        """The arrays that are in use, each behind its place."""
        slots, places = self.slots, self.node.arrays or self.node.find_arrays()
        return [(at, array) for at in places if type(each := slots[at]) is ref and (array := each()) is not None]

    def plan(self) -> FusedPlan:
        """What would evaluate the tape now."""
        node, live = self.node, tuple([at for at, _ in self.used()])
        planned = self.planned(node, live)
        if planned.plan.is_resized:  # the report of such a plan is about other extents
            planned = self._made(node, live)
        flat = [self.slots[at] for at in planned.leaves]
        if node.is_there:
            flat = on_device().outlines(flat)
        if planned.plan.writes and planned.plan.may_not_fit(flat):
            from fusec.fusion.arguments import pattern_of

            planned = self.planned(node, live, pattern_of(flat, planned.plan.writes))
        return planned.plan

    def results(self, planned: TapePlan, node: TapeState, used: Sequence[tuple[int, Any]]) -> Any:
        """What a plan computes for the arrays in use; it writes all or nothing. Raises what an operation raises."""
        slots, plan, live = self.slots, planned.plan, tuple([at for at, _ in used])
        flat = [slots[at] for at in planned.leaves]
        if node.is_there:
            return on_device().results(planned, flat, lambda pattern: self.planned(node, live, pattern).plan)
        if node.has_many_patterns:
            flat = planned.apart(flat)
        may_fail = planned.may_fail or any(type(each) is int and each not in FLOATS for each in flat)
        try:
            if not plan.writes:
                return self._run(planned, node, live, flat)
            journal = self.journal = Journal(planned, used)
            if not may_fail and plan.entry is not None and is_one_call(plan.entry):
                with suppress(*_unfit()):  # before anything is written
                    journal.run(plan.entry, flat)
            if not journal.results:
                journal.keep([flat[at] for at in plan.writes], may_fail)
                journal.run(self._run, (planned, node, live, flat))
        except FusecOverflowError as problem:
            raise of_number(problem) from None
        return journal.results[0]

    def _run(self, planned: TapePlan, node: TapeState, live: tuple[int, ...], flat: list[Any]) -> Any:
        plan = planned.plan
        run = plan.quick or plan.entry
        with suppress(*_unfit()):  # before anything is written
            if run is not None:
                return run(*flat)
        with suppress(*_unfit()):
            if not plan.writes or not plan.may_not_fit(flat):
                return plan.run_in_steps(flat)
        from fusec.fusion.arguments import pattern_of

        pattern = pattern_of(flat, plan.writes)
        is_new, plan = (live, pattern) not in node.plans, self.planned(node, live, pattern).plan
        if is_new and pattern is not None:
            node.note_pattern(planned.late, pattern)
        return plan.run_in_steps(flat)

    def planned(self, node: TapeState, live: tuple[int, ...], pattern: Any = None) -> TapePlan:
        """The plan for the places in use. pattern: how leaves share memory; None if they do not."""
        wanted = live if pattern is None else (live, pattern)
        known = node.plans.get(wanted)
        if known is not None and (kept := known()) is not None:
            return kept
        key = (wanted, *[each.step.key if type(each.step) is Operation else each.step for each in node.path()])
        found = TRIE.plans.get(key)
        if found is None:
            made = self._resized(node, live) if pattern is None else None
            found = TRIE.plans.keep(key, made or self._made(node, live, pattern))
        node.plans[wanted] = ref(found)
        return found

    def _made(self, node: TapeState, live: tuple[int, ...], pattern: Any = None) -> TapePlan:
        with locks.lock, default_rounding():
            from fusec.xp.tracing import may_fail

            run = self.traced_to(node, pattern)
            run.live = live
            plan = run.plan()
            leaves, late = tuple(node.leaves()), run.late(node) if plan.writes else {}
            made = TapePlan(plan, leaves, bool(plan.writes) and may_fail(plan), node.is_there, late)
            if plan.template is not None and node.kind is not None:
                KINDS.plans[node.kind, live] = made
            return made

    def _resized(self, node: TapeState, live: tuple[int, ...]) -> TapePlan | None:
        """A plan made from one for other extents; None if there is none. Note [Kinds]."""
        known = None if node.kind is None else KINDS.plans.get((node.kind, live))
        if known is None:
            return None
        flat = [self.slots[at] for at in known.leaves]
        with locks.lock:
            plan = known.plan.resized([each if type(each) is np.ndarray else None for each in flat], True)
        return None if plan is None else TapePlan(plan, known.leaves, known.may_fail, False, known.late)


def _free_all() -> None:
    """Free the tapes that threads had for themselves which a child process has not."""
    for each in pending():
        holder = each.slots.get(each.node.count)
        if holder.__class__ is Owner and holder.thread != get_ident():
            del each.slots[each.node.count]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)


def _unfit() -> tuple[type[Exception], ...]:
    from fusec.fusion.fused_plan import UNFIT

    return UNFIT
