"""Fused functions and expressions as graphs: printed, read back and compiled, they give the bits of the function."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec import graph

X = np.arange(12.0).reshape(3, 4) - 4
SQUARE = np.arange(16.0).reshape(4, 4) % 5
IDS = np.array([2, 0, -1, 2])


def flat(given: Any) -> list[Any]:
    """The arrays and numbers of nested containers."""
    if isinstance(given, dict):
        given = given.values()
    elif not isinstance(given, (list, tuple)):
        return [] if given is None else [given]
    return [part for each in given for part in flat(each)]


def again(made: graph.Graph) -> graph.Graph:
    """The graph as its text is read back."""
    found = graph.parse(str(made), functions=made.functions)
    assert str(found) == str(made)
    return found


def same_as_a_graph(function: Callable[..., Any], *args: Any, functions: int = 0) -> graph.Graph:
    """Compare a fused function with its graph: the results, and what arguments hold afterwards."""
    fused = fusec.fuse(function)
    made = fused.graph(*args)
    assert len(made.functions) == functions
    mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
    wanted = flat(fused(*theirs))
    found = again(made).compile()(*flat(mine))
    outputs = [name for name, _ in made.built().outputs]
    written = sum(name in outputs for name in (each.name for each in made.built().inputs))
    results = list(found if isinstance(found, tuple) else (found,))
    for ours, their in [*zip(results[written:], wanted, strict=True), *zip(flat(mine), flat(theirs), strict=True)]:
        their = np.asarray(their)
        assert (np.asarray(ours).dtype, np.shape(ours)) == (their.dtype, their.shape)
        assert np.asarray(ours).tobytes() == their.tobytes()
    return made


def test_extents_have_names_where_a_trace_looked_at_none() -> None:
    def centred(x: Any, y: Any) -> Any:
        return (x - x.mean(axis=1, keepdims=True))[1:, ::-1] * y

    made = same_as_a_graph(centred, X, X[0])
    assert str(made).startswith("graph centred(x: float64[n, m], y: float64[m]) {")
    wide = np.arange(50.0).reshape(5, 10)
    np.testing.assert_array_equal(made.compile()(wide, wide[0]), fusec.fuse(centred)(wide, wide[0]))

    def by_extent(x: Any) -> Any:
        return x / x.shape[0]

    assert "x: float64[3, 4]" in str(same_as_a_graph(by_extent, X))


def test_what_a_function_writes_is_an_output_of_that_name() -> None:
    def change(x: Any, rate: Any) -> Any:
        before = x.sum()
        x[1:, ::2] *= rate
        x.T[0] = 7
        return before, x[:, -1]

    made = same_as_a_graph(change, X, 0.5)
    assert str(made).startswith("graph change(x: float64[n, m] donated, rate: float64[]) {")
    x = X.copy()
    assert made.compile()(x, 0.5)[0] is x


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x[::-1, 1:3].__setitem__(0, x[0, 2:]),
        lambda x: x.reshape(-1)[::3].__iadd__(1),
        lambda x: np.fill_diagonal(x, x[0]),
        lambda x: np.diagonal(x, 1) + x.diagonal()[1:],
        lambda x: x.T[1:, None].__setitem__(..., 5),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 3)).sum(axis=(2, 3)),
        lambda x: np.moveaxis(x[:, None], 0, 2)[::-1],
        lambda x: np.broadcast_to(x[:, None, :1], (4, 2, 3)),
        lambda x: x[:0].sum(axis=0),
        lambda x: np.stack([x[0], x[1], x[2], x[3], x[0], x[1], x[2], x[3], x[0]]),
    ],
)
def test_views_and_writes_of_views_have_nodes(write: Callable[[Any], Any]) -> None:
    def function(x: Any) -> Any:
        found = write(x)
        return x[1], found

    same_as_a_graph(function, SQUARE)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.roll(x, (1, -2), axis=(0, 1)) + np.pad(x, 1, mode="reflect")[1:-1, 1:-1],
        lambda x: np.roll(x, 1, axis=1)[::2],
        lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=-1),
        lambda x: (x[[2, 0, -1, 2]], x[[1, 3], 0], np.take(x, (x[0] % 3).astype("int32"), axis=1), x[:, [0, 1]]),
        lambda x: (np.tril(x), np.repeat(x, 2, axis=0), np.tile(x, 2), np.eye(4) * x),
        lambda x: (x.argmax(axis=0), x.var(axis=1), x.astype("float16").sum(), (x > 0).any(axis=1)),
        lambda x: (x + 1j * x).var(axis=0),
        lambda x: x.astype("float16") * x.astype("float16") + np.float16(0.1),
        lambda x: x.view("int64") ^ 5,
        lambda x: (np.cumsum(x * 2, axis=0), x.cumprod(), np.maximum.accumulate(x, axis=1), (x > 1).cumsum(1)),
        lambda x: (np.cumsum(x.astype("int8"), axis=-1), np.nancumsum(x.astype("float16"), axis=0)),
        lambda x: (np.stack((x.max(), x.min())), np.take(x[0], x.argmax() % 4, 0).reshape(-1)),
        lambda x: {"a": x.sum(), "b": [x * 2, x.max(axis=0)]},
        lambda x: (x[x > 0].sum(), np.where(x > 1, x, np.float32(2))),
    ],
)
@pytest.mark.sampled(3)
def test_forms_of_values_have_nodes(function: Callable[..., Any]) -> None:
    same_as_a_graph(function, SQUARE)


def test_narrow_floats_are_stored_in_their_dtype() -> None:
    def change(x: Any) -> Any:
        x[[0, -1]] = 1
        return x * 2

    same_as_a_graph(change, np.arange(4, dtype="float16"), functions=1)


def test_calls_of_libraries_are_functions_of_the_graph() -> None:
    def product(x: Any, scale: Any) -> Any:
        return (x.T @ x) * scale**2, np.sort(x)[0]

    made = same_as_a_graph(product, X, 1.5, functions=2)
    with pytest.raises(fusec.FusecSyntaxError, match="is not given"):
        graph.parse(str(made))


@pytest.mark.parametrize(
    ("function", "extents"),
    [
        (lambda x: np.sort(x * 2, axis=0), "[n, m]"), (lambda x: x + np.argsort(x), "[n, m]"),
        (lambda x: np.median(x, axis=0), "[m]"), (lambda x: np.fft.fft(x)[1:].real, "[n, m]"),
        (lambda x: np.linalg.inv(x.T @ x + 1 / 3), "[m, m]"), (lambda x: np.percentile(x, [10, 20], axis=1), "[2, n]"),
        (lambda x: np.linalg.svd(x, compute_uv=False), "[3]"), (lambda x: np.fft.rfft(x).imag, "[3, 3]"),
    ],
)  # fmt: skip
def test_calls_of_libraries_keep_names_of_extents_that_their_operands_have(function: Any, extents: str) -> None:
    made = same_as_a_graph(function, np.cos(X), functions=1)
    (call,) = [line for line in str(made).splitlines() if ' = call "np.' in line]
    assert call.endswith(f"{extents} result 0")
    wide = np.cos(np.arange(35.0)).reshape(7, 5)
    if "n" in extents or "m" in extents:
        np.testing.assert_array_equal(made.compile()(wide), fusec.fuse(function)(wide))


def test_running_extremes_of_bools_have_a_node() -> None:
    made = same_as_a_graph(lambda x: (np.maximum.accumulate(x > 0, 0), np.minimum.accumulate(x < 5, axis=1)), X)
    assert str(made).count("scan") == 2


def test_arithmetic_of_pythons_floats_is_part_of_the_graph() -> None:
    def scaled(x: Any, n: float, k: int) -> Any:
        return x * (2 * n - 0.1) / (n / 3 + k * n), x + (-n) * k

    made = same_as_a_graph(scaled, np.float32(X), 0.7, 3)
    assert "call" not in str(made)
    errors = fusec.fuse(lambda x, n, k: x * (1 / n) + k * k + k / 3).graph(X, 0.5, 3)
    assert len(errors.functions) == 3  # which may raise, or have more digits than int64 and float64


def test_indices_out_of_bounds_raise_as_in_the_function() -> None:
    gather = fusec.fuse(lambda x, i: x[i][1:] + 1)
    made = again(gather.graph(X, IDS % 3)).compile()
    np.testing.assert_array_equal(made(X, IDS), gather(X, IDS))
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        made(X, np.array([3, 0, 0, 0]))


def test_inputs_from_outside_have_the_names_of_variables_and_items() -> None:
    bias, weights, parts = np.ones(4), [np.ones(4), X], {"scale": X}

    def layered(x: Any) -> Any:
        return x * weights[1] + bias + parts["scale"]

    for made in (fusec.fuse(layered).graph(X), fusec.fuse(lambda f, x: f(x)).graph(layered, X)):
        assert {each.name for each in made.built().inputs} >= {"x", "bias", "weights_1", "parts_scale"}


def test_what_is_read_from_outside_is_an_input() -> None:
    class Model:
        weight = np.ones(4)

        @fusec.fuse
        def apply(self, x: Any) -> Any:
            return x * self.weight + self.rate

        rate = 2.0

    model = Model()
    made = Model.apply.graph(model, X)
    assert [each.name for each in made.built().inputs] == ["x", "weight"]
    np.testing.assert_array_equal(made.compile()(X, model.weight), model.apply(X))


@pytest.mark.parametrize(
    ("function", "args", "text"),
    [
        (lambda x, y: x.__iadd__(y), (X, X.T[:, 0:0].T), None),
        (lambda x, y: x[1:].__iadd__(y), (SQUARE, SQUARE[:3]), "share memory that it writes"),
        (lambda x: "text", (X,), "cannot return a value of type str"),
        (lambda x: None, (X,), "returns no arrays, and writes none"),
    ],
)
def test_what_graphs_cannot_say_is_refused(function: Callable[..., Any], args: Any, text: str | None) -> None:
    if text is None:
        with pytest.raises(ValueError, match="broadcast"):
            fusec.fuse(function).graph(*args)
        return
    with pytest.raises(fusec.FusecError, match=text) as raised:
        fusec.fuse(function).graph(*args)
    assert raised.value.code == "F764"


def test_expressions_are_graphs_too() -> None:
    a, b = X[0], X[1]
    made = again(fusec.evaluate.graph("2*a + sin(b)**2", {"a": a, "b": b}))  # type: ignore[attr-defined]
    assert str(made).startswith("graph evaluate(a: float64[n], b: float64[n]) {")
    np.testing.assert_array_equal(made.compile()(a, b), fusec.evaluate("2*a + sin(b)**2", {"a": a, "b": b}))
    expression = fusec.NumExpr("where(a > b, a, b*2)", [("b", "float64"), ("a", "float64")])
    made = expression.graph(b, a)
    np.testing.assert_array_equal(made.compile()(b=b, a=a), expression(b, a))


def test_the_graph_of_a_compiled_graph_is_itself() -> None:
    made = graph.parse("graph double(x: int32[n]) { %1 = add(x, x) return y = %1 }")
    assert str(made.compile().graph()) == str(made)


def test_scans_into_arrays_have_nodes() -> None:
    b = np.arange(4.0)
    same_as_a_graph(lambda b: np.vander(b, 3), b)
    same_as_a_graph(lambda b: np.multiply.accumulate(b, out=np.empty(4)), b)
    same_as_a_graph(lambda b, w: np.cumsum(b, out=w), b, np.ones(4))
    same_as_a_graph(lambda b, w: np.cumsum(b, axis=1, out=w[:, 1:]), b.reshape(2, 2), np.ones((2, 3)))
    same_as_a_graph(lambda b, w: np.cumsum(b, out=w), np.arange(4), np.ones(4), functions=1)  # in the dtype of `w`


@pytest.mark.parametrize("extents", [(200, 40), (1000, 3)])
def test_products_of_a_value_and_its_transpose_have_the_functions_bits(extents: tuple[int, int]) -> None:
    """Libraries see that both operands are one array, and then add in another order."""

    def products(x: Any) -> Any:
        c = x - 1
        d = np.exp(x[:, ::-1])
        return c.T @ c, c.sum(0), d.T @ np.sort(d, axis=0), np.tensordot(d, d.T, 1), d.mean(), c[1:].T @ c[1:]

    x = np.random.default_rng(0).random(extents)
    fused = fusec.fuse(products)
    for ours, theirs in zip(fused.graph(x).compile()(x), fused(x), strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)


def test_inputs_have_no_extent_below_0():
    with pytest.raises(fusec.FusecError, match="F761"):
        graph.Graph("g").input("x", "float32", (-1,))
