"""The doors: what each is called, what checks one seed of it, and how many of all programs are its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import NamedTuple


class Door(NamedTuple):
    """module: has check(seed). share: of all programs."""

    module: str
    share: float

    @property
    def check(self) -> Callable[[int], None]:
        """Checks one program; raises FindingError. The module, and fusec with it, is imported here."""
        from tests.fuzz.findings import RefusedError

        found: Callable[[int], None] = import_module(f"tests.fuzz.{self.module}").check

        def check(seed: int) -> None:
            with suppress(RefusedError):
                found(seed)

        return check


DOORS = {
    "kernel": Door("kernel_door", 0.3),
    "function": Door("function_door", 0.15),
    "evaluate": Door("evaluate_door", 0.43),
    "fuse": Door("fuse_door", 0.12),
    "broken": Door("broken_door", 0.0),  # which the tests of the runner run
}

BLOCK = 1000  # programs of one process, after which another takes over: machine code stays in memory until the end
SETTINGS = (
    {"FUSEC_NUM_THREADS": "2"},
    {"FUSEC_NUM_THREADS": "1"},
    {"FUSEC_NUM_THREADS": "3", "FUSEC_CPU": "avx2"},
    {"FUSEC_NUM_THREADS": "2", "FUSEC_CPU": "sse2"},
)


def environment(seed: int) -> dict[str, str]:
    """The settings that programs run under, which go by the block that a seed is in."""
    return {"FUSEC_CACHE": "0", "FUSEC_TIERS": "0", **SETTINGS[seed // BLOCK % len(SETTINGS)]}


def enter(seed: int) -> None:
    """Put the settings of a seed in force in this process, as far as the machine can, before fusec is imported."""
    os.environ.update(environment(seed))
    from fusec.errors import FusecError
    from fusec.runtime.cpu.processor import processor

    try:
        processor()
    except FusecError:  # a lesser machine
        os.environ.pop("FUSEC_CPU", None)
