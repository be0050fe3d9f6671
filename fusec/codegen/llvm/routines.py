"""Functions that are not inlined, because inlining each call would make too much text.

As a rule a function is written where it is called: LLVM then sees what is uniform, and a call costs nothing. Functions
that call each other twice each double the text with every level, though, so large programs keep their large functions.
"""

from __future__ import annotations

from collections.abc import Iterable

from fusec.base.records import dataclass, replace
from fusec.codegen.llvm.values import Builder, Linear, Operand, Value
from fusec.ir.expr import Expr
from fusec.ir.loops import Call, Element, Moved, Program, Query, Stmt
from fusec.ir.walk import expressions, operands, statements

WHOLE = 1 << 14  # nodes of a program with all functions written out, up to which they are written out
PIECE = 1 << 10  # nodes of a function from which it stays a function in a larger program


def kept_functions(program: Program) -> frozenset[str]:
    """The functions of a program that are called, not written out.

    A function that asks for the position or the current element is written out always.
    """
    sizes: dict[str, int] = {}
    for function in program.functions:
        sizes[function.name] = _size(function.body, sizes)
    if max((*sizes.values(), _size(program.body, sizes))) <= WHOLE:
        return frozenset()
    kept: set[str] = set()
    placed: set[str] = set()
    for function in program.functions:  # callees come first
        size = _size(function.body, sizes)
        if _is_placed(function.body, placed):
            placed.add(function.name)
        elif size > PIECE:
            kept.add(function.name)
            size = 1
        sizes[function.name] = size
    return frozenset(kept)


def _size(body: Iterable[Stmt], sizes: dict[str, int]) -> int:
    """Nodes of statements whose calls count as much as the functions; each statement writes its own."""
    total = 0
    for stmt in statements(body):
        total += 1
        for expr in expressions(operands(stmt)):
            total += sizes[expr.function] if isinstance(expr, Call) else 1
    return total


def _is_placed(body: Iterable[Stmt], placed: set[str]) -> bool:
    """Whether statements depend on where in the iteration space they run."""
    seen: set[Expr] = set()
    for stmt in statements(body):
        for expr in expressions(operands(stmt), seen):
            match expr:
                case Element() | Moved() | Query(what="index" | "coordinate" | "thread"):
                    return True
                case Call(function=name) if name in placed:
                    return True
    return False


@dataclass(frozen=True)
class Routine:
    """A function of the module: its symbol and its result, in texts that mean something inside it only."""

    symbol: str
    result: Operand

    def call(self, b: Builder, given: Iterable[Value]) -> Operand:
        """Call it; `given` are its parameters in order."""
        kind = result_type(b, self.result)
        args = ", ".join([*map(b.typed, map(passed, given)), "ptr %args"])
        if not self.result:
            b.line(f"call void {self.symbol}({args})")
            return ()
        found = b.let(f"call {kind} {self.symbol}({args})")
        if len(self.result) == 1:
            return (replace(self.result[0], text=found),)
        return tuple(
            replace(part, text=b.let(f"extractvalue {kind} {found}, {at}")) for at, part in enumerate(self.result)
        )


def passed(value: Value) -> Value:
    """A value as a parameter; of addresses at known distances, the first."""
    return Value("ptr", value.linear.base) if value.type == "ptr" and value.linear else value


def received(value: Value, name: str) -> Value:
    """A parameter as the value that it is inside the function."""
    if value.type == "ptr" and value.linear:
        return Value("ptr", "", varying=True, linear=Linear(name, value.linear.step))
    return Value(value.type, name, value.varying)


def shape(value: Value) -> tuple[bool, int]:
    """What of a parameter the text of a function depends on, its type aside."""
    return value.varying, value.linear.step if value.type == "ptr" and value.linear else 0


def result_type(b: Builder, result: Operand) -> str:
    """The LLVM type that a function returns for the parts of its result."""
    kinds = [b.type_of(part) for part in result]
    return "void" if not kinds else kinds[0] if len(kinds) == 1 else f"{{ {', '.join(kinds)} }}"


def define(b: Builder, name: str, params: Iterable[Value], prologue: Iterable[str], result: Operand) -> Routine:
    """Put a finished function into the module."""
    parts = tuple(Value(part.type, b.materialised(part).text if part.varying else part.text, part.varying)
                  for part in result)  # fmt: skip
    kind, given = result_type(b, parts), ", ".join(f"{b.type_of(each)} {each.text}" for each in params)
    whole = "poison"
    if len(parts) == 1:
        whole = parts[0].text
    elif parts:
        for at, part in enumerate(parts):
            whole = b.let(f"insertvalue {kind} {whole}, {b.typed(part)}, {at}")
    b.line(f"ret {kind} {whole}" if parts else "ret void")
    symbol = f'@"fusec.call.{len(b.declarations)}.{name}"'
    opening = f"define internal {kind} {symbol}({given + ', ' if given else ''}ptr noalias readonly %args)"
    b.declare("\n".join([f"{opening} noinline nounwind {{", "entry:", *b.allocas, *prologue, *b.top, *b.lines, "}"]))
    return Routine(symbol, parts)
