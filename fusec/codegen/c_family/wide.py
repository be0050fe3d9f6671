"""Finds the part of the user's text that needs a type the target lacks: a literal, a constant or a declaration."""

from __future__ import annotations

import re

from fusec.base.dtypes import DType
from fusec.base.source import Span
from fusec.codegen.c_family.facts import TypeUse
from fusec.codegen.c_family.statements import line_span
from fusec.errors.base import FusecError
from fusec.errors.targets import NoSuchTypeOnTarget
from fusec.ir.loops import Program

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
NARROWER = {"double": "float", "float64": "float32", "complex128": "complex64"}
DECLARED = re.compile(rf"\b({'|'.join(NARROWER)})\b")
LITERAL = re.compile(r"(?<![\w.])(?:(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)(?![\w.])")
NAMED = re.compile(r"\b(M_[A-Z0-9_]+|HUGE_VAL|CUDART_(?:PI|INF|NAN|SQRT_TWO|MIN_DENORM)|DBL_[A-Z]+)\b")
SINGLE = "pass options=('-fsingle-precision-constant',) to make every literal without a suffix float32"


def refusal(program: Program, found: DType, use: TypeUse, target: str, single: bool) -> FusecError:
    """The error for a dtype in use, at the place that needs it. single: literals without suffix are float32."""
    where, line = use.where, use.line
    place = where or (f"line {line} of the kernel" if line else f"kernel '{program.name}'")
    span, cure = _cause(program, line, single)
    if where.startswith("parameter"):
        cure = f"declare it and pass it as {'complex64' if found.is_complex else 'float32'}"
    if not cure:
        cure = "integers make floating functions float64: convert their arguments, as in sin((float)i)"
    if where.startswith("function"):
        cure = "write float for double there"
        cure += "" if single else f", and literals with the suffix f (0.5f), or {SINGLE}"
    return NoSuchTypeOnTarget(place, found.name, target, cure).at(span or line_span(program.source, line))


def _cause(program: Program, line: int, single: bool) -> tuple[Span | None, str]:
    """The place in the statement that starts on a line, and the cure; ``(None, "")`` if nothing there is to blame."""
    source = program.source
    if source is None or not 0 < line <= len(source.line_starts):
        return None, ""
    start = source.line_starts[line - 1]
    text = COMMENT.sub(lambda comment: " " * len(comment.group()), source.text)
    end = max(start + len(source.line(line)), text.find(";", start))
    declared = DECLARED.search(text, start, end)
    literal = None if single else LITERAL.search(text, start, end)
    named = NAMED.search(text, start, end)
    if declared is not None:
        return Span(source, *declared.span()), f"declare it {NARROWER[declared.group()]}"
    if literal is not None:
        return Span(source, *literal.span()), f"write {literal.group()}f, or {SINGLE}"
    if named is not None:
        return Span(source, *named.span()), f"write (float){named.group()}"
    return None, ""
