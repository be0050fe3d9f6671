"""Copies: arrays that atomic updates change in shared memory first, see `fusec.kinds.copies`."""

from __future__ import annotations

from collections.abc import Iterable

from fusec.base.dtypes import BY_NAME, DType, unsigned_of
from fusec.base.kernel_abi import ATOMIC_BYTES, Layout, room_of_copies
from fusec.base.records import dataclass
from fusec.codegen.c_family.names import ScopeNames
from fusec.ir.expr import Const, Expr
from fusec.ir.loops import ArrayParam, At, Atomic, Program
from fusec.ir.walk import inner_first, operands, statements

ORDERS = ("minimum", "maximum")
MERGING = {"add": "add", "subtract": "add", **{op: op for op in ("and", "or", "xor", *ORDERS)}}
"""By the operation of updates, that which makes one of their copies."""


@dataclass(frozen=True)
class CopiedArray:
    """An array with copies.

    op: by which copies become one. word: the type of their elements, which have 32 bits at least and wrap unless they
    are compared. count: of copies; the elements at one position lie side by side. length: elements of all copies for
    which there is room. block: the copies of a block. own: that of a thread.
    """

    array: ArrayParam
    op: str
    word: DType
    count: int
    length: int
    block: str
    own: str

    @property
    def start(self) -> Const:
        """What the elements of copies are before any update: of comparisons the last number, else what changes none."""
        least = 1 << self.word.bits - 1 if self.word.kind == "signed" else 0
        every = (1 << self.word.bits) - 1
        return Const({"minimum": every ^ least, "maximum": least, "and": every}.get(self.op, 0), self.word)

    @property
    def most(self) -> int:
        """Elements of the array for which there is room."""
        return self.length // self.count


def copied_arrays(program: Program, layout: Layout, names: ScopeNames) -> list[CopiedArray]:
    """The arrays that only atomic updates of one sort change, whose old values nothing asks for."""
    if program.block or not layout.copies:
        return []
    counts, ops, room = dict(layout.copies), _ops(program), room_of_copies(len(layout.copies))
    found = []
    for array in program.arrays:
        op = ops.get(array.name, "")
        if array.name in counts and array.dtype.is_integer and op:
            bits = 8 * max(ATOMIC_BYTES, array.dtype.nbytes)
            is_signed = op in ORDERS and array.dtype.kind == "signed"
            word = BY_NAME[f"int{bits}"] if is_signed else unsigned_of(bits)
            block, own = names.fresh(f"{array.name}_copies"), names.fresh(f"{array.name}_own")
            length = room // word.nbytes
            found.append(CopiedArray(array, op, word, counts[array.name], length, block, own))
    return found


def _ops(program: Program) -> dict[str, str]:
    """By array, the operation of all its updates; "" for arrays that are used in another way, too."""
    ops: dict[str, str] = {}

    def note(places: Iterable[Expr], op: str) -> None:
        for place in places:
            if isinstance(place, At):
                ops[place.param] = op if ops.get(place.param, op) == op else ""

    for stmt in statements(program.body):
        roots = list(operands(stmt))
        if isinstance(stmt, Atomic) and not stmt.result:
            note([stmt.pointer], MERGING.get(stmt.op, ""))
            note([root for root in roots if root is not stmt.pointer], "")
        else:
            note(roots, "")
        for node in inner_first(roots):
            note(node.children, "")
    return ops
