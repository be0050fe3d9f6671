"""Text to tokens: Python's lexical rules, indentation and joined lines included."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping

from fusec.base.source import SourceFile, Span
from fusec.errors.language import StrayCharacter, TooLarge, Unterminated
from fusec.errors.python import BadIndentation
from fusec.frontends.grammar_tables import MAX_CHARACTERS, MAX_TOKENS, Token

TAB = 8  # columns that a tab advances to a multiple of


SCANNER = re.compile(
    r"""
    (?P<SPACE> [ \t\f]+ | \\\r?\n )
  | (?P<COMMENT> \#[^\n]* )
  | (?P<NEWLINE> \r?\n )
  | (?P<STRING> (?i:[rub]|[rf][bf]|[bf]r|f|t)?
        (?: '''(?:[^\\]|\\.)*?''' | \"\"\"(?:[^\\]|\\.)*?\"\"\" | '(?:[^\\\n']|\\.)*' | "(?:[^\\\n"]|\\.)*" ) )
  | (?P<NUMBER>
        0[xX](?:_?[0-9a-fA-F])+ | 0[oO](?:_?[0-7])+ | 0[bB](?:_?[01])+
      | (?: [0-9](?:_?[0-9])* (?: \.(?:[0-9](?:_?[0-9])*)? )? | \.[0-9](?:_?[0-9])* )
        (?:[eE][+-]?[0-9](?:_?[0-9])*)? [jJ]? )
  | (?P<NAME> [^\W\d]\w* )
  | (?P<OPERATOR>
        \*\*=|//=|<<=|>>=|\.\.\.|\*\*|//|<<|>>|<=|>=|==|!=|->|:=|[-+*/%&|^@]=|[-+*/%&|^~<>=@()\[\]{},:;.!$?`] )
    """,
    re.VERBOSE | re.DOTALL,
)
PLAIN = re.compile(r"(?i:r|u)?['\"]")
BRACKETS = {"(": ")", "[": "]", "{": "}"}


def scan(file: SourceFile, words: Mapping[str, str], joined: bool = False) -> list[Token]:
    """The tokens of a text whose first line may be indented, as that of a method is.

    words: spelling -> terminal. joined: all lines are one, as in brackets.
    Raises StrayCharacter, Unterminated, TooLarge or BadIndentation.
    """
    if len(file.text) > MAX_CHARACTERS:
        raise TooLarge(MAX_CHARACTERS, "characters").at(Span(file, 0, 1))
    return _Scanner(file, words, joined).tokens


class _Scanner:
    def __init__(self, file: SourceFile, words: Mapping[str, str], joined: bool) -> None:
        self.file, self.words = file, words
        self.tokens: list[Token] = []
        self.levels: list[int] = []  # columns of the blocks around; the first is that of the text
        self.open: list[str] = ["the end"] if joined else []  # brackets to close
        at, fresh = 0, True
        text = file.text
        while at < len(text):
            if fresh:
                at = self._indentation(at)
                fresh = False
                continue
            if text[at] == "@" and self._begins_line():
                end = self._decoration_end(at)
                self._add("DECORATOR", at, end)
                at = end
                continue
            at, fresh = self._step(at)
        end = len(text)
        if self.tokens and self.tokens[-1].type not in ("NEWLINE", "DEDENT"):
            self._add("NEWLINE", end, end)
        for _ in self.levels[1:]:
            self._add("DEDENT", end, end)

    def _add(self, kind: str, start: int, end: int) -> None:
        self.tokens.append(Token(kind, self.file.text[start:end], start, end))
        if len(self.tokens) > MAX_TOKENS:
            raise TooLarge(MAX_TOKENS, "tokens").at(Span(self.file, start, end))

    def _begins_line(self) -> bool:
        return not self.open and (not self.tokens or self.tokens[-1].type in ("NEWLINE", "INDENT", "DEDENT"))

    def _step(self, at: int) -> tuple[int, bool]:
        """One token; where it ends, and whether a new logical line begins there."""
        found = SCANNER.match(self.file.text, at)
        if found is None:
            raise self._stray(at)
        kind, end = found.lastgroup or "", found.end()
        match kind:
            case "SPACE" | "COMMENT":
                return end, False
            case "NEWLINE":
                if self.open:
                    return end, False
                if self.tokens and self.tokens[-1].type not in ("NEWLINE", "INDENT", "DEDENT"):
                    self._add("NEWLINE", at, end)
                return end, True
        word = found.group()
        if kind == "NAME":
            kind = self.words.get(word, "KEYWORD" if keyword.iskeyword(word) else "NAME")
        elif kind == "OPERATOR":
            kind = self.words.get(word, "OPERATOR")
            self._bracket(word)
        elif kind == "STRING" and not PLAIN.match(word):
            kind = "OPERATOR"  # of bytes, or with values inside: only Python has those
        elif kind == "NUMBER" and found.end() < len(self.file.text) and _continues(self.file.text[end]):
            raise StrayCharacter(self.file.text[end]).at(Span(self.file, end, end + 1))
        self._add(kind, at, end)
        return end, False

    def _bracket(self, word: str) -> None:
        if word in BRACKETS:
            self.open.append(BRACKETS[word])
        elif self.open and word == self.open[-1]:
            self.open.pop()

    def _indentation(self, at: int) -> int:
        """Where the first token of a line stands; INDENT and DEDENT as its column says."""
        text, column, start = self.file.text, 0, at
        while at < len(text) and text[at] in " \t\f":
            column = column + TAB - column % TAB if text[at] == "\t" else 0 if text[at] == "\f" else column + 1
            at += 1
        if at == len(text) or text[at] in "\r\n#" or text.startswith("\\\n", at):
            return at  # nothing but space
        if not self.levels:
            self.levels.append(column)
        if column > self.levels[-1]:
            self.levels.append(column)
            self._add("INDENT", start, at)
        while column < self.levels[-1]:
            self.levels.pop()
            if not self.levels or column > self.levels[-1]:
                raise BadIndentation().at(Span(self.file, start, max(at, start + 1)))
            self._add("DEDENT", at, at)
        return at

    def _decoration_end(self, at: int) -> int:
        """The end of a decorator, which Python has evaluated: its text is skipped whatever it says."""
        depth = 0
        while at < len(self.file.text):
            found = SCANNER.match(self.file.text, at)
            if found is None:
                raise self._stray(at)
            if found.lastgroup == "NEWLINE" and not depth:
                break
            if found.lastgroup == "OPERATOR":
                depth += (found.group() in "([{") - (found.group() in ")]}")
            at = found.end()
        return at

    def _stray(self, at: int) -> Exception:
        char = self.file.text[at]
        if char in "\"'":
            closer = char * 3 if self.file.text.startswith(char * 3, at) else char
            return Unterminated("string", closer).at(Span(self.file, at, at + 1))
        return StrayCharacter(char).at(Span(self.file, at, at + 1))


def _continues(char: str) -> bool:
    """True for what would make a number a malformed one."""
    return char.isalnum() or char == "_"
