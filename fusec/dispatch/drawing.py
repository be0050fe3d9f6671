"""The drawing of a report: kernels and calls of libraries as boxes in order, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from textwrap import wrap

from fusec.base.records import dataclass, field

LIBRARY = "library call"
COLUMNS = 88  # characters of a line
CHARACTER, LINE, PAD = 7.3, 18, 10  # pixels: the width and the height of a character, around a text
REASON = "not fused with the kernel before"
FILLS = {False: "#e8f0fb", True: "#fbf0e0"}  # of a kernel, of a call of a library


@dataclass
class DrawnBox:
    """One kernel or call. reason: why it is not part of the one before."""

    title: str
    lines: list[str] = field(default_factory=list)
    reason: str = ""

    @property
    def height(self) -> int:
        """Pixels."""
        return LINE * (1 + len(self.lines)) + 2 * PAD


def drawn(name: str, lines: Sequence[tuple[str, str]]) -> str:
    """A report as the text of an SVG picture."""
    boxes, rest = _sorted(lines)
    width = int(CHARACTER * COLUMNS) + 4 * PAD
    parts = [_text(PAD, LINE, name, "font-weight='bold'")]
    y = LINE + PAD
    for at, box in enumerate(boxes):
        if at:
            told = wrap(box.reason, COLUMNS - 4)
            below = y + LINE * max(1, len(told)) + PAD
            parts.append(f"<path d='M{2 * PAD} {y}V{below}m-4 -6l4 6l4 -6' fill='none' stroke='#555'/>")
            parts += [_text(4 * PAD, y + LINE * (1 + row), each, "fill='#a33'") for row, each in enumerate(told)]
            y = below
        fill = FILLS[box.title == LIBRARY]
        size = f"width='{width - 2 * PAD}' height='{box.height}'"
        parts.append(f"<rect x='{PAD}' y='{y}' {size} rx='4' fill='{fill}' stroke='#555'/>")
        parts.append(_text(2 * PAD, y + LINE, box.title, "font-weight='bold'"))
        parts += [_text(2 * PAD, y + LINE * (2 + row), each) for row, each in enumerate(box.lines)]
        y += box.height
    for each in rest:
        y += LINE
        parts.append(_text(PAD, y, each))
    size = f"width='{width}' height='{y + PAD}'"
    style = "font-family='monospace' font-size='12'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size} {style}>{''.join(parts)}</svg>"


def _sorted(lines: Sequence[tuple[str, str]]) -> tuple[list[DrawnBox], list[str]]:
    """The boxes, and the lines that belong to none."""
    boxes: list[DrawnBox] = []
    rest: list[str] = []
    for topic, text in lines:
        if topic != LIBRARY and not topic.startswith("kernel "):
            rest += wrap(f"{topic}: {text}", COLUMNS)
            continue
        if not boxes or boxes[-1].title != topic or topic == LIBRARY:
            boxes.append(DrawnBox(topic))
        if text.startswith(REASON):
            boxes[-1].reason = text
        else:
            boxes[-1].lines += wrap(text, COLUMNS)
    return boxes, rest


def _text(x: int, y: int, text: str, style: str = "") -> str:
    return f"<text x='{x}' y='{y}' {style}>{escape(text)}</text>"
