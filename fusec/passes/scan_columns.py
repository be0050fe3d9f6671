"""Scan columns: turn a scan along an axis that is not the last into a program whose positions walk that axis.

Lanes lie along the last axis and never meet, so that every target runs the program as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.base.dtypes import INT64
from fusec.ir import loops as ir
from fusec.ir.expr import Expr
from fusec.ir.reductions import partials
from fusec.ir.scans import ROWS, Scan
from fusec.passes import Loops
from fusec.passes.affine import int64, least, minus, over, plus, rest, test, times
from fusec.passes.scan_loops import AT, CHUNK, SIZE, START, ScanLoops


def scan_columns(scan: Scan, loops: Loops) -> ir.Program:
    """The program over positions whose coordinate along the axis is the number of a chunk; of "whole", one position.

    Requires: all arrays have their own strides along the axis. Ensures: Note [Scan order]; AXIS, the axis's extent, is
    a further scalar parameter.
    """
    return ColumnScan(scan, loops).program()


class ColumnScan(ScanLoops):
    """One kernel of a scan along another axis than the last."""

    @property
    def elements(self) -> int:
        """Elements of a chunk."""
        return ROWS

    def place(self) -> list[ir.Stmt]:
        """Declare the chunk, and what scans of totals hold."""
        body: list[ir.Stmt] = [ir.Declare(CHUNK, INT64, int64(0) if self.role == "whole" else self.here)]
        for level in range(1, self.levels + 1) if self.role == "whole" else ():
            body += [*self.run.declare(f"_carry{level}_"), *self.run.declare(f"_prefix{level}_")]
        return body

    def one_chunk(self) -> list[ir.Stmt]:
        """The elements of a chunk, its total, and of "whole" what follows from it for the next chunk."""
        run, left = self.run, minus(self.extent, self.start)
        body: list[ir.Stmt] = [
            ir.Declare(START, INT64, times(self.chunk, ROWS)),
            ir.Declare(SIZE, INT64, least(left, ROWS)),
            *run.declare("_carry0_"),
            *self.prefix(int64(-1)),
            *self.walk(),
        ]
        if self.role == "totals":
            outputs, _ = partials(self.scan.total)
            pairs = zip(outputs, run.variable("_carry0_"), strict=True)
            return [*body, *(ir.Store(each.element(), value) for each, value in pairs)]
        if self.levels:
            another = test("less", plus(self.start, ROWS), self.extent)
            body.append(ir.If(another, tuple(self._level(1, self.chunk, "_carry0_"))))
        return body

    def walk(self) -> list[ir.Stmt]:
        """The elements of a chunk, one after the other."""
        body = [*self._elements(("p",), int64(0), is_first=True), ir.Declare(AT, INT64, int64(1))]
        if self.batch > 1:
            labels = tuple(f"b{number}" for number in range(self.batch))
            more = test("less", plus(self.at, self.batch - 1), self.size)
            step = (ir.Assign(AT, plus(self.at, self.batch)),)
            body.append(ir.While(more, tuple(self._elements(labels, self.at)), step))
        step = (ir.Assign(AT, plus(self.at, 1)),)
        return [*body, ir.While(test("less", self.at, self.size), tuple(self._elements(("",), self.at)), step)]

    def place_of(self, label: str, at: Expr) -> tuple[ir.Stmt, Expr, ir.Local]:
        """The same of the element of that number."""
        position, distance = plus(self.start, at), ir.Local(f"_distance{label}", INT64)
        return ir.Declare(distance.name, INT64, minus(position, self.here)), position, distance

    def _elements(self, labels: Sequence[str], at: Expr, *, is_first: bool = False) -> list[ir.Stmt]:
        """Elements one after the other, from number `at` of the chunk on, one for each label.

        All are asked for before any result is stored.
        """
        code: list[ir.Stmt] = []
        places = []
        for number, label in enumerate(labels):
            declared, position, distance = self.place_of(label, plus(at, number) if number else at)
            code.append(declared)
            places.append((label, position, distance))
        for label, position, distance in places:
            body, values = self.taken(label, position, distance)
            code += [*body, *self.run.declare(f"_mine{label}", values)]
        for label, position, distance in places:
            code += self._element(label, position, distance, is_first=is_first)
        return code

    def _element(self, label: str, position: Expr, distance: Expr, *, is_first: bool) -> list[ir.Stmt]:
        """One element: combined with those before it in the chunk, then with the prefix, and stored."""
        run = self.run
        mine = run.variable(f"_mine{label}")
        code = run.assign("_carry0_", mine) if is_first else run.join("_carry0_", run.variable("_carry0_"), mine)
        if self.role == "totals":
            return code
        result = "_carry0_"
        if self.role in ("results", "one_pass") or self.levels:
            result = f"_result{label}"
            code += run.declare(result, run.variable("_carry0_"))
            code.append(self.with_prefix(result, "_carry0_"))
        return [*code, *self.finish(label, result, position, distance, is_inside=not self.scan.exclusive)]

    def _level(self, level: int, number: Expr, total: str) -> list[ir.Stmt]:
        """The total of a chunk becomes the next element of a scan, whose result is the prefix of the next chunk."""
        run = self.run
        carry, prefix, above = f"_carry{level}_", f"_prefix{level}_", f"_prefix{level + 1}_"
        place, up = rest(number, ROWS), over(number, ROWS)
        code = [run.join_if(test("greater", place, 0), carry, run.variable(carry), run.variable(total))]
        if level == self.levels:
            return [*code, *run.assign(prefix, run.variable(carry))]
        code.append(run.join_if(test("greater", up, 0), prefix, run.variable(above), run.variable(carry)))
        ends = test("equal", place, ROWS - 1)
        return [*code, ir.If(ends, tuple(self._level(level + 1, up, carry)))]
