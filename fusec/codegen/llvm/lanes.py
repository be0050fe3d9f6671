"""The number of elements of one vector step."""

from __future__ import annotations

from fusec.base.dtypes import DType, compute_type, real_type
from fusec.base.kernel_abi import Layout, Step
from fusec.codegen.llvm.cost import Costs, is_loaded, loaded_locals
from fusec.ir.expr import Apply, type_of
from fusec.ir.loops import At, Atomic, DeclareArray, Program, While
from fusec.ir.walk import bodies_of, expressions, roots_of, statements

_MOST_LANES = 128  # masks and positions of more lanes cost more than they save
_ATOMIC_LANES = 16  # updates run lane by lane anyway
_STRIDED_LANES = 32  # small elements with a stride that no shuffle is for go one by one: more only make more text
_GATHERED_LANES = 16  # of small elements at indices that were loaded: more addresses do not fit the registers
_LIGHT, _MEDIUM = 24, 400  # operations for an element up to which 4 and 2 registers are in flight at once
# Long chains of operations leave even a processor that looks far ahead without work: with 32 registers to hold them,
# four vectors of pow, or of tanh, erf or a GELU in float64, take 5 to 13 % less time than two. Above this, spills take
# it back.
_LIGHT_WIDE = 120
# So do bodies up to here, which are there once: that is no more to compile than two copies of half as many vectors.
_LIGHT_ONCE = 200
_STACK = 1 << 14  # bytes that the local arrays of all lanes may take


def choose_lanes(program: Program, layout: Layout, vector_bits: int) -> int:
    """A power of two: as many lanes as keep the registers of the hottest type busy without running out of them."""
    if vector_bits == 0:
        return 1
    costs = Costs(program.functions, usual=True)
    stmts = [stmt for body in bodies_of(program) for stmt in statements(body)]
    cost = costs.of_body(program.body)
    bits = hot_bits(program)
    is_wide = bits >= 32 and vector_bits == 512
    registers = 4 if cost <= (_LIGHT_WIDE if is_wide else _LIGHT) else (2 if cost <= _MEDIUM else 1)
    is_once = is_wide and layout.has_long_rows and not layout.streaming  # short rows waste more of wide vectors
    if is_once and Costs(program.functions).of_body(program.body) <= _LIGHT_ONCE:
        registers = 4
    if any(isinstance(stmt, While) for stmt in stmts):
        registers = 2
    lanes = min(registers * vector_bits // bits, _MOST_LANES)
    if any(isinstance(stmt, Atomic) for stmt in stmts):
        lanes = min(lanes, _ATOMIC_LANES)
    if has_small_strided_operand(program, layout):
        lanes = min(lanes, _STRIDED_LANES)
    if has_small_gather(program):
        lanes = min(lanes, _GATHERED_LANES)
    local = sum(stmt.length * stmt.element.nbytes for stmt in stmts if isinstance(stmt, DeclareArray))
    while lanes > 1 and lanes * local > _STACK:
        lanes //= 2
    return lanes


def has_small_strided_operand(program: Program, layout: Layout) -> bool:
    """Whether an operand of less than 32 bits, which no gather instruction reads, has a stride along the rows."""
    steps = dict(layout.steps)
    return not layout.strips and any(
        param.dtype.bits < 32 and steps[param.name][-1] is Step.ANY for param in program.arrays if param.name in steps
    )


def has_small_gather(program: Program) -> bool:
    """Whether a program reads elements of less than 32 bits at indices that it computes from others."""
    bodies = bodies_of(program)
    loaded = loaded_locals(bodies)
    return any(
        isinstance(each, At) and each.type.element.bits < 32 and any(is_loaded(index, loaded) for index in each.index)
        for each in expressions(roots_of(*bodies))
    )


def hot_bits(program: Program) -> int:
    """Width of the widest type that is computed with; 64-bit integers count only if an array holds 64-bit elements."""
    stored = max((real_type(param.dtype).bits for param in program.arrays), default=32)
    widest = 8
    for expr in expressions(roots_of(*bodies_of(program))):
        kind = type_of(expr)
        if isinstance(expr, Apply) and isinstance(kind, DType):
            part = compute_type(real_type(kind))
            if part.kind != "bool" and (part.is_float or part.bits < 64 or stored == 64):
                widest = max(widest, part.bits)
    return max(widest, min(stored, 64) if widest == 8 else widest)
