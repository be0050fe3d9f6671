"""Explicit kernels: one loop over a grid, whose rounds are the elements, and arrays that the text indexes itself."""

from __future__ import annotations

from fusec.base.dtypes import INT64
from fusec.base.records import replace
from fusec.errors.python import BadLoop, NotInSubset
from fusec.frontends.python import syntax as s
from fusec.frontends.python.function_exits import Kernel
from fusec.frontends.python.loops import WALKS
from fusec.frontends.python.types import PY_INT
from fusec.frontends.python.values import Intrinsic, Items, Scalar, Value
from fusec.frontends.python.variables import Binding
from fusec.ir.loops import Query, Return

ONE_LOOP = "a kernel is one loop over its grid, for i in fusec.grid(n), and what is computed before it"
ONE_SHAPE = "fusec.grid takes one number or one tuple"


def grid_loop(tree: s.Function) -> tuple[s.Body, s.For]:
    """What stands before the loop over the grid, and the loop. Raises BadLoop if it is not the last statement."""
    body = [each for each in tree.body if not isinstance(each, s.Pass) and not _is_text(each)]
    others = [each for each in body if isinstance(each, s.For) and not _walks(each.iterable)]
    loops = [each for each in others if isinstance(each.iterable, s.Call)] or others
    if not loops:
        raise BadLoop(f"'{tree.name}' has no loop over a grid", ONE_LOOP).at(tree.span)
    at = body.index(loops[0])
    if body[at + 1 :]:
        raise BadLoop("a statement after the loop over the grid", ONE_LOOP).at(body[at + 1].span)
    return tuple(body[:at]), loops[0]


def _is_text(node: s.Statement) -> bool:
    return isinstance(node, s.Evaluate) and isinstance(node.value, s.String)


def _walks(node: s.Expression) -> bool:
    """Whether a loop is seen to run over a range or a sequence."""
    called = isinstance(node, s.Call) and isinstance(node.callee, s.Name) and node.callee.name in ("range", *WALKS)
    return called or isinstance(node, s.Tuple)


class Grid(Kernel):
    """A kernel whose text says what its elements are."""

    def run_body(self, body: s.Body) -> None:
        """Lower what stands before the loop, then the loop's body for one element."""
        del body
        before, loop = grid_loop(self.tree)
        self.tail = False
        self.body(before)
        self.tail = True
        self._begin(loop)
        self.body(_ending_in_returns(loop.body))
        self.returned, self.reachable = [((), False, self.tree.span)], False

    def _begin(self, loop: s.For) -> None:
        """Give the loop's names the position of the element. Raises BadLoop or CannotUnpack."""
        node = loop.iterable
        callee = self.value(node.callee) if isinstance(node, s.Call) else None
        if not isinstance(node, s.Call) or callee != Intrinsic("grid"):
            raise BadLoop("the outermost loop runs over fusec.grid(...) or range(...)", ONE_LOOP).at(node.span)
        if len(node.args) != 1 or node.keywords:
            cure = "write fusec.grid(n), or fusec.grid((rows, columns)) for several axes"
            raise BadLoop(ONE_SHAPE, cure).at(node.span)
        self.line = loop.span.line if loop.span.file == self.unit.source else 0
        shape = self.value(node.args[0])
        axes = len(shape.items) if isinstance(shape, Items) else 1
        self.check_axes(axes, node.span)
        self.in_grid = True
        is_flat = not isinstance(shape, Items) and not self.unit.definition.block
        position: Value = Scalar(PY_INT, Query("", "index", None, INT64) if is_flat else self.position(0))
        if isinstance(shape, Items):
            position = Items(tuple(Scalar(PY_INT, self.position(axis)) for axis in range(axes)))
        if isinstance(loop.target, s.Name):
            self.variables[loop.target.name] = Binding(position, loop.target.span)
        else:
            self.assign(loop.target, position)

    def end(self, node: s.Return) -> None:
        """The end of the element's work. Raises NotInSubset for a return that was written: Python's ends the loop."""
        if node.span.text.startswith("return"):
            if node.value is None:
                what, cure = "return in", "write continue for the next element, in a loop of its own break before"
            else:
                what, cure = "a value returned by", "write it to an array: out[i] = value"
            raise NotInSubset(f"{what} an explicit kernel is", cure).at(node.span)
        if self.loops or not self.tail:
            self.emit(Return(line=self.line))
        self.reachable = False


def _ending_in_returns(body: s.Body) -> s.Body:
    """The loop's body for one element: to go on with the next one is to return. Raises NotInSubset for break."""
    return tuple(map(_ending_in_return, body))


def _ending_in_return(node: s.Statement) -> s.Statement:
    match node:
        case s.Continue():
            return s.Return(node.span, None)
        case s.Break():
            cure = "elements run at the same time: skip others with if, or continue"
            raise NotInSubset("break out of the loop over the grid is", cure).at(node.span)
        case s.If():
            return replace(node, then=_ending_in_returns(node.then), orelse=_ending_in_returns(node.orelse))
    return node
