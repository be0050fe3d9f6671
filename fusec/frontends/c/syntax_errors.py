"""Syntax errors in the user's words: the token where the parser stopped, and the probable intention."""

from __future__ import annotations

from collections.abc import Mapping, Set

from fusec.base.diagnostics import did_you_mean
from fusec.base.records import dataclass
from fusec.base.source import SourceFile, Span
from fusec.errors.base import FusecError
from fusec.errors.language import NotElementwise, UnexpectedEnd, UnexpectedToken, UnknownType
from fusec.frontends.c import literals
from fusec.frontends.c.functions import refusal
from fusec.frontends.grammar_tables import Token, UnexpectedSymbolError

SHOWN = {
    "SEMICOLON": ";", "RPAR": ")", "RSQB": "]", "RBRACE": "}", "LPAR": "(", "LBRACE": "{", "MORE": ">", "COLON": ":",
    "WHILE": "while",
}  # fmt: skip
STARTS = frozenset("SEMICOLON LBRACE RBRACE".split())  # what stands before a statement
VALUES = frozenset("NAME NUMBER CHARACTER CONSTANT RPAR RSQB STEP".split())  # what ends a value
TYPES = frozenset("TYPE CTYPE AUTO".split())
PYTHON = {
    "elif": "write else if",
    "def": "write __device__ float f(float x) { return ...; }, or a template for any type",
    "lambda": "write a __device__ function in the preamble",
    "import": "functions are written without the name of a module: sin(x)",
    "is": "write == or !=",
    "in": "write for (int j = 0; j < count; ++j)",
    "pass": "write ;",
}


@dataclass(frozen=True)
class Misparse:
    """A text that does not parse."""

    file: SourceFile
    tokens: list[Token]
    values: Set[str]  # names that are values when it is read
    types: Set[str]  # likewise types
    words: Mapping[str, str]  # spelling -> terminal of the grammar

    def explain(self, error: UnexpectedSymbolError) -> FusecError:
        """The error to raise for the token that the parser stopped at."""
        token: Token | None = error.token
        if token is None or not token.text:
            end = len(self.file.text.rstrip())
            return UnexpectedEnd(_expected(error.expected)).at(Span(self.file, max(end - 1, 0), max(end, 1)))
        at = next(place for place, each in enumerate(self.tokens) if each is token)
        before = self.tokens[at - 1] if at else None
        found = self._python(at)
        if found is not None:
            return found
        if self._is_type_place(at - 1) and token.type == "NAME":
            assert before is not None, "a place has a token"
            return self._unknown_type(before)
        if token.type == "NAME" and "NAME" not in error.expected and TYPES & error.expected:
            return self._unknown_type(token)
        if before is not None and self._is_braced_value(at):
            return self._unknown_type(before)
        expected = "expected a name" if before and before.type in TYPES and "NAME" in error.expected else ""
        expected = expected or _expected(error.expected)
        return self._unexpected(token, expected, self._cure(at, error.expected))

    def _unexpected(self, token: Token, expected: str, cure: str) -> FusecError:
        return UnexpectedToken(token.text, expected, cure).at(token.span(self.file))

    def _cure(self, at: int, expected: frozenset[str]) -> str:
        """What to do about the token at a place, "" if nothing comes to mind."""
        token, before = self.tokens[at], self.tokens[at - 1] if at else None
        if token.text == "else":
            return "an 'if' body of several statements needs braces"
        if token.text == "*=" and before is not None and before.text == "*" and before.end == token.start:
            return "there is no power operator: write x = x * x, or x = pow(x, y)"
        if before is not None and before.type in VALUES and "SEMICOLON" in expected:
            between = self.file.text[before.end : token.start]
            if "\n" in between:
                comment = " (// starts a comment)" if between.lstrip().startswith("//") else ""
                return f"is a ';' missing after '{before.text}' on the line before?{comment}"
            if token.type in ("NAME", "NUMBER", "CONSTANT") or token.type in TYPES:
                return f"is a ';' or an operator missing after '{before.text}'?"
        if (token.text == "<" or (before is not None and before.text == "<")) and token.text != ">":
            return "is this a template? declare it in the preamble before its use"
        if token.text == "[":
            return "lambdas are not part of the kernel language; write a __device__ function in the preamble"
        if token.type in TYPES and before is not None and before.type not in STARTS:
            return f"'{token.text}' is a type"
        return ""

    # --- types ---

    def _is_type_place(self, at: int) -> bool:
        """True for a name at a place of a type, before another name: one that is no value."""
        token = self.tokens[at] if at >= 0 else None
        if token is None or token.type != "NAME" or self._is_value(at):
            return False
        before = self.tokens[at - 1].type if at else "SEMICOLON"
        return before in STARTS or before in ("LPAR", "RPAR", "COMMA", "QUALIFIER", "LESS", "ELSE", "STRUCT")

    def _is_value(self, at: int) -> bool:
        """True for the name of a parameter, a constant or a variable declared before."""
        name = self.tokens[at].text
        if name in self.values or name in literals.CONSTANTS:
            return True
        return any(
            each.text == name and each.type == "NAME" and place and self.tokens[place - 1].type in TYPES
            for place, each in enumerate(self.tokens[:at])
        )

    def _is_braced_value(self, at: int) -> bool:
        """True for ``{`` of ``P{x, y}`` where P is no value: braces with statements are something else."""
        if self.tokens[at].text != "{" or self.tokens[at - 1].type != "NAME" or self._is_value(at - 1):
            return False
        inside = next((each.text for each in self.tokens[at:] if each.text in ("}", ";")), "")
        return inside == "}"

    def _unknown_type(self, token: Token) -> FusecError:
        span = token.span(self.file)
        refused = refusal(token.text)
        if refused is not None:
            return NotElementwise(token.text, refused).at(span)
        words = {word for word, terminal in self.words.items() if terminal in ("CTYPE", "QUALIFIER", "RETURN")}
        cure = did_you_mean(token.text, self.types | words)
        if not cure:
            known = "C's types, NumPy's names and the placeholders are known"
            if len(token.text) == 1:
                known = "one-letter placeholders are types only if a parameter declares them"
            cure = f"{known}; a struct is defined in preamble=: struct {token.text} {{ ... }};"
        return UnknownType(token.text, cure).at(span)

    # --- Python ---

    def _python(self, at: int) -> FusecError | None:
        """The error for Python's syntax, None if this looks like C."""
        token, before = self.tokens[at], self.tokens[at - 1] if at else None
        if token.text == "if" and before is not None and before.type in VALUES and self._has_later(at, "else"):
            return self._unexpected(token, "a conditional value is written with ?:", "write condition ? a : b")
        if before is not None and before.text in ("if", "while", "for") and token.text != "(":
            cure = {"for": PYTHON["in"]}.get(before.text, f"write {before.text} (condition) {{ ... }}")
            return self._unexpected(token, "expected '('", cure)
        if token.text == ">" and before is not None and before.text == "<" and before.end == token.start:
            return self._unexpected(token, "expected an expression", "write !=")
        for place in range(at, -1, -1):  # back to the start of the statement
            each = self.tokens[place]
            if each.type in STARTS and place != at:
                return None
            if each.type == "NAME" and each.text in PYTHON and not self._is_value(place):
                return self._unexpected(each, "this is Python", PYTHON[each.text])
        return None

    def _has_later(self, at: int, word: str) -> bool:
        for each in self.tokens[at:]:
            if each.type in STARTS:
                return False
            if each.text == word:
                return True
        return False


def _expected(terminals: frozenset[str]) -> str:
    if {"NAME", "NUMBER"} <= terminals:
        return "expected an expression" if "IF" not in terminals else "expected a statement"
    for terminal, shown in SHOWN.items():
        if terminal in terminals:
            return f"expected '{shown}'"
    if "NAME" in terminals:
        return "expected a name"
    if {"TYPE", "CTYPE"} & terminals:
        return "expected a type"
    return "not allowed here"
