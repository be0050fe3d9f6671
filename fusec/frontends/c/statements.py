"""Statements and functions: control flow made structured."""

from __future__ import annotations

from fusec.base.dtypes import BOOL, INT64, DType
from fusec.base.records import replace
from fusec.errors.language import (
    BadDeclaration,
    BadReturn,
    Fallthrough,
    Misplaced,
    NotSupported,
)
from fusec.frontends.c import syntax as s
from fusec.frontends.c.arithmetic import binary
from fusec.frontends.c.bodies import FALSE, TRUE, FunctionLowering
from fusec.frontends.c.c_types import Auto, PointerTo, Void, show
from fusec.frontends.c.frame import BreakTarget, FunctionFrame
from fusec.frontends.c.symbols import LocalArrayOf
from fusec.frontends.c.warnings import check_effect
from fusec.frontends.lowering import MAX_STATEMENTS
from fusec.ir import loops as ir
from fusec.ir.expr import Const, Expr, Pointer, Struct, apply, const, scalar_type, type_of

MAX_LADDER = 8  # sections of a switch that become nested ifs
MAX_CHAIN, CHAIN_PIECE = 40, 16  # links of ``else if`` that become nested ifs; else pieces of so many do

Lowered = tuple[list[s.Case], tuple[ir.Stmt, ...]]


class StatementLowering:
    """Lowers statements."""

    def __init__(self, frame: FunctionFrame) -> None:
        self.frame, self.bodies = frame, FunctionLowering(frame)
        self.declarations, self.expressions = self.bodies.declarations, self.bodies.expressions
        self.lvalues, self.storage, self.types = self.expressions.lvalues, self.bodies.storage, self.bodies.types
        frame.equip, frame.statements = StatementLowering, self.statements

    def statements(self, body: s.Body) -> None:
        """Lower statements in the current scope."""
        for node in body:
            self.statement(node)

    def statement(self, node: s.Statement) -> None:
        """Lower one statement."""
        if not isinstance(node, (s.Pass, s.BlockStmt)):
            self.frame.line, self.frame.span = self.frame.at(node), node.span
        with self.frame.nested(node.span, "statements", MAX_STATEMENTS):
            match node:
                case s.Evaluate(value=value):
                    check_effect(value, self.frame.unit.functions)
                    self.expressions.effect(value)
                case s.Declaration():
                    self.declarations.declaration(node)
                case s.BlockStmt(body=body):
                    with self.frame.scope():
                        self.statements(body)
                case s.IfNode():
                    self._if(node)
                case s.LoopStmt():
                    with self.frame.scope():
                        self._loop(node)
                case s.RangeLoop():
                    with self.frame.scope():
                        self._range_loop(node)
                case s.Switch():
                    self._switch(node)
                case s.BreakNode():
                    self._break(node)
                case s.ContinueNode():
                    self._continue(node)
                case s.ReturnNode():
                    self._return(node)
                case s.Alias(name=name, type=kind):
                    self.frame.types[-1][name] = self.types.resolve(kind)
                case s.StructDef() if node.templates is None:
                    self.frame.types[-1][node.name] = self.types.define(node, {}, node.name)
                case s.EnumDef():
                    self.types.enumeration(node)
                case s.Pass():
                    pass

    def _branch(self, nodes: s.Body) -> tuple[ir.Stmt, ...]:
        with self.frame.block() as body, self.frame.scope():
            self.statements(nodes)
        return tuple(body)

    def _if(self, node: s.IfNode) -> None:
        links, orelse = _chain(node)
        if len(links) > MAX_CHAIN:
            self._long_chain(links, orelse)
            return
        line = self.frame.line
        condition = self.expressions.condition(node.condition)
        then, rest = self._branch(node.then), self._branch(node.orelse)
        self.frame.emit(ir.If(condition, then, rest, line=line))

    def _long_chain(self, links: list[s.IfNode], orelse: s.Body) -> None:
        """Many ``else if`` in pieces, each of which runs if the ones before found nothing, so that none nests deep."""
        pieces = [links[at : at + CHAIN_PIECE] for at in range(0, len(links), CHAIN_PIECE)]
        flags = [self.frame.temporary(FALSE, "_else") for _ in pieces[1:]]
        for at, piece in enumerate(pieces):
            with self.frame.block() as body:
                self._links(piece, orelse if at == len(flags) else flags[at])
            self.frame.emit(*([ir.If(flags[at - 1], tuple(body), line=self.frame.line)] if at else body))

    def _links(self, links: list[s.IfNode], last: s.Body | ir.Local) -> None:
        """A chain that ends in a statement, or in setting a flag."""
        node, line = links[0], self.frame.at(links[0])
        self.frame.line, self.frame.span = line, node.span
        condition = self.expressions.condition(node.condition)
        then = self._branch(node.then)
        with self.frame.block() as rest, self.frame.scope():
            if len(links) > 1:
                self._links(links[1:], last)
            elif isinstance(last, ir.Local):
                self.frame.emit(ir.Assign(last.name, TRUE, line=line))
            else:
                self.statements(last)
        self.frame.emit(ir.If(condition, then, tuple(rest), line=line))

    # --- loops ---

    def _loop(self, node: s.LoopStmt) -> None:
        if isinstance(node.init, s.Evaluate):
            self.frame.line = self.frame.at(node)
            self.expressions.effect(node.init.value)
        elif node.init is not None:
            self.statement(node.init)
        self.frame.line = line = self.frame.at(node)
        with self.frame.block() as effects:
            condition = self.expressions.condition(node.condition) if node.condition is not None else TRUE
        self.frame.break_targets.append(BreakTarget())
        body = self._branch(node.body)
        self.frame.break_targets.pop()
        self.frame.line = line
        with self.frame.block() as step:
            if node.step is not None:
                self.expressions.effect(node.step)
        if not effects:
            self.bodies.repeat(ir.While(condition, body, tuple(step), node.test_first, line=line))
        elif node.test_first:
            leave = ir.If(apply("logical_not", condition), (ir.Break(line=line),), line=line)
            self.bodies.repeat(ir.While(TRUE, (*effects, leave, *body), tuple(step), line=line))
        else:
            again = self.frame.variable(BOOL, "_again")
            test = (*effects, ir.Assign(again.name, condition, line=line))
            self.bodies.repeat(ir.While(again, body, test, test_first=False, line=line))

    def _range_loop(self, node: s.RangeLoop) -> None:
        """``for (T x : array)``; a reference is another name for the element, all else a copy."""
        array, at = self._range(node), self.frame.variable(INT64, "_at")
        (length, *inner), line = array.lengths, self.frame.at(node)
        if inner:
            cure = "loop over its rows by an index"
            raise NotSupported(f"a loop over the rows of '{array.name}' is", cure).at(node.values.span)
        kind = self.types.resolve(node.type)
        self.frame.break_targets.append(BreakTarget())
        with self.frame.block() as body, self.frame.scope():
            place = self.lvalues.local_at(array, at)
            reason = array.const or (f"constant '{node.name}'" if node.type.const else "")
            if "&" in node.type.marks and (not node.type.const or isinstance(kind, Auto)):
                self.frame.bind(node.name, replace(place, const=reason), node.span)
            else:
                element = array.element if isinstance(kind, Auto) else kind
                element = element.element if isinstance(element, PointerTo) else element
                if not isinstance(element, (DType, Struct)):
                    raise BadDeclaration(f"'{node.name}' cannot be {show(kind)}", "name a scalar").at(node.type.span)
                value = self.storage.converted(self.storage.load(place), element, node.span)
                self.declarations.declare_variable(s.Declarator(node.span, node.name, "", ()), element, value, reason)
            self.statements(node.body)
        self.frame.break_targets.pop()
        step = ir.Assign(at.name, apply("add", at, const(1, INT64)), line=line)
        self.bodies.repeat(ir.While(apply("less", at, const(length, INT64)), tuple(body), (step,), line=line))

    def _range(self, node: s.RangeLoop) -> LocalArrayOf:
        """The array that a loop goes over. Raises BadDeclaration."""
        match node.values:
            case s.Name() as name if isinstance(found := self.declarations.array_of(name), LocalArrayOf):
                return found
            case s.Braced(elements=(_, *_) as elements) as braced:
                kind = self.types.resolve(replace(node.type, marks=""))
                if isinstance(kind, Auto):
                    with self.frame.block():
                        kind = self.types.type_of_node(elements[0]) if not isinstance(elements[0], s.Braced) else kind
                declared = s.Declarator(braced.span, "_values", "", (None,), braced)
                return self.declarations.declare_array(
                    s.Declaration(braced.span, node.type, (declared,)), declared, kind, ""
                )
        cure = "loop over a local array, or over values: for (int k : {1, 2, 3})"
        raise BadDeclaration("a loop over something that is not an array", cure).at(node.values.span)

    def _break(self, node: s.BreakNode) -> None:
        if not self.frame.break_targets:
            cure = (
                "use return" if self.frame.result is not None else "to end this element's work, use return or continue"
            )
            raise Misplaced("break", "a loop or switch", cure).at(node.span)
        self.frame.emit(ir.Break(line=self.frame.line))

    def _continue(self, node: s.Statement) -> None:
        frame, targets = self.frame, self.frame.break_targets
        if not targets and frame.result is not None:
            raise Misplaced("continue", "a loop", "use return").at(node.span)
        if all(target.is_switch for target in targets) and (not targets or not frame.resumes):
            if frame.resumes:
                frame.left_early = True
                frame.emit(ir.Break(line=frame.line))
            else:
                self.leave()
        elif targets[-1].is_switch:
            flag = targets[-1].flag = targets[-1].flag or ir.Local(frame.fresh("_continue"), BOOL)
            frame.set(flag, TRUE)
            frame.emit(ir.Break(line=frame.line))
        else:
            frame.emit(ir.Continue(line=frame.line))

    def leave(self) -> None:
        """End this element's work."""
        self.frame.emit(*self.frame.exits)
        self.frame.emit(ir.Return(line=self.frame.line))

    # --- switch ---

    def _switch(self, node: s.Switch) -> None:
        line = self.frame.line
        value = self.expressions.value(node.value)
        if not isinstance(value, Const):
            value = self.frame.temporary(value, "_case")
        sections = _sections(node)
        self._check_labels(value, sections)
        wraps = any(_has_break(body) for _, body in sections)
        if wraps:
            self.frame.break_targets.append(BreakTarget(is_switch=True))
        flat = len(sections) > MAX_LADDER
        levels = wraps + (1 if flat else len(sections))
        self.frame.extra += levels
        lowered = [(labels, self._branch((s.BlockStmt(node.span, body),))) for labels, body in sections]
        self.frame.extra -= levels
        chain = self._flat(value, lowered, line) if flat else self._ladder(value, lowered, line)
        if not wraps:
            self.frame.emit(*chain)
            return
        context = self.frame.break_targets.pop()
        if context.flag is not None:
            self.frame.emit(ir.Declare(context.flag.name, BOOL, line=line))
        self.bodies.repeat(ir.While(TRUE, (*chain, ir.Break(line=line)), line=line))
        if context.flag is not None:
            with self.frame.block() as resumed:
                self._continue(node)
            self.frame.emit(ir.If(context.flag, tuple(resumed), line=line))

    def _ladder(self, value: Expr, sections: list[Lowered], line: int) -> tuple[ir.Stmt, ...]:
        """The sections as if, else if, ..., else."""
        chain: tuple[ir.Stmt, ...] = ()
        for labels, body in sections:
            if any(label.value is None for label in labels):
                chain = body
        for labels, body in reversed(sections):
            if not any(label.value is None for label in labels):
                chain = (ir.If(self._matches(value, labels), body, chain, line=line),)
        return chain

    def _flat(self, value: Expr, sections: list[Lowered], line: int) -> tuple[ir.Stmt, ...]:
        """Many sections as one if after another, since they exclude each other; ``default`` is what no other took."""
        with self.frame.block() as chain:
            other = self.frame.temporary(TRUE, "_other")
            rest: tuple[ir.Stmt, ...] = ()
            for labels, body in sections:
                if any(label.value is None for label in labels):
                    rest = body
                else:
                    taken = ir.Assign(other.name, FALSE, line=line)
                    self.frame.emit(ir.If(self._matches(value, labels), (taken, *body), line=line))
            self.frame.emit(ir.If(other, rest, line=line))
        return tuple(chain)

    def _matches(self, value: Expr, labels: list[s.Case]) -> Expr:
        """Whether a value is one of the labels."""
        tests: list[Expr] = []
        for label in labels:
            assert label.value is not None, "default matches all other values"
            tests.append(binary("==", value, self._label(value, label), label.span))
        found = tests[0]
        for test in tests[1:]:
            found = self.frame.bounded(apply("logical_or", found, test))
        return found

    def _label(self, value: Expr, label: s.Case) -> Const:
        """A case label in the promoted type of the switch."""
        assert label.value is not None, "default has no value"
        known = self.types.constant(label.value, "a case label")
        return const(int(known.value), scalar_type(binary("+", value, value, label.span)))

    def _check_labels(self, value: Expr, sections: list[Section]) -> None:
        """Raises BadDeclaration if two labels are the same."""
        seen: set[Const | None] = set()
        for label in (label for labels, _ in sections for label in labels):
            known = None if label.value is None else self._label(value, label)
            if known in seen:
                shown = "default" if known is None else f"case {known.value}"
                raise BadDeclaration(f"'{shown}' appears twice in this switch", "remove one").at(label.span)
            seen.add(known)

    # --- functions ---

    def _return(self, node: s.ReturnNode) -> None:
        if self.frame.result is None:
            if node.value is not None:
                raise BadReturn("the operation returns no value", "assign to an output parameter").at(node.span)
            self.leave()
            return
        if self.frame.made is not None and node.value is None:
            self.frame.emit(ir.Return(self.storage.load(self.frame.made), line=self.frame.line))
            return
        if isinstance(self.frame.result, Void):
            if node.value is not None:
                raise BadReturn("this function returns void", "declare a result type").at(node.span)
            self.bodies.give(None)
            return
        if node.value is None:
            raise BadReturn(f"a value of type {show(self.frame.result)} must be returned", "write return value;").at(
                node.span
            )
        self.bodies.give(self._result(node.value))

    def _result(self, node: s.Expression) -> Expr:
        match self.frame.result:
            case DType() | Struct() as kind:
                return (
                    self.expressions.braced(node, kind)
                    if isinstance(node, s.Braced)
                    else self.storage.converted(self.expressions.value(node), kind, node.span)
                )
            case PointerTo() if not isinstance(node, s.Braced):
                found = self.lvalues.address(node)
                pointer = type_of(found.pointer)
                assert isinstance(pointer, Pointer), "addresses are pointers"
                if pointer.space == "local":
                    raise BadReturn("a local array ends with its function", "pass the array as an argument").at(
                        node.span
                    )
                return found.pointer
            case _:
                raise BadReturn(
                    f"{show(self.frame.result or Void())} cannot be returned", "name a scalar or struct"
                ).at(node.span)


def _chain(node: s.IfNode) -> tuple[list[s.IfNode], s.Body]:
    """All of ``if``, ``else if``, ... and what the last ``else`` does."""
    links = [node]
    while True:
        match links[-1].orelse:
            case (s.IfNode() as following,):
                links.append(following)
            case last:
                return links, last


Section = tuple[list[s.Case], s.Body]


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


def _without_break(body: s.Body) -> s.Body:
    body = tuple(each for each in body if not isinstance(each, s.Pass))
    match body[-1:]:
        case (s.BreakNode(),):
            return body[:-1]
        case (s.BlockStmt(span=span, body=inner),):
            return (*body[:-1], s.BlockStmt(span, _without_break(inner)))
    return body


def _leaves(body: s.Body) -> bool:
    match body[-1:]:
        case (s.ReturnNode() | s.BreakNode() | s.ContinueNode(),):
            return True
        case (s.BlockStmt(body=inner),):
            return _leaves(inner)
        case (s.IfNode(then=then, orelse=orelse),):
            return _leaves(then) and _leaves(orelse)
    return False


def _has_break(body: s.Body) -> bool:
    """True if a ``break`` inside belongs to the switch around it."""
    for node in body:
        match node:
            case s.BreakNode():
                return True
            case s.BlockStmt(body=inner) if _has_break(inner):
                return True
            case s.IfNode(then=then, orelse=orelse) if _has_break(then) or _has_break(orelse):
                return True
    return False
