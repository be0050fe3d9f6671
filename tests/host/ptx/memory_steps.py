"""Loads, stores, atomics, address conversions, parameters and calls."""

import numpy as np

from ptx import atomics
from ptx.blocks import Step
from ptx.faults import PtxFault, Unsupported
from ptx.group import Group
from ptx.memory import LOCAL, SHARED, WINDOW
from ptx.operands import Operands, Read
from ptx.syntax import WIDTHS, Address, Instruction, Operand, Symbol, Vector
from ptx.types import NUMPY, UNSIGNED

Array = np.ndarray
SPACES = ("global", "shared", "local", "param", "const")


def step(instruction: Instruction, operands: Operands) -> Step | None:
    """The closure of an instruction that touches memory; None if it is another one."""
    maker = _MAKERS.get(instruction.opcode[0])
    return None if maker is None else maker(instruction, operands)


def space_of(opcode: tuple[str, ...]) -> str:
    """The state space that an opcode names, ``generic`` if it names none."""
    parts = [part.split("::")[0] for part in opcode]
    return next((part for part in parts if part in SPACES), "generic")


def _items(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def load(instruction: Instruction, operands: Operands) -> Step:
    """ld, in all its forms."""
    target, source = instruction.operands
    kind, space = instruction.opcode[-1], space_of(instruction.opcode)
    if space == "param" and isinstance(source, Address) and isinstance(source.base, Symbol):
        return _load_param(target, source, kind, operands)
    address = operands.address(source)
    puts = [operands.writer(each) for each in _items(target)]
    width, count, dtype = WIDTHS[kind], len(puts), NUMPY[kind]

    def steps(r: list[Array], g: Group) -> None:
        found = g.machine.load(g, space, address(r, g), width, count)
        for put, values in zip(puts, found, strict=True):
            put(r, g, values.view(dtype))

    return steps


def store(instruction: Instruction, operands: Operands) -> Step:
    """st, in all its forms."""
    target, source = instruction.operands
    kind, space = instruction.opcode[-1], space_of(instruction.opcode)
    raw, width = UNSIGNED[WIDTHS[kind]], WIDTHS[kind]
    reads = [operands.read(each, kind) for each in _items(source)]
    if space == "param":
        return _store_param(target, reads, raw, operands)
    address = operands.address(target)

    def steps(r: list[Array], g: Group) -> None:
        g.machine.store(g, space, address(r, g), width, [read(r, g).view(raw) for read in reads])

    return steps


def _load_param(target: Operand, source: Address, kind: str, operands: Operands) -> Step:
    puts = [operands.writer(each) for each in _items(target)]
    name, width, dtype = source.base.name, WIDTHS[kind], NUMPY[kind]
    offsets = [source.offset + width * at for at in range(len(puts))]

    def steps(r: list[Array], g: Group) -> None:
        for put, offset in zip(puts, offsets, strict=True):
            put(r, g, g.activation.read_param(g, name, offset, width).view(dtype))

    return steps


def _store_param(target: Operand, reads: list[Read], raw: np.dtype, operands: Operands) -> Step:
    assert isinstance(target, Address), "a parameter is stored by name"
    assert isinstance(target.base, Symbol), "a parameter is stored by name"
    name, offset, width = target.base.name, target.offset, raw.itemsize

    def steps(r: list[Array], g: Group) -> None:
        for at, read in enumerate(reads):
            values = np.broadcast_to(read(r, g).view(raw), g.n)
            g.activation.write_param(g, name, offset + width * at, values)

    return steps


def call(instruction: Instruction, operands: Operands) -> Step:
    """call (result), function, (arguments): the function runs to its end for the threads of the group."""
    lists = list(instruction.operands)
    results = [each.name for each in _items(lists.pop(0))] if isinstance(lists[0], Vector) else []
    callee = lists.pop(0)
    if not isinstance(callee, Symbol):
        raise Unsupported("an indirect call")
    arguments = [each.name for each in _items(lists[0])] if lists else []
    return lambda r, g: g.activation.call(g, callee.name, arguments, results)


# --- addresses -----------------------------------------------------------------------------------------------------

_BASES = {"shared": SHARED, "local": LOCAL}


def convert_address(instruction: Instruction, operands: Operands) -> Step:
    """cvta: between a window and the generic address space; global, const and param addresses are generic already."""
    opcode = instruction.opcode
    base = _BASES.get(space_of(opcode), 0)
    shift = np.uint64((-base if opcode[1] == "to" else base) & (1 << 64) - 1)
    target, source = instruction.operands
    put = operands.writer(target)
    read = operands.address(Address(source) if not isinstance(source, Address) else source)
    return lambda r, g: put(r, g, read(r, g) + shift)


def is_space(instruction: Instruction, operands: Operands) -> Step:
    """isspacep: whether a generic address lies in a window."""
    space = space_of(instruction.opcode)
    target, source = instruction.operands
    put, read = operands.writer(target), operands.read(source, "u64")

    def steps(r: list[Array], g: Group) -> None:
        windows = read(r, g) // np.uint64(WINDOW)
        inside = {"shared": windows == SHARED // WINDOW, "local": windows == LOCAL // WINDOW}
        put(r, g, inside.get(space, windows > LOCAL // WINDOW))

    return steps


# --- atomics -------------------------------------------------------------------------------------------------------


def atomic(instruction: Instruction, operands: Operands) -> Step:
    """atom and red."""
    opcode, given = instruction.opcode, list(instruction.operands)
    kind, space = opcode[-1], space_of(opcode)
    op = next(part for part in opcode[1:] if part in _OPS)
    put = operands.writer(given.pop(0)) if opcode[0] == "atom" else None
    address = operands.address(given.pop(0))
    reads = [operands.read(each, kind) for each in given]
    compute, dtype, width = atomics.update(op, kind, space), NUMPY[kind], WIDTHS[kind]
    raw = UNSIGNED[width]

    def steps(r: list[Array], g: Group) -> None:
        addresses = address(r, g)
        values = [np.broadcast_to(read(r, g), g.n) for read in reads]
        before = np.zeros(g.n, dtype)
        for chosen in atomics.rounds(addresses):
            old = g.machine.load(g, space, addresses[chosen], width, 1, chosen)[0].view(dtype)
            new = compute(old, *(each[chosen] for each in values)).astype(dtype, copy=False)
            g.machine.store(g, space, addresses[chosen], width, [new.view(raw)], chosen)
            before[chosen] = old
        if put is not None:
            put(r, g, before)

    return steps


_OPS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")


def _nothing(instruction: Instruction, operands: Operands) -> Step:
    """Fences and hints: threads of this machine see every store at once."""
    return lambda r, g: None


def _trap(instruction: Instruction, operands: Operands) -> Step:
    def steps(r: list[Array], g: Group) -> None:
        raise PtxFault("the program trapped")

    return steps


_MAKERS = {
    "ld": load,
    "ldu": load,
    "st": store,
    "call": call,
    "cvta": convert_address,
    "atom": atomic,
    "red": atomic,
    **dict.fromkeys(("membar", "fence", "prefetch", "prefetchu", "nanosleep", "discard", "applypriority"), _nothing),
    "trap": _trap,
    "brkpt": _trap,
}
