"""The tokens of the IR's text, and a reader with one token of lookahead."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""(?P<label>%\d+)
      | (?P<line>@\d+)
      | (?P<number>-?0x[0-9a-f]+ | -?\d+(?:\.\d+)?(?:e[+-]?\d+)?)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<mark>:=|->|//|<<|>>|==|!=|<=|>=|&&|\|\||[-+*/%&|^<>=(){}\[\],.:])
      | (?P<newline>\n)
      | (?P<blank>[ ]+)""",
    re.VERBOSE | re.ASCII,
)


class Tokens:
    """Tokens as (kind, text) pairs, and the current position."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        position = 0
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None:
                raise ValueError(f"line {text.count(chr(10), 0, position) + 1}: unexpected {text[position]!r}")
            if found.lastgroup != "blank":
                self.tokens.append((str(found.lastgroup), found.group()))
            position = found.end()
        self.tokens.append(("end", ""))
        self.at = 0

    def error(self, wanted: str) -> ValueError:
        """The exception for an unexpected token."""
        line = 1 + sum(kind == "newline" for kind, _ in self.tokens[: self.at])
        return ValueError(f"line {line}: expected {wanted}, found {self.tokens[self.at][1]!r}")

    def accept(self, text: str) -> bool:
        """Skip a mark or keyword if it is next."""
        kind, found = self.tokens[self.at]
        if found == text and kind in ("mark", "name", "newline"):
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        """Skip a mark or keyword that must be next."""
        if not self.accept(text):
            raise self.error(repr(text))

    def take(self, *kinds: str) -> str:
        """Skip a token of one of the kinds and return it."""
        kind, text = self.tokens[self.at]
        if kind not in kinds:
            raise self.error(" or ".join(kinds))
        self.at += 1
        return text

    def next_is(self, kind: str) -> bool:
        """Whether the next token has that kind."""
        return self.tokens[self.at][0] == kind

    def name(self) -> str:
        """A plain or quoted name."""
        text = self.take("name", "string")
        return str(json.loads(text)) if text.startswith('"') else text

    def list(self, close: str) -> Iterator[None]:
        """Iterate once for every element of a comma-separated list, up to the closing mark."""
        if self.accept(close):
            return
        while True:
            yield None
            if self.accept(close):
                return
            self.expect(",")

    def line(self) -> int:
        """An ``@`` mark if there is one, followed by the end of the line."""
        number = int(self.take("line")[1:]) if self.next_is("line") else 0
        self.expect("\n")
        return number
