"""Kernel files: TOML with one table for each kernel, so that kernels can live outside of Python.

    [kernel.saxpy]
    in_params = "T a, T x, T y"
    out_params = "T z"
    operation = '''
    z = a * x + y;
    '''
    types = { T = "float32" }   # what the placeholders are where nothing else says so

Further keys: `preamble`, `loop_prep`, `after_loop`, `options`, `fp`, and `scalars`, inputs passed by value. A table
[reduction.NAME] is a ReductionKernel, with `map_expr`, `reduce_expr`, `post_map_expr`, `identity` and `reduce_type` in
place of `operation`; `shape` and `axis` say which call's kernels are meant. [scan.NAME] is a ScanKernel, which has
`scan_expr` in place of `reduce_expr`, and also `inclusive` and `segments`. Other tables and keys are errors. An error
in a text is reported at its line and column of the file, which works for texts without escapes; TOML's '''literal'''
strings are made for that.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from fusec.base.diagnostics import did_you_mean
from fusec.base.records import dataclass
from fusec.base.source import SourceFile, Span
from fusec.compiler import pipeline
from fusec.errors.base import FusecError, UserError
from fusec.errors.language import BadKernelTable, NoKernels, NotToml, UnknownTable

NEEDED: dict[str, tuple[str, ...]] = {
    "kernel": ("in_params", "out_params", "operation"),
    "reduction": ("in_params", "out_params", "map_expr", "reduce_expr", "post_map_expr"),
    "scan": ("in_params", "out_params", "map_expr", "scan_expr", "post_map_expr"),
}
TEXTS: dict[str, tuple[str, ...]] = {
    "kernel": (*NEEDED["kernel"], "preamble", "loop_prep", "after_loop", "fp"),
    "reduction": (*NEEDED["reduction"], "reduce_type", "preamble", "fp"),
    "scan": (*NEEDED["scan"], "reduce_type", "segments", "preamble", "fp"),
}
LISTS = ("options", "scalars")
KEYS: dict[str, tuple[str, ...]] = {
    "kernel": (*TEXTS["kernel"], *LISTS, "types"),
    "reduction": (*TEXTS["reduction"], *LISTS, "types", "identity", "shape", "axis"),
    "scan": (*TEXTS["scan"], *LISTS, "types", "identity", "inclusive", "shape", "axis"),
}


@dataclass(frozen=True)
class KernelEntry:
    """One kernel of a file."""

    name: str
    arguments: dict[str, Any]  # keywords of its class
    types: dict[str, str]  # of placeholders, where nothing else says so
    scalars: tuple[str, ...] = ()  # inputs to pass by value
    kind: str = "kernel"  # a key of KEYS
    shape: tuple[int, ...] | None = None  # of the call of a reduction or scan; None for the usual one
    axis: int | tuple[int, ...] | None = None  # likewise


def read(path: Path) -> tuple[SourceFile, list[KernelEntry]]:
    """The file and its kernels in order. Raises NotToml, UnknownTable, NoKernels or BadKernelTable, and
    OSError.
    """
    file = SourceFile(str(path), path.read_text())
    try:
        document = tomllib.loads(file.text)
    except tomllib.TOMLDecodeError as error:
        raise NotToml(str(error)).at(_span_of_decode_error(file, str(error))) from error
    for kind, tables in document.items():
        _check_table(file, kind, tables)
    if not any(document.values()):
        raise NoKernels(str(path)).at(Span(file, 0, 0))
    return file, [
        _entry(file, kind, name, table) for kind, tables in document.items() for name, table in tables.items()
    ]


def _check_table(file: SourceFile, kind: str, tables: object) -> None:
    """Raise UnknownTable for what is no table of kernels."""
    problem = ""
    if kind not in KEYS:
        cure = did_you_mean(kind, KEYS)
        problem = f"unknown {'table' if isinstance(tables, dict) else 'key'} '{kind}'{', ' + cure if cure else ''}"
    elif not isinstance(tables, dict):
        problem = f"'{kind}' is not a table of kernels by their names"
    if problem:
        raise UnknownTable(problem).at(_span_of_top(file, kind))


def _entry(file: SourceFile, kind: str, name: str, table: object) -> KernelEntry:
    def refuse(problem: str, key: str = "") -> FusecError:
        return BadKernelTable(name, problem).at(_span_of_key(file, name, key))

    if not isinstance(table, dict):
        raise refuse("it is not a table")
    for key, value in table.items():
        if key not in KEYS[kind]:
            cure = did_you_mean(key, KEYS[kind])
            raise refuse(f"unknown key '{key}'{'; ' + cure if cure else ''}", key)
        if key in TEXTS[kind] and not isinstance(value, str):
            raise refuse(f"'{key}' is not a string", key)
        if key in LISTS and not _is_texts(value):
            raise refuse(f"'{key}' is not a list of strings", key)
        if key == "identity" and not (_is_number(value) or isinstance(value, str)):
            raise refuse("'identity' is neither a string nor a number", key)
        if key == "inclusive" and not isinstance(value, bool):
            raise refuse("'inclusive' is neither true nor false", key)
        if (key == "shape" and not _are_integers(value)) or (key == "axis" and not _are_integers(value, or_one=True)):
            raise refuse(f"'{key}' is not {'a list of integers' if key == 'shape' else 'an integer or a list'}", key)
    for key in NEEDED[kind]:
        if key not in table:
            raise refuse(f"'{key}' is missing")
    try:
        pipeline.check_fp(table.get("fp", "strict"))
    except FusecError as error:
        raise error.error.at(_span_of_key(file, name, "fp")) from None
    types = table.get("types", {})
    if not isinstance(types, dict) or not _is_texts(list(types.values())):
        raise refuse("'types' is not a table of strings", "types")
    arguments = {key: table[key] for key in (*TEXTS[kind], "identity", "inclusive") if key in table}
    arguments |= {"name": name, "options": tuple(table.get("options", ()))}
    shape, axis = table.get("shape"), table.get("axis")
    return KernelEntry(
        name, arguments, types, tuple(table.get("scalars", ())), kind,
        None if shape is None else tuple(shape), tuple(axis) if isinstance(axis, list) else axis,
    )  # fmt: skip


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _are_integers(value: object, *, or_one: bool = False) -> bool:
    """A list of integers, or one."""
    values = value if isinstance(value, list) else [value] if or_one else [None]
    return all(isinstance(each, int) and not isinstance(each, bool) for each in values)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _span_of_top(file: SourceFile, name: str) -> Span:
    """A name of the top level where a table of it starts, or it is assigned; else its first mention."""
    head = re.search(rf"""^[ \t]*(?:\[+[ \t]*)?["']?({re.escape(name)})["']?[ \t]*[].=]""", file.text, re.MULTILINE)
    start = head.start(1) if head else max(0, file.text.find(name))
    return Span(file, start, start + len(name))


def _span_of_key(file: SourceFile, name: str, key: str) -> Span:
    """A key of a kernel's table, or the name where the table starts; tomllib tells no places, so the text is searched.

    What is written in an unusual way (a table inside a table, a quoted name) is placed at the name's first mention.
    """
    head = re.search(
        rf"^[ \t]*\[[ \t]*(?:kernel|reduction|scan)[ \t]*\.[ \t]*({re.escape(name)})[ \t]*\]", file.text, re.MULTILINE
    )
    start = head.start(1) if head else max(0, file.text.find(name))
    if head and key:
        following = re.compile(r"^[ \t]*\[", re.MULTILINE).search(file.text, head.end())
        end = following.start() if following else len(file.text)
        found = re.compile(rf"^[ \t]*({re.escape(key)})[ \t]*[=.]", re.MULTILINE).search(file.text, head.end(), end)
        if found:
            return Span(file, found.start(1), found.end(1))
    return Span(file, start, start + len(name))


def _span_of_decode_error(file: SourceFile, message: str) -> Span:
    """The place that tomllib names at the end of its message, ``(at line 3, column 7)``; else the end of the file."""
    words = message.replace(",", " ").replace(")", " ").split()
    if "line" in words and "column" in words:
        line, column = (int(words[words.index(word) + 1]) for word in ("line", "column"))
        start = file.line_starts[line - 1] + column - 1
        return Span(file, start, start + 1)
    return Span(file, len(file.text), len(file.text))


def place_in_file(error: FusecError, file: SourceFile) -> FusecError:
    """The error with its span moved from a kernel's text to the file that holds the text, if it occurs there once."""
    span = error.span
    if span is None or span.file is file or not span.file.text or file.text.count(span.file.text) != 1:
        return error
    start = file.text.index(span.file.text)
    value: UserError = error.error
    return value.at(Span(file, start + span.start, start + span.end))
