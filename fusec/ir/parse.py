"""The parser of the IR's text (see `fusec.ir.text` for the form): recursive descent over tokens, one symbol ahead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast, get_args

from fusec.base.dtypes import BOOL, BY_NAME, INT64, DType
from fusec.base.ops import SYMBOLS, TABLE, result_type
from fusec.base.records import replace
from fusec.ir import loops as ir
from fusec.ir.expr import Apply, Const, Expr, Lookup, Pointer, Space, Struct, Type, const, scalar_type, type_of
from fusec.ir.graph import Count, Graph, Input, Reduce
from fusec.ir.names import NameTable
from fusec.ir.tokens import Tokens


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


def parse_graph(text: str) -> Graph:
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
        self.expect("{")
        fields = []
        for _ in self.list("}"):
            part = self.name()
            self.expect(":")
            fields.append((part, self.dtype()))
        self.expect("\n")
        self.structs[name] = Struct(name, tuple(fields))

    def dtype(self) -> DType:
        """A dtype by name."""
        text = self.take("name")
        if text not in BY_NAME:
            raise self.error("a dtype")
        return BY_NAME[text]

    def type(self) -> Type:
        """A dtype, a struct or a pointer."""
        constant = self.accept("const")
        name = self.name()
        if name in self.structs:
            return self.structs[name]
        if name not in BY_NAME:
            raise self.error("a type")
        space: Space = "local" if self.accept("local") else "shared" if self.accept("shared") else "global"
        if self.accept("*"):
            return Pointer(BY_NAME[name], space, constant)
        return BY_NAME[name]

    def function(self, functions: Mapping[str, ir.Function]) -> ir.Function:
        """The rest of a function."""
        name = self.name()
        self.expect("(")
        params = []
        for _ in self.list(")"):
            param = self.name()
            self.expect(":")
            params.append((param, self.type()))
        result = self.type() if self.accept("->") else None
        self.names = NameTable(dict(functions), dict(params))
        self.expect("{")
        self.expect("\n")
        body = self.block()
        self.expect("\n")
        return ir.Function(name, tuple(params), result, body)

    def kernel(self, functions: Mapping[str, ir.Function]) -> ir.Program:
        """A kernel, which ends the text; of a block program ``block(16, 16)`` stands after the parameters."""
        self.expect("kernel")
        name = self.name()
        self.expect("(")
        params = tuple(self.param() for _ in self.list(")"))
        block: tuple[int, ...] = ()
        if self.accept("block"):
            self.expect("(")
            block = tuple(int(self.take("number")) for _ in self.list(")"))
        self.names = NameTable.of_kernel(params, functions)
        self.expect("{")
        self.expect("\n")
        body = self.block()
        self.expect("\n")
        self.take("end")
        return ir.Program(name, params, body, tuple(functions.values()), block=block)

    def param(self) -> ir.Param:
        """A kernel parameter: ``a: float32``, ``x: float32 array read``, ``h: int32 raw[1] read written``."""
        name = self.name()
        self.expect(":")
        dtype = self.dtype()
        raw = self.accept("raw")
        ndim = 0
        if raw:
            self.expect("[")
            ndim = int(self.take("number"))
            self.expect("]")
        elif not self.accept("array"):
            return ir.ScalarParam(name, dtype)
        read = self.accept("read")
        return ir.ArrayParam(name, dtype, raw, self.accept("written"), read, ndim)

    # --- graphs --------------------------------------------------------------------------------------------------

    def graph(self) -> Graph:
        """A graph, which ends the text."""
        self.expect("graph")
        name = self.name()
        self.expect("(")
        for _ in self.list(")"):
            variable = self.name()
            self.expect(":")
            self.names.inputs[variable] = Input(variable, self.dtype())
        self.expect("{")
        self.expect("\n")
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
        return Graph(name, tuple(self.names.inputs.values()), tuple(outputs), names, lines)

    # --- statements ----------------------------------------------------------------------------------------------

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
        if self.accept("if"):
            condition, line, then = self.head_and_block()
            return ir.If(condition, then, self.second_block("else"), line=line)
        test_first = self.accept("while")
        if test_first or self.accept("do_while"):
            condition, line, body = self.head_and_block()
            return ir.While(condition, body, self.second_block("step"), test_first, line=line)
        stmt = self.simple()
        return replace(stmt, line=self.line())

    def head_and_block(self) -> tuple[Expr, int, tuple[ir.Stmt, ...]]:
        """A condition, its line and the block it governs."""
        condition = self.expression()
        self.expect("{")
        line = self.line()
        return condition, line, self.block()

    def second_block(self, keyword: str) -> tuple[ir.Stmt, ...]:
        """The block after a keyword, or none."""
        body: tuple[ir.Stmt, ...] = ()
        if self.accept(keyword):
            self.expect("{")
            self.expect("\n")
            body = self.block()
        self.expect("\n")
        return body

    def simple(self) -> ir.Stmt:
        """A statement without blocks, up to its line mark."""
        if self.accept("let"):
            name = self.name()
            self.expect(":")
            return ir.Declare(name, self.type(), self.expression() if self.accept("=") else None)
        if self.accept("array"):
            return self.declare_array("local")
        if self.accept("shared"):
            return self.declare_array("shared")
        if self.accept("store"):
            pointer = self.expression()
            self.expect("=")
            return ir.Store(pointer, self.expression())
        if self.accept("shuffle"):
            name = self.name()
            self.expect("=")
            value = self.expression()
            self.expect("from")
            return ir.Shuffle(name, value, int(self.take("number")))
        if self.accept("atomic"):
            return self.atomic()
        if self.accept("do"):
            call = self.expression()
            assert isinstance(call, ir.Call), "do takes a call"
            return ir.CallStatement(call, self.name() if self.accept("->") else "")
        if self.accept("barrier"):
            return ir.Barrier()
        if self.accept("break"):
            return ir.Break()
        if self.accept("continue"):
            return ir.Continue()
        if self.accept("return"):
            ends = self.next_is("newline") or self.next_is("line")
            return ir.Return(None if ends else self.expression())
        name = self.name()
        part = self.name() if self.accept(".") else None
        self.expect("=")
        value = self.expression()
        return ir.Assign(name, value) if part is None else ir.SetField(name, part, value)

    def declare_array(self, space: Space) -> ir.Stmt:
        """The rest of a local or shared array."""
        name = self.name()
        self.expect(":")
        element = self.dtype()
        self.expect("[")
        length = int(self.take("number"))
        self.expect("]")
        values: tuple[Expr, ...] = ()
        if self.accept("="):
            self.expect("{")
            values = tuple(self.expression() for _ in self.list("}"))
        return ir.DeclareArray(name, element, length, values, space)

    def atomic(self) -> ir.Stmt:
        """The rest of an atomic update."""
        op = self.take("name")
        if op not in get_args(ir.AtomicOp):
            raise self.error("an atomic op")
        self.expect("(")
        pointer, *values = [self.expression() for _ in self.list(")")]
        return ir.Atomic(cast("ir.AtomicOp", op), pointer, tuple(values), self.name() if self.accept("->") else "")

    # --- expressions ---------------------------------------------------------------------------------------------

    def expression(self) -> Expr:
        """One expression; anything compound stands in parentheses or after a name."""
        if self.next_is("label"):
            return self.labels[self.take("label")]
        if self.accept("("):
            return self.parenthesis()
        if self.accept("&"):
            return self.address()
        for keyword, rule in (("call", self.call), ("make", self.make), ("field", self.field), ("lookup", self.lookup)):
            if self.accept(keyword):
                return rule()
        if self.accept("load"):
            self.expect("(")
            pointer = self.expression()
            self.expect(")")
            return ir.Load(pointer, cast("Pointer", type_of(pointer)).element)
        if self.accept("offset"):
            self.expect("(")
            pointer, distance = [self.expression() for _ in self.list(")")]
            return ir.Offset(pointer, distance, cast("Pointer", type_of(pointer)))
        if self.accept("reduce"):
            op = self.name()
            self.expect("(")
            value = self.expression()
            self.expect(")")
            return Reduce(op, value, scalar_type(value))
        if self.accept("count"):
            self.expect("(")
            self.expect(")")
            return Count(INT64)
        if self.accept("moved"):
            return self.moved()
        if self.accept("true"):
            return Const(1, BOOL)
        if self.accept("false"):
            return Const(0, BOOL)
        quoted = self.next_is("string")
        return self.named(self.name(), quoted)

    def parenthesis(self) -> Expr:
        """``(a + b)`` or ``(a : type)``, after the parenthesis."""
        left = self.untyped()
        if self.accept(":"):
            kind = self.type()
            self.expect(")")
            return replace(left, type=kind)  # type: ignore[call-arg]
        op = SYMBOLS.get(self.take("mark"))
        if op is None:
            raise self.error("an operator")
        right = self.expression()
        self.expect(")")
        return self.applied(op, (left, right), None)

    def untyped(self) -> Expr:
        """An expression whose type may follow; a name not declared stands for a local until then."""
        kind, text = self.tokens[self.at]
        if kind in ("name", "string") and self.tokens[self.at + 1] == ("mark", ":"):
            name = self.name()
            return (
                ir.Local(name, self.names.locals.get(name, BOOL)) if text not in ("true", "false") else Const(0, BOOL)
            )
        return self.expression()

    def applied(self, op: str, args: tuple[Expr, ...], target: DType | None) -> Expr:
        """An op with the type its rule gives, or a stand-in if a type follows."""
        types = tuple(type_of(arg) for arg in args)
        scalars = tuple(kind for kind in types if isinstance(kind, DType))
        known = op in TABLE and scalars and len(scalars) == len(types)
        return Apply(op, args, result_type(TABLE[op], scalars, target) if known else BOOL)

    def address(self) -> Expr:
        """What follows ``&``; ``element`` tells a parameter from a local array of its name."""
        is_param = self.accept("element")
        name = self.name()
        param = self.names.params.get(name)
        kind = Pointer(BOOL if param is None else param.dtype, "global")
        if self.accept("["):
            return ir.At(name, tuple(self.expression() for _ in self.list("]")), kind)
        if name in self.names.arrays and not is_param:
            return ir.LocalArray(name, self.names.arrays[name])
        return ir.Element(name, kind)

    def moved(self) -> Expr:
        """The rest of an element's address at another position."""
        self.expect("(")
        name = self.name()
        axes, distances = [], []
        while self.accept(","):
            axes.append(int(self.take("number")))
            self.expect(":")
            distances.append(self.expression())
        self.expect(")")
        return ir.Moved(name, tuple(axes), tuple(distances), Pointer(self.names.params[name].dtype, "global"))

    def call(self) -> Expr:
        """The rest of a call."""
        name = self.name()
        self.expect("(")
        args = tuple(self.expression() for _ in self.list(")"))
        function = self.names.functions.get(name)
        return ir.Call(name, args, BOOL if function is None or function.result is None else function.result)

    def lookup(self) -> Expr:
        """The rest of an entry of a constant table."""
        self.expect("(")
        index, *values = [self.expression() for _ in self.list(")")]
        return Lookup(tuple(cast("list[Const]", values)), index, scalar_type(values[0]))

    def make(self) -> Expr:
        """The rest of a struct value."""
        kind = self.structs[self.name()]
        self.expect("(")
        return ir.Make(tuple(self.expression() for _ in self.list(")")), kind)

    def field(self) -> Expr:
        """The rest of a field of a struct value."""
        self.expect("(")
        value = self.expression()
        self.expect(",")
        name = self.name()
        self.expect(")")
        kind = type_of(value)
        return ir.Field(value, name, dict(kind.fields).get(name, BOOL) if isinstance(kind, Struct) else BOOL)

    def named(self, name: str, quoted: bool) -> Expr:
        """What starts with a name: a query, an op, a constant, an input or a local."""
        if self.accept("."):
            return self.query("" if name == "_" and not quoted else name)
        if not quoted and name in ("convert", "bitcast"):
            self.expect("<")
            target = self.dtype()
            self.expect(">")
            self.expect("(")
            return self.applied(name, tuple(self.expression() for _ in self.list(")")), target)
        if not quoted and self.accept("("):
            if name in BY_NAME:
                return self.constant(BY_NAME[name])
            return self.applied(name, tuple(self.expression() for _ in self.list(")")), None)
        if name in self.labels:
            return self.labels[name]
        if name in self.names.inputs:
            return self.names.inputs[name]
        if name not in self.names.locals:
            raise self.error(f"a declared name, not {name}")
        return ir.Local(name, self.names.locals[name])

    def constant(self, dtype: DType) -> Expr:
        """The number in ``float32(0.1)``, after the parenthesis."""
        text = self.take("number")
        self.expect(")")
        if text.startswith("0x"):
            return Const(int(text, 16), dtype)
        return const(int(text) if dtype.is_integer else float(text), dtype)

    def query(self, param: str) -> Expr:
        """What follows the dot."""
        what = self.name()
        if what not in get_args(ir.Quantity):
            raise self.error("a quantity")
        axis = None
        if self.accept("["):
            axis = self.expression()
            self.expect("]")
        return ir.Query(param, cast("ir.Quantity", what), axis, INT64)
