"""fusec's dataclasses are those of the standard library, by every look from outside."""

import copy
import dataclasses
import inspect
import pickle
from typing import ClassVar

import pytest

from fusec.base import records


def family(dataclass, field):
    """The same classes made with one library or the other."""

    @dataclass(frozen=True)
    class Base:
        kind: ClassVar[str] = "base"
        line: int = field(default=0, compare=False, kw_only=True)

    @dataclass(frozen=True)
    class Child(Base):
        name: str
        items: tuple = ()

    @dataclass
    class Open:
        x: int
        found: list = field(default_factory=list)
        total: int = field(init=False, repr=False)

        def __post_init__(self):
            self.total = self.x + 1

    @dataclass(frozen=True, slots=True)
    class Slotted:
        a: object
        b: int = 3

        def __repr__(self):
            return "slotted"

    @dataclass(frozen=True, eq=False)
    class Same:
        x: float

    @dataclass(frozen=True)
    class Empty:
        pass

    return {each.__name__: each for each in (Base, Child, Open, Slotted, Same, Empty)}


OURS, THEIRS = family(records.dataclass, records.field), family(dataclasses.dataclass, dataclasses.field)
NAN = float("nan")
CALLS = [
    ("Child", ("n",), {}), ("Child", ("n", (1, 2)), {"line": 4}), ("Child", ("m",), {"line": 9}), ("Child", (), {}),
    ("Child", ("n", (), 3), {}), ("Open", (1,), {}), ("Open", (1, [2]), {}), ("Open", (), {"y": 1}),
    ("Slotted", (1,), {}), ("Slotted", (NAN, 2), {}), ("Slotted", (1, 3), {}), ("Same", (1.0,), {}), ("Empty", (), {}),
]  # fmt: skip


def attempt(action):
    try:
        return action()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize(("name", "args", "kwargs"), CALLS)
def test_instances_look_and_behave_alike(name, args, kwargs):
    ours, theirs = (attempt(lambda made=made: made[name](*args, **kwargs)) for made in (OURS, THEIRS))
    if isinstance(theirs, type):
        assert ours is theirs
        return
    assert repr(ours) == repr(theirs) or name == "Same"
    assert OURS[name].__match_args__ == THEIRS[name].__match_args__
    assert list(inspect.signature(OURS[name]).parameters) == list(inspect.signature(THEIRS[name]).parameters)
    for first in ("x", "a", "name", "other"):
        changed = [
            attempt(lambda each=each, first=first: setattr(copy.copy(each), first, 5)) for each in (ours, theirs)
        ]
        if name == "Slotted" and first not in ("a", "b"):  # the library's own message fails there
            changed[1] = dataclasses.FrozenInstanceError
        assert changed[0] is changed[1]
        changed = [attempt(lambda each=each, first=first: delattr(copy.copy(each), first)) for each in (ours, theirs)]
        if name == "Slotted" and first not in ("a", "b"):
            changed[1] = dataclasses.FrozenInstanceError
        assert changed[0] is changed[1]
    assert hasattr(ours, "__dict__") == hasattr(theirs, "__dict__")
    assert [each.name for each in dataclasses.fields(ours)] == [each.name for each in dataclasses.fields(theirs)]
    assert dataclasses.asdict(copy.copy(ours)).keys() == dataclasses.asdict(theirs).keys()


def test_equality_and_hashes_agree():
    made = []
    for classes in (OURS, THEIRS):
        some = [attempt(lambda c=c, classes=classes: classes[c[0]](*c[1], **c[2])) for c in CALLS]
        some = [each for each in some if not isinstance(each, type)]
        table = [a == b for a in some for b in some]
        hashes = [attempt(lambda a=a, b=b: hash(a) == hash(b)) for a in some for b in some]
        made.append((table, hashes))
    assert made[0] == made[1]


def test_replace_keeps_the_other_fields():
    child = OURS["Child"]("n", (1,), line=4)
    assert records.replace(child, name="m") == OURS["Child"]("m", (1,))
    assert records.replace(child, name="m").line == 4
    assert dataclasses.replace(child, items=()) == OURS["Child"]("n")
    with pytest.raises(TypeError):
        records.replace(child, other=1)


@records.dataclass(frozen=True, slots=True)
class Kept:
    a: int
    b: str = "x"


def test_frozen_slots_can_be_pickled_and_copied():
    kept = Kept(2)
    assert pickle.loads(pickle.dumps(kept)) == copy.deepcopy(kept) == kept
