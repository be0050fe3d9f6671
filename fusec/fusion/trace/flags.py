"""The flags of traced arrays."""

from __future__ import annotations

from typing import Any

from fusec.errors.fusing import NotFusable
from fusec.fusion.trace.lines import here


class Flags:
    """x.flags, which can only be read."""

    def __init__(self, flags: Any) -> None:
        object.__setattr__(self, "_flags", flags)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._flags, name)

    def __getitem__(self, name: str) -> Any:
        return self._flags[name]

    def __setattr__(self, name: str, _: Any) -> None:
        raise NotFusable(f"setting x.flags.{name}", "do it to the result").at(here())

    __setitem__ = __setattr__
