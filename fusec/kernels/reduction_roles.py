"""The functions of a reduction: the parameters that each may have, and which of these are arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fusec.base.diagnostics import did_you_mean
from fusec.errors.python import BadParameter, BadReduction

if TYPE_CHECKING:
    from fusec.frontends.python import syntax as s

RESERVED = ("axis", "keepdims", "out", "where", "stream", "count")
POSITIONS = ("index", "indices")
ROLES = ("map", "combine", "finish")


def inputs_of(trees: Mapping[str, s.FunctionNode]) -> tuple[str, ...]:
    """The names of a call's arguments: the map's parameters, or x if there is no map."""
    if "map" not in trees:
        return ("x",)
    return tuple(param.name for param in trees["map"].params if param.name not in POSITIONS)


def check(trees: Mapping[str, s.FunctionNode]) -> None:
    """Raise BadReduction or BadParameter for functions whose parameters are not those of their roles."""
    for role, tree in trees.items():
        if tree.params and tree.params[0].name == "self":
            cure = "leave it out: the class only holds the functions and is never instantiated"
            raise BadReduction(f"{role} takes 'self'", cure).at(tree.params[0].span)
    combine = trees["combine"]
    if len(combine.params) != 2:
        takes = ", ".join(param.name for param in combine.params) or "nothing"
        what = f"combine takes two totals, and this function takes {takes}"
        cure = "write def combine(a, b), and compute the value of an element, or of its index, in map="
        raise BadReduction(what, cure).at(combine.span)
    for tree in trees.values():
        seen: set[str] = set()
        for param in tree.params:
            if param.name in seen:
                raise BadParameter(f"two parameters are called '{param.name}'", "rename one").at(param.span)
            seen.add(param.name)
    if "map" in trees:
        _check_map(trees["map"])
    if "finish" in trees:
        _check_finish(trees["finish"], inputs_of(trees))


def _check_map(tree: s.FunctionNode) -> None:
    for param in tree.params:
        if param.name in RESERVED:
            cure = "calls already have an argument of that name: rename it"
            if param.name == "count":
                cure = "only finish knows how many elements a total has; rename it, if it is something else"
            raise BadParameter(f"a parameter of map cannot be called '{param.name}'", cure).at(param.span)
    if all(param.name in POSITIONS for param in tree.params):
        raise BadReduction("map takes no element", "write def map(x): return x").at(tree.span)


def _check_finish(tree: s.FunctionNode, inputs: tuple[str, ...]) -> None:
    if not tree.params:
        raise BadReduction("finish takes no total", "write def finish(total): return total").at(tree.span)
    known = ("count", "indices", *inputs)
    for param in tree.params[1:]:
        if param.name not in known and param.default is None:
            what = f"finish takes '{param.name}', which it cannot see"
            cure = did_you_mean(param.name, known) or (
                f"after the total it may take count, indices, and arguments that are numbers: {', '.join(inputs)}"
            )
            raise BadReduction(what, cure).at(param.span)
