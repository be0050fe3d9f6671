# ruff: noqa: D102 - the methods are the rules of the grammars
"""Grammar rules to syntax tree: the rules that the grammars of all languages have, and the places of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from fusec.base.records import replace
from fusec.base.source import SourceFile, Span
from fusec.frontends import syntax as s
from fusec.frontends.grammar_tables import Token

Children = list[Any]


class SyntaxBuilder:
    """Builds the tree of one text: a method for every rule or alias of a grammar, called as the parser reduces it."""

    alternatives: ClassVar[Mapping[str, str]] = {}  # operators that have another spelling

    def __init__(self, file: SourceFile) -> None:
        self.file = file  # the text that spans point into

    def _at(self, token: Token) -> Span:
        return Span(self.file, token.start, token.end)

    def _join(self, first: Any, last: Any) -> Span:
        """From the beginning of a node, token or span to the end of another."""
        first, last = getattr(first, "span", first), getattr(last, "span", last)
        return Span(self.file, first.start, max(last.end, first.end))

    # --- statements ---

    def evaluate(self, children: Children) -> s.Evaluate:
        return s.Evaluate(children[0].span, children[0])

    def break_(self, children: Children) -> s.BreakNode:
        return s.BreakNode(self._at(children[0]))

    def continue_(self, children: Children) -> s.ContinueNode:
        return s.ContinueNode(self._at(children[0]))

    def return_(self, children: Children) -> s.ReturnNode:
        word, value = children
        return s.ReturnNode(self._join(word, value or word), value)

    # --- expressions ---

    def prefix(self, children: Children) -> s.Prefix:
        op, operand = children
        return s.Prefix(self._join(op, operand), self.alternatives.get(op.text, op.text), operand)

    def binary(self, children: Children) -> s.Binary:
        left, op, right = children
        return s.Binary(self._join(left, right), self.alternatives.get(op.text, op.text), self._at(op), left, right)

    def index(self, children: Children) -> s.Index:
        value, index, closer = children
        return s.Index(self._join(value, closer), value, index)

    def name(self, children: Children) -> s.Name:
        return s.Name(self._at(children[0]), children[0].text)

    def string(self, children: Children) -> s.String:
        return s.String(self._join(children[0], children[-1]), " ".join(child.text for child in children))

    def grouped(self, children: Children) -> s.Expression:
        opener, value, closer = children
        found: s.Expression = replace(value, span=self._join(opener, closer))
        return found
