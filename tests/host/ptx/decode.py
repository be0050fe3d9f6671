"""Instructions to closures. Each reads numbered registers of a group and writes others."""

from collections.abc import Callable

import numpy as np

from ptx import instructions, memory_steps, warp_steps
from ptx.blocks import CARRY, EXIT, JUMPS, Block, Code, Jumps, Step
from ptx.faults import PtxFault, Unsupported
from ptx.group import Group
from ptx.operands import Operands
from ptx.syntax import WIDTHS, Instruction, Literal, Operand, Register, Symbol, Vector
from ptx.types import UNSIGNED, widened

Array = np.ndarray


def decode(block: Block, code: Code) -> None:
    """Fill in the steps of a block, its jump, and which registers it reads and writes."""
    body = code.function.body
    steps: list[Step] = []
    reads: dict[int, None] = {}
    writes: set[int] = set()
    after = code.block_at[block.end]
    for instruction in body[block.start : block.end]:
        operands = Operands(code, instruction, after)
        try:
            if instruction.opcode[0] in JUMPS:
                block.jump = jump(instruction, operands)
            else:
                steps.append(step(instruction, operands))
        except PtxFault as fault:
            raise fault.at(place_of(code, instruction)) from None
        except (KeyError, IndexError, ValueError, AssertionError) as wrong:
            fault = Unsupported(f"not understood: {type(wrong).__name__} {wrong}")
            raise fault.at(place_of(code, instruction)) from wrong
        reads.update(dict.fromkeys(number for number in operands.reads if number not in writes))
        writes |= operands.writes
    block.reads, block.writes, block.steps = tuple(reads), frozenset(writes), steps


def place_of(code: Code, instruction: Instruction) -> str:
    """Where an instruction stands, for faults."""
    return f"in {code.function.name}, line {instruction.line}: {instruction.text}"


# --- jumps ---------------------------------------------------------------------------------------------------------


def jump(instruction: Instruction, operands: Operands) -> Callable[[list[Array], Group], int | Jumps]:
    """A function that says where the threads go."""
    code, name = operands.code, instruction.opcode[0]
    if name == "brx":
        return _table_jump(instruction, operands)
    target = EXIT
    if name == "bra":
        (label,) = instruction.operands
        assert isinstance(label, Symbol), "a jump goes to a label"
        target = code.label(label.name)
    if instruction.guard is None:
        return lambda r, g: target
    after = operands.after
    guard = operands.read(Register(instruction.guard.name, instruction.guard.negated), "pred")

    def branch(r: list[Array], g: Group) -> int | Jumps:
        taken = guard(r, g)
        if taken.all():
            return target
        if not taken.any():
            return after
        return [(target, taken), (after, ~taken)]

    return branch


def _table_jump(instruction: Instruction, operands: Operands) -> Callable[[list[Array], Group], int | Jumps]:
    """brx.idx: through a table of labels."""
    which, table = instruction.operands
    assert isinstance(table, Symbol), "brx names a table"
    targets = [operands.code.label(name) for name in operands.code.function.tables[table.name]]
    read = operands.read(which, "u32")

    def branch(r: list[Array], g: Group) -> Jumps:
        chosen = read(r, g)
        if (chosen >= len(targets)).any():
            raise PtxFault("an index outside the table of targets")
        return [(targets[at], chosen == at) for at in np.unique(chosen)]

    return branch


# --- computations --------------------------------------------------------------------------------------------------


def step(instruction: Instruction, operands: Operands) -> Step:
    """The closure of an instruction that is no jump."""
    name = instruction.opcode[0]
    special = {"mov": move, "setp": set_predicate, "isspacep": memory_steps.is_space}.get(name)
    if special is not None:
        return special(instruction, operands)
    if name in _CARRYING or (len(instruction.opcode) > 1 and instruction.opcode[1] == "cc"):
        return carry(instruction, operands)
    found = instructions.computation(instruction.opcode)
    if found is not None:
        return compute(found, instruction, operands)
    made = memory_steps.step(instruction, operands) or warp_steps.step(instruction, operands)
    if made is None:
        raise Unsupported(f"unknown instruction {'.'.join(instruction.opcode)}")
    return made


def compute(found: instructions.Computation, instruction: Instruction, operands: Operands) -> Step:
    """A step of an instruction that only computes."""
    target, *sources = instruction.operands
    if instruction.opcode[0] in ("min", "max") and len(sources) == 3:
        found = instructions.serialise_blocks(found)
    if len(sources) != len(found.sources):
        raise Unsupported(f"{len(sources)} operands, not {len(found.sources)}")
    reads = [operands.read(source, kind) for source, kind in zip(sources, found.sources, strict=True)]
    apply = found.apply
    is_constant = not any(isinstance(source, Register) for source in sources)
    if isinstance(target, Vector):
        raise Unsupported("two results")
    number, dtype = operands.write(target)
    if number is None or is_constant:
        put = operands.writer(target)
        return lambda r, g: put(r, g, apply(*(read(r, g) for read in reads)))
    match reads:
        case [a]:
            return lambda r, g: r.__setitem__(number, widened(apply(a(r, g)), dtype))
        case [a, b]:
            return lambda r, g: r.__setitem__(number, widened(apply(a(r, g), b(r, g)), dtype))
        case [a, b, c]:
            return lambda r, g: r.__setitem__(number, widened(apply(a(r, g), b(r, g), c(r, g)), dtype))
    return lambda r, g: r.__setitem__(number, widened(apply(*(read(r, g) for read in reads)), dtype))


def set_predicate(instruction: Instruction, operands: Operands) -> Step:
    """setp, with its second result and a predicate to combine with."""
    opcode = instruction.opcode
    kind = opcode[-1]
    compare = instructions.comparison(opcode[1], kind[0] == "f")
    target, a, b, *more = instruction.operands
    x, y = operands.read(a, kind), operands.read(b, kind)
    if not isinstance(target, Vector) and not more:
        put = operands.writer(target)
        return lambda r, g: put(r, g, compare(x(r, g), y(r, g)))
    join = instructions.JOINS[opcode[2]] if more else None
    other = operands.read(more[0], "pred") if more else None
    targets = target.items if isinstance(target, Vector) else (target,)
    writers = [operands.writer(each) for each in targets]

    def steps(r: list[Array], g: Group) -> None:
        holds = compare(x(r, g), y(r, g))
        results = (holds, ~holds)
        if join is not None and other is not None:
            results = tuple(join(each, other(r, g)) for each in results)
        for write, result in zip(writers, results, strict=False):
            write(r, g, result)

    return steps


_CARRYING = ("addc", "subc", "madc")


def carry(instruction: Instruction, operands: Operands) -> Step:
    """add.cc, addc, sub.cc, subc, mad.cc, madc: the carry (or borrow) is kept beside the registers."""
    name, kind = instruction.opcode[0], instruction.opcode[-1]
    target, *sources = instruction.operands
    unsigned = f"u{8 * WIDTHS[kind]}"
    put = operands.writer(target)
    number = operands.code.numbers[CARRY]
    takes, is_difference = name.endswith("c"), name.startswith("sub")
    product = None
    if name.startswith("mad"):
        product = instructions.computation(("mul", *[m for m in instruction.opcode[1:-1] if m != "cc"], kind))
    kinds = (kind, kind, unsigned) if product else (unsigned, unsigned)
    reads = [operands.read(each, of) for each, of in zip(sources, kinds, strict=True)]
    if takes:
        operands.reads.add(number)
    if "cc" in instruction.opcode:
        operands.writes.add(number)

    def steps(r: list[Array], g: Group) -> None:
        values = [read(r, g) for read in reads]
        if product is not None:
            values = [product.apply(*values[:2]).view(UNSIGNED[WIDTHS[kind]]), values[2]]
        a, b = np.broadcast_arrays(*values)
        inward = r[number].astype(a.dtype) if takes else a.dtype.type(0)
        if is_difference:
            partial = a - b
            result, out = partial - inward, (a < b) | (partial < inward)
        else:
            partial = a + b
            result, out = partial + inward, (partial < a) | (partial + inward < partial)
        if "cc" in instruction.opcode:
            r[number] = np.broadcast_to(out, g.n).copy()
        put(r, g, result)

    return steps


# --- moves ---------------------------------------------------------------------------------------------------------


def move(instruction: Instruction, operands: Operands) -> Step:
    """mov: a copy, a constant, an address, packing or unpacking."""
    kind = instruction.opcode[-1]
    target, source = instruction.operands
    if isinstance(target, Vector):
        return _unpack(target, source, kind, operands)
    if isinstance(source, Vector):
        return _pack(target, source, kind, operands)
    put = operands.writer(target)
    match source:
        case Symbol(name):
            return lambda r, g: put(r, g, np.array([g.activation.address_of(name)], np.uint64))
        case Literal():
            value = operands.read(source, kind)
            return lambda r, g: put(r, g, value(r, g))
    own, other = operands.write(target)[0], operands.number(source)
    if own is not None and operands.code.dtypes[own] == operands.code.dtypes[other]:
        operands.reads.add(other)
        return lambda r, g: r.__setitem__(own, r[other])  # even of what is not defined
    read = operands.read(source, kind)
    return lambda r, g: put(r, g, read(r, g))


def _unpack(target: Vector, source: Operand, kind: str, operands: Operands) -> Step:
    width = WIDTHS[kind] // len(target.items)
    read = operands.read(source, f"b{8 * WIDTHS[kind]}")
    puts = [(at, operands.writer(each)) for at, each in enumerate(target.items)]
    part = UNSIGNED[width]

    def steps(r: list[Array], g: Group) -> None:
        whole = read(r, g)
        for at, put in puts:
            put(r, g, (whole >> whole.dtype.type(8 * width * at)).astype(part))

    return steps


def _pack(target: Operand, source: Vector, kind: str, operands: Operands) -> Step:
    width = WIDTHS[kind] // len(source.items)
    put = operands.writer(target)
    whole = UNSIGNED[WIDTHS[kind]]
    reads = [operands.read(each, f"b{8 * width}") for each in source.items]

    def steps(r: list[Array], g: Group) -> None:
        total = reads[0](r, g).astype(whole)
        for at, read in enumerate(reads[1:], 1):
            total = total | read(r, g).astype(whole) << whole.type(8 * width * at)
        put(r, g, total)

    return steps
