"""The elements of several rounds: all are computed first, and then combined one after the other.

All loads stand before the combinations, so they are under way together, whatever branches combining has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusec.base.dtypes import INT64, DType
from fusec.base.records import dataclass
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, Pointer, Space, apply, scalar_type
from fusec.ir.reductions import Accumulator, Stage, parts_of
from fusec.ir.walk import Body, statements
from fusec.passes.affine import Running, counted, int64, minus, test, unrolled

Inside = Callable[[Body, str, Expr], tuple[Body, Callable[[Expr], Expr]]]
"""Places a body at a position of the chunk, with a label in its names. Also returns the change for expressions."""


@dataclass(frozen=True)
class Arrays:
    """Arrays of the parts of an accumulator."""

    names: tuple[tuple[str, DType], ...]
    space: Space = "local"

    def declare(self, length: int) -> list[ir.Stmt]:
        """Declare the arrays."""
        return [ir.DeclareArray(name, dtype, length, space=self.space) for name, dtype in self.names]

    def read(self, at: Expr) -> tuple[Expr, ...]:
        """Load the parts of an element."""
        return tuple(ir.Load(self._place(name, dtype, at), dtype) for name, dtype in self.names)

    def write(self, at: Expr, parts: Sequence[Expr]) -> tuple[ir.Stmt, ...]:
        """Store the parts of an element."""
        pairs = zip(self.names, parts, strict=True)
        return tuple(ir.Store(self._place(name, dtype, at), part) for (name, dtype), part in pairs)

    def _place(self, name: str, dtype: DType, at: Expr) -> Expr:
        pointer = Pointer(dtype, self.space)
        return ir.Offset(ir.LocalArray(name, pointer), at, pointer)


def arrays_of(accumulator: Accumulator, name: str, space: Space = "local") -> Arrays:
    """Arrays of the parts of an accumulator. name: how their names begin."""
    return Arrays(tuple((f"{name}_{at}", dtype) for at, (_, dtype) in enumerate(accumulator.parts)), space)


@dataclass(frozen=True)
class RoundsAhead:
    """The elements that a thread takes in some rounds of a stage.

    number: that of the stage. place: the position in the chunk of a round's element. covered: the chunk's elements.
    held: the array that has the values of the elements already, if there is one. is_long: generators would not unroll
    loops of so many rounds by themselves.
    """

    stage: Stage
    number: int
    rounds: int
    place: Callable[[Expr], Expr]
    covered: Expr
    held: tuple[str, DType] | None = None
    is_long: bool = False

    @property
    def accumulator(self) -> Accumulator:
        """The accumulator of the stage."""
        assert self.stage.accumulator is not None, "a stage that accumulates"
        return self.stage.accumulator

    @property
    def kept(self) -> Arrays:
        """The arrays for the values of the elements."""
        return Arrays((self.held,)) if self.held else self.arrays("kept")

    @property
    def running(self) -> str:
        """The name of the variable in which the values are combined."""
        return f"_running{self.number}_"

    def arrays(self, word: str, space: Space = "local") -> Arrays:
        """Arrays for accumulators of the stage."""
        return arrays_of(self.accumulator, f"_{word}{self.number}", space)

    def values(self, inside: Inside) -> Body:
        """Compute all values. Past the end, the last element is taken again, unless its statements must run once."""
        number = self.number
        turn, place = ir.Local(f"_round{number}", INT64), ir.Local(f"_place{number}", INT64)
        there, found = test("less", place, self.covered), [ir.Declare(place.name, INT64, self.place(turn))]
        is_pure = not any(
            isinstance(stmt, ir.Store | ir.Atomic | ir.CallStatement) for stmt in statements(self.stage.body)
        )
        position = ir.Local(f"_inside{number}", INT64) if is_pure else place
        body, rewrite = inside(self.stage.body, f"{number}", position)
        values = parts_of(rewrite(self.accumulator.value))
        new = [ir.Declare(f"_new{number}_{at}", scalar_type(value), value) for at, value in enumerate(values)]
        taken = (*body, *new, *self.kept.write(turn, [ir.Local(each.name, each.type) for each in new]))
        loop = unrolled if self.is_long else counted
        if not is_pure:
            return loop(turn.name, self.rounds, [*found, ir.If(there, taken)])
        last = apply("where", there, place, minus(self.covered, 1))
        return loop(turn.name, self.rounds, [*found, ir.Declare(position.name, INT64, last), *taken])

    def joined(self, first: Expr, held: Callable[[Expr, Body], Body] | None = None) -> Body:
        """Combine the values with the running one. first: the number of the first round among those of the lane.

        held: runs statements if the element of a round is there, for values in registers.
        """
        running, at = Running(self.accumulator, f"_next{self.number}_"), ir.Local(f"_next{self.number}", INT64)
        is_later = test("less", int64(0), apply("add", first, at))
        step = running.join_if(is_later, self.running, running.variable(self.running), self.kept.read(at))
        if held is not None:
            return unrolled(at.name, self.rounds, held(at, (step,)))
        loop = unrolled if self.is_long else counted
        return loop(at.name, self.rounds, [ir.If(test("less", self.place(at), self.covered), (step,))])
