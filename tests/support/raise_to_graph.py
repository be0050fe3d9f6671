"""Lift: read a straight-line program as a graph of array values."""

from __future__ import annotations

from fusec.base.dtypes import DType
from fusec.ir.expr import Apply, Const, Expr
from fusec.ir.graph import Input, KernelGraph
from fusec.ir.loops import Assign, Declare, Element, Load, Local, Program, ScalarParam, Stmt, Store


def raise_to_graph(program: Program) -> KernelGraph | None:
    """The graph of a program that only computes: None if it branches, loops, calls, or addresses memory by index.

    Requires: a verified program.
    Ensures: the graph's outputs are the written arrays in parameter order, its inputs the scalars and the arrays read;
    values keep the user's names and lines.
    """
    return _Lifter(program).graph()


class _Lifter:
    """The values of locals and of array elements, statement after statement."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.inputs = {
            param.name: Input(param.name, param.dtype)
            for param in program.params
            if isinstance(param, ScalarParam) or (not param.raw and param.read)
        }
        self.locals: dict[str, Expr] = {}
        for param in program.params:
            if isinstance(param, ScalarParam):
                self.locals[param.name] = self.inputs[param.name]
        self.elements: dict[str, Expr] = {}
        self.names: dict[Expr, str] = {}
        self.lines: dict[Expr, int] = {}

    def graph(self) -> KernelGraph | None:
        """The graph, or None where a statement or expression is beyond graphs."""
        if self.program.functions or any(param.raw for param in self.program.arrays):
            return None
        if not all(map(self.statement, self.program.body)):
            return None
        written = [param.name for param in self.program.arrays if param.written]
        outputs = []
        for name in written:
            value = self.element(name)
            if value is None:
                return None
            outputs.append((name, value))
        inputs = tuple(self.inputs.values())
        return KernelGraph(self.program.name, inputs, tuple(outputs), self.names, self.lines)

    def statement(self, stmt: Stmt) -> bool:
        """Take note of a statement's effect; False if graphs have no such effect."""
        match stmt:
            case Declare(name, DType() as kind, None):
                self.locals[name] = Const(0, kind)
                return True
            case Declare(name, _, value) | Assign(name, value) if value is not None:
                found = self.value(value)
                if found is not None:
                    self.locals[name] = found
                    if not isinstance(found, Const | Input):
                        self.names.setdefault(found, name)
                    self.locate(found, stmt.line)
                return found is not None
            case Store(Element(name), value):
                found = self.value(value)
                if found is not None:
                    self.elements[name] = found
                    self.locate(found, stmt.line)
                return found is not None
            case _:
                return False

    def locate(self, value: Expr, line: int) -> None:
        """Note the line that made a value; leaves are made nowhere, and 0 is no line."""
        if line and not isinstance(value, Const | Input):
            self.lines.setdefault(value, line)

    def element(self, name: str) -> Expr | None:
        """The current element of an array: what was stored last, else what came in."""
        return self.elements.get(name) or self.inputs.get(name)

    def value(self, expr: Expr, known: dict[Expr, Expr | None] | None = None) -> Expr | None:
        """The expression over inputs, or None if it holds a node that graphs lack."""
        known = {} if known is None else known
        if expr not in known:
            known[expr] = self._value(expr, known)
        return known[expr]

    def _value(self, expr: Expr, known: dict[Expr, Expr | None]) -> Expr | None:
        match expr:
            case Const():
                return expr
            case Local(name):
                return self.locals.get(name)
            case Load(Element(name)):
                return self.element(name)
            case Apply():
                children = [self.value(child, known) for child in expr.children]
                found = tuple(child for child in children if child is not None)
                return expr.rebuild(found) if len(found) == len(children) else None
            case _:
                return None
