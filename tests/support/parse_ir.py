"""The parser of the IR's text (see `fusec.ir.text` for the form): recursive descent over tokens, one symbol ahead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from fusec.base.dtypes import BOOL, BY_NAME, INT64, DType
from fusec.base.ops import SYMBOLS
from fusec.base.records import replace
from fusec.ir import loops as ir
from fusec.ir.expr import Apply, Const, Expr, IRNode, Pointer, Space, Struct, Type, const
from fusec.ir.forms import BLANKS, STARTS, WORDS, Blank
from fusec.ir.graph import Input, KernelGraph, TotalInput
from fusec.ir.names import NameTable, default_type
from tests.support.ir_tokens import Tokens

Kind = TypeVar("Kind", bound=Type)


def parse_program(text: str) -> ir.Program:
    """The program of a printed text. Raises ValueError with the line if the text is not a program."""
    parser = _Parser(text)
    while parser.accept("struct"):
        parser.struct()
    functions: dict[str, ir.Function] = {}
    while parser.accept("function"):
        function = parser.function(functions)
        functions[function.name] = function
    return parser.kernel(functions)


def parse_graph(text: str) -> KernelGraph:
    """The graph of a printed text. Raises ValueError with the line if the text is not a graph."""
    return _Parser(text).graph()


class _Parser(Tokens):
    """The names known so far, and the values labelled."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.structs: dict[str, Struct] = {}
        self.names = NameTable()
        self.labels: dict[str, Expr] = {}

    # --- declarations --------------------------------------------------------------------------------------------

    def struct(self) -> None:
        """The rest of a struct declaration."""
        name = self.name()
        self.structs[name] = Struct(name, self.inside("{}", lambda: self.pair(self.dtype)))
        self.expect("\n")

    def pair(self, kind: Callable[[], Kind]) -> tuple[str, Kind]:
        """A name with its type."""
        name = self.name()
        self.expect(":")
        return name, kind()

    def dtype(self) -> DType:
        """A dtype by name."""
        text = self.take("name")
        if text not in BY_NAME:
            raise self.error("a dtype")
        return BY_NAME[text]

    def any_type(self) -> Type:
        """A dtype, a struct or a pointer."""
        constant = self.accept("const")
        name = self.name()
        if name in self.structs:
            return self.structs[name]
        if name not in BY_NAME:
            raise self.error("a type")
        named: tuple[Space, ...] = ("local", "shared", "told")
        space = next((each for each in named if self.accept(each)), "global")
        if self.accept("*"):
            return Pointer(BY_NAME[name], space, constant)
        return BY_NAME[name]

    def function(self, functions: Mapping[str, ir.Function]) -> ir.Function:
        """The rest of a function."""
        name = self.name()
        params = self.inside("()", lambda: self.pair(self.any_type))
        result = self.any_type() if self.accept("->") else None
        self.names = NameTable(dict(functions), dict(params))
        body = self.body()
        self.expect("\n")
        return ir.Function(name, params, result, body)

    def kernel(self, functions: Mapping[str, ir.Function]) -> ir.Program:
        """A kernel, which ends the text; of a block program ``block(16, 16)`` stands after the parameters."""
        self.expect("kernel")
        name = self.name()
        params = self.inside("()", self.param)
        block = self.inside("()", self.number) if self.accept("block") else ()
        (cluster,) = self.inside("()", self.number) if self.accept("cluster") else (1,)
        self.names = NameTable.of_kernel(params, functions)
        body = self.body()
        self.expect("\n")
        self.take("end")
        return ir.Program(name, params, body, tuple(functions.values()), block=block, cluster=cluster)

    def param(self) -> ir.Param:
        """A kernel parameter: ``a: float32``, ``x: float32 array read``, ``h: int32 raw[1] read written``."""
        name, dtype = self.pair(self.dtype)
        raw = self.accept("raw")
        (ndim,) = self.inside("[]", self.number) if raw else (0,)
        if not raw and not self.accept("array"):
            return ir.ScalarParam(name, dtype)
        read = self.accept("read")
        return ir.ArrayParam(name, dtype, raw, self.accept("written"), read, ndim)

    # --- graphs --------------------------------------------------------------------------------------------------

    def graph(self) -> KernelGraph:
        """A graph, which ends the text."""
        self.expect("graph")
        name = self.name()
        self.names.inputs = {each.name: each for each in self.inside("()", self.input)}
        self.expect("{", "\n")
        names: dict[Expr, str] = {}
        lines: dict[Expr, int] = {}
        outputs: list[tuple[str, Expr]] = []
        while not self.accept("}"):
            label = self.take("label") if self.next_is("label") else self.name()
            if self.accept("="):
                outputs.append((label, self.expression()))
                self.expect("\n")
                continue
            self.expect(":=")
            value = self.labels[label] = self.expression()
            line = self.line()
            if line:
                lines[value] = line
            if not label.startswith("%"):
                names[value] = label
        self.expect("\n")
        self.take("end")
        return KernelGraph(name, tuple(self.names.inputs.values()), tuple(outputs), names, lines)

    def input(self) -> Input:
        """An input of a graph: ``x: float32``, ``b: float32 of totals``."""
        name, dtype = self.pair(self.dtype)
        if not self.accept("of"):
            return Input(name, dtype)
        self.expect("totals")
        return TotalInput(name, dtype)

    # --- statements ----------------------------------------------------------------------------------------------

    def body(self) -> tuple[ir.Stmt, ...]:
        """A block on lines of its own."""
        self.expect("{", "\n")
        return self.block()

    def block(self) -> tuple[ir.Stmt, ...]:
        """Statements up to the closing brace."""
        body: list[ir.Stmt] = []
        while not self.accept("}"):
            while self.next_is("label"):
                label = self.take("label")
                self.expect(":=")
                self.labels[label] = self.expression()
                self.expect("\n")
            stmt = self.statement()
            self.names.declare(stmt)
            body.append(stmt)
        return tuple(body)

    def statement(self) -> ir.Stmt:
        """One statement with its line."""
        for word, second in (("if", "else"), ("while", "step"), ("do_while", "step"), ("unrolled", "step")):
            if self.accept(word):
                return self.nest(word, second)
        is_field = ("mark", ".") in self.tokens[self.at : self.at + 2]
        stmt: ir.Stmt = self.formed(self.started(ir.Stmt) or (ir.SetField if is_field else ir.Assign))
        return replace(stmt, line=self.line())

    def nest(self, word: str, second: str) -> ir.Stmt:
        """A branch or a loop after its word. second: the word before its second block."""
        condition = self.expression()
        self.expect("{")
        line, first = self.line(), self.block()
        other = self.body() if self.accept(second) else ()
        self.expect("\n")
        if word == "if":
            return ir.If(condition, first, other, line=line)
        return ir.While(condition, first, other, word != "do_while", word == "unrolled", line=line)

    # --- forms ---------------------------------------------------------------------------------------------------

    def started(self, base: type[IRNode]) -> type[IRNode] | None:
        """The kind of statement or expression that begins with the next word, if there is one."""
        kind, text = self.tokens[self.at]
        node = STARTS.get(text) if kind == "name" else None
        return node if node is not None and issubclass(node, base) else None

    def formed(self, node: type[IRNode]) -> Any:
        """A node of a class by its form; the type of an expression, where no field of the form, may follow."""
        head, tail = BLANKS[node]
        values: dict[str, object] = {}
        self.fill(head, values)
        if not (self.next_is("newline") or self.next_is("line")):
            self.fill(tail, values)
        if issubclass(node, ir.Stmt) or "type" in values:
            return node(**values)
        made: Any = node
        return self.typed(made(**values, type=BOOL))

    def fill(self, blanks: tuple[Blank, ...], values: dict[str, object]) -> None:
        """Read the fields of a form."""
        for blank in blanks:
            self.expect(*(mark for _, mark in Tokens(blank.text).tokens[:-1]))
            if blank.field:
                values[blank.field] = self.value(blank.kind)

    def value(self, kind: str) -> object:
        """The value of a field with that annotation."""
        match kind:
            case "str":
                return self.name()
            case "int":
                return self.number()
            case "DType":
                return self.dtype()
            case "Type" | "Struct":
                return self.any_type()
            case "Space" | "AtomicOp":
                return self.word(kind)
            case "tuple[Expr, ...]" | "tuple[Const, ...]":
                return self.several(self.expression)
            case _:
                return self.expression()

    def number(self) -> int:
        """A whole number."""
        return int(self.take("number"))

    def word(self, kind: str) -> Any:
        """One of some words, as what it means."""
        text = self.take("name")
        if text not in WORDS[kind]:
            raise self.error(f"a word for {kind}")
        return WORDS[kind][text]

    def typed(self, value: Expr) -> Expr:
        """The expression with the type that follows from what it is made of; as it is if a type stands behind it."""
        kind = default_type(value, self.names)
        return value if kind is None else replace(value, type=kind)  # type: ignore[call-arg]

    # --- expressions ---------------------------------------------------------------------------------------------

    def expression(self) -> Expr:
        """One expression; anything compound stands in parentheses or after a name."""
        if self.next_is("label"):
            return self.labels[self.take("label")]
        if self.accept("("):
            return self.parenthesis()
        if self.accept("&"):
            return self.address()
        node = self.started(Expr)
        if node is not None:
            return cast("Expr", self.formed(node))
        if self.accept("moved"):
            return self.moved()
        if self.accept("true"):
            return Const(1, BOOL)
        if self.accept("false"):
            return Const(0, BOOL)
        return self.named(self.name(), quoted=self.tokens[self.at - 1][0] == "string")

    def parenthesis(self) -> Expr:
        """``(a + b)`` or ``(a : type)``, after the parenthesis."""
        left = self.untyped()
        if self.accept(":"):
            kind = self.any_type()
            self.expect(")")
            return replace(left, type=kind)  # type: ignore[call-arg]
        op = SYMBOLS.get(self.take("mark"))
        if op is None:
            raise self.error("an operator")
        right = self.expression()
        self.expect(")")
        return self.typed(Apply(op, (left, right), BOOL))

    def untyped(self) -> Expr:
        """An expression whose type may follow; a name not declared stands for a local until then."""
        kind, text = self.tokens[self.at]
        if kind in ("name", "string") and self.tokens[self.at + 1] == ("mark", ":"):
            name = self.name()
            return (
                ir.Local(name, self.names.locals.get(name, BOOL)) if text not in ("true", "false") else Const(0, BOOL)
            )
        return self.expression()

    def address(self) -> Expr:
        """What follows ``&``; ``element`` tells a parameter from a local array of its name."""
        is_param = self.accept("element")
        name = self.name()
        kind = Pointer(BOOL, "global")
        if self.tokens[self.at][1] == "[":
            return self.typed(ir.At(name, self.inside("[]", self.expression), kind))
        is_local = name in self.names.arrays and not is_param
        return self.typed(ir.LocalArray(name, kind) if is_local else ir.Element(name, kind))

    def moved(self) -> Expr:
        """The rest of an element's address at another position."""
        self.expect("(")
        name, moves = self.name(), []
        while self.accept(","):
            axis = self.number()
            self.expect(":")
            moves.append((axis, self.expression()))
        self.expect(")")
        axes, distances = zip(*moves, strict=True) if moves else ((), ())
        return self.typed(ir.Moved(name, axes, distances, Pointer(BOOL, "global")))

    def named(self, name: str, *, quoted: bool) -> Expr:
        """What starts with a name: a query, an op, a constant, an input or a local."""
        if self.accept("."):
            return self.query("" if name == "_" and not quoted else name)
        if not quoted and name in ("convert", "bitcast"):
            self.expect("<")
            target = self.dtype()
            self.expect(">")
            return self.typed(Apply(name, self.inside("()", self.expression), target))
        if not quoted and self.tokens[self.at][1] == "(":
            if name in BY_NAME:
                return self.constant(BY_NAME[name])
            return self.typed(Apply(name, self.inside("()", self.expression), BOOL))
        if name in self.labels:
            return self.labels[name]
        if name in self.names.inputs:
            return self.names.inputs[name]
        if name not in self.names.locals:
            raise self.error(f"a declared name, not {name}")
        return ir.Local(name, self.names.locals[name])

    def constant(self, dtype: DType) -> Expr:
        """The number in ``float32(0.1)``, after the dtype."""
        (text,) = self.inside("()", lambda: self.take("number"))
        if text.startswith("0x"):
            return Const(int(text, 16), dtype)
        return const(int(text) if dtype.is_integer else float(text), dtype)

    def query(self, param: str) -> Expr:
        """What follows the dot."""
        what, axis = self.word("Quantity"), None
        if self.tokens[self.at][1] == "[":
            (axis,) = self.inside("[]", self.expression)
        return ir.Query(param, what, axis, INT64)
