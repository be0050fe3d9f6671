"""Text to tokens: the scanner of the kernel language, and its bounds."""

from __future__ import annotations

import re

from fusec.base.source import SourceFile, Span
from fusec.errors.language import StrayCharacter, TooLarge, Unterminated
from fusec.frontends.grammar_tables import MAX_CHARACTERS, MAX_TOKENS, Token

SPLICE = re.compile(r"\\[ \t]*\r?\n")  # a line that goes on in the next one
SCANNER = re.compile(
    r"""
    (?P<SPACE> (?: [ \t\r\f\v] | \\[ \t]*\r?\n )+ )
  | (?P<NEWLINE> \n )
  | (?P<COMMENT> //(?:[^\\\n]|\\(?:\r?\n|.))* | /\*(?:[^*]|\*(?!/))*\*/ )
  | (?P<NAME> [A-Za-z_](?:\w|\\[ \t]*\r?\n(?=\w))*(?:::[A-Za-z_]\w*)* )
  | (?P<NUMBER> \.?[0-9](?:[eEpP][+-]|['\w.]|\\[ \t]*\r?\n(?=[\w.]))* )
  | (?P<STRING> "(?:[^"\\\n]|\\.)*" )
  | (?P<CHARACTER> '(?:[^'\\\n]|\\.)+' )
  | (?P<PUNCTUATION> <<=|>>=|\.\.\.|::|\+\+|--|->|&&|\|\||\#\#|<<|>>|[-+*/%&|^=!<>]=|[-+*/%&|^=!<>~?:;,.(){}\[\]\#] )
    """,
    re.VERBOSE | re.ASCII,
)


def scan(file: SourceFile, start: int = 0, end: int | None = None) -> list[Token]:
    """The tokens of a text or a part of it; a preprocessor line is one DIRECTIVE token.

    Raises TooLarge, StrayCharacter or Unterminated.
    """
    text = file.text
    stop = len(text) if end is None else end
    if stop - start > MAX_CHARACTERS:
        raise TooLarge(MAX_CHARACTERS, "characters").at(Span(file, 0, 1))
    tokens: list[Token] = []
    at, fresh = start, end is None
    match = SCANNER.match
    while at < stop:
        found = match(text, at, stop)
        if found is None or (text.startswith("/*", at) and found.lastgroup == "PUNCTUATION"):
            raise _stray(file, at)
        kind, after = found.lastgroup, found.end()
        assert kind is not None, "every alternative of the scanner has a name"
        if kind == "NEWLINE":
            fresh = end is None
        elif kind not in ("SPACE", "COMMENT"):
            if fresh and text[at] == "#":
                after = _line_end(text, at, stop)
                tokens.append(Token("DIRECTIVE", text[at:after], at, after))
            else:
                word = found.group()
                tokens.append(Token(kind, SPLICE.sub("", word) if "\\" in word else word, at, after))
            fresh = False
            if len(tokens) > MAX_TOKENS:
                raise TooLarge(MAX_TOKENS, "tokens").at(Span(file, at, after))
        at = after
    return tokens


def _line_end(text: str, at: int, stop: int) -> int:
    """The end of a preprocessor line, with the lines that a backslash joins to it and comments that go on."""
    while at < stop and text[at] != "\n":
        joined = re.compile(r"\\[ \t]*\r?\n|/\*(?:[^*]|\*(?!/))*\*/").match(text, at)
        at = joined.end() if joined else at + 1
    return min(at, stop)


def _stray(file: SourceFile, at: int) -> Exception:
    char = file.text[at]
    if file.text.startswith("/*", at):
        return Unterminated("comment", "*/").at(Span(file, at, at + 2))
    if char in "\"'":
        what = "string" if char == '"' else "character"
        return Unterminated(what, char).at(Span(file, at, at + 1))
    return StrayCharacter(char).at(Span(file, at, at + 1))
