"""Renders an error: message and code, then file, line and column, the line itself with a caret, and a hint."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusec.source import Span


WIDTH = 100  # characters of a line that are shown


def render(code: str, message: str, span: Span | None, label: str = "", hint: str = "") -> str:
    """The text of an error; its first line starts with the message, so that it can be matched.

    Widths count characters; a span over several lines is marked to the end of its first.
    """
    lines = [f"{message} [{code}]" if code else message]
    if span is not None:
        lines += [place(span), *excerpt(span, label)]
    elif label:
        lines.append(f"  {label}")
    if hint:
        lines.append(f"hint: {hint}")
    return "\n".join(lines)


def place(span: Span) -> str:
    """Where a span starts, in words."""
    return f"{' ' * len(str(span.line))}--> {span.file.name}, line {span.line}, column {span.column}"


def excerpt(span: Span, label: str = "") -> list[str]:
    """A margin, the line a span starts in, and carets; of a line too long for a terminal only the part around them."""
    number, column = span.line, span.column
    whole = span.file.line(number)
    start = max(0, min(column - 1 - WIDTH // 2, len(whole) - WIDTH))
    text = whole[start : start + WIDTH]
    before, after = "…" if start else "", "…" if start + WIDTH < len(whole) else ""
    at = column - 1 - start
    width = max(1, min(span.end - span.start, len(text) - at))
    pad = "".join("\t" if char == "\t" else " " for char in before + text[:at])
    margin = " " * len(str(number))
    return [
        f"{margin} |",
        f"{number} | {before}{text}{after}",
        f"{margin} | {pad}{'^' * width}{' ' + label if label else ''}",
    ]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` for the closest known name, or an empty text; names of two letters resemble too many.

    A name with two neighbouring letters exchanged is closest of all.
    """
    if len(name) < 3:
        return ""
    candidates = [each for each in known if len(each) > 2]
    swapped = {name[:at] + name[at + 1] + name[at] + name[at + 2 :] for at in range(len(name) - 1)} - {name}
    close = sorted(swapped.intersection(candidates)) or get_close_matches(name, candidates, n=1, cutoff=0.75)
    return f"did you mean '{close[0]}'?" if close else ""
