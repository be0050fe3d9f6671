"""Text to syntax tree: scanning and the LALR parser, with errors that name Python's constructs."""

from __future__ import annotations

import re
from functools import lru_cache

from fusec.base.rounding_mode import default_rounding
from fusec.base.source import SourceFile, Span
from fusec.errors.base import FusecError
from fusec.errors.language import TooDeep
from fusec.frontends.grammar_tables import Token, UnexpectedSymbolError
from fusec.frontends.python import syntax as s
from fusec.frontends.python.build import PythonTreeBuilder
from fusec.frontends.python.syntax_errors import explain
from fusec.frontends.python.tokens import scan

MAX_NESTING = 200  # brackets and blocks around a token; Python's own limit for brackets


@lru_cache(maxsize=256)
@default_rounding()
def parse(file: SourceFile) -> tuple[s.FunctionNode, ...]:
    """The functions of a text, decorators left out. Raises the errors of fusec.errors.python and language."""
    tokens = scan(file, PythonTreeBuilder.tables().words)
    _check_nesting(file, tokens)
    try:
        found: tuple[s.FunctionNode, ...] = PythonTreeBuilder(file).parse(tokens, "module")
    except UnexpectedSymbolError as error:
        raise explain(file, error.token, error.expected) from None
    return found


@lru_cache(maxsize=256)
@default_rounding()
def parse_lambda(file: SourceFile, start: int, end: int) -> s.FunctionNode:
    """The lambda that stands from `start` to `end` of a text, as a function that returns its value."""
    text = file.text
    blank = "".join(char if char == "\n" else " " for char in text[:start])
    alone = SourceFile(file.name, blank + text[start:end])
    tokens = scan(alone, PythonTreeBuilder.tables().words, joined=True)
    _check_nesting(file, tokens)
    try:
        found: s.FunctionNode = PythonTreeBuilder(file).parse(tokens, "anonymous")
    except UnexpectedSymbolError as error:
        line = re.sub(r"#[^\n]*", lambda comment: " " * len(comment.group()), text[start:end])
        flat = SourceFile(file.name, blank + re.sub(r"[\r\n\\]", " ", line))
        raise _in_file(explain(flat, error.token, error.expected, is_lambda=True), file) from None
    return found


def _in_file(error: FusecError, file: SourceFile) -> FusecError:
    """The error at the same place of another text."""
    place = error.span
    return error if place is None else error.error.at(Span(file, place.start, place.end))


def _check_nesting(file: SourceFile, tokens: list[Token]) -> None:
    depth = 0
    for token in tokens:
        depth += (token.text in ("(", "[") or token.type == "INDENT") - (
            token.text in (")", "]") or token.type == "DEDENT"
        )
        if depth > MAX_NESTING:
            raise TooDeep(MAX_NESTING, "brackets and blocks").at(token.span(file))
