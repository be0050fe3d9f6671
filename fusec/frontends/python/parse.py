"""Text to syntax tree: scanning and the LALR parser, with errors that name what Python would say there."""

from __future__ import annotations

from functools import cache, lru_cache

from fusec.errors.language import TooDeep
from fusec.frontends import tables
from fusec.frontends.python import syntax as s
from fusec.frontends.python.build import Builder
from fusec.frontends.python.tokens import Token, scan
from fusec.frontends.python.unsupported import explain
from fusec.frontends.tables import Callback, Tables, UnexpectedSymbolError
from fusec.source import SourceFile, Span

MAX_NESTING = 200  # brackets and blocks around a token; Python's own limit for brackets


@lru_cache(maxsize=256)
def parse(file: SourceFile) -> tuple[s.Function, ...]:
    """The functions of a text, decorators left out. Raises the errors of fusec.errors.python and language."""
    grammar = _tables()
    tokens = scan(file, grammar.words)
    _check_nesting(file, tokens)
    try:
        found: tuple[s.Function, ...] = grammar.parse(tokens, "module", _callbacks(), Builder(file))
    except UnexpectedSymbolError as error:
        raise explain(file, error.token, error.expected) from None
    return found


def _check_nesting(file: SourceFile, tokens: list[Token]) -> None:
    depth = 0
    for token in tokens:
        depth += (token.text in ("(", "[") or token.type == "INDENT") - (
            token.text in (")", "]") or token.type == "DEDENT"
        )
        if depth > MAX_NESTING:
            raise TooDeep(MAX_NESTING, "brackets and blocks").at(Span(file, token.start, token.end))


def _tables() -> Tables:
    return tables.load("python", tables.GRAMMARS["python"])


@cache
def _callbacks() -> tuple[Callback, ...]:
    return _tables().bind(Builder)
