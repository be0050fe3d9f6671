"""Statements of the loops IR as C text: loops restored, compound assignment, the user's lines as comments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fusec.base.dtypes import DType, real_type
from fusec.base.source import SourceFile, Span
from fusec.codegen.c_family import facts, ranges
from fusec.codegen.c_family.expressions import ExprPrinter
from fusec.codegen.c_family.names import ScopeNames
from fusec.codegen.c_family.pieces import OPERATORS, POSTFIX
from fusec.errors.targets import AtomicUnsupported
from fusec.ir import loops as ir
from fusec.ir.expr import Apply, Const, Expr, Pointer, Struct, Type, apply, type_of
from fusec.ir.update import updated
from fusec.ir.walk import fixed_names, operands

LOADED_AHEAD = 128  # bytes that a thread which walks an axis should be waiting for
ROUNDS_AT_ONCE = 8  # of such a walk; what is left of the rounds is loaded one by one
ALL_AT_ONCE = 16  # rounds up to which an outermost loop that indexes local arrays is unrolled completely

_COMPOUND = frozenset(
    {"add", "subtract", "multiply", "divide", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"}
)


class StmtPrinter:
    """Prints the body of one function into `lines`.

    leave: the statement that ends the work of an element, None in a function, which returns. in_loop: the same inside
    a loop of the user's, where `leave` would only reach that loop. types: of the parameters. selects: whether choices
    between a few operations compute both.
    """

    def __init__(
        self,
        expressions: ExprPrinter,
        scope: ScopeNames,
        source: SourceFile | None,
        leave: tuple[str, str] | None = None,
        types: Mapping[str, Type] | None = None,
    ) -> None:
        self.expressions, self.scope, self.source, self.leave = expressions, scope, source, leave
        self.selects = False
        self.lines: list[str] = []
        self._constant = set[str]()  # locals that never change
        self._types: dict[str, Type] = dict(types or {})
        self._shown = {0}  # lines of the user's text
        self._loops: list[tuple[ir.Stmt, ...]] = []  # the statements a `continue` must run first, innermost loop last

    # --- layout ----------------------------------------------------------------------------------------------

    def write(self, text: str, depth: int) -> None:
        """One line of text."""
        self.lines.append("    " * depth + text)

    def whole(self, body: Sequence[ir.Stmt], depth: int) -> None:
        """The body of the function."""
        self._constant = fixed_names(tuple(body))
        self.block(body, depth)

    def block(self, body: Sequence[ir.Stmt], depth: int) -> None:
        """A list of statements; a declaration followed by the loop that counts with it becomes a `for`."""
        at = 0
        while at < len(body):
            first, rest = body[at], body[at + 1 :]
            self._comment(first, depth)
            loop = _counted_loop(first, rest)
            if loop is not None:
                assert isinstance(first, ir.Declare), "only a declaration starts a counted loop"
                self._name(first)
                start = f"{self._type(first.type)}{self._initialised(first)}"
                ranges.pass_by(self.expressions.bounds, first)
                before = self._known
                self._loop(loop, depth, start)
                self._pass(loop, before)
                at += 2
            else:
                before = self._known
                self._statement(first, depth)
                self._pass(first, before)
                at += 1

    @property
    def _known(self) -> ranges.State:
        """What holds of locals here."""
        return dict(self.expressions.bounds.locals)

    def _know(self, known: ranges.State) -> None:
        """What holds of locals where the next text stands."""
        self.expressions.bounds.restore(known)

    def _pass(self, stmt: ir.Stmt, before: ranges.State) -> None:
        """Know what holds after a statement before which `before` did."""
        self._know(before)
        ranges.pass_by(self.expressions.bounds, stmt)

    def _comment(self, stmt: ir.Stmt, depth: int) -> None:
        """The user's line, before the first of its statements."""
        if self.source is None or stmt.line in self._shown:
            return
        self._shown.add(stmt.line)
        shown = harmless(self.source.line(stmt.line))
        if shown:
            self.write(f"// {stmt.line}: {shown}", depth)

    # --- statements ------------------------------------------------------------------------------------------

    def _statement(self, stmt: ir.Stmt, depth: int) -> None:
        if not isinstance(stmt, ir.While | ir.DeclareArray):
            self._name_shared(stmt, depth)
        match stmt:
            case ir.Declare():
                self._declare(stmt, depth)
            case ir.DeclareArray(name, space="shared" | "told"):
                self._fresh(name)  # the frame declares it for the whole block
            case ir.Barrier():
                self.write(self.expressions.spelling.barrier, depth)
            case ir.DeclareArray(name, element, length, values):
                items = ", ".join(self.expressions.text(value) for value in values)
                c_type = self.expressions.spelling.type(element)
                self.write(f"{c_type} {self._fresh(name)}[{length}] = {{{items}}};", depth)
            case ir.Assign():
                self.write(f"{self._assignment(stmt)};", depth)
            case ir.SetField():
                self.write(f"{self._set_field(stmt)};", depth)
            case ir.Store(pointer, value) if facts.is_told(pointer):
                place, told = self.expressions.place(pointer).value.text, self.expressions.text(value)
                self.write(f"{self.expressions.spelling.tell.format(place=place, value=told)};", depth)
            case ir.Store(pointer, value):
                self.write(f"{self._changing(pointer)}{self._store(pointer, value)};", depth)
            case ir.Atomic():
                self._atomic(stmt, depth)
            case ir.AtomicLoad(result, pointer):
                self.write(
                    f"{self.expressions.names[result]} = {self._atomic_call('load', pointer, (), stmt.line)};", depth
                )
            case ir.AtomicStore(pointer, value):
                self.write(f"{self._atomic_call('store', pointer, (value,), stmt.line)};", depth)
            case ir.Shuffle(result, value, distance):
                self.write(f"{self.expressions.names[result]} = {self._shuffled(value, distance)};", depth)
            case ir.CallStatement(call, result):
                target = f"{self.expressions.names[result]} = " if result else ""
                self.write(f"{self._changing()}{target}{self.expressions.piece(call).text};", depth)
            case ir.If():
                self._if(stmt, depth, "if")
            case ir.While():
                self._while(stmt, depth)
            case ir.Break():
                self.write("break;", depth)
            case ir.Continue():
                self.block(self._loops[-1], depth)
                self.write("continue;", depth)
            case ir.Return(value):
                self._return(value, depth)
            case _:
                raise AssertionError(f"cannot print {type(stmt).__name__}")
        self.expressions.forget()

    def _changing(self, pointer: Expr | None = None) -> str:
        """What comes before a statement that changes memory. pointer: where, if that is known."""
        kind, places = pointer and type_of(pointer), self.expressions.places
        is_own = isinstance(kind, Pointer) and kind.space == "local"
        return f"if ({places.only}) " if places and places.only and not is_own else ""

    def _shuffled(self, value: Expr, distance: int) -> str:
        """A value of another position of the group, a complex one by its parts."""
        dtype, text = type_of(value), self.expressions.piece(value).at(POSTFIX)
        assert isinstance(dtype, DType), "a shuffle takes a scalar"
        spelling = self.expressions.spelling
        template = spelling.shuffle(spelling.carrier(real_type(dtype)), distance)
        if not dtype.is_complex:
            return template.format(text)
        parts = ", ".join(template.format(f"{text}.{name}") for name in ("re", "im"))
        return f"{spelling.type(dtype)}{{{parts}}}"

    def _name_shared(self, stmt: ir.Stmt, depth: int) -> None:
        """Give a name to every value the statement would otherwise spell twice."""
        for value in facts.shared(operands(stmt), self.selects):
            self.expressions.prepare([value])
            c_type = self._type(type_of(value))
            text = self.expressions.text(value)
            name = self.scope.fresh("t")
            self.write(f"const {c_type}{name} = {text};", depth)
            self.expressions.named[value] = name
        self.expressions.prepare(operands(stmt))

    def _type(self, of: Type) -> str:
        """A C type, ready for the declared name to follow."""
        return self.expressions.spelling.type(of) + " "

    def _fresh(self, name: str) -> str:
        """The C name of a local; those of the user were given out before any other."""
        if name not in self.expressions.names:
            self.expressions.names[name] = self.scope.fresh(name)
        return self.expressions.names[name]

    def _name(self, stmt: ir.Declare) -> None:
        """Name a new local."""
        self._fresh(stmt.name)
        self._types[stmt.name] = stmt.type

    def _initialised(self, stmt: ir.Declare) -> str:
        """``name = value``."""
        value = self._zero(stmt.type) if stmt.value is None else self.expressions.text(stmt.value)
        return f"{self.expressions.names[stmt.name]} = {value}"

    def _zero(self, of: Type) -> str:
        match of:
            case DType():
                return self.expressions.text(Const(0, of))
            case Struct():
                return "{}"
            case Pointer():
                return "nullptr"

    def _declare(self, stmt: ir.Declare, depth: int) -> None:
        text = "" if stmt.value is None else self.expressions.text(stmt.value)
        self._name(stmt)
        const = "const " if stmt.name in self._constant and not isinstance(stmt.type, Pointer) else ""
        name = self.expressions.names[stmt.name]
        self.write(f"{const}{self._type(stmt.type)}{name} = {text or self._zero(stmt.type)};", depth)

    def _assignment(self, stmt: ir.Assign) -> str:
        """``x = value``, ``x += value`` or ``++x``."""
        name = self.expressions.names[stmt.name]
        return self._update(name, stmt.value, lambda value: isinstance(value, ir.Local) and value.name == stmt.name)

    def _set_field(self, stmt: ir.SetField) -> str:
        """``x.field = value``."""
        variable = ir.Local(stmt.name, self._types[stmt.name])
        place = f"{self.expressions.names[stmt.name]}.{self.expressions.field(variable, stmt.field)}"

        def is_old(value: Expr) -> bool:
            return isinstance(value, ir.Field) and value.value is variable and value.name == stmt.field

        return self._update(place, stmt.value, is_old)

    def _store(self, pointer: Expr, value: Expr) -> str:
        place = self.expressions.place(pointer).value.text
        return self._update(place, value, lambda value: isinstance(value, ir.Load) and value.pointer is pointer)

    def _update(self, place: str, value: Expr, is_place: Callable[[Expr], bool]) -> str:
        """A compound assignment where the plain operator means what fusec means and the old value stands first."""
        match value:
            case Apply(op, (old, operand)) if op in _COMPOUND and is_place(old) and value not in self.expressions.named:
                plain = self.expressions.piece(value).text
                symbol = OPERATORS[op][0]
                if value.type.kind not in ("complex", "bool") and plain.startswith(f"{place} {symbol} "):
                    if op in ("add", "subtract") and value.type.is_integer and _is_one(operand):
                        return f"{2 * symbol}{place}"
                    return f"{place} {symbol}= {self.expressions.text(operand)}"
        return f"{place} = {self.expressions.text(value)}"

    def _return(self, value: Expr | None, depth: int) -> None:
        if self.leave is None:
            self.write("return;" if value is None else f"return {self.expressions.text(value)};", depth)
        else:
            self.write(f"{self.leave[1] if self._loops else self.leave[0]};", depth)

    # --- structure -------------------------------------------------------------------------------------------

    def _if(self, stmt: ir.If, depth: int, keyword: str) -> None:
        condition, then, orelse = stmt.condition, stmt.then, stmt.orelse
        if not then and orelse:
            condition, then, orelse = apply("logical_not", condition), orelse, ()
        self.write(f"{keyword} ({self.expressions.text(condition)}) {{", depth)
        self.expressions.forget()
        bounds, before = self.expressions.bounds, self._known
        ranges.assume(bounds, condition, True)
        self.block(then, depth + 1)
        self._know(before)
        ranges.assume(bounds, condition, False)
        match orelse:
            case ():
                self.write("}", depth)
            case (ir.If() as inner,) if not facts.shared(operands(inner)):
                self._if(inner, depth, "} else if")
            case _:
                self.write("} else {", depth)
                self.block(orelse, depth + 1)
                self.write("}", depth)

    def _while(self, stmt: ir.While, depth: int) -> None:
        if stmt.test_first:
            self._loop(stmt, depth, "")
        else:
            self.write("do {", depth)
            known = ranges.analyse(self.expressions.bounds, stmt)
            self._know(known.body)
            self._inside(stmt.body, stmt.step, depth)
            self._know(known.test)
            self.expressions.prepare([stmt.condition])
            self.write(f"}} while ({self.expressions.text(stmt.condition)});", depth)

    def _loop(self, stmt: ir.While, depth: int, start: str) -> None:
        """A loop that tests first; `start` declares its counter."""
        known = ranges.analyse(self.expressions.bounds, stmt)
        self._know(known.test)
        self.expressions.prepare([stmt.condition])
        condition = self.expressions.text(stmt.condition)
        self.expressions.forget()
        match stmt.step:
            case (ir.Assign() as step,) if len(facts.shared([step.value])) == 0:
                fixed = facts.fixed_rounds(stmt)
                rounds = facts.rounds_at_once(stmt, LOADED_AHEAD, ROUNDS_AT_ONCE)
                is_short = fixed and fixed <= (ROUNDS_AT_ONCE if self._loops else ALL_AT_ONCE) and facts.indexes(stmt)
                if fixed and (is_short or stmt.unrolled):
                    rounds = fixed  # otherwise the arrays would not be in registers
                if rounds > 1:
                    self.write(f"#pragma unroll{'' if fixed and fixed <= rounds else f' {rounds}'}", depth)
                head = f"for ({start}; {condition}; "
                self._know(known.step)
                self.expressions.prepare([step.value])
                self.write(f"{head}{self._assignment(step)}) {{", depth)
                self.expressions.forget()
                self._know(known.body)
                self._inside(stmt.body, (), depth)
            case _:
                self.write(f"while ({condition}) {{", depth)
                self._know(known.body)
                self._inside(stmt.body, stmt.step, depth)
        self.write("}", depth)

    def _inside(self, body: Sequence[ir.Stmt], step: tuple[ir.Stmt, ...], depth: int) -> None:
        self._loops.append(step)
        self.block(body, depth + 1)
        self.block(step, depth + 1)
        self._loops.pop()

    # --- atomics ---------------------------------------------------------------------------------------------

    def _atomic(self, stmt: ir.Atomic, depth: int) -> None:
        pointer = type_of(stmt.pointer)
        assert isinstance(pointer, Pointer), "an atomic needs an address"
        if pointer.space == "local":
            self._private_update(stmt, depth)
            return
        call = self._atomic_call(stmt.op, stmt.pointer, stmt.values, stmt.line, wanted=bool(stmt.result))
        target = f"{self.expressions.names[stmt.result]} = " if stmt.result else ""
        self.write(f"{self._changing()}{target}{call};", depth)

    def _atomic_call(self, op: str, place: Expr, values: Sequence[Expr], line: int, *, wanted: bool = True) -> str:
        """An atomic access to global or shared memory. wanted: whether its result is used."""
        spelling, pointer = self.expressions.spelling, type_of(place)
        assert isinstance(pointer, Pointer), "an atomic needs an address"
        dtype, space = self.expressions.updated_as(place)
        template = spelling.atomic(op, dtype, wanted, space)
        if template is None:
            span = line_span(self.source, line)
            raise AtomicUnsupported(op, pointer.element.name, spelling.target).at(span)
        address = self.expressions.place(place).address.text
        return template.format(*(self.expressions.text(value) for value in values), p=address)

    def _private_update(self, stmt: ir.Atomic, depth: int) -> None:
        """A local array belongs to one thread: a plain read, then a plain write."""
        element = type_of(stmt.pointer)
        assert isinstance(element, Pointer), "an atomic needs an address"
        c_type = self._type(element.element)
        place = self.expressions.place(stmt.pointer).value.text
        old = self.scope.fresh("old")
        self.write(f"const {c_type}{old} = {place};", depth)
        self.expressions.names[old] = old
        value = updated(stmt.op, ir.Local(old, element.element), stmt.values)
        self.write(f"{place} = {self.expressions.text(value)};", depth)
        if stmt.result:
            self.write(f"{self.expressions.names[stmt.result]} = {old};", depth)


def harmless(text: str) -> str:
    """A line of the user's text, made safe for a comment: a backslash at its end would continue it."""
    return "".join(char if char.isascii() and char.isprintable() else "?" for char in text.strip()).rstrip("\\ ")


def _is_one(value: Expr) -> bool:
    return isinstance(value, Const) and value.bits == 1


def _counted_loop(first: ir.Stmt, rest: Sequence[ir.Stmt]) -> ir.While | None:
    """The loop after a declaration, if its step is one assignment to that variable and nothing else uses it."""
    match first, rest[0] if rest else None:
        case ir.Declare(counter), ir.While(step=(ir.Assign(name),), test_first=True) as loop if name == counter:
            return None if isinstance(first.type, Struct) or facts.mentions(rest[1:], name) else loop
        case _:
            return None


def line_span(source: SourceFile | None, line: int) -> Span | None:
    """The whole of a line of the user's text."""
    if source is None or not 0 < line <= len(source.line_starts):
        return None
    start = source.line_starts[line - 1]
    text = source.line(line)
    indent = len(text) - len(text.lstrip())
    return Span(source, start + indent, start + len(text.rstrip()))
