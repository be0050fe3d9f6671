"""Blocks: turn a block program into one whose elements do the work of a whole block, one thread after another.

The statements between two barriers are a region, and a region becomes a loop over the threads. Control around barriers
is the same for all threads and stands outside of these loops, once. What a thread keeps from region to region is an
element of an array of as many as there are threads; what never changes and is cheap is computed again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from fusec.base.dtypes import BOOL
from fusec.base.records import dataclass, replace
from fusec.errors.checks import BlockTooLarge
from fusec.ir import loops as ir
from fusec.ir.expr import Apply, Const, Expr, Type, const
from fusec.ir.walk import Body, blocks, expressions, operands, rewriter, statements
from fusec.passes.serialise_threads import DONE, Region, Threads, Writer, array_of, has, parts_of
from fusec.passes.uniform_statements import UniformStatements, set_by

MOST_BYTES = 256 << 10  # of a block's arrays on the stack, of which threads have 512 KiB and more
AGAIN = 12  # operations that are computed again rather than kept


def serialise_blocks(program: ir.Program) -> ir.Program:
    """The program whose elements are blocks that one thread runs.

    Requires: a block program whose barriers all threads come to, with primitive ops. Ensures: the same results; no
    barrier is left; shared arrays, and those of what threads keep, are declared first. Raises BlockTooLarge.
    """
    return _Turns(program).program()


@dataclass
class _Control:
    """A branch or loop of the whole block. nested: what its lists of statements became."""

    stmt: ir.If | ir.While
    nested: tuple[list[_Part], ...]


_Part = Region | _Control | ir.Stmt


class _Turns:
    """One block program on its way."""

    def __init__(self, program: ir.Program) -> None:
        self.source = program
        self.uniform = UniformStatements(program)
        self.regions: list[Region] = []
        self.looped: list[bool] = []  # of each region, whether a loop of the block holds it
        self.tree = self._parted(program.body, in_loop=False)
        if self.regions:
            self.regions[-1].is_last = not self.looped[-1]
        every = list(statements(program.body))
        self.types = {stmt.name: stmt.type for stmt in every if isinstance(stmt, ir.Declare)}
        self.arrays = {stmt.name: stmt for stmt in every if isinstance(stmt, ir.DeclareArray)}
        self.homes = {
            stmt.name: each.number for each in self.regions for stmt in each.body if isinstance(stmt, ir.Declare)
        }
        self.again = self._computed_again()
        uses = Counter(name for region in self.regions for name in self._used(region))
        own = self.types.keys() - self.uniform.names
        self.kept: dict[str, Type] = {name: kind for name, kind in self.types.items() if name in own and uses[name] > 1}
        self.kept_arrays = [name for name, stmt in self.arrays.items() if stmt.space == "local" and uses[name] > 1]
        if any(has(region.body, ir.Return) and not region.is_last for region in self.regions):
            self.kept[DONE] = BOOL

    def program(self) -> ir.Program:
        """The whole program."""
        arrays = [stmt for stmt in self.arrays.values() if stmt.space == "shared"]
        for name, kind in self.kept.items():
            for part, dtype in parts_of(name, kind):
                arrays.append(ir.DeclareArray(array_of(part), dtype, self.source.threads, space="shared"))
        for name in self.kept_arrays:
            stmt = self.arrays[name]
            arrays.append(
                ir.DeclareArray(array_of(name), stmt.element, self.source.threads * stmt.length, space="shared")
            )
        nbytes = sum(each.length * each.element.nbytes for each in arrays)
        if nbytes > MOST_BYTES:
            raise BlockTooLarge(self.source.name, nbytes, MOST_BYTES).at()
        start: Body = ()
        if DONE in self.kept:
            thread = Threads(self.source.block, len(self.regions))
            start = thread.loop((ir.Store(thread.place(DONE, BOOL), const(False, BOOL)),))
        return replace(self.source, body=(*arrays, *start, *self._written(self.tree)), block=())

    # --- regions -------------------------------------------------------------------------------------------------

    def _parted(self, body: Body, in_loop: bool) -> list[_Part]:
        """What the block does as one, and regions between."""
        found: list[_Part] = []
        region: Region | None = None
        for stmt in body:
            is_one = self.uniform.is_one(stmt) or isinstance(stmt, ir.Break | ir.Continue | ir.Return)
            is_first = is_one and isinstance(stmt, ir.Declare) and stmt.name in self.uniform.fixed
            if ir.is_shared(stmt):
                continue
            if is_one and not is_first:
                region = None
                if isinstance(stmt, ir.If | ir.While):
                    inside = in_loop or isinstance(stmt, ir.While)
                    found.append(_Control(stmt, tuple(self._parted(each, inside) for each in blocks(stmt))))
                elif not isinstance(stmt, ir.Barrier):
                    found.append(stmt)
                continue
            if region is None:
                region = Region(len(self.regions))
                self.regions.append(region)
                self.looped.append(in_loop)
                found.append(region)
            (region.first if is_first else region.body).append(stmt)
        return found

    def _computed_again(self) -> dict[str, Expr]:
        """Locals that never change and whose values are cheap, in terms of what every region knows."""
        found: dict[str, Expr] = {}
        known = self.uniform.params | (self.uniform.names & self.uniform.fixed)

        def change(expr: Expr) -> Expr:
            return found.get(expr.name, expr) if isinstance(expr, ir.Local) else expr

        for stmt in (stmt for region in self.regions for stmt in region.body):
            if isinstance(stmt, ir.Declare) and stmt.value is not None and stmt.name in self.uniform.fixed:
                value = rewriter(change)(stmt.value)
                nodes = list(expressions((value,)))
                is_known = all(
                    isinstance(each, Const | Apply | ir.Query) or (isinstance(each, ir.Local) and each.name in known)
                    for each in nodes
                )
                if is_known and sum(isinstance(each, Apply) for each in nodes) <= AGAIN:
                    found[stmt.name] = value
        return found

    def _knowing(self, region: Region) -> Callable[[Expr], Expr]:
        """Expressions in a region, with what it computes again in place of locals."""

        def change(expr: Expr) -> Expr:
            if isinstance(expr, ir.Local) and self.homes.get(expr.name) != region.number:
                return self.again.get(expr.name, expr)
            return expr

        return rewriter(change)

    def _used(self, region: Region) -> set[str]:
        """The locals and local arrays that a region declares, reads or sets."""
        rewrite = self._knowing(region)
        every = list(statements(region.body))
        roots = tuple(rewrite(root) for stmt in every for root in operands(stmt))
        named = {each.name for each in expressions(roots) if isinstance(each, ir.Local | ir.LocalArray)}
        declared = {stmt.name for stmt in every if isinstance(stmt, ir.DeclareArray)}
        return named | declared | {name for stmt in every for name in [set_by(stmt)] if name}

    # --- text ----------------------------------------------------------------------------------------------------

    def _written(self, parts: Sequence[_Part]) -> Body:
        """The statements of the block."""
        found: list[ir.Stmt] = []
        for part in parts:
            match part:
                case Region():
                    found += [*part.first, *(self._writer(part).statements() if part.body else ())]
                case _Control(stmt, nested):
                    found.append(stmt.rebuild(operands(stmt), tuple(map(self._written, nested))))
                case _:
                    found.append(part)
        return tuple(found)

    def _writer(self, region: Region) -> Writer:
        """What writes a region."""
        used = self._used(region)
        kept = {name: kind for name, kind in self.kept.items() if name in used}
        arrays = {name: self.arrays[name] for name in self.kept_arrays}
        return Writer(self.source.block, region, self._knowing(region), kept, arrays, DONE in self.kept)
