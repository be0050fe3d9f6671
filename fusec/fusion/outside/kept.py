"""Functions behind functools.lru_cache in a trace: they run untraced, and every call calls them again."""

from __future__ import annotations

import functools
from typing import Any

from fusec.base.diagnostics import instance_of
from fusec.errors.fusing import NotTraceable
from fusec.fusion.outside import reads
from fusec.fusion.outside.constants import exact
from fusec.fusion.outside.reads import Location
from fusec.fusion.trace.trace import here, recorded_by
from fusec.fusion.trace.tracer import Tracer

CURE = "pass it numbers, constants, or objects from outside; or omit functools.lru_cache, since traces are kept anyway"


class Kept:
    """A function that caches its results; its reads are no part of the trace, its result is."""

    def __init__(self, recording: Any, origin: Any) -> None:
        self._recording, self._origin = recording, origin

    def __call__(self, *args: Any, **options: Any) -> Any:
        """What the function gives for these arguments now."""
        origin, recording = self._origin, self._recording
        given = [self._given(each) for each in (*args, *options.values())]
        function = functools.partial(_called, origin, tuple(options)) if options else origin
        with recorded_by(None):
            value = function(*(each for _, each in given))
        path = ("call", id(origin), *options, *(at if at >= 0 else exact(each) for at, each in given))
        return recording.seen(Location(reads.CALL, function, tuple(given), path), value)

    def _given(self, value: Any) -> tuple[int, Any]:
        """The row of an argument from outside, or -1, and the argument as it is. Raises NotTraceable."""
        if isinstance(value, Tracer):
            hash(value)  # raises, as for an array, or asks for the number
        _, origin, at = self._recording.origins.get(id(value), (value, value, -1))
        if any(row == at for row, _ in self._recording.attributes) or (at < 0 and exact(origin) is None):
            what = f"{self._origin.__name__}, which functools.lru_cache caches, with {instance_of(value)} made here"
            raise NotTraceable(f"a fused function cannot call {what}", CURE).at(here())
        return at, origin

    def __getattr__(self, name: str) -> Any:
        return getattr(self._origin, name)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def _called(function: Any, names: tuple[str, ...], *given: Any) -> Any:
    """Call a function of which the last arguments have names."""
    return function(*given[: -len(names)], **dict(zip(names, given[-len(names) :], strict=True)))
