"""Short ways for repeated calls: the native entries of one kernel, one behind the other, and what precedes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from fusec import calls, forking
from fusec.calls import Call
from fusec.modes import usual
from fusec.plans import Plan

if TYPE_CHECKING:
    from fusec.device_entries import Ready
    from fusec.device_plans import Repeated
    from fusec.planned import Planned
    from fusec.runtime import cuda

Callee = Callable[..., object]

MAX_TYPED = 4  # combinations of dtypes with an entry for contiguous arrays
MAX_SETTLED = 256
MAX_PLACED = 8  # combinations of shapes and strides with an entry, each a few ns for calls that are none of them


class Entries:
    """Decides which entries a kernel gets: none at its first call, which shall be short; most are called only once.

    Later calls that come to Python add one, for contiguous arrays of those dtypes, or else for arrays of those very
    shapes and strides if they have come before.
    """

    def __init__(self, python: Callee) -> None:
        self._python = python
        self._called: set[object] = set()
        self._typed: dict[object, Callable[[Callee], Callee]] = {}
        self._placed: dict[object, Callable[[Callee], Callee]] = {}
        self._settled: set[object] = set()  # keys of calls that get no entry any more

    def after(self, kernel: Planned, plan: Plan, call: Call, again: bool) -> Callee | None:
        """What to call from now on, after a call that came to Python; None if that stays as it is.

        again: there was a call with these shapes and strides before.
        """
        converting = frozenset(name for name in call.numbers if kernel.converts(name, plan.types))
        types = (call.numbers, converting, *plan.types.items())
        if call.key in self._settled:  # calls do not wait for another thread that compiles
            return None
        with forking.lock, usual():
            if types not in self._called:
                self._called.add(types)
                return None
            if types not in self._typed and calls.takes_any_shape(kernel, plan) and len(self._typed) < MAX_TYPED:
                self._typed[types] = partial(calls.typed_entry, kernel, plan, call.numbers)
            elif again and call.key not in self._placed and len(self._placed) < MAX_PLACED:
                places = calls.places_of(kernel, plan, call)
                deciding = kernel.deciding(call)
                self._placed[call.key] = partial(calls.placed_entry, kernel, plan, call.numbers, places, deciding)
            else:
                if again and len(self._settled) < MAX_SETTLED:
                    self._settled.add(call.key)
                return None
            entry = self._python
            for put_before in (*self._placed.values(), *self._typed.values()):
                entry = put_before(entry)
            return entry


class ShortWays:
    """What an object's calls go to: at first Python, later whatever repeats calls on devices, then native entries, and
    Python behind them all.
    """

    def take_no_short_way(self, python: Callee) -> None:
        """Let calls go to Python, until some have been made."""
        self._fast: Callee = python
        self._entries = Entries(python)
        self._repeated: Repeated | None = None

    def hasten_calls(self, kernel: Planned, plan: Plan, call: Call, again: bool) -> None:
        """Put a native entry before Python once a kind of call has come twice."""
        entry = self._entries.after(kernel, plan, call, again)
        if entry is not None and self._repeated is not None:
            self._repeated.fallback = entry
        elif entry is not None:
            self._fast = entry

    def repeat_calls(
        self, kernel: Planned, args: Sequence[object], device: int, source: cuda.Source, ready: Ready
    ) -> None:
        """Put what repeats calls on devices before everything else."""
        with forking.lock:
            from fusec.device_plans import Repeated

            if self._repeated is None:
                self._repeated = Repeated(self._fast, self._put_first)
        self._repeated.add(kernel, args, device, source, ready)

    def _put_first(self, entry: Callee) -> None:
        self._fast = entry
