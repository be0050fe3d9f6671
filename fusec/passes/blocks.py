"""Blocks: a block program becomes one whose elements do the work of a whole block, its threads in turn.

The statements between two barriers are a region, and a region becomes a loop over the threads. Control around barriers
is the same for all threads and stands outside of these loops, once. What a thread keeps from region to region is an
element of an array of as many as there are threads; what never changes and is cheap is computed again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from fusec.dtypes import BOOL, INT64, DType
from fusec.errors.blocks import BlockTooLarge
from fusec.ir.expr import Apply, Const, Expr, Pointer, Struct, Type, apply, const, type_of
from fusec.ir.loops import (
    Assign,
    Atomic,
    Barrier,
    Break,
    CallStatement,
    Continue,
    Declare,
    DeclareArray,
    Field,
    If,
    Load,
    Local,
    LocalArray,
    Make,
    Offset,
    Program,
    Query,
    Return,
    SetField,
    Stmt,
    Store,
    While,
    is_shared,
)
from fusec.ir.walk import Body, blocks, expressions, operands, rebuild, rewriter, statements
from fusec.passes.counting import int64, plus, test
from fusec.passes.together import Together, set_by
from fusec.passes.update import updated
from fusec.records import dataclass, field, replace

MOST_BYTES = 256 << 10  # of a block's arrays on the stack, of which threads have 512 KiB and more
AGAIN = 12  # operations that are computed again rather than kept
DONE = "_done"  # local: the thread's work has ended


def in_turn(program: Program) -> Program:
    """The program whose elements are blocks that one thread runs.

    Requires: a block program whose barriers all threads come to, with primitive ops. Ensures: the same results; no
    barrier is left; shared arrays, and those of what threads keep, are declared first. Raises BlockTooLarge.
    """
    return _Turns(program).program()


@dataclass
class _Region:
    """Statements between barriers, which are done thread by thread. number: in textual order. first: what is done once
    before. is_last: no region follows.
    """

    number: int
    first: list[Stmt] = field(default_factory=list)
    body: list[Stmt] = field(default_factory=list)
    is_last: bool = False


@dataclass
class _Control:
    """A branch or loop of the whole block. nested: what its lists of statements became."""

    stmt: If | While
    nested: tuple[list[_Part], ...]


_Part = _Region | _Control | Stmt


class _Turns:
    """One block program on its way."""

    def __init__(self, program: Program) -> None:
        self.source = program
        self.together = Together(program)
        self.regions: list[_Region] = []
        self.looped: list[bool] = []  # of each region, whether a loop of the block holds it
        self.tree = self._parted(program.body, in_loop=False)
        if self.regions:
            self.regions[-1].is_last = not self.looped[-1]
        every = list(statements(program.body))
        self.types = {stmt.name: stmt.type for stmt in every if isinstance(stmt, Declare)}
        self.arrays = {stmt.name: stmt for stmt in every if isinstance(stmt, DeclareArray)}
        self.homes = {
            stmt.name: each.number for each in self.regions for stmt in each.body if isinstance(stmt, Declare)
        }
        self.again = self._computed_again()
        uses = Counter(name for region in self.regions for name in self._used(region))
        own = self.types.keys() - self.together.names
        self.kept: dict[str, Type] = {name: kind for name, kind in self.types.items() if name in own and uses[name] > 1}
        self.kept_arrays = [name for name, stmt in self.arrays.items() if stmt.space == "local" and uses[name] > 1]
        if any(_has(region.body, Return) and not region.is_last for region in self.regions):
            self.kept[DONE] = BOOL

    def program(self) -> Program:
        """The whole program."""
        arrays = [stmt for stmt in self.arrays.values() if stmt.space == "shared"]
        for name, kind in self.kept.items():
            for part, dtype in _parts(name, kind):
                arrays.append(DeclareArray(_array(part), dtype, self.source.threads, space="shared"))
        for name in self.kept_arrays:
            stmt = self.arrays[name]
            arrays.append(DeclareArray(_array(name), stmt.element, self.source.threads * stmt.length, space="shared"))
        nbytes = sum(each.length * each.element.nbytes for each in arrays)
        if nbytes > MOST_BYTES:
            raise BlockTooLarge(self.source.name, nbytes, MOST_BYTES).at()
        start: Body = ()
        if DONE in self.kept:
            thread = _Threads(self.source.block, len(self.regions))
            start = thread.loop((Store(thread.place(DONE, BOOL), const(False, BOOL)),))
        return replace(self.source, body=(*arrays, *start, *self._written(self.tree)), block=())

    # --- regions -------------------------------------------------------------------------------------------------

    def _parted(self, body: Body, in_loop: bool) -> list[_Part]:
        """What the block does as one, and regions between."""
        found: list[_Part] = []
        region: _Region | None = None
        for stmt in body:
            is_one = self.together.is_one(stmt) or isinstance(stmt, Break | Continue | Return)
            is_first = is_one and isinstance(stmt, Declare) and stmt.name in self.together.fixed
            if is_shared(stmt):
                continue
            if is_one and not is_first:
                region = None
                if isinstance(stmt, If | While):
                    inside = in_loop or isinstance(stmt, While)
                    found.append(_Control(stmt, tuple(self._parted(each, inside) for each in blocks(stmt))))
                elif not isinstance(stmt, Barrier):
                    found.append(stmt)
                continue
            if region is None:
                region = _Region(len(self.regions))
                self.regions.append(region)
                self.looped.append(in_loop)
                found.append(region)
            (region.first if is_first else region.body).append(stmt)
        return found

    def _computed_again(self) -> dict[str, Expr]:
        """Locals that never change and whose values are cheap, in terms of what every region knows."""
        found: dict[str, Expr] = {}
        known = self.together.params | (self.together.names & self.together.fixed)
        rewrite = rewriter(lambda expr: found.get(expr.name, expr) if isinstance(expr, Local) else expr)
        for stmt in (stmt for region in self.regions for stmt in region.body):
            if isinstance(stmt, Declare) and stmt.value is not None and stmt.name in self.together.fixed:
                value = rewrite(stmt.value)
                nodes = list(expressions((value,)))
                is_plain = all(
                    isinstance(each, Const | Apply | Query) or (isinstance(each, Local) and each.name in known)
                    for each in nodes
                )
                if is_plain and sum(isinstance(each, Apply) for each in nodes) <= AGAIN:
                    found[stmt.name] = value
                    rewrite = rewriter(lambda expr: found.get(expr.name, expr) if isinstance(expr, Local) else expr)
        return found

    def _knowing(self, region: _Region) -> Callable[[Expr], Expr]:
        """Expressions in a region, with what it computes again in place of locals."""

        def change(expr: Expr) -> Expr:
            if isinstance(expr, Local) and self.homes.get(expr.name) != region.number:
                return self.again.get(expr.name, expr)
            return expr

        return rewriter(change)

    def _used(self, region: _Region) -> set[str]:
        """The locals and local arrays that a region declares, reads or sets."""
        rewrite = self._knowing(region)
        every = list(statements(region.body))
        roots = tuple(rewrite(root) for stmt in every for root in operands(stmt))
        named = {each.name for each in expressions(roots) if isinstance(each, Local | LocalArray)}
        declared = {stmt.name for stmt in every if isinstance(stmt, DeclareArray)}
        return named | declared | {name for stmt in every for name in [set_by(stmt)] if name}

    # --- text ----------------------------------------------------------------------------------------------------

    def _written(self, parts: Sequence[_Part]) -> Body:
        """The statements of the block."""
        found: list[Stmt] = []
        for part in parts:
            match part:
                case _Region():
                    found += [*part.first, *(_Writer(self, part).statements() if part.body else ())]
                case _Control(stmt, nested):
                    found.append(rebuild(stmt, operands(stmt), tuple(map(self._written, nested))))
                case _:
                    found.append(part)
        return tuple(found)

    def writer_of(self, region: _Region) -> tuple[Callable[[Expr], Expr], set[str]]:
        """What a region computes again, and what it keeps."""
        return self._knowing(region), self._used(region) & self.kept.keys()


class _Threads:
    """The loop over the threads of one region, and what is a thread's own in it."""

    def __init__(self, block: tuple[int, ...], number: int) -> None:
        self.block = block
        self.axes = [Local(f"_thread{axis}_{number}", INT64) for axis in range(len(block))]

    @property
    def index(self) -> Expr:
        """The number of the thread, in C order."""
        found: Expr = self.axes[0]
        for axis, extent in zip(self.axes[1:], self.block[1:], strict=True):
            found = plus(apply("multiply", found, int64(extent)), axis)
        return found

    def place(self, name: str, dtype: DType, length: int = 1) -> Expr:
        """The thread's own element, or the first of several, in the array of a name."""
        pointer = Pointer(dtype, "shared")
        at = self.index if length == 1 else apply("multiply", self.index, int64(length))
        return Offset(LocalArray(_array(name), pointer), at, pointer)

    def loop(self, body: Body) -> Body:
        """Statements for every thread."""
        for axis, extent in reversed(list(zip(self.axes, self.block, strict=True))):
            step = Assign(axis.name, plus(axis, 1))
            body = (Declare(axis.name, INT64, int64(0)), While(test("less", axis, extent), body, (step,)))
        return body


class _Writer:
    """Writes one region."""

    def __init__(self, turns: _Turns, region: _Region) -> None:
        self.region = region
        self.threads = _Threads(turns.source.block, region.number)
        self.again, self.kept = turns.writer_of(region)
        self.types, self.kept_arrays, self.arrays = turns.kept, turns.kept_arrays, turns.arrays
        self.ends = DONE in turns.kept
        self.change = rewriter(self._changed)
        self.gone = Local(f"_gone_{region.number}", BOOL)
        self.fresh = 0

    def statements(self) -> Body:
        """The loop over the threads."""
        region = self.region
        declared = {stmt.name for stmt in region.body if isinstance(stmt, Declare)}
        names = sorted(self.kept - {DONE})
        before = [
            Declare(self._own(name), kind, None if name in declared else self._read(name, kind))
            for name in names
            for kind in [self.types[name]]
        ]
        body = self._block(region.body)
        if any(_has(loop.body, Return) for loop in statements(region.body) if isinstance(loop, While)):
            body = (Declare(self.gone.name, BOOL), *body)
        if _leaves(region.body):
            body = (While(const(False, BOOL), body, test_first=False),)
        changed = {set_by(stmt) for stmt in statements(region.body)}
        after = [each for name in names if name in changed for each in self._write(name, self.types[name])]
        whole: Body = (*before, *body, *after)
        if self.ends and region.number:
            goes_on = apply("logical_not", Load(self.threads.place(DONE, BOOL), BOOL))
            whole = (If(goes_on, whole),)
        return self.threads.loop(whole)

    def _own(self, name: str) -> str:
        """The name of what a thread keeps, while its turn lasts."""
        return f"{name}_in{self.region.number}"

    def _read(self, name: str, kind: Type) -> Expr:
        loads = [Load(self.threads.place(part, dtype), dtype) for part, dtype in _parts(name, kind)]
        return Make(tuple(loads), kind) if isinstance(kind, Struct) else loads[0]

    def _write(self, name: str, kind: Type) -> list[Stmt]:
        own = Local(self._own(name), kind)
        values = [Field(own, each, dtype) for each, dtype in kind.fields] if isinstance(kind, Struct) else [own]
        pairs = zip(_parts(name, kind), values, strict=True)
        return [Store(self.threads.place(part, dtype), value) for (part, dtype), value in pairs]

    # --- statements ----------------------------------------------------------------------------------------------

    def _block(self, body: Sequence[Stmt]) -> Body:
        return tuple(each for stmt in body for each in self.statement(stmt))

    def statement(self, stmt: Stmt) -> Body:
        """What becomes of a statement outside of the thread's own loops."""
        values = tuple(self.change(self.again(root)) for root in operands(stmt))
        match stmt:
            case Return() | Continue():
                return self.leave(stmt)
            case While():
                inside = _Inside(self)
                loop = rebuild(stmt, values, (inside.block(stmt.body), inside.block(stmt.step)))
                return (loop, If(self.gone, (Break(line=stmt.line),))) if _has(stmt.body, Return) else (loop,)
            case If():
                return (rebuild(stmt, values, tuple(self._block(each) for each in blocks(stmt))),)
            case Declare(name, kind) if name in self.kept:
                return (Assign(self._own(name), values[0] if values else _zero(kind), line=stmt.line),)
            case DeclareArray(name) if name in self.kept_arrays:
                return self._cleared(stmt)
            case Atomic(op, _, _, result) if _space(values[0]) != "global":
                return self._update(op, values, self._named(result), stmt.line)
        return (self._renamed(rebuild(stmt, values, ())),)

    def leave(self, stmt: Stmt) -> Body:
        """The thread's turn ends; after a return it has no further ones."""
        gone: Body = ()
        if isinstance(stmt, Return) and self.ends:
            gone = (Store(self.threads.place(DONE, BOOL), const(True, BOOL), line=stmt.line),)
        return (*gone, Break(line=stmt.line))

    def _cleared(self, stmt: DeclareArray) -> Body:
        """A local array that lives on starts as zeros, whenever control gets to it."""
        assert not stmt.values, "a kernel's local array has no values"
        self.fresh += 1
        at = Local(f"_at{self.region.number}_{self.fresh}", INT64)
        place = self.threads.place(stmt.name, stmt.element, stmt.length)
        assert isinstance(place, Offset), "an element of an array"
        element = Offset(place.pointer, plus(place.offset, at), place.type)
        store = Store(element, const(0, stmt.element))
        more = test("less", at, stmt.length)
        return (Declare(at.name, INT64, int64(0)), While(more, (store,), (Assign(at.name, plus(at, 1)),)))

    def _update(self, op: str, values: tuple[Expr, ...], result: str, line: int) -> Body:
        """No other thread runs meanwhile."""
        self.fresh += 1
        place, kind = values[0], type_of(values[1])
        assert isinstance(kind, DType), "atomics work on scalars"
        old = Local(f"_old{self.region.number}_{self.fresh}", kind)
        found: list[Stmt] = [Declare(old.name, kind, Load(place, kind), line=line)]
        found.append(Store(place, updated(op, old, values[1:]), line=line))
        return (*found, *((Assign(result, old, line=line),) if result else ()))

    def _renamed(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Assign(name) | SetField(name) if name in self.kept:
                return replace(stmt, name=self._own(name))
            case Atomic(result=name) | CallStatement(result=name) if name in self.kept:
                return replace(stmt, result=self._own(name))
        return stmt

    def _named(self, name: str) -> str:
        return self._own(name) if name in self.kept else name

    # --- expressions ---------------------------------------------------------------------------------------------

    def _changed(self, expr: Expr) -> Expr:
        match expr:
            case Query("", "thread", Const(value=axis)):
                return self.threads.axes[int(axis)]
            case Local(name, kind) if name in self.kept:
                return Local(self._own(name), kind)
            case LocalArray(name, Pointer(element)) if name in self.kept_arrays:
                return self.threads.place(name, element, self.arrays[name].length)
            case Offset(Offset(LocalArray() as start, first), second):
                return Offset(start, plus(first, second), start.type)
        return expr


class _Inside:
    """Statements of a thread's own loops, whose jumps stay as they are; a return leaves one loop after the other."""

    def __init__(self, writer: _Writer) -> None:
        self.writer = writer

    def block(self, body: Body) -> Body:
        """The statements in order."""
        found: list[Stmt] = []
        for stmt in body:
            match stmt:
                case Break() | Continue():
                    found.append(stmt)
                case Return():
                    found += [Assign(self.writer.gone.name, const(True, BOOL)), *self.writer.leave(stmt)]
                case If():
                    (changed,) = self.writer.statement(replace(stmt, then=(), orelse=()))
                    found.append(rebuild(changed, operands(changed), tuple(map(self.block, blocks(stmt)))))
                case _:
                    found += self.writer.statement(stmt)
        return tuple(found)


# --- facts -------------------------------------------------------------------------------------------------------


def _has(body: Sequence[Stmt], kind: type[Stmt]) -> bool:
    return any(isinstance(stmt, kind) for stmt in statements(body))


def _leaves(body: Sequence[Stmt]) -> bool:
    """Whether a thread's turn may end before the end of a region."""
    for stmt in body:
        match stmt:
            case Return() | Continue():
                return True
            case If(_, then, orelse) if _leaves(then) or _leaves(orelse):
                return True
            case While() if _has(stmt.body, Return):
                return True
    return False


def _array(name: str) -> str:
    """The array of what threads keep under a name."""
    return f"{name}_kept"


def _parts(name: str, kind: Type) -> list[tuple[str, DType]]:
    """The scalars that a value is made of."""
    if isinstance(kind, Struct):
        return [(f"{name}_{each}", dtype) for each, dtype in kind.fields]
    assert isinstance(kind, DType), "a kernel of Python has no pointers"
    return [(name, kind)]


def _space(pointer: Expr) -> str:
    kind = type_of(pointer)
    assert isinstance(kind, Pointer), "an atomic needs an address"
    return kind.space


def _zero(kind: Type) -> Expr:
    if isinstance(kind, Struct):
        return Make(tuple(const(0, dtype) for _, dtype in kind.fields), kind)
    assert isinstance(kind, DType), "a kernel of Python has no pointers"
    return const(0, kind)
