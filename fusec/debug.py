"""Debug output, asked for by environment variables.

FUSEC_DEBUG: 0 silent, 1 one line a kernel, 2 fusion decisions, 3 graph after each pass, 4 loops, 5 source, 6 assembly.
FUSEC_DUMP: a folder; the same texts are written there as numbered files.
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

_numbers = itertools.count()


def level() -> int:
    """The level in force, 0 if FUSEC_DEBUG is unset or not a number."""
    text = os.environ.get("FUSEC_DEBUG", "")
    return int(text) if text.isdecimal() else 0


def show(at: int, title: str, text: str) -> None:
    """Print a titled text to standard error when the level reaches `at`; also dump it if FUSEC_DUMP is set."""
    if level() >= at:
        print(f"fusec: {title}\n{text}" if text else f"fusec: {title}", file=sys.stderr)
    folder = os.environ.get("FUSEC_DUMP")
    if folder and text:
        name = "".join(char if char.isalnum() or char in "._-" else "_" for char in title)
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        (path / f"{next(_numbers):04d}_{name}.txt").write_text(text)
