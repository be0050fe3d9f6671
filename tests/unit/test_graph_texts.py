"""Texts of graphs: whatever a graph holds is written so that it reads back as the same graph."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

import fusec
from fusec import graph
from fusec.base.dtypes import BY_NAME
from fusec.base.ops import TABLE
from fusec.frontends.grammar_tables import GRAMMARS, load

WORDS = sorted(word for word in load("graph", GRAMMARS["graph"]).words if word.isidentifier())


@pytest.mark.parametrize("word", [*WORDS, "float32", "add", "nan", "inf", "x1"])
def test_every_word_of_a_text_is_a_name_too(word):
    g = graph.Graph(word)
    x = g.input(word, "bool", (word, f"2*{word} + 1"))
    y = g.call(word, np.logical_not, x, results=[("bool", x.shape)])
    g.output(x & y, word)
    g.output(g.number(f"{word} + 1"), f"{word}_1")
    read = graph.parse(str(g), functions={word: np.logical_not})
    assert (str(read), read.built()) == (str(g), g.built())


def test_inputs_called_true_and_false_are_no_constants():
    g = graph.Graph()
    false, true = g.input("false", "bool"), g.input("true", "bool")
    g.output(g.apply("where", false, true, True), "true")
    assert 'where("false", "true", true)' in str(g)
    assert str(graph.parse(str(g)).compile()(np.array(True), np.array(False))) == "False"


def test_no_word_is_the_name_of_an_operation_or_dtype():
    assert not {*TABLE, *BY_NAME} & {*WORDS}


def test_large_arrays_of_constants_are_bytes_in_texts():
    table, x = np.arange(200_000.0) - 0.1, np.ones(200_000)
    made = fusec.fuse(lambda x: x + (np.arange(200_000.0) - 0.1)).graph(x)
    text = str(made)
    assert len(text) > 1 << 20
    assert str(graph.parse(text)) == text
    compiled = pickle.loads(pickle.dumps(made.compile()))
    np.testing.assert_array_equal(compiled(x), x + table)


@pytest.mark.parametrize("dtype", sorted(BY_NAME))
def test_arrays_of_constants_of_every_dtype_read_back(dtype):
    g = graph.Graph()
    for count in (3, 40):
        values = (np.arange(count) % 2).astype(">i2")
        g.output(g.array(values, dtype))
        g.output(g.array(values.tolist(), dtype).reshape(count, 1))
    read = graph.parse(str(g))
    assert (str(read), read.built()) == (str(g), g.built())
    kinds = {value.children[0] if value.children else value for _, value in g.built().outputs}
    assert len(kinds) == 2


@pytest.mark.parametrize(
    ("line", "code", "found"),
    [
        ('array float64 "AAAA" to [1]', "F760", "3 bytes as elements of float64"),
        ('array float64 "" to [0]', "F760", "0 bytes as elements of float64"),
        ('array bool "AgMF" to [3]', "F760", "the byte 2 as an element of bool"),
        ('array bool "AQAf" to [3]', "F760", "the byte 31 as an element of bool"),
        ('array float33 "AAAA" to [1]', "F762", "there is no dtype 'float33'"),
        ('array int8 "A*AA" to [3]', "F762", "the bytes of an array are no base64"),
        ('array int8 "AA\u00e9A" to [3]', "F762", "the bytes of an array are no base64"),
        ('array int8 "AAAA" to [4]', "F761", "3 constants as [4]"),
        ('array int8 "AAAA" to [n]', "F761", "3 constants as [n]"),
    ],
)
def test_bytes_that_are_no_array_are_refused(line, code, found):
    with pytest.raises(fusec.FusecError) as raised:
        graph.parse(f"graph g(x: int8[n]) {{ %1 = {line} return y = %1 }}")
    assert raised.value.code == code
    assert found in str(raised.value)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        ("int8(300)", "F179"), ("uint8(-1)", "F179"), ("int8(128)", "F179"), ("int8(0x1ff)", "F762"),
        ("int8(-0x1)", "F762"), ("bool(0x2)", "F762"), ("int8(0.5)", "F762"), ("uint64(18446744073709551616)", "F179"),
    ],
)  # fmt: skip
def test_numbers_that_a_dtype_does_not_hold_are_refused_at_their_place(number, code):
    with pytest.raises(fusec.FusecError, match=rf"\[{code}\]\n --> graph, line 2") as raised:
        graph.parse(
            f"graph g(x: int8[n]) {{ %1 = array(int8(-128), int8(127), int8(0xff)) to [3]\nreturn y = {number} }}"
        )
    assert f"{number[number.index('(') + 1 : -1]}".lstrip("-") in str(raised.value).split("\n")[0]


@pytest.mark.parametrize(
    "line",
    [
        "strided(x) from [0, 0] by [1, 1] of [n]", "strided(x) from [n, 0] by [1, 1] of [3]",
        "strided(x) from [0, 0] by [n, 1] of [3]", "strided(y) from [0] by [1] of [1]",
        "strided(x) from [0, 0] by [0, 0] of [-1]", "slice(x) from [0, 0] by [n, 1] of [1, 3]",
        "slice(y) from [0] by [n] of [1]", "update(x, x) from [0, 0] by [n, 1] of [1, 3]",
    ],
)  # fmt: skip
def test_named_extents_where_integers_belong_are_refused(line):
    with pytest.raises(fusec.FusecError, match=r"\[F761\]"):
        graph.parse(f"graph g(x: float64[3, 3], y: float64[n]) {{ %1 = {line} return z = %1 }}")


def test_a_view_that_repeats_elements_has_named_extents():
    text = "graph g(x: float64[3], y: float64[n]) {{ %1 = strided(x) from [1] by [0, 1] of [n, {}] return z = %1 }}"
    with pytest.raises(fusec.FusecError, match=r"elements 1 to 3 of an axis of 3 \[F761\]"):
        graph.parse(text.format(3))
    graph.parse(text.format(2))


A, B = np.random.default_rng(0).random((2, 4, 4)) + np.eye(4)


@pytest.mark.parametrize(
    ("function", "call"),
    [
        (lambda a, b: a @ b.T, "matmul(a, %1)"),
        (lambda a, b: np.vecdot(a, b), "np.vecdot(x0, x1)"),
        (lambda a, b: np.einsum("ij,kj->ik", a, b), "contracted('ij', 'kj', 'ik', x0, x1)"),
        (lambda a, b: np.tensordot(a, b, axes=([0], [1])), "np.tensordot(x0, x1, axes=([0], [1]))"),
        (lambda a, b: np.sort(a, axis=0, kind="stable"), "np.sort(x0, axis=0, kind='stable')"),
        (lambda a, b: np.quantile(a, 0.3), "np.quantile(x0, 0.3)"),
        (lambda a, b: np.fft.ifft(np.fft.fft(a)), "np.fft.fft(x0)"),
        (lambda a, b: np.linalg.eigh(a), "np.linalg.eigh(x0)"),
        (lambda a, b: np.linalg.solve(a.T, b + 1) * 2, "np.linalg.solve(x0, x1)"),
        (lambda a, b: np.interp(a, b[0], b[1]), "np.interp(x0, x1, x2)"),
    ],
)
def test_calls_of_numpy_are_read_back_from_texts(function, call):
    fused = fusec.fuse(function)
    made = fused.graph(A, B)
    assert call in str(made)
    compiled = pickle.loads(pickle.dumps(graph.parse(str(made)).compile()))
    assert str(compiled.graph()) == str(made)
    wanted, found = fused(A, B), compiled(*(A, B)[: len(made.built().inputs)])
    if not isinstance(wanted, tuple):
        wanted, found = (wanted,), (found,)
    for ours, their in zip(found, map(np.asarray, wanted), strict=True):
        assert (ours.tobytes(), ours.dtype, ours.strides) == (their.tobytes(), their.dtype, their.strides)


@pytest.mark.parametrize(
    "call",
    [
        "np.load('x', x0)", "np.sort", "np.sort(x0", "np.sort(x1)", "np.sort(__import__('os'))", "np.sort(y0)",
        "np.sort(x0) in 3", "np.sort(x0) in ((1, 2),)", "np.sort(*x0)", "np.sort(x0, axis=1 + 1)", "eval(x0)",
        "(lambda x: x)(x0)", "np.sort(" + "(" * 5000 + "x0", "np.sort(x)", "np.sort(x0).tofile('x')", "",
    ],
)  # fmt: skip
def test_calls_that_are_none_of_numpys_are_refused(call):
    with pytest.raises(fusec.FusecSyntaxError, match=r"is not given \[F762\]"):
        graph.parse(f'graph g(x: int8[3]) {{ %1 = call "{call}"(x) as int8[3] result 0 return y = %1 }}')


@pytest.mark.parametrize(
    ("call", "place"),
    [
        ("np.matmul(x0, x1, out=x1)", "x1, as out="), ("np.matmul(x0, x1, x1)", "x1, as argument 2"),
        ("np.vecdot(x0, x1, out=(x0,))", "x0, as out="), ("np.dot(x1, x0, out=x0)", "x0, as out="),
        ("np.dot(x0, x1, x1)", "x1, as argument 2"), ("np.fft.fft(x0, None, -1, None, x1)", "x1, as argument 4"),
        ("np.fft.fft(x0, out=x1)", "x1, as out="), ("np.einsum('ij->ij', x0, out=x1)", "x1, as out="),
        ("np.median(x0, None, x1)", "x1, as argument 2"), ("np.percentile(x0, 50, out=x1)", "x1, as out="),
        ("np.matmul(x0, x0, out=n1)", "n1, as out="),
    ],
)  # fmt: skip
def test_calls_of_numpy_that_write_to_operands_are_refused(call, place):
    line = f'%1 = call "{call}"(a, b) as float64[2, 2] result 0'
    with pytest.raises(fusec.FusecSyntaxError, match=r"\[F762\]\n --> graph, line 1") as raised:
        graph.parse(f"graph g(a: float64[2, 2], b: float64[2, 2]) {{ {line} return y = %1 }}")
    assert place in str(raised.value)


@pytest.mark.parametrize("call", ["np.median(x0, None, None, True)", "np.percentile(x0, 50, overwrite_input=True)"])
def test_ranks_in_texts_leave_operands_as_they_are(call):
    text = f'graph g(x: float64[3]) {{ %1 = call "{call}"(x) as float64[] result 0 return y = %1 }}'
    x = np.array([3.0, 1.0, 2.0])
    assert graph.parse(text).compile()(x) == 2
    np.testing.assert_array_equal(x, [3, 1, 2])


def test_calls_of_numpy_with_other_operands_are_refused():
    text = 'graph g(x: int8[3]) {{ %1 = call "np.sort(x0{})"({}) as int8[3] result 0 return y = %1 }}'
    x = np.array([3, 1, 2], "int8")
    with pytest.raises(fusec.FusecError, match=r"of 2 operands \[F763\]"):
        graph.parse(text.format("", "x, x")).compile()(x)
    with pytest.raises(fusec.FusecError, match=r"of an array with 1 axis as a number \[F763\]"):
        graph.parse(text.format("", "x").replace("x0", "i0")).compile()(x)


def test_texts_are_read_in_processes_that_have_fused_nothing():
    code = (
        "from fusec import graph; import numpy as np;"
        "text = 'graph g(x: int8[3]) { %1 = call \"np.sort(x0)\"(x) as int8[3] result 0 return y = %1 }';"
        "print(graph.parse(text).compile()(np.array([3, 1, 2], 'int8')))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[1 2 3]\n"


def test_products_have_the_names_of_extents():
    fused = fusec.fuse(lambda x, w, b: np.maximum(x @ w + b, 0) @ w.T)
    made = fused.graph(np.ones((3, 4)), np.ones((4, 5)), np.ones(5))
    assert "matmul(x, w)" in str(made)
    compiled = graph.parse(str(made)).compile()
    rng = np.random.default_rng(0)
    for n, m, k in ((3, 4, 5), (2, 7, 3), (1, 2, 1)):
        given = rng.random((n, m)), rng.random((m, k)) - 0.5, rng.random(k)
        np.testing.assert_array_equal(compiled(*given), fused(*given))
        np.testing.assert_allclose(compiled(*given), np.maximum(given[0] @ given[1] + given[2], 0) @ given[1].T)


@pytest.mark.parametrize(
    ("left", "right", "shape"),
    [
        (("n", "m"), ("m", 2), "[n, 2]"), (("m",), ("m",), "[]"), (("m",), ("k", "m", 3), "[k, 3]"),
        (("k", 1, "n", "m"), (5, "m", "n"), "[k, 5, n, n]"), (("n", "m"), ("m",), "[n]"),
    ],
)  # fmt: skip
def test_products_have_the_shapes_of_numpy(left, right, shape):
    g = graph.Graph()
    value = g.input("x", "float32", left) @ g.input("y", "float32", right)
    assert f"float32{shape}" in repr(value)
    g.output(value, "z")
    assert str(graph.parse(str(g))) == str(g)
    sizes = {"n": 3, "m": 4, "k": 2}
    x, y = (np.ones([sizes.get(each, each) for each in shape], "f4") for shape in (left, right))
    np.testing.assert_array_equal(g.compile()(x, y), x @ y)


def test_products_that_numpy_has_not_are_refused():
    g = graph.Graph()
    x, y, i = g.input("x", "float32", ("n", 3)), g.input("y", "float32", ("m",)), g.input("i", "int8", (3,))
    for wrong, code in ((lambda: x @ y, "F761"), (lambda: x @ i, "F760"), (lambda: x @ 2.0, "F761")):
        with pytest.raises(fusec.FusecError) as raised:
            wrong()
        assert raised.value.code == code
