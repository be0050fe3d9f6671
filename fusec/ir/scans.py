"""The IR of scans: running totals along one axis, one for every element.

Note [Scan order]. The order of operations is part of the meaning, as that of reductions is. It depends on the number
of elements and on which axis of the walk is scanned, on nothing else:

* Along the last axis of the walk (the innermost in memory), elements form groups of GROUP = 32, which are scanned by
  doubling distances: for d = 1, 2, 4, 8, 16, element l becomes combine(element l - d, element l) wherever l >= d.
  GROUPS groups are a chunk. Within a chunk, the elements of every group but the first are combined with the carry on
  their left; it is the last element of the first group, then combine(carry, last element) from group to group.
* Along any other axis (the lanes of a machine lie along another), ROWS elements are a chunk, taken one after the other.
* The last element of each chunk is its total. The totals are scanned as elements of a new array, by the same rules;
  the elements of every chunk but the first are then combined with the result for the total before it on their left.

So result = combine(prefix, combine(carry, element)), where a prefix and a carry exist; no identity takes part. A last
axis of at most SHORT elements is walked as another one if there is any other. An exclusive result is the inclusive one
of the element before it, to the bit; the first is the identity.

Error bound of sums: result i differs from the exact sum of x[0..i] by at most k u / (1 - k u) times the sum of
abs(x[0..i]), where u is half an ulp of 1 and k = 69 (c + 1) - 1 along the last axis, 64 (c + 1) - 1 along another. c is
the number of times that chunks have to be combined: 0 for up to 2048 elements (64 along another axis), 1 for up to
2048 ** 2 (64 ** 2), and so on. One after the other, k would be the number of elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fusec.base.dtypes import BOOL, INT64, UINT64, DType
from fusec.base.records import dataclass, replace
from fusec.ir import loops as ir
from fusec.ir.expr import Pointer, Struct, Type, apply
from fusec.ir.reductions import Accumulator, ReductionIR, Stage, addressed, given, partials, parts_of, whole_of
from fusec.ir.walk import renamed

GROUPS = 64  # groups of a chunk along the last axis
ROWS = 64  # elements of a chunk along another axis
SHORT = 32  # elements of a last axis that are not worth sharing
WORD = 32  # bits of a value in a word that groups publish
RECORDS = ir.GROUP + 4  # of GROUP chunks along the last axis, that groups publish
RECORDS_DOWN = 2 * ROWS + 1  # of ROWS chunks along another axis, that threads publish
MOST_WORDS = 8  # of a value that is published: more would take longer than two more kernels
MOST_LEVELS = 2  # of totals that are published: those of chunks, and of as many chunks as a chunk has elements

PREFIX = "_prefix"  # an array of one part of the scanned totals: element c belongs to chunk c + 1
STATE = "_state"  # and a number: an array of one part of what a group of totals leaves to the next, see `states`
NUMBER, COUNT = "_number", "_count"
"""Scalar parameters (int64) of a kernel that advances: which group of totals it is, and how many totals it has."""
SEEN = "_seen"
"""An array of words (uint64, 0 at first) that chunks publish: their totals and more, see `published`."""
TURN = "_turn"
"""An array of one element (uint64, 0 at first), which counts the blocks that have started: by it, blocks take positions
in the order in which they start, so that whom a block waits for has started."""

Role = Literal["whole", "totals", "results", "advance", "clear", "one_pass"]
"""What a kernel does: all; the totals of chunks; the results, from scanned totals; a group of a scan along the last
axis, from what the groups before it have left; clear the words of the next kernel; or the results, where groups learn
from each other's words what is before their chunks."""


@dataclass(frozen=True)
class Scan:
    """One kernel that scans."""

    # One stage, what happens for each element, and a total that is what the stage has accumulated; `finish` happens for
    # every running total, and all arrays lie along the walk.
    reduction: ReductionIR
    exclusive: bool = False  # every element gets the total of those before it
    first: tuple[ir.Stmt, ...] = ()  # what happens for the first element of an exclusive scan instead of `finish`

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.reduction.name

    @property
    def stage(self) -> Stage:
        """The work for each element."""
        (stage,) = self.reduction.stages
        return stage

    @property
    def total(self) -> Accumulator:
        """The running total, as `finish` sees it."""
        assert self.reduction.total is not None, "a scan has totals"
        return self.reduction.total

    @property
    def running(self) -> Accumulator:
        """The value of one element."""
        assert self.stage.accumulator is not None, "a scan accumulates"
        return self.stage.accumulator

    @property
    def arrays(self) -> tuple[ir.ArrayParam, ...]:
        """The array parameters in order."""
        return self.reduction.arrays


def chunk_of(is_last: bool) -> int:
    """The number of elements of a chunk along the last axis of the walk, or along another axis."""
    return ir.GROUP * GROUPS if is_last else ROWS


def levels_of(extent: int, is_last: bool) -> int:
    """The number of times that totals of chunks must be scanned."""
    chunk, levels = chunk_of(is_last), 0
    while extent > chunk:
        extent = -(-extent // chunk)
        levels += 1
    return levels


def words_of(dtypes: Sequence[DType]) -> int:
    """The number of words in which a value with such parts is published: each has 32 bits of it."""
    return sum(-(-dtype.bits // WORD) for dtype in dtypes)


def fits_one_pass(extent: int, totals: Sequence[DType], is_last: bool) -> bool:
    """Whether a scan of so many elements may be one pass. totals: dtypes of a total's parts."""
    return words_of(totals) <= MOST_WORDS and levels_of(extent, is_last) <= MOST_LEVELS


def published(chunks: int, totals: Sequence[DType], is_last: bool) -> int:
    """The number of words that so many chunks of one row or column publish: records of GROUP or of ROWS of them each,
    see `fusec.passes.look_back` and `fusec.passes.hand_down`.
    """
    each, records = (ir.GROUP, RECORDS) if is_last else (ROWS, RECORDS_DOWN)
    return -(-chunks // each) * records * words_of(totals)


def first_program(scan: Scan) -> ir.Program:
    """The value of the first element of an exclusive scan."""
    reduction = scan.reduction
    outputs = tuple(param for param in reduction.arrays if param.written)
    return ir.Program(reduction.name, outputs, scan.first, reduction.functions, reduction.source)


def between(scan: Scan) -> Scan:
    """The scan of the totals of chunks, from arrays `GIVEN` to arrays `PARTIAL`."""
    total, reduction = scan.total, scan.reduction
    inputs, loads, value = given(total)
    running = replace(scan.running, value=value)
    outputs, stores = partials(total)
    changed = replace(reduction, params=(*inputs, *outputs), stages=(Stage(loads, running),), finish=stores)
    return Scan(changed)


def prefixes(total: Accumulator) -> tuple[ir.ArrayParam, ...]:
    """Arrays `PREFIX`."""
    return tuple(ir.ArrayParam(f"{PREFIX}{at}", dtype) for at, (_, dtype) in enumerate(total.parts))


def params_of(scan: Scan, role: Role, levels: int = 0) -> tuple[ir.Param, ...]:
    """The parameters of a kernel in that role. levels: how many times totals of chunks are scanned in the kernel."""
    params = scan.reduction.params
    match role:
        case "whole":
            return params
        case "clear":
            return tuple(ir.ArrayParam(name, UINT64, written=True, read=False) for name in (SEEN, TURN))
        case "one_pass":
            return (*params, *(ir.ArrayParam(name, UINT64, written=True) for name in (SEEN, TURN)))
        case "results":
            return (*params, *prefixes(scan.total))
        case "advance":
            held = (param for _, arrays in states(scan.total, levels) for param in arrays)
            return (*params, *held, ir.ScalarParam(NUMBER, INT64), ir.ScalarParam(COUNT, INT64))
        case "totals":
            used = addressed(scan.stage.body, (scan.running.value,))
            inputs = tuple(param for param in params if isinstance(param, ir.ScalarParam) or param.name in used)
            return (*inputs, *partials(scan.total)[0])


def states(total: Accumulator, levels: int) -> tuple[tuple[str, tuple[ir.ArrayParam, ...]], ...]:
    """The variables that a group passes to the next, and the arrays for their parts, one element for each member.

    They are the carry of the chunk and, for each level of totals, what `fusec.passes.scan_rows` holds between groups.
    """
    names = ["_carry0_"]
    for level in range(1, levels + 1):
        names += [f"_held{level}_", f"_carry{level}_", f"_prefix{level}_"]
    parts = [dtype for _, dtype in total.parts]
    return tuple(
        (
            name,
            tuple(
                ir.ArrayParam(f"{STATE}{at * len(parts) + part}", dtype, written=True)
                for part, dtype in enumerate(parts)
            ),
        )
        for at, name in enumerate(names)
    )


# --- segments ----------------------------------------------------------------------------------------------------

STARTS = "starts"  # the field that says whether a segment begins among the elements of a value


def in_segments(scan: Scan, flag: str) -> Scan:
    """The scan that restarts at every element where the bool input `flag` is true.

    Values become pairs: whether a segment starts among their elements, and the total since the last start. Their
    combination is associative, and what lies before a start never enters a value behind it.
    """
    inner = scan.running.type
    fields = inner.fields if isinstance(inner, Struct) else (("value", inner),)
    assert not isinstance(inner, Struct) or STARTS not in dict(fields), f"a field is called {STARTS}"
    kind = Struct(f"Segment_{scan.name}", ((STARTS, BOOL), *fields))
    combine = _segment_combine(scan, kind, inner)
    starts = ir.Load(ir.Element(flag, Pointer(BOOL, "global", const=True)), BOOL)
    declared = ir.Declare("_starts", BOOL, starts)
    value = ir.Make((ir.Local("_starts", BOOL), *parts_of(scan.running.value)), kind)
    running = Accumulator(scan.running.name, kind, value, combine.name)
    parts = tuple(ir.Local(name, dtype) for name, dtype in running.parts)
    total = Accumulator(scan.total.name, kind, ir.Make(parts, kind), combine.name)
    names = tuple(ir.Local(name, dtype) for name, dtype in total.parts[1:])
    again = tuple(
        ir.Declare(name, dtype, local)
        for (name, dtype), local in zip(scan.total.parts, names, strict=True)
        if name != local.name
    )
    finish: tuple[ir.Stmt, ...] = (*again, *scan.reduction.finish)
    if scan.exclusive:
        finish = (ir.If(starts, _apart(scan.first), finish),)
    reduction = replace(
        scan.reduction,
        stages=(Stage((*scan.stage.body, declared), running),),
        total=total,
        finish=finish,
        functions=(*scan.reduction.functions, combine),
    )
    return replace(scan, reduction=reduction)


def _segment_combine(scan: Scan, kind: Struct, inner: Type) -> ir.Function:
    """(f, x) and (g, y): (f or g, y if g else combine(x, y))."""
    a, b = ir.Local("a", kind), ir.Local("b", kind)
    left, right = (
        whole_of(tuple(ir.Field(side, name, dtype) for name, dtype in kind.fields[1:]), inner) for side in (a, b)
    )
    starts = ir.Field(b, STARTS, BOOL)
    either = apply("logical_or", ir.Field(a, STARTS, BOOL), starts)
    joined = ir.Local("joined", inner)
    chosen = tuple(
        apply("where", starts, theirs, both) for theirs, both in zip(parts_of(right), parts_of(joined), strict=True)
    )
    body = (
        ir.Declare("joined", inner, ir.Call(scan.running.combine, (left, right), inner)),
        ir.Return(ir.Make((either, *chosen), kind)),
    )
    return ir.Function(f"{scan.running.combine}_segments", (("a", kind), ("b", kind)), kind, body)


def _apart(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """The statements with names of their own."""
    return renamed(body, "_first")[0]
