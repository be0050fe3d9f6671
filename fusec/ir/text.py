"""The printer of both IRs' text; the parser in `tests/support/parse_ir.py` recovers what was printed.

One statement a line, blocks in braces, ``@3`` for line 3 of the user's text. Operators are infix in parentheses or
named as in the op table. Constants are exact: the shortest decimal that reads back, or their bits in hexadecimal.
Types follow from the declarations; an expression of another type than those give carries it, ``(x : float32)``.
A value that a statement uses several times is printed once, in a line ``%1 := ...`` before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, assert_never

import numpy as np

from fusec.base.dtypes import BOOL, DType
from fusec.base.ops import SYMBOLS
from fusec.ir import loops as ir
from fusec.ir.expr import Apply, Const, Expr, IRNode, Pointer, Struct, Type, const, type_of
from fusec.ir.forms import BLANKS, WORDS
from fusec.ir.graph import Input, KernelGraph, TotalInput
from fusec.ir.names import KEYWORDS, NameTable, default_type
from fusec.ir.walk import expressions, inner_first, operands, statements, uses_of

SYMBOL = {op: symbol for symbol, op in SYMBOLS.items()}
PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def print_program(program: ir.Program) -> str:
    """The program's text; it ends with a newline."""
    lines = [f"struct {name(kind.name)} {{ {_fields(kind)} }}" for kind in _structs(program)]
    functions: dict[str, ir.Function] = {}
    for function in program.functions:
        names = NameTable(functions=functions, locals=dict(function.params))
        head = ", ".join(f"{name(param)}: {type_text(kind)}" for param, kind in function.params)
        result = "" if function.result is None else f" -> {type_text(function.result)}"
        lines.append(f"function {name(function.name)}({head}){result} {{")
        lines += _block(function.body, 1, names)
        lines.append("}")
        functions[function.name] = function
    names = NameTable.of_kernel(program.params, functions)
    head = ", ".join(map(_param, program.params))
    block = f" block({', '.join(map(str, program.block))})" if program.block else ""
    block += f" cluster({program.cluster})" if program.cluster > 1 else ""
    lines += [f"kernel {name(program.name)}({head}){block} {{", *_block(program.body, 1, names), "}"]
    return "\n".join(lines) + "\n"


def print_graph(graph: KernelGraph) -> str:
    """The graph's text: named, shared and located values on lines of their own, followed by the outputs."""
    head = ", ".join(map(_input, graph.inputs))
    printer = _Expressions(NameTable())
    body: list[str] = []
    taken = {value.name for value in graph.inputs}
    roots = [value for _, value in graph.outputs]
    uses = uses_of(roots)
    for value in inner_first(roots):
        if isinstance(value, Const | Input):
            continue
        wish = graph.names.get(value)
        if uses[value] > 1 or wish is not None or value in graph.lines:
            text = printer.text(value)
            known = wish is not None and wish not in taken
            label = name(wish) if wish is not None and known else f"%{len(printer.labels) + 1}"
            taken |= {wish} if wish is not None else set()
            body.append(f"    {label} := {text}{_at(graph.lines.get(value, 0))}")
            printer.labels[value] = label
    for output, value in graph.outputs:
        body.append(f"    {name(output)} = {printer.text(value)}")
    return "\n".join([f"graph {name(graph.name)}({head}) {{", *body, "}"]) + "\n"


def print_expression(expr: Expr) -> str:
    """The text of one expression, for messages; names carry their types."""
    return _Expressions(NameTable()).text(expr)


# --- names, types, parameters ------------------------------------------------------------------------------------


def name(text: str) -> str:
    """A name, quoted if it is not an identifier or is a keyword."""
    return text if PLAIN_NAME.fullmatch(text) and text not in KEYWORDS else json.dumps(text)


def type_text(kind: Type) -> str:
    """A dtype or struct by name; a pointer as C writes it, with the address space of local and shared arrays."""
    match kind:
        case DType() | Struct():
            return name(kind.name)
        case Pointer(element, space, constant):
            return f"{'const ' if constant else ''}{element.name}{'' if space == 'global' else f' {space}'}*"
        case _:
            assert_never(kind)


def _fields(kind: Struct) -> str:
    return ", ".join(f"{name(field)}: {dtype.name}" for field, dtype in kind.fields)


def _param(param: ir.Param) -> str:
    if isinstance(param, ir.ScalarParam):
        return f"{name(param.name)}: {param.dtype.name}"
    marks = [f"raw[{param.ndim}]" if param.raw else "array"]
    marks += ["read"] * param.read + ["written"] * param.written
    return f"{name(param.name)}: {param.dtype.name} {' '.join(marks)}"


def _input(value: Input) -> str:
    return f"{name(value.name)}: {type_text(value.type)}{' of totals' if isinstance(value, TotalInput) else ''}"


def _structs(program: ir.Program) -> list[Struct]:
    """Every struct type of the program, in order of appearance."""
    kinds: list[Type] = []
    for function in program.functions:
        kinds += [kind for _, kind in function.params]
        kinds += [function.result] if function.result is not None else []
    for body in (*(function.body for function in program.functions), program.body):
        for stmt in statements(body):
            kinds += [stmt.type] if isinstance(stmt, ir.Declare) else []
            kinds += [type_of(expr) for expr in expressions(operands(stmt))]
    return list(dict.fromkeys(kind for kind in kinds if isinstance(kind, Struct)))


def _at(line: int) -> str:
    return f" @{line}" if line else ""


# --- statements --------------------------------------------------------------------------------------------------


def _block(body: Iterable[ir.Stmt], depth: int, names: NameTable) -> list[str]:
    """Lines of statements; names declared in a block stay known, as they are unique in a function."""
    lines: list[str] = []
    for stmt in body:
        printer = _Expressions(names)
        lines += [f"{'    ' * depth}{line}" for line in printer.shared(operands(stmt))]
        lines += _statement(stmt, depth, names, printer)
    return lines


def _statement(stmt: ir.Stmt, depth: int, names: NameTable, printer: _Expressions) -> list[str]:
    pad, line = "    " * depth, _at(stmt.line)
    match stmt:
        case ir.If(condition, first, second):
            word, other = "if", "else"
        case ir.While(condition, first, second, test_first, unrolled):
            word, other = "unrolled" if unrolled else "while" if test_first else "do_while", "step"
        case _:
            text = printer.formed(stmt)
            names.declare(stmt)
            return [f"{pad}{text}{line}"]
    lines = [f"{pad}{word} {printer.text(condition)} {{{line}", *_block(first, depth + 1, names)]
    if second:
        lines += [f"{pad}}} {other} {{", *_block(second, depth + 1, names)]
    return [*lines, f"{pad}}}"]


# --- expressions -------------------------------------------------------------------------------------------------


class _Expressions:
    """Prints expressions against known names; `labels` are values printed before."""

    def __init__(self, names: NameTable) -> None:
        self.names = names
        self.labels: dict[Expr, str] = {}

    def shared(self, roots: tuple[Expr, ...]) -> list[str]:
        """Lines that label what the roots use several times."""
        uses = uses_of(roots)
        lines = []
        if max(uses.values(), default=0) > 1:
            for expr in inner_first(roots):
                leaf = isinstance(expr, Const | ir.Local | ir.Element | ir.LocalArray)
                if uses[expr] > 1 and not leaf and not (isinstance(expr, ir.Call) and expr in roots):
                    lines.append(f"%{len(self.labels) + 1} := {self.text(expr)}")
                    self.labels[expr] = f"%{len(self.labels) + 1}"
        return lines

    def texts(self, exprs: Iterable[Expr]) -> str:
        """Several expressions, separated by commas."""
        return ", ".join(map(self.text, exprs))

    def text(self, expr: Expr) -> str:
        """One expression, with its type where that does not follow from the names."""
        label = self.labels.get(expr)
        if label is not None:
            return label
        text = self._bare(expr)
        if default_type(expr, self.names) == type_of(expr):
            return text
        return f"({text} : {type_text(type_of(expr))})"

    def formed(self, node: IRNode) -> str:
        """A statement without blocks, or an expression, by its form."""
        head, tail = BLANKS[type(node)]
        is_whole = any(blank.field and getattr(node, blank.field) not in (None, "", ()) for blank in tail)
        blanks = head + tail if is_whole else head
        return "".join([blank.text + self._value(getattr(node, blank.field, None), blank.kind) for blank in blanks])

    def _value(self, value: Any, kind: str) -> str:
        match value:
            case None:
                return ""
            case Expr():
                return self.text(value)
            case tuple():
                return self.texts(value)
            case str():
                return (
                    next(word for word, each in WORDS[kind].items() if each == value) if kind in WORDS else name(value)
                )
            case int():
                return str(value)
            case _:
                return type_text(value)

    def _bare(self, expr: Expr) -> str:
        match expr:
            case Const():
                return constant_text(expr)
            case Apply(op, args):
                if op in SYMBOL:
                    return f"({self.text(args[0])} {SYMBOL[op]} {self.text(args[1])})"
                target = f"<{expr.type.name}>" if op in ("convert", "bitcast") else ""
                return f"{op}{target}({self.texts(args)})"
            case Input(variable) | ir.Local(variable):
                return name(variable)
            case ir.Element(variable) if variable in self.names.arrays:
                return f"&element {name(variable)}"
            case ir.Element(variable) | ir.LocalArray(variable):
                return f"&{name(variable)}"
            case ir.At(variable, index):
                return f"&{name(variable)}[{self.texts(index)}]"
            case ir.Moved(variable, axes, distances):
                moves = ", ".join(f"{axis}: {self.text(d)}" for axis, d in zip(axes, distances, strict=True))
                return f"moved({name(variable)}, {moves})"
            case ir.Query(param, what, axis):
                place = name(param) if param else "_"
                return f"{place}.{what}" if axis is None else f"{place}.{what}[{self.text(axis)}]"
            case _:
                return self.formed(expr)


def constant_text(value: Const) -> str:
    """``true``, ``int64(-3)``, ``float32(0.1)``; hexadecimal bits where decimals are not exact."""
    dtype = value.type
    if dtype == BOOL and value.bits < 2:
        return "true" if value.bits else "false"
    if dtype.is_integer and value.bits < 1 << dtype.bits:
        return f"{dtype.name}({int(value.value)})"
    if dtype.is_float:
        number = value.value
        text = str(number) if isinstance(number, np.floating) else repr(float(number))
        if np.isfinite(float(number)) and const(float(text), dtype) is value:
            return f"{dtype.name}({text})"
    return f"{dtype.name}({value.bits:#x})"
