"""Statements to the loops IR: assignments, branches, loops and returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fusec.base.diagnostics import counted
from fusec.base.dtypes import BOOL, DType
from fusec.base.source import Span
from fusec.errors.base import FusecError
from fusec.errors.checks import AssertionAfterTheCheck
from fusec.errors.language import NoEffect, NotAValue
from fusec.errors.python import BadTarget, CannotUnpack, NotInSubset, ReturnsDiffer
from fusec.frontends.python import name_usage
from fusec.frontends.python import syntax as s
from fusec.frontends.python import values as v
from fusec.frontends.python.annotations import dtype_of
from fusec.frontends.python.arithmetic import binary
from fusec.frontends.python.arrays import is_array, store_item
from fusec.frontends.python.blocks import effect
from fusec.frontends.python.dtype_calls import cast
from fusec.frontends.python.expressions import PythonExpressions
from fusec.frontends.python.function_context import FunctionContext, Variables
from fusec.frontends.python.loops import LoopLowering
from fusec.frontends.python.sequences import parts_of
from fusec.frontends.python.types import Kind, conversion, join
from fusec.ir.expr import Const, Expr, Struct, apply
from fusec.ir.loops import ASSERT, Assign, Call, CallStatement, If
from fusec.ir.walk import expressions

MAX_NESTED = 30  # branches that take in what follows them; half the bound of nesting


class Ending(Protocol):
    """The treatment of a function's results at its end."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Their types."""

    def places(self) -> list[tuple[str, DType | Struct]]:
        """Names and types of the locals that keep them until the one end of a function of several returns."""

    def final(self, values: tuple[v.Scalar, ...]) -> tuple[Expr, ...]:
        """The results as these locals hold them."""

    def give(self, context: FunctionContext, found: tuple[Expr, ...]) -> None:
        """End the function with them."""


class PythonStatements:
    """Lowers the statements of a function."""

    def __init__(self, context: FunctionContext, ending: Ending | None = None, ends: int = 1) -> None:
        PythonExpressions(context)
        self.context = context
        self.ending = ending  # None while the types of the results are found
        self.ends = ends  # how many returns there are; several that need not return at once leave results in `kept`
        self.loops = LoopLowering(context, self.body, self.assign)
        self.returning: Callable[[s.ReturnNode], None] = self._return
        self.returned: list[tuple[tuple[v.Scalar, ...], bool, Span]] = []  # values, whether a tuple, and where
        places = ending.places() if ending is not None and ends > 1 else ()
        self.kept = tuple(context.declare(name, kind) for name, kind in places)

    def body(self, statements: s.Body) -> None:
        """Lower statements in order, up to the end of control flow."""
        for at, statement in enumerate(statements):
            if not self.context.reachable:
                return
            self.context.line = statement.span.line if statement.span.file == self.context.kernel.source else 0
            try:
                if not isinstance(statement, s.IfNode):
                    self.statement(statement)
                elif self._if(statement, statements[at + 1 :]):
                    return
            except FusecError as problem:
                raise v.placed(problem, statement.span) from None

    def statement(self, node: s.Statement) -> None:
        """One statement."""
        match node:
            case s.AssignNode(targets=targets, value=value):
                found = effect(self.context, value, wanted=True) or self.context.value(value)
                if len(targets) > 1 and any(isinstance(target, s.Index) for target in targets):
                    found = self.context.copied("value", found)
                for target in targets:
                    self.assign(target, found)
            case s.Augment():
                self._augment(node)
            case s.Annotate():
                self._annotate(node)
            case s.Evaluate(value=value):
                self._evaluate(value)
            case s.WhileNode():
                self.loops.repeat(node)
            case s.For():
                self.loops.walk(node)
            case s.BreakNode() | s.ContinueNode():
                self.loops.jump(node)
            case s.ReturnNode():
                self.returning(node)
            case s.Assert(condition=condition):
                test = self.context.test(condition)
                if self.context.kernel.definition.checked:
                    if self.context.kernel.reduces and not self.context.of_element:
                        raise AssertionAfterTheCheck(self.context.kernel.definition.name).at(node.span)
                    self.context.emit(CallStatement(Call(ASSERT, (test,), BOOL), line=self.context.line))
            case s.IfNode():
                self._if(node, ())
            case s.FunctionNode(name=name, params=params):
                defaults = tuple(
                    (each.name, self.context.value(each.default)) for each in params if each.default is not None
                )
                self.context.bind(name, v.Closure(name, self.context.key, node, defaults), node.span)
            case s.Pass():
                pass

    # --- assignments ---

    def assign(self, target: s.Expression, value: v.Value) -> None:
        """``target = value``. Raises BadTarget or CannotUnpack."""
        match target:
            case s.Name(name=name):
                self.context.bind(name, value, target.span)
            case s.Tuple(items=targets):
                parts = parts_of(value, target.span)
                if parts is None or len(parts) != len(targets):
                    cure = "write as many names as there are values"
                    raise CannotUnpack(v.show(value), len(targets), cure).at(target.span)
                kept = [self._apart(each, item, targets) for each, item in zip(targets, parts, strict=True)]
                for each, item in zip(targets, kept, strict=True):
                    self.assign(each, item)
            case s.Index():
                store_item(self.context, target, value)
            case _:
                raise BadTarget("this", "assign to a name").at(target.span)

    def _apart(self, target: s.Expression, value: v.Value, targets: tuple[s.Expression, ...]) -> v.Value:
        """A value of several assigned at once, safe from the assignments to the other names."""
        bound = [self.context.variables.get(each.name) for each in targets if isinstance(each, s.Name)]
        held = {each.value.expr for each in bound if each is not None and isinstance(each.value, v.Scalar)}
        stores = any(isinstance(each, s.Index) for each in targets)
        if not isinstance(value, v.Scalar) or stores or not held.isdisjoint(expressions((value.expr,))):
            name = target.name if isinstance(target, s.Name) else "item"
            return self.context.copied(f"{name}_new", value)
        return value

    def _augment(self, node: s.Augment) -> None:
        indexed = isinstance(node.target, s.Index) and is_array(self.context, node.target.value)
        if not isinstance(node.target, s.Name) and not indexed:
            self.assign(node.target, v.literal(0))
        value = binary(node.op, self.context.scalar(node.target), self.context.scalar(node.value), node.place)
        self.assign(node.target, value)

    def _annotate(self, node: s.Annotate) -> None:
        dtype = dtype_of(node.annotation, self.context.kernel, self.context.key)
        if node.value is None:
            return
        value = effect(self.context, node.value, wanted=True) or self.context.value(node.value)
        if dtype is not None:
            if not isinstance(value, v.Scalar):
                raise CannotUnpack(v.show(value), 1, "annotate one number").at(node.value.span)
            value = cast(value, dtype, node.value.span)
        self.assign(node.target, value)

    def _evaluate(self, node: s.Expression) -> None:
        if isinstance(node, s.String) or effect(self.context, node, wanted=False) is not None:
            return
        self.context.value(node)
        raise NoEffect("assign the value, or return it").at(node.span)

    # --- branches ---

    def _if(self, node: s.IfNode, rest: s.Body) -> bool:
        """A branch. rest: what follows in the same block; True if it has been lowered as well.

        Where nothing follows but the end of the function, and one way returns, the rest belongs to the other way, so
        that the function ends in one place.
        """
        context = self.context
        test = context.test(node.condition)
        if isinstance(test, Const):
            self.body((*(node.then if test.bits else node.orelse), *rest))
            return True
        tail = context.tail and not context.loops and len(context.blocks) < MAX_NESTED
        ends, others_end = tail and name_usage.ends(node.then), tail and name_usage.ends(node.orelse)
        then_body = (*node.then, *rest) if others_end and not ends else node.then
        else_body = (*node.orelse, *rest) if ends else node.orelse
        outer, context.tail = context.tail, tail and (ends or others_end or not rest)
        line, start = context.line, dict(context.variables)
        with context.block(node.span) as then, context.arm(start, {}):
            self.body(then_body)
            twins = context.declared_since(start) if context.reachable else {}
        first, first_goes_on = context.variables, context.reachable
        with context.block(node.span) as orelse, context.arm(start, twins):
            self.body(else_body)
        context.line, context.tail = line, outer
        context.hoist_shared(then)
        if first_goes_on and context.reachable:
            context.meet(((first, then), (context.variables, orelse)), node.span)
            context.emit(If(test, tuple(then), tuple(orelse), line=line))
            return ends or others_end
        if ends or others_end or (tail and not rest):
            context.reachable = first_goes_on or context.reachable
            context.emit(If(test, tuple(then), tuple(orelse), line=line))
            return True
        if first_goes_on:
            context.emit(If(apply("logical_not", test), tuple(orelse), line=line))
            self._again(start, node.then)
        else:
            context.emit(If(test, tuple(then), line=line))
            self._again(start, node.orelse)
        return False

    def _again(self, start: Variables, body: s.Body) -> None:
        """Lower the way that goes on in the block of the if itself."""
        context = self.context
        outer, context.tail = context.tail, False
        context.variables, context.reachable = start, True
        self.body(body)
        context.tail = outer

    # --- returns ---

    def _return(self, node: s.ReturnNode) -> None:
        value = None if node.value is None else self.context.value(node.value)
        parts = self._returned_parts(value, node)
        self.returned.append((parts, isinstance(value, v.Items), node.span))
        if self.ending is not None:
            values = zip(parts, self.ending.kinds, strict=True)
            self._finish(self.ending, tuple(v.adapt(part, kind, node.span) for part, kind in values))
        self.context.reachable = False

    def _returned_parts(self, value: v.Value | None, node: s.ReturnNode) -> tuple[v.Scalar, ...]:
        span = node.value.span if node.value is not None else node.span
        items = (value,) if value is None else v.items_of(value)
        if not items:
            raise NotInSubset("returning an empty tuple is", "return at least one number").at(span)
        found: list[v.Scalar] = []
        for item in items:
            item = None if item is None else self.context.element(item, span)
            if isinstance(item, (v.Builtin, v.UserFunction, v.Closure, v.Method, v.Type)):
                raise NotAValue(v.show(item), "call it, and return a number, or a tuple of numbers").at(span)
            if not isinstance(item, v.Scalar):
                shown = "nothing" if item is None else v.show(item)
                raise NotInSubset(f"returning {shown} is", "return a number, or a tuple of numbers").at(span)
            found.append(item)
        return tuple(found)

    def _finish(self, ending: Ending, values: tuple[v.Scalar, ...]) -> None:
        """Give the results now, or keep them until the one end of the function."""
        found = ending.final(values)
        if self.ends == 1 or self.context.loops or not self.context.tail:
            ending.give(self.context, found)
            return
        for local, value in zip(self.kept, found, strict=True):
            self.context.emit(Assign(local.name, value, line=self.context.line))

    def complete(self) -> None:
        """After the body: return the kept results."""
        if self.kept and self.ending is not None:
            self.context.line = 0
            self.ending.give(self.context, self.kept)

    def results(self) -> tuple[Kind, ...]:
        """The joined types of the returned values. Raises ReturnsDiffer."""
        (first, first_is_tuple, first_span), *others = self.returned
        kinds = [each.type for each in first]
        for parts, is_tuple, span in others:
            if len(parts) != len(first) or is_tuple != first_is_tuple:
                cure = "return the same number of values everywhere"
                raise self._differ(len(first), first_span, len(parts), span, cure)
            for at, part in enumerate(parts):
                kind = join(kinds[at], part.type)
                if kind is None:
                    cure = conversion(kinds[at], part.type, "...")
                    raise self._differ(kinds[at], first_span, part.type, span, cure)
                kinds[at] = kind
        return tuple(kinds)

    def _differ(self, first: object, first_span: Span, second: object, span: Span, cure: str) -> Exception:
        shown = [counted(each, "value") if isinstance(each, int) else str(each) for each in (first, second)]
        return ReturnsDiffer(self.context.tree.name, shown[0], first_span.line, shown[1], span.line, cure).at(span)
