"""Functions made ready to run: basic blocks of closures over registers that are numbered."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ptx.faults import Unsupported
from ptx.group import Group
from ptx.syntax import Address, Function, Instruction, Literal, Module, Operand, Register, Symbol, Vector
from ptx.types import STORED

Array = np.ndarray
Step = Callable[[list[Array], Group], None]
Jumps = list[tuple[int, Array]]  # where to, and which threads of the group
JUMPS = ("bra", "brx", "ret", "exit")
WARP_WIDE = ("shfl", "vote", "match", "redux")
CARRY = "%carry"  # the register that add.cc and its kin write
EXIT = 1 << 30  # the block after the last


@dataclass
class Block:
    """Instructions that run from first to last. decoded when first reached.

    reads, writes: numbers of registers; jump: the last instruction if it is one; gate: the first instruction if it
    waits for other threads.
    """

    start: int
    end: int
    steps: list[Step] | None = None
    reads: tuple[int, ...] = ()
    writes: frozenset[int] = frozenset()
    jump: Callable[[list[Array], Group], int | Jumps] | None = None


@dataclass
class Code:
    """A function ready to run. numbers: of its registers, the special ones included, by name."""

    function: Function
    blocks: list[Block]
    block_at: dict[int, int]
    numbers: dict[str, int] = field(default_factory=dict)
    dtypes: list[np.dtype] = field(default_factory=list)
    gates: dict[int, Instruction] = field(default_factory=dict)

    @property
    def register_count(self) -> int:
        """How many registers there are."""
        return len(self.dtypes)

    def label(self, name: str) -> int:
        """The block that a label stands before."""
        return self.block_at[self.function.labels[name]]


def is_gate(instruction: Instruction) -> bool:
    """The instruction waits for other threads of the warp or the block."""
    opcode = instruction.opcode
    return opcode[0] in ("bar", "barrier") or (opcode[0] in WARP_WIDE and "sync" in opcode)


def prepare(module: Module, function: Function) -> Code:
    """Split a function into blocks; registers get numbers. Kept with the module."""
    known = module.code.get(function.name)
    if known is not None:
        assert isinstance(known, Code)
        return known
    function = _without_guards(function)
    body = function.body
    starts = {0, *function.labels.values()}
    for at, instruction in enumerate(body):
        if instruction.opcode[0] in JUMPS or is_gate(instruction):
            starts.add(at + 1)
        if is_gate(instruction):
            starts.add(at)
    ordered = sorted(start for start in starts if start < len(body))
    ends = [*ordered[1:], len(body)]
    blocks = [Block(start, end) for start, end in zip(ordered, ends, strict=True)]
    block_at = {start: number for number, start in enumerate(ordered)} | {len(body): EXIT}
    code = Code(function, blocks, block_at)
    for name, kind in function.registers.items():
        if kind not in STORED:
            raise Unsupported(f"a register of type {kind}")
        code.numbers[name] = len(code.dtypes)
        code.dtypes.append(STORED[kind])
    for instruction in body:
        for operand in instruction.operands:
            _number_specials(operand, code)
        if "cc" in instruction.opcode:
            code.numbers.setdefault(CARRY, len(code.dtypes))
            code.dtypes += [np.dtype(bool)] * (len(code.numbers) - len(code.dtypes))
    code.gates = {block.start: body[block.start] for block in blocks if is_gate(body[block.start])}
    module.code[function.name] = code
    return code


def _number_specials(operand: Operand, code: Code) -> None:
    match operand:
        case Register(name) if name not in code.numbers and name != "_":
            code.numbers[name] = len(code.dtypes)
            code.dtypes.append(np.dtype(np.uint64 if name.endswith(("64", "gridid", "timer")) else np.uint32))
        case Vector(items):
            for item in items:
                _number_specials(item, code)
        case Address(base):
            _number_specials(base, code)
        case Literal() | Symbol() | Register():
            pass


def _without_guards(function: Function) -> Function:
    """Guarded instructions other than jumps become jumps around plain ones."""
    body: list[Instruction] = []
    moved = {}
    labels = dict(function.labels)
    for at, instruction in enumerate(function.body):
        moved[at] = len(body)
        guard = instruction.guard
        if guard is None or instruction.opcode[0] in JUMPS:
            body.append(instruction)
            continue
        beyond = f"after {at}"
        skip = Register(guard.name, not guard.negated)
        body.append(Instruction(("bra",), (Symbol(beyond),), skip, instruction.line, instruction.text))
        body.append(Instruction(instruction.opcode, instruction.operands, None, instruction.line, instruction.text))
        labels[beyond] = at + 1
    moved[len(function.body)] = len(body)
    rest = {key: value for key, value in vars(function).items() if key not in ("body", "labels")}
    return Function(**rest, body=body, labels={name: moved[at] for name, at in labels.items()})
