"""The record of a trace's reads from outside: arrays become operands, objects have stand-ins."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from fusec.base import dtypes
from fusec.base.diagnostics import instance_of
from fusec.base.records import dataclass, field
from fusec.errors import FusecError
from fusec.errors.fusing import AltersOutside, NotTraceable
from fusec.fusion.functions import randomness
from fusec.fusion.outside import constants, reads
from fusec.fusion.outside.constants import (
    Traced,
    copied,
    exact,
    has_tracers,
    is_array,
    is_mutable,
    is_number,
    is_of_library,
    is_same,
    maker_of,
)
from fusec.fusion.outside.kept import Kept
from fusec.fusion.outside.namespaces import TracedNames, of_system
from fusec.fusion.outside.reads import ABSENT, Guard, Location, Path
from fusec.fusion.outside.standins import Refused, Super, TypeStandIn, class_standing_in, object_standing_in
from fusec.fusion.trace import lines
from fusec.fusion.trace.labels import Labelled, aligned, labels_of
from fusec.fusion.trace.numbers import length
from fusec.fusion.trace.trace import Trace, defined, here

OWN = ("__name__", "__package__", "__spec__", "__loader__", "__file__")
CURE = "pass arrays, numbers, constants, or an object of a class that Python code defines"
MAX_NUMBERS = 4096  # that a function remembers


@dataclass(eq=False)
class Numbers:
    """The facts about numbers from outside, by path: their old values, which change, and which Python needs."""

    last: dict[Path, Any] = field(default_factory=dict)
    changing: set[Path] = field(default_factory=set)
    needed: set[Path] = field(default_factory=set)


@dataclass(eq=False)
class Stored:
    """The value that the function leaves in a place outside: a cell, a module's dictionary or an object's attribute."""

    owner: Any
    name: str
    value: Any


class Container(NamedTuple):
    """A list, set or dictionary that is not the function's own."""

    value: Any
    before: Any  # a copy
    is_stand_in: bool
    name: str


class Recording:
    """The reads of one trace. operand: a tracer of an array or number, which the call finds at its place."""

    trace: Trace

    def __init__(
        self, name: str, numbers: Numbers, operand: Callable[[Any], Any], labelled: tuple[Labelled, ...] = ()
    ) -> None:
        self.labelled = labelled
        self.described: Callable[[Any], Any] = lambda value: value  # an array on a device, as kernels take it
        self.name, self.numbers, self.operand = name, numbers, operand
        self.is_over = False  # whether the function has returned
        self.rows: list[Guard] = []
        self.picks: list[int] = []
        self.paths: list[Path] = []  # of what is picked
        self.known: dict[Path, Any] = {}
        self.functions: dict[FunctionType, FunctionType] = {}
        self.parts: list[tuple[FunctionType, str, Any]] = []  # of functions: their code, their defaults
        self.classes: dict[type, type] = {}
        self.origins: dict[int, tuple[Any, Any, int]] = {}  # by identity of a stand-in: it, what it is for, its row
        self.objects: dict[int, tuple[Any, int]] = {}
        self.namespaces: dict[int, tuple[TracedNames, dict[str, Any]]] = {}
        self.cells: list[tuple[Any, CellType, Any]] = []
        self.attached: list[tuple[FunctionType, dict[str, Any]]] = []  # functions, and the attributes that they had
        self.attributes: dict[tuple[int, str], Any] = {}  # those that were set, by the object's row
        self.containers: list[Container] = []

    # --- rows ----------------------------------------------------------------------------------------------------

    def note(self, found: Location, check: int, expected: Any) -> int:
        """A new row; its number."""
        self.rows.append(Guard(found.how, found.owner, found.name, check, expected))
        return len(self.rows) - 1

    def watch(self, value: Any, name: Any, is_stand_in: bool = True) -> None:
        """Record what a container holds before the function may change it."""
        self.containers.append(Container(value, copied(value), is_stand_in, _in_brackets(name)))

    def lacks(self, found: Location) -> None:
        """Make calls expect that there is nothing, as now."""
        if found.path not in self.known:
            self.known[found.path] = ABSENT
            self.note(found, reads.SAME, ABSENT)

    def pick(self, at: int, path: Path) -> int:
        """Make calls pick the value of a row; return its place among the picked values."""
        if at not in self.picks:
            self.picks.append(at)
            self.paths.append(path)
        return self.picks.index(at)

    def guards(self) -> reads.Guards:
        """The reads that calls repeat."""
        orders = {kind: kind.__mro__ for kind in self.classes}
        own = dict.fromkeys(each for order in orders.values() for each in order if not is_of_library(each))
        bases = [
            (kind, order) for kind, order in orders.items() if all(kind not in each[1:] for each in orders.values())
        ]
        counts = tuple((vars(each), len(vars(each))) for each in own)
        objects = tuple([at for _, at in self.objects.values()]) if len(self.objects) > 1 else ()
        return reads.Guards(tuple(self.rows), tuple(self.picks), tuple(self.parts), tuple(bases), counts, objects)

    def stands_for(self, stand_in: Any, origin: Any, at: int) -> Any:
        """Record the object of a stand-in, and the row that finds it."""
        self.origins[id(stand_in)] = (stand_in, origin, at)
        return stand_in

    def made_any(self, values: tuple[Any, ...]) -> bool:
        """Whether one of the values belongs to the trace."""
        return has_tracers(values) or any(id(each) in self.origins for each in values)

    def seen(self, found: Location, value: Any) -> Any:
        """The function's view of a value. Raises NotTraceable if the value cannot be read again, and DrawsNumbers."""
        if found.path not in self.known:
            self.known[found.path] = self._seen(found, value)
        return self.known[found.path]

    def _seen(self, found: Location, value: Any) -> Any:
        namespace = constants.namespace_of(value)
        if namespace is not None:
            self.note(found, reads.SAME, value)
            return namespace
        if is_number(value):
            return self._number(found, value)
        if isinstance(value, np.ndarray) or is_array(value):
            return self._array(found, value)
        constants.refuse_random(value)
        if isinstance(value, Traced):
            self.note(found, reads.SAME, value)
            return self.called(value)
        if isinstance(value, constants.KEPT) and not is_of_library(value):
            return self.stands_for(Kept(self, value), value, self.note(found, reads.SAME, value))
        is_constant = exact(value) is not None and not constants.has_stand_in(value)
        if constants.is_user_made(value) or (is_constant and not self._is_changing(found, value)):
            return self._constant(found, value)
        if isinstance(value, (FunctionType, MethodType, functools.partial)):
            return self._callable(found, value)
        if type(value) in (tuple, list, *constants.DICTS) or constants.is_named_tuple(value):
            return self._container(found, value)
        return self._object(found, value)

    def _number(self, found: Location, value: Any) -> Any:
        """A constant, until it was seen to change: from then on an operand."""
        numbers, path, key = self.numbers, found.path, exact(value)
        before: Any = numbers.last.get(path, key)
        if before != key and before[:-1] == key[:-1]:  # type: ignore[index]
            numbers.changing.add(path)
        if path in numbers.changing and path not in numbers.needed:
            self.pick(self.note(found, reads.TYPE, type(value)), path)
            return self.operand(value)
        if len(numbers.last) > MAX_NUMBERS:
            numbers.last.clear()
        numbers.last[path] = key
        self.note(found, reads.EQUAL, (value, key))
        return value

    def _is_changing(self, found: Location, value: Any) -> bool:
        """Whether a tuple was another one before, so that its numbers are to be asked one by one."""
        if not isinstance(value, tuple):
            return False
        key = exact(value)
        if self.numbers.last.setdefault(found.path, key) != key:
            self.numbers.changing.add(found.path)
        return found.path in self.numbers.changing

    def _array(self, found: Location, value: Any) -> Any:
        if type(value) is not np.ndarray and constants.is_on_device(value):
            there = self.described(value)
            form = (type(value), there.dtype, there.shape, there.strides)
            self.pick(self.note(found, reads.DEVICE, form), found.path)
            return self.operand(there)
        array = value
        if type(value) is not np.ndarray or not value.dtype.isnative:
            self.labelled = aligned(self.labelled, str(found.name), value)
            array = constants.foreign(value, str(found.name), self.name)
        if dtypes.from_numpy(array.dtype) is None:
            raise self.refused(found, f"an array of dtype {array.dtype}")
        check = reads.ARRAY if array is value else reads.FOREIGN
        self.pick(self.note(found, check, (type(value), array.dtype, array.shape, array.strides)), found.path)
        made = self.operand(array)
        if isinstance(value, np.ndarray) and not value.dtype.isnative:
            made._trace.swapped[made._memory.buffer.place] = (str(found.name), str(value.dtype))
        if labels_of(value):
            made._trace.labelled[made._memory.buffer.place] = type(value).__name__
        return made

    def _constant(self, found: Location, value: Any) -> Any:
        if isinstance(value, (type, ModuleType)):
            at = self.note(found, reads.SAME, value)
            if is_of_library(value):
                return of_system(self, randomness.traced(value))
            if isinstance(value, type):
                return class_standing_in(self, value)
            return object_standing_in(self, found, at, value)
        key = exact(value)
        if isinstance(key, constants.Same) or value is None or isinstance(value, bool):
            self.note(found, reads.SAME, value)
            return of_system(self, randomness.traced(value))
        self.note(found, reads.EQUAL, (ABSENT if is_mutable(value) else value, key))
        if isinstance(value, (list, dict, set)):
            self.watch(value, found.name, is_stand_in=False)
        return value

    def _callable(self, found: Location, value: Any) -> Any:
        if isinstance(value, MethodType):
            at = self.note(found, reads.METHOD, value.__func__)
            owner = self.seen(found.attribute(at, "__self__"), value.__self__)
            return MethodType(self.called(value.__func__), owner)
        if isinstance(value, functools.partial):
            at = self.note(found, reads.TYPE, type(value))
            parts = (found.attribute(at, name) for name in ("func", "args", "keywords"))
            function, args, options = (self.seen(part, getattr(value, part.name)) for part in parts)
            return functools.partial(function, *args, **options)
        if found.how == reads.ARGUMENT:  # it may be made anew for each call
            return self.called(value, found, self.note(found, reads.CODE, value.__code__))
        self.note(found, reads.SAME, value)
        return self.called(value)

    def _container(self, found: Location, value: Any) -> Any:
        kind = type(value)
        if isinstance(value, dict):
            keys = list(map(constants.key_of, value))
            if None in keys:
                raise self.refused(found, "a dictionary whose keys are not constants")
            at = self.note(found, reads.KEYS, (kind, keys))
            made = kind((name, self.seen(self._item(found, at, name), each)) for name, each in value.items())
        else:
            at = self.note(found, reads.SIZE, (kind, len(value)))
            items = [self.seen(self._item(found, at, place), each) for place, each in enumerate(value)]
            made = maker_of(kind)(items)
        self.watch(made, found.name)
        return self.stands_for(made, value, at)

    def _object(self, found: Location, value: Any) -> Any:
        if id(value) in self.objects:
            made, at = self.objects[id(value)]
            self.note(found, reads.ALIAS, at)
            return made
        at = self.note(found, reads.TYPE, type(value))
        made = object_standing_in(self, found, at, value)
        self.objects[id(value)] = (made, at)
        if made is None:
            raise self.refused(found, f"a value of type {type(value).__name__}")
        return made

    def object_at(self, at: int) -> Any:
        """The object that a row finds."""
        return next(origin for _, origin, row in self.origins.values() if row == at)

    def refused(self, found: Location, what: str) -> FusecError:
        """The error for something from outside."""
        what = f"{what}{_in_brackets(found.name)}"
        return NotTraceable(f"a fused function cannot read {what}: calls would not see it change", CURE).at(here())

    def _item(self, found: Location, at: int, key: Any) -> Location:
        return Location(reads.ITEM, at, key, (*found.path, constants.key_of(key)))

    # --- functions -----------------------------------------------------------------------------------------------

    def called(self, origin: Any, found: Location | None = None, at: int = -1) -> Any:
        """A function whose reads are recorded, in place of one of the user's; other functions unchanged.

        found: where calls find a function that is another each time; at: the row of that.
        """
        origin = origin._function if isinstance(origin, Traced) else origin
        if not isinstance(origin, FunctionType) or is_of_library(origin) or origin.__globals__.__class__ is TracedNames:
            return origin
        if origin not in self.functions:
            cells = tuple(CellType() for _ in origin.__code__.co_freevars)
            names = self._names(origin.__globals__)
            made = FunctionType(origin.__code__, names, origin.__name__, None, cells or None)
            self.functions[origin] = made
            made.__qualname__, made.__module__, made.__doc__ = origin.__qualname__, origin.__module__, origin.__doc__
            self.stands_for(made, origin, -1)
            for own, cell in zip(cells, self._cells(origin, found, at), strict=True):
                self._fill(own, *cell)
            for name in ("__code__", "__defaults__", "__kwdefaults__"):
                value = getattr(origin, name)
                if found is None and value is not None:
                    self.parts.append((origin, name, value))
                if name != "__code__":
                    setattr(made, name, self._defaults(origin, name, found, at))
            made.__dict__.update(self._attributes(origin, found, at))
            self.attached.append((made, dict(made.__dict__)))
        return self.functions[origin]

    def _cells(self, origin: FunctionType, found: Location | None, at: int) -> list[tuple[CellType, Location, Any]]:
        """The cells of a function, where calls find what they hold, and what is to hold what the function assigns."""
        cells = list(zip(origin.__closure__ or (), origin.__code__.co_freevars, strict=True))
        if found is None or not cells:
            return [(cell, Location(reads.CELL, cell, name, ("cell", id(cell), name)), cell) for cell, name in cells]
        closure = found.attribute(at, "__closure__")
        at, rows = self.note(closure, reads.SIZE, (tuple, len(cells))), []
        for place, (cell, name) in enumerate(cells):
            item = self._item(closure, at, place)
            row = self.note(item, reads.TYPE, CellType)
            self.stands_for(item, cell, row)
            contents = Location(reads.ATTRIBUTE, row, "cell_contents", (*item.path, name))
            rows.append((cell, contents, row))
        return rows

    def _fill(self, own: CellType, cell: CellType, found: Location, owner: Any) -> None:
        """Give a function's cell the stand-in for what the cell of the original holds."""
        try:
            value = cell.cell_contents
        except ValueError:  # it has none yet
            return
        if found.name == "__class__":  # that of super()
            own.cell_contents = value
            return
        try:
            own.cell_contents = self.seen(found, value)
        except FusecError as problem:
            own.cell_contents = Refused(problem)  # it may never be used
        self.cells.append((owner, own, own.cell_contents))

    def _attributes(self, origin: FunctionType, found: Location | None, at: int) -> dict[str, Any]:
        """What a function has in attributes of the user's."""
        given = dict(vars(origin))
        names = [name for name in given if not name.startswith("__")]
        if not names and found is None:  # `_asked` sees the first one
            return given
        found, at = (found, at) if found else self._itself(origin)
        place = found.attribute(at, "__dict__")
        at = self.note(place, reads.KEYS, (dict, list(map(constants.key_of, given))))
        for name in names:
            try:
                given[name] = self.seen(self._item(place, at, name), given[name])
            except FusecError as problem:
                given[name] = Refused(problem)  # it may never be used
        return given

    def _defaults(self, origin: FunctionType, name: str, found: Location | None, at: int) -> Any:
        given = getattr(origin, name)
        if found is None:
            items = given.values() if isinstance(given, dict) else given or ()
            if all(each is None or isinstance(each, (bool, int, float, complex, str)) for each in items):
                for key in given if isinstance(given, dict) else ():
                    self.note(Location(reads.GLOBAL, given, key, ()), reads.SAME, given[key])
                return given
            found, at = self._itself(origin)
        return self.seen(found.attribute(at, name), given)

    def _itself(self, origin: FunctionType) -> tuple[Location, int]:
        """The place of a function that stays the same, and its row."""
        found = Location(reads.GIVEN, origin, None, ("function", id(origin)))
        return found, self.note(found, reads.SAME, origin)

    def _names(self, origin: dict[str, Any]) -> TracedNames:
        if id(origin) not in self.namespaces:
            made = TracedNames({name: origin[name] for name in OWN if name in origin})
            given = origin.get("__builtins__", builtins)
            given = given if isinstance(given, dict) else vars(given)
            made["__builtins__"] = {
                **given, "super": functools.partial(Super, self), "type": TypeStandIn, "len": length,
                "__import__": self._imported,
                **{each.__name__: functools.partial(self._asked, each) for each in (getattr, hasattr)},
            }  # fmt: skip
            made.origin, made.recording, made.own = origin, self, frozenset(dict.keys(made))
            self.namespaces[id(origin)] = (made, origin)
        return self.namespaces[id(origin)][0]

    def _asked(self, ask: Callable[..., Any], owner: Any, name: str, *default: Any) -> Any:
        """What getattr and hasattr find; calls see an attribute that a function gets later."""
        _, origin, _ = self.origins.get(id(owner), (owner, owner, -1))
        if isinstance(origin, FunctionType) and isinstance(name, str) and name not in vars(origin):
            self.lacks(Location(reads.GLOBAL, vars(origin), name, ("function", id(origin), name)))
        return ask(owner, name, *default)

    def _imported(self, *args: Any, **options: Any) -> Any:
        """What an import statement in the function gives."""
        module = __import__(*args, **options)
        root = Location(reads.GIVEN, module, module.__name__, ("module", module.__name__))
        constants.refuse_random(module)
        return self.seen(root, module)

    # --- what the function leaves behind ---------------------------------------------------------------------------

    def restore(self) -> None:
        """Restore the user's own lists and dictionaries to their state before the trace."""
        for container, before, is_stand_in, _ in self.containers:
            if not is_stand_in and not is_same(container, before):
                container.clear()
                (container.extend if isinstance(container, list) else container.update)(before)

    def stored(self, function: Any) -> list[Stored]:
        """The function's assignments to names and attributes from outside. Raises AltersOutside for other changes.

        function: the one that is traced.
        """
        for container, before, is_stand_in, name in self.containers:
            if is_same(container, before):
                continue
            if not is_stand_in and not has_tracers(container):
                continue  # the next call finds other constants, and traces again
            key = constants.changed_key(container, before) if isinstance(container, dict) else None
            line = None if key is None else lines.storing(function, key)
            what = f"{'' if key is None else f'item {key!r} of '}{instance_of(container)}{name} that is not its own"
            self.restore()
            raise AltersOutside(what, "changed here" if line else "in this function").at(line or defined(function))
        for owner, attributes in self.attached:
            if not is_same(vars(owner), attributes):
                what = f"an attribute of the function {owner.__name__}"
                raise AltersOutside(what, "in this function").at(defined(function))
        found = [Stored(names, name, names[name]) for names, _ in self.namespaces.values()
                 for name in dict.keys(names) - names.own]  # fmt: skip
        for each in found:
            each.owner = each.owner.origin
        for cell, own, given in self.cells:
            now = own.cell_contents if _is_filled(own) else ABSENT
            if now is not given and now is not ABSENT:
                found.append(Stored(cell, "cell_contents", now))
        found += [Stored(at, name, value) for (at, name), value in self.attributes.items()]
        return found


def _in_brackets(name: Any) -> str:
    """A name in a message, behind what it is the name of."""
    return f" ('{name}')" if isinstance(name, str) else ""


def _is_filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True
