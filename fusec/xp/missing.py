"""What lazy arrays lack of other arrays, with what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from fusec.errors.alternatives import LAZY_ARRAY
from fusec.errors.lazy import NoSuchArrayAttribute
from fusec.xp.refusals import refusal


class MissingAttribute:
    """An attribute that is not there for `hasattr`, and whose error says what to write."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, array: object, kind: type) -> NoReturn:
        raise NoSuchArrayAttribute(self.name, LAZY_ARRAY[self.name], "has no").at()


def note_missing(kind: Any) -> None:
    """Have arrays of a class say what to write instead of what they lack."""
    for name in LAZY_ARRAY:
        assert not hasattr(kind, name), f"arrays have {name}"
        setattr(kind, name, MissingAttribute(name))
    kind.__dir__ = lambda array: [each for each in object.__dir__(array) if each not in LAZY_ARRAY]
    kind.__delitem__ = _delete
    for name, cure in (("shape", "x = x.reshape(shape)"), ("dtype", "x = x.astype(dtype), or x.view(dtype)")):
        setattr(kind, name, getattr(kind, name).setter(_setter(name, cure)))


def _delete(_array: object, _key: object) -> None:
    """Refuse to delete elements, as NumPy does."""
    raise refusal(ValueError("cannot delete array elements"))


def _setter(name: str, cure: str) -> Callable[[Any, Any], None]:
    def store(_array: object, _value: object) -> None:
        raise NoSuchArrayAttribute(name, f"write {cure}", "cannot be given another").at()

    return store
