"""Scan rows: turn a scan along the last axis into a program in which groups of positions share the chunks.

A group takes the groups of elements of its chunk one after the other, each position one element, and shuffles carry
values upwards. Every target runs the program: a group is a warp, a SIMD group, or a vector of GROUP lanes.
"""

from __future__ import annotations

from fusec.base.dtypes import INT64
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, apply
from fusec.ir.reductions import partials, parts_of
from fusec.ir.scans import COUNT, GROUPS, NUMBER, Scan, chunk_of, params_of, states
from fusec.ir.walk import Body
from fusec.passes import Loops
from fusec.passes.affine import int64, least, minus, over, plus, rest, test, times
from fusec.passes.scan_loops import AT, CHUNK, SIZE, START, ScanLoops

MEMBER = "_member"  # a local: the position in the group

ELEMENTS = chunk_of(True)


def scan_rows(scan: Scan, loops: Loops) -> ir.Program:
    """The program over positions whose coordinate along the last axis is GROUP times the chunk, and the member.

    Of "whole", there are GROUP positions.
    Requires: all arrays have their own strides along the axis. Ensures: Note [Scan order]; AXIS, the axis's extent, is
    a further scalar parameter.
    """
    return RowScan(scan, loops).program()


def advance_row(scan: Scan, loops: Loops) -> ir.Program:
    """The program of one group of a scan along the last axis, of which GROUP positions are one element each.

    What the groups before it have left comes from arrays, and goes there again: `fusec.ir.scans.states`, which need not
    be initialised before the first group of a row. NUMBER says which group of its row it is, COUNT how many elements it
    has.
    Requires: one axis; only the last group of a row has fewer than GROUP elements. Ensures: Note [Scan order].
    """
    return RowScan(scan, loops).advance()


class RowScan(ScanLoops):
    """One kernel of a scan along the last axis."""

    member = ir.Local(MEMBER, INT64)

    @property
    def is_kept(self) -> bool:
        """Whether the carry is the last result of a group as it is stored, instead of being combined once more."""
        return self.is_costly and self.role != "totals"

    @property
    def elements(self) -> int:
        """Elements of a chunk."""
        return ELEMENTS

    def place(self) -> list[ir.Stmt]:
        """Declare the member and the chunk, and what scans of totals hold."""
        run = self.run
        body: list[ir.Stmt] = [ir.Declare(MEMBER, INT64, rest(self.here, ir.GROUP))]
        if self.role != "whole":
            number = over(self.here, ir.GROUP)
            return [
                *body,
                ir.Declare(CHUNK, INT64),
                ir.Shuffle(CHUNK, number, ir.FIRST),
            ]  # all of a group have the same
        body.append(ir.Declare(CHUNK, INT64, int64(0)))
        for level in range(1, self.levels + 1):
            body += [*run.declare(f"_held{level}_"), *run.declare(f"_carry{level}_")]
            body += run.declare(f"_prefix{level}_")
        return body

    def advance(self) -> ir.Program:
        """The program of one group; `number` counts those of a row."""
        scan, run, carry, mine, last = self.scan, self.run, "_carry0_", "_mine", "_last"
        number, inside = ir.Local(NUMBER, INT64), test("less", self.member, ir.Local(COUNT, INT64))
        held = states(scan.total, self.levels)
        body: list[ir.Stmt] = [ir.Declare(MEMBER, INT64, self.here), ir.Declare(CHUNK, INT64, over(number, GROUPS))]
        for name, arrays in held:
            body += run.declare(name, [ir.Load(each.element(), each.dtype) for each in arrays])
        loads, total = scan.stage.body, parts_of(scan.running.value)
        body += [*run.declare(mine), ir.If(inside, (*loads, *run.assign(mine, total)))]
        body += self._scanned(mine, "_theirs", last)
        both = self._carried(mine, last)
        place = rest(number, GROUPS)
        body.append(ir.If(test("greater", place, 0), both, tuple(run.assign(carry, run.variable(last)))))
        if self.levels:
            body.append(self.with_prefix(mine))
        body.append(ir.If(inside, (*self.totals(mine), *scan.reduction.finish)))
        if self.levels:
            ends = test("equal", place, GROUPS - 1)
            body.append(ir.If(ends, tuple(self._level(1, self.chunk, run.variable(carry)))))
        for name, arrays in held:
            pairs_of = zip(arrays, run.variable(name), strict=True)
            body += [ir.Store(each.element(), value) for each, value in pairs_of]
        reduction = scan.reduction
        params = params_of(scan, "advance", self.levels)
        return ir.Program(reduction.name, params, tuple(body), reduction.functions, reduction.source)

    # --- chunks --------------------------------------------------------------------------------------------------

    def one_chunk(self) -> list[ir.Stmt]:
        """All groups of a chunk; the last one may not be whole."""
        run, left = self.run, minus(self.extent, self.start)
        body: list[ir.Stmt] = [
            ir.Declare(START, INT64, times(self.chunk, ELEMENTS)),
            ir.Declare(SIZE, INT64, least(left, ELEMENTS)),
            *run.declare("_carry0_"),
            *self.prefix(minus(minus(self.chunk, 1), self.here)),
            *self.walk(),
        ]
        if self.role == "totals":
            return [*body, ir.If(test("equal", self.member, 0), self._store_total())]
        if self.levels:
            another = test("less", plus(self.start, ELEMENTS), self.extent)
            carry = run.variable("_carry0_")
            body.append(ir.If(another, tuple(self._level(1, self.chunk, carry))))
        return body

    def walk(self) -> list[ir.Stmt]:
        """The groups of a chunk, one after the other; of totals, those that are whole."""
        if self.role == "totals" and self.batch > 1 and GROUPS % self.batch == 0:
            return self._lasts_alone()
        left = minus(self.extent, self.start)
        reached = minus(left, 1) if self.scan.exclusive else left  # the next group must begin inside, too
        groups, one = ir.Local("_groups", INT64), ir.Assign(AT, int64(1))
        body: list[ir.Stmt] = [
            ir.Declare(AT, INT64, int64(0)),
            ir.Declare(groups.name, INT64, least(over(reached, ir.GROUP), GROUPS)),
            ir.If(test("greater", groups, 0), (*self._group("p", is_first=True), one)),
            *self._whole_groups(groups),
        ]
        if self.role != "totals":
            body.append(ir.If(test("less", times(groups, ir.GROUP), self.size), tuple(self._rest("r"))))
        return body

    def _whole_groups(self, groups: Expr) -> list[ir.Stmt]:
        """Those after the first, `BATCH` of them at a time, whose elements are all asked for before any are stored."""
        last = plus(self.at, self.batch - 1)
        found: list[ir.Stmt] = []
        if self.batch > 1:
            several: list[ir.Stmt] = []
            values = []
            for number in range(self.batch):
                statements, given = self._elements(f"b{number}", plus(self.at, number))
                several += statements
                values.append(given)
            for number, given in enumerate(values):
                several += self._group(f"b{number}", ahead=number, given=given)
            found.append(
                ir.While(test("less", last, groups), tuple(several), (ir.Assign(AT, plus(self.at, self.batch)),))
            )
        step = (ir.Assign(AT, plus(self.at, 1)),)
        return [*found, ir.While(test("less", self.at, groups), tuple(self._group("")), step)]

    def _lasts_alone(self) -> list[ir.Stmt]:
        """`_carry0_` is the total of a whole chunk; of `batch` groups at a time, nothing but the last is found."""
        run, found, carry = self.run, "_found", "_carry0_"
        several: list[ir.Stmt] = []
        for number in range(self.batch):
            several += self._elements(f"b{number}", plus(self.at, number))[0]
        several += self._lasts([f"_mineb{number}" for number in range(self.batch)], found)
        for number in range(self.batch):
            joined = run.join(carry, run.variable(carry), run.variable(found))
            first = tuple(run.assign(carry, run.variable(found)))
            several += [ir.If(test("greater", self.at, 0), tuple(joined), first)] if number == 0 else joined
            several += run.shuffle(found, run.variable(found), -1) if number < self.batch - 1 else []
        several += run.shuffle(carry, run.variable(carry), ir.LAST)
        step = ir.Assign(AT, plus(self.at, self.batch))
        return [ir.Declare(AT, INT64, int64(0)), ir.While(test("less", self.at, GROUPS), tuple(several), (step,))]

    def _lasts(self, mine: list[str], found: str) -> list[ir.Stmt]:
        """A new variable with the last values of groups that are scanned by doubling distances.

        The last position has that of the first group, the one before that of the second, and so on. At each distance
        positions go on with half of the groups, so that all have something to combine. mine: variables with the
        elements of each group.
        """
        run, distance, theirs = self.run, 1, "_theirs_"
        code = run.declare(theirs)
        while distance < ir.GROUP:
            is_upper = test("not_equal", apply("bitwise_and", self.member, int64(distance)), 0)
            for at in range(0, len(mine), 2):
                upper, *lower = mine[at : at + 2]
                code += run.shuffle(theirs, run.variable(upper), -distance)
                before, after = run.variable(theirs), run.variable(upper)
                if not lower:
                    code.append(ir.If(is_upper, tuple(run.join(upper, before, after))))
                    continue
                behind, other = f"_behind{lower[0]}", run.variable(lower[0])
                code += run.shuffled(behind, other, distance)
                left = [apply("where", is_upper, *each) for each in zip(before, other, strict=True)]
                right = [apply("where", is_upper, *each) for each in zip(after, run.variable(behind), strict=True)]
                code += run.join(upper, left, right)
            mine, distance = mine[::2], 2 * distance
        return [*code, *run.declare(found, run.variable(mine[0]))]

    def _store_total(self) -> Body:
        _, stores = partials(self.scan.total)
        values = self.run.variable("_carry0_")
        there = minus(self.chunk, self.here)
        found: list[ir.Stmt] = []
        for stmt, value in zip(stores, values, strict=True):
            assert isinstance(stmt, ir.Store), "totals are stored"
            assert isinstance(stmt.pointer, ir.Element), "totals have elements"
            found.append(ir.Store(ir.Moved(stmt.pointer.param, (self.axis,), (there,), stmt.pointer.type), value))
        return tuple(found)

    # --- groups --------------------------------------------------------------------------------------------------

    def place_of(self, label: str, at: Expr) -> tuple[ir.Stmt, Expr, ir.Local]:
        """The same of the group of that number."""
        base = plus(self.start, times(at, ir.GROUP))
        shift = base if self.role == "whole" else minus(base, times(self.chunk, ir.GROUP))
        distance = ir.Local(f"_distance{label}", INT64)
        return ir.Declare(distance.name, INT64, shift), plus(base, self.member), distance

    def _elements(self, label: str, at: Expr) -> tuple[list[ir.Stmt], tuple[Expr, ...]]:
        """What happens for the elements of a whole group, and their values."""
        declared, position, distance = self.place_of(label, at)
        body, values = self.taken(label, position, distance)
        mine = f"_mine{label}"
        return [declared, *body, *self.run.declare(mine, values)], self.run.variable(mine)

    def _group(
        self, label: str, *, ahead: int = 0, is_first: bool = False, given: tuple[Expr, ...] = ()
    ) -> list[ir.Stmt]:
        """A whole group of elements: scanned, combined with what is before it, and stored.

        ahead: groups after the current one. given: the values, if they are known.
        """
        run, mine, last, carry = self.run, f"_mine{label}", f"_last{label}", "_carry0_"
        at = int64(0) if is_first else plus(self.at, ahead) if ahead else self.at
        code: list[ir.Stmt] = [] if given else self._elements(label, at)[0]
        code += self._scanned(mine, f"_theirs{label}", "" if self.is_kept else last)
        if self.is_kept:
            code += [] if is_first else run.join(mine, run.variable(carry), run.variable(mine))
            code += run.shuffle(carry, run.variable(mine), ir.LAST)
        else:
            code += run.assign(carry, run.variable(last)) if is_first else self._carried(mine, last)
        _, position, distance = self.place_of(label, at)
        return [*code, *self._stored(label, mine, position, distance, is_whole=True)]

    def _rest(self, label: str) -> list[ir.Stmt]:
        """The same of a group that is not whole."""
        run, mine, last, carry = self.run, f"_mine{label}", f"_last{label}", "_carry0_"
        declared, position, distance = self.place_of(label, self.at)
        body, values = self.taken(label, position, distance)
        inside = test("less", position, self.extent)
        code: list[ir.Stmt] = [declared, *run.declare(mine), ir.If(inside, (*body, *run.assign(mine, values)))]
        code += self._scanned(mine, f"_theirs{label}", "" if self.is_kept else last)
        is_later = test("greater", self.at, 0)
        if self.is_kept:
            code.append(ir.If(is_later, tuple(run.join(mine, run.variable(carry), run.variable(mine)))))
        else:
            code.append(ir.If(is_later, self._carried(mine, last), tuple(run.assign(carry, run.variable(last)))))
        return [*code, *self._stored(label, mine, position, distance, is_whole=False)]

    def _stored(self, label: str, mine: str, position: Expr, distance: Expr, *, is_whole: bool) -> list[ir.Stmt]:
        """Combined with the prefix of the chunk, and stored; of totals nothing is."""
        if self.role == "totals":
            return []
        code: list[ir.Stmt] = []
        if self.role in ("results", "one_pass") or self.levels:
            code.append(self.with_prefix(mine))
        return [*code, *self.finish(label, mine, position, distance, is_inside=is_whole)]

    def _carried(self, mine: str, last: str) -> Body:
        """A group combined with what is before it in the chunk; of totals, the last of it alone."""
        run, carry = self.run, self.run.variable("_carry0_")
        joined = [] if self.role == "totals" else run.join(mine, carry, run.variable(mine))
        return (*joined, *run.join("_carry0_", carry, run.variable(last)))

    def _scanned(self, mine: str, theirs: str, last: str, first: Expr | None = None) -> list[ir.Stmt]:
        """All positions of a group combined with those before, by doubling distances, and the result of the last one.

        first: the first position that takes part, if not all do. last: "" if nobody asks for that result.
        """
        run, distance = self.run, 1
        code = run.declare(theirs)
        while distance < ir.GROUP:
            code += run.shuffle(theirs, run.variable(mine), -distance)
            joined = run.join(mine, run.variable(theirs), run.variable(mine))
            far = (self.member, distance) if first is None else (minus(self.member, distance), first)
            code.append(ir.If(test("greater_equal", *far), tuple(joined)))
            distance *= 2
        return [*code, *(run.shuffled(last, run.variable(mine), ir.LAST) if last else [])]

    # --- totals of chunks, as they come --------------------------------------------------------------------------

    def _level(self, level: int, number: Expr, total: tuple[Expr, ...]) -> list[ir.Stmt]:
        """The total of a chunk becomes the next element of a scan, whose result is the prefix of the next chunk.

        The totals of the current group are held so that the newest is the last one; `number` counts them.
        """
        run = self.run
        held, work, carry, prefix = f"_held{level}_", f"_work{level}_", f"_carry{level}_", f"_prefix{level}_"
        before, last, above = f"_before{level}_", f"_last{level}_", f"_prefix{level + 1}_"
        place, group, up = rest(number, ir.GROUP), rest(over(number, ir.GROUP), GROUPS), over(number, ELEMENTS)
        is_last = test("equal", self.member, ir.GROUP - 1)
        first = minus(int64(ir.GROUP - 1), place)  # where the group's first total is
        code = run.shuffled(before, run.variable(held), 1)
        code += [*run.assign(held, run.variable(before)), ir.If(is_last, tuple(run.assign(held, total)))]
        code += run.declare(work, run.variable(held))
        code += self._scanned(work, f"_theirs{level}_", last, first)
        code.append(run.join_if(test("greater", group, 0), last, run.variable(carry), run.variable(last)))
        if level < self.levels:
            code.append(run.join_if(test("greater", up, 0), prefix, run.variable(above), run.variable(last)))
        else:
            code += run.assign(prefix, run.variable(last))
        full: list[ir.Stmt] = run.assign(carry, run.variable(last))
        if level < self.levels:
            ends = test("equal", group, GROUPS - 1)
            full.append(ir.If(ends, tuple(self._level(level + 1, up, run.variable(last)))))
        return [*code, ir.If(test("equal", place, ir.GROUP - 1), tuple(full))]
