"""What each pass rewrites, and what it must leave alone."""

import numpy as np
import pytest

from fusec import passes
from fusec.base.dtypes import (
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    INTEGERS,
    UINT8,
    UINT32,
    DType,
)
from fusec.ir.expr import Const, Expr, Pointer, apply, const, convert
from fusec.ir.loops import (
    ArrayParam,
    Assign,
    At,
    Atomic,
    Break,
    Call,
    Declare,
    DeclareArray,
    Element,
    Function,
    If,
    Load,
    Local,
    LocalArray,
    Program,
    Return,
    Store,
    While,
)
from fusec.ir.walk import expressions
from fusec.passes.common_subexpressions import DEPTH, name_common_subexpressions
from fusec.passes.eliminate_dead_code import eliminate_dead_code
from fusec.passes.exact import embeds
from fusec.passes.fold import fold_constants, fold_expression
from fusec.passes.lower_graph import lower_graph
from fusec.passes.narrow_types import narrow_expression
from fusec.passes.simplify import simplify_expression
from tests.support.raise_to_graph import raise_to_graph

F, D, B = Local("f", FLOAT32), Local("d", FLOAT64), Local("b", BOOL)
G = Local("g", FLOAT32)
N, U = Local("n", INT32), Local("u", UINT32)
OUT = Store(Element("z", Pointer(FLOAT32, "global")), F)


def f32(value: float) -> Const:
    return const(value, FLOAT32)


def i32(value: int) -> Const:
    return const(value, INT32)


def kernel(*body) -> Program:
    return Program("k", (ArrayParam("z", FLOAT32, written=True, read=False),), body)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (apply("multiply", F, f32(1)), F),
        (apply("multiply", f32(1), F), F),
        (apply("divide", F, f32(1)), F),
        (apply("add", F, f32(-0.0)), F),
        (apply("subtract", F, f32(0.0)), F),
        (apply("subtract", f32(-0.0), F), apply("negative", F)),
        (apply("subtract", i32(0), N), apply("negative", N)),
        (apply("multiply", F, f32(-1)), apply("negative", F)),
        (apply("add", F, apply("negative", G)), apply("subtract", F, G)),
        (apply("subtract", F, apply("negative", G)), apply("add", F, G)),
        (apply("multiply", apply("negative", F), apply("negative", G)), apply("multiply", F, G)),
        (apply("divide", F, f32(8)), apply("multiply", F, f32(0.125))),
        (apply("negative", apply("negative", F)), F),
        (apply("absolute", apply("negative", F)), apply("absolute", F)),
        (apply("absolute", apply("negative", U)), apply("negative", U)),
        (apply("multiply", N, i32(0)), i32(0)),
        (apply("add", N, i32(0)), N),
        (apply("bitwise_and", N, i32(-1)), N),
        (apply("bitwise_or", N, i32(0)), N),
        (apply("left_shift", N, i32(0)), N),
        (apply("subtract", N, N), i32(0)),
        (apply("bitwise_xor", B, B), const(False, BOOL)),
        (apply("quotient", U, const(8, UINT32)), apply("right_shift", U, const(3, UINT32))),
        (apply("modulo", U, const(8, UINT32)), apply("bitwise_and", U, const(7, UINT32))),
        (apply("where", B, F, F), F),
        (apply("where", apply("logical_not", B), F, G), apply("where", B, G, F)),
        (apply("where", B, const(False, BOOL), const(True, BOOL)), apply("logical_not", B)),
        (apply("logical_not", apply("equal", F, G)), apply("not_equal", F, G)),
        (apply("logical_not", apply("less", N, i32(3))), apply("greater_equal", N, i32(3))),
        (apply("not_equal", convert(B, INT32), i32(0)), B),
        (convert(convert(F, FLOAT64), FLOAT32), F),
        (convert(convert(N, INT64), INT16), convert(N, INT16)),
        (convert(convert(N, FLOAT64), FLOAT32), convert(N, FLOAT32)),
        (apply("bitcast", apply("bitcast", F, target=INT32), target=FLOAT32), F),
        (apply("real", apply("complex", F, G)), F),
    ],
)
def test_simplify_rewrites(before: Expr, after: Expr) -> None:
    assert simplify_expression(before) is after


@pytest.mark.parametrize(
    "value",
    [
        apply("multiply", F, f32(0)),  # nan, -0
        apply("add", F, f32(0.0)),  # -0 + 0 is +0
        apply("subtract", F, f32(-0.0)),
        apply("subtract", F, F),  # inf - inf
        apply("divide", F, f32(3)),
        apply("divide", F, f32(2.0**-149)),  # 2**149 is no float32
        apply("logical_not", apply("less", F, G)),  # nan
        apply("quotient", N, i32(8)),  # rounds toward zero
        convert(convert(F, FLOAT16), FLOAT32),
        convert(convert(N, FLOAT32), INT32),  # 24 bits of 32
        convert(convert(N, FLOAT64), UINT32),  # saturates, where integers wrap
        convert(convert(F, INT32), FLOAT32),
    ],
)
def test_simplify_leaves_what_would_change_a_bit(value: Expr) -> None:
    assert simplify_expression(value) is value


def wide(value: Expr, dtype: DType = FLOAT64) -> Expr:
    return convert(value, dtype)


SMALL = Local("c", INT8)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (convert(apply("multiply", wide(F), const(2.0, FLOAT64)), FLOAT32), apply("multiply", F, f32(2))),
        (convert(apply("sqrt", wide(F)), FLOAT32), apply("sqrt", F)),
        (convert(apply("divide", wide(F), wide(SMALL)), FLOAT32), apply("divide", F, convert(SMALL, FLOAT32))),
        (apply("floor", wide(F)), wide(apply("floor", F))),
        (apply("where", B, wide(F), const(0.5, FLOAT64)), wide(apply("where", B, F, f32(0.5)))),
        (apply("less", wide(F), const(0.5, FLOAT64)), apply("less", F, f32(0.5))),
        (apply("less", wide(N, INT64), const(7, INT64)), apply("less", N, i32(7))),
        (apply("less", wide(N), const(7, FLOAT64)), apply("less", N, i32(7))),
        (
            apply("multiply", wide(SMALL, INT64), const(-5, INT64)),
            wide(apply("multiply", wide(SMALL, INT32), i32(-5)), INT64),
        ),
        (convert(apply("add", wide(SMALL, INT32), i32(300)), INT8), apply("add", SMALL, const(44, INT8))),
    ],
)
def test_narrow_rewrites(before: Expr, after: Expr) -> None:
    assert narrow_expression(before) is after


@pytest.mark.parametrize(
    "value",
    [
        convert(apply("multiply", wide(F), const(0.1, FLOAT64)), FLOAT32),  # 0.1 is no float32
        convert(apply("fma", wide(F), wide(F), wide(F)), FLOAT32),  # two roundings can differ from one
        convert(apply("add", wide(N), wide(F)), FLOAT32),  # an int32 is no float32
        apply("less", wide(F), const(0.1, FLOAT64)),
        apply("less", wide(N, INT64), const(1 << 40, INT64)),
        convert(apply("right_shift", wide(SMALL, INT32), i32(1)), INT8),
        convert(apply("add", N, i32(1)), INT8),
        apply("multiply", wide(SMALL, INT64), const(1 << 15, INT64)),
        apply("multiply", wide(SMALL, INT64), wide(N, INT64)),
    ],
)
def test_narrow_leaves_what_needs_the_wider_type(value: Expr) -> None:
    assert narrow_expression(value) is value


EVERY_REAL = (BOOL, *INTEGERS, FLOAT16, FLOAT32, FLOAT64)


@pytest.mark.parametrize("target", EVERY_REAL, ids=repr)
@pytest.mark.parametrize("source", EVERY_REAL, ids=repr)
def test_a_type_embeds_only_if_its_extremes_survive_the_way_back(source: DType, target: DType) -> None:
    if not embeds(source, target):
        return
    limits = [0, 1] if source == BOOL else np.iinfo(source.numpy) if source.is_integer else np.finfo(source.numpy)
    ends = limits if isinstance(limits, list) else [limits.min, limits.max]
    for value in ends:
        for near in (0, 1) if source.is_integer else (0,):
            original = const(int(value) - near * (1 if value > 0 else -1), source) if near else const(value, source)
            assert fold_expression(convert(fold_expression(convert(original, target)), source)) is original


def test_fold_computes_and_fixes_nan() -> None:
    assert fold_expression(apply("add", i32(2**31 - 1), i32(1))) is i32(-(2**31))
    assert fold_expression(apply("divide", f32(0), f32(0))) is f32(float("nan"))
    assert fold_expression(apply("logical_and", B, const(True, BOOL))) is B
    assert fold_expression(apply("logical_or", B, const(True, BOOL))) is const(True, BOOL)
    assert fold_expression(apply("where", const(True, BOOL), F, G)) is F


def test_fold_reads_constant_locals_and_drops_dead_branches() -> None:
    two = Local("two", INT32)
    body = (
        Declare("two", INT32, i32(2)),
        Declare("f", FLOAT32),
        Assign("f", f32(1)),
        If(apply("less", two, i32(1)), (Return(),), (Assign("f", convert(two, FLOAT32)),)),
        While(apply("equal", two, i32(3)), (Break(), Assign("f", f32(9)))),
        OUT,
        Return(),
        OUT,
    )
    folded = fold_constants(kernel(*body))
    assert folded.body == (body[0], body[1], body[2], Assign("f", f32(2)), OUT, Return())


def test_fold_keeps_locals_that_change() -> None:
    body = (Declare("f", FLOAT32, f32(1)), While(B, (Assign("f", apply("add", F, f32(1))),)), OUT)
    program = kernel(Declare("b", BOOL), Assign("b", const(True, BOOL)), *body)
    assert fold_constants(program) is program


def test_share_names_what_is_used_twice_and_nothing_else() -> None:
    total = apply("add", F, G)
    shared = name_common_subexpressions(
        kernel(Declare("h", FLOAT32, apply("multiply", total, total)), Declare("i", FLOAT32, total))
    )
    t1 = Local("t1", FLOAT32)
    assert shared.body == (
        Declare("t1", FLOAT32, total),
        Declare("h", FLOAT32, apply("multiply", t1, t1)),
        Declare("i", FLOAT32, total),
    )


def test_share_never_moves_a_load_out_of_its_guard() -> None:
    load = Load(At("x", (convert(N, INT64),), Pointer(FLOAT32, "global")), FLOAT32)
    guarded = apply("where", B, apply("multiply", load, load), f32(0))
    program = kernel(Declare("h", FLOAT32, guarded))
    shared = name_common_subexpressions(program)
    outside = [expr for stmt in shared.body[:-1] for expr in expressions([stmt.value])]
    assert not any(isinstance(expr, Load) for expr in outside)
    certain = kernel(Declare("h", FLOAT32, apply("multiply", load, load)))
    assert isinstance(name_common_subexpressions(certain).body[0].value, Load)


def test_share_leaves_loop_conditions_where_they_are() -> None:
    total = apply("add", F, G)
    program = kernel(While(apply("less", apply("multiply", total, total), f32(9)), ()))
    assert name_common_subexpressions(program) is program


def test_share_cuts_deep_expressions() -> None:
    value: Expr = F
    for _ in range(3 * DEPTH):
        value = apply("add", value, G)
    shared = name_common_subexpressions(
        kernel(Declare("f", FLOAT32), Declare("g", FLOAT32), Declare("h", FLOAT32, value))
    )

    def depth(expr: Expr) -> int:
        return 1 + max(map(depth, expr.children), default=0)

    assert max(depth(stmt.value) for stmt in shared.body if stmt.value is not None) <= DEPTH + 1


def test_prune_drops_what_nothing_reads() -> None:
    dead, callee = Function("dead", (), None, ()), Function("inner", (), FLOAT32, (Return(f32(1)),))
    used = Function("used", (), FLOAT32, (Return(Call("inner", (), FLOAT32)),))
    cell = LocalArray("t", Pointer(FLOAT32, "local"))
    counter = At("h", (const(0, INT64),), Pointer(INT32, "global"))
    body = (
        Declare("f", FLOAT32, Call("used", (), FLOAT32)),
        Declare("g", FLOAT32),
        Assign("g", F),
        DeclareArray("t", FLOAT32, 2),
        Store(cell, G),
        Declare("n", INT32),
        Atomic("add", counter, (i32(1),), "n"),
        If(B, (Assign("g", f32(2)),)),
        OUT,
    )
    program = Program("k", (), body, (dead, callee, used))
    pruned = eliminate_dead_code(program)
    assert pruned.body == (body[0], Atomic("add", counter, (i32(1),)), OUT)
    assert [function.name for function in pruned.functions] == ["inner", "used"]


def test_lift_and_lower_undo_each_other_up_to_names() -> None:
    pointer = Pointer(FLOAT32, "global")
    total = apply("add", F, G)
    program = Program(
        "k",
        (ArrayParam("x", FLOAT32), ArrayParam("z", FLOAT32, written=True, read=False)),
        (
            Declare("f", FLOAT32, Load(Element("x", pointer), FLOAT32)),
            Declare("g", FLOAT32, apply("exp", F), line=2),
            Declare("total", FLOAT32, total),
            Assign("total", apply("multiply", Local("total", FLOAT32), Local("total", FLOAT32)), line=3),
            Store(Element("z", pointer), Local("total", FLOAT32)),
        ),
    )
    graph = raise_to_graph(program)
    assert graph is not None
    assert [name for name, _ in graph.outputs] == ["z"]
    assert set(graph.names.values()) == {"g", "total"}
    again = raise_to_graph(lower_graph(graph))
    assert again == graph


def test_lift_declines_what_graphs_cannot_say() -> None:
    for stmt in (
        If(B, (OUT,)),
        While(B, ()),
        Return(),
        Store(At("z", (const(0, INT64),), Pointer(FLOAT32, "global")), F),
    ):
        assert raise_to_graph(kernel(Declare("f", FLOAT32), Declare("b", BOOL), stmt)) is None
    assert raise_to_graph(kernel()) is None  # z is never stored


def test_the_pipeline_blames_the_pass_that_broke_a_program(monkeypatch) -> None:
    def spoil(program: Program) -> Program:
        return Program(program.name, program.params, (*program.body, Break()))

    monkeypatch.setattr("fusec.passes.common_subexpressions.name_common_subexpressions", spoil)
    with pytest.raises(AssertionError, match=r"after name_common_subexpressions: k, statement .*outside a loop"):
        passes.run(kernel(Declare("f", FLOAT32), OUT), check=True)


def test_passes_return_the_same_program_where_nothing_changes() -> None:
    program = kernel(Declare("f", FLOAT32, Call("f", (), FLOAT32)), OUT)
    for step in (fold_constants, name_common_subexpressions):
        assert step(program) is program


def test_folded_integers_wrap() -> None:
    assert fold_expression(convert(const(200, UINT8), INT8)) is const(-56, INT8)
