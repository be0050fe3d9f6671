"""Statements to the loops IR: assignments, branches, loops and returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fusec.base.dtypes import BOOL, DType
from fusec.base.records import replace
from fusec.base.source import Span
from fusec.errors.base import FusecError
from fusec.errors.checks import AssertionAfterTheCheck
from fusec.errors.language import Misplaced, NoEffect, NotAValue
from fusec.errors.python import BadTarget, CannotUnpack, NotInSubset, ReturnsDiffer
from fusec.frontends.python import name_usage
from fusec.frontends.python import syntax as s
from fusec.frontends.python.annotations import dtype_of
from fusec.frontends.python.arithmetic import binary
from fusec.frontends.python.loops import Loops
from fusec.frontends.python.sequences import parts_of
from fusec.frontends.python.types import Kind, join
from fusec.frontends.python.values import (
    Builtin,
    Closure,
    Items,
    Method,
    Neighbours,
    Scalar,
    Type,
    UserFunction,
    Value,
    adapt,
    literal,
    placed,
    show,
)
from fusec.frontends.python.variables import Loop, Variables
from fusec.ir.expr import Const, Expr, apply, const
from fusec.ir.loops import ASSERT, Break, Call, CallStatement, Continue, If, Stmt, While
from fusec.ir.walk import expressions

TRUE = const(True, BOOL)
MAX_NESTED = 30  # branches that take in what follows them; half the bound of nesting
MAX_TRIALS = 16  # each widens a type of some variable, and there are few to widen to


class Statements(Loops):
    """Lowers statements. returned: every value returned so far, with its place.

    of_element: these are what a reduction makes of each element.
    """

    of_element = False
    result: tuple[Kind, ...] | None = None  # the types of the results; None while they are found

    def body(self, statements: s.Body) -> None:
        """Statements in order, up to where control ends."""
        for at, statement in enumerate(statements):
            if not self.reachable:
                return
            self.line = statement.span.line if statement.span.file == self.unit.source else 0
            try:
                if not isinstance(statement, s.If):
                    self.statement(statement)
                elif self._if(statement, statements[at + 1 :]):
                    return
            except FusecError as problem:
                raise placed(problem, statement.span) from None

    def statement(self, node: s.Statement) -> None:
        """One statement."""
        match node:
            case s.Assign(targets=targets, value=value):
                found = self.effect(value, wanted=True) or self.value(value)
                if len(targets) > 1 and any(isinstance(target, s.Index) for target in targets):
                    found = self.copied("value", found)
                for target in targets:
                    self.assign(target, found)
            case s.Augment():
                self._augment(node)
            case s.Annotate():
                self._annotate(node)
            case s.Evaluate(value=value):
                self._evaluate(value)
            case s.While():
                self._while(node)
            case s.For():
                self.walk(node)
            case s.Break() | s.Continue():
                self._jump(node)
            case s.Return():
                self.end(node)
            case s.Assert(condition=condition):
                test = self.test(condition)
                if self.unit.definition.checked:
                    if self.unit.reduces and not self.of_element:
                        raise AssertionAfterTheCheck(self.unit.definition.name).at(node.span)
                    self.emit(CallStatement(Call(ASSERT, (test,), BOOL), line=self.line))
            case s.If():
                self._if(node, ())
            case s.Function(name=name, params=params):
                defaults = tuple((each.name, self.value(each.default)) for each in params if each.default is not None)
                self.bind(name, Closure(name, self.key, node, defaults), node.span)
            case s.Pass():
                pass

    # --- assignments ---

    def assign(self, target: s.Expression, value: Value) -> None:
        """``target = value``. Raises BadTarget or CannotUnpack."""
        match target:
            case s.Name(name=name):
                self.bind(name, value, target.span)
            case s.Tuple(items=targets):
                parts = parts_of(value, target.span)
                if parts is None or len(parts) != len(targets):
                    cure = "write as many names as there are values"
                    raise CannotUnpack(show(value), len(targets), cure).at(target.span)
                kept = [self._apart(each, item, targets) for each, item in zip(targets, parts, strict=True)]
                for each, item in zip(targets, kept, strict=True):
                    self.assign(each, item)
            case s.Index():
                self.store_item(target, value)
            case _:
                raise BadTarget("this", "assign to a name").at(target.span)

    def _apart(self, target: s.Expression, value: Value, targets: tuple[s.Expression, ...]) -> Value:
        """A value of several assigned at once, safe from the assignments to the other names."""
        bound = [self.variables.get(each.name) for each in targets if isinstance(each, s.Name)]
        held = {each.value.expr for each in bound if each is not None and isinstance(each.value, Scalar)}
        stores = any(isinstance(each, s.Index) for each in targets)
        if not isinstance(value, Scalar) or stores or not held.isdisjoint(expressions((value.expr,))):
            name = target.name if isinstance(target, s.Name) else "item"
            return self.copied(f"{name}_new", value)
        return value

    def _augment(self, node: s.Augment) -> None:
        indexed = isinstance(node.target, s.Index) and self.is_array(node.target.value)
        if not isinstance(node.target, s.Name) and not indexed:
            self.assign(node.target, literal(0))
        value = binary(node.op, self.scalar(node.target), self.scalar(node.value), node.place)
        self.assign(node.target, value)

    def _annotate(self, node: s.Annotate) -> None:
        dtype = dtype_of(node.annotation, self.unit, self.key)
        if node.value is None:
            return
        value = self.effect(node.value, wanted=True) or self.value(node.value)
        if dtype is not None:
            if not isinstance(value, Scalar):
                raise CannotUnpack(show(value), 1, "annotate one number").at(node.value.span)
            value = self.cast(value, dtype, node.value.span)
        self.assign(node.target, value)

    def _evaluate(self, node: s.Expression) -> None:
        if isinstance(node, s.String) or self.effect(node, wanted=False) is not None:
            return
        self.value(node)
        raise NoEffect("assign the value, or return it").at(node.span)

    # --- branches ---

    def _if(self, node: s.If, rest: s.Body) -> bool:
        """A branch. rest: what follows in the same block; True if it has been lowered as well.

        Where nothing follows but the end of the function, and one way returns, the rest belongs to the other way, so
        that the function ends in one place.
        """
        test = self.test(node.condition)
        if isinstance(test, Const):
            self.body((*(node.then if test.bits else node.orelse), *rest))
            return True
        tail = self.tail and not self.loops and len(self.blocks) < MAX_NESTED
        ends, others_end = tail and name_usage.ends(node.then), tail and name_usage.ends(node.orelse)
        then_body = (*node.then, *rest) if others_end and not ends else node.then
        else_body = (*node.orelse, *rest) if ends else node.orelse
        outer, self.tail = self.tail, tail and (ends or others_end or not rest)
        line, start = self.line, dict(self.variables)
        with self.block(node.span) as then, self.arm(start, {}):
            self.body(then_body)
            twins = self.declared_since(start) if self.reachable else {}
        first, first_goes_on = self.variables, self.reachable
        with self.block(node.span) as orelse, self.arm(start, twins):
            self.body(else_body)
        self.line, self.tail = line, outer
        self.hoist_shared(then)
        if first_goes_on and self.reachable:
            self.meet(((first, then), (self.variables, orelse)), node.span)
            self.emit(If(test, tuple(then), tuple(orelse), line=line))
            return ends or others_end
        if ends or others_end or (tail and not rest):
            self.reachable = first_goes_on or self.reachable
            self.emit(If(test, tuple(then), tuple(orelse), line=line))
            return True
        if first_goes_on:
            self.emit(If(apply("logical_not", test), tuple(orelse), line=line))
            self._again(start, node.then)
        else:
            self.emit(If(test, tuple(then), line=line))
            self._again(start, node.orelse)
        return False

    def _again(self, start: Variables, body: s.Body) -> None:
        """Lower the way that goes on in the block of the if itself."""
        outer, self.tail = self.tail, False
        self.variables, self.reachable = start, True
        self.body(body)
        self.tail = outer

    # --- loops ---

    def _while(self, node: s.While) -> None:
        self.loop(
            node.span, name_usage.assigned(node.body), lambda: self.test(node.condition), lambda: None, node.body, ()
        )

    def loop(
        self,
        span: Span,
        changed: Mapping[str, None],
        condition: Callable[[], Expr],
        begin: Callable[[], None],
        body: s.Body,
        step: tuple[Stmt, ...],
    ) -> None:
        """A loop, lowered again until the types assumed for the variables that it changes are those it gives them."""
        entry, line = dict(self.variables), self.line
        kinds: dict[str, Kind] = {}
        for name in changed:
            binding = entry.get(name)
            if binding is not None and not binding.missing:
                if not isinstance(binding.value, Scalar):
                    cure = "keep its parts in variables of their own"
                    raise NotInSubset(f"'{name}', {show(binding.value)} that a loop changes, is", cure).at(binding.span)
                kinds[name] = binding.value.type
        exits: dict[str, Kind] = {}
        point = self.checkpoint()
        for _ in range(MAX_TRIALS):
            loop = self.enter(kinds, exits, span)
            head = dict(self.variables)
            test, endless = self._round(loop, span, condition, begin, body, step, line)
            left = (
                {name: kind for name, kind in self.exits_of(loop, span).items() if name in changed} if endless else {}
            )
            if loop.kinds == kinds and left == exits:
                break
            kinds, exits = loop.kinds, left
            self.back_to(point)
        else:
            raise AssertionError("the types of a loop's variables settle")
        del test
        self.variables = head
        self.reachable = bool(loop.breaks) or not endless
        for name in changed:
            if name in loop.left:
                self.variables[name] = replace(loop.breaks[0][name], value=loop.left[name])
            elif name not in loop.carried:
                known = next((each[name] for each in (*loop.breaks, self._last) if name in each), None)
                if known is not None:
                    self.variables[name] = replace(known, missing="loop")

    def _round(
        self,
        loop: Loop,
        span: Span,
        condition: Callable[[], Expr],
        begin: Callable[[], None],
        body: s.Body,
        step: tuple[Stmt, ...],
        line: int,
    ) -> tuple[Expr, bool]:
        """Emit the loop for the types assumed; its condition, and whether only breaks end it."""
        self.loops.append(loop)
        with self.block(span) as statements:
            test = condition()
            endless = isinstance(test, Const) and test.bits != 0
            if statements:  # the condition needs statements of its own in every round
                self.emit(If(apply("logical_not", test), (Break(line=line),), line=line))
                shown: Expr = TRUE
            else:
                shown = test
            begin()
            self.body(body)
            if self.reachable:
                self.turn(loop, span)
            self._last = dict(self.variables)
        self.loops.pop()
        self.line = line
        self.emit(While(shown, tuple(statements), step, line=line))
        return test, endless

    def _jump(self, node: s.Break | s.Continue) -> None:
        word = "break" if isinstance(node, s.Break) else "continue"
        if not self.loops:
            raise Misplaced(word, "a loop", "return ends the function").at(node.span)
        if word == "break":
            self.leave(self.loops[-1], node.span)
            self.emit(Break(line=self.line))
        else:
            self.turn(self.loops[-1], node.span)
            self.emit(Continue(line=self.line))
        self.reachable = False

    # --- returns ---

    def end(self, node: s.Return) -> None:
        """``return``."""
        value = None if node.value is None else self.value(node.value)
        parts = self._returned_parts(value, node)
        self.returned.append((parts, isinstance(value, Items), node.span))
        if self.result is not None:
            self.finish(tuple(adapt(part, kind, node.span) for part, kind in zip(parts, self.result, strict=True)))
        self.reachable = False

    def _returned_parts(self, value: Value | None, node: s.Return) -> tuple[Scalar, ...]:
        span = node.value.span if node.value is not None else node.span
        items = value.items if isinstance(value, Items) else (value,)
        if not items:
            raise NotInSubset("returning an empty tuple is", "return at least one number").at(span)
        found: list[Scalar] = []
        for item in items:
            if isinstance(item, Neighbours):
                item = self.element(item, (), span)
            if isinstance(item, (Builtin, UserFunction, Closure, Method, Type)):
                raise NotAValue(show(item), "call it, and return a number, or a tuple of numbers").at(span)
            if not isinstance(item, Scalar):
                shown = "nothing" if item is None else show(item)
                raise NotInSubset(f"returning {shown} is", "return a number, or a tuple of numbers").at(span)
            found.append(item)
        return tuple(found)

    def finish(self, values: tuple[Scalar, ...]) -> None:
        """End the function with its results; what that means differs between a kernel and a device function."""
        raise NotImplementedError

    def results(self) -> tuple[Kind, ...]:
        """The types of what has been returned, joined. Raises ReturnsDiffer."""
        (first, first_is_tuple, first_span), *others = self.returned
        kinds = [each.type for each in first]
        for parts, is_tuple, span in others:
            if len(parts) != len(first) or is_tuple != first_is_tuple:
                cure = "return the same number of values everywhere"
                raise self._differ(len(first), first_span, len(parts), span, cure)
            for at, part in enumerate(parts):
                kind = join(kinds[at], part.type)
                if kind is None:
                    dtype = next((each for each in (part.type, kinds[at]) if isinstance(each, DType)), kinds[at])
                    raise self._differ(kinds[at], first_span, part.type, span, f"convert one, e.g. np.{dtype}(...)")
                kinds[at] = kind
        return tuple(kinds)

    def _differ(self, first: object, first_span: Span, second: object, span: Span, cure: str) -> Exception:
        shown = [f"{each} value{'s' * (each != 1)}" if isinstance(each, int) else str(each) for each in (first, second)]
        return ReturnsDiffer(self.tree.name, shown[0], first_span.line, shown[1], span.line, cure).at(span)
