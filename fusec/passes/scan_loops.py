"""The common parts of the two ways in which a scan walks its axis; variables are named by what they hold."""

from __future__ import annotations

from abc import ABC, abstractmethod

from fusec.base.dtypes import INT64
from fusec.ir.expr import Expr, Pointer
from fusec.ir.loops import Assign, Declare, If, Load, Local, Moved, Program, Query, ScalarParam, Stmt, While
from fusec.ir.reductions import AXIS, parts_of
from fusec.ir.scans import Scan, params_of, prefixes
from fusec.ir.walk import Body
from fusec.passes import Loops
from fusec.passes.affine import Running, int64, plus, relocated, test, times

CHUNK, START, SIZE, AT = "_chunk", "_start", "_size", "_at"
"""Locals: the number of the chunk, its first element and its size, and the number of an element or group in it."""


class ScanLoops(ABC):
    """One kernel of a scan."""

    def __init__(self, scan: Scan, loops: Loops) -> None:
        self.scan, self.axis, self.role = scan, loops.axis, loops.role
        self.levels, self.batch, self.is_costly = loops.levels, loops.batch, loops.costly
        self.run = Running(scan.running)
        self.here = Query("", "coordinate", int64(self.axis), INT64)
        self.extent, self.chunk = Local(AXIS, INT64), Local(CHUNK, INT64)
        self.start, self.size, self.at = Local(START, INT64), Local(SIZE, INT64), Local(AT, INT64)

    @property
    @abstractmethod
    def elements(self) -> int:
        """Elements of a chunk."""

    @abstractmethod
    def place(self) -> list[Stmt]:
        """Declare the chunk, and what scans of totals hold."""

    @abstractmethod
    def one_chunk(self) -> list[Stmt]:
        """The work on a chunk."""

    @abstractmethod
    def walk(self) -> list[Stmt]:
        """All elements of a chunk: `_carry0_` becomes their total, and all but totals are stored."""

    @abstractmethod
    def place_of(self, label: str, at: Expr) -> tuple[Stmt, Expr, Local]:
        """Where number `at` of the chunk is: the distance from the position's own place, declared, and the place."""

    def program(self) -> Program:
        """The whole program."""
        body = self.place()
        if self.scan.exclusive and self.role != "totals":
            body.append(If(test("equal", self.here, 0), self.scan.first))
        if self.role == "whole" and self.levels:
            more = test("less", times(self.chunk, self.elements), self.extent)
            body.append(While(more, tuple(self.one_chunk()), (Assign(CHUNK, plus(self.chunk, 1)),)))
        else:
            body += self.one_chunk()
        reduction, params = self.scan.reduction, (*params_of(self.scan, self.role), ScalarParam(AXIS, INT64))
        return Program(reduction.name, params, tuple(body), reduction.functions, reduction.source)

    def prefix(self, back: Expr) -> list[Stmt]:
        """The scanned totals before the chunk, if another kernel computed them. back: the distance to their element."""
        if self.role != "results":
            return []
        loads = []
        for param in prefixes(self.scan.total):
            place = Moved(param.name, (self.axis,), (back,), Pointer(param.dtype, "global", const=True))
            loads.append(Load(place, param.dtype))
        found = self.run.assign("_prefix1_", loads)
        return [*self.run.declare("_prefix1_"), If(test("greater", self.chunk, 0), tuple(found))]

    def with_prefix(self, name: str, value: str = "") -> Stmt:
        """Combine the variable, or the value of another one, with the totals before the chunk, if there are any."""
        joined = self.run.join(name, self.run.variable("_prefix1_"), self.run.variable(value or name))
        return If(test("greater", self.chunk, 0), tuple(joined))

    def totals(self, name: str) -> Body:
        """Declare the parts of a variable as `finish` knows them."""
        pairs = zip(self.scan.total.parts, self.run.variable(name), strict=True)
        return tuple(Declare(part, dtype, value) for (part, dtype), value in pairs)

    def taken(self, label: str, position: Expr, distance: Expr) -> tuple[Body, tuple[Expr, ...]]:
        """The statements for the element at a position, and its values."""
        body, rewrite = relocated(self.scan.stage.body, f"e{label}", self.axis, position, distance)
        return body, tuple(rewrite(value) for value in parts_of(self.scan.running.value))

    def finish(self, label: str, name: str, position: Expr, distance: Expr, *, is_inside: bool) -> list[Stmt]:
        """The end of the work on a running total, at this element or, in an exclusive scan, at the next."""
        if self.scan.exclusive:
            position, distance = plus(position, 1), plus(distance, 1)
        body, _ = relocated(
            (*self.totals(name), *self.scan.reduction.finish), f"f{label}", self.axis, position, distance
        )
        return [*body] if is_inside else [If(test("less", position, self.extent), body)]
