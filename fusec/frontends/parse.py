"""Text to syntax tree: scanning, macros, classification and the LALR parser, with errors in the user's words."""

from __future__ import annotations

from functools import cache
from typing import Any

from fusec.diagnostics import did_you_mean
from fusec.errors.base import FusecError
from fusec.errors.language import NotElementwise, UnexpectedEnd, UnexpectedToken, UnknownType
from fusec.frontends import constants, tables
from fusec.frontends import syntax as s
from fusec.frontends.build import Builder
from fusec.frontends.classify import TYPES, Classifier
from fusec.frontends.functions import refusal
from fusec.frontends.preprocess import Preprocessor
from fusec.frontends.tables import STARTS, Callback, Tables, UnexpectedSymbolError
from fusec.frontends.tokens import Token
from fusec.source import SourceFile, Span

SHOWN = {
    "RPAR": ")",
    "RSQB": "]",
    "RBRACE": "}",
    "SEMICOLON": ";",
    "COLON": ":",
    "LPAR": "(",
    "LBRACE": "{",
    "MORE": ">",
    "WHILE": "while",
}


class Reader:
    """Reads the texts of one kernel in turn; macros, type names and templates carry over from one to the next."""

    def __init__(self, placeholders: frozenset[str], names: frozenset[str], options: tuple[str, ...]) -> None:
        self.tables: Tables = tables.load("kernel", STARTS)
        self.preprocessor = Preprocessor(self._condition)
        self.classifier = Classifier(self.tables.words, set((TYPES | placeholders) - names))
        self.addressed: set[str] = set()
        self.single = self.preprocessor.define_options(options)

    def preamble(self, file: SourceFile) -> tuple[s.External, ...]:
        """The functions, structs, aliases and constants of a preamble."""
        tokens = self.classifier.classify(self.preprocessor.read(file), file)
        return self._parse(tokens, file, "preamble")  # type: ignore[no-any-return]

    def body(self, file: SourceFile) -> tuple[s.Statement, ...]:
        """The statements of a text; the last semicolon may be missing."""
        tokens = self.classifier.classify(self.preprocessor.read(file), file)
        if not tokens:
            return ()
        end = len(file.text.rstrip())
        tokens.append(Token("SEMICOLON", "", end, end))
        return self._parse(tokens, file, "body")  # type: ignore[no-any-return]

    def _condition(self, tokens: list[Token], file: SourceFile) -> int:
        tree: s.Expression = self._parse(self.classifier.classify(tokens, file), file, "condition")
        return constants.evaluate(tree, lambda _: 0)

    def _parse(self, tokens: list[Token], file: SourceFile, start: str) -> Any:
        builder = Builder(file)
        try:
            found = self.tables.parse(tokens, start, _callbacks(), builder)
            self.addressed |= {name for name, count in builder.addressed.items() if count > 0}
            return found
        except UnexpectedSymbolError as error:
            raise self._explain(tokens, error, file) from None

    def _explain(self, tokens: list[Token], error: UnexpectedSymbolError, file: SourceFile) -> FusecError:
        token: Token | None = error.token
        expected = _expected(error.expected)
        typed = error.token is not None and _before(tokens, error.token) in ("TYPE", "CTYPE")
        expected = "expected a name" if typed and "NAME" in error.expected else expected
        if token is None or not token.text:
            end = len(file.text.rstrip())
            return UnexpectedEnd(expected).at(Span(file, max(end - 1, 0), max(end, 1)))
        at = next(i for i, each in enumerate(tokens) if each is token)
        before = tokens[at - 1] if at else None
        if before is not None and before.type == "NAME" and token.type == "NAME":
            return self._unknown_type(before, file)
        if token.type == "NAME" and "NAME" not in error.expected and {"TYPE", "CTYPE"} & error.expected:
            return self._unknown_type(token, file)
        cure = ""
        if before is not None and "SEMICOLON" in error.expected and "\n" in file.text[before.end : token.start]:
            cure = f"is a ';' missing after '{before.text}' on the line before?"
        elif token.text == "else":
            cure = "an 'if' body of several statements needs braces"
        elif token.text == "<" or (before is not None and before.text == "<"):
            cure = "is this a template? declare it in the preamble before its use"
        elif token.text == "[":
            cure = "lambdas are not part of the kernel language; write a __device__ function in the preamble"
        elif (
            token.type in ("TYPE", "CTYPE")
            and before is not None
            and before.type not in ("SEMICOLON", "LBRACE", "RBRACE")
        ):
            cure = f"'{token.text}' is a type"
        return UnexpectedToken(token.text, expected, cure).at(Span(file, token.start, token.end))

    def _unknown_type(self, token: Token, file: SourceFile) -> FusecError:
        span = Span(file, token.start, token.end)
        refused = refusal(token.text)
        if refused is not None:
            return NotElementwise(token.text, refused).at(span)
        words = {word for word, terminal in self.tables.words.items() if terminal in ("CTYPE", "QUALIFIER", "RETURN")}
        known = did_you_mean(token.text, self.classifier.types | words)
        cure = known or "one-letter placeholders are types only if a parameter declares them"
        return UnknownType(token.text, cure).at(span)


def _before(tokens: list[Token], token: Token) -> str:
    """The terminal before a token."""
    at = next((i for i, each in enumerate(tokens) if each is token), 0)
    return tokens[at - 1].type if at else ""


def _expected(terminals: frozenset[str]) -> str:
    if {"NAME", "NUMBER"} <= terminals:
        return "expected an expression" if "IF" not in terminals else "expected a statement"
    for terminal in ("SEMICOLON", "RPAR", "RSQB", "RBRACE", "LPAR", "LBRACE", "MORE", "COLON", "WHILE"):
        if terminal in terminals:
            return f"expected '{SHOWN[terminal]}'"
    if "NAME" in terminals:
        return "expected a name"
    if {"TYPE", "CTYPE"} & terminals:
        return "expected a type"
    return "not allowed here"


@cache
def _callbacks() -> tuple[Callback, ...]:
    return tables.load("kernel", STARTS).bind(Builder)
