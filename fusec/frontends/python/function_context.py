"""One function being lowered: what its variables hold on the way so far, how ways meet, and what has been emitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from fusec.base.dtypes import INT64
from fusec.base.records import dataclass, field, replace
from fusec.base.source import Span
from fusec.errors.language import NotAValue, TooDeep
from fusec.errors.python import NotInSubset, TypeChanges
from fusec.frontends.lowering import MAX_STATEMENTS, StatementBuilder
from fusec.frontends.python import name_usage
from fusec.frontends.python import syntax as s
from fusec.frontends.python import values as v
from fusec.frontends.python.arithmetic import condition
from fusec.frontends.python.kernel_context import Instance, KernelContext, Other
from fusec.frontends.python.types import Kind, carrier, conversion, join
from fusec.ir.expr import Expr, Type
from fusec.ir.loops import Assign, Declare, Local, Stmt
from fusec.ir.walk import expressions as walk


@dataclass(frozen=True)
class Binding:
    """The contents of a variable, and the place of its assignment; missing: "" or the statement without it."""

    value: v.Value
    span: Span
    missing: str = ""


Variables = dict[str, Binding]


@dataclass
class Loop:
    """A loop that is lowered on an assumption, and the findings so far.

    carried: variables that it changes, in the locals that hold them from round to round. left: variables that every
    way out by break has, likewise. kinds, exits: the types that these turn out to need.
    """

    carried: dict[str, v.Scalar]
    left: dict[str, v.Scalar]
    kinds: dict[str, Kind]
    spans: dict[str, Span]
    breaks: list[Variables] = field(default_factory=list)


@dataclass(frozen=True)
class Checkpoint:
    """The state of a function's lowering before a trial."""

    length: int
    taken: frozenset[str]
    counts: dict[str, int]
    variables: Variables
    mutable: frozenset[str]


class Neighbourhood(Protocol):
    """The meaning of an array's index in a stencil."""

    def element(self, array: v.Neighbours, offsets: tuple[v.Scalar, ...], span: Span) -> v.Scalar:
        """An element of an array or a neighbour of it."""

    def offsets_of(self, node: s.Expression) -> tuple[v.Scalar, ...]:
        """The offsets of an index."""


class FunctionContext(StatementBuilder):
    """The facts about one function at the current point, and its statements so far.

    Expressions, statements, calls and loops are lowered by functions and objects that are handed one.
    """

    temporary_name = "part"
    value: Callable[[s.Expression], v.Value]  # lowers an expression; set by what does
    instantiate: Callable[[KernelContext, v.UserFunction | v.Closure, dict[str, v.Value]], Instance]  # lowers a callee
    neighbourhood: Neighbourhood  # of a stencil

    def __init__(self, kernel: KernelContext, key: str, tree: s.FunctionNode, taken: Iterable[str]) -> None:
        super().__init__(set(taken))
        self.kernel = kernel  # what all functions of the kernel share
        self.key, self.tree = key, tree  # of the function, in the kernel
        self.local_names = frozenset(name_usage.assigned(tree.body))
        self.in_grid = False  # the loop over the grid has begun, in which alone there are blocks
        self.of_element = False  # this is what a reduction makes of each element
        self.tail = True  # nothing follows but the end of the function
        self.copies = 1  # how often what is being lowered stands in the kernel
        self.variables: Variables = {}
        self.reachable = True
        self.loops: list[Loop] = []
        self._mutable: set[str] = set()
        self._twins: list[dict[str, v.Scalar]] = []  # what the arm of an if before this one declared
        self._shared: set[str] = set()  # locals that both arms of an if assign

    # --- expressions ---

    def captured(self, name: str) -> v.Value | Other | None:
        """The value of a free name of the function; None if nothing was found."""
        return self.kernel.captured(self.key, name)

    def scalar(self, node: s.Expression) -> v.Scalar:
        """A value that must be a number. Raises NotAValue for anything else."""
        return self.number(self.value(node), node)

    def number(self, found: v.Value, node: s.Expression) -> v.Scalar:
        """A value that must be a number, found for an expression. Raises NotAValue for anything else."""
        found = self.element(found, node.span)
        if isinstance(found, (v.ArrayParameter, v.Table)):
            raise NotAValue(v.show(found), "index it: a kernel computes with numbers").at(node.span)
        if not isinstance(found, v.Scalar):
            raise NotAValue(v.show(found), _number_from(found)).at(node.span)
        return found

    def element(self, found: v.Value, span: Span) -> v.Value:
        """A value; of an array of a stencil its current element."""
        return self.neighbourhood.element(found, (), span) if isinstance(found, v.Neighbours) else found

    def indices(self, node: s.Expression) -> list[v.Scalar]:
        """The numbers of an index, of which tuples in it are several. Raises NotAValue."""
        parts = node.items if isinstance(node, s.Tuple) else (node,)
        return [self.number(each, part) for part in parts for each in v.items_of(self.value(part))]

    def test(self, node: s.Expression) -> Expr:
        """An expression as a condition."""
        return condition(self.scalar(node))

    # --- statements ---

    @contextmanager
    def block(self, span: Span) -> Iterator[list[Stmt]]:
        """Collect statements separately. Raises TooDeep."""
        self.blocks.append([])
        try:
            yield self.blocks[-1]
        finally:
            self.blocks.pop()
        if len(self.blocks) > MAX_STATEMENTS:
            raise TooDeep(MAX_STATEMENTS, "statements").at(span)

    def declare(self, name: str, kind: Type, value: Expr | None = None, mutable: bool = True) -> Local:
        """A new local."""
        local = Local(self.fresh(name), kind)
        self.emit(Declare(local.name, kind, value, line=self.line))
        if mutable:
            self._mutable.add(local.name)
        return local

    # --- variables ---

    def bind(self, name: str, value: v.Value, span: Span) -> None:
        """Assign a value to a variable, whose old value may have another type."""
        self.variables[name] = Binding(self._held(name, value), span)

    def _held(self, name: str, value: v.Value) -> v.Value:
        match value:
            case v.Scalar() if value.literal is not None or value.uses is not None:
                return value  # neither can change
            case v.Scalar():
                return self._in_local(name, value)
            case v.Items() | v.Table():
                return self.copied(name, value)
        return value

    def copied(self, name: str, value: v.Value) -> v.Value:
        """The value in a local of its own, so that later assignments do not change it."""
        match value:
            case v.Scalar() if value.literal is None and value.uses is None:
                return v.Scalar(value.type, self.declare(name, carrier(value.type), value.expr))
            case v.Items(items=items):
                return v.Items(tuple(self.copied(name, item) for item in items))
            case v.Table(start=Expr() as start):
                return replace(value, start=self.declare(f"{name}_start", INT64, start))
        return value

    def settled(self, name: str, value: v.Value) -> v.Value:
        """The value, copied where later assignments might change it."""
        match value:
            case v.Scalar() if any(
                isinstance(each, Local) and each.name in self._mutable for each in walk((value.expr,))
            ):
                return self.copied(name, value)
            case v.Items(items=items):
                return v.Items(tuple(self.settled(name, item) for item in items))
        return value

    def _in_local(self, name: str, value: v.Scalar) -> v.Scalar:
        binding = self.variables.get(name)
        held = None if binding is None or binding.missing else self._assignable(binding.value)
        if held is None or held.type != value.type:
            held = next((twins[name] for twins in self._twins[-1:] if name in twins), None)
            if held is None or held.type != value.type:
                return v.Scalar(value.type, self.declare(name, carrier(value.type), value.read()))
            self._shared.add(_name(held))
        self.emit(Assign(_name(held), value.read(), line=self.line))
        return held

    def _assignable(self, value: v.Value) -> v.Scalar | None:
        """The value itself if it is a local that may be assigned to."""
        if isinstance(value, v.Scalar) and isinstance(value.expr, Local) and value.expr.name in self._mutable:
            return value
        return None

    # --- two ways that meet ---

    @contextmanager
    def arm(self, start: Variables, twins: Mapping[str, v.Scalar]) -> Iterator[None]:
        """Lower one branch of an if, from the variables before it; twins: locals that the other branch declared."""
        self.variables, self.reachable = dict(start), True
        self._twins.append(dict(twins))
        try:
            yield
        finally:
            self._twins.pop()

    def declared_since(self, start: Variables) -> dict[str, v.Scalar]:
        """The locals that variables received since `start`."""
        found = {}
        for name, binding in self.variables.items():
            local = self._assignable(binding.value)
            is_new = name not in start or start[name].value is not binding.value
            if local is not None and is_new and not binding.missing:
                found[name] = local
        return found

    def meet(self, arms: tuple[tuple[Variables, list[Stmt]], tuple[Variables, list[Stmt]]], span: Span) -> None:
        """After two branches that both end here: one value for every variable. Raises TypeChanges."""
        (first, then), (second, orelse) = arms
        merged: Variables = {}
        for name in dict.fromkeys((*first, *second)):
            a, b = first.get(name), second.get(name)
            if a is None or b is None or a.missing or b.missing:
                known = a if a is not None and (b is None or not a.missing) else b
                assert known is not None, "one of them has it"
                merged[name] = replace(known, missing=known.missing or "if")
            else:
                merged[name] = replace(a, value=self._met(name, (a, then), (b, orelse), span))
        self.variables = merged

    def hoist_shared(self, block: list[Stmt]) -> None:
        """Declare before an if the locals that its first branch declared and the other branch assigns too."""
        for at, statement in enumerate(block):
            if isinstance(statement, Declare) and statement.name in self._shared:
                self._shared.discard(statement.name)
                self.emit(Declare(statement.name, statement.type, line=statement.line))
                if statement.value is not None:
                    block[at] = Assign(statement.name, statement.value, line=statement.line)
        hoisted = {each.name for each in self.blocks[-1] if isinstance(each, Declare)}
        block[:] = [each for each in block if not (isinstance(each, Declare) and each.name in hoisted)]

    def _met(self, name: str, a: tuple[Binding, list[Stmt]], b: tuple[Binding, list[Stmt]], span: Span) -> v.Value:
        first, second = a[0].value, b[0].value
        if first == second:
            return first
        if isinstance(first, v.Items) and isinstance(second, v.Items) and len(first.items) == len(second.items):
            pairs = zip(first.items, second.items, strict=True)
            arms = [((replace(a[0], value=x), a[1]), (replace(b[0], value=y), b[1])) for x, y in pairs]
            return v.Items(tuple(self._met(name, *each, span) for each in arms))
        kind = self.joined(name, (first, a[0].span), (second, b[0].span), span)
        local = self.declare(name, carrier(kind))
        for value, block in ((first, a[1]), (second, b[1])):
            assert isinstance(value, v.Scalar), "only numbers have a common type"
            block.append(Assign(local.name, v.adapt(value, kind, span).read(), line=self.line))
        return v.Scalar(kind, local)

    def joined(self, name: str, first: tuple[v.Value, Span], second: tuple[v.Value, Span], span: Span) -> Kind:
        """The one type of a variable that has two values on two branches. Raises TypeChanges."""
        (a, a_span), (b, b_span) = first, second
        kind = join(a.type, b.type) if isinstance(a, v.Scalar) and isinstance(b, v.Scalar) else None
        if kind is None:
            cure = "keep it the same on every path"
            if isinstance(a, v.Scalar) and isinstance(b, v.Scalar):
                cure = conversion(a.type, b.type, name)
            raise TypeChanges(name, v.show(a), a_span.line, v.show(b), b_span.line, cure).at(span)
        return kind

    # --- loops ---

    def enter(self, kinds: Mapping[str, Kind], exits: Mapping[str, Kind], span: Span) -> Loop:
        """Store the variables that a loop changes in locals of the assumed types."""
        carried: dict[str, v.Scalar] = {}
        spans: dict[str, Span] = {}
        for name, kind in kinds.items():
            binding = self.variables[name]
            assert isinstance(binding.value, v.Scalar), "loops carry numbers"
            own = self._assignable(binding.value)
            if own is None or own.type != kind:
                value = v.adapt(binding.value, kind, span)
                own = v.Scalar(kind, self.declare(name, carrier(kind), value.read()))
            carried[name], spans[name] = own, binding.span
            self.variables[name] = replace(binding, value=own)
        left = {name: v.Scalar(kind, self.declare(name, carrier(kind))) for name, kind in exits.items()}
        return Loop(carried, left, dict(kinds), spans)

    def turn(self, loop: Loop, span: Span) -> None:
        """The end of an iteration: changed variables return to their locals. Raises TypeChanges."""
        for name, home in loop.carried.items():
            binding = self.variables[name]
            if binding.missing:
                what = f"'{name}', which has no value on one path through the loop, is"
                raise NotInSubset(what, "assign it").at(span)
            known = (v.Scalar(loop.kinds[name], home.expr), loop.spans[name])
            kind = self.joined(name, known, (binding.value, binding.span), span)
            loop.kinds[name] = kind
            self._store(home, binding.value, span)

    def leave(self, loop: Loop, span: Span) -> None:
        """A break."""
        self.turn(loop, span)
        for name, home in loop.left.items():
            self._store(home, self.variables[name].value, span)
        loop.breaks.append(dict(self.variables))

    def _store(self, home: v.Scalar, value: v.Value, span: Span) -> None:
        """Assign to a local unless it is the value, or has another type than the loop turned out to need."""
        if isinstance(value, v.Scalar) and value.expr is not home.expr and join(home.type, value.type) == home.type:
            self.emit(Assign(_name(home), v.adapt(value, home.type, span).read(), line=self.line))

    def exits_of(self, loop: Loop, span: Span) -> dict[str, Kind]:
        """The variables that all breaks have beyond the carried ones, with their types."""
        if not loop.breaks:
            return {}
        found: dict[str, Kind] = {}
        for name, binding in loop.breaks[0].items():
            if name in loop.carried or not isinstance(binding.value, v.Scalar):
                continue
            others = [each.get(name) for each in loop.breaks]
            if any(other is None or other.missing or not isinstance(other.value, v.Scalar) for other in others):
                continue
            kind = binding.value.type
            for other in others:
                assert other is not None, "those were left out"
                kind = self.joined(
                    name, (v.Scalar(kind, binding.value.expr), binding.span), (other.value, other.span), span
                )
            found[name] = kind
        return found

    def checkpoint(self) -> Checkpoint:
        """The state that `back_to` needs to undo a trial."""
        taken, counts = frozenset(self.taken), dict(self._counts)
        return Checkpoint(len(self.blocks[-1]), taken, counts, dict(self.variables), frozenset(self._mutable))

    def back_to(self, point: Checkpoint) -> None:
        """Forget what was lowered since a checkpoint."""
        del self.blocks[-1][point.length :]
        self.taken, self._counts = set(point.taken), dict(point.counts)
        self.variables, self._mutable = dict(point.variables), set(point.mutable)
        self.reachable = True


def _name(value: v.Scalar) -> str:
    assert isinstance(value.expr, Local), "a variable lives in a local"
    return value.expr.name


def _number_from(found: v.Value) -> str:
    """How to make a number of what is none."""
    match found:
        case v.Builtin() | v.UserFunction() | v.Closure() | v.Method() | v.Type():
            return "call it"
        case v.Items(items=(_, *_)):
            return "take its parts: a, b = ..., or t[0]"
    return "a number is needed here"
