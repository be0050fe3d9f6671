"""The interpreter runs every statement and expression form, lane by lane, with checked memory."""

import numpy as np
import pytest

from fusec.base.dtypes import BOOL, FLOAT32, FLOAT64, INT32, INT64, DType
from fusec.ir.expr import Apply, Expr, Pointer, Struct, apply, const, convert
from fusec.ir.interpret import call, interpret
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
from fusec.ir.memory import InterpreterError

INDEX = Query("", "index", None, INT64)


def element(name: str, dtype: DType = FLOAT64) -> Element:
    return Element(name, Pointer(dtype, "global"))


def at(name: str, *index: Expr, dtype: DType = FLOAT64) -> At:
    return At(name, index, Pointer(dtype, "global"))


def number(value: int) -> Expr:
    return const(value, INT64)


def program(*body: Stmt, params: tuple = (), functions: tuple[Function, ...] = ()) -> Program:
    return Program("k", params, body, functions)


def test_arrays_broadcast_and_scalars_are_converted() -> None:
    x, z = ArrayParam("x", FLOAT64), ArrayParam("z", FLOAT64, written=True, read=False)
    value = apply("multiply", Load(element("x"), FLOAT64), Local("a", FLOAT64))
    kernel = program(Store(element("z"), value), params=(ScalarParam("a", FLOAT64), x, z))
    out = np.zeros((2, 3))
    interpret(kernel, {"x": np.arange(3.0)[::-1], "z": out}, {"a": 2}, (2, 3))
    assert out.tolist() == [[4, 2, 0], [4, 2, 0]]


def test_blocks_of_lanes_cover_a_large_space() -> None:
    z = ArrayParam("z", INT64, written=True, read=False)
    out = np.zeros(200_001, np.int64)
    interpret(program(Store(element("z", INT64), INDEX), params=(z,)), {"z": out}, {}, out.shape)
    assert (out == np.arange(200_001)).all()


def test_loops_break_continue_and_early_return() -> None:
    """Sums the odd numbers below x, stops at 7, and leaves x = 3 untouched."""
    total, k, x = Local("total", INT64), Local("k", INT64), Local("x", INT64)
    loop = While(
        apply("less", k, x),
        (
            If(apply("equal", k, number(7)), (Break(),)),
            If(apply("equal", apply("modulo", k, number(2)), number(0)), (Continue(),)),
            Assign("total", apply("add", total, k)),
        ),
        (Assign("k", apply("add", k, number(1))),),
    )
    body = (
        Declare("x", INT64, Load(element("x", INT64), INT64)),
        If(apply("equal", x, number(3)), (Return(),)),
        Declare("total", INT64),
        Declare("k", INT64),
        loop,
        Store(element("z", INT64), total),
    )
    params = (ArrayParam("x", INT64), ArrayParam("z", INT64, written=True))
    out = np.full(6, -1)
    interpret(program(*body, params=params), {"x": np.array([0, 1, 2, 3, 6, 50]), "z": out}, {}, (6,))
    assert out.tolist() == [0, 0, 1, -1, 9, 9]


def test_do_while_runs_once_before_its_test() -> None:
    k = Local("k", INT64)
    loop = While(const(False, BOOL), (Assign("k", apply("add", k, number(1))),), test_first=False)
    out = np.zeros(2, np.int64)
    kernel = program(Declare("k", INT64), loop, Store(element("z", INT64), k), params=(ArrayParam("z", INT64),))
    interpret(kernel, {"z": out}, {}, (2,))
    assert out.tolist() == [1, 1]


def test_a_guarded_load_never_reads_out_of_bounds() -> None:
    inside = apply("less", INDEX, number(2))
    chosen = Apply("where", (inside, Load(at("x", INDEX), FLOAT64), const(-1.0, FLOAT64)), FLOAT64)
    params = (ArrayParam("x", FLOAT64, raw=True, ndim=1), ArrayParam("z", FLOAT64, written=True))
    out = np.zeros(4)
    interpret(program(Store(element("z"), chosen), params=params), {"x": np.array([5.0, 6.0]), "z": out}, {}, (4,))
    assert out.tolist() == [5, 6, -1, -1]


def test_a_raw_access_out_of_bounds_names_array_and_index() -> None:
    params = (ArrayParam("x", FLOAT64, raw=True, ndim=1), ArrayParam("z", FLOAT64, written=True))
    kernel = program(Store(element("z"), Load(at("x", INDEX), FLOAT64), line=7), params=params)
    with pytest.raises(InterpreterError, match="line 7: index 2 of raw array x is outside its 2 elements"):
        interpret(kernel, {"x": np.zeros(2), "z": np.zeros(4)}, {}, (4,))


def test_raw_arrays_honour_shape_and_strides() -> None:
    x = np.arange(24.0).reshape(4, 6)[::-1, ::2]
    params = (ArrayParam("x", FLOAT64, raw=True, ndim=2), ArrayParam("z", FLOAT64, written=True))
    flat, pair = np.zeros(12), np.zeros((4, 3))
    interpret(
        program(Store(element("z"), Load(at("x", INDEX), FLOAT64)), params=params), {"x": x, "z": flat}, {}, (12,)
    )
    index = tuple(Query("", "coordinate", number(axis), INT64) for axis in (0, 1))
    interpret(
        program(Store(element("z"), Load(at("x", *index), FLOAT64)), params=params), {"x": x, "z": pair}, {}, (4, 3)
    )
    assert (flat == x.ravel()).all()
    assert (pair == x).all()


def test_queries_of_arrays_and_space() -> None:
    queries = [
        Query("x", "size", None, INT64),
        Query("x", "ndim", None, INT64),
        Query("x", "shape", number(1), INT64),
        Query("x", "stride", number(0), INT64),
        Query("", "size", None, INT64),
        Query("", "ndim", None, INT64),
        Query("", "shape", number(0), INT64),
    ]
    body = [Store(at("z", number(n), dtype=INT64), query) for n, query in enumerate(queries)]
    params = (ArrayParam("x", FLOAT32, raw=True, ndim=2), ArrayParam("z", INT64, raw=True, written=True, ndim=1))
    x, out = np.zeros((4, 6), np.float32)[::-1, ::2], np.zeros(7, np.int64)
    interpret(program(*body, params=params), {"x": x, "z": out}, {}, (1, 5))
    assert out.tolist() == [12, 2, 3, -24, 5, 2, 1]


def test_atomics_return_old_values_in_lane_order() -> None:
    bins = ArrayParam("bins", INT32, raw=True, written=True, ndim=1)
    z = ArrayParam("z", INT32, written=True)
    target = at("bins", apply("modulo", INDEX, number(2)), dtype=INT32)
    body = (
        Declare("old", INT32),
        Atomic("add", target, (const(1, INT32),), "old"),
        Store(element("z", INT32), Local("old", INT32)),
    )
    counts, out = np.array([10, 20], np.int32), np.zeros(5, np.int32)
    interpret(program(*body, params=(bins, z)), {"bins": counts, "z": out}, {}, (5,))
    assert counts.tolist() == [13, 22]
    assert out.tolist() == [10, 20, 11, 21, 12]


@pytest.mark.parametrize(
    ("op", "operands", "expected"),
    [
        ("subtract", (3,), 4),
        ("minimum", (3,), 3),
        ("maximum", (9,), 9),
        ("and", (5,), 5),
        ("or", (8,), 15),
        ("xor", (1,), 6),
        ("exchange", (2,), 2),
        ("compare_exchange", (7, 1), 1),
        ("compare_exchange", (6, 1), 7),
    ],
)
def test_every_atomic_op(op, operands, expected) -> None:
    x = ArrayParam("x", INT32, raw=True, written=True, ndim=1)
    values = tuple(const(value, INT32) for value in operands)
    array = np.array([7], np.int32)
    interpret(program(Atomic(op, at("x", number(0), dtype=INT32), values), params=(x,)), {"x": array}, {}, (1,))
    assert array[0] == expected


def test_local_arrays_belong_to_their_lane_and_start_afresh() -> None:
    """Runs the declaration twice in a loop; the second time it must be zero again."""
    pointer = Pointer(INT64, "local")
    slot = Offset(LocalArray("t", pointer), INDEX, pointer)
    k = Local("k", INT64)
    loop = While(
        apply("less", k, number(2)),
        (
            DeclareArray("t", INT64, 3, (number(100),)),
            Store(slot, apply("add", Load(slot, INT64), apply("add", INDEX, k))),
            Assign("k", apply("add", k, number(1))),
        ),
    )
    body = (Declare("k", INT64), loop, Store(element("z", INT64), Load(slot, INT64)))
    out = np.zeros(3, np.int64)
    interpret(program(*body, params=(ArrayParam("z", INT64),)), {"z": out}, {}, (3,))
    assert out.tolist() == [101, 2, 3]


def test_functions_store_through_pointers_and_return_by_lane() -> None:
    pointer = Pointer(INT64, "local")
    x, out = Local("x", INT64), Local("out", pointer)
    halve = Function(
        "halve",
        (("x", INT64), ("out", pointer)),
        BOOL,
        (
            If(apply("equal", apply("modulo", x, number(2)), number(1)), (Return(const(False, BOOL)),)),
            Store(out, apply("quotient", x, number(2))),
            Return(const(True, BOOL)),
        ),
    )
    cell = LocalArray("cell", pointer)
    body = (
        DeclareArray("cell", INT64, 1, (number(-1),)),
        Declare("even", BOOL),
        CallStatement(Call("halve", (INDEX, cell), BOOL), "even"),
        Store(element("z", INT64), apply("where", Local("even", BOOL), Load(cell, INT64), number(-2))),
    )
    result = np.zeros(5, np.int64)
    interpret(program(*body, params=(ArrayParam("z", INT64),), functions=(halve,)), {"z": result}, {}, (5,))
    assert result.tolist() == [0, -2, 1, -2, 2]


def test_structs_are_values() -> None:
    kind = Struct("best", (("value", FLOAT32), ("at", INT64)))
    best = Local("best", kind)
    body = (
        Declare("best", kind, Make((const(1.5, FLOAT32), INDEX), kind)),
        Declare("copy", kind, best),
        If(apply("greater", INDEX, number(0)), (SetField("best", "value", const(2.5, FLOAT32)),)),
        Store(element("z"), convert(Field(best, "value", FLOAT32), FLOAT64)),
        Store(element("w"), convert(Field(Local("copy", kind), "value", FLOAT32), FLOAT64)),
    )
    z, w = np.zeros(2), np.zeros(2)
    interpret(program(*body, params=(ArrayParam("z", FLOAT64), ArrayParam("w", FLOAT64))), {"z": z, "w": w}, {}, (2,))
    assert z.tolist() == [1.5, 2.5]
    assert w.tolist() == [1.5, 1.5]


def test_a_function_runs_on_arrays() -> None:
    x = Local("x", FLOAT64)
    inner = Function("twice", (("x", FLOAT64),), FLOAT64, (Return(apply("add", x, x)),))
    y = Local("y", FLOAT64)
    small = apply("less", x, const(1.0, FLOAT64))
    body = (If(small, (Return(x),)), Return(apply("add", y, Call("twice", (x,), FLOAT64))))
    outer = Function("f", (("x", FLOAT64), ("y", FLOAT64)), FLOAT64, body)
    result = call(outer, [np.array([[0.5, 3.0]]), np.array([[1.0], [2.0]])], (inner,))
    assert result.tolist() == [[0.5, 7.0], [0.5, 8.0]]


def test_deeply_shared_guards_stay_cheap() -> None:
    """Each level uses the one below in both branches; without the memo this would take 2**60 steps."""
    value: Expr = Load(element("x"), FLOAT64)
    for _ in range(60):
        small = apply("less", value, const(0.5, FLOAT64))
        loaded = Load(at("t", number(0)), FLOAT64)
        value = apply("where", small, apply("add", value, loaded), apply("subtract", value, loaded))
    x, out = np.arange(8) / 8, np.zeros(8)
    params = (ArrayParam("x", FLOAT64), ArrayParam("t", FLOAT64, raw=True, ndim=1), ArrayParam("z", FLOAT64))
    interpret(program(Store(element("z"), value), params=params), {"x": x, "t": np.ones(1), "z": out}, {}, (8,))
    assert (out == x).all()
