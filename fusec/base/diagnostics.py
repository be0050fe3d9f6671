"""Renders an error: message and code, then file, line and column, the line itself with a caret, and a hint."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusec.base.source import Span


WIDTH = 100  # characters of a line that are shown
LONGEST_NAME = 64  # of those that are compared with others, which takes a time beyond the square of the length
LONGEST_TEXT = 1000  # characters of a value in a message
UNSEEN = "\N{REPLACEMENT CHARACTER}"


def render(code: str, message: str, span: Span | None, label: str = "", hint: str = "") -> str:
    """The text of an error; its first line starts with the message, so that it can be matched.

    Widths count characters; a span over several lines is marked to the end of its first. What no terminal shows, such
    as control characters, marks of direction and halves of surrogate pairs, is shown as a replacement character.
    """
    lines = [f"{message} [{code}]" if code else message]
    if span is not None:
        lines.append(place(span))
    if span is not None and not span.file.is_lost:
        lines += excerpt(span, label)
    elif label:
        lines.append(f"  {label}")
    if hint:
        lines.append(f"hint: {hint}")
    return "".join(each if each.isprintable() or each in "\n\t" else UNSEEN for each in "\n".join(lines))


def place(span: Span) -> str:
    """The place where a span starts, in words."""
    return f"{' ' * len(str(span.line))}--> {span.file.name}, line {span.line}, column {span.column}"


def excerpt(span: Span, label: str = "") -> list[str]:
    """A margin, the line in which a span starts, and carets; a line too long for a terminal is cut around them."""
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


def counted(count: int | str, noun: str, plural: str = "") -> str:
    """A number of things, such as "1 axis" or "2 axes"; plural: if it is not the noun with an s."""
    shown = count if isinstance(count, str) else f"{count:,}"
    return f"{shown} {noun if shown == '1' else plural or noun + 's'}"


def with_article(noun: str) -> str:
    """A noun with "a" or "an", as it is spoken: an int, a class, a ufunc, an ndarray."""
    return f"{'an' if noun[:1] in 'aeioAEIO' or noun == 'ndarray' else 'a'} {noun}"


def instance_of(value: object) -> str:
    """The type of a value with its article: "an int" or "a list"."""
    return with_article(type(value).__name__)


class MessageField:
    """A value for a format string of messages, where "{count:axis/axes}" stands for a count with its noun, and
    "{noun:a}" for a noun with its article.
    """

    def __init__(self, value: object) -> None:
        self.value = short(value)

    def __format__(self, spec: str) -> str:
        if spec == "a":
            return with_article(str(self.value))
        return counted(str(self.value), *spec.split("/")) if spec[:1].isalpha() else format(self.value, spec)

    def __repr__(self) -> str:
        return repr(self.value)


def short(value: object) -> object:
    """A value for a message; long texts are cut, and so are long integers, which Python refuses to print."""
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return f"{value[: LONGEST_TEXT // 2]} … {value[-LONGEST_TEXT // 5 :]}"
    if type(value) is not int or abs(value) < 1 << 128:
        return value
    return f"{'-' if value < 0 else ''}{hex(abs(value))[:10]}... ({abs(value).bit_length()} bits)"


def shown_number(value: object) -> str:
    """A number as Python prints it, with long ones cut."""
    found = short(value)
    return found if isinstance(found, str) and not isinstance(value, str) else repr(value)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` for the closest known name, or an empty text.

    Two-letter names resemble too many others; one that lacks the middle letter of a single known name means that one.
    A name with two neighbouring letters exchanged is closest of all. One with a digit is not meant by one without:
    norm3d is no slip of the pen for norm.
    """
    if len(name) == 2:
        longer = {each for each in known if len(each) == 3 and each[0] + each[2] == name}
        return f"did you mean '{longer.pop()}'?" if len(longer) == 1 else ""
    if not 3 <= len(name) <= LONGEST_NAME:
        return ""
    numbered = any(map(str.isdigit, name))
    candidates = [each for each in known if len(each) > 2 and (not numbered or any(map(str.isdigit, each)))]
    swapped = {name[:at] + name[at + 1] + name[at] + name[at + 2 :] for at in range(len(name) - 1)} - {name}
    from difflib import get_close_matches  # hardly ever needed

    close = sorted(swapped.intersection(candidates)) or get_close_matches(name, candidates, n=1, cutoff=0.75)
    return f"did you mean '{close[0]}'?" if close else ""
