"""The stages of a scan: texts -> scan -> programs -> passes -> kernel -> executable, with the disk cache."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fusec.base.kernel_abi import Kernel
from fusec.base.locks import fork_safe
from fusec.base.records import dataclass, replace
from fusec.base.rounding_mode import default_rounding
from fusec.codegen import ON_HOST, target_of
from fusec.compiler import pipeline
from fusec.compiler.lowering import lower_reduction
from fusec.environment import debug
from fusec.errors.language import NotSupported
from fusec.frontends.c.definition import ReductionDefinition
from fusec.ir.expr import Apply, Expr
from fusec.ir.loops import REGISTER
from fusec.ir.walk import expressions, roots_of
from fusec.kinds.launch import Request
from fusec.kinds.scan import ScanLaunch

if TYPE_CHECKING:
    from fusec.ir.loops import Program
    from fusec.ir.reductions import ReductionIR
    from fusec.ir.scans import Scan


BATCH_ON_DEVICE = 8  # groups, or elements of a column, of which a thread has the loads under way at once
BATCH_OF_ROWS = 4  # elements of a column for each time that its running total is read and written; not where results go
# around the caches, since rows begin their lines at different columns
HELD_BYTES = 8  # of an element, up to which a thread holds its share of a chunk in registers
LIGHT = 32  # expressions up to which the statements for an element are written several times
OF_TOTALS = 128  # the same where totals alone are found: so groups are combined side by side, which takes a third


@dataclass(frozen=True)
class ScanDefinition:
    """The texts of a scan: those of a reduction of the same elements, and the differences.

    exclusive: elements get the total of those before them. segments: the input that says where to start again, "" for
    none.
    """

    reduced: ReductionDefinition
    exclusive: bool = False
    segments: str = ""

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.reduced.name

    @property
    def texts(self) -> dict[str, Any]:
        """All fields by name."""
        return {**self.reduced.texts, "exclusive": self.exclusive, "segments": self.segments}

    def read(self) -> None:
        """Parse the texts. Raises the front end's errors, and NotSupported for a return: totals are stored in loops."""
        from fusec.frontends.c import syntax

        pending: list[syntax.Statement] = [*self.reduced.read().post]
        while pending:
            match pending.pop():
                case syntax.ReturnNode(span=span):
                    raise NotSupported("return in the post_map_expr of a scan is", "write if and else").at(span)
                case syntax.BlockStmt(body=nested) | syntax.Switch(items=nested):
                    pending += nested
                case syntax.LoopStmt(body=nested) | syntax.RangeLoop(body=nested):
                    pending += nested
                case syntax.IfNode(then=then, orelse=orelse):
                    pending += [*then, *orelse]
                case _:
                    pass

    def scan(self, request: Request) -> Scan:
        """The typed scan before any pass. Raises the front end's errors."""
        from fusec.ir.scans import Scan, in_segments

        reduction, empty = lower_reduction(self.reduced, request)
        found = Scan(reduction, self.exclusive, empty.body if self.exclusive else ())
        return in_segments(found, self.segments) if self.segments else found


@lower_reduction.register(ScanDefinition)
def _elements(definition: ScanDefinition, request: Request) -> tuple[ReductionIR, Program]:
    """The reduction of the same elements, and what there is before the first."""
    return lower_reduction(definition.reduced, request)


@lru_cache(maxsize=256)
@default_rounding()
def lower(definition: ScanDefinition, request: Request) -> Scan:
    """The typed scan before any pass."""
    return definition.scan(request)


@default_rounding()
def prepared(definition: ScanDefinition, request: Request, ndim: int) -> Scan:
    """The scan after all passes over its parts, for the interpreter. ndim: axes of the walk."""
    from fusec import passes
    from fusec.ir.scans import first_program

    scan, facts = lower(definition, request), passes.Facts(request.fp, ndims={"": ndim, **dict(request.ndims)})
    reduction = passes.run(scan.reduction, facts)
    first = passes.run(first_program(scan), facts)
    known = {function.name for function in reduction.functions}
    more = tuple(function for function in first.functions if function.name not in known)
    return replace(scan, reduction=replace(reduction, functions=(*reduction.functions, *more)), first=first.body)


@default_rounding()
def program_of(
    definition: ScanDefinition, request: Request, step: ScanLaunch, *, on_device: bool = True, number: int = 1
) -> Program:
    """The program of one step, after all passes. number: distinguishes kernels of one name in one file."""
    from fusec import passes
    from fusec.ir.scans import between

    scan = lower(definition, request)
    batch = 1
    if _is_light(scan):
        batch = BATCH_ON_DEVICE if on_device else 1 if step.is_last or step.layout.streaming else BATCH_OF_ROWS
    elif on_device and step.is_last and step.role == "totals" and _is_light(scan, OF_TOTALS):
        batch = BATCH_ON_DEVICE
    costly = is_expensive(scan)
    scan = between(scan) if step.of_totals else scan
    name = scan.name if step.role == "whole" and not step.of_totals else f"{scan.name}_{step.role}"
    name = name if number == 1 else f"{name}{number}"
    held = step.role == "one_pass" and batch > 1 and _is_narrow(scan)
    if step.role == "one_pass" and batch > 1 and not held:  # or what it looks back with leaves too few registers
        batch = BATCH_OF_ROWS
    loops = passes.Loops(step.axis, step.is_last, step.role, step.levels, batch, held, costly)
    ndims = {"": step.layout.ndim, **dict(request.ndims)}
    named = replace(scan, reduction=replace(scan.reduction, name=name))
    return passes.run(named, passes.Facts(request.fp, ndims=ndims, loops=loops))


def _is_light(scan: Scan, most: int = LIGHT) -> bool:
    """Whether copies of what happens for an element cost little to compile. most: expressions that are little."""
    return sum(1 for _ in _expressions(scan)) <= most


def _is_narrow(scan: Scan) -> bool:
    """Whether a thread has registers for the elements of a chunk."""
    return sum(max(REGISTER, dtype.nbytes) for _, dtype in scan.running.parts) <= HELD_BYTES


def is_expensive(scan: Scan) -> bool:
    """Whether computing an element takes longer than reading it: it uses elementary functions, or many operations."""
    from fusec.base.ops import TABLE

    calls = (each for each in _expressions(scan) if isinstance(each, Apply) and not TABLE[each.op].primitive)
    return any(True for _ in calls) or not _is_light(scan)


def _expressions(scan: Scan) -> Iterator[Expr]:
    """All of a scan's."""
    bodies = [scan.stage.body, scan.reduction.finish, *(function.body for function in scan.reduction.functions)]
    return expressions([scan.running.value, *roots_of(*bodies)])


@fork_safe
def generate(
    definition: ScanDefinition, request: Request, step: ScanLaunch, target: str = ON_HOST, number: int = 1
) -> Kernel:
    """The kernel of one step. number: see `program_of`."""
    row = target_of(target)
    generator, layout = row.generator, step.threads_layout if row.threads else step.layout
    write = generator.program if step.is_last else generator.columns or generator.program
    program = program_of(definition, request, step, on_device=row.threads, number=number)
    kernel = write(program, layout, pipeline.options_of(request.fp, definition))
    debug.show(5, f"{kernel.title} {kernel.target}", kernel.source)
    return kernel
