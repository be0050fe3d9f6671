"""The arguments of a call: arrays and numbers in one list, objects in another, the rest by value."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from inspect import CO_VARARGS
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from fusec.arguments import layouts
from fusec.base import locks
from fusec.errors.fusing import NotTraceable
from fusec.fusion.outside import constants
from fusec.fusion.outside.constants import Traced, exact, foreign, is_array, is_number, is_on_device
from fusec.fusion.outside.standins import is_readable
from fusec.fusion.trace.labels import Labelled, aligned
from fusec.fusion.trace.tracer import Tracer

CURE = (
    "pass arrays, numbers, text, None, or an object of a class that Python code defines; a buffer as np.asarray(it), "
    "what can be iterated once as list(it)"
)
MOST_LEVELS = 100  # of containers in containers, which are less deep than this unless one holds itself
PLAIN: dict[type, type] = {defaultdict: dict, Counter: dict, deque: list}  # what to pass in their places


Given = Callable[[Any], Any]
"""From a run of the function to what it is given there."""


class TakenError(Exception):
    """An array among the arguments is of a class that calls functions in its own way."""

    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__(call)
        self.call = call


class CallArguments:
    """The arguments of a call. flat: arrays and numbers. objects: with attributes; readable: types of these, as far as
    they are known. function: whose parameters errors name. Raises NotTraceable.
    """

    CALLED = (FunctionType, MethodType, functools.partial, Traced, type, ModuleType, constants.KEPT)

    def __init__(
        self, args: tuple[Any, ...], options: Mapping[str, Any], readable: Collection[type] = frozenset(),
        function: Any = None,
    ) -> None:  # fmt: skip
        self.readable, self.function = readable, function
        self._owners: list[int | str] = []  # of what is in `flat`, the place or name of the argument that has it
        self._owner: int | str = 0
        self._level = 0  # of the container whose items are taken
        self.labelled: tuple[Labelled, ...] = ()
        self.labelled_places: dict[int, str] = {}  # in `flat`, with the names of their types
        self.swapped: dict[int, tuple[str, str]] = {}  # names and dtypes by place: other byte orders
        self.side: Any = None  # what is on a device
        self._there: Any = None  # the module for that, if something is
        self.flat: list[Any] = []
        self.objects: list[Any] = []
        self.constants: dict[int, tuple[Any, Hashable]] = {}  # that are known by identity
        self._kinds: list[Any] = []  # of all in order
        self._shapes: list[int] = []  # where shapes stand among these, before strides and behind a dtype
        self.args = tuple([self._of(at, each) for at, each in enumerate(args)])
        if options:
            self._kinds.append(("options", *options))
        self.options = {name: self._of(name, each) for name, each in options.items()}

    def _of(self, owner: int | str, given: Any) -> Given:
        """What stands for an argument, at some place or of some name."""
        self._owner = owner
        return self._taken(given)

    def name(self, place: int | None = None) -> str:
        """The parameter that holds the entry at a place in `flat`, or the entry under inspection."""
        return self.name_of(self._owner if place is None or place >= len(self._owners) else self._owners[place])

    def name_of(self, owner: int | str) -> str:
        """The parameter that takes an argument, at some place or of some name."""
        code = self.function.__code__ if isinstance(self.function, FunctionType) else None
        if isinstance(owner, str) or code is None:
            return owner if isinstance(owner, str) else f"argument {owner}"
        names, count = code.co_varnames, code.co_argcount
        if owner < count:
            return names[owner]
        return f"{names[count + code.co_kwonlyargcount]}[{owner - count}]" if code.co_flags & CO_VARARGS else str(owner)

    def _taken(self, given: Any) -> Given:
        """What stands for an argument or an item of it."""
        kind = type(given)
        if isinstance(given, np.ndarray):
            if not given.dtype.isnative:
                self.swapped[len(self.flat)] = (self.name(), str(given.dtype))
                self._kinds.append("in another byte order")
            return self._array(given if kind is np.ndarray and given.dtype.isnative else self._converted(given))
        if kind in self.readable:
            return self._read(given)
        if is_number(given):
            return self._placed(given, kind if kind in constants.NUMBERS else given.dtype)
        if isinstance(given, Tracer):
            cure = "return it, and pass it as an argument"
            raise NotTraceable("an array of another call cannot be fused", cure).at()
        if is_array(given):
            return self._foreign(given)
        if kind in (tuple, list, *constants.DICTS) or constants.is_named_tuple(given):
            return self._nest(kind, given)
        key = None if isinstance(given, Traced) else exact(given)
        if key is not None:
            constants.refuse_random(given)
            self._kinds.append(key)
            if constants.is_lasting(given, key):
                self.constants[id(given)] = given, key
            return lambda run: run.constant(given)
        return self._object(given)

    def names(self) -> list[str]:
        """The parameters that hold the entries of `flat`."""
        return [self.name(place) for place in range(len(self.flat))]

    def _placed(self, given: Any, *kind: Any) -> Given:
        place = len(self.flat)
        self._kinds += kind
        if len(kind) > 1:
            self._shapes.append(len(self._kinds) - 2)
        self.flat.append(given)
        self._owners.append(self._owner)
        return lambda run: run.argument(place)

    def _array(self, given: Any) -> Given:
        return self._placed(given, given.dtype, given.shape, given.strides)

    def _foreign(self, given: Any) -> Given:
        """Another library's array. Raises TakenError if its class calls functions itself."""
        if hasattr(type(given), "__fusec_call__"):
            raise TakenError(type(given).__fusec_call__)
        if is_on_device(given):
            found = self.described(given)
            return self._placed(found, type(given), found.device, found.dtype.numpy, found.shape, found.strides)
        known, self.labelled = self.labelled, aligned(self.labelled, self.name(), given)
        if self.labelled is not known:
            self._kinds.append(type(given))
            self.labelled_places[len(self.flat)] = type(given).__name__
        return self._array(self._converted(given))

    def described(self, given: Any) -> Any:
        """An array on a device, as kernels take it."""
        if self.side is None:
            with locks.lock:
                from fusec.fusion.devices import device_memory

            self._there, self.side = device_memory, device_memory.DeviceSide()
        return self.side.described(given)

    def outline(self, given: Any) -> Any:
        """The form and address of an array of the call, of which nothing may be read; None for a number."""
        if isinstance(given, np.ndarray):
            return given
        return self._there.outline(given) if self._there and self._there.is_described(given) else None

    def check_places(self, flat: Sequence[Any]) -> None:
        """Raise HostArrayAmongDeviceArrays if some arrays are on a device, and others are not."""
        if self._there is not None:
            self._there.check_alone(flat)

    def on_host(self, flat: Sequence[Any]) -> tuple[Sequence[Any], dict[int, Any]]:
        """The same with arrays in host memory, which have the forms of those on a device, but not their contents; and
        these arrays by the identity of what they stand for.
        """
        if self._there is None:
            return flat, {}
        found = self._there.on_host(flat)
        return found, {id(each.given): array for each, array in zip(flat, found, strict=True) if each is not array}

    def _converted(self, given: Any) -> Any:
        return foreign(given, self.name(), getattr(self.function, "__name__", "fuse"))

    def _nest(self, kind: Any, given: Any) -> Given:
        if self._level == MOST_LEVELS:
            what = f"argument '{self.name()}', which holds itself or more than {MOST_LEVELS} levels of containers,"
            raise NotTraceable(f"{what} cannot be fused", "pass the items that the function reads, in one list").at()
        self._level += 1
        found = self._nested(kind, given)
        self._level -= 1
        return found

    def _nested(self, kind: Any, given: Any) -> Given:
        """What stands for a container."""
        owner = self._owner
        if not issubclass(kind, dict):
            self._kinds.append((kind, len(given)))
            items = list(map(self._taken, given))
            return lambda run: run.container(kind, [item(run) for item in items], owner)
        names = tuple(map(constants.key_of, given))
        if None in names:
            what = f"argument '{self.name()}', a dictionary whose keys are not constants, cannot be fused"
            raise NotTraceable(what, CURE).at()
        self._kinds.append((kind, names))
        pairs = [(name, self._taken(each)) for name, each in given.items()]
        return lambda run: run.container(kind, [(name, item(run)) for name, item in pairs], owner)

    def _object(self, given: Any) -> Given:
        kind = type(given)
        constants.refuse_random(given)
        if constants.is_sparse(given):
            cure = f"pass {self.name()}.toarray(), or {self.name()}.data to work on what it stores"
            raise NotTraceable(f"argument '{self.name()}' is a sparse matrix, which cannot be fused", cure).at()
        if not isinstance(given, self.CALLED) and not is_readable(kind):
            what = f"argument '{self.name()}' of type {kind.__module__}.{kind.__qualname__} cannot be fused"
            plain = PLAIN.get(kind)
            cure = CURE if plain is None else f"pass {plain.__name__}({self.name()}), which fused functions take"
            raise NotTraceable(what, cure).at()
        return self._read(given)

    def _read(self, given: Any) -> Given:
        self._kinds.append(type(given))
        place = len(self.objects)
        self.objects.append(given)
        return lambda run: run.object(place)

    def kind(self, key: tuple[Any, ...]) -> Any:
        """What calls that may share a trace have in common; None if there are none. key: of the plan."""
        found, shapes = [*key], []
        for place in self._shapes:
            shape, strides = key[place : place + 2]
            gaps = layouts.gaps_of(shape, strides, key[place - 1].itemsize)
            if gaps is None or (gaps and self.side is not None):
                return None
            shapes.append(shape)
            found[place : place + 2] = [None, gaps]
        return (layouts.pattern_of_extents(shapes), *found) if shapes else None

    def key(self, values: frozenset[int]) -> Any:
        """The key of the plan. values: places of numbers that the function needs as Python numbers."""
        found = self._kinds
        for at in values:
            if at < len(self.flat) and not isinstance(self.flat[at], np.ndarray):
                found = [*found, ("value", at, exact(self.flat[at]))]
        return (*found,)


def are_apart(arrays: Sequence[Any]) -> bool:
    """Whether dense arrays lie one behind the other, which is known without looking at each pair."""
    if not all(each.flags.c_contiguous for each in arrays):
        return False
    starts = [each.__array_interface__["data"][0] for each in arrays]
    return layouts.are_apart((start, start + each.nbytes) for start, each in zip(starts, arrays, strict=True))


def pattern_of(flat: Sequence[Any], writes: Sequence[int]) -> Any:
    """The arrays that share memory with others, if written arrays do; None if they do not.

    Arrays that touch are in one group, and so are those that a third one touches. Its first array names it.
    """
    arrays = [(at, each) for at, each in enumerate(flat) if isinstance(each, np.ndarray)]
    if are_apart([each for _, each in arrays]):
        return None
    groups = {at: at for at, _ in arrays}
    for number, (at, each) in enumerate(arrays):
        met = {groups[other] for other, before in arrays[:number] if np.may_share_memory(each, before)}
        if met:
            first = min(met)
            groups.update({other: first for other, group in groups.items() if group in met or other == at})
    shared = {groups[at] for at in writes if at in groups}
    groups = {at: group if group in shared else at for at, group in groups.items()}
    if all(at == group for at, group in groups.items()):
        return None
    starts = {at: each.__array_interface__["data"][0] for at, each in arrays}
    return (tuple(groups.items()), tuple(starts[at] - starts[group] for at, group in groups.items()))
