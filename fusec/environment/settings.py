"""The environment variables that fusec reads: their values and their meanings.

One rule for all: a value that means nothing is refused (F300) before a kernel is compiled, whether or not that kernel
needs it, and so is it where it is read. A variable whose name is nearly one of these is warned of, once.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from fusec.base.records import dataclass
from fusec.errors.base import FusecWarning

PREFIX = "FUSEC_"
LEVELS = 6  # of FUSEC_DEBUG
ON, OFF = ("1", "on", "yes", "true"), ("0", "off", "no", "false")
KINDS = ("bounds", "wrap")  # of what FUSEC_CHECK looks for


@dataclass(frozen=True)
class Setting:
    """A variable."""

    name: str
    read: Callable[[str], object]  # the value of a text, None for an invalid text
    expected: str  # a description of valid values
    meaning: str


def _number(least: int, most: int | None = None) -> Callable[[str], int | None]:
    def read(text: str) -> int | None:
        found = int(text) if text.isdecimal() and text.isascii() and len(text) < 20 else -1
        return found if least <= found <= (found if most is None else most) else None

    return read


def _switch(text: str) -> bool | None:
    return text.lower() in ON if text.lower() in (*ON, *OFF) else None


def _checks(text: str) -> str | None:
    names = set() if text == "0" else {each.strip() for each in text.split(",")} - {""}
    return ",".join(sorted(names)) if names <= set(KINDS) else None


BYTES = "a number of bytes, as in 536870912"

SETTINGS = (
    Setting(
        "FUSEC_NUM_THREADS", _number(1), "a positive number",
        "number of threads on the CPU; the default is the number of cores that the process may use",
    ),
    Setting(
        "FUSEC_CPU", str.lower, "a processor that this machine can run",
        "the processor to compile for: `native`, `generic`, `avx2` or `sse2`",
    ),
    Setting("FUSEC_CACHE", _switch, "0 (off) or 1 (on)", "`0`, `off`, `no` or `false` turns the disk cache off"),
    Setting(
        "FUSEC_CACHE_DIR", str, "a folder",
        "the folder of the disk cache; folders and entries that others own or may write to are not used",
    ),
    Setting("FUSEC_CACHE_BYTES", _number(0), BYTES, "the largest size of the disk cache"),
    Setting("FUSEC_POOL_BYTES", _number(0), BYTES, "how much memory of freed outputs is kept for new outputs"),
    Setting(
        "FUSEC_TIERS", _switch, "0 (off) or 1 (on)",
        "`0`, `off`, `no` or `false`: first calls wait for the compiler, see [speed.md](speed.md#first-calls)",
    ),
    Setting(
        "FUSEC_CHECK", _checks, "'bounds', 'wrap' or 'bounds,wrap', or 0 for no checks",
        "`bounds` checks the indices and assertions of all kernels as they run, `wrap` reports integers that wrap;"
        " see [kernels.md](kernels.md#checked-kernels) and [numerics.md](numerics.md#integers-that-wrap)",
    ),
    Setting(
        "FUSEC_DEBUG", _number(0, LEVELS), f"a number from 0 to {LEVELS}",
        "how much to print about compilation, from 0 (nothing) to 6 (assembly)",
    ),
    Setting(
        "FUSEC_EAGER", _switch, "0 (off) or 1 (on)",
        "`1`, `on`, `yes` or `true`: operations on lazy arrays are computed as they are recorded, see"
        " [lazy_arrays.md](lazy_arrays.md#debugging); it is read when `fusec.xp` is imported",
    ),
    Setting("FUSEC_DUMP", str, "a folder", "a folder that receives everything that FUSEC_DEBUG can print, as files"),
)  # fmt: skip
BY_NAME = {each.name: each for each in SETTINGS}
OF_TESTS = frozenset(("FUSEC_CUPY", "FUSEC_NUMEXPR", "FUSEC_CLANG"))  # names that fusec's own tests read


def text_of(name: str) -> str:
    """The text of a variable without surrounding spaces; "" if it is not set."""
    return os.environ.get(name, "").strip()


def value_of(name: str) -> object:
    """The value of a variable, None if it is not set. Raises SettingNotUnderstood."""
    text = text_of(name)
    if not text:
        return None
    found = BY_NAME[name].read(text)
    if found is None:
        raise refusal(name, BY_NAME[name].expected)
    return found


def number_of(name: str) -> int | None:
    """The value of a variable that holds a number. Raises SettingNotUnderstood."""
    found = value_of(name)
    assert found is None or isinstance(found, int), f"{name} is no number"
    return found


def refusal(name: str, expected: str) -> Exception:
    """The error for an invalid value."""
    from fusec.errors.targets import SettingNotUnderstood  # the catalogue takes long to import

    return SettingNotUnderstood(name, text_of(name), expected).at()


def check() -> None:
    """Check all variables. Raises SettingNotUnderstood; warns of names that resemble a variable's name."""
    version()


def version() -> int:
    """A number that is another one once a variable of the process has changed; the same checks."""
    now: dict[Any, Any] | None = getattr(os.environ, "_data", None)  # as the system has them: a copy takes far longer
    before, changes = _seen.state
    if now is None or now != before:
        for each in SETTINGS:
            value_of(each.name)
        for name in os.environ:
            if name.startswith(PREFIX) and name not in BY_NAME and name not in OF_TESTS:
                _warn(name)
        changes += 1
        _seen.state = dict(now or {}), changes
    return changes


def forget() -> None:
    """Take all variables for changed when they are next checked."""
    _seen.state = {}, _seen.state[1]


class _Seen:
    """All variables as they were when they were last checked, and how often they have changed."""

    state: tuple[dict[Any, Any], int] = {}, 0


_seen = _Seen()


@cache
def _warn(name: str) -> None:
    from difflib import get_close_matches  # hardly ever needed

    near = get_close_matches(name.removeprefix(PREFIX), [each.removeprefix(PREFIX) for each in BY_NAME], 1, 0.7)
    if near:
        warnings.warn(
            f"{name} means nothing to fusec; did you mean {PREFIX}{near[0]}?", FusecWarning, stacklevel=_users_level()
        )


def _users_level() -> int:
    """The stacklevel at which the caller's warning names the line that called fusec."""
    package = str(Path(__file__).parents[1]) + os.sep
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    return level
