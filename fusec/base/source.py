"""Places in texts: files, and spans inside them."""

from __future__ import annotations

from functools import cached_property

from fusec.base.records import dataclass


@dataclass(frozen=True)
class SourceFile:
    """A named text; lines and columns count from 1."""

    name: str  # what a reader knows the text by, e.g. ``"kernel 'saxpy', operation"`` or a file path
    text: str
    is_lost: bool = False  # what stands there is not known, as in a lambda that eval made

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """The offset of the first character of every line."""
        starts = [0]
        starts += [at + 1 for at, char in enumerate(self.text) if char == "\n"]
        return tuple(starts)

    def line(self, number: int) -> str:
        """The text of one line without its newline; empty past the end."""
        lines = self.text.split("\n")
        return lines[number - 1] if 1 <= number <= len(lines) else ""

    def position(self, offset: int) -> tuple[int, int]:
        """The (line, column) of a character offset."""
        low, high = 0, len(self.line_starts)
        while high - low > 1:
            middle = (low + high) // 2
            if self.line_starts[middle] <= offset:
                low = middle
            else:
                high = middle
        return low + 1, offset - self.line_starts[low] + 1


@dataclass(frozen=True)
class Span:
    """The characters from ``start`` (included) to ``end`` (excluded) of a source file."""

    file: SourceFile
    start: int
    end: int

    @property
    def line(self) -> int:
        """The line of the first character, counted from 1."""
        return self.file.position(self.start)[0]

    @property
    def column(self) -> int:
        """The column of the first character, counted from 1."""
        return self.file.position(self.start)[1]

    @property
    def text(self) -> str:
        """The characters themselves."""
        return self.file.text[self.start : self.end]
