"""Scan columns: turn a scan along an axis that is not the last into a program whose positions walk that axis.

Lanes lie along the last axis and never meet, so that every target runs the program as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.base.dtypes import INT64
from fusec.ir.expr import Expr, Pointer
from fusec.ir.loops import (
    Assign,
    Declare,
    Element,
    If,
    Load,
    Local,
    Moved,
    Program,
    Query,
    ScalarParam,
    Stmt,
    Store,
    While,
)
from fusec.ir.reductions import AXIS, parts_of
from fusec.ir.scans import ROWS, Role, Scan, params_of, partials, prefixes
from fusec.passes.affine import Running, int64, least, minus, over, plus, relocated, rest, test, times

CHUNK, START, SIZE, AT = "_chunk", "_start", "_size", "_at"
"""Locals: number of the chunk, its first element and their number, number of an element of the chunk."""


def scan_columns(scan: Scan, axis: int, role: Role, levels: int = 0, batch: int = 1) -> Program:
    """The program over positions whose coordinate along `axis` is the number of a chunk.

    role: "whole": the axis has one position, which takes all chunks; their totals are scanned as they come, `levels`
    times. "totals": the totals of all chunks but the last. "results": of all chunks, from scanned totals. batch:
    elements that are asked for together, which says nothing about the order of combinations. It takes AXIS, the axis's
    extent, as a further scalar parameter. All arrays must have their own strides along the axis.
    """
    return _Columns(scan, axis, role, levels, batch).program()


class _Columns:
    """One scan on its way; variables are named by what they hold."""

    def __init__(self, scan: Scan, axis: int, role: Role, levels: int, batch: int) -> None:
        self.scan, self.axis, self.role, self.levels, self.batch = scan, axis, role, levels, batch
        self.run = Running(scan.running)
        self.here = Query("", "coordinate", int64(axis), INT64)
        self.extent, self.chunk = Local(AXIS, INT64), Local(CHUNK, INT64)
        self.start, self.size, self.at = Local(START, INT64), Local(SIZE, INT64), Local(AT, INT64)

    def program(self) -> Program:
        """The whole program."""
        reduction, run = self.scan.reduction, self.run
        body: list[Stmt] = [Declare(CHUNK, INT64, int64(0) if self.role == "whole" else self.here)]
        if self.role == "whole":
            for level in range(1, self.levels + 1):
                body += [*run.declare(f"_carry{level}_"), *run.declare(f"_prefix{level}_")]
        if self.scan.exclusive and self.role != "totals":
            body.append(If(test("equal", self.here, 0), self.scan.first))
        if self.role == "whole" and self.levels:
            more = test("less", times(self.chunk, ROWS), self.extent)
            body.append(While(more, tuple(self._one_chunk()), (Assign(CHUNK, plus(self.chunk, 1)),)))
        else:
            body += self._one_chunk()
        params = (*params_of(self.scan, self.role), ScalarParam(AXIS, INT64))
        return Program(reduction.name, params, tuple(body), reduction.functions, reduction.source)

    def _one_chunk(self) -> list[Stmt]:
        """The elements of a chunk, one after the other."""
        run, left = self.run, minus(self.extent, self.start)
        body: list[Stmt] = [
            Declare(START, INT64, times(self.chunk, ROWS)),
            Declare(SIZE, INT64, least(left, ROWS)),
            *run.declare("_carry0_"),
            *self._prefix(),
            *self._elements(("p",), int64(0), is_first=True),
            Declare(AT, INT64, int64(1)),
        ]
        if self.batch > 1:
            labels = tuple(f"b{number}" for number in range(self.batch))
            more = test("less", plus(self.at, self.batch - 1), self.size)
            step = (Assign(AT, plus(self.at, self.batch)),)
            body.append(While(more, tuple(self._elements(labels, self.at)), step))
        step = (Assign(AT, plus(self.at, 1)),)
        body.append(While(test("less", self.at, self.size), tuple(self._elements(("",), self.at)), step))
        if self.role == "totals":
            outputs, _ = partials(self.scan.total)
            pairs = zip(outputs, run.variable("_carry0_"), strict=True)
            return [*body, *(Store(Element(each.name, Pointer(each.dtype, "global")), value) for each, value in pairs)]
        if self.levels:
            another = test("less", plus(self.start, ROWS), self.extent)
            body.append(If(another, tuple(self._level(1, self.chunk, "_carry0_"))))
        return body

    def _prefix(self) -> list[Stmt]:
        """The scanned totals before the chunk, if they were computed elsewhere."""
        if self.role != "results":
            return []
        loads = []
        for param in prefixes(self.scan.total):
            place = Moved(param.name, (self.axis,), (int64(-1),), Pointer(param.dtype, "global", const=True))
            loads.append(Load(place, param.dtype))
        found = self.run.assign("_prefix1_", loads)
        return [*self.run.declare("_prefix1_"), If(test("greater", self.chunk, 0), tuple(found))]

    def _elements(self, labels: Sequence[str], at: Expr, *, is_first: bool = False) -> list[Stmt]:
        """Elements one after the other, from number `at` of the chunk on, one for each label.

        All are asked for before any result is stored.
        """
        code: list[Stmt] = []
        places = []
        for number, label in enumerate(labels):
            position = plus(self.start, plus(at, number) if number else at)
            distance = Local(f"_distance{label}", INT64)
            code.append(Declare(distance.name, INT64, minus(position, self.here)))
            places.append((label, position, distance))
        for label, position, distance in places:
            body, rewrite = relocated(self.scan.stage.body, f"e{label}", self.axis, position, distance)
            values = tuple(rewrite(value) for value in parts_of(self.scan.running.value))
            code += [*body, *self.run.declare(f"_mine{label}", values)]
        for label, position, distance in places:
            code += self._element(label, position, distance, is_first=is_first)
        return code

    def _element(self, label: str, position: Expr, distance: Expr, *, is_first: bool) -> list[Stmt]:
        """One element: combined with those before it in the chunk, then with the prefix, and stored."""
        run, scan = self.run, self.scan
        mine = run.variable(f"_mine{label}")
        code = run.assign("_carry0_", mine) if is_first else run.join("_carry0_", run.variable("_carry0_"), mine)
        if self.role == "totals":
            return code
        result = "_carry0_"
        if self.role == "results" or self.levels:
            result = f"_result{label}"
            code += run.declare(result, run.variable("_carry0_"))
            joined = run.join(result, run.variable("_prefix1_"), run.variable("_carry0_"))
            code.append(If(test("greater", self.chunk, 0), tuple(joined)))
        pairs = zip(scan.total.parts, run.variable(result), strict=True)
        totals = tuple(Declare(name, dtype, value) for (name, dtype), value in pairs)
        if scan.exclusive:
            position, moved = plus(position, 1), plus(distance, 1)
            done, _ = relocated((*totals, *scan.reduction.finish), f"f{label}", self.axis, position, moved)
            return [*code, If(test("less", position, self.extent), done)]
        done, _ = relocated((*totals, *scan.reduction.finish), f"f{label}", self.axis, position, distance)
        return [*code, *done]

    def _level(self, level: int, number: Expr, total: str) -> list[Stmt]:
        """The total of a chunk becomes the next element of a scan, whose result is the prefix of the next chunk."""
        run = self.run
        carry, prefix, above = f"_carry{level}_", f"_prefix{level}_", f"_prefix{level + 1}_"
        place, up = rest(number, ROWS), over(number, ROWS)
        code = [run.join_if(test("greater", place, 0), carry, run.variable(carry), run.variable(total))]
        if level == self.levels:
            return [*code, *run.assign(prefix, run.variable(carry))]
        code.append(run.join_if(test("greater", up, 0), prefix, run.variable(above), run.variable(carry)))
        ends = test("equal", place, ROWS - 1)
        return [*code, If(ends, tuple(self._level(level + 1, up, carry)))]
