"""A traced function's reads from outside: the place and the value of each, so that calls can repeat them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fusec.base.records import dataclass
from fusec.fusion.outside.constants import exact, foreign, key_of
from fusec.fusion.trace.labels import Labelled, aligned

ARGUMENT, GLOBAL, CELL, GIVEN, ATTRIBUTE, ITEM, CALL = range(7)
"""How a value is found: among the arguments, in the names of a module or class, in a cell; as it is; in what another
row finds; by a call, whose arguments are rows or as they are."""

SAME, EQUAL, TYPE, SIZE, KEYS, ARRAY, FOREIGN, DEVICE, METHOD, CODE, ALIAS = range(11)
"""What a value must still be: itself; an equal constant, by its key; of its type; as long; with the same keys; an
array, one of another class, or one on a device, of the same dtype, shape and strides; a method of the same function; a
function of the same code; the object that another row finds."""

ABSENT: Any = type("Absent", (), {"__repr__": lambda _: "<absent>"})()
Path = tuple[object, ...]


def title_of(path: Path) -> str:
    """What to call the value at a path: its last name, with the keys behind it.

    >>> title_of(("global", 1234, "model", "weights", (int, 0)))
    'weights_0'
    """
    last = max((at for at, each in enumerate(path) if isinstance(each, str)), default=0)
    return "_".join(str(each[-1] if isinstance(each, tuple) else each) for each in path[last:]) or "outside"


@dataclass(eq=False)
class Location:
    """The place of a value, as a row describes it."""

    how: int
    owner: Any
    name: Any
    path: Path  # the same for each trace

    def attribute(self, at: int, name: str) -> Location:
        """An attribute of the object; at: the row that finds the object."""
        return Location(ATTRIBUTE, at, name, (*self.path, name))


class Guard(NamedTuple):
    """One value."""

    how: int
    owner: Any  # its place, or the number of the row that finds the object with attribute `name`
    name: Any
    check: int
    expected: Any


@dataclass(eq=False)
class Guards:
    """The reads that calls repeat."""

    rows: tuple[Guard, ...]
    picks: tuple[int, ...]  # the rows whose values kernels take, or the function returns
    functions: tuple[tuple[Any, str, Any], ...] = ()  # attributes, such as `__code__`, and what they must still be
    bases: tuple[tuple[type, tuple[type, ...]], ...] = ()  # classes, and what they must still inherit from
    counts: tuple[tuple[Mapping[str, Any], int], ...] = ()  # names of these, and how many they must still be
    objects: tuple[int, ...] = ()  # rows that find several objects, which must still be different ones

    def names(self) -> tuple[tuple[dict[str, Any], str, Any], ...] | None:
        """The names of modules that say it all, with the functions, while what they stand for is identical; None if
        they do not.
        """
        found: list[tuple[dict[str, Any], str, Any]] = []
        fixed = self._fixed()
        for at, row in enumerate(self.rows):
            if at in fixed:
                continue
            value = row.expected[0] if row.check == EQUAL else row.expected
            if row.how != GLOBAL or row.check not in (SAME, EQUAL) or value is ABSENT:
                return None
            found.append((row.owner, row.name, value))
        return None if self.picks or self.bases else tuple(found)

    def _fixed(self) -> dict[int, Any]:
        """The values of rows that cannot change while `functions` are as they were: defaults, which are tuples."""
        kept = {(id(function), name): value for function, name, value in self.functions}
        found: dict[int, Any] = {}
        for at, (how, owner, name, check, expected) in enumerate(self.rows):
            value = ABSENT
            if how == GIVEN:
                value = owner
            elif how == ATTRIBUTE:
                value = kept.get((id(found.get(owner)), name), ABSENT)
            elif how == ITEM and type(found.get(owner)) is tuple:
                value = found[owner][name]
            is_same = check == SAME or (check == EQUAL and expected[0] is value)
            if value is not ABSENT and (is_same or (check == SIZE and type(value) is tuple)):
                found[at] = value
        return found

    def read(
        self,
        objects: Sequence[Any],
        labelled: tuple[Labelled, ...] = (),
        described: Callable[[Any], Any] | None = None,
    ) -> list[Any] | None:
        """The picked values; None if something else has changed. objects: arguments with attributes.
        labelled: those with labels, which what is read must share. described: an array on a device as kernels take it.
        """
        for function, name, expected in self.functions:
            if getattr(function, name) is not expected:
                return None
        for kind, order in self.bases:
            if kind.__mro__ is not order:
                return None
        for names, count in self.counts:
            if len(names) != count:
                return None
        values: list[Any] = []
        try:
            for how, owner, name, check, expected in self.rows:
                if how == ATTRIBUTE:
                    value = getattr(values[owner], name, ABSENT)
                elif how == GLOBAL:
                    value = owner.get(name, ABSENT)
                elif how == ITEM:
                    value = values[owner][name]
                elif how == CELL:
                    value = owner.cell_contents
                elif how == GIVEN:
                    value = owner
                elif how == ARGUMENT:
                    value = objects[owner]
                else:
                    value = owner(*(given if at < 0 else values[at] for at, given in name))
                if check == SAME:
                    holds = value is expected
                elif check == TYPE:
                    holds = type(value) is expected
                elif check == ARRAY:
                    holds = (type(value), value.dtype, value.shape, value.strides) == expected
                elif check == EQUAL:
                    holds = value is expected[0] or exact(value) == expected[1]
                elif check == FOREIGN and type(value) is expected[0]:
                    labelled = aligned(labelled, str(name), value)
                    value = foreign(value, str(name))
                    holds = (value.dtype, value.shape, value.strides) == expected[1:]
                elif check == DEVICE and described is not None and type(value) is expected[0]:
                    value = described(value)
                    holds = (value.dtype, value.shape, value.strides) == expected[1:]
                else:
                    holds = value is values[expected] if check == ALIAS else _holds(value, check, expected)
                if not holds:
                    return None
                values.append(value)
        except Exception:  # a property of the user's may raise anything; the trace meets it again
            return None
        if self.objects and len({id(values[at]) for at in self.objects}) < len(self.objects):
            return None
        return [values[at] for at in self.picks]


def _holds(value: Any, check: int, expected: Any) -> bool:
    """Whether a value is what it was, as far as the trace depends on it."""
    if check == SIZE:
        return type(value) is expected[0] and len(value) == expected[1]
    if check == KEYS:
        return type(value) is expected[0] and list(map(key_of, value)) == expected[1]
    origin: object = getattr(value, "__func__" if check == METHOD else "__code__", value)
    return check in (METHOD, CODE) and origin is expected
