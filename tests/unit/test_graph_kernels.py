"""Graphs with reductions as kernels: the values of NumPy, however many kernels they are, and memory that overlaps."""

from __future__ import annotations

import itertools
from contextlib import suppress

import numpy as np
import pytest
from scipy import special

import fusec
from fusec.base.dtypes import FLOAT32, FLOAT64, INT64
from fusec.base.kernel_abi import Fp
from fusec.dispatch.engine import read_call
from fusec.dispatch.reductions import bind
from fusec.dispatch.spec import CallOptions
from fusec.ir.expr import Expr, apply, convert
from fusec.ir.graph import Count, Input, KernelGraph, Reduce
from fusec.ir.interpret_reductions import interpret_reduction
from fusec.ir.reductions import OneAxis
from fusec.ir.walk import expressions
from fusec.kinds.launch import MANY_THREADS
from fusec.library import graph_sources
from fusec.library.graph_kernel import GraphKernel
from fusec.library.normalisation import layer_norm_kernel, softmax_kernel
from fusec.passes.expand import expand
from fusec.passes.lower_graph_reductions import lower_graph_reductions
from fusec.passes.reductions import run_on_reduction
from fusec.runtime.cpu import machine, memory

X = Input("x", FLOAT32)
F32 = np.dtype("f4")


def total(op, value):
    return Reduce(op, value, value.type)


def rows(*shape, seed=0):
    return np.random.default_rng(seed).normal(2, 3, size=shape).astype("f4")


def moments():
    """Scaled deviations, their greatest, and the mean: outputs of both kinds; a number; a count."""
    scale = Input("scale", FLOAT32)
    mean = apply("divide", total("add", X), convert(Count(INT64), FLOAT32))
    far = apply("multiply", apply("subtract", X, mean), scale)
    return KernelGraph("moments", (X, scale), (("far", far), ("most", total("maximum", far)), ("mean", mean)))


MOMENTS = GraphKernel(moments())


@pytest.mark.parametrize("shape", [(30, 700), (3, 20_000), (70, 65), (4, 5, 60)])
@pytest.mark.parametrize("axis", [-1, 0, None])
@pytest.mark.sampled(3)
def test_one_kernel_or_several_the_values_are_numpys(shape, axis):
    x = rows(*shape)
    wide = x.astype("f8")
    np.testing.assert_allclose(fusec.softmax(x, axis), special.softmax(wide, axis), rtol=4e-6)
    far, most, mean = MOMENTS(x, 0.5, axis=axis)
    expected = (wide - wide.mean(axis, keepdims=True)) * 0.5
    np.testing.assert_allclose(far, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(most, expected.max(axis), rtol=1e-5)
    np.testing.assert_allclose(mean, wide.mean(axis), rtol=1e-5, atol=1e-6)
    again = MOMENTS(x, 0.5, axis=axis, keepdims=True)
    assert again[1].shape == expected.max(axis, keepdims=True).shape
    assert again[1].ravel().tobytes() == most.ravel().tobytes()


def test_a_chunk_is_the_border():
    x = rows(2, 8193)
    kernel = softmax_kernel(F32)
    counts = [dict(kernel.explain(x[:, :n], axis=1).lines)["kernels"] for n in (8192, 8193)]
    assert counts == ["1", "5"]
    assert dict(kernel.explain(x[:, :65], axis=0).lines)["kernels"] == "1"
    assert "chunk of 8,192" in str(kernel.explain(x, axis=1))
    sums = GraphKernel(
        KernelGraph("sums", (X,), (("s", total("add", X)), ("q", total("add", apply("multiply", X, X)))))
    )
    assert dict(sums.explain(x).lines)["kernels"] == "2"  # chunks combine
    s, q = sums(x, axis=1)
    assert s.tobytes() == fusec.sum(x, 1).tobytes()
    assert q.tobytes() == fusec.mulsum(x, x, 1).tobytes()


def test_one_kernel_gives_the_bits_of_the_oracle():
    x = rows(5, 300)
    found = np.zeros_like(x)
    reduction = run_on_reduction(lower_graph_reductions(softmax_kernel(F32).graph), expand)
    interpret_reduction(reduction, {"x": x, "y": found}, {}, OneAxis(x.shape, 1))
    assert fusec.softmax(x).tobytes() == found.tobytes()


def test_totals_of_levels_are_in_the_order_of_reductions():
    x = rows(2, 9000)
    _, _, mean = MOMENTS(x, 1.0, axis=1)
    assert mean.tobytes() == fusec.mean(x, 1).tobytes()


@pytest.mark.parametrize("shape", [(20, 300), (2, 9000)])
def test_outputs_may_lie_on_inputs(shape):
    weight = rows(shape[1], seed=1)
    for function in (fusec.softmax, lambda x, out=None: fusec.layer_norm(x, weight, weight, out=out)):
        x = rows(*shape)
        expected = function(x)
        assert function(x, out=x) is x
        assert x.tobytes() == expected.tobytes()
        memory = rows(shape[0] * shape[1] + 7)
        x = memory[:-7].reshape(shape)
        expected = function(x.copy())
        out = memory[7:].reshape(shape)  # overlaps, but for a few elements
        function(x, out=out)
        assert out.tobytes() == expected.tobytes()


def test_what_is_read_again_is_not_overwritten():
    power = apply("exp", X)
    value = apply("add", apply("divide", power, total("add", power)), X)
    kernel = GraphKernel(KernelGraph("again", (X,), (("y", value),)))
    x = rows(4, 200)
    expected = kernel(x, axis=1)
    assert kernel(x, axis=1, out=x).tobytes() == expected.tobytes()


def test_a_kept_value_is_read_before_its_output_is_written():
    power = apply("exp", apply("subtract", X, total("maximum", X)))
    scaled, more = apply("divide", power, total("add", power)), apply("sqrt", power)
    kernel = GraphKernel(KernelGraph("two", (X,), (("y", scaled), ("z", more), ("s", total("add", power)))))
    x = rows(4, 300)
    y, z, s = kernel(x, axis=1)
    wide = np.exp(x.astype("f8") - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, wide / wide.sum(1, keepdims=True), rtol=4e-6)
    np.testing.assert_allclose(z, np.sqrt(wide), rtol=4e-6)
    np.testing.assert_allclose(s, wide.sum(1), rtol=4e-6)


def test_inputs_broadcast_to_what_is_reduced():
    w = Input("w", FLOAT32)
    kernel = GraphKernel(KernelGraph("both", (X, w), (("y", apply("divide", X, total("add", w))),)))
    for n in (50, 9000):
        x, row = rows(3, n), np.ones(n, "f4")
        np.testing.assert_array_equal(kernel(x, row, axis=None), x / np.float32(3 * n))
        np.testing.assert_array_equal(kernel(x, row, axis=1), x / np.float32(n))


def test_layer_norm_scales_and_shifts():
    x = rows(6, 40)
    wide = x.astype("f8")
    plain = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    weight, bias = rows(40, seed=2), rows(40, seed=3)
    np.testing.assert_allclose(fusec.layer_norm(x), plain, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(fusec.layer_norm(x, weight), plain * weight, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(fusec.layer_norm(x, weight, bias), plain * weight + bias, rtol=1e-4, atol=1e-4)
    assert len(layer_norm_kernel(F32, F32, F32).graph.inputs) == 4
    half = x.astype("f2")
    np.testing.assert_allclose(fusec.layer_norm(half), plain, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(np.exp(fusec.log_softmax(x)), special.softmax(wide, 1), rtol=1e-5)
    assert fusec.softmax(np.arange(4)).dtype == np.float64


@pytest.mark.parametrize(("given", "computed", "scale"), [
    ("f2", "f4", "f4"), ("f2", "f4", "f2"), ("f4", "f4", "i2"), ("f4", "f4", "?"), ("u1", "f8", "f8"),
    ("i8", "f8", "u8"), ("f8", "f8", "f4"),
])  # fmt: skip
def test_weight_and_bias_are_converted_to_what_is_computed_in(given, computed, scale):
    x, weight, bias = (
        abs(8 * rows(*shape)).astype(dtype) for shape, dtype in [((3, 40), given), ((40,), scale), ((40,), scale)]
    )
    found = fusec.layer_norm(x, weight, bias)
    wanted = fusec.layer_norm(x.astype(computed), weight.astype(computed), bias.astype(computed))
    assert found.dtype == (given if given[0] == "f" else "f8")
    assert found.tobytes() == wanted.astype(found.dtype).tobytes()


def test_weight_may_be_wider_than_rows_of_several_chunks():
    x, weight = rows(2, 9000).astype("f2"), rows(9000)
    wide = x.astype("f8")
    plain = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(fusec.layer_norm(x, weight), plain * weight, rtol=1e-3, atol=1e-5)


def test_weight_and_bias_beyond_what_is_computed_in_are_refused():
    x, weight = rows(3, 4), np.ones(4)
    for dtype in ("f2", "f4"):
        with pytest.raises(TypeError, match=r"has dtype float64.*\n.*bias\.astype\('float32'\)"):
            fusec.layer_norm(x.astype(dtype), None, weight)
    with pytest.raises(TypeError, match=r"parameter 'weight' .* has dtype int32.*\n.*weight\.astype\('float32'\)"):
        fusec.layer_norm(x, weight.astype("i4"))
    with pytest.raises(TypeError, match=r"weight\.real"):
        fusec.layer_norm(x, weight.astype("c8"))
    with pytest.raises(TypeError, match=r"byte order is foreign"):
        fusec.layer_norm(x, weight.astype("f4"), out=x.astype(">f4"))


def test_numbers_scale_and_shift_whatever_the_dtype():
    x = np.arange(12, dtype="u1").reshape(3, 4)
    expected = fusec.layer_norm(x, np.full(4, 2.5), np.full(4, -0.5))
    assert fusec.layer_norm(x, 2.5, -0.5).tobytes() == expected.tobytes()


def test_an_axis_in_the_place_of_weight_is_told():
    with pytest.raises(TypeError, match="axis is the keyword axis="):
        fusec.layer_norm(rows(2, 3, 4), (1, 2))


def test_repeated_calls_give_what_the_first_gave():
    for n in (100, 9000):
        x, y = rows(3, n), rows(3, n, seed=5)
        first = fusec.softmax(x)
        assert all(fusec.softmax(x).tobytes() == first.tobytes() for _ in range(3))
        assert fusec.softmax(y).tobytes() == fusec.softmax(y.copy()).tobytes()


@pytest.mark.parametrize("function", [fusec.softmax, fusec.layer_norm])
def test_large_results_are_recycled_and_not_cleared(function, monkeypatch):
    x = rows(100, 1000)
    expected = [function(x) for _ in range(4)][-1].tobytes()  # by now as any call that follows
    monkeypatch.setattr(memory, "zeros", None)
    for turn in range(3):
        before = memory.pool_info().reused
        result = function(x)
        assert result.tobytes() == expected
        assert memory.pool_info().reused == before + 1 or not turn
        result[...] = np.nan
        del result


@pytest.mark.parametrize("function", [fusec.softmax, fusec.layer_norm])
def test_stores_around_the_caches_change_no_bit(function, monkeypatch):
    for shape, start in itertools.product([(5, 702), (3, 16), (70, 33), (2, 8192)], [0, 3]):
        x, space = rows(*shape), np.zeros(shape[0] * shape[1] + 3, "f4")
        out = space[start : start + x.size].reshape(shape)
        monkeypatch.setattr(machine, "last_level_cache_bytes", lambda: 0)
        function(x, out=out)
        monkeypatch.undo()
        assert out.tobytes() == function(x).tobytes()  # by another plan: here the output is allocated


def test_mistakes():
    x = rows(2, 3)
    with pytest.raises(TypeError):
        MOMENTS(x)
    with pytest.raises(ValueError, match="output"):
        MOMENTS(x, 1.0, out=(x,))
    with pytest.raises(IndexError, match="axis 5 is out of bounds"):
        fusec.softmax(x, 5)
    with pytest.raises(ValueError, match="Out shape is mismatched"):
        fusec.softmax(x, out=np.zeros((3, 2), "f4"))
    with pytest.raises(TypeError, match="not defined for dtype complex64"):
        fusec.softmax(x.astype("c8"))
    with pytest.raises(ValueError, match="no identity"):
        fusec.softmax(np.zeros((3, 0), "f4"))
    wide = GraphKernel(KernelGraph("wide", (Input("x", FLOAT64),), (("y", total("add", Input("x", FLOAT64))),)))
    with pytest.raises(TypeError, match="float64"):
        wide(x)


def test_results_that_exceed_the_cache_and_are_not_side_by_side(monkeypatch):
    """No row is kept apart there: such outputs are not stored around the caches."""
    monkeypatch.setattr(machine, "last_level_cache_bytes", lambda: 0)
    x = np.random.default_rng(0).normal(size=(40, 300)).astype("f4")
    expected = fusec.softmax(x)
    np.testing.assert_allclose(fusec.softmax(x[:, ::-1]), expected[:, ::-1], rtol=1e-6)  # added up as they lie
    assert fusec.softmax(x.T, axis=0).tobytes() == expected.T.tobytes()
    for out in (np.empty((300, 40), "f4").T, np.empty((40, 600), "f4")[:, ::2], np.empty((40, 300), "f4")[:, ::-1]):
        fusec.softmax(x, out=out)
        np.testing.assert_allclose(out, expected, rtol=1e-6)
    fused = fusec.fuse(
        lambda x: np.exp(x - x.max(-1, keepdims=True)) / np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)
    )
    np.testing.assert_allclose(fused(x[:, ::-1]), expected[:, ::-1], rtol=1e-6)


def test_a_graph_is_walked_once_for_its_signature_however_many_inputs_it_has(monkeypatch):
    walks, elsewhere = [], graph_sources.elsewhere
    monkeypatch.setattr(graph_sources, "elsewhere", lambda graph: walks.append(graph) or elsewhere(graph))
    inputs = tuple(Input(f"x{each}", FLOAT32) for each in range(40))
    for count in (1, 40):
        value = apply("negative", inputs[0])
        for each in inputs[1:count]:
            value = apply("add", value, each)
        graph = KernelGraph(f"sum_of_{count}", inputs[:count], (("y", value),))
        source = graph_sources.ElementwiseSource(graph)
        assert len(graph_sources.signature_of(source).inputs) == count
        assert walks.pop() is graph
        assert not walks


def test_rows_of_several_chunks_are_one_kernel_only_where_the_order_is_that_of_levels() -> None:
    """A level that reads no whole input, other lanes, rows along another axis, a single row, fused products."""
    x, w, wide = Input("x", FLOAT32), Input("w", FLOAT32), Input("wide", FLOAT64)
    most = Reduce("maximum", x, FLOAT32)
    near = Reduce("add", apply("multiply", w, most), FLOAT32)
    both = Reduce("add", apply("add", apply("multiply", w, most), x), FLOAT32)
    far = Reduce("add", apply("subtract", x, most), FLOAT32)
    mean = Reduce("add", apply("multiply", wide, apply("convert", most, target=FLOAT64)), FLOAT64)
    rows, row = np.zeros((3, 9000), "f4"), np.zeros(9000, "f4")

    def launches(value: Expr, *args: np.ndarray, fp: Fp = "strict") -> int:
        inputs = tuple(each for each in (x, w, wide) if each in expressions([value]))
        kernel = GraphKernel(KernelGraph("long", inputs, (("y", value),)), fp).whole(frozenset())
        backend, call = read_call(kernel, args, None, CallOptions(-1))
        with suppress(fusec.FusecError):
            return len(bind(kernel, call.given(backend), MANY_THREADS, None).launches)
        return 0

    assert launches(far, rows) == launches(far, rows[:, 500:]) == launches(both, rows, row) == 1
    assert launches(far, rows, fp="contract") == launches(far, rows[:1]) == launches(far, rows[:, ::-1]) == 0
    assert launches(near, rows, row) == launches(far, np.zeros((9000, 8500), "f4").T) == 0
    assert launches(far, np.zeros((3, 4 * 8192), "f4")) == 1
    assert launches(far, np.zeros((3, 4 * 8192 + 1), "f4")) == 0
    assert launches(mean, rows, rows.astype("f8")) == 0
