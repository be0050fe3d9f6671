"""The global names of traced functions, and the names of modules whose contents change."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

from fusec.errors.fusing import NotTraceable
from fusec.fusion.outside import reads
from fusec.fusion.outside.reads import ABSENT, Location
from fusec.fusion.trace.trace import here


class TracedNames(dict[str, Any]):
    """The global names of a function as it sees them."""

    origin: dict[str, Any]
    recording: Any
    own: frozenset[str]

    def __missing__(self, name: str) -> Any:
        value = self.origin.get(name, ABSENT)
        if self.recording.is_over and value is not ABSENT:
            return value
        found = Location(reads.GLOBAL, self.origin, name, ("global", id(self.origin), name))
        if value is ABSENT:
            self.recording.lacks(found)
            raise KeyError(name)
        return self.recording.seen(found, value)

    def get(self, name: str, default: Any = None) -> Any:
        """What globals().get finds."""
        try:
            return self[name]
        except KeyError:
            return default

    def __contains__(self, name: object) -> bool:
        return self.get(name, ABSENT) is not ABSENT  # type: ignore[arg-type]

    def setdefault(self, name: str, default: Any = None) -> Any:
        """What globals().setdefault finds or sets."""
        if name not in self:
            self[name] = default
        return self[name]

    def __bool__(self) -> bool:
        return True

    __hash__ = None


def _of_all(name: str) -> Callable[..., Any]:
    """A method that is refused while the trace lasts: names that a module gets later would not be seen."""

    def ask(self: TracedNames, *args: Any) -> Any:
        if self.recording.is_over:  # a traceback, which keeps frames of the function, is printed
            return getattr(self.origin, name)(*args)
        raise NotTraceable("a fused function cannot read all names of a module", "look up names one by one").at(here())

    return ask


for _name in "__iter__ __len__ __or__ __ror__ __eq__ keys values items copy pop popitem".split():
    setattr(TracedNames, _name, _of_all(_name))


class OperatingSystem(ModuleType):
    """The module os as a traced function sees it: the variables of the environment are looked up at each call."""

    def __init__(self, recording: Any) -> None:
        super().__init__("os")
        object.__setattr__(self, "_recording", recording)

    def __getattribute__(self, name: str) -> Any:
        recording = object.__getattribute__(self, "_recording")
        return of_system(recording, getattr(os, name))


def of_system(recording: Any, value: Any) -> Any:
    """The module os, or something of it, as a traced function sees it; other values unchanged."""
    if value is os:
        return OperatingSystem(recording)
    if value is os.getenv:
        return lambda key, default=None: of_system(recording, os.environ).get(key, default)
    if value is os.environ or value is getattr(os, "environb", None):  # which Windows does not have
        name = type(value).__name__
        return recording.seen(Location(reads.GIVEN, value, name, ("os", id(value))), value)
    return value
