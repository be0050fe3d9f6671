"""Contraction of random sums of products: the same bits on the CPU as in the interpreter, an error within the bound of
the arithmetic as written, no more operations, nothing left to contract.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fusec import passes
from fusec.base.dtypes import FLOAT32, FLOAT64, INT32, DType
from fusec.ir.expr import Apply, Const, Expr, Pointer, apply, const, convert
from fusec.ir.interpret import interpret
from fusec.ir.loops import ArrayParam, Assign, Declare, Element, If, Load, Local, Program, Stmt, Store
from fusec.ir.verify import verify
from fusec.ir.walk import expressions, operands, statements
from fusec.passes.contract import contract
from tests.property.programs import runs
from tests.support.llvm_check import check
from tests.support.random_arguments import Arguments

QUICK = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
FEW = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))

INPUTS = ("x0", "x1", "x2", "x3")
OUTPUTS = ("z0", "z1", "z2")
ARITHMETIC = ["add", "add", "subtract", "subtract", "multiply", "multiply", "multiply", "negative"]


class Writer:
    """Draws statements whose values share operands; the newest values are the likeliest operands."""

    def __init__(self, random: Random, dtype: DType, ops: list[str]) -> None:
        self.random, self.dtype, self.ops = random, dtype, ops
        self.pool: list[Expr] = [Local(name, dtype) for name in INPUTS]
        self.pool += [const(number, dtype) for number in (2, 0.1, -3)]

    def operand(self) -> Expr:
        recent = self.pool[-5:]
        return self.random.choice(recent if self.random.random() < 0.6 else self.pool)

    def grow(self, count: int) -> Expr:
        for _ in range(count):
            op = self.random.choice(self.ops)
            arity = {"negative": 1, "fma": 3}.get(op, 2)
            self.pool.append(apply(op, *(self.operand() for _ in range(arity))))
        return self.pool[-1]

    def statements(self) -> list[Stmt]:
        """Locals that later values may read, one of them assigned in a branch."""
        body: list[Stmt] = []
        for number in range(self.random.randrange(3)):
            local = Local(f"t{number}", self.dtype)
            body.append(Declare(local.name, self.dtype, self.grow(4)))
            if self.random.random() < 0.4:
                condition = apply("less", self.operand(), self.operand())
                body.append(If(condition, (Assign(local.name, self.grow(3)),)))
            self.pool.append(local)
        return body


def program_of(seed: int, dtype: DType, ops: list[str], straight: bool = False) -> Program:
    """Inputs, locals, outputs; straight: one expression for each output and nothing else."""
    writer = Writer(Random(seed), dtype, ops)
    params = [ArrayParam(name, dtype) for name in INPUTS]
    params += [ArrayParam(name, dtype, written=True, read=False) for name in OUTPUTS]
    body: list[Stmt] = [Declare(name, dtype, Load(element(name, dtype), dtype)) for name in INPUTS]
    body += [] if straight else writer.statements()
    body += [Store(element(name, dtype), writer.grow(5)) for name in OUTPUTS]
    return Program("kernel", tuple(params), tuple(body))


def element(name: str, dtype: DType) -> Element:
    return Element(name, Pointer(dtype, "global"))


seeds = st.integers(0, 2**32 - 1)
dtypes = st.sampled_from([FLOAT32, FLOAT64])


def operations(program: Program) -> list[Apply]:
    """All that is computed, changes of sign aside."""
    bodies = [program.body, *(function.body for function in program.functions)]
    roots = [root for body in bodies for stmt in statements(body) for root in operands(stmt)]
    return [node for node in expressions(roots) if isinstance(node, Apply) and node.op != "negative"]


def test_most_drawn_programs_contract() -> None:
    drawn = [program_of(seed, FLOAT32, ARITHMETIC) for seed in range(100)]
    formed = [sum(node.op == "fma" for node in operations(contract(each))) for each in drawn]
    assert sum(count > 0 for count in formed) > 60
    assert sum(formed) > 120


@QUICK
@given(seeds, dtypes)
def test_contraction_costs_no_operation_and_leaves_nothing_to_contract(seed: int, dtype: DType) -> None:
    program = program_of(seed, dtype, [*ARITHMETIC, "divide", "fma"])
    contracted = contract(program)
    verify(contracted)
    assert len(operations(contracted)) <= len(operations(program))
    assert contract(contracted) is contracted


@QUICK
@given(seeds, dtypes)
def test_no_product_that_went_into_a_sum_is_computed_too(seed: int, dtype: DType) -> None:
    unsigned = [op for op in ARITHMETIC if op != "negative"]  # (-a)*b and a*b would be two products
    computed = operations(contract(program_of(seed, dtype, unsigned)))
    for node in computed:
        if node.op == "fma":
            first, second, _ = node.args
            if isinstance(first, Apply) and first.op == "negative":
                first = first.args[0]
            assert apply("multiply", first, second) not in computed


@QUICK
@given(seeds, dtypes)
def test_without_products_or_without_sums_a_program_stays_itself(seed: int, dtype: DType) -> None:
    for ops in (["add", "subtract", "divide", "negative"], ["multiply", "divide", "fma", "negative"]):
        program = program_of(seed, dtype, ops)
        assert contract(program) is program


@QUICK
@given(seeds)
def test_integers_stay_themselves(seed: int) -> None:
    program = program_of(seed, INT32, ARITHMETIC)
    assert contract(program) is program


@FEW
@given(seeds, dtypes)
def test_the_cpu_has_the_bits_of_the_interpreter(seed: int, dtype: DType) -> None:
    program = passes.run(program_of(seed, dtype, [*ARITHMETIC, "divide"]), passes.Facts("contract"), check=True)
    arrays, scalars = Arguments(program, (67,), seed).fresh()
    check(program, arrays, (67,), scalars, lanes=(1, 16), cuts=(30,))


@FEW
@given(runs())
def test_whole_programs_have_the_bits_of_the_interpreter(arguments: Arguments) -> None:
    program = passes.run(arguments.program, passes.Facts("contract"), check=True)
    arrays, scalars = arguments.fresh()
    if arguments.shape:
        check(program, arrays, arguments.shape, scalars, lanes=(16,))


@FEW
@given(runs())
def test_fast_programs_are_verified_and_run(arguments: Arguments) -> None:
    program = passes.run(arguments.program, passes.Facts("fast"), check=True)
    arrays, scalars = arguments.fresh()
    interpret(program, arrays, scalars, arguments.shape)


# --- the error -------------------------------------------------------------------------------------------------------


def exact(expr: Expr, inputs: dict[str, Fraction], absolute: bool) -> Fraction:
    """The value without rounding; absolute: of the expression in which nothing cancels."""
    match expr:
        case Local(name):
            return abs(inputs[name]) if absolute else inputs[name]
        case Const():
            number = Fraction(float(expr.value))
            return abs(number) if absolute else number
        case Apply(op, args):
            values = [exact(arg, inputs, absolute) for arg in args]
    match op:
        case "negative":
            return values[0] if absolute else -values[0]
        case "add":
            return values[0] + values[1]
        case "subtract":
            return values[0] + values[1] if absolute else values[0] - values[1]
        case "multiply":
            return values[0] * values[1]
        case _:
            raise AssertionError(f"{op} is not drawn")


def height(expr: Expr) -> int:
    """Roundings on the longest way from an input to the value, each factor of a product counted."""
    match expr:
        case Apply("multiply", (left, right)):
            return height(left) + height(right) + 1
        case Apply("negative", (operand,)):
            return height(operand)
        case Apply(_, args):
            return 1 + max(map(height, args))
        case _:
            return 0


@QUICK
@given(seeds)
def test_the_error_is_within_the_bound_of_the_arithmetic_as_written(seed: int) -> None:
    """|error| <= ((1 + u)^n - 1) * the value of the expression of magnitudes, for n roundings (Higham, chapter 3)."""
    program = program_of(seed, FLOAT64, ARITHMETIC, straight=True)
    numbers = np.random.default_rng(seed).uniform(-2, 2, len(INPUTS))
    arrays = {name: np.array([number]) for name, number in zip(INPUTS, numbers, strict=True)}
    arrays |= {name: np.zeros(1) for name in OUTPUTS}
    interpret(contract(program), arrays, {}, (1,))
    inputs = {name: Fraction(float(number)) for name, number in zip(INPUTS, numbers, strict=True)}
    for stmt in program.body[-len(OUTPUTS) :]:
        assert isinstance(stmt, Store)
        assert isinstance(stmt.pointer, Element)
        error = abs(Fraction(float(arrays[stmt.pointer.param][0])) - exact(stmt.value, inputs, absolute=False))
        unit = (1 + Fraction(1, 2**53)) ** height(stmt.value) - 1
        assert error <= unit * exact(stmt.value, inputs, absolute=True) + Fraction(1, 2**1074)


def test_a_product_of_converted_values_contracts() -> None:
    """As float16 arithmetic is written: widened, computed in float32, rounded at the store."""
    x = Local("x0", INT32)
    wide = convert(x, FLOAT32)
    body = (
        Declare("x0", INT32, Load(element("x0", INT32), INT32)),
        Store(element("z0", FLOAT32), apply("add", apply("multiply", wide, wide), wide)),
    )
    params = (ArrayParam("x0", INT32), ArrayParam("z0", FLOAT32, written=True, read=False))
    last = contract(Program("kernel", params, body)).body[-1]
    assert isinstance(last, Store)
    assert last.value is apply("fma", wide, wide, wide)
