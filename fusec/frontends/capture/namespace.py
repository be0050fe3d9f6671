"""The values of a function's outside names: where Python finds them, and attributes of what it finds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType

from fusec.base.diagnostics import did_you_mean

MAX_SHOWN = 12  # attributes in a hint


class Opaque:
    """What stands for something in a file that is not run: its attributes are not those of what it stands for."""


class OuterScopes:
    """The places where Python finds the names of a function, inner ones first; a dotted name stands for itself."""

    def __init__(self, *places: Mapping[str, object]) -> None:
        self.places = places

    def find(self, dotted: str) -> tuple[object] | None:
        """The value of a name or of attributes of it, in a tuple of one; None if there is none, or it is a method."""
        name, *attributes = dotted.split(".")
        for place in self.places if attributes else ():
            if dotted in place:  # an attribute as it was when the function was decorated
                return (place[dotted],)
        for place in self.places:
            if name in place or name == "fusec":
                found: tuple[object] | None = (place.get(name, sys.modules["fusec"]),)
                for attribute in attributes:
                    found = None if found is None else _attribute(found[0], attribute)
                return found
        return None

    def closest(self, name: str, known: list[str], is_usable: Callable[[object], bool]) -> str:
        """A cure for a name that nothing defines: one that is alike and stands for what a kernel can use."""
        guess = did_you_mean(name, known)
        while guess:
            meant = guess[len("did you mean '") : -len("'?")]
            value = self.find(meant)
            if value is None or is_usable(value[0]):
                return guess
            known = [each for each in known if each != meant]
            guess = did_you_mean(name, known)
        return ""

    def like(self, dotted: str) -> str:
        """A cure for an attribute that an object lacks; "" for a method."""
        path, _, name = dotted.rpartition(".")
        owner = self.find(path)
        known = [each for each in dir(owner[0]) if not each.startswith("_")] if owner is not None else []
        if name in known:
            return ""
        return did_you_mean(name, known) or f"'{path}' has {', '.join(known[:MAX_SHOWN]) or 'no attributes'}"


def closure_of(function: FunctionType) -> dict[str, object]:
    """The variables of functions around it that a function sees, without those that have no value yet."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    return {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}


def _is_filled(cell: object) -> bool:
    try:
        cell.cell_contents  # type: ignore[attr-defined]  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True


def _attribute(owner: object, name: str) -> tuple[object] | None:
    if isinstance(owner, Opaque):
        return None
    try:
        found = getattr(owner, name)
    except Exception:  # a property of the user's may raise anything
        return None
    is_method = not isinstance(owner, ModuleType) and getattr(found, "__self__", None) is not None
    return None if is_method else (found,)
