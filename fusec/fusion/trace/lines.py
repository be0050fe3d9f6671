"""The user's lines, by which errors say where they are."""

from __future__ import annotations

import json
import linecache
import os
import re
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fusec.base.source import SourceFile, Span

HERE = str(Path(__file__).parents[2]) + os.sep
LIBRARIES = (HERE, str(Path(np.__file__).parent) + os.sep)  # whose lines are not the user's
MAX_DECORATORS = 20  # lines of them above a function


def here() -> Span:
    """The user's line that is being run."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(LIBRARIES):
        frame = frame.f_back
    return line(frame.f_code.co_filename, frame.f_lineno)


def is_within(name: str) -> bool:
    """Whether a function of a library of this qualified name has been called by the user's line."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(LIBRARIES):
        if frame.f_code.co_qualname == name:
            return True
        frame = frame.f_back
    return False


def defined(function: Any) -> Span | None:
    """The line in which a function is defined; None for a function without code."""
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    name, first = code.co_filename, code.co_firstlineno
    below = (at for at in range(first, first + MAX_DECORATORS) if linecache.getline(name, at).lstrip()[:4] == "def ")
    return line(name, next(below, first) if code.co_name != "<lambda>" else first)


def storing(function: Any, key: Any) -> Span | None:
    """The line of a function that stores an item by its key; None if no line or more than one does."""
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    names = [f"[{key!r}]", f"[{json.dumps(key)}]"] if isinstance(key, (str, int)) else []
    numbers = sorted({line for _, _, line in code.co_lines() if line})
    texts = {at: linecache.getline(code.co_filename, at) for at in numbers}
    found = [at for at, text in texts.items() if re.search(r"\][^=!<>]*=(?!=)", text) and any(e in text for e in names)]
    return line(code.co_filename, found[0]) if len(found) == 1 else None


def line(name: str, number: int) -> Span:
    """A line of a file, without what it is indented by."""
    return _span(name, number, linecache.getline(name, number).rstrip("\n"))


@lru_cache(maxsize=1024)
def _span(name: str, number: int, text: str) -> Span:
    lines = "\n" * (number - 1)
    start = len(lines) + len(text) - len(text.lstrip())
    return Span(SourceFile(name, lines + text, is_lost=not text), start, len(lines) + len(text))
