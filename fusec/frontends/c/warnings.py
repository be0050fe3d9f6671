"""Mistakes that the syntax alone shows: ``x[i, j]``, ``x ** y`` and statements that do nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from fusec.base.source import Span
from fusec.errors.language import BadIndex, NoEffect, NotSupported
from fusec.frontends.c import syntax as s
from fusec.frontends.c.functions import BUILTINS

METHODS = frozenset("real imag size shape strides get".split())  # of what is no struct; without arguments
Functions = Mapping[str, list[s.FunctionDef]]
Parts = Callable[[Any], tuple[Any, ...]]

# The parts of each kind of expression, last first, as a stack takes them; types and constant parts are left out.
PARTS: dict[type, Parts] = {
    s.Binary: attrgetter("right", "left"),
    s.Comma: attrgetter("second", "first"),
    s.Assignment: attrgetter("value", "target"),
    s.Choose: attrgetter("orelse", "then", "condition"),
    s.Index: attrgetter("index", "value"),
    s.Prefix: lambda node: (node.operand,),
    s.Postfix: lambda node: (node.operand,),
    s.Attribute: lambda node: (node.value,),
    s.Cast: lambda node: (node.value,),
    s.Construct: lambda node: node.args[::-1],
    s.Braced: lambda node: node.elements[::-1],
    s.CallNode: lambda node: (*node.args[::-1], node.callee),
    **dict.fromkeys((s.Name, s.TemplateId, s.Trait, s.Numeral, s.Character, s.String, s.Word, s.Sizeof), lambda _: ()),
}


def comma_index(node: s.Index, raw: bool) -> Exception:
    """The error for ``x[i, j]``, which in C is ``x[j]``."""
    name = node.value.span.text
    parts = node.index.span.text.removeprefix("(").removesuffix(")")
    cure = f"write ptrdiff_t idx[] = {{{parts}}}; and then {name}[idx]" if raw else "index axis by axis: a[i][j]"
    return BadIndex(f"'{name}[{parts}]' would use only the last index", cure).at(node.index.span)


def is_power(node: s.Binary) -> bool:
    """True for ``x ** y``, which reads as ``x * (*y)``."""
    right = node.right
    return node.op == "*" and isinstance(right, s.Prefix) and right.op == "*" and node.place.end == right.span.start


def power(node: s.Binary) -> Exception:
    """The error for ``x ** y``."""
    span = Span(node.span.file, node.place.start, node.place.end + 1)
    return NotSupported("the power operator '**' is", "write x * x, or pow(x, y)").at(span)


# --- effects --------------------------------------------------------------------------------------------------------


def check_effect(node: s.Expression, functions: Functions) -> None:
    """Refuse an expression that as a statement does nothing. Raises NoEffect.

    A bare literal is what an empty macro may be, and a cast to void says that nothing is meant.
    """
    if type(node) is s.Assignment or _has_effect(node, functions):
        return
    match node:
        case s.Numeral() | s.Word() | s.Character() | s.Cast(type=s.Qualified(base=s.TypeName(name="void"))):
            return
        case s.Binary(op="=="):
            cure = f"did you mean '='? {node.left.span.text} = {node.right.span.text};"
        case s.Name():
            cure = f"assign to it, or write (void){node.name}; to mark it as used"
        case _:
            cure = "assign the value, as in z = x + 1;"
    raise NoEffect(cure).at(node.span)


def _has_effect(node: s.Expression, functions: Functions) -> bool:
    pending: list[Any] = [node]
    while pending:
        match pending.pop():
            case s.Assignment() | s.Postfix() | s.Prefix(op="++" | "--"):
                return True
            case s.CallNode(callee=s.Name(name=name) | s.TemplateId(name=name), args=args):
                if name in functions or name not in BUILTINS:
                    return True
                pending += args
            case s.CallNode(callee=s.Attribute(value=value, name=name), args=args):
                if args or name not in METHODS:
                    return True
                pending.append(value)
            case s.CallNode():
                return True
            case part:
                pending += PARTS[type(part)](part)
    return False
