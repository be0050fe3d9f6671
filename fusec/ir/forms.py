"""The forms of the IR's text: how a statement or an expression is spelled, for the printer and for the parser of tests.

A form names fields in braces; the annotation of a field says how its value is written. What stands behind the bar is
written only if the field there has a value.
"""

from __future__ import annotations

import inspect
import re
from string import Formatter
from typing import NamedTuple, get_args

from fusec.ir import loops as ir
from fusec.ir.expr import IRNode, Lookup
from fusec.ir.graph import Count, Neighbour, Position, Reduce, Spread, Taken, Within

FORMS: dict[type[IRNode], str] = {
    ir.Declare: "let {name}: {type}| = {value}",
    ir.DeclareArray: "{space} {name}: {element}[{length}]| = {{{values}}}",
    ir.Store: "store {pointer} = {value}",
    ir.Shuffle: "shuffle {result} = {value} from {distance}",
    ir.Atomic: "atomic {op}({pointer}, {values})| -> {result}",
    ir.AtomicLoad: "observe {pointer} -> {result}",
    ir.AtomicStore: "publish {pointer} = {value}",
    ir.CallStatement: "do {call}| -> {result}",
    ir.Barrier: "barrier",
    ir.Break: "break",
    ir.Continue: "continue",
    ir.Return: "return| {value}",
    ir.Assign: "{name} = {value}",
    ir.SetField: "{name}.{field} = {value}",
    ir.Offset: "offset({pointer}, {offset})",
    ir.Load: "load({pointer})",
    ir.Call: "call {function}({args})",
    ir.Field: "field({value}, {name})",
    ir.Make: "make {type}({fields})",
    Lookup: "lookup({index}, {values})",
    Reduce: "reduce {op}({value})",
    Spread: "moment {op}({value})",
    Count: "count()",
    Position: "position({axis})",
    Neighbour: "neighbour({axis}, {offset}, {mode}, {more})",
    Within: "within({index})",
    Taken: "taken({array}, {outside}, {index})",
}
WORDS = {
    "Space": {"array": "local", "shared": "shared", "told": "told"},
    "AtomicOp": {op: op for op in get_args(ir.AtomicOp)},
    "Quantity": {what: what for what in get_args(ir.Quantity)},
}
"""What words stand for, by the annotation of the field."""
STARTS = {re.split(r"\W", form)[0]: node for node, form in FORMS.items()} | dict.fromkeys(
    WORDS["Space"], ir.DeclareArray
)
"""The classes of forms by the word that they begin with."""


class Blank(NamedTuple):
    """A field of a form."""

    text: str  # before it
    field: str  # "" for text alone
    kind: str  # its annotation


def _blanks(node: type[IRNode], text: str) -> tuple[Blank, ...]:
    kinds = inspect.get_annotations(node)
    return tuple(Blank(text, name or "", kinds.get(name or "", "")) for text, name, _, _ in Formatter().parse(text))


BLANKS = {node: tuple(_blanks(node, part) for part in form.partition("|")[::2]) for node, form in FORMS.items()}
"""The fields of the forms, before the bar and behind it."""
