"""Fast paths for repeated calls: a chain of native entries of one kernel, and the steps before them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from fusec.base import locks
from fusec.base.recent import Recent
from fusec.base.rounding_mode import default_rounding
from fusec.dispatch import host
from fusec.dispatch.plan import ElementwiseCall, Plan
from fusec.environment import debug

if TYPE_CHECKING:
    from fusec.dispatch.device_plans import DeviceFastPath
    from fusec.dispatch.fast_path_device import CachedCall
    from fusec.dispatch.spec import KernelSpec

Callee = Callable[..., object]

MAX_ENTRIES = 12  # of one kernel, each a few ns for calls that are none of them
MAX_SETTLED = 256
PATIENCE = 32  # calls of a kind that wait for a place; to make an entry takes as long as some of them


class Chain:
    """A chain of native entries, and what follows them. front: the function to call.

    Where all places are taken, a kind of call that keeps coming takes that of the oldest entry.
    """

    def __init__(self, last: Callee, limit: int) -> None:
        self.front, self.last, self.limit = last, last, limit
        self._entries: dict[object, Callable[[Callee], Callee]] = {}
        self._waiting: Recent[object, list[int]] = Recent(MAX_SETTLED)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    @property
    def is_full(self) -> bool:
        """Whether all places are taken."""
        return len(self._entries) >= self.limit

    def add(self, key: object, put_before: Callable[[Callee], Callee], name: str) -> bool:
        """Put an entry before all others; False if it has to wait, or if `put_before` returns its argument."""
        if self.is_full:
            if self._waits(key, name) or put_before(self.last) is self.last:
                return False
            self._entries.pop(next(iter(self._entries)))
            self.front = self.last
            for each in self._entries.values():
                self.front = each(self.front)
        entry = put_before(self.front)
        if entry is self.front:
            return False
        self._entries[key], self.front = put_before, entry
        return True

    def _waits(self, key: object, name: str) -> bool:
        count = self._waiting.get(key) or self._waiting.keep(key, [0])
        if not count[0]:
            kinds = f"{name} has {self.limit} native entries for other kinds of calls"
            debug.show(2, f"{kinds}; this kind takes the place of the oldest after {PATIENCE} more calls")
        count[0] = (count[0] + 1) % (PATIENCE + 1)
        return count[0] != 0


class Entries:
    """Decides which entries a kernel gets: none at its first call, which shall be short; most are called only once.

    Later calls that come to Python add one, for contiguous arrays of those dtypes, or else for arrays of those very
    shapes and strides if they have come before.
    """

    def __init__(self, python: Callee) -> None:
        self.chain = Chain(python, MAX_ENTRIES)
        self._called: set[object] = set()
        self._settled: Recent[object, bool] = Recent(MAX_SETTLED)  # keys of calls that get no entry

    def after(self, kernel: KernelSpec, plan: Plan, call: ElementwiseCall, again: bool) -> Callee | None:
        """The function to call from now on, after a call that reached Python; None if it does not change.

        again: there was a call with these shapes and strides before.
        """
        if self._settled.get(call.key):  # calls do not wait for another thread that compiles
            return None
        named = [param for param in kernel.in_params if param.name in call.numbers]
        takes = tuple((each.name, kernel.takes(each), kernel.converts(each.name, plan.types)) for each in named)
        types = (takes, *plan.types.items())
        with locks.lock, default_rounding():
            if types not in self._called:
                self._called.add(types)
                return None
            if types not in self.chain and host.takes_any_shape(kernel, plan, call.numbers):
                key: object = types
                put_before = partial(host.typed_entry, kernel, plan, call.numbers)
            elif again and call.key not in self.chain:
                placed = host.placed(kernel, plan, call)
                key, put_before = call.key, partial(host.placed_entry, kernel, plan, placed)
            else:
                if again:
                    debug.show(2, f"{kernel.name}: a call does not qualify for its native entry; {WHY_NOT}")
                    self._settled.keep(call.key, True)
                return None
            full = self.chain.is_full
            if self.chain.add(key, put_before, kernel.name):
                if full:
                    self._settled.clear()  # one that had an entry may be among them
                return self.chain.front
            if not full:
                self._settled.keep(call.key, True)
            return None


WHY_NOT = "entries take aligned NumPy arrays; outputs share no memory with inputs, or the same elements"


class ShortWays:
    """What an object's calls go to: at first Python, later whatever repeats calls on devices, then native entries, and
    Python behind them all.
    """

    def take_no_short_way(self, python: Callee) -> None:
        """Send calls to Python until some have been made."""
        self._fast: Callee = python
        self._entries = Entries(python)
        self._repeated: DeviceFastPath | None = None

    def hasten_calls(self, kernel: KernelSpec, plan: Plan, call: ElementwiseCall, again: bool) -> None:
        """Install a native entry once a kind of call has come twice."""
        entry = self._entries.after(kernel, plan, call, again)
        if entry is not None and self._repeated is not None:
            self._repeated.fallback = entry
        elif entry is not None:
            self._fast = entry

    def repeat_calls(self, args: Sequence[object], ready: CachedCall) -> None:
        """Install the fast path of calls on devices before everything else."""
        with locks.lock:
            from fusec.dispatch.device_plans import DeviceFastPath

            if self._repeated is None:
                self._repeated = DeviceFastPath(self._fast, self._put_first)
        self._repeated.add(args, ready)

    def _put_first(self, entry: Callee) -> None:
        self._fast = entry
