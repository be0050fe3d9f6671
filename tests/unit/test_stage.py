"""Graphs with reductions as one kernel: stages, what is shared, what is stored, and the numbers of NumPy."""

import numpy as np

from fusec import passes
from fusec.base.dtypes import FLOAT32, FLOAT64, INT64
from fusec.ir.expr import Apply, apply, const, convert
from fusec.ir.graph import Count, Input, KernelGraph, Reduce
from fusec.ir.interpret_reductions import interpret_reduction
from fusec.ir.loops import ArrayParam
from fusec.ir.reductions import REDUCED, OneAxis, addressed
from fusec.ir.walk import expressions, operands, statements
from fusec.passes.buffer_rows import buffer_rows, kept_rows
from fusec.passes.expand import expand
from fusec.passes.lower_graph_reductions import lower_graph_reductions
from fusec.passes.reductions import run_on_reduction

X = Input("x", FLOAT32)


def total(op, value):
    return Reduce(op, value, value.type)


def softmax():
    power = apply("exp", apply("subtract", X, total("maximum", X)))
    return KernelGraph("softmax", (X,), (("y", apply("divide", power, total("add", power))),))


def layer_norm():
    count = convert(Count(INT64), FLOAT32)
    mean = apply("divide", total("add", X), count)
    far = apply("subtract", X, mean)
    spread = apply("divide", total("add", apply("multiply", far, far)), count)
    scale = apply("sqrt", apply("add", spread, const(1e-5, FLOAT32)))
    return KernelGraph("layer_norm", (X,), (("y", apply("divide", far, scale)), ("mean", mean)))


def moments():
    wide = convert(X, FLOAT64)
    return KernelGraph("moments", (X,), (("s", total("add", wide)), ("q", total("add", apply("multiply", wide, wide)))))


def run(graph, x, outputs, **scalars):
    reduction = run_on_reduction(lower_graph_reductions(graph), expand)
    interpret_reduction(reduction, {"x": x, **outputs}, scalars, OneAxis(x.shape, x.ndim - 1))
    checked = run_on_reduction(lower_graph_reductions(graph), lambda program: passes.run(program, check=True))
    again = {name: np.zeros_like(value) for name, value in outputs.items()}
    interpret_reduction(checked, {"x": x, **again}, scalars, OneAxis(x.shape, x.ndim - 1))
    for name, value in outputs.items():
        assert value.tobytes() == again[name].tobytes()
    return outputs


def exps(reduction):
    bodies = [stage.body for stage in reduction.stages]
    values = [stage.accumulator.value for stage in reduction.stages if stage.accumulator]
    roots = [root for body in bodies for stmt in statements(body) for root in operands(stmt)]
    return sum(isinstance(each, Apply) and each.op == "exp" for each in expressions([*roots, *values]))


def test_softmax_has_three_walks_and_one_exp():
    reduction = lower_graph_reductions(softmax())
    assert len(reduction.stages) == 3
    assert reduction.total is None
    assert exps(reduction) == 1
    (y,) = (param for param in reduction.arrays if param.name == "y")
    assert y == ArrayParam("y", FLOAT32, written=True, read=True)
    x = np.random.default_rng(0).normal(size=(5, 700)).astype("f4") * 10
    found = run(softmax(), x, {"y": np.zeros_like(x)})["y"]
    power = np.exp(x.astype("f8") - x.max(1, keepdims=True))
    np.testing.assert_allclose(found, power / power.sum(1, keepdims=True), rtol=1e-5)


def test_layer_norm_computes_the_scale_once_for_a_row():
    reduction = lower_graph_reductions(layer_norm())
    assert [len(each.then) for each in reduction.stages] == [1, 1, 0]
    x = np.random.default_rng(1).normal(3, 2, size=(4, 500)).astype("f4")
    outputs = {"y": np.zeros_like(x), "mean": np.zeros(4, "f4")}
    found = run(layer_norm(), x, outputs, **{REDUCED: 500})
    wide = x.astype("f8")
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(found["y"], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["mean"], wide.mean(1), rtol=1e-6)


def test_reductions_that_do_not_depend_on_each_other_share_a_walk_and_combine_over_chunks():
    reduction = lower_graph_reductions(moments())
    assert len(reduction.stages) == 1
    assert reduction.total is not None
    x = np.random.default_rng(2).normal(size=(3, 9000)).astype("f4")
    found = run(moments(), x, {"s": np.zeros(3), "q": np.zeros(3)})
    np.testing.assert_allclose(found["s"], x.astype("f8").sum(1), rtol=1e-12)
    np.testing.assert_allclose(found["q"], (x.astype("f8") ** 2).sum(1), rtol=1e-12)


def test_what_only_reductions_need_is_not_stored():
    """Only values that a later walk needs are kept, and what is kept apart leaves outputs to the last walk."""
    power = apply("exp", X)
    relative = lower_graph_reductions(KernelGraph("relative", (X,), (("y", apply("divide", X, total("add", power))),)))
    assert [addressed(each.body) for each in relative.stages] == [{"x"}, {"x", "y"}]
    reduction = lower_graph_reductions(softmax())
    assert [sorted(addressed(each.body)) for each in reduction.stages] == [["x"], ["x", "y"], ["y"]]
    rows = kept_rows(reduction)
    assert rows == {"y": "y.kept"}
    apart = buffer_rows(reduction, rows)
    assert [sorted(addressed(each.body)) for each in apart.stages] == [["x"], ["x", "y.kept"], ["y", "y.kept"]]
    assert (
        kept_rows(relative)
        == kept_rows(lower_graph_reductions(layer_norm()))
        == kept_rows(lower_graph_reductions(moments()))
        == {}
    )
