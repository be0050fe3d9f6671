"""Bounds: insert checks of indices before every statement that uses one, of assertions, and of wrapping integers.

The first violation is written into a hidden array, `FAULT`, and the element that has it ends its work there, so that
nothing outside an array is touched. A thread of a block goes on to meet the others at barriers, but touches no memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from fusec.base.dtypes import BOOL, INT64, UINT32, UINT64, DType
from fusec.base.records import dataclass, field, replace
from fusec.errors.checks import CannotCheck
from fusec.ir import loops as ir
from fusec.ir.expr import Apply, Const, Expr, Pointer, apply, const, scalar_type, type_of
from fusec.ir.losses import Loss, bits_of, losses
from fusec.ir.uniform import uniformity
from fusec.ir.walk import (
    Body,
    changed_names,
    map_expressions,
    map_statements,
    operands,
    renamed,
    rewriter,
    statements,
    with_body,
)

FAULT = "fusec_fault"
WORDS = 7
"""uint32 words of FAULT: the number of the site + 1, or 0; then of 64 bits each, the low word first, the index or the
first operand, the element's position, and the second operand."""

REPLAYS = 256  # calls of functions that are looked through for integers that wrap

ENDED = "fusec_ended"

TRUE, FALSE, ZERO = const(True, BOOL), const(False, BOOL), const(0, INT64)
GOES_ON = apply("logical_not", ir.Local(ENDED, BOOL))


@dataclass(frozen=True)
class CheckSite:
    """A place where a check may fail."""

    line: int
    array: str = ""  # "" for an assertion and for a tuple or an array of constants
    axis: int = 0
    axes: int = 1
    limit: int = 0  # elements of a tuple, of an array of constants, or of a local array
    op: str = ""  # an operation that loses its value, see `ir.losses.Loss`
    given: tuple[DType, ...] = ()  # the dtypes of its operands
    dtype: DType = BOOL  # its own


@dataclass(frozen=True)
class _Access:
    """An index that must be at least `least` and below a limit, if the condition holds."""

    condition: Expr
    index: Expr
    limit: Expr
    site: CheckSite
    least: Expr = ZERO


@dataclass(frozen=True)
class _Done:
    """What is done if the condition holds: an operation that may lose its value, or a call of a function."""

    condition: Expr
    what: Loss | ir.Call
    line: int


def check_bounds(program: ir.Program, kinds: str = "bounds") -> tuple[ir.Program, tuple[CheckSite, ...]]:
    """The program with its checks and one more array, FAULT, and the sites that this refers to.

    kinds: what is looked for, "bounds" or "wrap" or both with a comma between. Of bounds:
    Requires: the program as a front end made it; assertions are statements that call ASSERT. Ensures: no such call is
    left; arrays are indexed inside. In functions that the kernel calls, indices into local arrays are clamped, and
    assertions are left out. Raises CannotCheck for pointers that are moved. Of wraps: an element that has one goes on;
    functions are looked through where they are called, unless they change memory.
    """
    checks = (_BlockChecks if program.block else _Checks)(program, frozenset(kinds.split(",")))
    body = checks.whole()
    functions = program.functions
    if "bounds" in checks.kinds:
        functions = tuple(with_body(each, _clamped(each.body, program)) for each in functions)
    params = (*program.params, ir.ArrayParam(FAULT, UINT32, raw=True, written=True, ndim=1))
    return replace(program, params=params, body=body, functions=functions), tuple(checks.sites)


@dataclass
class _Checks:
    """The kernel's own body on its way."""

    program: ir.Program
    kinds: frozenset[str]
    sites: list[CheckSite] = field(default_factory=list)  # those so far, numbered in order
    lengths: dict[str, int] = field(default_factory=dict)
    count: int = 0
    line: int = 0  # of a call that is replayed

    def whole(self) -> Body:
        """The kernel's body."""
        return self.block(self.program.body)

    def ending(self, line: int) -> ir.Stmt:
        """What a violation leads to."""
        return ir.Return(line=line)

    def position(self) -> Expr:
        """Where the element is."""
        return ir.Query("", "index", None, INT64)

    def held(self, stmt: ir.If | ir.While, checks: list[ir.Stmt]) -> Expr:
        """The condition of a statement that has checks before it."""
        del checks
        return stmt.condition

    def block(self, body: Body) -> Body:
        """Statements with their checks before them."""
        return tuple(each for stmt in body for each in self._statement(stmt))

    def _statement(self, stmt: ir.Stmt) -> list[ir.Stmt]:
        match stmt:
            case ir.CallStatement(ir.Call(function, (condition,))) if function == ir.ASSERT:
                before = self._checks(stmt, (condition,))
                return [*before, self.report(apply("logical_not", condition), ZERO, CheckSite(stmt.line))]
            case ir.DeclareArray(name, _, length):
                self.lengths[name] = length
            case ir.While():
                return self._loop(stmt)
            case ir.If(_, then, orelse):
                checks = self._checks(stmt, operands(stmt))
                return [*checks, stmt.rebuild((self.held(stmt, checks),), (self.block(then), self.block(orelse)))]
        return self.simple(stmt, self._checks(stmt, operands(stmt)))

    def simple(self, stmt: ir.Stmt, checks: list[ir.Stmt]) -> list[ir.Stmt]:
        """A statement without others in it."""
        return [*checks, stmt]

    def _loop(self, stmt: ir.While) -> list[ir.Stmt]:
        """A loop; one whose condition or step needs checks gets them inside, before each round but the first."""
        line, step = stmt.line, self.block(stmt.step)
        checks = self._checks(stmt, (stmt.condition,))
        body, condition = self.block(stmt.body), self.held(stmt, checks)
        if not checks and step == stmt.step:
            return [stmt.rebuild((condition,), (body, step))]
        first = self._name("first")
        test: Body = (*checks, ir.If(apply("logical_not", condition), (ir.Break(line=line),), line=line))
        begin = ir.Assign(first, const(False, BOOL), line=line)
        inside = ir.Local(first, BOOL)
        head: Body = (ir.If(inside, (begin,), (*step, *test), line=line),)
        if stmt.test_first:
            head = (ir.If(inside, (begin,), step, line=line), *test)
        return [ir.Declare(first, BOOL, TRUE, line=line), ir.While(TRUE, (*head, *body), line=line)]

    def _name(self, what: str) -> str:
        self.count += 1
        return f"fusec_{what}_{self.count}"

    def _checks(self, stmt: ir.Stmt, roots: tuple[Expr, ...]) -> list[ir.Stmt]:
        """The checks for all that expressions do, in the order in which they happen, each once."""
        found: dict[_Access | _Done, None] = {}
        self.seen: set[tuple[Expr, Expr]] = set()
        for root in roots:
            for access in self._accesses(root, TRUE, stmt.line or self.line):
                found[access] = None
        return [each for access in found for each in self._check(access)]

    def _check(self, access: _Access | _Done) -> list[ir.Stmt]:
        match access:
            case _Access():
                return [self.report(_violated(access), access.index, access.site)]
            case _Done(condition, Loss(op, violated, values, dtype), line):
                site = CheckSite(line, op=op, given=tuple(map(scalar_type, values)), dtype=dtype)
                return [self.note(_both(condition, violated), tuple(map(bits_of, values)), site)]
            case _Done(condition, what, line):
                assert isinstance(what, ir.Call), "a loss or a call"
                return self._replayed(condition, what.function, what.args, line)

    def _replayed(self, condition: Expr, name: str, args: tuple[Expr, ...], line: int) -> list[ir.Stmt]:
        """What a function does, for its checks."""
        (function,) = (each for each in self.program.functions if each.name == name)
        self.count += 1
        outer, self.line = self.line, line
        body = replay(function, args, f"_fusec{self.count}") if self.count < REPLAYS else ()
        checked = self.block(body) if body else ()
        self.line = outer
        return [ir.If(condition, checked, line=line)] if checked else []

    def _accesses(self, expr: Expr, condition: Expr, line: int) -> Iterator[_Access | _Done]:
        """What an expression does, operands first; condition: under which it is evaluated."""
        if (expr, condition) in self.seen:
            return
        self.seen.add((expr, condition))
        match expr:
            case Apply("where", (test, then, orelse)):
                yield from self._accesses(test, condition, line)
                yield from self._accesses(then, _both(condition, test), line)
                yield from self._accesses(orelse, _both(condition, apply("logical_not", test)), line)
            case Apply("logical_and" | "logical_or" as op, (left, right)):
                yield from self._accesses(left, condition, line)
                held = left if op == "logical_and" else apply("logical_not", left)
                yield from self._accesses(right, _both(condition, held), line)
            case _:
                for child in expr.children:
                    yield from self._accesses(child, condition, line)
        if "bounds" in self.kinds:
            yield from self._own(expr, condition, line)
        if "wrap" in self.kinds:
            for loss in losses(expr):
                yield _Done(condition, loss, line)
            if isinstance(expr, ir.Call) and expr.function != ir.ASSERT:
                yield _Done(condition, expr, line)

    def _own(self, expr: Expr, condition: Expr, line: int) -> Iterator[_Access]:
        match expr:
            case ir.At(param, (index,)):
                site = CheckSite(line, param, 0, 1)
                yield _Access(condition, index, ir.Query(param, "size", None, INT64), site)
            case ir.At(param, index):
                for axis, part in enumerate(index):
                    limit = ir.Query(param, "shape", const(axis, INT64), INT64)
                    yield _Access(condition, part, limit, CheckSite(line, param, axis, len(index)))
            case ir.Offset(ir.LocalArray(name), distance):
                length = const(self.lengths[name], INT64)
                yield _Access(condition, distance, length, CheckSite(line, name, 0, 1, self.lengths[name]))
            case ir.Offset():
                raise _refusal(self.program)
            case Apply("position", (index, Const() as length)):
                items = int(length.value)
                yield _Access(condition, index, length, CheckSite(line, limit=items), const(-items, INT64))

    def report(self, violated: Expr, index: Expr, site: CheckSite) -> ir.Stmt:
        """Note a violation, if it is the first of all, and end the element's work."""
        return self.note(violated, (apply("bitcast", index, target=UINT64),), site, self.ending(site.line))

    def note(self, violated: Expr, values: tuple[Expr, ...], site: CheckSite, *ending: ir.Stmt) -> ir.Stmt:
        """Note a violation with up to two numbers as 64 bits, if it is the first of all. ending: what follows."""
        number, line = len(self.sites) + 1, site.line
        self.sites.append(site)
        old = self._name("old")
        place = apply("bitcast", self.position(), target=UINT64)
        words = [word for each in (values[0], place, *values[1:]) for word in _halves(each)]
        note = tuple(ir.Store(_word(at), word, line=line) for at, word in enumerate(words, 1))
        return ir.If(
            violated,
            (
                ir.Declare(old, UINT32, line=line),
                ir.Atomic("compare_exchange", _word(0), (const(0, UINT32), const(number, UINT32)), old, line=line),
                ir.If(apply("equal", ir.Local(old, UINT32), const(0, UINT32)), note, line=line),
                *ending,
            ),
            line=line,
        )


class _BlockChecks(_Checks):
    """Those of a block program: after a violation a thread goes on without memory, to where the others wait for it.

    What all threads do alike stays as it is, since barriers depend on it: of statements only those are guarded that
    touch memory, and of loops those that threads leave one by one anyway.
    """

    def whole(self) -> Body:
        """The kernel's body, after what it declares for the checks."""
        self.known = uniformity(self.program)
        self.moved: list[ir.Stmt] = [ir.Declare(ENDED, BOOL)]
        body = self.block(self.program.body)
        return (*self.moved, *body)

    def ending(self, line: int) -> ir.Stmt:
        """The thread touches no memory from here on."""
        return ir.Assign(ENDED, TRUE, line=line)

    def position(self) -> Expr:
        """The position in the grid, counted in C order."""
        found: Expr = ZERO
        for axis, extent in enumerate(self.program.block):
            along, each = const(axis, INT64), const(extent, INT64)
            block, thread = (ir.Query("", what, along, INT64) for what in ("coordinate", "thread"))
            here = apply("add", apply("multiply", block, each), thread)
            length = apply("multiply", ir.Query("", "shape", along, INT64), each)
            found = apply("add", apply("multiply", found, length), here) if axis else here
        return found

    def held(self, stmt: ir.If | ir.While, checks: list[ir.Stmt]) -> Expr:
        """Where threads part anyway, those that have ended do not enter, and leave."""
        return _both(GOES_ON, stmt.condition) if _may_end(checks) or id(stmt) in self.known.loops else stmt.condition

    def simple(self, stmt: ir.Stmt, checks: list[ir.Stmt]) -> list[ir.Stmt]:
        """A statement; one that touches memory is for threads that have not ended."""
        if not _may_end(checks):
            return [*checks, stmt]
        if isinstance(stmt, ir.Declare) and stmt.value is not None:
            self.moved.append(ir.Declare(stmt.name, stmt.type, line=stmt.line))
            stmt = ir.Assign(stmt.name, stmt.value, line=stmt.line)
        return [*checks, ir.If(GOES_ON, (stmt,), line=stmt.line)]

    def note(self, violated: Expr, values: tuple[Expr, ...], site: CheckSite, *ending: ir.Stmt) -> ir.Stmt:
        """Note a violation of a thread that has had none that ended it."""
        return super().note(_both(GOES_ON, violated), values, site, *ending)


def _may_end(checks: list[ir.Stmt]) -> bool:
    """Whether threads may end at these checks."""
    return any(isinstance(each, ir.Assign) and each.name == ENDED for each in statements(checks))


def _violated(access: _Access) -> Expr:
    before, after = apply("less", access.index, access.least), apply("greater_equal", access.index, access.limit)
    outside = apply("logical_or", before, after)
    return _both(access.condition, outside)


def _both(left: Expr, right: Expr) -> Expr:
    return right if left == TRUE else apply("logical_and", left, right)


def _word(at: int) -> Expr:
    return ir.At(FAULT, (const(at, INT64),), Pointer(UINT32, "global"))


def _halves(bits: Expr) -> tuple[Expr, Expr]:
    high = apply("right_shift", bits, const(32, UINT64))
    return apply("convert", bits, target=UINT32), apply("convert", high, target=UINT32)


def _refusal(program: ir.Program) -> Exception:
    return CannotCheck(program.name).at()


# --- functions that the kernel calls ------------------------------------------------------------------------------


def _clamped(body: Body, program: ir.Program) -> Body:
    """A function's body without assertions, its local arrays indexed inside."""
    lengths = {stmt.name: stmt.length for stmt in statements(body) if isinstance(stmt, ir.DeclareArray)}
    body = map_statements(body, _unless_assertion)

    def change(expr: Expr) -> Expr:
        match expr:
            case ir.Offset(ir.LocalArray(array) as start, distance, kind):
                last = const(lengths[array] - 1, INT64)
                return ir.Offset(start, apply("minimum", apply("maximum", distance, ZERO), last), kind)
            case ir.Offset():
                raise _refusal(program)
        return expr

    return map_expressions(body, rewriter(change))


def _unless_assertion(stmt: ir.Stmt) -> tuple[ir.Stmt, ...]:
    is_assertion = isinstance(stmt, ir.CallStatement) and stmt.call.function == ir.ASSERT
    return () if is_assertion else (stmt,)


# --- functions that are looked through ----------------------------------------------------------------------------


def replay(function: ir.Function, args: tuple[Expr, ...], suffix: str) -> Body:
    """The body of a function as statements for its caller, which compute the same and return nothing.

    Empty for functions that change memory, take addresses, or wait for other threads. suffix: makes names unique.
    """
    inside = list(statements(function.body))
    if any(isinstance(each, ir.Store | ir.Atomic | ir.Barrier | ir.Shuffle) for each in inside):
        return ()
    if any(isinstance(kind, Pointer) for _, kind in function.params):
        return ()
    flag = f"fusec_left{suffix}"
    params = tuple(ir.Declare(name, kind) for name, kind in function.params)
    body, _ = renamed((*params, *_leaving(function.body, flag, count())), suffix)
    given = tuple(
        ir.Declare(stmt.name, stmt.type, arg)
        for stmt, arg in zip(body, args, strict=False)
        if isinstance(stmt, ir.Declare)
    )
    once = ir.While(TRUE, (*given, *body[len(params) :], ir.Break()))
    return (ir.Declare(flag, BOOL, FALSE), once)


def _leaving(body: Body, flag: str, names: Iterator[int]) -> Body:
    """The statements with returns as ways out of the loop around them all."""

    def leave(stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        if isinstance(stmt, ir.Return):
            if stmt.value is not None:
                yield ir.Declare(f"fusec_result_{next(names)}", type_of(stmt.value), stmt.value, line=stmt.line)
            yield ir.Assign(flag, TRUE, line=stmt.line)
            yield ir.Break(line=stmt.line)
            return
        yield stmt
        if isinstance(stmt, ir.While) and flag in changed_names((stmt,)):
            yield ir.If(ir.Local(flag, BOOL), (ir.Break(line=stmt.line),), line=stmt.line)

    return map_statements(body, leave)
