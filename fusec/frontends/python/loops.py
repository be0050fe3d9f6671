"""Loops over ranges, tuples and tables: counted as the kernel runs, or written out with every value known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from fusec.base.dtypes import BOOL, INT64
from fusec.base.source import Span
from fusec.errors.python import BadLoop
from fusec.frontends.python import arithmetic, name_usage, sequences
from fusec.frontends.python import syntax as s
from fusec.frontends.python.blocks import Blocks
from fusec.frontends.python.expressions import dotted_name
from fusec.frontends.python.sequences import Place, Sequence
from fusec.frontends.python.types import PY_INT, is_bool, is_integer
from fusec.frontends.python.values import Items, Neighbours, Scalar, Value, adapt, literal
from fusec.frontends.python.variables import Binding
from fusec.ir.expr import Expr, apply, const
from fusec.ir.loops import Assign, Local, Stmt

MAX_ROUNDS = 64  # of a loop that is written out
MAX_COPIES = 512  # of the innermost body, where such loops stand in one another
WALKS = ("enumerate", "zip", "reversed")
CURE = "write for i in range(n), or walk over a tuple or an array from outside"


class Loops(Blocks):
    """Lowers for. copies: how often what is being lowered stands in the kernel."""

    copies = 1
    tail = True  # nothing follows but the end of the function

    def walk(self, node: s.For) -> None:
        """A loop. Raises BadLoop for one over anything but a range or a sequence."""
        walked = self._walked(node.iterable)
        if walked is not None:
            if walked.length <= MAX_ROUNDS and self.copies * walked.length <= MAX_COPIES:
                self._written_out(node, walked)
            else:
                self._count(node, (literal(0), literal(walked.length), literal(1)), walked.item)
            return
        start, stop, step = self._range(node.iterable)
        known = _known_range(start, stop, step)
        if known is not None and self.copies * len(known[: MAX_COPIES + 1]) <= MAX_COPIES and self._makes_offsets(node):
            self._written_out(node, _of_range(known))
        else:
            self._count(node, (start, stop, step), None)

    # --- what is walked over ---

    def _walked(self, node: s.Expression) -> Sequence | None:
        """A tuple, a table, or several walked together; None for a call of range and all that is no sequence."""
        match node:
            case s.Call(callee=s.Name(name=name)) if name in WALKS and name not in self.variables:
                return self._called(name, node)
            case s.Call(callee=callee) if (dotted_name(callee) or "").rpartition(".")[2] in ("range", "grid"):
                return None
        value = self.value(node)
        if isinstance(value, Neighbours):
            return None
        return sequences.sequence_of(self.settled("item", value), node.span)

    def _called(self, name: str, node: s.Call) -> Sequence:
        """``enumerate(t, start)``, ``zip(t, u)`` or ``reversed(t)``. Raises BadLoop."""
        keywords = {each.name: each.value for each in node.keywords}
        known = {"enumerate": {"start"}, "zip": {"strict"}}.get(name, set())
        most = {"enumerate": 2, "reversed": 1}.get(name, len(node.args))
        if not 1 <= len(node.args) <= most - (name == "enumerate" and len(keywords)) or keywords.keys() - known:
            raise BadLoop(f"'{name}' does not take these arguments", _taken(name)).at(node.span)
        given = node.args[:1] if name == "enumerate" else node.args
        parts = [self._part(each) for each in given]
        if name == "reversed":
            last = parts[0].length - 1
            return Sequence(parts[0].length, lambda place: parts[0].item(_minus(last, place)))
        if name == "enumerate":
            starts = [*node.args[1:], *keywords.values()]
            first = self._bound(starts[0]) if starts else literal(0)
            return Sequence(
                parts[0].length, lambda place: Items((_plus(first, place, node.span), parts[0].item(place)))
            )
        lengths = {each.length for each in parts}
        if len(lengths) > 1 and "strict" in keywords and self.scalar(keywords["strict"]).literal is not False:
            shown = " and ".join(map(str, sorted(lengths)))
            raise BadLoop(f"zip(strict=True) of {shown} items", "make them equally long").at(node.span)
        return Sequence(min(lengths), lambda place: Items(tuple(each.item(place) for each in parts)))

    def _part(self, node: s.Expression) -> Sequence:
        """One of the sequences walked together. Raises BadLoop."""
        if isinstance(node, s.Call) and isinstance(node.callee, s.Name) and node.callee.name == "range":
            known = _known_range(*self._range(node))
            if known is None:
                raise BadLoop("a range in here has numbers that are known", CURE).at(node.span)
            return _of_range(known)
        found = self._walked(node)
        if found is None:
            raise BadLoop("a parameter is one number here, not a row of them", CURE).at(node.span)
        return found

    def _makes_offsets(self, node: s.For) -> bool:
        """Whether neighbours of a stencil are looked up by what a loop counts."""
        arrays = {name for name, each in self.variables.items() if isinstance(each.value, Neighbours)}
        return bool(arrays) and name_usage.indexes(node.body, set(name_usage.named(node.target)), arrays)

    # --- written out ---

    def _written_out(self, node: s.For, walked: Sequence) -> None:
        """The body once for every value.

        Loops of one round that end in break stand for what a break or continue leaves: the whole, or a round.
        """
        jumps = name_usage.jumps(node.body)
        left = f"fusec_left_{node.span.start}"
        body = (
            name_usage.without_continue(node.body, left if "break" in jumps else "")
            if "continue" in jumps
            else node.body
        )
        changed = name_usage.assigned((node,)) | ({left: None} if body is not node.body else {})

        def once(place: int) -> None:
            self.assign(node.target, walked.item(place))
            self.body(body)

        def rounds() -> None:
            for place in range(walked.length):
                if not self.reachable:
                    return
                if "continue" not in jumps:
                    once(place)
                    continue
                self._one_round(node, changed, partial(once, place))
                if "break" in jumps and self.reachable:
                    self.body((s.If(node.span, s.Name(node.span, left), (s.Break(node.span),), ()),))

        outer = self.tail, self.copies
        self.tail, self.copies = False, self.copies * max(1, walked.length)
        if "break" in jumps and "continue" in jumps:
            self.bind(left, literal(False), node.span)
        if "break" in jumps:
            self._one_round(node, changed, rounds)
        else:
            rounds()
        self.variables.pop(left, None)
        self.tail, self.copies = outer

    def _one_round(self, node: s.For, changed: Mapping[str, None], begin: Callable[[], None]) -> None:
        """A loop that ends in break, which what it holds may do before."""

        def once() -> None:
            begin()
            if self.reachable:
                self.body((s.Break(node.span),))

        self.loop(node.span, changed, lambda: const(True, BOOL), once, (), ())

    # --- counted ---

    def _count(self, node: s.For, bounds: tuple[Scalar, Scalar, Scalar], item: Callable[[Place], Value] | None) -> None:
        """A loop of the IR, which counts. item: what the target is at a count; None for the count itself."""
        start, stop, step = bounds
        changed = name_usage.assigned((node,))
        if item is not None:
            self._walk_counting(node, changed, bounds, item)
            return
        if not isinstance(node.target, s.Name):
            raise BadLoop("a range gives one number at a time", "write for i in range(n)").at(node.target.span)
        name, span = node.target.name, node.target.span
        inside = name in name_usage.assigned(node.body)
        visible = inside or name in self.variables or name in name_usage.exposed(self.tree.body)
        if not visible:
            del changed[name]
        elif name not in self.variables and _known_range(*bounds):
            self.bind(name, start, span)
        counter = self.declare(f"{name}_next" if visible else name, INT64, start.read(), mutable=False)

        def begin() -> None:
            value = Scalar(PY_INT, counter)
            if visible:
                self.bind(name, value, span)
            else:
                self.variables[name] = Binding(value, span)

        onward: tuple[Stmt, ...] = (self._step(counter, step),)
        self.loop(node.span, changed, lambda: _more(counter, stop, step), begin, node.body, onward)
        if not visible:
            self.variables.pop(name, None)

    def _walk_counting(
        self,
        node: s.For,
        changed: Mapping[str, None],
        bounds: tuple[Scalar, Scalar, Scalar],
        item: Callable[[Place], Value],
    ) -> None:
        for name in name_usage.named(
            node.target
        ):  # rows of tables are no variables that a loop carries from round to round
            if name in self.variables and not isinstance(self.variables[name].value, Scalar):
                del self.variables[name]
        start, stop, step = bounds
        counter = self.declare("place", INT64, start.read(), mutable=False)
        onward: tuple[Stmt, ...] = (self._step(counter, step),)
        self.loop(
            node.span,
            changed,
            lambda: _more(counter, stop, step),
            lambda: self.assign(node.target, item(counter)),
            node.body,
            onward,
        )

    def _step(self, counter: Local, step: Scalar) -> Stmt:
        return Assign(counter.name, apply("add", counter, step.read()), line=self.line)

    def _range(self, node: s.Expression) -> tuple[Scalar, Scalar, Scalar]:
        """Start, stop and step, evaluated once. Raises BadLoop."""
        is_range = isinstance(node, s.Call) and isinstance(node.callee, s.Name) and node.callee.name == "range"
        if isinstance(node, s.Call) and (dotted_name(node.callee) or "").rpartition(".")[2] == "grid":
            self.value(node)  # raises: a grid stands elsewhere
        if not is_range or not isinstance(node, s.Call):
            raise BadLoop("a loop runs over a range", CURE).at(node.span)
        if node.keywords or not 1 <= len(node.args) <= 3:
            raise BadLoop("range takes one to three numbers", "write range(stop) or range(start, stop, step)").at(
                node.span
            )
        given = [self._bound(arg) for arg in node.args]
        start, stop = (literal(0), given[0]) if len(given) == 1 else (given[0], given[1])
        step = given[2] if len(given) == 3 else literal(1)
        if step.literal == 0:
            raise BadLoop("the step of a range is not 0", "write 1, or leave it out").at(node.args[2].span)
        _check_counter(start, stop, step, node.span)
        return start, stop, step

    def _bound(self, node: s.Expression) -> Scalar:
        value = self.scalar(node)
        if not is_integer(value.type) and not is_bool(value.type):
            raise BadLoop(f"range takes integers, not {value.type}", "convert it: int(x)").at(node.span)
        value = (
            adapt(value, PY_INT, node.span)
            if is_bool(value.type) or value.type == PY_INT
            else self.cast(value, PY_INT, node.span)
        )
        if value.literal is not None:
            value.read(node.span)
        held = self.copied("bound", value)
        assert isinstance(held, Scalar), "a number stays one"
        return held

    # --- what the layer above lowers ---

    def assign(self, target: s.Expression, value: Value) -> None:
        """``target = value``."""
        raise NotImplementedError

    def body(self, statements: s.Body) -> None:
        """Statements in order."""
        raise NotImplementedError

    def loop(
        self,
        span: Span,
        changed: Mapping[str, None],
        condition: Callable[[], Expr],
        begin: Callable[[], None],
        body: s.Body,
        step: tuple[Stmt, ...],
    ) -> None:
        """A loop of the IR."""
        raise NotImplementedError


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


def _taken(name: str) -> str:
    """How a function that walks over sequences is called."""
    return {"enumerate": "write enumerate(t) or enumerate(t, start)", "reversed": "write reversed(t)"}.get(
        name, "write zip(t, u), perhaps with strict=True"
    )


def _check_counter(start: Scalar, stop: Scalar, step: Scalar, span: Span) -> None:
    """Raises BadLoop for a range that is known to take its int64 counter beyond int64, from where it would go on."""
    match start.literal, stop.literal, step.literal:
        case int() as first, int() as last, int() as width:
            rounds = range(first, last, width)
            if rounds and not -(2**63) <= rounds[-1] + width < 2**63:
                what = f"after {rounds[-1]} the counter of this range leaves int64, by its step of {width}"
                count = (rounds[-1] - first) // width + 1  # its len() may not fit
                cure = f"count rounds, for k in range({count}), and compute {first} + k * {width}"
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
