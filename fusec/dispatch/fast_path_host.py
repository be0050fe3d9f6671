"""Fast paths of repeated calls: native entries in a row, and what repeats calls on devices before them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fusec.base import locks
from fusec.base.recent import Recent
from fusec.base.records import dataclass, field
from fusec.base.rounding_mode import default_rounding
from fusec.dispatch import native_entries
from fusec.dispatch.call import KernelCall
from fusec.dispatch.native_entries import Callee
from fusec.dispatch.plan import Plan
from fusec.dispatch.spec import MAX_PLANS, CallOptions
from fusec.environment import debug

if TYPE_CHECKING:
    from fusec.dispatch.device_plans import DeviceFastPath
    from fusec.dispatch.fast_path_device import CachedCall

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

    def is_settled(self, key: object) -> bool:
        """Whether calls of a kind get no entry."""
        return self._settled.get(key) is not None

    def settle(self, key: object) -> None:
        """Let calls of a kind get no entry."""
        self._settled.keep(key, True)

    def after(self, plan: Plan[Any], call: KernelCall[Any], key: object, again: bool) -> Callee | None:
        """The function to call from now on, after a call that reached Python; None if it does not change.

        key: of calls with this plan; again: there was one before.
        """
        if self._settled.get(key):  # calls do not wait for another thread that compiles
            return None
        kernel = call.kernel
        types = None if kernel.kind.along_axes else _types_of(plan, call)
        with locks.lock, default_rounding():
            if types is not None and types not in self._called:
                self._called.add(types)
                return None
            name, put_before = self._made(plan, call, (key, types), again)
            if put_before is None:
                return None
            full = self.chain.is_full
            if self.chain.add(name, put_before, kernel.name):
                if full:
                    self._settled.clear()  # one that had an entry may be among them
                return self.chain.front
            if not full:
                self.settle(key)
            return None

    def _made(
        self, plan: Plan[Any], call: KernelCall[Any], keys: tuple[object, object], again: bool
    ) -> tuple[object, Callable[[Callee], Callee] | None]:
        """The name of an entry for calls like this one, and what makes it; None if there is none, or none yet."""
        kernel, (key, types), numbers = call.kernel, keys, frozenset(call.values)
        is_new = types is not None and types not in self.chain
        if is_new and native_entries.takes_any_shape(kernel, plan, numbers):
            return types, partial(native_entries.typed_entry, kernel, plan, numbers)
        if not again:
            return key, None
        if key in self.chain:
            debug.show(2, f"{kernel.name}: a call does not qualify for its native entry; {WHY_NOT}")
            self.settle(key)
            return key, None
        return key, partial(native_entries.placed_entry, kernel, plan, native_entries.placed(kernel, plan, call))


def _types_of(plan: Plan[Any], call: KernelCall[Any]) -> object:
    """What calls must have in common for an entry that takes arrays of any shape."""
    kernel, types = call.kernel, plan.bound.types
    named = [param for param in kernel.in_params if param.name in call.values]
    return tuple((each.name, kernel.takes(each), kernel.converts(each.name, types)) for each in named), *types.items()


WHY_NOT = "entries take aligned NumPy arrays; outputs share no memory with inputs, or the same elements"


class FastPath:
    """What calls of one form go to: at first Python, later whatever repeats calls on devices, then native entries, and
    Python behind them all.
    """

    def __init__(self, python: Callee, install: Callable[[Callee], None]) -> None:
        """install: makes a function the first to be called."""
        self.python, self.install = python, install
        self.entries = Entries(python)
        self.repeated: DeviceFastPath | None = None

    def hasten(self, plan: Plan[Any], call: KernelCall[Any], key: object, again: bool) -> bool:
        """Install a native entry once a kind of call has come twice; whether this call has led to one."""
        entry = self.entries.after(plan, call, key, again)
        if entry is None:
            return False
        if self.repeated is None:
            self.install(entry)
        else:
            self.repeated.fallback = entry
        return True

    def repeat(self, args: Sequence[object], ready: CachedCall) -> None:
        """Install the fast path of calls on devices before everything else."""
        with locks.lock:
            from fusec.dispatch.device_plans import DeviceFastPath

            if self.repeated is None:
                self.repeated = DeviceFastPath(self.entries.chain.front, self.install)
        self.repeated.add(args, ready)


class ShortWays:
    """An object whose calls have fast paths; it calls `_fast`."""

    def take_no_short_way(self, python: Callee) -> None:
        """Send calls to Python until some have been made."""
        self._fast: Callee = python
        self.path = FastPath(python, self._put_first)

    def _put_first(self, entry: Callee) -> None:
        self._fast = entry


# --- kernels along axes --------------------------------------------------------------------------------------------

Choice = tuple[object, bool, bool]  # the axis, whether it is kept or reversed, and whether the outputs are given


def choice_of(options: CallOptions, given: bool) -> Choice:
    """The key of fast paths."""
    return options.axis, options.keepdims or options.reverse, given


@dataclass
class Paths:
    """Fast paths of a kernel along axes, or of the variants that share them."""

    quick: dict[object, Callee] = field(default_factory=dict)  # what is tried first, by choice
    of: dict[object, FastPath] = field(default_factory=dict)  # likewise
    several: Recent[object, Any] = field(default_factory=lambda: Recent(MAX_PLANS))  # known calls of several kernels
