"""Serialise threads: the text of one region of a block program, as a loop over its threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fusec.base.dtypes import BOOL, INT64, DType
from fusec.base.records import dataclass, field, replace
from fusec.ir import loops as ir
from fusec.ir.expr import Const, Expr, Pointer, Struct, Type, apply, const, scalar_type, type_of
from fusec.ir.update import updated
from fusec.ir.walk import Body, blocks, operands, rewriter, statements
from fusec.passes.affine import counted, int64, plus
from fusec.passes.uniform_statements import set_by

DONE = "done."  # local: the thread's work has ended. No name of the user's has a point in it


@dataclass
class Region:
    """Statements between barriers, which are done thread by thread."""

    number: int  # in textual order
    first: list[ir.Stmt] = field(default_factory=list)  # what is done once before
    body: list[ir.Stmt] = field(default_factory=list)
    is_last: bool = False  # no region follows


class Threads:
    """The loop over the threads of one region, and what is a thread's own in it."""

    def __init__(self, block: tuple[int, ...], number: int) -> None:
        self.block = block
        self.axes = [ir.Local(f"thread{axis}.{number}", INT64) for axis in range(len(block))]

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
        return ir.Offset(ir.LocalArray(array_of(name), pointer), at, pointer)

    def loop(self, body: Body) -> Body:
        """Statements for every thread."""
        for axis, extent in reversed(list(zip(self.axes, self.block, strict=True))):
            body = counted(axis.name, extent, body)
        return body


@dataclass
class Writer:
    """Writes one region."""

    block: tuple[int, ...]
    region: Region
    again: Callable[[Expr], Expr]  # puts what is computed again in place of locals
    kept: Mapping[str, Type]  # locals of the region that live on, with their types
    arrays: Mapping[str, ir.DeclareArray]  # local arrays that do
    ends: bool  # some threads end before others, and the array of DONE says which

    def __post_init__(self) -> None:
        self.threads = Threads(self.block, self.region.number)
        self.change = rewriter(self._changed)
        self.gone = ir.Local(f"gone.{self.region.number}", BOOL)
        self.fresh = 0

    def statements(self) -> Body:
        """The loop over the threads."""
        region = self.region
        declared = {stmt.name for stmt in region.body if isinstance(stmt, ir.Declare)}
        names = sorted(self.kept.keys() - {DONE})
        before = [
            ir.Declare(self._own(name), kind, None if name in declared else self._read(name, kind))
            for name in names
            for kind in [self.kept[name]]
        ]
        body = self._block(region.body)
        if any(has(loop.body, ir.Return) for loop in statements(region.body) if isinstance(loop, ir.While)):
            body = (ir.Declare(self.gone.name, BOOL), *body)
        if _leaves(region.body):
            body = (ir.While(const(False, BOOL), body, test_first=False),)
        changed = {set_by(stmt) for stmt in statements(region.body)}
        after = [each for name in names if name in changed for each in self._write(name, self.kept[name])]
        whole: Body = (*before, *body, *after)
        if self.ends and region.number:
            goes_on = apply("logical_not", ir.Load(self.threads.place(DONE, BOOL), BOOL))
            whole = (ir.If(goes_on, whole),)
        return self.threads.loop(whole)

    def _own(self, name: str) -> str:
        """The name of what a thread keeps, while its turn lasts."""
        return f"{name}.in{self.region.number}"

    def _read(self, name: str, kind: Type) -> Expr:
        loads = [ir.Load(self.threads.place(part, dtype), dtype) for part, dtype in parts_of(name, kind)]
        return ir.Make(tuple(loads), kind) if isinstance(kind, Struct) else loads[0]

    def _write(self, name: str, kind: Type) -> list[ir.Stmt]:
        own = ir.Local(self._own(name), kind)
        values = [ir.Field(own, each, dtype) for each, dtype in kind.fields] if isinstance(kind, Struct) else [own]
        pairs = zip(parts_of(name, kind), values, strict=True)
        return [ir.Store(self.threads.place(part, dtype), value) for (part, dtype), value in pairs]

    # --- statements ----------------------------------------------------------------------------------------------

    def _block(self, body: Sequence[ir.Stmt]) -> Body:
        return tuple(each for stmt in body for each in self.statement(stmt))

    def statement(self, stmt: ir.Stmt) -> Body:
        """The translation of a statement outside of the thread's own loops."""
        values = tuple(self.change(self.again(root)) for root in operands(stmt))
        match stmt:
            case ir.Return() | ir.Continue():
                return self.leave(stmt)
            case ir.While():
                inside = _Inside(self)
                loop = stmt.rebuild(values, (inside.block(stmt.body), inside.block(stmt.step)))
                return (loop, ir.If(self.gone, (ir.Break(line=stmt.line),))) if has(stmt.body, ir.Return) else (loop,)
            case ir.If():
                return (stmt.rebuild(values, tuple(self._block(each) for each in blocks(stmt))),)
            case ir.Declare(name, kind) if name in self.kept:
                return (ir.Assign(self._own(name), values[0] if values else _zero(kind), line=stmt.line),)
            case ir.DeclareArray(name) if name in self.arrays:
                return self._cleared(stmt)
            case ir.Atomic(op, _, _, result) if _space(values[0]) != "global":
                return self._update(op, values, self._named(result), stmt.line)
        return (self._renamed(stmt.rebuild(values)),)

    def leave(self, stmt: ir.Stmt) -> Body:
        """The thread's turn ends; after a return it has no further turns."""
        gone: Body = ()
        if isinstance(stmt, ir.Return) and self.ends:
            gone = (ir.Store(self.threads.place(DONE, BOOL), const(True, BOOL), line=stmt.line),)
        return (*gone, ir.Break(line=stmt.line))

    def _cleared(self, stmt: ir.DeclareArray) -> Body:
        """A local array that lives on starts as zeros, whenever control gets to it."""
        assert not stmt.values, "a kernel's local array has no values"
        self.fresh += 1
        at = ir.Local(f"at.{self.region.number}.{self.fresh}", INT64)
        place = self.threads.place(stmt.name, stmt.element, stmt.length)
        assert isinstance(place, ir.Offset), "an element of an array"
        element = ir.Offset(place.pointer, plus(place.offset, at), place.type)
        return counted(at.name, stmt.length, (ir.Store(element, const(0, stmt.element)),))

    def _update(self, op: str, values: tuple[Expr, ...], result: str, line: int) -> Body:
        """No other thread runs meanwhile."""
        self.fresh += 1
        place, kind = values[0], scalar_type(values[1])
        old = ir.Local(f"old.{self.region.number}.{self.fresh}", kind)
        found: list[ir.Stmt] = [ir.Declare(old.name, kind, ir.Load(place, kind), line=line)]
        found.append(ir.Store(place, updated(op, old, values[1:]), line=line))
        return (*found, *((ir.Assign(result, old, line=line),) if result else ()))

    def _renamed(self, stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.Assign(name) | ir.SetField(name) if name in self.kept:
                return replace(stmt, name=self._own(name))
            case ir.Atomic(result=name) | ir.CallStatement(result=name) if name in self.kept:
                return replace(stmt, result=self._own(name))
        return stmt

    def _named(self, name: str) -> str:
        return self._own(name) if name in self.kept else name

    # --- expressions ---------------------------------------------------------------------------------------------

    def _changed(self, expr: Expr) -> Expr:
        match expr:
            case ir.Query("", "thread", Const(value=axis)):
                return self.threads.axes[int(axis)]
            case ir.Local(name, kind) if name in self.kept:
                return ir.Local(self._own(name), kind)
            case ir.LocalArray(name, Pointer(element)) if name in self.arrays:
                return self.threads.place(name, element, self.arrays[name].length)
            case ir.Offset(ir.Offset(ir.LocalArray() as start, first), second):
                return ir.Offset(start, plus(first, second), start.type)
        return expr


class _Inside:
    """Statements of a thread's own loops, whose jumps stay as they are; a return leaves one loop after the other."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def block(self, body: Body) -> Body:
        """The statements in order."""
        found: list[ir.Stmt] = []
        for stmt in body:
            match stmt:
                case ir.Break() | ir.Continue():
                    found.append(stmt)
                case ir.Return():
                    found += [ir.Assign(self.writer.gone.name, const(True, BOOL)), *self.writer.leave(stmt)]
                case ir.If():
                    (changed,) = self.writer.statement(replace(stmt, then=(), orelse=()))
                    found.append(changed.rebuild(operands(changed), tuple(map(self.block, blocks(stmt)))))
                case _:
                    found += self.writer.statement(stmt)
        return tuple(found)


# --- facts -------------------------------------------------------------------------------------------------------


def has(body: Sequence[ir.Stmt], kind: type[ir.Stmt]) -> bool:
    """Whether a statement of some kind stands in others."""
    return any(isinstance(stmt, kind) for stmt in statements(body))


def _leaves(body: Sequence[ir.Stmt]) -> bool:
    """Whether a thread's turn may end before the end of a region."""
    for stmt in body:
        match stmt:
            case ir.Return() | ir.Continue():
                return True
            case ir.If(_, then, orelse) if _leaves(then) or _leaves(orelse):
                return True
            case ir.While() if has(stmt.body, ir.Return):
                return True
    return False


def array_of(name: str) -> str:
    """The array of the values that threads keep under a name."""
    return f"{name}.kept"


def parts_of(name: str, kind: Type) -> list[tuple[str, DType]]:
    """The scalars of a value."""
    if isinstance(kind, Struct):
        return [(f"{name}.{each}", dtype) for each, dtype in kind.fields]
    assert isinstance(kind, DType), "a kernel of Python has no pointers"
    return [(name, kind)]


def _space(pointer: Expr) -> str:
    kind = type_of(pointer)
    assert isinstance(kind, Pointer), "an atomic needs an address"
    return kind.space


def _zero(kind: Type) -> Expr:
    if isinstance(kind, Struct):
        return ir.Make(tuple(const(0, dtype) for _, dtype in kind.fields), kind)
    assert isinstance(kind, DType), "a kernel of Python has no pointers"
    return const(0, kind)
