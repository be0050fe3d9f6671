"""The user's lines, by which errors say where they are."""

from __future__ import annotations

import ast
import json
import linecache
import os
import re
import sys
import sysconfig
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from fusec.base.source import SourceFile, Span
from fusec.environment import debug

HERE = str(Path(__file__).parents[2]) + os.sep
LIBRARIES = (HERE, str(Path(np.__file__).parent) + os.sep)  # whose lines are not the user's
STANDARD = sysconfig.get_path("stdlib") + os.sep
INSTALLED = re.compile(rf"{re.escape(STANDARD)}|.*[/\\](site|dist)-packages[/\\]")
MAX_DECORATORS = 20  # lines of them above a function


def here() -> Span:
    """The user's line that is being run."""
    frame = _frame()[0]
    return line(frame.f_code.co_filename, frame.f_lineno)


def _frame() -> tuple[FrameType, FrameType]:
    """The user's frame that is being run, and the one that it called.

    It is the innermost one outside of installed packages; if there is none, that outside of fusec and NumPy.
    """
    called = frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(LIBRARIES):
        called, frame = frame, frame.f_back
    inner, outer = called, frame
    while _is_library(outer.f_code.co_filename):
        if outer.f_back is None or outer.f_code.co_qualname == "TracedRun._result":  # the function is installed itself
            return frame, called
        inner, outer = outer, outer.f_back
    return outer, inner


@lru_cache(maxsize=1024)
def _is_library(name: str) -> bool:
    """Whether a file is no program of the user's."""
    return name.startswith(LIBRARIES) or INSTALLED.match(name) is not None


def library() -> str:
    """The function of an installed package that the user's line calls; "" if it is fusec's or NumPy's."""
    called = _frame()[1]
    if called.f_code.co_filename.startswith(LIBRARIES):
        return ""
    module = ".".join(part for part in called.f_globals.get("__name__", "").split(".") if not part.startswith("_"))
    return f"{module}.{called.f_code.co_qualname}"


def nodes() -> list[ast.AST]:
    """What the user's line runs just now, as syntax, from the inside to the outside; [] if the source is lost."""
    frame = _frame()[0]
    name, place = frame.f_code.co_filename, next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    node = None if None in place else _tree(name, "".join(linecache.getlines(name)))
    found: list[ast.AST] = []
    while node is not None:
        found.insert(0, node)
        node = next((each for each in ast.iter_child_nodes(node) if _covers(each, place)), None)
    return found


@lru_cache(maxsize=8)
def _tree(name: str, text: str) -> ast.AST | None:
    try:
        return ast.parse(text, name)
    except SyntaxError:
        return None


def _covers(node: ast.AST, place: Any) -> bool:
    """Whether an instruction is part of a node. place: its first and last lines, its first and last columns."""
    if any(_covers(each, place) for each in getattr(node, "decorator_list", ())):  # which are above their function
        return True
    if not isinstance(node, (ast.expr, ast.stmt, ast.excepthandler, ast.keyword)):
        return any(_covers(each, place) for each in ast.iter_child_nodes(node))
    (first, last, column, last_column), end = place, (node.end_lineno, node.end_col_offset)
    return (node.lineno, node.col_offset) <= (first, column) and (last, last_column) <= end


def users(problem: Exception) -> Exception:
    """The exception with the frames of the user's functions alone, unless FUSEC_DEBUG shows all."""
    if debug.level():
        return problem
    found, at = list[TracebackType](), problem.__traceback__
    while at is not None:
        if not at.tb_frame.f_code.co_filename.startswith(LIBRARIES):
            found.append(at)
        at = at.tb_next
    for each in reversed(found):
        at = TracebackType(at, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return problem.with_traceback(at)


def raised(problem: Exception) -> tuple[Span, str]:
    """The user's line by which an error came, and the function of an installed package that it calls, or ""."""
    at, found = problem.__traceback__, line("", 1)
    while at is not None:
        frame, code = at.tb_frame, at.tb_frame.f_code
        if not _is_library(code.co_filename):
            found = line(code.co_filename, at.tb_lineno)
        elif found.file.name and not code.co_filename.startswith(LIBRARIES):
            return found, f"{frame.f_globals.get('__name__', '')}.{code.co_qualname}"
        at = at.tb_next
    return found, ""


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
