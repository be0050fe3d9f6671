"""What fused functions promise: NumPy's results, few kernels, errors that name the line."""

import pickle
import threading
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

import fusec
from fusec.errors import FusecTypeError
from fusec.fusing import fused  # fills the tables
from fusec.fusing.elementwise import SEVERAL
from fusec.fusing.tables import FUNCTIONS, METHODS


def kernels(function, *args):
    return int(dict(function.explain(*args).lines)["kernels"])


def test_element_by_element_work_is_one_kernel_of_several_outputs():
    @fusec.fuse
    def both(x, y):
        s = x + y
        return s * 2, s > 1, np.sqrt(s)

    x, y = np.arange(12.0).reshape(3, 4), np.arange(4.0)
    for ours, theirs in zip(both(x, y), ((x + y) * 2, x + y > 1, np.sqrt(x + y)), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert kernels(both, x, y) == 1


def softmax(x):
    power = np.exp(x - x.max(axis=-1, keepdims=True))
    return power / power.sum(axis=-1, keepdims=True)


def test_rows_in_cache_are_one_kernel_and_longer_ones_store_what_is_dear():
    fast = fusec.fuse(softmax)
    short, long = np.random.default_rng(0).random((4, 60)), np.random.default_rng(0).random((2, 40000))
    for x, count in ((short, 1), (long, 4)):
        np.testing.assert_allclose(fast(x), softmax(x), rtol=1e-13)
        assert kernels(fast, x) == count
    text = str(fast.explain(long))
    assert "a value of shape (2, 40000) is stored: several kernels need it, and it is dear to compute" in text
    assert text.count("exp") == 1


def test_totals_and_what_is_made_of_them_share_a_kernel():
    @fusec.fuse
    def norms(x):
        square = x * x
        return np.sqrt(square.sum(axis=0)), square.max(axis=0), x.mean(axis=0)

    x = np.arange(12, dtype="float32").reshape(3, 4)
    for ours, theirs in zip(norms(x), (np.sqrt((x * x).sum(0)), (x * x).max(0), x.mean(0)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
        assert ours.dtype == theirs.dtype
    assert kernels(norms, x) == 1


def test_a_repeated_value_that_is_dear_is_stored_once():
    @fusec.fuse
    def scaled(x, y):
        return np.exp(x)[:, None] * y

    x, y = np.arange(3.0), np.ones((3, 4))
    np.testing.assert_allclose(scaled(x, y), np.exp(x)[:, None] * y, rtol=1e-15)
    assert kernels(scaled, x, y) == 2
    assert "stored" in str(scaled.explain(x, y))


def test_narrow_floats_are_rounded_after_every_operation():
    @fusec.fuse
    def product(x, y):
        return x * y + x - y

    x, y = (np.random.default_rng(seed).random(200).astype("float16") * 40 for seed in (1, 2))
    np.testing.assert_array_equal(product(x, y), x * y + x - y)


def test_arguments_and_views_of_them_are_returned_as_they_are():
    @fusec.fuse
    def back(x, y):
        x += y
        return x, x[1:], y

    x, y = np.arange(3.0), np.ones(3)
    first, part, second = back(x, y)
    assert first is x
    assert second is y
    assert np.shares_memory(part, x)
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_the_same_array_twice_is_the_same_array():
    @fusec.fuse
    def add(x, y):
        x += 1
        x += y
        return y * 2

    x, y = np.zeros(3), np.zeros(3)
    assert add(x, y).tolist() == [0, 0, 0]
    assert add(x, x).tolist() == [8, 8, 8]
    assert x.tolist() == [4, 4, 4]  # 1 from the first call, and 1 more, doubled since both are one
    assert add(x[:2], y[1:]).tolist() == [0, 0]


def test_numbers_that_python_needs_are_part_of_the_kind_of_call():
    calls = []

    @fusec.fuse
    def power(x, count, scale):
        calls.append(count)
        for _ in range(count):
            x = x * scale
        return x

    x = np.ones(3)
    assert power(x, 2, 3.0).tolist() == [9.0] * 3
    assert power(x, 2, 5.0).tolist() == [25.0] * 3
    traced = len(calls)
    assert power(x, 3, 2.0).tolist() == [8.0] * 3
    assert len(calls) == traced + 1


def test_numbers_keep_their_types():
    @fusec.fuse
    def scaled(x, factor):
        return x * factor

    x = np.ones(3, "float32")
    assert scaled(x, 2.0).dtype == scaled(x, 2).dtype == np.float32
    assert scaled(x, np.float64(2)).dtype == np.float64
    assert scaled(np.ones(3, "int8"), 3).dtype == np.int8
    assert isinstance(scaled(2, 3), int)
    with pytest.raises((OverflowError, ValueError)):
        scaled(np.ones(3, "int8"), 300)


def test_structures_of_arrays_come_in_and_go_out():
    pair = namedtuple("pair", "low high")

    @fusec.fuse
    def ends(data, *, names):
        return {name: pair(data[name].min(), data[name].max()) for name in names}

    found = ends({"a": np.arange(3), "b": np.arange(4.0)}, names=("a", "b"))
    assert found == {"a": pair(0, 2), "b": pair(0.0, 3.0)}
    assert isinstance(found["a"].low, np.int64)


def test_fused_functions_call_each_other_in_one_kernel():
    inner = fusec.fuse(lambda x, y: (x - y, x + y))

    @fusec.fuse
    def outer(x):
        a, b = inner(x, x * 2)
        return a * b

    x = np.arange(4)
    assert outer(x).tolist() == (-x * (3 * x)).tolist()
    assert kernels(outer, x) == 1


def test_a_namespace_is_an_argument_and_makes_arrays():
    @fusec.fuse
    def shifted(x, xp):
        out = xp.zeros(x.shape, dtype=x.dtype)
        out[1:] = x[:-1]
        return out + xp.ones_like(x), xp.arange(3) * x.sum()

    x = np.arange(1, 4)
    assert [each.tolist() for each in shifted(x, np)] == [[1, 2, 3], [0, 6, 12]]


def test_values_read_before_a_write_are_those_of_before():
    @fusec.fuse
    def swap(x, y):
        kept = x * 1
        x[1:] = y[:-1]
        y[...] = kept
        return kept

    x, y = np.arange(3), np.arange(10, 13)
    assert swap(x, y).tolist() == [0, 1, 2]
    assert (x.tolist(), y.tolist()) == ([0, 10, 11], [0, 1, 2])


def test_both_arguments_change_at_once():
    @fusec.fuse
    def rotate(x, y, s):
        a, b = x - y * s, y + x * s
        x[...], y[...] = a, b

    x, y = np.arange(4.0), np.ones(4)
    rotate(x, y, 0.5)
    assert (x.tolist(), y.tolist()) == ([-0.5, 0.5, 1.5, 2.5], [1.0, 1.5, 2.0, 2.5])
    assert kernels(rotate, x, y, 0.5) == 1


def test_empty_arrays_have_numpys_totals_and_errors():
    @fusec.fuse
    def total(x):
        return x.sum(axis=0), x.prod(), x.any()

    found = total(np.ones((0, 3)))
    assert (found[0].tolist(), found[1], found[2]) == ([0, 0, 0], 1.0, False)
    with pytest.raises(ValueError, match="zero-size array"):
        fusec.fuse(lambda x: x.max())(np.ones(0))


@pytest.mark.parametrize(
    "name", ["mean", "var", "std", "ptp", "nansum", "nanmax", "nanmean", "count_nonzero", "average"]
)
def test_reductions_are_numpys(name):
    x = np.array([[1.5, 2, np.nan], [0, 1, 4]])
    x = x if name.startswith("nan") else np.nan_to_num(x)
    found = fusec.fuse(lambda a: getattr(np, name)(a, axis=1))(x)
    np.testing.assert_allclose(found, getattr(np, name)(x, axis=1), rtol=1e-15)


def test_masks_of_reductions_and_outputs():
    @fusec.fuse
    def masked(x, m, out):
        np.add(x, 1, out=out, where=m)
        return x.sum(where=m), x.max(initial=-1, where=m), np.mean(x, where=m)

    x, m, out = np.arange(4.0), np.array([True, False, True, False]), np.full(4, 9.0)
    assert masked(x, m, out) == (2.0, 2.0, 1.0)
    assert out.tolist() == [1, 9, 3, 9]


REFUSED = {
    "F280": "if x.sum() > 0:\n        return x\n    return -x",
    "F281": "return np.linalg.inv(x)",
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_cannot_be_traced_is_refused_with_its_line(code, tmp_path, monkeypatch):
    (tmp_path / "refused.py").write_text(f"import numpy as np\n\ndef f(x):\n    {REFUSED[code]}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = __import__("refused")
    try:
        with pytest.raises(FusecTypeError) as caught:
            fusec.fuse(module.f)(np.ones((2, 2)))
    finally:
        del __import__("sys").modules["refused"]
    assert caught.value.error.code == code
    assert "refused.py, line 4" in str(caught.value)


@pytest.mark.parametrize(
    ("function", "cure"),
    [
        (lambda x: float(x[0]), "before or after"),
        (lambda x: x[x > 0], "xp.where"),
        (lambda x: x @ x, "matri"),
        (lambda x: np.sort(x), "fused are"),
        (lambda x: np.add.accumulate(x), "outside"),
        (lambda x: x.tobytes(), "methods that are fused"),
        (lambda x: np.add(x, 1, out=np.zeros(2)), "zeros_like"),
        (lambda x: np.where(x), "size that depends"),
    ],
)  # fmt: skip
def test_refusals_say_what_to_do_instead(function, cure):
    with pytest.raises(FusecTypeError, match=cure):
        fusec.fuse(function)(np.ones(2))


def test_numpys_own_errors_are_raised_as_they_are():
    add = fusec.fuse(lambda x, y: x + y)
    with pytest.raises(ValueError, match=r"shape mismatch|broadcast"):
        add(np.ones(2), np.ones(3))
    with pytest.raises(np.exceptions.AxisError):
        fusec.fuse(lambda x: x.sum(axis=3))(np.ones(2))
    with pytest.raises(IndexError):
        fusec.fuse(lambda x: x[5])(np.ones(2))
    frozen = np.ones(2)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        fusec.fuse(lambda x: x.__iadd__(1))(frozen)


def test_threads_share_a_fused_function():
    add = fusec.fuse(lambda x, y: x + y * 2)
    found = {}

    def work(number):
        dtype = ("int64", "float64")[number % 2]
        found[number] = add(np.full(3, number, dtype), np.ones(3, dtype))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[number].tolist() == [number + 2] * 3 for number in range(8))


def test_methods_of_classes_and_names():
    class Model:
        scale = 3.0

        @fusec.fuse(name="forward")
        def run(self, x):
            """Scale."""
            return x * self.scale

    assert Model().run(np.ones(2)).tolist() == [3.0, 3.0]
    assert Model.run.__doc__ == "Scale."
    assert repr(Model.run) == "<fusec.fuse forward>"


def test_the_docs_list_what_is_fused():
    text = (Path(__file__).parents[2] / "docs" / "fuse.md").read_text()
    ufuncs, functions, methods = (
        part.split("\n\n")[0] for part in text.partition("## What is fused")[2].split(":\n`")[1:]
    )
    assert set(f"`{functions}".replace("\n", " ").split(", ")) == {f"`{name}`" for name in FUNCTIONS}
    assert set(f"`{methods}".replace("\n", " ").split(", ")) == {f"`{name}`" for name in METHODS if name[0] != "_"}
    listed = set(f"`{ufuncs}".replace("\n", " ").replace("`", "").split(", "))
    assert all(isinstance(getattr(np, name), np.ufunc) for name in listed)
    assert fused.LOADED
    assert listed >= {name for name in SEVERAL if hasattr(np, name)}


def test_long_programs_are_cut_into_kernels():
    def chain(x):
        for _ in range(300):
            x = x * 1.001 + 0.5
        return x

    x, fast = np.arange(3.0), fusec.fuse(chain)
    np.testing.assert_array_equal(fast(x), chain(x))
    assert kernels(fast, x) > 1
    assert "operations deep" in str(fast.explain(x))


def test_masked_and_foreign_arrays_are_refused():
    double = fusec.fuse(lambda x: x * 2)

    class Named(np.ndarray):
        pass

    assert type(double(np.ones(2).view(Named))) is np.ndarray

    class Foreign:
        def __dlpack__(self):
            raise AssertionError("it is not read")

    for given in (np.ma.masked_array([1, 2], [True, False]), Foreign()):
        with pytest.raises(FusecTypeError):
            double(given)


def test_an_array_made_of_a_number_is_new_memory():
    def step(x):
        number = x + x
        array = np.reshape(number, -1)
        array += array
        return number, array

    for _ in range(3):
        number, array = fusec.fuse(step)(np.array(3, np.uint8))
        assert (int(number), array.tolist()) == (6, [12])


@pytest.mark.parametrize("options", [{"fp": "fast"}, {"fp": "strict"}, {"nmae": "f"}])
def test_an_unknown_option_of_fuse_is_named(options):
    with pytest.raises(FusecTypeError, match=f"takes no keyword '{next(iter(options))}'"):
        fusec.fuse(**options)


@fusec.fuse
def hypotenuse(x, y):
    return np.sqrt(x * x + y * y)


def squared(x):
    return x * x


class Holder:
    @fusec.fuse
    def twice(x):
        return x + x


def test_they_pickle_by_name():
    assert pickle.loads(pickle.dumps(hypotenuse)) is hypotenuse
    assert pickle.loads(pickle.dumps(Holder.twice)) is Holder.twice
    assert pickle.loads(pickle.dumps(fusec.fuse(squared)))(np.full(1, 3.0)) == 9
    with pytest.raises(pickle.PicklingError, match=r"lambda>' is not found .* top of a module"):
        pickle.dumps(fusec.fuse(lambda x: x + 1))
