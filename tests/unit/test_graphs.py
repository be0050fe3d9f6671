"""Graphs of arrays: what compiles runs in place where it may, and every mistake is an error that says the cure."""

import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import fusec
from fusec import graph
from fusec.fusion import graph_calls


def affine():
    made = graph.Graph("affine")
    x, b = made.input("x", "float32", ("n", 3)), made.input("b", "float32", (3,))
    made.output(made.apply("maximum", x * 2.0 + b, 0.0), "y")
    return made


def heat(donated):
    made = graph.Graph("heat")
    u = made.input("u", "float64", ("n",), donated=donated)
    made.output(u.updated(slice(1, -1), u[1:-1] + (u[:-2] - 2.0 * u[1:-1] + u[2:]) * 0.25))
    return made.compile()


def test_a_graph_is_one_kernel_for_all_sizes_and_its_text_reads_back():
    made = affine()
    f, again = made.compile(), graph.parse(str(made)).compile()
    rng = np.random.default_rng(1)
    for n in (0, 1, 5, 1000):
        x, b = rng.standard_normal((n, 3)).astype("f4"), rng.standard_normal(3).astype("f4")
        wanted = np.maximum(x * np.float32(2) + b, np.float32(0))
        for each in (f, again, pickle.loads(pickle.dumps(f))):
            np.testing.assert_array_equal(each(x, b), wanted)
    assert f.explain(x, b).launches == 1
    assert str(graph.parse(str(made))) == str(made)


def test_results_go_to_out_and_to_donated_inputs():
    f = affine().compile()
    x, b, out = np.ones((4, 3), "f4"), np.zeros(3, "f4"), np.empty((4, 3), "f4")
    for _ in range(3):
        assert f(x, b, out=out) is out
        assert (out == 2).all()
        x += 1
        assert (f(x, b, out=x) == 4).all()
        x[...] = 1
    u = np.arange(9.0) ** 2
    wanted = u.copy()
    wanted[1:-1] += (u[:-2] - 2 * u[1:-1] + u[2:]) * 0.25
    kept = u.copy()
    found = heat(donated=False)(u)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(u, kept)
    assert heat(donated=True)(u) is u
    np.testing.assert_array_equal(u, wanted)


def test_sizes_are_numbers_that_kernels_take():
    made = graph.Graph("mean")
    x = made.input("x", "float64", ("n", "m"))
    made.output(x.sum(axis=1) / made.number("m").astype("float64"))
    made.output(made.number(x.shape[0] * 2 - 1))
    f = made.compile()
    for shape in ((2, 3), (5, 7)):
        x = np.arange(np.prod(shape), dtype=float).reshape(shape)
        mean, count = f(x)
        np.testing.assert_array_equal(mean, x.sum(axis=1) / shape[1])
        assert (count, count.dtype) == (2 * shape[0] - 1, np.int64)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64", "bool"])
def test_every_dtype_is_stored_and_computed_as_kernels_do(dtype):
    made = graph.Graph("mixed")
    x = made.input("x", dtype, ("n",))
    made.output(x ^ x if dtype == "bool" else x * x + x)
    made.output(x.astype("float32"))
    first, second = made.compile()(x := np.ones(5, made._inputs[0].type.numpy))
    assert first.dtype == x.dtype
    assert second.tolist() == [1.0] * 5


def test_narrow_floats_are_rounded_after_each_operation():
    made = graph.Graph("narrow")
    x = made.input("x", "float16", ("n",))
    made.output(x + x * x)
    value = np.full(3, 1.0009766, "f2")
    np.testing.assert_array_equal(made.compile()(value), value + value * value)


def test_texts_are_those_of_a_call_with_the_sizes_given():
    f = affine().compile()
    x, b = np.ones((2, 3), "f4"), np.zeros(3, "f4")
    assert "kernels" in str(fusec.explain(f, x, b))
    assert "__global__" in f.source("cuda", n=10)
    assert "kernel void" in f.source("metal")
    assert "define" in f.source("llvm")
    with pytest.raises(fusec.FusecError, match="no keyword 'k'"):
        f.source("cuda", k=10)
    np.testing.assert_array_equal(fusec.simulate(f)(x, b), f(x, b))


def mistakes():
    made = graph.Graph("wrong")
    x, n = made.input("x", "float32", ("n", 3)), made.input("i", "int32", ("m",))
    return made, x, n


@pytest.mark.parametrize(
    ("code", "make"),
    [
        ("F760", lambda g, x, i: x + i),
        ("F760", lambda g, x, i: i / i),
        ("F760", lambda g, x, i: i + 0.5),
        ("F760", lambda g, x, i: g.apply("maximun", x, x)),
        ("F760", lambda g, x, i: g.apply("maximum", x)),
        ("F760", lambda g, x, i: g.apply("where", x, x, x)),
        ("F760", lambda g, x, i: x.fold("subtract")),
        ("F760", lambda g, x, i: g.input("y", "float33", ())),
        ("F179", lambda g, x, i: g.input("y", "int8", ()) + 1000),
        ("F179", lambda g, x, i: x + 10**400),
        ("F179", lambda g, x, i: g.constant(300, "int8")),
        ("F179", lambda g, x, i: g.constant(np.int64(-1), "uint8")),
        ("F179", lambda g, x, i: g.constant(1e300, "int8")),
        ("F179", lambda g, x, i: g.constant(np.float32("nan"), "int64")),
        ("F179", lambda g, x, i: g.constant(2.0**63, "int64")),
        ("F179", lambda g, x, i: g.constant(10**400, "float64")),
        ("F179", lambda g, x, i: g.array([300, 2], "int8")),
        ("F179", lambda g, x, i: g.array([[2], [-1]], "uint64")),
        ("F179", lambda g, x, i: g.array([1.0, np.inf], "int32")),
        ("F179", lambda g, x, i: g.array([1, 2**70], "uint64")),
        ("F760", lambda g, x, i: g.constant([1, 2], "int8")),
        ("F761", lambda g, x, i: x + i.astype("float32")),
        ("F761", lambda g, x, i: x.reshape(-1, 7)),
        ("F761", lambda g, x, i: x.transpose(0, 0)),
        ("F761", lambda g, x, i: x.sum(axis=2)),
        ("F761", lambda g, x, i: x[:, 5]),
        ("F761", lambda g, x, i: x[0, 0, 0]),
        ("F761", lambda g, x, i: x[np.zeros(3)]),
        ("F761", lambda g, x, i: x.broadcast_to((3,))),
        ("F761", lambda g, x, i: g.input("y", "int8", ("2n",))),
        ("F764", lambda g, x, i: graph.Graph("other").input("y", "float32", ()) + x),
        ("F764", lambda g, x, i: g.input("x", "int8", ())),
        ("F764", lambda g, x, i: graph.Graph("no name")),
        ("F764", lambda g, x, i: g.compile()),
        ("F764", lambda g, x, i: bool(x)),
        (
            "F764",
            lambda g, x, i: (
                g.call("f", np.sin, x, results=[("int8", ())]),
                g.call("f", abs, x, results=[("int8", ())]),
            ),
        ),
        ("F761", lambda g, x, i: g.call("f", np.sin, x, results=[])),
    ],
)
def test_mistakes_have_a_code_and_a_hint(code, make):
    with pytest.raises(fusec.FusecError) as caught:
        make(*mistakes())
    assert caught.value.code == code
    assert caught.value.hint


def test_constants_that_a_dtype_holds_are_what_they_were():
    g = graph.Graph()
    for dtype in ("int8", "uint8", "int64", "uint64"):
        info = np.iinfo(dtype)
        for each in (info.min, info.max, np.array([info.min, info.max], object), np.array([info.max], dtype)):
            g.output(g.array(each, dtype) if np.ndim(each) else g.constant(each, dtype))
    g.output(g.constant(-128.9, "int8"))
    g.output(g.array([2.0**63, 127.0], "uint64"))
    g.output(g.array([1e300, np.inf], "float32"))
    g.output(g.constant(300, "bool"))
    found = graph.parse(str(g)).compile()()
    for at, dtype in enumerate(("int8", "uint8", "int64", "uint64")):
        info = np.iinfo(dtype)
        for ours, wanted in zip(found[4 * at :], (info.min, info.max, [info.min, info.max], [info.max]), strict=False):
            np.testing.assert_array_equal(ours, np.array(wanted, dtype), strict=True)
    assert (found[16] == -128, found[17].tolist() == [2**63, 127], found[19] == 1) == (True, True, True)
    np.testing.assert_array_equal(found[18], [np.inf, np.inf])


def test_arguments_of_another_dtype_have_a_cure_that_applies():
    compiled = fusec.fuse(lambda x, k: x * k).graph(X := np.ones(3), 3).compile()
    with pytest.raises(
        fusec.FusecTypeError, match=r"'k' of graph .* is int64, given a Python float \[F763\]"
    ) as raised:
        compiled(X, 3.0)
    assert raised.value.hint == "convert the argument: np.asarray(k, dtype='int64')"
    with pytest.raises(fusec.FusecTypeError, match=r"'x' of graph .* is float64, given float32 \[F763\]") as raised:
        compiled(X.astype("f4"), 3)
    assert raised.value.hint == "convert the argument: x.astype('float64')"
    np.testing.assert_array_equal(compiled(X.astype("f4").astype("float64"), np.asarray(3.0, dtype="int64")), X * 3)


def test_functions_run_between_the_kernels_and_are_told_apart_by_their_results():
    made = graph.Graph("solved")
    a, b = made.input("a", "float64", ("n", "n")), made.input("b", "float64", ("n", "k"))
    x = made.call("solve", np.linalg.solve, a + a, b * 2.0, results=[("float64", ("n", "k"))])
    first, last = made.call("ends", lambda x: (x[0].copy(), x[-1].copy()), x, results=[("float64", ("k",))] * 2)
    made.output(first - last, "d")
    made.output(x + 1.0, "x")
    functions = {"solve": np.linalg.solve, "ends": lambda x: (x[0].copy(), x[-1].copy())}
    for f in (made.compile(), graph.parse(str(made), functions).compile()):
        for n, k in ((3, 2), (5, 1)):
            rng = np.random.default_rng(n)
            a, b = rng.standard_normal((n, n)), rng.standard_normal((n, k))
            wanted = np.linalg.solve(a + a, b * 2.0)
            d, x = f(a, b)
            np.testing.assert_array_equal(x, wanted + 1.0)
            np.testing.assert_array_equal(d, wanted[0] - wanted[-1])
    with pytest.raises(fusec.FusecError, match="calls functions"):
        pickle.dumps(made.compile())
    with pytest.raises(np.linalg.LinAlgError):
        f(np.zeros((2, 2)), np.ones((2, 1)))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (lambda x: x[1:], r"gave float64\[2\]"),
        (lambda x: x.astype("f4"), "gave float32"),
        (lambda x: (x, x), "2 results"),
    ],
)
def test_a_function_that_gives_something_else_is_refused(given, text):
    made = graph.Graph("wrong")
    made.output(made.call("g", given, made.input("x", "float64", ("n",)), results=[("float64", ("n",))]))
    with pytest.raises(fusec.FusecError, match=text) as caught:
        made.compile()(np.ones(3))
    assert caught.value.code == "F763"


def test_reshapes_copy_where_strides_cannot_express_them():
    made = graph.Graph("reshaped")
    x = made.input("x", "float64", (6, 4))
    made.output(x.T.reshape(24) * 1.0)
    made.output((x * 2.0)[::-1].reshape(-1))
    f = made.compile()
    for x in (np.arange(24.0).reshape(6, 4), np.arange(24.0).reshape(4, 6).T, np.arange(48.0).reshape(6, 8)[:, ::2]):
        for one, other in zip(f(x), (x.T.reshape(24), (x * 2)[::-1].reshape(24)), strict=True):
            np.testing.assert_array_equal(one, other)


def test_outputs_that_share_memory_and_slices_outside_are_refused():
    made = graph.Graph("two")
    x = made.input("x", "float64", ("n",))
    made.output(x * 2)
    made.output(x + 1)
    room = np.zeros(4)
    for out in ((room[:3], room[1:]), (room, room)):
        with pytest.raises(fusec.FusecError):
            made.compile()(np.arange(3.0), out=out)
    late = graph.parse("graph f(x: float32[n]) { %1 = slice(x) from [5] by [1] of [n] return r = %1 }").compile()
    with pytest.raises(fusec.FusecError, match="a slice of 5 elements from 5"):
        late(np.arange(5, dtype="f4"))
    with pytest.raises(fusec.FusecError, match="iteration over"):
        list(x)
    assert len(list(graph.Graph("rows").input("x", "int8", (3, "n")))) == 3


def test_sizes_that_no_input_decides_are_refused_by_name():
    made = graph.Graph("wrong")
    made.output(made.input("x", "float32", ("n",)).reshape(1, -1).broadcast_to(("k", "n")))
    with pytest.raises(fusec.FusecError, match="axis of size 'k'"):
        made.compile()


def test_errors_of_graphs_say_what_is_meant():
    made = graph.Graph("meant")
    x = made.input("x", "float32", ("n", "m"))
    with pytest.raises(fusec.FusecError, match=r"n is no multiple of 4 for all sizes(.|\n)*such as '4\*n'"):
        x.reshape(-1, 4)
    with pytest.raises(fusec.FusecError, match="write 'maximum'; folds are by"):
        x.fold("max")
    made.output(x + made.input("y", "float32", ("n", "m")))
    compiled = made.compile()
    assert (compiled.__name__, str(inspect.signature(compiled))) == ("meant", "(x, y, *, out=None)")
    with pytest.raises(fusec.FusecError, match=r"where (m is 3 and n is 2|n is 2 and m is 3);"):
        compiled(np.ones((2, 3), "f4"), np.ones((3, 3), "f4"))


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ((np.ones((2, 4), "f4"), np.ones(3, "f4")), r"has shape \[n, 3\], where n is 2; given \[2, 4\]"),
        ((np.ones((2, 3)), np.ones(3, "f4")), "is float32, given float64"),
        ((np.ones((2, 3), "f4"),), "takes 2 arguments, given 1"),
        ((1.0, 2.0), "has shape|without arrays|is no array"),
    ],
)
def test_arguments_unlike_the_inputs_are_refused(args, text):
    with pytest.raises(fusec.FusecError, match=text) as caught:
        affine().compile()(*args)
    assert caught.value.code == "F763"


def test_a_slice_outside_of_this_calls_array_is_refused():
    made = graph.Graph("late")
    made.output(made.input("x", "int32", ("n",))[5:])
    f = made.compile()
    assert f(np.arange(7, dtype="i4")).tolist() == [5, 6]
    with pytest.raises(fusec.FusecError, match="a slice of -2 elements"):
        f(np.arange(3, dtype="i4"))
    assert f(np.arange(6, dtype="i4")).tolist() == [5]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("graph f(x: float32[n]) { return y = %1 }", "%1 is not defined"),
        ("graph f(x: float32[n]) { %1 = add(x) return y = %1 }", "takes 2 operands"),
        ("graph f(x: float33[n]) { return y = x }", "no dtype 'float33'"),
        ("graph f(x: float32[n]) { %1 = reshape(x, x) to [n] return y = %1 }", "2 operands where one belongs"),
        ("graph f(x: float32[n]) { %1 = add(x, x) %1 = add(x, x) return y = %1 }", "defined twice"),
        ("graph f(x: float32[n // 0]) { return y = x }", "divided by 0"),
        ("graph f(x: float32[n]) {", "ends too early"),
        ("graph f(x: float32[n]) { return y = x } ;", "unexpected ';'"),
        ("graph f(x: float32[n]) { %1 = call g(x) as int8[] result 0 return y = %1 }", "'g' is not given"),
    ],
)
def test_texts_with_mistakes_are_refused_at_their_place(text, found):
    with pytest.raises(fusec.FusecError) as caught:
        graph.parse(text)
    assert found in str(caught.value)


def test_operators_and_numbers_of_numpy_are_those_of_arrays():
    g = graph.Graph("operators")
    x, i = g.input("x", "float32", ("n",)), g.input("i", "int64", ("n",))
    g.output(2.0**x)
    g.output(x // np.float32(0.3) + x % 0.3)
    g.output(-7 // i + i % np.int64(3) + i**2)
    a, b = np.linspace(0, 3, 5, dtype="float32"), np.array([1, -2, 3, 4, -5])
    power, rest, integers = g.compile()(a, b)
    np.testing.assert_allclose(power, 2**a, rtol=1e-6)
    np.testing.assert_array_equal(rest, a // np.float32(0.3) + a % np.float32(0.3))
    np.testing.assert_array_equal(integers, -7 // b + b % 3 + b**2)
    with pytest.raises(fusec.FusecError, match="a NumPy number of float64 where float32 is expected"):
        x + np.float64(1)


def test_extents_are_texts_and_tell_the_sizes_they_are_made_of():
    g = graph.Graph("halves")
    x, y = g.input("x", "int32", ("2*n + 1",)), g.input("y", "int32", ("m*(n + 1)", "n"))
    g.output(x[0:1] + x[1:].reshape(2, "n").sum(axis=0) + y.sum(axis=0))
    assert str(graph.parse(str(g))) == str(g)
    compiled = g.compile()
    np.testing.assert_array_equal(compiled(np.arange(7, dtype="int32"), np.ones((8, 3), "int32")), [13, 15, 17])
    with pytest.raises(fusec.FusecError, match=r"has shape \[2 \* n \+ 1\], where n is 3; given \[6\]"):
        compiled(np.arange(6, dtype="int32"), np.ones((8, 3), "int32"))


def test_calls_name_arguments():
    compiled = graph.parse("graph less(x: int32[n], y: int32[n]) { %1 = subtract(x, y) return z = %1 }").compile()
    x, y = np.array([5, 6], "int32"), np.array([1, 1], "int32")
    np.testing.assert_array_equal(compiled(x, y=y), [4, 5])
    np.testing.assert_array_equal(compiled(y=x, x=y), [-4, -5])
    for args, named, text in (
        ((x,), {"x": y}, "no input 'x' that is not given already"),
        ((), {"x": y}, "without its input 'y'"),
        ((x,), {"q": y}, "no input 'q'"),
    ):
        with pytest.raises(fusec.FusecError, match=text):
            compiled(*args, **named)


def test_read_only_arrays_are_not_donated():
    compiled = graph.parse("graph next(x: int32[n] donated) { %1 = add(x, int32(1)) return x = %1 }").compile()
    x = np.arange(3, dtype="int32")
    fixed = x.copy()
    fixed.flags.writeable = False
    for _ in range(2):
        np.testing.assert_array_equal(compiled(fixed), [1, 2, 3])
        np.testing.assert_array_equal(fixed, [0, 1, 2])
    assert compiled(x) is x


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda x, i: x.padded([(1, 1)], "wrap"), "around an array of 2 axes"),
        (lambda x, i: x.padded([(0, 0)] * 3), "around an array of 2 axes"),
        (lambda x, i: x.padded(1), "1 around an array"),
        (lambda x, i: x.padded([(1, 1), (1.5, 0)]), "around an array"),
        (lambda x, i: x.padded([1, 1]), "around an array"),
        (lambda x, i: x.rolled((1, 1), (0, 1)), r"a roll by \(1, 1\) along axis \(0, 1\)"),
        (lambda x, i: x.rolled(1, [0]), r"along axis \[0\]"),
        (lambda x, i: x.take((i, i)), "where int64 is expected"),
        (lambda x, i: x.take(i, 1.5), "1.5 where int64 is expected"),
        (lambda x, i: x.broadcast_to(None), "the extent None"),
    ],
)
def test_what_elements_are_taken_or_moved_by_is_checked(made, text):
    g = graph.Graph("elements")
    x, i = g.input("x", "float32", ("n", "m")), g.input("i", "int32", ("k",))
    with pytest.raises(fusec.FusecError, match=text):
        made(x, i)
    assert str(x.rolled(np.int64(2), -1)) == str(x)
    assert x.padded(np.ones((2, 2), int)).shape == x.padded([[1, 1], [2, 0]]).shape
    assert g.positions(4, 0).shape == (4,)


def test_elements_are_taken_moved_and_counted():
    g = graph.Graph("elements")
    x, to = g.input("x", "float32", ("n",)), g.input("to", "int32", ("m",))
    g.output(x.take(to), "from")
    g.output(x.rolled(2) + x.padded([(1, 2)], "mirror")[1:-2])
    g.output(x.padded([(2, 0)], number=7))
    g.output(g.array([1.5, 2], "float32").take(-1) * g.positions((3, 2), 1).astype("float32"))
    read = graph.parse(str(g))
    assert str(read) == str(g)
    a, i = np.arange(6, dtype="float32"), np.array([0, -1, 3], "int32")
    taken, moved, padded, counted = read.compile()(a, i)
    np.testing.assert_array_equal(taken, a[i])
    np.testing.assert_array_equal(moved, np.roll(a, 2) + a)
    np.testing.assert_array_equal(padded, np.pad(a, (2, 0), constant_values=7))
    np.testing.assert_array_equal(counted, [[0, 2]] * 3)
    with pytest.raises(IndexError, match="index -7 is out of bounds for axis 0 with size 6"):
        read.compile()(a, i - 7)


def test_an_index_of_a_text_never_leaves_the_array():
    text = "graph far(x: int8[n], i: int64[m]) { %1 = take(x at i) of [m] else int8(0) return y = %1 }"
    found = graph.parse(text).compile()(np.arange(4, dtype="int8"), np.array([-(2**40), 2, 2**40]))
    np.testing.assert_array_equal(found, [0, 2, 3])


def test_a_read_only_output_of_a_graph_is_named() -> None:
    example = graph.Graph("example")
    example.output(example.input("x", "float64", ("n",)) * 2, "doubled")
    out = np.zeros(3)
    out.flags.writeable = False
    with pytest.raises(fusec.FusecError, match="out= for 'doubled' of graph 'example' is read-only"):
        example.compile()(np.ones(3), out=out)


def test_graphs_are_traced_once_for_all_sizes(monkeypatch):
    text = """graph rows(x: float64[n, m]) {
        %1 = slice(x) from [1, m - 1] by [1, -1] of [n - 2, m]
        %2 = fold add(%1) along [1]
        %3 = convert(size(n)) to float64
        %4 = divide(%2, %3)
        %5 = reshape(%4) to [n - 2]
        return y = %5
    }"""
    compiled = graph.parse(text).compile()
    rng = np.random.default_rng(0)
    compiled(rng.normal(size=(5, 3)))
    monkeypatch.setattr(graph_calls, "Lowering", None)
    for shape in ((7, 6), (100, 3), (5, 3)):
        x = rng.normal(size=shape)
        np.testing.assert_allclose(compiled(x), x[1:-1].sum(axis=1) / len(x))
    monkeypatch.undo()
    np.testing.assert_allclose(compiled(np.ones((3, 3))), [1])
    with pytest.raises(fusec.FusecError, match="a slice of -1 elements"):
        compiled(np.ones((1, 3)))


def test_declared_extents_are_asked_at_every_call():
    compiled = graph.parse("graph three(x: int32[3], y: int32[n]) { %1 = add(x, int32(1)) return z = %1 }").compile()
    x = np.arange(4, dtype="int32")
    np.testing.assert_array_equal(compiled(x[:3], x), [1, 2, 3])
    with pytest.raises(fusec.FusecError, match=r"has shape \[3\]; given \[4\]"):
        compiled(x, x[:2])


def test_graphs_without_inputs_run() -> None:
    made = graph.Graph("constants")
    made.output(made.array([1, 2, 3], "float32") * 2, "double")
    run = made.compile()
    for _ in range(3):
        np.testing.assert_array_equal(run(), np.array([2, 4, 6], "float32"), strict=True)
    kept = np.zeros(3, "float32")
    assert run(out=kept) is kept
    assert kept.tolist() == [2, 4, 6]
    with pytest.raises(TypeError, match=r"takes 0 arguments, given 2(.*\n)+.*no inputs"):
        run(kept, kept)


@pytest.mark.parametrize(
    ("mistake", "hint"),
    [
        (lambda g, x: x.max(1), r"x\.fold\('maximum', axis\)"),
        (lambda g, x: x.cumsum(1), r"x\.scan\('add', axis\)"),
        (lambda g, x: x.exp(), r"g\.apply\('exp', x\)"),
        (lambda g, x: x.shap, "'shape'"),
        (lambda g, x: x + np.ones(3), r"g\.array\(values, 'float32'\)"),
        (lambda g, x: x.__setitem__(0, 1), r"x = x\.updated\(index, part\)"),
        (lambda g, x: bool(x), r"g\.apply\('where'"),
        (lambda g, x: x[:, 5], "index 5 is out of bounds for axis 1 of 3 elements"),
        (lambda g, x: x[:, -4], "index -4 is out of bounds for axis 1 of 3 elements"),
        (lambda g, x: g.compile(), r"g\.output\(value, name\)"),
        (lambda g, x: graph.parse("graph a(x: float32[n]) { return o = exp(x) }"), r"%1 = exp\(x\)"),
    ],
)
def test_mistakes_have_hints_that_graphs_understand(mistake: Any, hint: str) -> None:
    made = graph.Graph("g")
    with pytest.raises((AttributeError, TypeError, ValueError, SyntaxError), match=hint):
        mistake(made, made.input("x", "float32", ("n", 3)))
