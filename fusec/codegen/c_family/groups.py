"""Groups of neighbours: a thread loads, computes and stores several elements along the last axis at once."""

from __future__ import annotations

from fusec.base.kernel_abi import VECTOR_BYTES, Layout, Step
from fusec.base.records import dataclass
from fusec.codegen.c_family import facts
from fusec.codegen.c_family.copies import CopiedArray
from fusec.codegen.c_family.names import ScopeNames
from fusec.codegen.c_family.spelling import Spelling
from fusec.ir.expr import Expr
from fusec.ir.loops import REGISTER, ArrayParam, Element, Program
from fusec.ir.walk import operands, statements

HELD_LIMIT = 128  # elements a thread holds at once; each may need a register, of which there are 255
LOADED_BYTES = 64  # that a thread loads before it updates copies
LIGHT_WORK = 128  # scalar operations for all of these elements; beyond, there is enough to do while loads are under way
WORK_LIMIT = 512  # scalar operations of an unrolled group; beyond, arithmetic and not memory sets the pace


@dataclass(frozen=True)
class LoadGroup:
    """An array of which a thread takes several neighbours at once, and the variable that holds them."""

    array: ArrayParam
    name: str
    loaded: bool
    stored: bool


def group_of(array: ArrayParam, program: Program, names: ScopeNames) -> LoadGroup:
    """The group of an array that runs along the last axis."""
    body = program.body
    targets: list[Expr] = [root for stmt in statements(body) for root in operands(stmt)[:1]]
    stored = array.written and any(isinstance(root, Element) and root.param == array.name for root in targets)
    loaded = array.read or not facts.always_stores(body, array.name)
    return LoadGroup(array, names.fresh(f"{array.name}_group"), loaded, stored)


def groups_of(
    program: Program, layout: Layout, spelling: Spelling, names: ScopeNames, copied: frozenset[str]
) -> tuple[int, list[LoadGroup]]:
    """How many neighbours a thread takes at once, and the arrays it takes them from.

    More than one only where 16-byte loads are possible, or rows are long enough to begin groups at such addresses. A
    group reads all its elements before it writes any, so the body may write current elements alone, and update arrays
    that have copies.
    """
    used = {node.param for node in facts.nodes(program.body) if isinstance(node, Element)}
    arrays = [array for array in program.arrays if array.name in used]
    sizes = [array.dtype.nbytes for array in arrays if layout.step(array.name)[-1] is Step.UNIT]
    possible = spelling.groups and (layout.aligned >= VECTOR_BYTES or layout.ragged) and bool(sizes)
    gaps = {name for name, _ in layout.gaps}
    others = [array for array in arrays if layout.step(array.name)[-1] is Step.ANY]
    if not possible or any(array.name not in gaps or array.written for array in others):
        return 1, []  # what is computed again past the end would be stored again
    if layout.ndim > 1 and facts.asks_where_it_is(program.body):
        return 1, []
    if facts.updates_beyond_elements(program.body, copied) or facts.has_element_pointers(program.body):
        return 1, []
    lanes = max(VECTOR_BYTES // max(sizes), min(4, VECTOR_BYTES // min(sizes)))
    lanes = min(lanes, 4) if others else lanes  # more would have a warp load from too many lines at once
    if lanes == 1 or facts.has_loops(program) or lanes * len(arrays) > HELD_LIMIT:
        return 1, []
    if facts.cost(program) * lanes > WORK_LIMIT:
        return 1, []
    groups = [group_of(each, program, names) for each in arrays if layout.step(each.name)[-1] is Step.UNIT]
    return (lanes, groups) if groups else (1, [])


def rounds_of(program: Program, layout: Layout, lanes: int, groups: list[LoadGroup], copies: list[CopiedArray]) -> int:
    """How many groups of each array a thread loads before it waits: updates of copies keep it from loading more.

    One where updates of two registers or much work set the pace.
    """
    if not groups or layout.ndim > 1 or layout.ragged or not copies:
        return 1
    if any(each.word.nbytes > REGISTER for each in copies):
        return 1
    loaded = lanes * sum(group.array.dtype.nbytes for group in groups)
    return max(1, min(LOADED_BYTES // loaded, LIGHT_WORK // (lanes * facts.cost(program))))
