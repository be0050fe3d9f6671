"""Programs that apply every op, convert every dtype and spell every literal."""

import numpy as np
from programs import (
    Case,
    hard_values,
    inputs,
    results,
    spread,
    with_outputs,
)

from fusec.base.dtypes import (
    ALL,
    BOOL,
    COMPLEX,
    COMPLEX64,
    COMPUTE_FLOATS,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    INTEGERS,
    UINT32,
    UINT64,
    DType,
)
from fusec.base.ops import TABLE
from fusec.ir.expr import Expr, Lookup, apply, const, convert
from fusec.ir.loops import (
    Local,
    Program,
    ScalarParam,
)


def op_cases() -> list[Case]:
    """Every primitive op on every dtype it accepts, narrow floats aside."""
    cases = []
    for dtype in (BOOL, *INTEGERS, *COMPUTE_FLOATS):
        dtypes = {"x": dtype, "y": dtype, "w": dtype, "c": BOOL}
        params, reads = inputs(**dtypes)
        x, y, w, c = (Local(name, kind) for name, kind in dtypes.items())
        values: dict[str, Expr] = {}
        for op in TABLE.values():
            if not op.primitive or dtype.kind not in op.accepts or op.name in ("convert", "bitcast", "complex"):
                continue
            operands = (c, x, y) if op.name == "where" else (x, y, w)[: op.arity]
            values[f"z_{op.name}"] = apply(op.name, *operands)
        program = results(f"ops_{dtype}", params, reads, values)
        arrays = with_outputs(program, spread(**dtypes))
        cases.append(Case(f"ops on {dtype}", program, arrays, arrays["x"].shape))
    return cases


def constant_cases() -> list[Case]:
    """Integer ops beside constants, and chains that must wrap: where the printer chooses between spellings."""
    cases = []
    for dtype in INTEGERS:
        params, reads = inputs(x=dtype, y=dtype)
        x, y = Local("x", dtype), Local("y", dtype)
        values: dict[str, Expr] = {}
        for value in (
            1,
            3,
            7,
            (1 << (dtype.bits - 1)) - 1,
            *((-1, -3, -(1 << (dtype.bits - 1))) if dtype.kind == "signed" else (200,)),
        ):
            for op in ("add", "subtract", "multiply", "quotient", "modulo"):
                values[f"{op}_{value}".replace("-", "m")] = apply(op, x, const(value, dtype))
            values[f"from_{value}".replace("-", "m")] = apply("subtract", const(value, dtype), x)
        groups = [dict(list(values.items())[start : start + 20]) for start in range(0, len(values), 20)]
        for count in (0, 1, dtype.bits - 1):
            groups[-1][f"left_{count}"] = apply("left_shift", x, const(count, dtype))
            groups[-1][f"right_{count}"] = apply("right_shift", x, const(count, dtype))
        masked = apply("bitwise_and", y, const(dtype.bits - 1, dtype))
        low = apply("bitwise_and", x, const(15, dtype))
        chain = apply("add", apply("multiply", x, apply("subtract", y, const(5, dtype))), apply("multiply", y, y))
        groups.append(
            {
                "left_masked": apply("left_shift", x, masked),
                "right_masked": apply("right_shift", x, masked),
                "chain": chain,
                "chain_negated": apply("negative", apply("left_shift", chain, const(2, dtype))),
                "chain_compared": apply("less", chain, apply("negative", x)),
                "fitting": apply("add", apply("multiply", low, const(3, dtype)), const(4, dtype)),
                "fitting_divided": apply("quotient", low, const(4, dtype)),
                "fitting_remainder": apply("modulo", low, const(3, dtype)),
                "shared": apply("multiply", apply("add", x, y), apply("add", x, y)),
                "minus_minus": apply("subtract", x, apply("negative", apply("negative", y))),
            }
        )
        for part, chosen in enumerate(groups):
            program = results(f"constants_{dtype}_{part}", params, reads, chosen)
            arrays = with_outputs(program, spread(x=dtype, y=dtype))
            cases.append(Case(f"constants on {dtype} {part}", program, arrays, arrays["x"].shape))
    return cases


def tree_cases() -> list[Case]:
    """Random trees of operators: precedence, associativity, and casts between integers that C would imply or not."""
    cases = []
    for dtype in (INT16, INT32, UINT32, INT64, UINT64, FLOAT32, FLOAT64):
        trees = Trees(dtype)
        params, reads = inputs(x=dtype, y=dtype, w=trees.narrow)
        values = {f"z{at}": trees.value(1 + at % 5) for at in range(24)}
        program = results(f"trees_{dtype}", params, reads, values)
        arrays = with_outputs(program, spread(x=dtype, y=dtype, w=trees.narrow))
        cases.append(Case(f"trees of {dtype}", program, arrays, arrays["x"].shape))
    return cases


class Trees:
    """Draws expressions of one dtype over x, y and a narrower w."""

    TESTS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    JOINS = ("logical_and", "logical_or", "bitwise_and", "bitwise_or", "bitwise_xor", "equal")
    WHOLE = ("quotient", "modulo", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype
        self.rng = np.random.default_rng(dtype.bits + len(dtype.kind))
        self.narrow = INT16 if dtype.is_integer and dtype.bits > 16 else dtype
        self.ops = ("add", "subtract", "multiply", *(("divide",) if dtype.is_float else self.WHOLE))

    def value(self, depth: int) -> Expr:
        match int(self.rng.integers(0, 8)) if depth else 7:
            case 0:
                return apply("negative", self.value(depth - 1))
            case 1:
                return apply("where", self.test(depth - 1), self.value(depth - 1), self.value(depth - 1))
            case 2 if not self.dtype.is_float:
                return apply("bitwise_invert", self.value(depth - 1))
            case 7:
                return self.leaf()
            case _:
                return apply(str(self.rng.choice(self.ops)), self.value(depth - 1), self.value(depth - 1))

    def leaf(self) -> Expr:
        match int(self.rng.integers(0, 5)):
            case 0 | 1:
                return Local("x", self.dtype)
            case 2:
                return Local("y", self.dtype)
            case 3:
                return convert(Local("w", self.narrow), self.dtype)
            case _:
                return const(int(self.rng.integers(0, 9)), self.dtype)

    def test(self, depth: int) -> Expr:
        match int(self.rng.integers(0, 6)) if depth else 5:
            case 0:
                return apply("logical_not", self.test(depth - 1))
            case 1 | 2:
                return apply(str(self.rng.choice(self.JOINS)), self.test(depth - 1), self.test(depth - 1))
            case _:
                inner = max(depth - 1, 0)
                return apply(str(self.rng.choice(self.TESTS)), self.value(inner), self.value(inner))


def conversion_cases() -> list[Case]:
    """From every dtype to every other, and all bit casts."""
    cases = []
    for source in ALL:
        params, reads = inputs(x=source)
        x = Local("x", source)
        values: dict[str, Expr] = {f"to_{t}": convert(x, t) for t in ALL if t != source}
        if not source.is_complex:
            values |= {
                f"as_{t}": apply("bitcast", x, target=t) for t in ALL if t.bits == source.bits and not t.is_complex
            }
        program = results(f"conversions_{source}", params, reads, values)
        arrays = with_outputs(program, {"x": hard_values(source, 3000, 5)})
        cases.append(Case(f"conversions from {source}", program, arrays, arrays["x"].shape))
    return cases


def constants_of(dtype: DType) -> Case:
    """Literals of every kind of value."""
    values = hard_values(dtype, 60, 11) if dtype != BOOL else np.array([True, False])
    chosen = {f"z{at}": const(value, dtype) for at, value in enumerate(values[:28])}
    program = results(f"literals_{dtype}", [], [], {**chosen})
    arrays = {param.name: np.zeros(5, dtype.numpy) for param in program.arrays}
    return Case(f"literals of {dtype}", program, arrays, (5,))


def table_cases() -> list[Case]:
    """Entries of constant tables by every kind of index."""
    cases = []
    for dtype in COMPUTE_FLOATS:
        table = tuple(const(number, dtype) for number in (0.0, -0.1, 1.5e-30, 7.0, -3.4e38, 1 / 3, 2.0**-126, 11.0))
        indices = {f"i_{index}": index for index in (INT32, UINT64, UINT32, INT64)}
        params, reads = inputs(**indices)
        values: dict[str, Expr] = {
            f"z_{name}_{count}": Lookup(table[:count], Local(name, index), dtype)
            for name, index in indices.items()
            for count in (2, 8)
        }
        program = results(f"tables_{dtype}", params, reads, values)
        arrays = with_outputs(program, spread(**indices))
        cases.append(Case(f"tables of {dtype}", program, arrays, arrays["i_int32"].shape))
    return cases


def complex_cases() -> list[Case]:
    """What is left of complex numbers after expansion."""
    cases = []
    for dtype in COMPLEX:
        part = FLOAT32 if dtype == COMPLEX64 else FLOAT64
        dtypes = {"x": dtype, "y": dtype, "c": BOOL}
        params, reads = inputs(**dtypes)
        x, y, c = (Local(name, kind) for name, kind in dtypes.items())
        swapped = apply("complex", apply("imag", x), apply("real", y))
        values: dict[str, Expr] = {
            "re": apply("real", x),
            "im": apply("imag", y),
            "swapped": swapped,
            "equal": apply("equal", x, y),
            "differs": apply("not_equal", x, y),
            "chosen": apply("where", c, x, swapped),
            "one": const(1 - 2j, dtype),
            "from_scalar": apply("complex", apply("real", Local("s", dtype)), apply("imag", Local("s", dtype))),
            "nested": apply("real", apply("where", c, Local("s", dtype), y)),
        }
        program = results(f"complex_{part}", params, reads, values)
        program = Program(program.name, (*program.params, ScalarParam("s", dtype)), program.body)
        arrays = with_outputs(program, spread(**dtypes))
        cases.append(Case(f"complex of {part}", program, arrays, arrays["x"].shape, {"s": 2.5 - 0.5j}))
    return cases
