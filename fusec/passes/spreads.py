"""Spreads: sums of squared distances from the mean, as two walks over rows in cache, or in one pass over chunks.

A chunk finds its mean, then, from cache, the sums d and q of distances from it and of their squares: since the mean is
rounded, d is not zero, and mean + d / n and q - d * d / n are corrected for that. Chunks combine by
`fusec.math.moments`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fusec.base.dtypes import INT64, DType
from fusec.base.records import dataclass
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, Struct, scalar_type
from fusec.ir.graph import Count, KernelGraph, Reduce, Spread
from fusec.ir.reductions import COVERED, Accumulator
from fusec.ir.walk import rewriter
from fusec.math.moments import over, square, together
from fusec.math.value import Term, where

Fields = tuple[tuple[str, DType], ...]


def sum_of(spread: Spread) -> Reduce:
    """The sum of the same value, of which its mean is made."""
    return Reduce("add", spread.value, scalar_type(spread.value))


def without_spreads(graph: KernelGraph) -> KernelGraph:
    """The graph with sums of squared distances from means in place of spreads."""

    def change(expr: Expr) -> Expr:
        if not isinstance(expr, Spread):
            return expr
        count = Term(Count(INT64)).to(expr.type)
        squares = square(Term(expr.value) - over(Term(sum_of(expr)), count))
        return Reduce("add", squares.expr, expr.type)

    rewrite = rewriter(change)
    outputs = tuple((name, rewrite(value)) for name, value in graph.outputs)
    return KernelGraph(graph.name, graph.inputs, outputs, graph.names, graph.lines)


@dataclass(frozen=True)
class ChunkSpread:
    """A spread of one chunk. number: among those of a kernel; total: the local that holds the chunk's sum."""

    spread: Spread
    number: int
    total: Expr

    @property
    def fields(self) -> Fields:
        """The parts by which chunks combine."""
        real, held = self.spread.type, scalar_type(self.spread.value)
        return tuple(
            (f"{name}{self.number}", kind)
            for name, kind in (("n", real), ("mean", held), ("rest", held), ("square", real))
        )

    @property
    def rests(self) -> Fields:
        """The sums of the second walk."""
        return (f"d{self.number}", scalar_type(self.spread.value)), (f"q{self.number}", self.spread.type)

    @property
    def _mean(self) -> Term:
        return Term(ir.Local(f"_mean{self.number}", scalar_type(self.spread.value)))

    @property
    def _count(self) -> Term:
        return Term(ir.Local(f"_count{self.number}", self.spread.type))

    def declared(self) -> tuple[ir.Stmt, ...]:
        """What follows the first walk."""
        count = Term(ir.Local(COVERED, INT64)).to(self.spread.type)
        mean = over(Term(self.total), self._count)
        return (
            ir.Declare(f"_count{self.number}", count.dtype, count.expr),
            ir.Declare(f"_mean{self.number}", mean.dtype, mean.expr),
        )

    def distances(self, value: Expr) -> tuple[Expr, Expr]:
        """What an element adds in the second walk. value: the element."""
        far = Term(value) - self._mean
        return far.expr, square(far).expr

    def parts(self, found: Mapping[str, Expr]) -> tuple[Expr, ...]:
        """What the chunk hands on. found: the sums of the second walk by name."""
        d, q = (Term(found[name]) for name, _ in self.rests)
        squares = q - square(d) / self._count
        kept = where(squares < 0, 0.0, squares)
        return self._count.expr, self._mean.expr, over(d, self._count).expr, kept.expr

    def combined(self, a: Callable[[str, DType], Expr], b: Callable[[str, DType], Expr]) -> tuple[Expr, ...]:
        """The parts of two chunks together. a, b: from names and dtypes of parts to those of one of them."""
        plain = ("n", "mean", "rest", "square")
        sides = [{name: Term(side(*field)) for name, field in zip(plain, self.fields, strict=True)} for side in (a, b)]
        return tuple(each.expr for each in together(*sides))


def combining(name: str, kind: Struct, values: Callable[..., Sequence[Expr]]) -> ir.Function:
    """A function of two structs. values: from functions that give their fields to the fields of the result."""

    def of(side: str) -> Callable[[str, DType], Expr]:
        return lambda field, dtype: ir.Field(ir.Local(side, kind), field, dtype)

    made = ir.Make(tuple(values(of("a"), of("b"))), kind)
    return ir.Function(name, (("a", kind), ("b", kind)), kind, (ir.Return(made),))


def second_walk(name: str, spreads: Sequence[ChunkSpread], values: Sequence[Expr]) -> tuple[Accumulator, ir.Function]:
    """What a second walk accumulates, and how. values: the elements of each spread."""
    kind = Struct("Rests", tuple(field for each in spreads for field in each.rests))
    added = tuple(part for each, value in zip(spreads, values, strict=True) for part in each.distances(value))
    function = combining(
        f"{name}_rests", kind,
        lambda a, b: [(Term(a(*field)) + Term(b(*field))).expr for field in kind.fields],
    )  # fmt: skip
    return Accumulator("_rests", kind, ir.Make(added, kind), function.name), function
