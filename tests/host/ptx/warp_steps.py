"""Barriers and warp-wide instructions as closures, and when their threads may go on."""

import numpy as np

from ptx import warp
from ptx.blocks import Code, Step
from ptx.faults import Unsupported
from ptx.group import Group
from ptx.operands import Operands
from ptx.syntax import Instruction, Literal, Operand, Vector
from ptx.types import NUMPY

Array = np.ndarray


def step(instruction: Instruction, operands: Operands) -> Step | None:
    """The closure of a barrier or a warp-wide instruction; None if it is another one."""
    maker = _MAKERS.get(instruction.opcode[0])
    return None if maker is None else maker(instruction, operands)


def _pair(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def shuffle(instruction: Instruction, operands: Operands) -> Step:
    """shfl.sync.mode.b32 d|p, a, b, c, mask."""
    if "sync" not in instruction.opcode:
        raise Unsupported("shfl without .sync")
    mode = instruction.opcode[2]
    target, *sources = instruction.operands
    puts = [operands.writer(each) for each in _pair(target)]
    reads = [operands.read(each, "b32") for each in sources]

    def steps(r: list[Array], g: Group) -> None:
        arguments = [np.broadcast_to(read(r, g), g.n) for read in reads]
        for put, values in zip(puts, warp.shuffle(mode, g, *arguments), strict=False):
            put(r, g, values)

    return steps


def vote(instruction: Instruction, operands: Operands) -> Step:
    """vote.sync.mode d, p, mask."""
    target, holds, masks = instruction.operands
    mode = instruction.opcode[2]
    put, read, named = operands.writer(target), operands.read(holds, "pred"), operands.read(masks, "b32")
    return lambda r, g: put(r, g, warp.vote(mode, g, read(r, g), np.broadcast_to(named(r, g), g.n)))


def match(instruction: Instruction, operands: Operands) -> Step:
    """match.any.sync d, a, mask; match.all.sync d|p, a, mask."""
    target, value, masks = instruction.operands
    is_all, kind = instruction.opcode[1] == "all", instruction.opcode[-1]
    puts = [operands.writer(each) for each in _pair(target)]
    read, named = operands.read(value, kind), operands.read(masks, "b32")

    def steps(r: list[Array], g: Group) -> None:
        mask = np.broadcast_to(named(r, g), g.n)
        same = warp.match(g, np.broadcast_to(read(r, g), g.n), mask)
        if is_all:
            holds = same == mask
            same = np.where(holds, mask, np.uint32(0))
            for put in puts[1:]:
                put(r, g, holds)
        puts[0](r, g, same)

    return steps


def reduce(instruction: Instruction, operands: Operands) -> Step:
    """redux.sync.op.type d, a, mask."""
    target, value, masks = instruction.operands
    op, kind = instruction.opcode[2], instruction.opcode[-1]
    if kind not in ("u32", "s32", "b32"):
        raise Unsupported(f"redux on {kind}")
    put, read, named = operands.writer(target), operands.read(value, kind), operands.read(masks, "b32")

    def steps(r: list[Array], g: Group) -> None:
        values = np.broadcast_to(read(r, g), g.n).astype(NUMPY[kind])
        put(r, g, warp.reduce(op, g, values, np.broadcast_to(named(r, g), g.n)))

    return steps


def active(instruction: Instruction, operands: Operands) -> Step:
    """activemask.b32 d."""
    put = operands.writer(instruction.operands[0])
    return lambda r, g: put(r, g, warp.active(g))


def barrier(instruction: Instruction, operands: Operands) -> Step:
    """bar.sync, barrier.sync, bar.warp.sync, bar.red: all who take part are in the group by now."""
    opcode = instruction.opcode
    if "warp" in opcode:
        return lambda r, g: g.machine.pass_warp_barrier(g)
    if "arrive" in opcode:
        raise Unsupported("a barrier that does not wait")
    if "red" not in opcode:
        return lambda r, g: g.machine.pass_barrier(g)
    target, *_, holds = instruction.operands
    op = next(part for part in opcode if part in ("popc", "and", "or"))
    put, read = operands.writer(target), operands.read(holds, "pred")

    def steps(r: list[Array], g: Group) -> None:
        blocks = g.places.blocks
        g.machine.pass_barrier(g)
        counts = np.bincount(blocks, np.broadcast_to(read(r, g), g.n)).astype(np.uint32)[blocks]
        whole = np.bincount(blocks)[blocks]
        put(r, g, {"popc": counts, "and": counts == whole, "or": counts > 0}[op])

    return steps


_MAKERS = {
    "shfl": shuffle,
    "vote": vote,
    "match": match,
    "redux": reduce,
    "activemask": active,
    "bar": barrier,
    "barrier": barrier,
}


# --- waiting -------------------------------------------------------------------------------------------------------


def ready(instruction: Instruction, code: Code, group: Group) -> Array:
    """Which threads of those who have arrived may go on. Raises WarpDivergence for member masks that disagree."""
    opcode = instruction.opcode
    if opcode[0] in ("bar", "barrier") and "warp" not in opcode:
        return _block_ready(instruction, code, group)
    operands = Operands(code, instruction, 0)
    read = operands.read(instruction.operands[-1], "b32")
    group.take(tuple(operands.reads))
    masks = read(group.registers, group)
    machine = group.machine
    if group.n == machine.thread_count and (masks == warp.FULL).all() and machine.block_size % 32 == 0:
        return np.ones(group.n, bool)
    return warp.complete(group, np.broadcast_to(masks, group.n))


def _block_ready(instruction: Instruction, code: Code, group: Group) -> Array:
    """Barriers of the block wait for all of its threads, or for as many as are given."""
    given = [each for each in instruction.operands if isinstance(each, Literal)]
    is_plain = "red" not in instruction.opcode
    wanted = int(given[1].text, 0) if is_plain and len(given) > 1 else group.machine.block_size
    blocks = group.places.blocks
    return np.bincount(blocks)[blocks] == wanted
