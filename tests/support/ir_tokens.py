"""The tokens of the IR's text, and a reader with one token of lookahead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypeVar

Item = TypeVar("Item")

CLOSING = (")", "]", "}")

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

    def expect(self, *texts: str) -> None:
        """Skip marks or keywords that must be next."""
        for text in texts:
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

    def several(self, read: Callable[[], Item]) -> tuple[Item, ...]:
        """What is read between commas, up to a closing mark."""
        found: list[Item] = []
        while self.tokens[self.at][1] not in CLOSING:
            if found:
                self.expect(",")
            found.append(read())
        return tuple(found)

    def inside(self, marks: str, read: Callable[[], Item]) -> tuple[Item, ...]:
        """What is read between commas within a pair of marks."""
        self.expect(marks[0])
        found = self.several(read)
        self.expect(marks[1])
        return found

    def line(self) -> int:
        """An ``@`` mark if there is one, followed by the end of the line."""
        number = int(self.take("line")[1:]) if self.next_is("line") else 0
        self.expect("\n")
        return number
