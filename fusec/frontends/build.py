# ruff: noqa: D102 - the methods are the rules of the grammars
"""Grammar rules to syntax tree: the rules that the grammars of all languages have, and the places of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from fusec.base.records import replace
from fusec.base.source import SourceFile, Span
from fusec.frontends import syntax as s
from fusec.frontends.grammar_tables import GRAMMARS, Callback, Tables, Token, load

Children = list[Any]


def node(made: type[s.Node], fields: tuple[int, ...] | None = None, span: tuple[int, int] = (0, -1)) -> Callback:
    """A rule whose children are the fields of a node; a token is what it says, None a part that is left out.

    fields: which children, if not all in order. span: the first and the last of those that the node's place covers.
    """
    first, last = span

    def build(builder: SyntaxBuilder, children: Children) -> s.Node:
        end = children[last]
        place = builder._join(children[first], children[last - 1] if end is None else end)
        chosen = children if fields is None else [children[at] for at in fields]
        return made(place, *[each.text if type(each) is Token else each for each in chosen])

    return build


class SyntaxBuilder:
    """Builds the tree of one text: a method for every rule or alias of a grammar, called as the parser reduces it."""

    grammar: ClassVar[str]  # its name
    alternatives: ClassVar[Mapping[str, str]] = {}  # operators that have another spelling

    def __init__(self, file: SourceFile) -> None:
        self.file = file  # the text that spans point into

    @classmethod
    def tables(cls) -> Tables:
        """The tables of the grammar."""
        return load(cls.grammar, GRAMMARS[cls.grammar])

    def parse(self, tokens: list[Token], start: str) -> Any:
        """The tree of tokens. Raises UnexpectedSymbolError."""
        kind: Any = type(self)  # mypy does not take a class for something that can be hashed
        return self.tables().parse(tokens, start, _callbacks(kind), self)

    def _at(self, token: Token) -> Span:
        return Span(self.file, token.start, token.end)

    def _join(self, first: Any, last: Any) -> Span:
        """From the beginning of a node, token or span to the end of another."""
        start = first.span if isinstance(first, s.Node) else first
        end = last.span if isinstance(last, s.Node) else last
        return Span(self.file, start.start, max(end.end, start.end))

    # --- statements ---

    evaluate = node(s.Evaluate)
    break_ = node(s.BreakNode, fields=())
    continue_ = node(s.ContinueNode, fields=())
    return_ = node(s.ReturnNode, fields=(1,))

    # --- expressions ---

    def prefix(self, children: Children) -> s.Prefix:
        op, operand = children
        return s.Prefix(self._join(op, operand), self.alternatives.get(op.text, op.text), operand)

    def binary(self, children: Children) -> s.Binary:
        left, op, right = children
        return s.Binary(self._join(left, right), self.alternatives.get(op.text, op.text), self._at(op), left, right)

    index = node(s.Index, fields=(0, 1))
    name = node(s.Name)

    def string(self, children: Children) -> s.String:
        return s.String(self._join(children[0], children[-1]), " ".join(child.text for child in children))

    def grouped(self, children: Children) -> s.Expression:
        opener, value, closer = children
        found: s.Expression = replace(value, span=self._join(opener, closer))
        return found


@cache
def _callbacks(builder: type[SyntaxBuilder]) -> tuple[Callback, ...]:
    return builder.tables().bind(builder)
