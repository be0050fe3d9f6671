"""Statements and functions: control flow made structured."""

from __future__ import annotations

from fusec.dtypes import BOOL, DType
from fusec.errors.language import BadDeclaration, BadReturn, Fallthrough, Misplaced
from fusec.frontends import syntax as s
from fusec.frontends.arithmetic import binary
from fusec.frontends.c_types import CType, PointerTo, Void, show
from fusec.frontends.declarations import Declarations
from fusec.frontends.frame import MAX_STATEMENTS
from fusec.frontends.slips import check_effect
from fusec.frontends.symbols import Address, PointerVariable, Variable
from fusec.frontends.unit import Template
from fusec.ir.expr import Const, Expr, Pointer, Struct, Type, apply, const, scalar_type, type_of
from fusec.ir.loops import (
    Assign,
    Atomic,
    Break,
    CallStatement,
    Continue,
    Declare,
    Function,
    If,
    Local,
    Make,
    Return,
    SetField,
    Stmt,
    While,
)
from fusec.records import dataclass

TRUE, FALSE = const(True, BOOL), const(False, BOOL)
MAX_LADDER = 8  # sections of a switch that become nested ifs

Lowered = tuple[list[s.Case], tuple[Stmt, ...]]


@dataclass
class Context:
    """A loop, or a switch that was made one so that ``break`` can leave it. flag: set by a ``continue`` inside."""

    is_switch: bool = False
    flag: Local | None = None


class Statements(Declarations):
    """Lowers statements. result: what the function returns, None for the kernel itself."""

    result: CType | None = None
    exits: tuple[Stmt, ...] = ()  # the kernel's stores at the end of an element's work
    resumes = False  # an `after_loop` follows, to which `continue` goes
    left_early = False  # such a `continue` was met

    @property
    def contexts(self) -> list[Context]:
        """The loops and switches around, innermost last."""
        found: list[Context] = self.__dict__.setdefault("_contexts", [])
        return found

    def statements(self, body: tuple[s.Statement, ...]) -> None:
        """Lower statements in the current scope."""
        for node in body:
            self.statement(node)

    def statement(self, node: s.Statement) -> None:
        """Lower one statement."""
        if not isinstance(node, (s.Empty, s.Block)):
            self.line, self.span = self.at(node), node.span
        with self.nested(node.span, "statements", MAX_STATEMENTS):
            match node:
                case s.Evaluate(value=value):
                    check_effect(value, self.unit.functions)
                    self.effect(value)
                case s.Declaration():
                    self.declaration(node)
                case s.Block(body=body):
                    with self.scope():
                        self.statements(body)
                case s.If():
                    self._if(node)
                case s.Loop():
                    with self.scope():
                        self._loop(node)
                case s.Switch():
                    self._switch(node)
                case s.Jump(word=word):
                    self._jump(word, node)
                case s.Return():
                    self._return(node)
                case s.Alias(name=name, type=kind):
                    self.types[-1][name] = self.resolve(kind)
                case s.Empty():
                    pass

    def _branch(self, node: s.Statement | None) -> tuple[Stmt, ...]:
        with self.block() as body, self.scope():
            if node is not None:
                self.statement(node)
        return tuple(body)

    def _if(self, node: s.If) -> None:
        line = self.line
        condition = self.condition(node.condition)
        then, orelse = self._branch(node.then), self._branch(node.orelse)
        self.emit(If(condition, then, orelse, line=line))

    # --- loops ---

    def _loop(self, node: s.Loop) -> None:
        if isinstance(node.init, s.Evaluate):
            self.line = self.at(node)
            self.effect(node.init.value)
        elif node.init is not None:
            self.statement(node.init)
        self.line = line = self.at(node)
        with self.block() as effects:
            condition = self.condition(node.condition) if node.condition is not None else TRUE
        self.contexts.append(Context())
        body = self._branch(node.body)
        self.contexts.pop()
        self.line = line
        with self.block() as step:
            if node.step is not None:
                self.effect(node.step)
        if not effects:
            self.emit(While(condition, body, tuple(step), node.test_first, line=line))
        elif node.test_first:
            leave = If(apply("logical_not", condition), (Break(line=line),), line=line)
            self.emit(While(TRUE, (*effects, leave, *body), tuple(step), line=line))
        else:
            again = self.variable(BOOL, "_again")
            test = (*effects, Assign(again.name, condition, line=line))
            self.emit(While(again, body, test, test_first=False, line=line))

    def _jump(self, word: str, node: s.Jump) -> None:
        if word == "break":
            if not self.contexts:
                cure = "to end this element's work, use return or continue" if self.result is None else "use return"
                raise Misplaced("break", "a loop or switch", cure).at(node.span)
            self.emit(Break(line=self.line))
            return
        if not self.contexts:
            if self.result is not None:
                raise Misplaced("continue", "a loop", "use return").at(node.span)
            if self.resumes:
                self.left_early = True
                self.emit(Break(line=self.line))
            else:
                self.leave()
        elif self.contexts[-1].is_switch:
            if all(context.is_switch for context in self.contexts) and not self.resumes:
                self.leave()
                return
            context = self.contexts[-1]
            context.flag = context.flag or Local(self.fresh("_continue"), BOOL)
            self.emit(Assign(context.flag.name, TRUE, line=self.line))
            self.emit(Break(line=self.line))
        else:
            self.emit(Continue(line=self.line))

    def leave(self) -> None:
        """End this element's work."""
        self.blocks[-1].extend(self.exits)
        self.emit(Return(line=self.line))

    # --- switch ---

    def _switch(self, node: s.Switch) -> None:
        line = self.line
        value = self.value(node.value)
        if not isinstance(value, Const):
            value = self.temporary(value, "_case")
        sections = _sections(node)
        self._check_labels(value, sections)
        wraps = any(_has_break(each) for _, body in sections for each in body)
        if wraps:
            self.contexts.append(Context(is_switch=True))
        flat = len(sections) > MAX_LADDER
        levels = wraps + (1 if flat else len(sections))
        self.extra += levels
        lowered = [(labels, self._branch(s.Block(node.span, body))) for labels, body in sections]
        self.extra -= levels
        chain = self._flat(value, lowered, line) if flat else self._ladder(value, lowered, line)
        if not wraps:
            self.blocks[-1].extend(chain)
            return
        context = self.contexts.pop()
        if context.flag is not None:
            self.emit(Declare(context.flag.name, BOOL, line=line))
        self.emit(While(TRUE, (*chain, Break(line=line)), line=line))
        if context.flag is not None:
            with self.block() as resumed:
                self._jump("continue", s.Jump(node.span, "continue"))
            self.emit(If(context.flag, tuple(resumed), line=line))

    def _ladder(self, value: Expr, sections: list[Lowered], line: int) -> tuple[Stmt, ...]:
        """The sections as if, else if, ..., else."""
        chain: tuple[Stmt, ...] = ()
        for labels, body in sections:
            if any(label.value is None for label in labels):
                chain = body
        for labels, body in reversed(sections):
            if not any(label.value is None for label in labels):
                chain = (If(self._matches(value, labels), body, chain, line=line),)
        return chain

    def _flat(self, value: Expr, sections: list[Lowered], line: int) -> tuple[Stmt, ...]:
        """Many sections as one if after another, since they exclude each other; ``default`` is what no other took."""
        with self.block() as chain:
            other = self.temporary(TRUE, "_other")
            rest: tuple[Stmt, ...] = ()
            for labels, body in sections:
                if any(label.value is None for label in labels):
                    rest = body
                else:
                    taken = Assign(other.name, FALSE, line=line)
                    self.emit(If(self._matches(value, labels), (taken, *body), line=line))
            self.emit(If(other, rest, line=line))
        return tuple(chain)

    def _matches(self, value: Expr, labels: list[s.Case]) -> Expr:
        """Whether a value is one of the labels."""
        tests: list[Expr] = []
        for label in labels:
            assert label.value is not None, "default matches what no label does"
            tests.append(binary("==", value, self._label(value, label), label.span))
        found = tests[0]
        for test in tests[1:]:
            found = self.bounded(apply("logical_or", found, test))
        return found

    def _label(self, value: Expr, label: s.Case) -> Const:
        """A case label in the promoted type of the switch."""
        assert label.value is not None, "default has no value"
        known = self.constant(label.value, "a case label")
        return const(int(known.value), scalar_type(binary("+", value, value, label.span)))

    def _check_labels(self, value: Expr, sections: list[Section]) -> None:
        """Raises BadDeclaration if two labels are the same."""
        seen: set[Const | None] = set()
        for label in (label for labels, _ in sections for label in labels):
            known = None if label.value is None else self._label(value, label)
            if known in seen:
                shown = "default" if known is None else f"case {known.value}"
                raise BadDeclaration(f"'{shown}' stands twice in this switch", "remove one").at(label.span)
            seen.add(known)

    # --- functions ---

    def _return(self, node: s.Return) -> None:
        if self.result is None:
            if node.value is not None:
                raise BadReturn("the operation returns no value", "assign to an output parameter").at(node.span)
            self.leave()
            return
        if isinstance(self.result, Void):
            if node.value is not None:
                raise BadReturn("this function returns void", "declare a result type").at(node.span)
            self.emit(Return(line=self.line))
            return
        if node.value is None:
            raise BadReturn(f"a value of type {show(self.result)} must be returned", "write return value;").at(
                node.span
            )
        self.emit(Return(self._result(node.value), line=self.line))

    def _result(self, node: s.Expression | s.Braced) -> Expr:
        match self.result:
            case DType() | Struct() as kind:
                return (
                    self.braced(node, kind)
                    if isinstance(node, s.Braced)
                    else self.converted(self.value(node), kind, node.span)
                )
            case PointerTo() if not isinstance(node, s.Braced):
                found = self.address(node)
                pointer = type_of(found.pointer)
                assert isinstance(pointer, Pointer), "addresses are pointers"
                if pointer.space == "local":
                    raise BadReturn("a local array ends with its function", "pass the array as an argument").at(
                        node.span
                    )
                return found.pointer
            case _:
                raise BadReturn(f"{show(self.result or Void())} cannot be returned", "name a scalar or struct").at(
                    node.span
                )

    def function(
        self, function: s.FunctionDef, name: str, params: tuple[CType, ...], types: tuple[Type, ...]
    ) -> Template:
        """Lower a device function for the types of its arguments."""
        assert function.body is not None, "mere declarations are not called"
        self.result = self.resolve(function.result)
        names = [self._bind_parameter(*each) for each in zip(function.params, params, types, strict=False)]
        with self.scope():
            self.statements(function.body.body)
        body = [*self.prologue, *self.blocks[0]]
        result = self._result_type()
        if result is not None and not _ends(body):
            body += self._zero_result(result)
        final = self._copied(names, types, body)
        text = function.span.file.line(function.span.line).strip()
        made = Function(name, tuple(zip(final, types, strict=True)), result, tuple(body), text)
        return Template(made, self.impure)

    def _bind_parameter(self, parameter: s.Parameter, kind: CType, type_: Type) -> str:
        name = self.fresh(parameter.name or "_unused")
        reason = f"constant '{parameter.name}'" if parameter.type.const else ""
        if not parameter.name:
            return name
        match kind, type_:
            case PointerTo(reference=True, element=element), Pointer():
                self.bind(parameter.name, Address(Local(name, type_), element, reason), parameter.span)
            case PointerTo(element=element), Pointer():
                self.bind(parameter.name, PointerVariable(name, element, reason, type_), parameter.span)
            case DType() | Struct(), _:
                if parameter.name in self.unit.addressed and isinstance(kind, DType):
                    memory = self.fresh(f"{name}_ref")
                    self.bind(parameter.name, self.in_memory(memory, kind, Local(name, kind), reason), parameter.span)
                else:
                    self.bind(parameter.name, Variable(name, kind, reason), parameter.span)
        return name

    def _result_type(self) -> Type | None:
        match self.result:
            case DType() | Struct() as kind:
                return kind
            case PointerTo(element=element, const=is_const):
                return Pointer(element, "global", is_const)
            case _:
                return None

    def _zero_result(self, result: Type) -> list[Stmt]:
        """A function that ends without return gives zero."""
        match result:
            case DType():
                return [Return(const(0, result))]
            case Struct(fields=fields):
                return [Return(Make(tuple(const(0, dtype) for _, dtype in fields), result))]
            case Pointer():
                null = Local(self.fresh("_null"), result)
                return [Declare(null.name, result), Return(null)]

    def _copied(self, names: list[str], types: tuple[Type, ...], body: list[Stmt]) -> list[str]:
        """Parameter names; one that the body assigns to is copied to a local first."""
        changed = assigned(body)
        final: list[str] = []
        copies: list[Stmt] = []
        for name, type_ in zip(names, types, strict=True):
            given = self.fresh(f"{name}_in") if name in changed else name
            final.append(given)
            if given != name:
                copies.append(Declare(name, type_, Local(given, type_)))
        body[:0] = copies
        return final


def assigned(body: list[Stmt] | tuple[Stmt, ...]) -> set[str]:
    """The locals that statements assign to, declarations aside."""
    found: set[str] = set()
    pending = list(body)
    while pending:
        match pending.pop():
            case Assign(name=name) | SetField(name=name) | Atomic(result=name) | CallStatement(result=name):
                found.add(name)
            case If(then=then, orelse=orelse):
                pending += [*then, *orelse]
            case While(body=inner, step=step):
                pending += [*inner, *step]
    return found


def _ends(body: list[Stmt] | tuple[Stmt, ...]) -> bool:
    """True if control cannot run off the end."""
    if not body:
        return False
    match body[-1]:
        case Return():
            return True
        case If(then=then, orelse=orelse):
            return _ends(then) and _ends(orelse)
        case While(condition=condition, body=inner):
            return condition is TRUE and not _breaks(inner)
        case _:
            return False


def _breaks(body: tuple[Stmt, ...]) -> bool:
    """True if statements leave the loop they stand in."""
    for statement in body:
        match statement:
            case Break():
                return True
            case If(then=then, orelse=orelse):
                if _breaks(then) or _breaks(orelse):
                    return True
    return False


Section = tuple[list[s.Case], tuple[s.Statement, ...]]


def _sections(node: s.Switch) -> list[Section]:
    """The labels and statements of each section, without the ``break`` at its end. Raises Fallthrough."""
    found: list[tuple[list[s.Case], list[s.Statement]]] = []
    for item in node.items:
        if isinstance(item, s.Case):
            if not found or found[-1][1]:
                found.append(([], []))
            found[-1][0].append(item)
        elif found:
            found[-1][1].append(item)
        else:
            raise Misplaced("this statement", "a case", "a switch starts with case or default").at(item.span)
    sections: list[Section] = []
    for at, (labels, body) in enumerate(found):
        trimmed = _without_break(tuple(body))
        if at + 1 < len(found) and trimmed == tuple(body) and not _leaves(trimmed):
            raise Fallthrough().at(labels[-1].span)
        sections.append((labels, trimmed))
    return sections


def _without_break(body: tuple[s.Statement, ...]) -> tuple[s.Statement, ...]:
    body = tuple(each for each in body if not isinstance(each, s.Empty))
    match body[-1:]:
        case (s.Jump(word="break"),):
            return body[:-1]
        case (s.Block(span=span, body=inner),):
            return (*body[:-1], s.Block(span, _without_break(inner)))
    return body


def _leaves(body: tuple[s.Statement, ...]) -> bool:
    match body[-1:]:
        case (s.Return() | s.Jump(),):
            return True
        case (s.Block(body=inner),):
            return _leaves(inner)
        case (s.If(then=then, orelse=orelse),) if orelse is not None:
            return _leaves((then,)) and _leaves((orelse,))
    return False


def _has_break(node: s.Statement | None) -> bool:
    """True if a ``break`` inside belongs to the switch around it."""
    match node:
        case s.Jump(word=word):
            return word == "break"
        case s.Block(body=body):
            return any(_has_break(each) for each in body)
        case s.If(then=then, orelse=orelse):
            return _has_break(then) or _has_break(orelse)
        case _:
            return False
