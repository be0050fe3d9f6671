"""Graphs and expressions that are long, wide, interrupted or too large: a right result, or an error that leaves
nothing half written, and the next call works. `test_fuse_hostile` asks the same of fused functions.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec import graph
from fusec.compiler import pipeline

X = np.linspace(0, 1, 30)


def chain(x: Any, steps: int) -> Any:
    for _ in range(steps):
        x = x * 0.5 + 1.0
    return x


@pytest.mark.parametrize("steps", [500, pytest.param(5000, marks=pytest.mark.slow)])
def test_long_chains_of_nodes_are_right_and_read_back(steps: int) -> None:
    g = graph.Graph("deep")
    g.output(chain(g.input("x", "float64", ("n",)), steps))
    text = str(g)
    assert str(graph.parse(text)) == text
    compiled = g.compile()
    np.testing.assert_array_equal(compiled(X), chain(X, steps))
    assert str(pickle.loads(pickle.dumps(compiled)).graph()) == text


def test_the_graph_of_a_long_function_is_right() -> None:
    made = fusec.fuse(lambda x: chain(x, 500)).graph(X)
    np.testing.assert_array_equal(made.compile()(X), chain(X, 500))


def test_300_inputs_and_names_are_right() -> None:
    arrays = [X + at for at in range(300)]
    g = graph.Graph("many")
    total = g.input("x0", "float64", ("n",))
    for at in range(1, 300):
        total = total + g.input(f"x{at}", "float64", ("n",))
    g.output(total)
    wanted = arrays[0]
    for each in arrays[1:]:
        wanted = wanted + each
    np.testing.assert_array_equal(graph.parse(str(g)).compile()(*arrays), wanted)
    names = {f"x{at}": each for at, each in enumerate(arrays)}
    np.testing.assert_array_equal(fusec.evaluate(" + ".join(names), names), wanted)


def test_expressions_that_are_too_long_are_refused_at_their_place() -> None:
    with pytest.raises(fusec.FusecSyntaxError, match=r"more than 4096 tokens \[F501\](?s:.)*line 1, column 4097"):
        fusec.evaluate("+".join(["X"] * 5000))
    wanted = X
    for _ in range(999):
        wanted = wanted + X
    np.testing.assert_array_equal(fusec.evaluate("+".join(["X"] * 1000), {"X": X}), wanted)


def cube(name: str, finish: Callable[[Any], Any]) -> Any:
    g = graph.Graph(name)
    x = g.input("x", "float64", ("n",))
    wide = (x.reshape("n", 1) + x).reshape("n", "n", 1) + x
    g.output(finish(wide))
    return g.compile()


@pytest.mark.parametrize("finish", [lambda x: x, lambda x: x.updated((0,), 0.0).fold("maximum", 0)])
def test_a_graph_that_is_too_large_is_an_error_with_its_name(finish: Callable[[Any], Any]) -> None:
    compiled = cube("cube", finish)
    for _ in range(2):
        with pytest.raises(MemoryError, match=r"^not enough memory in graph 'cube': .* \[F702\]") as raised:
            compiled(np.zeros(30_000))
        assert " --> " not in str(raised.value)  # the user's line is that of the call
    assert compiled(np.ones(3)).max() == 3


def test_an_expression_that_is_too_large_is_an_error_of_memory() -> None:
    a = np.zeros(30_000)
    for text in ("a + b * c", "sum(a + b * c, axis=0)"):
        for _ in range(2):
            with pytest.raises(MemoryError, match="memory for"):
                fusec.evaluate(text, {"a": a, "b": a[:, None], "c": a[:, None, None]})
        assert fusec.evaluate(text, {"a": X, "b": X[:, None], "c": 1.0}).shape == (30, 30)[text[0] == "s" :]


@pytest.mark.parametrize("problem", [RuntimeError("mine"), MemoryError("mine"), KeyboardInterrupt("mine")])
def test_what_a_function_of_a_graph_raises_leaves_nothing_half_written(problem: BaseException) -> None:
    raises = [problem]

    def flaky(x: Any) -> Any:
        for each in raises:
            raise each
        return x * 2

    g = graph.Graph("calls")
    x = g.input("x", "float64", ("n",), donated=True)
    later = x + 1
    g.output(later, "x")
    g.output(g.call("flaky", flaky, later, results=[("float64", ("n",))]), "y")
    compiled, given, out = g.compile(), np.zeros(3), (np.zeros(3), np.zeros(3))
    for _ in range(3):
        with pytest.raises(type(problem), match=r"^mine") as raised:
            compiled(given)
        assert raised.value is problem
        with pytest.raises(type(problem)):
            compiled(given, out=out)
        np.testing.assert_array_equal([given, *out], 0)
    if isinstance(problem, Exception):
        assert f"raised by flaky in {__file__}" in problem.__notes__[0]
    raises.clear()
    results = compiled(given)
    assert results[0] is given
    np.testing.assert_array_equal(results, [[1, 1, 1], [2, 2, 2]])


def test_what_a_library_call_raises_keeps_what_was_assigned_before() -> None:
    matrices = [np.eye(2), np.zeros((2, 2)), np.eye(2)]

    def solve(x: Any, a: Any) -> Any:
        x += 1
        found = np.linalg.inv(a)
        x *= found.sum()
        return found

    fused = fusec.fuse(solve)
    mine, theirs = np.zeros(3), np.zeros(3)
    for a in matrices:
        for function, x in ((fused, mine), (solve, theirs)):
            try:
                function(x, a)
            except np.linalg.LinAlgError as problem:
                assert str(problem) == "Singular matrix"  # noqa: PT017 - both raise it
        np.testing.assert_array_equal(mine, theirs)


def test_an_interrupted_compilation_of_an_expression_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    factor = time.time()  # no cache on the disk has this text
    text = f"a * {factor!r} + cos(a) ** 2"
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "lower", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fusec.evaluate(text, {"a": X})
    np.testing.assert_allclose(fusec.evaluate(text, {"a": X}), X * factor + np.cos(X) ** 2)


EMPTY: dict[str, Callable[[Any, Any], Any]] = {
    "a function's result": lambda g, x: g.call("rest", lambda a: a[2:], x, results=[("float32", (x.shape[0] - 2,))]),
    "positions": lambda g, x: g.positions((x.shape[0] - 2,), 0),
    "repeated": lambda g, x: g.constant(1.0, "float32").broadcast_to((x.shape[0] - 2,)),
}


@pytest.mark.parametrize("make", EMPTY.values(), ids=EMPTY)
def test_sizes_for_which_an_extent_is_negative_are_refused_by_name(make: Callable[[Any, Any], Any]) -> None:
    g = graph.Graph("g")
    g.output(make(g, g.input("x", "float32", ("n",))), "y")
    f = g.compile()
    for n in (5, 2):
        assert f(np.ones(n, "float32")).shape == (n - 2,)
    with pytest.raises(ValueError, match=r"the extent n - 2 is -1 \[F761\]\nhint: sizes are \{'n': 1\}"):
        f(np.ones(1, "float32"))


def test_texts_have_no_negative_extents() -> None:
    with pytest.raises(ValueError, match=r"the extent -1 \[F761\]\n --> graph, line 1, column 9"):
        graph.parse("graph f(x: float32[-1]) { return y = x }")


def test_functions_of_numpy_name_what_to_write_for_a_value_of_a_graph() -> None:
    x = graph.Graph("g").input("x", "float32", ("n",))
    for function, cure in (
        (np.sin, r"g.apply\('sin', x\)"), (lambda x: np.where(x > 0, x, x), r"g.apply\('where', x, y, z\)"),
        (lambda x: np.power(x, 2), r"g.apply\('pow', x, y\)"), (np.sum, "method"), (np.max, "x.fold"),
        (lambda x: np.concatenate([x, x]), "g.call"), (np.asarray, "before a call"),
        (lambda x: np.matmul(x, x), "x @ y"),
    ):  # fmt: skip
        with pytest.raises((TypeError, AttributeError), match=rf"hint: .*{cure}"):
            function(x)


def test_numbers_and_arrays_of_numpy_leave_operators_to_values_of_graphs() -> None:
    g = graph.Graph("g")
    x, two = g.input("x", "float32", ("n",)), np.float32(2)
    for value in (two - x, two / x, two**x, two < x, two == x):
        g.output(value)
    x = np.array([1, 2, 3], "float32")
    for found, wanted in zip(g.compile()(x), (two - x, two / x, two**x, two < x, two == x), strict=True):
        np.testing.assert_array_equal(found, wanted, strict=True)
