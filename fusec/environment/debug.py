"""Debug output, which environment variables turn on.

FUSEC_DEBUG: 0 silent; 1 a line for each kernel: name, hash, layout, bytes, time; 2 decisions with their reasons; 3 the
program after each pass; 4 the loops that code is generated for; 5 the source; 6 the assembly.
FUSEC_DUMP: a folder; all of these are written there, texts as numbered files and lines to `log.txt`, at any level.
"""

from __future__ import annotations

import itertools
import sys
from functools import cache
from pathlib import Path

from fusec.base.folders import Folder
from fusec.environment import settings

_numbers = itertools.count()


def level() -> int:
    """The debug level. Raises SettingNotUnderstood if FUSEC_DEBUG is not a number from 0 to 6."""
    return settings.number_of("FUSEC_DEBUG") or 0


def is_wanted(at: int) -> bool:
    """Whether `show` would print or write a text of this level, whose creation may take time."""
    return bool(settings.text_of("FUSEC_DUMP")) or level() >= at


def show(at: int, title: str, text: str = "") -> None:
    """Print a titled text, or a line, to standard error if the level is at least `at`; also write it to FUSEC_DUMP."""
    if level() >= at:
        print(f"fusec: {title}\n{text}" if text else f"fusec: {title}", file=sys.stderr)
    folder = settings.text_of("FUSEC_DUMP")
    if folder:
        try:
            _dump(Path(folder), title, text)
        except OSError as error:
            _warn(f"FUSEC_DUMP: nothing is written, {error}")


def _dump(path: Path, title: str, text: str) -> None:
    path.mkdir(parents=True, exist_ok=True)
    with Folder(path, for_code=False) as folder:
        if not text:
            with folder.write("log.txt", append=True) as log:
                log.write(f"{title}\n".encode())
            return
        name = "".join(char if char.isalnum() or char in "._-" else "_" for char in title)
        with folder.write(f"{next(_numbers):04d}_{name[:100]}.txt") as file:
            file.write(text.encode())


@cache
def _warn(text: str) -> None:
    """Say something once in a process."""
    print(f"fusec: {text}", file=sys.stderr)
