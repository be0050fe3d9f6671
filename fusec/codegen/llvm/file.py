"""Kernels of LLVM IR in one module, with their common definitions once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from fusec.base.kernel_abi import Kernel
from fusec.base.records import replace

_SYMBOL = re.compile(r'@"[^"\n]*"|@[\w.$-]+|![0-9]+')
_DEFINED = re.compile(rf"(?:define|declare) .*?({_SYMBOL.pattern})\(|({_SYMBOL.pattern}) = ")


def join_modules(kernels: Sequence[Kernel]) -> str:
    """One module of several kernels, with their common functions once.

    Requires: the kernels have different names. Functions, tables and metadata that differ under one name get a number
    behind their own.
    """
    written: dict[str, str] = {}
    for at, kernel in enumerate(kernels):
        items = dict(_items(kernel.source, at))
        new: dict[str, str] = {}
        while True:  # what mentions a renamed function differs as well
            texts = {name: _with_names(text, new) for name, text in items.items()}
            other = [name for name, text in texts.items() if name not in new and written.get(name, text) != text]
            if not other:
                break
            new |= {name: _fresh(name, written.keys() | items.keys() | set(new.values())) for name in other}
        for name, text in texts.items():
            written.setdefault(new.get(name, name), text)
    return "\n".join(written.values()) + "\n"


def renamed(kernel: Kernel, title: str) -> Kernel:
    """The kernel under another name, which its comment has too."""
    name = kernel.name.removesuffix(kernel.title) + title
    source = kernel.source.replace(f'@"{kernel.name}"', f'@"{name}"')
    source = re.sub(rf"(?m)^; {re.escape(kernel.title)} ", f"; {title} ", source, count=1)
    return replace(kernel, name=name, source=source)


def _items(text: str, at: int) -> Iterator[tuple[str, str]]:
    """The definitions of a module by symbol; comments and the rest are numbered."""
    lines = iter(text.splitlines())
    for number, line in enumerate(lines):
        if not line:
            continue
        found = _DEFINED.match(line)
        if line.startswith("define"):
            body = [line]
            while body[-1] != "}":
                body.append(next(lines))
            line = "\n".join(body)
        yield (found[1] or found[2]) if found else f"{at}/{number}", line


def _with_names(text: str, new: Mapping[str, str]) -> str:
    return _SYMBOL.sub(lambda found: new.get(found[0], found[0]), text) if new else text


def _fresh(name: str, taken: set[str]) -> str:
    """A symbol like another one, which nothing has."""
    if name.startswith("!"):
        return f"!{1 + max(int(each[1:]) for each in taken if each.startswith('!'))}"
    stem, end = (name[:-1], '"') if name.endswith('"') else (name, "")
    return next(found for number in range(2, 1 << 20) if (found := f"{stem}.{number}{end}") not in taken)
