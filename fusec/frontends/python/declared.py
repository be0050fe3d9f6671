"""What a function declares: its parameters, and names for its results."""

from __future__ import annotations

from collections.abc import Sequence

from fusec.errors.python import BadParameter
from fusec.frontends.python import scan
from fusec.frontends.python import syntax as s


def outputs(tree: s.Function) -> tuple[tuple[str, ...], bool]:
    """Names for the results, and whether they come as a tuple; how many there are stands in the text."""
    counts = scan.returned(tree.body)
    count = counts[0] if counts else 0
    taken = {param.name for param in tree.params}
    names = ["out"] if count == 0 else [f"out{at}" for at in range(count)]
    return tuple(f"{name}_" if name in taken else name for name in names), count > 0


def check(tree: s.Function, reserved: Sequence[str]) -> None:
    """Raise BadParameter for parameters that calls could not tell from their own."""
    seen: set[str] = set()
    for param in tree.params:
        if param.name in reserved:
            cure = "calls take an argument of that name themselves: rename it"
            raise BadParameter(f"a parameter cannot be called '{param.name}'", cure).at(param.span)
        if param.name in seen:
            raise BadParameter(f"two parameters are called '{param.name}'", "rename one").at(param.span)
        seen.add(param.name)
    if not tree.params:
        raise BadParameter(f"'{tree.name}' has no parameters", "a function of elements takes at least one").at(
            tree.span
        )
