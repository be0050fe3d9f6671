"""Kernels assembled from their parts, alone or several in one file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from fusec.base.kernel_abi import Kernel
from fusec.base.records import replace
from fusec.codegen.c_family.names import ScopeNames

Part = tuple[str, str]  # the name it defines and its text; no name: comments and directives

# Comments and strings are no words, but hide some; a word after a dot or an arrow, or before a semicolon, is a field.
_WORD = re.compile(r'//[^\n]*|"[^"\n]*"|(?<!\.)(?<!->)\b[A-Za-z_]\w*(?!\w|;)')


def join_parts(parts: Iterable[Part]) -> str:
    """The text of a file."""
    texts: list[str] = []
    after_comment = False
    for name, text in parts:
        texts += [text] if after_comment and not name else ["", text]
        after_comment = not name
    return "\n".join(texts[1:]) + "\n"


def join_kernels(kernels: Sequence[Kernel]) -> str:
    """One file of several kernels of a target, with their common parts once.

    Requires: the kernels have different names. Functions and structs that differ under one name, or are called like a
    kernel, get the kernel's name behind their own: those words mean nothing else in its text, locals having been named
    around them.
    """
    return join_parts(parts_of(kernels))


def parts_of(kernels: Sequence[Kernel]) -> list[Part]:
    """The parts of that file."""
    entries = {kernel.name for kernel in kernels}
    assert len(entries) == len(kernels), f"kernels of one file need different names, not {[k.name for k in kernels]}"
    written: dict[str, str] = {}  # without comments, which name lines of the user's text
    parts: list[Part] = []
    for kernel in kernels:
        words = {word for _, text in kernel.parts for word in _WORD.findall(text)} | written.keys() | entries
        renamed: dict[str, str] = {}
        for name, text in kernel.parts:
            text = _rename(text, renamed)
            is_other = name in entries and name != kernel.name
            if name and (is_other or written.get(name, _bare(text)) != _bare(text)):
                renamed[name] = name = ScopeNames(words).fresh(f"{name}_{kernel.name}")
                text = _rename(text, renamed)
            if (name or text) not in written:
                written[name or text] = _bare(text)
                parts.append((name, text))
    return parts


def renamed(kernel: Kernel, title: str) -> Kernel:
    """The kernel under another name, which its comment has too."""
    name = kernel.name.removesuffix(kernel.title) + title
    parts = tuple(
        (name if each == kernel.name else each, _rename(text, {kernel.name: name}))
        if each
        else ("", re.sub(rf"(?m)^// {re.escape(kernel.title)}\(", f"// {title}(", text))
        for each, text in kernel.parts
    )
    return replace(kernel, name=name, parts=parts, source=join_parts(parts))


def _bare(text: str) -> str:
    return re.sub(r" *//[^\n]*", "", text)


def _rename(text: str, renamed: dict[str, str]) -> str:
    """The text with words replaced outside of comments and strings; fields keep their names."""
    return _WORD.sub(lambda found: renamed.get(found[0], found[0]), text) if renamed else text


def indented(lines: list[str], depth: int) -> list[str]:
    """Indented lines."""
    return ["    " * depth + line if line else line for line in lines]
