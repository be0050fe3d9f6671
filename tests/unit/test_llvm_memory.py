"""Every layout of operands, raw arrays however they are indexed, atomics: the interpreter's bits from any partition."""

from __future__ import annotations

import numpy as np
import pytest

import fusec
from fusec.base.dtypes import (
    ALL,
    BOOL,
    COMPLEX64,
    COMPLEX128,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    UINT8,
    DType,
)
from fusec.base.kernel_abi import Layout, Step
from fusec.codegen.llvm import LlvmOptions, generate
from fusec.ir.expr import Expr, Pointer, apply, const, convert
from fusec.ir.loops import (
    ArrayParam,
    Assign,
    Atomic,
    Declare,
    Element,
    If,
    Load,
    Local,
    Offset,
    Program,
    Query,
    ScalarParam,
    Store,
)
from fusec.runtime.cpu import machine
from tests.support.llvm_check import POSITION, at, check, element, elementwise, int64
from tests.support.llvm_runner import fresh_symbol, layout_of, run

RNG = np.random.default_rng(7)


def filled(shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    return RNG.integers(0, 100, shape).astype(dtype.numpy)


def copy_program(dtype: DType) -> Program:
    return elementwise({"x": dtype}, {"z": dtype}, lambda x, **_: [Assign("z", x)])


def add_program(dtype: DType = FLOAT32) -> Program:
    return elementwise({"x": dtype, "y": dtype}, {"z": dtype}, lambda x, y, **_: [Assign("z", apply("subtract", x, y))])


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("source", ["unit", "strided", "backwards", "broadcast"])
def test_elements_of_every_dtype_arrive(dtype: DType, source: str) -> None:
    count = 75
    array = {
        "unit": filled((count,), dtype),
        "strided": filled((3 * count,), dtype)[::3],
        "backwards": filled((count,), dtype)[::-1],
        "broadcast": filled((1,), dtype),
    }[source]
    target = np.zeros(2 * count, dtype.numpy)[::2] if source == "strided" else np.zeros(count, dtype.numpy)
    check(copy_program(dtype), {"x": array, "z": target}, (count,), lanes=(1, 16), cuts=(1, 40))


@pytest.mark.parametrize("shape", [(1,), (63,), (64,), (65,), (129,), (7, 9), (3, 70), (5, 1, 6), (2, 3, 4, 5)])
@pytest.mark.parametrize("transposed", ["x", "y", "z", ""])
def test_every_range_of_every_shape_is_computed(shape: tuple[int, ...], transposed: str) -> None:
    arrays = {name: filled(shape[::-1], FLOAT32).T if name == transposed else filled(shape, FLOAT32) for name in "xyz"}
    size = int(np.prod(shape))
    check(add_program(), arrays, shape, lanes=(1, 4, 64), cuts=sorted({size // 3, size // 2, size * 9 // 10}))


def test_broadcast_operands_repeat() -> None:
    for x_shape, y_shape in [((1, 50), (7, 1)), ((7, 50), (50,)), ((1, 1), (7, 50)), ((), (7, 1))]:
        arrays = {"x": filled(x_shape, FLOAT32), "y": filled(y_shape, FLOAT32), "z": filled((7, 50), FLOAT32)}
        check(add_program(), arrays, (7, 50), lanes=(1, 16, 64), cuts=(13, 200))


def test_targets_without_masks_run_the_rest_one_by_one() -> None:
    arrays = {name: filled((3, 77), FLOAT32) for name in "xyz"}
    check(add_program(), arrays, (3, 77), lanes=(None, 8), vector_bits=(256, 128), cuts=(100,))


def test_nothing_outside_the_range_is_written() -> None:
    program = add_program()
    arrays = {name: filled((200,), FLOAT32) for name in "xyz"}
    before = arrays["z"].copy()
    kernel = generate(program, layout_of(program, arrays, (200,)), LlvmOptions(symbol=fresh_symbol()))
    window = {name: array[50:141] for name, array in arrays.items()}
    run(kernel, program, window, {}, (91,))
    assert (arrays["z"][50:141] == (arrays["x"] - arrays["y"])[50:141]).all()
    assert (arrays["z"][:50] == before[:50]).all()
    assert (arrays["z"][141:] == before[141:]).all()


def test_an_empty_range_touches_nothing() -> None:
    program = add_program()
    arrays = {name: filled((4, 5), FLOAT32) for name in "xyz"}
    kernel = generate(program, layout_of(program, arrays, (4, 5)), LlvmOptions(symbol=fresh_symbol()))
    before = arrays["z"].copy()
    run(kernel, program, arrays, {}, (0, 5))
    assert (arrays["z"] == before).all()


@pytest.mark.parametrize("offset", [0, 4, 12, 60])
@pytest.mark.parametrize("dtype", [UINT8, FLOAT32, COMPLEX128], ids=str)
def test_streaming_stores_write_the_same(offset: int, dtype: DType) -> None:
    memory = np.zeros(5000 * dtype.nbytes, np.uint8)
    start = -memory.ctypes.data % 64 + offset // dtype.nbytes * dtype.nbytes
    target = memory[start : start + 333 * dtype.nbytes].view(dtype.numpy)
    program = add_program(dtype)
    arrays = {"x": filled((333,), dtype), "y": filled((333,), dtype), "z": target}
    kernel = generate(program, layout_of(program, arrays, (333,), streaming=True), LlvmOptions(symbol=fresh_symbol()))
    assert "nontemporal" in kernel.source
    run(kernel, program, arrays, {}, (333,), cuts=(3, 100))
    assert (target == (arrays["x"] - arrays["y"])).all()
    assert not memory[:start].any()


def test_scalars_of_every_dtype_arrive() -> None:
    params = [ScalarParam(f"s_{t.name}", t) for t in ALL]
    params += [ArrayParam(f"z_{t.name}", t, written=True, read=False) for t in ALL]
    body = tuple(Store(element(f"z_{t.name}", t), Local(f"s_{t.name}", t)) for t in ALL)
    arrays = {f"z_{t.name}": np.zeros(33, t.numpy) for t in ALL}
    scalars = {f"s_{t.name}": (1.5 - 2.25j if t.is_complex else 1) for t in ALL}
    check(Program("k", tuple(params), body), arrays, (33,), scalars, lanes=(1, 16))


# --- raw arrays ------------------------------------------------------------------------------------------------


def raw_program(index: tuple[Expr, ...], ndim: int, dtype: DType = FLOAT32) -> Program:
    params = (ArrayParam("A", dtype, raw=True, ndim=ndim), ArrayParam("z", dtype, written=True, read=False))
    return Program("k", params, (Store(element("z", dtype), Load(at("A", dtype, *index), dtype)),))


def coordinate(axis: int) -> Query:
    return Query("", "coordinate", int64(axis), INT64)


@pytest.mark.parametrize("dtype", [UINT8, FLOAT16, FLOAT32, COMPLEX64], ids=str)
@pytest.mark.parametrize("step", [1, -1, 3])
def test_a_flat_index_reads_any_layout(dtype: DType, step: int) -> None:
    flat = filled((90 * abs(step),), dtype)[::step]
    backwards = apply("subtract", int64(89), POSITION)
    for index in (POSITION, backwards, apply("bitwise_xor", POSITION, int64(1)), int64(17)):
        check(raw_program((index,), 1, dtype), {"A": flat, "z": np.zeros(90, dtype.numpy)}, (90,), lanes=(1, 16))


@pytest.mark.parametrize("order", ["C", "F", "sliced"])
def test_a_flat_index_follows_the_shape(order: str) -> None:
    array = {"C": filled((6, 5, 3), FLOAT32), "F": filled((3, 5, 6), FLOAT32).T, "sliced": filled((6, 5, 9), FLOAT32)}[
        order
    ]
    array = array[:, ::-1, ::3] if order == "sliced" else array
    check(raw_program((POSITION,), 3), {"A": array, "z": np.zeros(90, "f4")}, (90,), lanes=(1, 16), cuts=(11,))


@pytest.mark.parametrize("order", ["C", "F"])
def test_coordinates_address_a_raw_array(order: str) -> None:
    array = np.asarray(filled((7, 40), FLOAT32), order=order)
    program = raw_program((coordinate(0), apply("modulo", apply("add", coordinate(1), int64(1)), int64(40))), 2)
    check(program, {"A": array, "z": np.zeros((7, 40), "f4")}, (7, 40), lanes=(1, 16), cuts=(55,))


def test_neighbours_in_a_contiguous_array_are_vectors() -> None:
    program = raw_program((apply("add", convert(convert(POSITION, INT32), INT64), int64(2)),), 1)
    arrays = {"A": filled((102,), FLOAT32), "z": np.zeros(100, "f4")}
    check(program, arrays, (100,))
    assert "gather" not in generate(program, layout_of(program, arrays, (100,)), LlvmOptions(symbol="k")).source


def test_an_index_of_a_narrow_type_with_a_runtime_offset_is_a_vector() -> None:
    index = apply("subtract", convert(POSITION, INT32), Local("w", INT32))
    guarded = apply(
        "where",
        apply("greater_equal", index, const(0, INT32)),
        Load(at("A", FLOAT32, convert(index, INT64)), FLOAT32),
        const(-1, FLOAT32),
    )
    program = Program(
        "k",
        (
            ScalarParam("w", INT32),
            ArrayParam("A", FLOAT32, raw=True, ndim=1),
            ArrayParam("z", FLOAT32, written=True, read=False),
        ),
        (Store(element("z", FLOAT32), guarded),),
    )
    arrays = {"A": filled((100,), FLOAT32), "z": np.zeros(100, "f4")}
    check(program, arrays, (100,), {"w": 13}, cuts=(20,))
    assert "gather" not in generate(program, layout_of(program, arrays, (100,)), LlvmOptions(symbol="k")).source


def test_queries_tell_shapes_and_strides() -> None:
    facts = [Query("A", "size", None, INT64), Query("A", "ndim", None, INT64), Query("", "size", None, INT64)]
    facts += [Query("A", what, int64(axis), INT64) for what in ("shape", "stride") for axis in (0, 1)]
    facts += [Query("", "shape", int64(1), INT64), Query("A", "shape", apply("modulo", POSITION, int64(2)), INT64)]
    total: Expr = int64(0)
    for fact in facts:
        total = apply("add", apply("multiply", total, int64(31)), fact)
    params = (ArrayParam("A", FLOAT32, raw=True, ndim=2), ArrayParam("z", INT64, written=True, read=False))
    program = Program("k", params, (Store(element("z", INT64), total),))
    check(program, {"A": filled((6, 8), FLOAT32)[::2, ::-1], "z": np.zeros((5, 9), "i8")}, (5, 9), lanes=(1, 16))


def test_pointers_move_and_are_followed() -> None:
    pointer = Pointer(FLOAT32, "global")
    p = Local("p", pointer)
    program = Program(
        "k",
        (ArrayParam("A", FLOAT32, raw=True, ndim=1), ArrayParam("z", FLOAT32, written=True, read=False)),
        (
            Declare("p", pointer, at("A", FLOAT32, POSITION)),
            If(
                apply("equal", apply("bitwise_and", POSITION, int64(1)), int64(0)),
                (Assign("p", Offset(p, int64(3), pointer)),),
                (Assign("p", Offset(p, int64(1), pointer)),),
            ),
            Store(element("z", FLOAT32), Load(Offset(p, int64(1), pointer), FLOAT32)),
        ),
    )
    check(program, {"A": filled((80,), FLOAT32), "z": np.zeros(70, "f4")}, (70,))


def test_scattered_stores_reach_their_elements() -> None:
    params = (ArrayParam("x", INT32), ArrayParam("C", FLOAT64, raw=True, written=True, ndim=1))
    target = at("C", FLOAT64, convert(Local("x", INT32), INT64))
    store = Store(target, convert(POSITION, FLOAT64))
    program = Program(
        "k",
        params,
        (
            Declare("x", INT32, Load(element("x", INT32), INT32)),
            If(apply("greater", Local("x", INT32), const(20, INT32)), (store,)),
        ),
    )
    check(program, {"x": RNG.permutation(100).astype("i4"), "C": np.zeros(100)}, (100,))


def test_of_lanes_that_share_an_element_the_last_wins() -> None:
    params = (ArrayParam("x", INT32), ArrayParam("C", INT32, raw=True, written=True, ndim=1))
    program = Program(
        "k", params, (Store(at("C", INT32, int64(1)), Load(Element("x", Pointer(INT32, "global")), INT32)),)
    )
    check(program, {"x": filled((77,), INT32), "C": np.zeros(3, "i4")}, (77,))


# --- atomics ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [INT32, INT64, UINT8, FLOAT32, FLOAT64, FLOAT16], ids=str)
@pytest.mark.parametrize("op", ["add", "subtract", "minimum", "maximum", "exchange", "compare_exchange"])
@pytest.mark.sampled(5)
def test_atomics_update_lane_by_lane(op: str, dtype: DType) -> None:
    x, old = Local("x", INT32), Local("old", dtype)
    index = convert(apply("bitwise_and", x, const(7, INT32)), INT64)
    values = (convert(x, dtype), convert(POSITION, dtype)) if op == "compare_exchange" else (convert(x, dtype),)
    program = Program(
        "k",
        (
            ArrayParam("x", INT32),
            ArrayParam("C", dtype, raw=True, written=True, ndim=1),
            ArrayParam("z", dtype, written=True, read=False),
        ),
        (
            Declare("x", INT32, Load(element("x", INT32), INT32)),
            Declare("old", dtype),
            If(
                apply("not_equal", apply("bitwise_and", x, const(3, INT32)), const(1, INT32)),
                (Atomic(op, at("C", dtype, index), values, "old"),),
            ),
            Store(element("z", dtype), old),
        ),
    )
    arrays = {"x": filled((70,), INT32), "C": filled((8,), dtype), "z": np.zeros(70, dtype.numpy)}
    check(program, arrays, (70,), lanes=(1, 4, 64), cuts=(33,))


@pytest.mark.parametrize("op", ["add", "subtract", "minimum", "maximum", "and", "or", "xor"])
@pytest.mark.parametrize("dtype", [INT32, UINT8, INT64], ids=str)
def test_updates_of_one_element_may_be_joined(op: str, dtype: DType) -> None:
    x = Local("x", dtype)
    update = Atomic(op, at("C", dtype, int64(2)), (x,))
    program = Program(
        "k",
        (ArrayParam("x", dtype), ArrayParam("C", dtype, raw=True, written=True, ndim=1)),
        (
            Declare("x", dtype, Load(element("x", dtype), dtype)),
            If(apply("greater", x, const(10, dtype)), (update,)),
            If(apply("greater", x, const(120, dtype)), (update,)),
        ),
    )
    arrays = {"x": filled((70,), dtype), "C": np.full(4, 77, dtype.numpy)}
    check(program, arrays, (70,), lanes=(1, 16, 64))
    kernel = generate(program, layout_of(program, arrays, (70,)), LlvmOptions(symbol="k", lanes=16))
    assert "vector.reduce" in kernel.source


# --- what the runtime is told ----------------------------------------------------------------------------------


def test_only_slots_that_are_used_are_asked_for() -> None:
    program = add_program()
    inner = Layout(1, (("x", (Step.UNIT,)), ("y", (Step.ZERO,)), ("z", (Step.UNIT,))))
    assert [slot.kind for slot in generate(program, inner, LlvmOptions(symbol="k")).slots] == ["pointer"] * 3
    steps = (("x", (Step.ANY, Step.UNIT)), ("y", (Step.ZERO, Step.UNIT)), ("z", (Step.ANY, Step.UNIT)))
    kinds = sorted(
        (slot.kind, slot.param, slot.axis)
        for slot in generate(program, Layout(2, steps), LlvmOptions(symbol="k")).slots
    )
    assert kinds == [
        ("extent", "", 1),
        ("pointer", "x", 0),
        ("pointer", "y", 0),
        ("pointer", "z", 0),
        ("stride", "x", 0),
        ("stride", "z", 0),
    ]


def test_the_text_depends_on_nothing_but_its_arguments() -> None:
    program, layout = copy_program(BOOL), Layout(1, (("x", (Step.UNIT,)), ("z", (Step.UNIT,))))
    assert generate(program, layout) == generate(program, layout)


# --- tiles -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64, INT32, COMPLEX64, UINT8, INT16, COMPLEX128], ids=str)
@pytest.mark.parametrize("shape", [(64, 64), (70, 83), (33, 200), (3, 40), (150, 10), (3, 40, 37)])
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.sampled(5)
def test_transposed_operands_arrive_through_tiles(dtype: DType, shape: tuple[int, ...], streaming: bool) -> None:
    order = (*range(len(shape) - 2), -1, -2)
    arrays = {"x": filled((*shape[:-2], shape[-1], shape[-2]), dtype).transpose(order), "y": filled(shape, dtype)}
    arrays["z"] = np.zeros(shape, dtype.numpy)
    size = int(np.prod(shape))
    program = add_program(dtype)
    assert ".rows" in generate(program, layout_of(program, arrays, shape), LlvmOptions(symbol="k")).source
    check(program, arrays, shape, lanes=(None,), cuts=(size // 3, size // 2 + 1), streaming=streaming)


def test_tiles_of_results_in_place_compute_each_element_once() -> None:
    x, y = filled((70, 83), FLOAT32), filled((83, 70), FLOAT32)
    expected = x + y.T
    fusec.evaluate("x + y", {"x": x, "y": y.T}, out=x)
    assert (x == expected).all()


@pytest.mark.parametrize("dtype", [FLOAT32, UINT8], ids=str)
def test_operands_of_two_sizes_share_tiles(dtype: DType) -> None:
    program = elementwise(
        {"x": dtype, "y": FLOAT64},
        {"z": FLOAT64},
        lambda x, y, **_: [Assign("z", apply("add", apply("add", convert(x, FLOAT64), y), convert(POSITION, FLOAT64)))],
    )
    arrays = {"x": filled((90, 70), dtype).T, "y": filled((90, 70), FLOAT64).T, "z": np.zeros((70, 90))}
    check(program, arrays, (70, 90), lanes=(None,), cuts=(1000,))


@pytest.mark.parametrize("columns", [1, 5, 37, 100])
def test_neighbours_across_rows_are_found_by_rows_and_columns(columns: int) -> None:
    """Within a row the lanes read consecutive elements; where a row ends inside a vector they do not."""
    row, column, width = Local("r", INT32), Local("c", INT32), Local("w", INT32)
    position = convert(POSITION, INT32)
    above = apply("add", apply("multiply", apply("subtract", row, const(1, INT32)), width), column)
    mirrored = apply(
        "add", apply("multiply", row, width), apply("subtract", width, apply("add", column, const(1, INT32)))
    )
    inside = apply("greater", row, const(0, INT32))
    program = Program(
        "k",
        (
            ScalarParam("w", INT32),
            ArrayParam("A", FLOAT32, raw=True, ndim=1),
            ArrayParam("y", FLOAT32, written=True, read=False),
            ArrayParam("z", FLOAT32, written=True, read=False),
        ),
        (
            Declare("r", INT32, apply("quotient", position, width)),
            Declare("c", INT32, apply("modulo", position, width)),
            If(inside, (Store(element("z", FLOAT32), Load(at("A", FLOAT32, convert(above, INT64)), FLOAT32)),)),
            Store(element("y", FLOAT32), Load(at("A", FLOAT32, convert(mirrored, INT64)), FLOAT32)),
        ),
    )
    size = columns * 9
    arrays = {"A": RNG.random(size, "f4"), "y": np.zeros(size, "f4"), "z": np.zeros(size, "f4")}
    check(program, arrays, (size,), {"w": columns}, lanes=(1, 4, 16, None), cuts=(size // 2,))


def test_rows_that_vectors_do_not_fill_are_written_to_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "last_level_cache_bytes", lambda: 0)
    shift = fusec.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = x - y", "shift_rows")

    def goes_around(columns: int) -> bool:
        x = np.ones((100, columns), np.float32)
        assert np.array_equal(shift(x, 2 * x[:, :1]), -x)
        return "written around the cache" in str(fusec.explain(shift, x, x[:, :1]))

    assert [goes_around(columns) for columns in (40, 48, 64, 100, 128, 300)] == [False, False, True, False, True, True]
