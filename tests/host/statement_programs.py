"""Programs of control flow, local and raw arrays, structs, functions and atomics."""

import numpy as np
from programs import (
    INDEX,
    Case,
    at,
    element,
    inputs,
    local,
    number,
    output,
    raw,
)

from fusec.base.dtypes import BOOL, FLOAT32, INT32, INT64, DType
from fusec.ir.expr import Apply, Expr, Pointer, Struct, apply, const, convert
from fusec.ir.loops import (
    ArrayParam,
    Assign,
    Atomic,
    Break,
    Call,
    CallStatement,
    Continue,
    Declare,
    DeclareArray,
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
        _wide_division_case(),
        *wrapping_cases(),
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
        apply("less", j, x),
        (If(_is("equal", z, 3), (Continue(),)), _plus("z", y)),
        (_plus("j", const(2, INT32)),),
        False,
    )
    plain_do = While(
        _is("greater", j, 0), (_plus("z", j), Assign("j", apply("subtract", j, const(3, INT32)))), (), False
    )
    down = (
        Declare("j", INT32, const(20, INT32)),
        While(_is("greater_equal", j, 0), (_plus("z", apply("multiply", j, x)),), (_sub("j", 1),)),
    )
    nested = count_to("j", const(4, INT32), count_to("k", j, (_plus("z", apply("multiply", j, k)),)))
    after = count_to("j", y, (_plus("z", x),))
    forever = While(
        const(True, BOOL), (_plus("j", const(1, INT32)), If(_is("greater", j, 9), (Break(),)), _plus("z", j))
    )
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
        Store(
            Offset(moved, number(1), pointer), apply("add", Load(Offset(moved, number(1), pointer), INT32), local("x"))
        ),
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
    halves = count_to(
        "j", const(3, INT32), (If(_is("greater", local("v"), 10), (Return(local("j")),)), _plus("v", local("v")))
    )
    steps = Function("exp", (("v", INT32),), INT32, (*halves, Return(const(9, INT32))))
    body = (
        Declare("pair", pair),
        SetField("pair", "first", local("x")),
        Assign("pair", Call("swap", (Local("pair", pair),), pair)),
        DeclareArray("cell", INT32, 2, (local("y"),)),
        Declare("half", INT32),
        CallStatement(Call("bump", (LocalArray("cell", pointer), local("x")), INT32), "half"),
        CallStatement(Call("bump", (LocalArray("cell", pointer), const(1, INT32)), INT32)),
        Assign(
            "z",
            apply("add", Field(Local("pair", pair), "kernel_second", INT32), Load(LocalArray("cell", pointer), INT32)),
        ),
        _plus("z", apply("add", Call("exp", (local("x"),), INT32), local("half"))),
    )
    return _integers("functions and structs", body, (swap, bump, steps))


def _conditional_store_case() -> Case:
    """The output keeps its former content where nothing is stored."""
    params, reads = inputs(x=FLOAT32)
    body = (
        *reads,
        If(apply("less", Local("x", FLOAT32), const(0, FLOAT32)), (Store(element("z", FLOAT32), Local("x", FLOAT32)),)),
    )
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
    for name, array in {
        "dense": dense,
        "transposed": dense.T,
        "sliced": dense[::2, ::-1],
        "deep": deep,
        "deep view": deep.T[1:],
    }.items():
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
        program = Program(
            "gather", (raw("A", INT32, array.ndim), raw("B", INT32, 1, True), raw("C", INT64, 1, True)), body
        )
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
            weight = apply(
                "multiply", Query("", "coordinate", number(axis), INT64), Query("", "shape", number(axis), INT64)
            )
            total = apply("add", total, weight)
        turning = Query("", "coordinate", apply("modulo", INDEX, number(ndim)), INT64)
        total = apply("add", total, apply("add", turning, Query("", "size", None, INT64)))
        total = apply("add", total, Query("", "ndim", None, INT64))
        program = Program("position", (output("z", INT64),), (Store(element("z", INT64), total),))
        for wide in (False, True):
            arrays = {"z": np.zeros(shape, np.int64)}
            cases.append(Case(f"coordinates {ndim}{' wide' * wide}", program, arrays, shape, wide=wide))
    return [*cases, _only_a_coordinate_case()]


def _only_a_coordinate_case() -> Case:
    """A coordinate without the index, where a thread takes several neighbours."""
    params, reads = inputs(x=FLOAT32)
    later = apply("greater", Query("", "coordinate", number(0), INT64), Local("k", INT64))
    chosen = apply("where", later, Local("x", FLOAT32), const(0, FLOAT32))
    body = (*reads, Store(element("z", FLOAT32), chosen))
    program = Program("later", (ScalarParam("k", INT64), *params, output("z", FLOAT32)), body)
    arrays = {"x": np.arange(1, 39, dtype=np.float32), "z": np.zeros(38, np.float32)}
    return Case("coordinate in groups", program, arrays, (38,), {"k": 17})


def wrapping_cases() -> list[Case]:
    """Loops whose counters overflow, or nearly: what is known of them must stop at the ends of int32."""
    x, y, j, z = local("x"), local("y"), local("j"), local("z")
    top = const((1 << 31) - 1, INT32)
    start = Declare("j", INT32, apply("subtract", top, apply("bitwise_and", x, const(7, INT32))))

    def loop(condition: Expr, distance: int, *body: Stmt, test_first: bool = True) -> While:
        return While(condition, body, (_plus("j", const(distance, INT32)),), test_first)

    count = _plus("z", const(1, INT32))
    leave = If(_is("greater", z, 20), (Break(),))
    skip = If(_is("equal", apply("modulo", j, const(3, INT32)), 1), (Continue(),))
    zero = Declare("j", INT32)
    twenty = Declare("j", INT32, const(20, INT32))
    return [
        _integers("wraps to negative", (start, loop(_is("greater", j, 0), 1, count), _plus("z", j))),
        _integers("up to the last", (start, loop(apply("less_equal", j, top), 1, count, leave), _plus("z", j))),
        _integers("just below the last", (start, loop(apply("less", j, top), 1, count), _plus("z", j))),
        _integers("until equal", (zero, loop(_is("not_equal", j, 12), 3, count), _plus("z", j))),
        _integers("past what it equals", (zero, loop(_is("not_equal", j, 10), 3, count, leave), _plus("z", j))),
        _integers("down by threes", (twenty, loop(_is("greater_equal", j, 0), -3, _plus("z", j)), _plus("z", j))),
        _integers("do with continue", (zero, loop(_is("less", j, 9), 2, skip, count, test_first=False), _plus("z", j))),
        _integers("two ways out", (zero, loop(apply("less", j, y), 1, count, leave), Assign("z", apply("add", j, z)))),
        _integers(
            "changed in the body",
            (
                zero,
                loop(apply("less", j, x), 1, If(_is("equal", y, 5), (_plus("j", top),)), count, leave),
                _plus("z", j),
            ),
        ),
    ]


def _wide_division_case() -> Case:
    """A body that divides 64-bit integers and updates a raw array: one that ptxas would unroll until it spills."""
    params, reads = inputs(x=FLOAT32, n=INT64, m=INT64)
    place, n, m = Local("place", INT64), Local("n", INT64), Local("m", INT64)
    inside = apply("logical_and", apply("less_equal", apply("negative", n), place), apply("less", place, n))
    picked = Load(at("A", FLOAT32, apply("modulo", INDEX, m)), FLOAT32)
    body = (
        *reads,
        Declare("place", INT64, convert(Local("x", FLOAT32), INT64)),
        If(
            inside,
            (
                If(apply("less", place, number(0)), (Assign("place", apply("add", place, n)),)),
                Store(at("B", FLOAT32, place), picked),
            ),
            (Store(at("failed", BOOL, number(0)), const(True, BOOL)),),
        ),
    )
    outputs = (raw("B", FLOAT32, 1, True), raw("failed", BOOL, 1, True))
    program = Program("put", (*params, raw("A", FLOAT32, 1), *outputs), body)
    arrays = {
        "x": np.array([0, 2, -1, 7, 1], np.float32), "n": np.full(5, 5), "m": np.full(5, 3),
        "A": np.arange(3, dtype=np.float32), "B": np.zeros(5, np.float32), "failed": np.zeros(1, bool),
    }  # fmt: skip
    return Case("wide division", program, arrays, (5,))


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
