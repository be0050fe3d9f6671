"""Loops over ranges, tuples and tables: counted at run time, or unrolled with every value known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from fusec.base.dtypes import BOOL, INT64
from fusec.base.records import dataclass, replace
from fusec.base.source import Span
from fusec.errors.language import Misplaced
from fusec.errors.python import BadLoop, NotInSubset
from fusec.frontends.python import arithmetic, name_usage, sequences
from fusec.frontends.python import syntax as s
from fusec.frontends.python.dtype_calls import cast
from fusec.frontends.python.function_context import Binding, FunctionContext, Loop, Variables
from fusec.frontends.python.name_usage import called, last_name
from fusec.frontends.python.sequences import Place, Sequence
from fusec.frontends.python.types import PY_INT, Kind, is_bool, is_integer
from fusec.frontends.python.values import Items, Neighbours, Scalar, Value, adapt, literal, show
from fusec.ir.expr import Const, Expr, apply, const
from fusec.ir.loops import Assign, Break, Continue, If, Local, Stmt, While

TRUE = const(True, BOOL)
MAX_TRIALS = 16  # each widens a type of some variable, and there are few to widen to
MAX_ROUNDS = 64  # of a loop that is written out
MAX_COPIES = 512  # of the innermost body, where such loops stand in one another
WALKS = {  # functions that walk over sequences, and how they are called
    "enumerate": "write enumerate(t) or enumerate(t, start)",
    "zip": "write zip(t, u), perhaps with strict=True",
    "reversed": "write reversed(t)",
}
CURE = "write for i in range(n), or walk over a tuple or an array from outside"


@dataclass
class Rounds:
    """A loop of the IR to lower."""

    span: Span
    changed: Mapping[str, None]  # variables that it assigns, in order
    condition: Callable[[], Expr]
    body: s.Body = ()
    begin: Callable[[], None] = lambda: None  # what comes before the body in every round
    step: tuple[Stmt, ...] = ()


class LoopLowering:
    """Lowers loops. body, assign: lower the statements in them, and the assignments to their targets."""

    def __init__(
        self, context: FunctionContext, body: Callable[[s.Body], None], assign: Callable[[s.Expression, Value], None]
    ) -> None:
        self.context, self.body, self.assign = context, body, assign
        self._last: Variables = {}  # at the end of the round lowered last

    def walk(self, node: s.For) -> None:
        """A loop. Raises BadLoop for one over anything but a range or a sequence."""
        walked = _walked(self.context, node.iterable)
        if walked is not None:
            if walked.length <= MAX_ROUNDS and self.context.copies * walked.length <= MAX_COPIES:
                self._written_out(node, walked)
            else:
                self._count(node, (literal(0), literal(walked.length), literal(1)), walked.item)
            return
        start, stop, step = _range(self.context, node.iterable)
        known = _known_range(start, stop, step)
        is_short = known is not None and self.context.copies * len(known[: MAX_COPIES + 1]) <= MAX_COPIES
        if known is not None and is_short and self._makes_offsets(node):
            self._written_out(node, _of_range(known))
        else:
            self._count(node, (start, stop, step), None)

    def _makes_offsets(self, node: s.For) -> bool:
        """Whether neighbours of a stencil are looked up by what a loop counts."""
        arrays = {name for name, each in self.context.variables.items() if isinstance(each.value, Neighbours)}
        return bool(arrays) and name_usage.indexes(node.body, set(name_usage.named(node.target)), arrays)

    # --- written out ---

    def _written_out(self, node: s.For, walked: Sequence) -> None:
        """The body once for every value.

        Loops of one round that end in break stand for what a break or continue leaves: the whole, or a round.
        """
        jumps = name_usage.jumps(node.body)
        left = f"fusec_left_{node.span.start}"
        body = node.body
        if "continue" in jumps:
            body = name_usage.without_continue(body, left if "break" in jumps else "")
        changed = name_usage.assigned((node,)) | ({left: None} if body is not node.body else {})

        def once(place: int) -> None:
            self.assign(node.target, walked.item(place))
            self.body(body)

        def rounds() -> None:
            for place in range(walked.length):
                if not self.context.reachable:
                    return
                if "continue" not in jumps:
                    once(place)
                    continue
                self._one_round(node, changed, partial(once, place))
                if "break" in jumps and self.context.reachable:
                    self.body((s.IfNode(node.span, s.Name(node.span, left), (s.BreakNode(node.span),), ()),))

        context = self.context
        outer = context.tail, context.copies
        context.tail, context.copies = False, context.copies * max(1, walked.length)
        if "break" in jumps and "continue" in jumps:
            context.bind(left, literal(False), node.span)
        if "break" in jumps:
            self._one_round(node, changed, rounds)
        else:
            rounds()
        context.variables.pop(left, None)
        context.tail, context.copies = outer

    def _one_round(self, node: s.For, changed: Mapping[str, None], begin: Callable[[], None]) -> None:
        """A loop that ends in break, which what it holds may do before."""

        def once() -> None:
            begin()
            if self.context.reachable:
                self.body((s.BreakNode(node.span),))

        self._lower(Rounds(node.span, changed, lambda: TRUE, begin=once))

    # --- counted ---

    def _count(self, node: s.For, bounds: tuple[Scalar, Scalar, Scalar], item: Callable[[Place], Value] | None) -> None:
        """A loop of the IR, which counts. item: what the target is at a count; None for the count itself."""
        start, stop, step = bounds
        context, target, span = self.context, node.target, node.target.span
        changed = name_usage.assigned((node,))
        if item is None and not isinstance(target, s.Name):
            raise BadLoop("a range gives one number at a time", "write for i in range(n)").at(span)
        name = target.name if item is None and isinstance(target, s.Name) else ""
        inside = name in name_usage.assigned(node.body)
        visible = inside or name in context.variables or name in name_usage.exposed(context.tree.body)
        if item is not None:
            for each in name_usage.named(target):  # no loop carries rows of tables from round to round
                if each in context.variables and not isinstance(context.variables[each].value, Scalar):
                    del context.variables[each]
        elif not visible:
            del changed[name]
        elif name not in context.variables and _known_range(*bounds):
            context.bind(name, start, span)
        called = "place" if item is not None else f"{name}_next" if visible else name
        counter = context.declare(called, INT64, start.read(), mutable=False)

        def begin() -> None:
            if item is not None:
                self.assign(target, item(counter))
            elif visible:
                context.bind(name, Scalar(PY_INT, counter), span)
            else:
                context.variables[name] = Binding(Scalar(PY_INT, counter), span)

        onward = Assign(counter.name, apply("add", counter, step.read()), line=context.line)
        self._lower(
            Rounds(node.span, changed, lambda: _more(counter, stop, step), node.body, begin, (onward,)),
        )
        if item is None and not visible:
            context.variables.pop(name, None)

    # --- rounds ---

    def repeat(self, node: s.WhileNode) -> None:
        """``while``."""
        changed = name_usage.assigned(node.body)
        self._lower(Rounds(node.span, changed, lambda: self.context.test(node.condition), node.body))

    def _lower(self, rounds: Rounds) -> None:
        """A loop, lowered again until the types assumed for the variables that it changes are those it gives them."""
        context, span = self.context, rounds.span
        kinds: dict[str, Kind] = {}
        for name in rounds.changed:
            binding = context.variables.get(name)
            if binding is not None and not binding.missing:
                if not isinstance(binding.value, Scalar):
                    cure = "keep its parts in variables of their own"
                    raise NotInSubset(f"'{name}', {show(binding.value)} that a loop changes, is", cure).at(binding.span)
                kinds[name] = binding.value.type
        exits: dict[str, Kind] = {}
        point = context.checkpoint()
        for _ in range(MAX_TRIALS):
            loop = context.enter(kinds, exits, span)
            head = dict(context.variables)
            endless = self._round(loop, rounds)
            left = context.exits_of(loop, span) if endless else {}
            left = {name: kind for name, kind in left.items() if name in rounds.changed}
            if loop.kinds == kinds and left == exits:
                break
            kinds, exits = loop.kinds, left
            context.back_to(point)
        else:
            raise AssertionError("the types of a loop's variables settle")
        context.variables = head
        context.reachable = bool(loop.breaks) or not endless
        for name in rounds.changed:
            if name in loop.left:
                context.variables[name] = replace(loop.breaks[0][name], value=loop.left[name])
            elif name not in loop.carried:
                known = next((each[name] for each in (*loop.breaks, self._last) if name in each), None)
                if known is not None:
                    context.variables[name] = replace(known, missing="loop")

    def _round(self, loop: Loop, rounds: Rounds) -> bool:
        """Emit the loop for the types assumed; whether only breaks end it."""
        context, line = self.context, self.context.line
        context.loops.append(loop)
        with context.block(rounds.span) as statements:
            test = rounds.condition()
            endless = isinstance(test, Const) and test.bits != 0
            if statements:  # the condition needs statements of its own in every round
                context.emit(If(apply("logical_not", test), (Break(line=line),), line=line))
                test = TRUE
            rounds.begin()
            self.body(rounds.body)
            if context.reachable:
                context.turn(loop, rounds.span)
            self._last = dict(context.variables)
        context.loops.pop()
        context.line = line
        context.emit(While(test, tuple(statements), rounds.step, line=line))
        return endless

    def jump(self, node: s.BreakNode | s.ContinueNode) -> None:
        """``break`` or ``continue``. Raises Misplaced."""
        context, breaks = self.context, isinstance(node, s.BreakNode)
        if not context.loops:
            raise Misplaced("break" if breaks else "continue", "a loop", "return ends the function").at(node.span)
        (context.leave if breaks else context.turn)(context.loops[-1], node.span)
        context.emit((Break if breaks else Continue)(line=context.line))
        context.reachable = False


def _walked(context: FunctionContext, node: s.Expression) -> Sequence | None:
    """A tuple, a table, or several walked together; None for a call of range and all that is no sequence."""
    if isinstance(node, s.CallNode):
        if called(node) in WALKS and called(node) not in context.variables:
            return _walk_called(context, called(node), node)
        if last_name(node.callee) in ("range", "grid"):
            return None
    value = context.value(node)
    if isinstance(value, Neighbours):
        return None
    return sequences.sequence_of(context.settled("item", value), node.span)


def _walk_called(context: FunctionContext, name: str, node: s.CallNode) -> Sequence:
    """``enumerate(t, start)``, ``zip(t, u)`` or ``reversed(t)``. Raises BadLoop."""
    keywords = {each.name: each.value for each in node.keywords}
    known = {"enumerate": {"start"}, "zip": {"strict"}}.get(name, set())
    most = {"enumerate": 2, "reversed": 1}.get(name, len(node.args))
    if not 1 <= len(node.args) <= most - (name == "enumerate" and len(keywords)) or keywords.keys() - known:
        raise BadLoop(f"'{name}' does not take these arguments", WALKS[name]).at(node.span)
    given = node.args[:1] if name == "enumerate" else node.args
    parts = [_part(context, each) for each in given]
    if name == "reversed":
        last = parts[0].length - 1
        return Sequence(parts[0].length, lambda place: parts[0].item(_minus(last, place)))
    if name == "enumerate":
        starts = [*node.args[1:], *keywords.values()]
        first = _bound(context, starts[0]) if starts else literal(0)
        return Sequence(parts[0].length, lambda place: Items((_plus(first, place, node.span), parts[0].item(place))))
    lengths = {each.length for each in parts}
    if len(lengths) > 1 and "strict" in keywords and context.scalar(keywords["strict"]).literal is not False:
        shown = " and ".join(map(str, sorted(lengths)))
        raise BadLoop(f"zip(strict=True) of {shown} items", "make them equally long").at(node.span)
    return Sequence(min(lengths), lambda place: Items(tuple(each.item(place) for each in parts)))


def _part(context: FunctionContext, node: s.Expression) -> Sequence:
    """One of the sequences walked together. Raises BadLoop."""
    if called(node) == "range":
        known = _known_range(*_range(context, node))
        if known is None:
            raise BadLoop("a range in this place must have known numbers", CURE).at(node.span)
        return _of_range(known)
    found = _walked(context, node)
    if found is None:
        raise BadLoop("a parameter is one number here, not a row of numbers", CURE).at(node.span)
    return found


def _range(context: FunctionContext, node: s.Expression) -> tuple[Scalar, Scalar, Scalar]:
    """Start, stop and step, evaluated once. Raises BadLoop."""
    if isinstance(node, s.CallNode) and last_name(node.callee) == "grid":
        context.value(node)  # raises: a grid stands elsewhere
    if not isinstance(node, s.CallNode) or called(node) != "range":
        raise BadLoop("a loop runs over a range", CURE).at(node.span)
    if node.keywords or not 1 <= len(node.args) <= 3:
        raise BadLoop("range takes one to three numbers", "write range(stop) or range(start, stop, step)").at(node.span)
    given = [_bound(context, arg) for arg in node.args]
    start, stop = (literal(0), given[0]) if len(given) == 1 else (given[0], given[1])
    step = given[2] if len(given) == 3 else literal(1)
    if step.literal == 0:
        raise BadLoop("the step of a range is not 0", "write 1, or leave it out").at(node.args[2].span)
    _check_counter(start, stop, step, node.span)
    return start, stop, step


def _bound(context: FunctionContext, node: s.Expression) -> Scalar:
    value = context.scalar(node)
    if not is_integer(value.type) and not is_bool(value.type):
        raise BadLoop(f"range takes integers, not {value.type}", "convert it: int(x)").at(node.span)
    convert = adapt if is_bool(value.type) or value.type == PY_INT else cast
    value = convert(value, PY_INT, node.span)
    if value.literal is not None:
        value.read(node.span)
    held = context.copied("bound", value)
    assert isinstance(held, Scalar), "a number stays one"
    return held


def _known_range(start: Scalar, stop: Scalar, step: Scalar) -> range | None:
    """A range whose numbers are known."""
    match start.literal, stop.literal, step.literal:
        case int() as first, int() as last, int() as width:
            return range(first, last, width)
    return None


def _of_range(known: range) -> Sequence:
    def item(place: Place) -> Scalar:
        if isinstance(place, int):
            return literal(known[place])
        return Scalar(
            PY_INT, apply("add", const(known.start, INT64), apply("multiply", place, const(known.step, INT64)))
        )

    return Sequence(len(known[: 2**62]), item)  # the whole length may not fit


def _plus(first: Scalar, place: Place, span: Span) -> Scalar:
    return arithmetic.binary("+", first, sequences.numbered(place), span)


def _minus(last: int, place: Place) -> Place:
    return last - place if isinstance(place, int) else apply("subtract", const(last, INT64), place)


def _check_counter(start: Scalar, stop: Scalar, step: Scalar, span: Span) -> None:
    """Raises BadLoop for a range that is known to take its int64 counter beyond int64, from where it would go on."""
    rounds = _known_range(start, stop, step)
    if rounds and not -(2**63) <= rounds[-1] + rounds.step < 2**63:
        what = f"after {rounds[-1]} the counter of this range leaves int64, by its step of {rounds.step}"
        count = (rounds[-1] - rounds.start) // rounds.step + 1  # its len() may not fit
        cure = f"count iterations, for k in range({count}), and compute {rounds.start} + k * {rounds.step}"
        raise BadLoop(what, cure).at(span)


def _more(counter: Local, stop: Scalar, step: Scalar) -> Expr:
    """Whether a counter has not reached the end of its range."""
    if isinstance(step.literal, int):
        return apply("less" if step.literal > 0 else "greater", counter, stop.read())
    up = apply("greater", step.read(), const(0, INT64))
    down = apply("less", step.read(), const(0, INT64))
    return apply(
        "where",
        up,
        apply("less", counter, stop.read()),
        apply("logical_and", down, apply("greater", counter, stop.read())),
    )
