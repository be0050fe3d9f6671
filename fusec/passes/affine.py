"""The common parts of passes that write loops: arithmetic on positions, and the combination of two accumulators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusec.base.dtypes import BOOL, INT64
from fusec.ir.expr import Apply, Const, Expr, Struct, apply, const
from fusec.ir.loops import Assign, Call, Declare, Element, Field, If, Local, Moved, Query, Shuffle, Stmt, While
from fusec.ir.reductions import AXIS, Accumulator, ReductionIR, parts_of, whole_of
from fusec.ir.walk import Body, fresh_names, map_expressions, renamed, rewriter

Parts = tuple[Expr, ...]


def int64(value: int) -> Const:
    """A constant."""
    return const(value, INT64)


def plus(left: Expr, right: Expr | int) -> Expr:
    """The sum of two positions."""
    return apply("add", left, int64(right) if isinstance(right, int) else right)


def minus(left: Expr, right: Expr | int) -> Expr:
    """The distance between two positions."""
    return apply("subtract", left, int64(right) if isinstance(right, int) else right)


def times(left: Expr, power: int) -> Expr:
    """A multiple by a power of two."""
    return apply("left_shift", left, int64(power.bit_length() - 1))


def over(left: Expr, power: int) -> Expr:
    """A number that is not negative, divided by a power of two."""
    return apply("right_shift", left, int64(power.bit_length() - 1))


def rest(left: Expr, power: int) -> Expr:
    """The remainder of such a division."""
    return apply("bitwise_and", left, int64(power - 1))


def test(op: str, left: Expr, right: Expr | int) -> Expr:
    """A comparison."""
    return Apply(op, (left, int64(right) if isinstance(right, int) else right), BOOL)


def least(left: Expr, right: int) -> Expr:
    """The smaller of two numbers."""
    return apply("where", test("less", left, right), left, int64(right))


def relocated(body: Body, label: str, axis: int, position: Expr, distance: Expr) -> tuple[Body, Callable[[Expr], Expr]]:
    """A body at another position of the axis, with names of its own, and the same change for further expressions.

    distance: from where the program's own position is.
    """
    changed, names = renamed(body, f"_{label}")

    def change(expr: Expr) -> Expr:
        match expr:
            case Element(param, kind):
                return Moved(param, (axis,), (distance,), kind)
            case Query("", "coordinate", Const() as along) if int(along.value) == axis:
                return position
            case Query("", "shape", Const() as along) if int(along.value) == axis:
                return Local(AXIS, INT64)
            case _:
                return expr

    rewrite = rewriter(change)
    return map_expressions(changed, rewrite), lambda expr: rewrite(names(expr))


def counted(name: str, limit: Expr | int, body: Sequence[Stmt]) -> Body:
    """A loop from 0 up to a limit."""
    here = Local(name, INT64)
    step = Assign(name, plus(here, 1))
    return (Declare(name, INT64, int64(0)), While(test("less", here, limit), tuple(body), (step,)))


def unrolled(name: str, limit: int, body: Sequence[Stmt]) -> Body:
    """The same loop, of a few rounds that are written one after the other."""
    here = Local(name, INT64)
    loop = While(test("less", here, limit), tuple(body), (Assign(name, plus(here, 1)),), unrolled=True)
    return (Declare(name, INT64, int64(0)), loop)


def total_of(reduction: ReductionIR) -> list[Stmt]:
    """Declare the parts of the total, if there is one."""
    if reduction.total is None:
        return []
    pairs = zip(reduction.total.parts, parts_of(reduction.total.value), strict=True)
    return [Declare(name, dtype, value) for (name, dtype), value in pairs]


def combined(
    accumulator: Accumulator, left: Sequence[Expr], right: Sequence[Expr], fresh: Callable[[], str]
) -> tuple[Body, Parts]:
    """The parts of two values combined, and the statements before them. fresh: names for locals."""
    kind = accumulator.type
    call = Call(accumulator.combine, (whole_of(tuple(left), kind), whole_of(tuple(right), kind)), kind)
    if not isinstance(kind, Struct):
        return (), (call,)
    whole = Local(fresh(), kind)
    return (Declare(whole.name, kind, call),), tuple(Field(whole, field, dtype) for field, dtype in kind.fields)


class Running:
    """Accumulators of one kind: variables for the parts of one, and how two are combined. label: makes the names of
    locals unique where there are several such objects.
    """

    def __init__(self, accumulator: Accumulator, label: str = "") -> None:
        self.accumulator = accumulator
        self._fresh = fresh_names(f"_joined{label}")

    def variable(self, name: str) -> tuple[Local, ...]:
        """The locals of a variable."""
        return tuple(Local(f"{name}{at}", dtype) for at, (_, dtype) in enumerate(self.accumulator.parts))

    def declare(self, name: str, values: Sequence[Expr] = ()) -> list[Stmt]:
        """A new variable, zero if it has no values."""
        locals_ = self.variable(name)
        given = values or (None,) * len(locals_)
        return [Declare(each.name, each.type, value) for each, value in zip(locals_, given, strict=True)]

    def assign(self, name: str, values: Sequence[Expr]) -> list[Stmt]:
        """Assign new values; none of them may read the variable, except for a combination."""
        return [Assign(each.name, value) for each, value in zip(self.variable(name), values, strict=True)]

    def join(self, name: str, left: Sequence[Expr], right: Sequence[Expr]) -> list[Stmt]:
        """Set the variable to the combination of two values."""
        before, parts = combined(self.accumulator, left, right, self._fresh)
        return [*before, *self.assign(name, parts)]

    def join_if(self, condition: Expr, name: str, left: Sequence[Expr], right: Sequence[Expr]) -> Stmt:
        """Set the variable to the combination, or to the right value where there is no left one."""
        same = tuple(right) == self.variable(name)
        return If(condition, tuple(self.join(name, left, right)), () if same else tuple(self.assign(name, right)))

    def shuffled(self, name: str, values: Sequence[Expr], distance: int) -> list[Stmt]:
        """A new variable that is set to its value at another position."""
        return [*self.declare(name), *self.shuffle(name, values, distance)]

    def shuffle(self, name: str, values: Sequence[Expr], distance: int) -> list[Stmt]:
        """Set the variable to its value at another position."""
        pairs = zip(self.variable(name), values, strict=True)
        return [Shuffle(each.name, value, distance) for each, value in pairs]
