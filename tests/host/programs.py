"""Programs that together say everything the code generators must know, with arguments that are hard on them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fusec.dtypes import (
    ALL,
    BOOL,
    COMPLEX,
    COMPLEX64,
    COMPUTE_FLOATS,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    INTEGERS,
    STORAGE_FLOATS,
    UINT8,
    UINT32,
    UINT64,
    DType,
)
from fusec.ir.expr import Apply, Const, Expr, Pointer, Struct, apply, const, convert
from fusec.ir.loops import (
    ArrayParam,
    Assign,
    At,
    Atomic,
    Break,
    Call,
    CallStatement,
    Continue,
    Declare,
    DeclareArray,
    Element,
    Field,
    Function,
    If,
    Load,
    Local,
    LocalArray,
    Make,
    Offset,
    Program,
    Query,
    Return,
    ScalarParam,
    SetField,
    Stmt,
    Store,
    While,
)
from fusec.ops import TABLE
from fusec.source import SourceFile


@dataclass(frozen=True)
class Case:
    """A program and the arguments of one call."""

    name: str
    program: Program
    arrays: Mapping[str, np.ndarray]
    shape: tuple[int, ...]
    scalars: Mapping[str, object] = field(default_factory=dict)
    wide: bool = False
    aligned: int = 16

    def copies(self) -> dict[str, np.ndarray]:
        """The arrays, safe to write to; strides are kept."""
        copied = {}
        for name, array in self.arrays.items():
            low, high = np.lib.array_utils.byte_bounds(array) if array.size else (0, 0)
            block = np.zeros(max(high - low, 1), np.uint8)
            offset = array.__array_interface__["data"][0] - low if array.size else 0
            copy = np.ndarray(array.shape, array.dtype, block, offset, array.strides)
            copy[...] = array
            copied[name] = copy
        return copied


def hard_values(dtype: DType, count: int, seed: int) -> np.ndarray:
    """Special values first, then random bits; for floats also numbers near 1."""
    rng = np.random.default_rng(seed)
    numpy = dtype.numpy
    if dtype == BOOL:
        return rng.integers(0, 2, count).astype(bool)
    if dtype.is_complex:
        part = FLOAT32 if dtype == COMPLEX64 else FLOAT64
        pairs = np.stack([hard_values(part, count, seed), hard_values(part, count, seed + 1)[::-1]], axis=-1)
        return np.ascontiguousarray(pairs).view(numpy)[:, 0]
    values = np.frombuffer(rng.bytes(count * numpy.itemsize), numpy).copy()
    with np.errstate(all="ignore"):
        if dtype.is_integer:
            info = np.iinfo(numpy)
            special = [0, 1, 2, 3, info.max, info.min, info.max - 1, info.min + 1, info.bits, info.bits - 1, 7]
            special += [-1, -2, -info.bits] if info.min else [info.max // 2, info.max // 2 + 1, 100]
            small = rng.integers(-(info.min < 0) * 40, 40, count).astype(numpy)
            values = np.where(rng.integers(0, 2, count) == 0, values, small)
        else:
            special = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-45, 3e38, -3e-39, 2.0**31]
            special += [-(2.0**31), 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 127.5, -128.9, 255.5, 65504.0, 65519.9, 65520.0]
            special += [448.0, 464.0, 465.0, 57344.0, 61440.0, 2.0**-9, 2.0**-10, 2.0**-24, 2.0**-25, 1.5 * 2.0**-25]
            near = rng.standard_normal(count).astype(numpy)
            values = np.where(rng.integers(0, 2, count) == 0, values, near)
        values[: len(special)] = np.array(special).astype(numpy)
    return values


# --- building blocks -------------------------------------------------------------------------------------------


def element(name: str, dtype: DType) -> Element:
    return Element(name, Pointer(dtype, "global"))


def inputs(**dtypes: DType) -> tuple[list[ArrayParam], list[Stmt]]:
    """Input arrays with the declarations that read their elements."""
    params = [ArrayParam(name, dtype) for name, dtype in dtypes.items()]
    reads: list[Stmt] = [Declare(name, dtype, Load(element(name, dtype), dtype)) for name, dtype in dtypes.items()]
    return params, reads


def output(name: str, dtype: DType) -> ArrayParam:
    return ArrayParam(name, dtype, written=True, read=False)


def raw(name: str, dtype: DType, ndim: int, written: bool = False) -> ArrayParam:
    return ArrayParam(name, dtype, raw=True, written=written, ndim=ndim)


def at(name: str, dtype: DType, *index: Expr) -> At:
    return At(name, index, Pointer(dtype, "global"))


def number(value: int) -> Const:
    return const(value, INT64)


def local(name: str, dtype: DType = INT32) -> Local:
    return Local(name, dtype)


INDEX = Query("", "index", None, INT64)


def results(name: str, params: list[ArrayParam], reads: list[Stmt], values: dict[str, Expr]) -> Program:
    """A program that stores every value in an output of its own."""
    outputs, body = list(params), list(reads)
    for z, value in values.items():
        dtype = value.type  # type: ignore[attr-defined]
        outputs.append(output(z, dtype))
        body.append(Store(element(z, dtype), value))
    return Program(name, tuple(outputs), tuple(body))


def spread(count: int = 400, **dtypes: DType) -> dict[str, np.ndarray]:
    """Hard values for every input, shifted against each other so that special values meet."""
    arrays = {}
    for seed, (name, dtype) in enumerate(dtypes.items()):
        values = hard_values(dtype, 40, seed) if dtype != BOOL else np.array([True, False] * 20)
        many = np.concatenate([np.repeat(values, 40) if seed == 0 else np.tile(np.roll(values, seed - 1), 40)])
        arrays[name] = np.concatenate([many, hard_values(dtype, count, seed + 7)])
    return arrays


def with_outputs(program: Program, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Add an output filled with a pattern for every array that has none yet."""
    size = next(iter(arrays.values())).shape
    for param in program.arrays:
        if param.name not in arrays:
            arrays[param.name] = np.full(size, 1, param.dtype.numpy)
    return arrays


# --- cases -----------------------------------------------------------------------------------------------------


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
        for value in (1, 3, 7, (1 << (dtype.bits - 1)) - 1, *((-1, -3, -(1 << (dtype.bits - 1))) if dtype.kind == "signed" else (200,))):
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


def conversion_cases() -> list[Case]:
    """From every dtype to every other, and all bit casts."""
    cases = []
    for source in ALL:
        params, reads = inputs(x=source)
        x = Local("x", source)
        values: dict[str, Expr] = {f"to_{t}": convert(x, t) for t in ALL if t != source}
        if not source.is_complex:
            values |= {f"as_{t}": apply("bitcast", x, target=t) for t in ALL if t.bits == source.bits and not t.is_complex}
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


SAXPY_TEXT = SourceFile("kernel 'saxpy', operation", "float d = a * x;\nz = d + y; \\\n")


def saxpy(dtype: DType = FLOAT32) -> Program:
    params, reads = inputs(x=dtype, y=dtype)
    product = apply("multiply", Local("a", dtype), Local("x", dtype))
    return Program(
        "saxpy",
        (ScalarParam("a", dtype), *params, output("z", dtype)),
        (
            *reads,
            Declare("z", dtype),
            Declare("d", dtype, product, line=1),
            Assign("z", apply("add", Local("d", dtype), Local("y", dtype)), line=2),
            Store(element("z", dtype), Local("z", dtype)),
        ),
        source=SAXPY_TEXT,
    )


def layout_cases() -> list[Case]:
    """One program over every kind of memory layout."""
    rng = np.random.default_rng(3)

    def floats(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    cases = []
    for size in (0, 1, 3, 4, 5, 383, 384, 385, 1000):
        arrays = {"x": floats(size), "y": floats(size), "z": floats(size)}
        cases.append(Case(f"saxpy on {size}", saxpy(), arrays, (size,), {"a": 3}))
    shapes = {
        "strided": {"x": floats(60)[::2], "y": floats(90)[::-3], "z": floats(30)},
        "repeated": {"x": floats(1), "y": floats(30), "z": floats(30)},
        "strided output": {"x": floats(30), "y": floats(30), "z": floats(60)[::2]},
        "transposed": {"x": floats(20, 30).T, "y": floats(20), "z": floats(30, 20)},
        "broadcast rows": {"x": floats(1, 20), "y": floats(30, 1), "z": floats(30, 20)},
        "three axes": {"x": floats(4, 5, 6)[:, ::-1], "y": floats(5, 1), "z": floats(6, 5, 4).T},
        "no axes": {"x": floats(), "y": floats(), "z": floats()},
        "no elements": {"x": floats(3, 0), "y": floats(0), "z": floats(3, 0)},
    }
    for name, arrays in shapes.items():
        for wide in (False, True):
            shape = arrays["z"].shape
            cases.append(Case(f"saxpy {name}{' wide' * wide}", saxpy(), arrays, shape, {"a": 3}, wide))
    arrays = {"x": floats(100), "y": floats(100), "z": floats(100)}
    cases.append(Case("saxpy misaligned", saxpy(), arrays, (100,), {"a": 3}, aligned=4))
    cases.append(Case("saxpy wide", saxpy(), arrays, (100,), {"a": 3}, wide=True))
    for dtype in (FLOAT64, FLOAT16, UINT8, COMPLEX64):
        params, reads = inputs(x=dtype)
        body = (*reads, Store(element("z", dtype), Local("x", dtype)))
        copy = Program("copy", (*params, output("z", dtype)), body)
        for size in (1, 15, 16, 17, 1001):
            values = hard_values(dtype, 1001, 2)[:size]
            cases.append(Case(f"copy of {size} {dtype}", copy, {"x": values, "z": np.zeros_like(values)}, (size,)))
    return cases


def count_to(name: str, limit: Expr, body: tuple[Stmt, ...], dtype: DType = INT32) -> tuple[Stmt, Stmt]:
    """``for (dtype name = 0; name < limit; ++name) body``."""
    counter = Local(name, dtype)
    step = Assign(name, apply("add", counter, const(1, dtype)))
    return Declare(name, dtype, const(0, dtype)), While(apply("less", counter, limit), body, (step,))


def statement_cases() -> list[Case]:
    """Control flow, local arrays, structs, functions, raw arrays and atomics."""
    return [
        *_loop_cases(),
        _early_return_case(),
        _local_array_case(),
        _function_case(),
        _conditional_store_case(),
        _read_output_case(),
        _inplace_scalar_case(),
        *_raw_cases(),
        *_coordinate_cases(),
    ]


def _integers(name: str, body: tuple[Stmt, ...], functions: tuple[Function, ...] = ()) -> Case:
    """A case over int32 x and y that stores the local z."""
    params, reads = inputs(x=INT32, y=INT32)
    whole = (*reads, Declare("z", INT32), *body, Store(element("z", INT32), local("z")))
    program = Program(name.replace(" ", "_"), (*params, output("z", INT32)), whole, functions)
    rng = np.random.default_rng(8)
    arrays = {name: rng.integers(-30, 30, 300).astype(np.int32) for name in "xyz"}
    return Case(name, program, arrays, (300,))


def _plus(name: str, value: Expr) -> Assign:
    return Assign(name, apply("add", local(name), value))


def _is(op: str, left: Expr, right: int) -> Apply:
    return apply(op, left, const(right, INT32))


def _loop_cases() -> list[Case]:
    x, y, z, j = local("x"), local("y"), local("z"), local("j")
    skip = If(_is("equal", apply("modulo", j, const(3, INT32)), 1), (Continue(),))
    stop = If(_is("greater", z, 50), (Break(),))
    counted = count_to("j", y, (skip, stop, _plus("z", x)))
    k = local("k")
    two_steps = While(
        apply("less", j, x),
        (If(_is("equal", j, 2), (Continue(),), (_plus("z", k),)),),
        (_plus("j", const(1, INT32)), _plus("k", j)),
    )
    do = While(
        apply("less", j, x), (If(_is("equal", z, 3), (Continue(),)), _plus("z", y)), (_plus("j", const(2, INT32)),), False
    )
    plain_do = While(_is("greater", j, 0), (_plus("z", j), Assign("j", apply("subtract", j, const(3, INT32)))), (), False)
    down = (
        Declare("j", INT32, const(20, INT32)),
        While(_is("greater_equal", j, 0), (_plus("z", apply("multiply", j, x)),), (_sub("j", 1),)),
    )
    nested = count_to("j", const(4, INT32), count_to("k", j, (_plus("z", apply("multiply", j, k)),)))
    after = count_to("j", y, (_plus("z", x),))
    forever = While(const(True, BOOL), (_plus("j", const(1, INT32)), If(_is("greater", j, 9), (Break(),)), _plus("z", j)))
    start = Declare("j", INT32)
    return [
        _integers("counted loop", counted),
        _integers("two steps", (start, Declare("k", INT32), two_steps)),
        _integers("do with step", (start, do)),
        _integers("plain do", (Declare("j", INT32, x), plain_do)),
        _integers("count down", down),
        _integers("nested loops", nested),
        _integers("counter used after", (*after, _plus("z", j))),
        _integers("endless loop", (start, forever)),
        _integers("else chain", (_chain(),)),
        _integers("empty then", (If(_is("less", x, 0), (), (Assign("z", y),)),)),
    ]


def _sub(name: str, value: int) -> Assign:
    return Assign(name, apply("subtract", local(name), const(value, INT32)))


def _chain() -> If:
    x, y = local("x"), local("y")
    last = If(_is("less", y, 5), (Assign("z", y),), (Assign("z", apply("negative", x)),))
    return If(_is("less", x, -5), (Assign("z", x),), (If(_is("less", x, 5), (Assign("z", const(7, INT32)),), (last,)),))


def _early_return_case() -> Case:
    x, y = local("x"), local("y")
    leave = (Store(element("z", INT32), const(-1, INT32)), Return())
    inner = count_to("j", y, (_plus("z", x), If(_is("greater", local("z"), 40), leave)))
    return _integers("early return", (If(_is("equal", x, 3), leave), *inner))


def _local_array_case() -> Case:
    pointer = Pointer(INT32, "local")
    buffer = LocalArray("buffer", pointer)

    def slot(index: Expr) -> Offset:
        return Offset(buffer, convert(index, INT64), pointer)

    j = local("j")
    fill = count_to("j", const(8, INT32), (Store(slot(j), apply("add", apply("multiply", j, local("x")), local("y"))),))
    moved = Local("p", pointer)
    body = (
        DeclareArray("buffer", INT32, 8, (local("x"), const(5, INT32))),
        Declare("first", INT32, Load(buffer, INT32)),
        *fill,
        Declare("p", pointer, slot(const(2, INT32))),
        Assign("p", Offset(moved, number(1), pointer)),
        Atomic("add", moved, (local("y"),), "first"),
        Atomic("maximum", moved, (const(9, INT32),)),
        Store(Offset(moved, number(1), pointer), apply("add", Load(Offset(moved, number(1), pointer), INT32), local("x"))),
        Assign("z", apply("add", apply("add", Load(moved, INT32), local("first")), Load(slot(const(4, INT32)), INT32))),
    )
    return _integers("local array", body)


def _function_case() -> Case:
    pointer = Pointer(INT32, "local")
    pair = Struct("Pair", (("first", INT32), ("kernel_second", INT32)))
    value = Local("p", pair)
    swap = Function(
        "swap",
        (("p", pair),),
        pair,
        (Return(Make((Field(value, "kernel_second", INT32), Field(value, "first", INT32)), pair)),),
    )
    bump = Function(
        "bump",
        (("at", pointer), ("by", INT32)),
        INT32,
        (
            Declare("old", INT32, Load(Local("at", pointer), INT32)),
            Store(Local("at", pointer), apply("add", local("old"), local("by"))),
            Return(local("old")),
        ),
    )
    halves = count_to("j", const(3, INT32), (If(_is("greater", local("v"), 10), (Return(local("j")),)), _plus("v", local("v"))))
    steps = Function("exp", (("v", INT32),), INT32, (*halves, Return(const(9, INT32))))
    body = (
        Declare("pair", pair),
        SetField("pair", "first", local("x")),
        Assign("pair", Call("swap", (Local("pair", pair),), pair)),
        DeclareArray("cell", INT32, 2, (local("y"),)),
        Declare("half", INT32),
        CallStatement(Call("bump", (LocalArray("cell", pointer), local("x")), INT32), "half"),
        CallStatement(Call("bump", (LocalArray("cell", pointer), const(1, INT32)), INT32)),
        Assign("z", apply("add", Field(Local("pair", pair), "kernel_second", INT32), Load(LocalArray("cell", pointer), INT32))),
        _plus("z", apply("add", Call("exp", (local("x"),), INT32), local("half"))),
    )
    return _integers("functions and structs", body, (swap, bump, steps))


def _conditional_store_case() -> Case:
    """The output keeps its former content where nothing is stored."""
    params, reads = inputs(x=FLOAT32)
    body = (*reads, If(apply("less", Local("x", FLOAT32), const(0, FLOAT32)), (Store(element("z", FLOAT32), Local("x", FLOAT32)),)))
    program = Program("keep", (*params, ArrayParam("z", FLOAT32, written=True)), body)
    rng = np.random.default_rng(1)
    arrays = {name: rng.standard_normal(77).astype(np.float32) for name in "xz"}
    return Case("conditional store", program, arrays, (77,))


def _read_output_case() -> Case:
    params, reads = inputs(x=FLOAT32, z=FLOAT32)
    total = apply("add", Local("z", FLOAT32), Local("x", FLOAT32))
    body = (*reads, Assign("z", total), Store(element("z", FLOAT32), Local("z", FLOAT32)))
    program = Program("accumulate", (params[0], ArrayParam("z", FLOAT32, written=True)), body)
    rng = np.random.default_rng(1)
    arrays = {name: rng.standard_normal(77).astype(np.float32) for name in "xz"}
    return Case("output read first", program, arrays, (77,))


def _inplace_scalar_case() -> Case:
    """A scalar parameter that the body changes starts anew for every element."""
    params, reads = inputs(x=INT32)
    body = (*reads, _plus("a", local("x")), Store(element("z", INT32), local("a")))
    program = Program("scalar", (*params, ScalarParam("a", INT32), output("z", INT32)), body)
    values = np.arange(50, dtype=np.int32)
    return Case("scalar changed", program, {"x": values, "z": np.zeros_like(values)}, (50,), {"a": 5})


def _raw_cases() -> list[Case]:
    """Raw arrays by flat position and by several indices, contiguous or not."""
    rng = np.random.default_rng(4)
    dense = rng.integers(0, 100, (6, 7)).astype(np.int32)
    deep = rng.integers(0, 100, (3, 4, 5)).astype(np.int32)
    cases = []
    for name, array in {"dense": dense, "transposed": dense.T, "sliced": dense[::2, ::-1], "deep": deep, "deep view": deep.T[1:]}.items():
        last = array.ndim - 1
        wanted: list[Expr] = [Query("A", "shape", number(axis), INT64) for axis in range(array.ndim)]
        rest: Expr = INDEX
        index: list[Expr] = []
        for axis in range(last, 0, -1):
            index.insert(0, apply("modulo", rest, wanted[axis]))
            rest = apply("quotient", rest, wanted[axis])
        index.insert(0, rest)
        backwards = apply("subtract", apply("subtract", Query("A", "size", None, INT64), number(1)), INDEX)
        picked = Query("A", "stride", apply("modulo", INDEX, number(array.ndim)), INT64)
        body = (
            Declare("value", INT32, Load(at("A", INT32, *index), INT32)),
            Declare("mirror", INT32, Load(at("A", INT32, backwards), INT32)),
            Declare("facts", INT64, apply("add", picked, Query("A", "ndim", None, INT64))),
            Store(at("B", INT32, INDEX), apply("subtract", local("value"), local("mirror"))),
            Store(at("C", INT64, INDEX), Local("facts", INT64)),
        )
        program = Program("gather", (raw("A", INT32, array.ndim), raw("B", INT32, 1, True), raw("C", INT64, 1, True)), body)
        arrays = {"A": array, "B": np.zeros(array.size, np.int32), "C": np.zeros(2 * array.size, np.int64)[::2]}
        cases.append(Case(f"raw {name}", program, arrays, (array.size,)))
    guard = apply("less", apply("add", INDEX, number(1)), Query("A", "size", None, INT64))
    beyond = Load(at("A", INT32, apply("add", INDEX, number(1))), INT32)
    guarded = apply("where", guard, apply("add", beyond, beyond), const(0, INT32))
    both = apply("logical_and", guard, apply("less", beyond, const(50, INT32)))
    body = (Store(element("z", INT32), guarded), Store(element("w", BOOL), both))
    program = Program("neighbour", (raw("A", INT32, 1), output("z", INT32), output("w", BOOL)), body)
    line = dense.reshape(-1)
    arrays = {"A": line, "z": np.zeros_like(line), "w": np.zeros(line.shape, bool)}
    cases.append(Case("guarded load", program, arrays, line.shape))
    return cases


def _coordinate_cases() -> list[Case]:
    """The position in the iteration space."""
    cases = []
    for shape in ((12,), (3, 4), (2, 3, 4)):
        ndim = len(shape)
        total: Expr = apply("multiply", INDEX, number(1000))
        for axis in range(ndim):
            weight = apply("multiply", Query("", "coordinate", number(axis), INT64), Query("", "shape", number(axis), INT64))
            total = apply("add", total, weight)
        turning = Query("", "coordinate", apply("modulo", INDEX, number(ndim)), INT64)
        total = apply("add", total, apply("add", turning, Query("", "size", None, INT64)))
        total = apply("add", total, Query("", "ndim", None, INT64))
        program = Program("position", (output("z", INT64),), (Store(element("z", INT64), total),))
        for wide in (False, True):
            arrays = {"z": np.zeros(shape, np.int64)}
            cases.append(Case(f"coordinates {ndim}{' wide' * wide}", program, arrays, shape, wide=wide))
    return cases


ATOMIC_OPS = ("add", "subtract", "minimum", "maximum", "and", "or", "xor", "exchange", "compare_exchange")


def atomic_case(op: str, dtype: DType, wanted: bool) -> Case | None:
    """Every element updates one of a few bins, in turn; the last bins are never reached."""
    if dtype.is_float and op in ("and", "or", "xor"):
        return None
    if dtype == BOOL and op in ("add", "subtract"):
        return None
    params, reads = inputs(x=dtype)
    bin_of = apply("modulo", INDEX, number(5))
    x = Local("x", dtype)
    operands = (const(1, dtype), x) if op == "compare_exchange" else (x,)
    body: list[Stmt] = [*reads, Declare("old", dtype)] if wanted else list(reads)
    body.append(Atomic(op, at("bins", dtype, bin_of), operands, "old" if wanted else ""))
    outputs = [raw("bins", dtype, 1, written=True)]
    if wanted:
        body.append(Store(element("z", dtype), Local("old", dtype)))
        outputs.append(output("z", dtype))
    program = Program(f"atomic_{op}", (*params, *outputs), tuple(body))
    values = np.random.default_rng(9).integers(0, 5, 40).astype(dtype.numpy)
    if dtype.is_float:
        values[7] = np.nan
    arrays = {"x": values, "bins": np.ones(8, dtype.numpy)}
    if wanted:
        arrays["z"] = np.zeros_like(values)
    return Case(f"atomic {op} on {dtype}{' with the old value' * wanted}", program, arrays, values.shape)


def all_cases() -> list[Case]:
    """Everything but atomics."""
    literals = [constants_of(dtype) for dtype in ALL]
    return [
        *op_cases(),
        *constant_cases(),
        *conversion_cases(),
        *literals,
        *complex_cases(),
        *layout_cases(),
        *statement_cases(),
    ]


def uses_double(case: Case) -> bool:
    """The program needs float64, which Metal lacks."""
    from fusec.codegen.c_family_facts import parts, types_of

    wide = {dtype for found, _, _ in types_of(case.program) for dtype in parts(found)}
    return any(dtype == FLOAT64 or dtype.name == "complex128" for dtype in wide)


NARROW = STORAGE_FLOATS
UNSIGNED_64 = UINT64
SHORTS = (INT16, UINT32)
