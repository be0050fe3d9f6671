"""The passes, one module each, and the pipelines: which of them a kind of program goes through, in which order and why.

`run` takes a program, reduction or scan through its pipeline, and `run_few` takes what is interpreted through a short
one. A row that names its caller stands where that folder runs the pass: the caller chooses among several results, or
knows the registers of a machine. Nothing else runs a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, overload

from fusec.base import background
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Fp
from fusec.base.records import dataclass
from fusec.environment import debug
from fusec.ir.loops import Program
from fusec.ir.reductions import ReductionIR, Role

if TYPE_CHECKING:
    from fusec.ir import scans

Kind = Literal["elementwise", "block", "reduction", "empty", "scan", "graph", "interpreted"]
Target = Literal["cpu", "device"]
Caller = Literal["run", "compiler", "codegen", "dispatch", "library"]
Native = frozenset[tuple[str, DType]]  # ops, with the dtype of their operands, that a target has instructions for


@dataclass(frozen=True)
class Loops:
    """How a kernel of a scan walks."""

    axis: int  # that is scanned
    is_last: bool  # whether it is the last of the walk
    role: scans.Role
    levels: int = 0  # how often totals of chunks are scanned as they come
    batch: int = 1  # groups, or elements of a column, that are asked for together
    held: bool = False  # of "one_pass": elements stay in registers until the totals before them are known
    costly: bool = False  # whether to combine takes longer than to read what another position has combined


@dataclass(frozen=True)
class Facts:
    """The facts that passes need about a program's kernel."""

    fp: Fp = "strict"
    native: Native = frozenset()  # only in the mode "fast"
    target: Target | None = None  # None: for any
    ndims: Mapping[str, int] | None = None  # raw array -> axes, "" -> axes of the iteration space; None: not known
    role: Role | None = None  # of a reduction's kernel
    loops: Loops | None = None  # of a scan's kernel


ANY = Facts()


@dataclass(frozen=True)
class PassRow:
    """A pass in its place: it runs for its target and modes, where the fact that it needs is known."""

    path: str  # module.function, or one name for both: imported when it first runs
    why: str = ""  # what binds it to its place
    needs: str = ""  # the fact that it takes as a second argument
    target: Target | None = None  # None: every one
    modes: tuple[Fp, ...] = ("strict", "contract", "fast")
    by: Caller = "run"  # or the folder that calls it
    beside: tuple[str, ...] = ()  # what that folder imports from the same module
    parts: tuple[PassRow, ...] = ()  # what each part of a reduction goes through

    @property
    def name(self) -> str:
        """The pass as traces and messages call it."""
        return self.path.rpartition(".")[2]

    @property
    def imports(self) -> tuple[str, ...]:
        """What the folder that calls it may import of its module."""
        return (self.name, *self.beside)

    def runs(self, facts: Facts) -> bool:
        """Whether `run` reaches it for such a kernel."""
        fits = self.by == "run" and self.target in (None, facts.target) and facts.fp in self.modes
        return fits and (not self.needs or getattr(facts, self.needs) is not None)

    def load(self) -> Callable[..., Any]:
        """The function."""
        module = self.path.partition(".")[0]
        found: Callable[..., Any] = getattr(import_module(f"{__name__}.{module}"), self.name)
        return found


FOLD = PassRow("fold.fold_constants", "first: the rules of simplify look for constants")
EXPAND = PassRow("expand", "after all that know ops by name", "native")
TYPED = (
    FOLD,
    PassRow("simplify.simplify_expressions"),
    PassRow("narrow_types", "after simplify: conversions of conversions are one"),
    PassRow("eliminate_dead_code", "before expand: what nothing reads costs no functions"),
    PassRow("merge.merge_declarations", "after dead code: nothing stands between declaration and value"),
)
"""On programs whose operations are those of the user."""
INT16 = PassRow("narrow_to_int16", "before expand: bounds of ops, not of calls", target="cpu")
PRIMITIVE = (
    PassRow("approximate", "before contract: products and sums appear", "native", modes=("fast",)),
    PassRow("contract", "before expand: math's functions say where they want an fma", modes=("contract", "fast")),
    PassRow("divide_by_constants", "after simplify and approximate: these make products of quotients"),
    EXPAND,
    PassRow("value_numbering.number_values", "after expand: calls are repeated, too"),
    PassRow("common_subexpressions.name_common_subexpressions", "last: printers write each value once"),
)
"""To operations that code generators know."""
SCALAR = (*TYPED, INT16, *PRIMITIVE)
RESOLVE = PassRow("resolve.resolve_axes", "before fold: numbers of axes are constants", "ndims")
CHECK = PassRow("bounds.check_bounds", "first: indices as users wrote them", by="dispatch", beside=("CheckSite",))

PIPELINES: dict[Kind, tuple[PassRow, ...]] = {
    "elementwise": (
        CHECK,
        RESOLVE,
        *SCALAR,
        PassRow("peel_borders", "after all: tests against borders are plain", by="codegen", beside=("Peeled",)),
        PassRow(
            "unroll_and_jam", "after peel_borders: interiors have no branches",
            target="cpu", by="codegen", beside=("loads_of",),
        ),
    ),
    "block": (
        CHECK,
        RESOLVE,
        *SCALAR,
        PassRow("blocks.serialise_blocks", "after all: primitive ops are cheap to repeat", target="cpu", by="codegen"),
    ),
    "reduction": (
        PassRow("mask", "before phases: elements are left out once", by="compiler"),
        PassRow("phases.in_role", "before the parts: each kernel has its own", "role"),
        PassRow("reductions.run_on_reduction", parts=(RESOLVE, *TYPED, *PRIMITIVE)),
        PassRow("narrow_sums", "after phases: chunks bound the totals", target="cpu", by="codegen"),
        PassRow("total_order_keys.use_total_order_keys", "after expand: it knows calls", target="cpu", by="codegen"),
        PassRow(
            "buffer_rows", "after phases: walks of one kernel",
            target="cpu", by="codegen", beside=("kept_rows",),
        ),
        PassRow("held_elements.held_bytes", "before the loops: whether elements stay", target="device", by="compiler"),
        PassRow("group_reduction.reduce_in_groups", "last: it copies parts", target="device", by="compiler"),
        PassRow("lone_reduction.reduce_alone", "likewise, of few elements", target="device", by="compiler"),
        PassRow(
            "block_reduction.reduce_in_blocks", "likewise, where chunks are few or rows have several",
            target="device", by="compiler", beside=("BlockShape",),
        ),
        PassRow("serialise", "likewise, for axes that are not the innermost", target="device", by="compiler"),
    ),
    "empty": (PassRow("expand", "alone: totals of no elements are interpreted once", by="dispatch"),),
    "scan": (
        PassRow("scans.write_loops", "first: passes see its copies of an element as one program", "loops"),
        RESOLVE,
        *TYPED,
        *PRIMITIVE,
    ),
    "interpreted": (RESOLVE, EXPAND),
    "graph": (
        PassRow("lower_graph", "without reductions: then as elementwise", by="library"),
        PassRow(
            "lower_graph_reductions", "then as a reduction", by="library", beside=("elements_of", "in_place"),
        ),
    ),
}  # fmt: skip


@overload
def run(unit: Program | scans.Scan, facts: Facts = ANY, check: bool = False) -> Program: ...


@overload
def run(unit: ReductionIR, facts: Facts = ANY, check: bool = False) -> ReductionIR: ...


def run(unit: Program | ReductionIR | scans.Scan, facts: Facts = ANY, check: bool = False) -> Program | ReductionIR:
    """The pipeline of a kind: what remains are primitive ops, loads, stores and calls.

    check: verify the program before the first pass and after each one, as FUSEC_DEBUG >= 3 and FUSEC_DUMP do too; an
    AssertionError then names the pass that broke it.
    """
    if isinstance(unit, Program):
        kind: Kind = "block" if unit.block else "elementwise"
    else:
        kind = "reduction" if isinstance(unit, ReductionIR) else "scan"
    result: Program | ReductionIR = _through(PIPELINES[kind], facts, check, unit)
    return result


def run_few(program: Program, facts: Facts) -> Program:
    """Run only the passes that the interpreter needs: the others would take longer than they save."""
    result: Program = _through(PIPELINES["interpreted"], facts, False, program)
    return result


def _through(steps: Sequence[PassRow], facts: Facts, check: bool, unit: Any) -> Any:
    """What a program is after some passes."""
    watched = debug.is_wanted(3)
    looks = is_primitive = False
    for step in steps:
        if not step.runs(facts):
            continue
        if step is FOLD and (check or watched):
            looks = True
            _look(unit, "the front end", watched)
        background.let_pass()
        given = [getattr(facts, step.needs)] if step.needs else []
        if step.parts:
            given.append(partial(_through, step.parts, facts, check))
        unit = step.load()(unit, *given)
        is_primitive = is_primitive or (step is EXPAND and not facts.native)
        if looks:
            _look(unit, step.name, watched, is_primitive)
    return unit


def _look(program: Program, culprit: str, watched: bool, primitive: bool = False) -> None:
    """Verify, blaming the pass that ran last, and show the program if people want to see it."""
    from fusec.ir.verify import verify  # needed only where programs are checked

    try:
        verify(program, primitive)
    except AssertionError as error:
        raise AssertionError(f"after {culprit}: {error}") from error
    if watched:
        from fusec.ir.text import print_program  # needed only where programs are shown

        debug.show(3, f"{program.name} after {culprit}", print_program(program))
