"""Decorated functions behave like functions of Python, and like NumPy's functions of arrays."""

import importlib.util
import inspect
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import fusec
from fusec.errors import FusecError

HERE = Path(__file__).parent


def _module():
    spec = importlib.util.spec_from_file_location("python_module", HERE / "python_module.py")
    found = importlib.util.module_from_spec(spec)
    sys.modules["python_module"] = found
    spec.loader.exec_module(found)
    return found


m = _module()
X = np.linspace(-2, 2, 7, dtype="float32")


def test_a_function_of_scalars_runs_for_every_element_in_its_dtype():
    import math

    wanted = [0.5 * float(x) * (1 + math.erf(float(x) * m.SQRT1_2)) for x in X]
    for dtype, tolerance in (("float32", 1e-6), ("float64", 1e-14)):
        found = m.gelu(X.astype(dtype))
        assert found.dtype == dtype
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def test_numbers_alone_give_a_numpy_scalar():
    assert isinstance(m.gelu(1.0), np.float64)
    assert m.gelu(1) == m.gelu(1.0)
    assert type(m.Holder.twice(np.float32(1.5))) is np.float32
    assert m.Holder().twice(True) == 2


def test_python_numbers_adapt_and_numpy_scalars_do_not():
    f = fusec.elementwise("def f(x, y): return x * y")
    for _ in range(3):  # through Python, then through native entries
        assert f(X, 2.0).dtype == f(X, 2).dtype == f(X, True).dtype == np.float32
        assert f(X, np.float64(2)).dtype == np.float64
        assert f(np.arange(3), 2.5).dtype == np.float64
        assert f(np.arange(3), 2).dtype == np.int64
        assert f(np.arange(3, dtype="uint8"), 2).dtype == np.uint8
    with pytest.raises(FusecError, match="300 does not fit uint8"):
        f(np.arange(3, dtype="uint8"), 300)


def test_a_number_used_as_two_types_is_each_of_them():
    f = fusec.elementwise("def f(x, y): return x * y, y / 3, y")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a, b, c = f(X, 2)
    np.testing.assert_array_equal(a, X * 2)
    assert (b.dtype, c.dtype) == (np.float64, np.int64)
    np.testing.assert_array_equal(b, np.full(7, 2 / 3))


def test_arguments_go_by_position_name_and_default():
    want = X + np.float32(1)
    for given in (m.both(X), m.both(x=X), m.both(X, 1.0), m.both(X, y=1.0), m.both(y=1.0, x=X), m.both(X, 1)):
        np.testing.assert_array_equal(given[0], want)
        assert given[1].dtype == np.float32
    assert [each.tolist() for each in m.both(3, y=np.ones(2))] == [[4.0, 4.0], [2.0, 2.0]]


def test_an_omitted_default_is_no_output_given_by_position():
    for _ in range(4):
        total, _ = m.both(X)
        np.testing.assert_array_equal(total, X + 1)
    y = X.copy()
    total, _ = m.both(X, y)
    np.testing.assert_array_equal(total, 2 * X)
    np.testing.assert_array_equal(y, X)


def test_outputs_may_be_given():
    out = np.empty(7, "float32")
    assert m.gelu(X, out=out) is out
    np.testing.assert_array_equal(out, m.gelu(X))
    wide = np.empty(7)
    np.testing.assert_array_equal(m.gelu(X, wide), m.gelu(X).astype("float64"))
    a, b = np.empty(7, "float32"), np.empty(7, "float32")
    assert m.both(X, 2.0, out=(a, b))[1] is b
    inside = X.copy()
    assert m.gelu(inside, out=inside) is inside
    np.testing.assert_array_equal(inside, m.gelu(X))


def test_arrays_broadcast_and_strides_do_not_matter():
    f = fusec.elementwise("def f(x, y): return x - y")
    a, b = np.arange(12.0).reshape(3, 4), np.arange(3.0)[:, None]
    np.testing.assert_array_equal(f(a, b), a - b)
    np.testing.assert_array_equal(f(a[::-1, ::2].T, b.T[:, :1]), a[::-1, ::2].T - b.T[:, :1])
    assert f(np.empty((0, 3)), 1.0).shape == (0, 3)


def test_data_dependent_loops_end_where_they_should():
    def reference(re, im, limit):
        z, c = 0j, complex(re, im)
        for n in range(limit):
            if z.real * z.real + z.imag * z.imag > 4:
                return n
            z = z * z + c
        return limit

    re, im = np.linspace(-2, 1, 13)[None, :], np.linspace(-1.5, 1.5, 11)[:, None]
    found = m.escape(re, im)
    wanted = [[reference(float(x), float(y), 50) for x in re[0]] for y in im[:, 0]]
    np.testing.assert_array_equal(found, wanted)
    assert "mandelbrot" in m.escape.source("cuda")


def test_names_are_constants_from_the_definition_on(monkeypatch):
    f = fusec.elementwise(m.half)
    monkeypatch.setattr(m, "SQRT1_2", 0.0)
    assert m.gelu(1.0) != 0.5
    assert f(3.0) == 1.5
    assert m.later(4.0) == 4.0  # what it calls is defined below it


def test_closures_are_captured():
    assert m.scaled(3)(2) == 6
    assert m.scaled(np.float32(0.5))(X).dtype == np.float32
    assert m.scaled(0.5)(np.arange(3)).tolist() == [0.0, 0.5, 1.0]


def test_annotations_fix_dtypes():
    f = fusec.elementwise("def f(x: float32, y: 'np.int16' = 2) -> float64:\n    t: int32 = x\n    return t * y")
    found = f(X)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, X.astype("int32") * 2.0)
    assert f(2.5, 3) == 6.0
    with pytest.raises(FusecError, match="is declared float32"):
        f(np.ones(3))
    assert "float* x" in f.source("cuda")


def test_metadata_is_that_of_the_function():
    assert m.gelu.__name__ == "gelu"
    assert m.gelu.__doc__ == "The Gaussian error linear unit."
    assert m.gelu.__module__ == "python_module"
    assert m.gelu.__wrapped__(0.0) == 0.0
    assert str(inspect.signature(m.escape)) == "(real, imag, limit=50)"
    assert "gelu" in repr(m.gelu)


def test_a_method_is_told_to_be_static():
    class Model:
        @fusec.elementwise
        def scaled(self, x):
            return x * 2

        @staticmethod
        @fusec.elementwise
        def doubled(x):
            return x * 2

    with pytest.raises(FusecError, match="is missing the argument 'x'") as caught:
        Model().scaled(np.ones(3))
    assert "leave 'self' out and write @staticmethod above the decorator" in caught.value.hint
    assert Model().doubled(np.ones(3)).tolist() == [2, 2, 2]


def test_functions_pickle_by_their_source():
    code = (
        "import pickle, sys; import numpy as np; f, g = pickle.loads(sys.stdin.buffer.read());"
        "print(f(np.ones(2, 'float32')).tolist(), g(2.0), f.__name__)"
    )
    data = pickle.dumps((m.gelu, m.scaled(3)))
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
    assert done.stdout.decode().strip() == f"{m.gelu(np.ones(2, 'float32')).tolist()} 6.0 gelu"


def test_every_target_has_a_text():
    f = fusec.elementwise("def f(x, y): return np.exp(x) if x < y else y")
    for target, word in (("cuda", "__global__"), ("metal", "kernel void"), ("llvm", "define"), ("ir", "kernel f")):
        assert word in f.source(target, {"x": "float32", "y": np.float32})
    assert "float y" in f.source("cuda", {"x": "float32"}, scalars=["y"])
    with pytest.raises(FusecError, match="is missing the argument 'y'"):
        f.source("cuda", {"x": "float32"})


def test_explain_reports_a_call():
    assert "float32" in str(m.gelu.explain(X))


def test_a_notebook_has_sources():
    import linecache

    name = "<ipython-input-7-test>"
    text = "import fusec\n\n@fusec.elementwise\ndef cell(x):\n    return x + un\n"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {}
    exec(compile(text, name, "exec"), names)
    with pytest.raises(FusecError, match=r"ipython-input-7-test>, line 5, column 16"):
        names["cell"](1.0)
    del linecache.cache[name]


def test_repeated_calls_do_not_come_to_python():
    f = fusec.elementwise("def f(x, y): return x * y")
    x = np.ones(64, "float32")
    calls = []
    python = f._from_python
    f._fast = lambda *args, **kwargs: (calls.append(args), python(*args, **kwargs))[1]
    f.path.entries.chain.last = f.path.entries.chain.front = f._fast
    for _ in range(5):
        f(x, 2.0), f(x, x), f(x, 3)
    before = len(calls)
    for _ in range(5):
        f(x, 2.0), f(x, x), f(x, 3), f(x[1:], 3), f(x[1:], 2.0)
    assert len(calls) == before


def test_one_file_may_hold_functions_of_many_dtypes():
    f = fusec.elementwise("def f(x): return np.sqrt(x)")
    assert f(np.arange(4, dtype="int8")).dtype == np.float16
    for dtype in ("float16", "float32", "float64"):
        np.testing.assert_array_equal(f(np.arange(9, dtype=dtype)), np.sqrt(np.arange(9, dtype=dtype)))


def test_python_integers_known_beforehand_are_as_large_as_in_python():
    np.testing.assert_array_equal(fusec.elementwise("def f(x): return x + 2**70 - 2**70 + 2**3")(np.arange(3.0)), 8.0)
    assert fusec.elementwise("def f(x): return (2**70 // 2**68) * x")(np.arange(3, dtype="int8")).tolist() == [0, 4, 8]


def test_names_need_not_be_ascii_but_entry_points_are():
    f = fusec.elementwise("def größe(α):\n    β = 2 * α\n    return β\n")
    np.testing.assert_array_equal(f(X), 2 * X)
    assert f.source("cuda").isascii()
    with pytest.raises(FusecError, match='Invalid kernel name: "a b"'):
        fusec.elementwise("def f(x): return x", name="a b")


def test_an_argument_by_position_is_never_taken_for_a_later_one_given_by_name_before():
    blend = fusec.elementwise("def blend(x, weight=0.25, y=1.0):\n    return x * weight + y\n")
    x, y = np.random.default_rng(0).random((2, 4, 5))
    for _ in range(4):
        np.testing.assert_array_equal(blend(x, y=y), x * 0.25 + y)
        np.testing.assert_array_equal(blend(x, y), x * y + 1.0)


def test_pythons_numbers_adapt_to_numpys():
    product = fusec.elementwise(lambda x, y: x * y)
    for x, y in (
        (np.float32(1), 2.0),
        (np.int8(3), 2),
        (3, np.float16(2)),
        (np.int8(1), 2.5),
        (np.float32(1), np.int32(2)),
    ):
        for found in (product(x, y), fusec.evaluate("x*y")):
            assert (found.dtype, found) == ((x * y).dtype, x * y)
    with pytest.raises(FusecError, match="int8"):
        product(np.int8(3), 300)
