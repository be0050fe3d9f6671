"""What fused functions promise: NumPy's results, few kernels, errors that name the line."""

import pickle
import threading
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from scipy import special

import fusec
from fusec.errors import FusecTypeError
from fusec.fusion import fuse as fused
from fusec.fusion import pickling
from fusec.fusion.arguments import CallArguments as fused_arguments
from fusec.fusion.functions.libraries import is_call
from fusec.fusion.functions.products import GUFUNCS
from fusec.fusion.trace.elementwise import FUNCTIONS as KERNEL_FUNCTIONS
from fusec.fusion.trace.elementwise import SEVERAL
from fusec.fusion.trace.tables import FUNCTIONS, METHODS


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
    assert "a value of shape (2, 40000) is stored: several kernels need it, and it is costly to compute" in text
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
    "F281": "return np.linalg.eig(x)",
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
        (lambda x: np.unique(x), "before or after"),
        (lambda x: np.subtract.reduce(x), "outside"),
        (lambda x: x.tobytes(), "before or after"),
        (lambda x: np.add(x, 1, out=np.arange(2.0)), "zeros_like"),
        (lambda x: np.where(x), "size that depends"),
    ],
)  # fmt: skip
def test_refusals_say_what_to_do_instead(function, cure):
    with pytest.raises(FusecTypeError, match=cure):
        fusec.fuse(function)(np.ones(2))


def store(x, y):
    x[..., :2] = 7
    x[...] = y


@pytest.mark.parametrize(
    ("function", "shapes", "told"),
    [
        (lambda x, y: x + y, ((2,), (3,)), "operand 2 has shape (3,); the arguments before it broadcast to (2,)"),
        (lambda x, y: np.where(x > 0, x, y), ((2, 1), (3, 4)), "operand 3 has shape (3, 4); the arguments"),
        (store, ((3,), (2,)), "the stored value has shape (2,); the array that takes it has (3,)"),
        (store, ((2,), (2, 2)), "the stored value has shape (2, 2); the array that takes it has (2,)"),
        (lambda x, y: np.add(x, 1, out=y), ((2,), (1,)), "the result has shape (2,)"),
        (lambda x, y: np.full_like(x, y), ((2,), (3,)), "the value has shape (3,)"),
        (lambda x, y: x.sum(where=y > 0), ((2,), (3,)), "where= has shape (3,)"),
    ],
)  # fmt: skip
def test_shapes_that_do_not_broadcast_are_told_with_the_line(function, shapes, told):
    with pytest.raises(ValueError, match=r"shapes .* and .* do not broadcast") as caught:
        fusec.fuse(function)(*map(np.ones, shapes))
    assert caught.value.error.code == "F212"
    assert told in str(caught.value)
    assert "test_fuse.py, line" in str(caught.value)


def test_what_comes_before_shapes_that_do_not_broadcast_is_done():
    x = np.ones(3)
    with pytest.raises(ValueError, match="do not broadcast"):
        fusec.fuse(store)(x, np.ones(2))
    assert x.tolist() == [7, 7, 1]


def test_a_complex_number_is_not_stored_in_a_real_array():
    def put(x, y):
        x[0] = y

    def copy(x, y):
        np.copyto(x, y, casting="unsafe")

    for function in (put, copy):
        for dtype in ("float64", "int32"):
            with pytest.raises(TypeError, match=f"stored in an array of {dtype} .F284.(.|\n)*test_fuse.py, line"):
                fusec.fuse(function)(np.zeros(2, dtype), 1j)
    ours, theirs = np.zeros(2, bool), np.zeros(2, bool)
    fusec.fuse(put)(ours, 1j)
    put(theirs, 1j)
    assert ours.tolist() == theirs.tolist() == [True, False]


def test_numpys_own_errors_are_raised_as_they_are():
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
    listed, functions, calls, of_scipy, methods = (
        set(text.partition(f"### {title}\n\n")[2].partition("\n\n")[0].replace("`", "").replace(",", "").split())
        for title in ("Ufuncs", "Functions", "Library calls", "Functions of `scipy.special`", "Methods")
    )
    of_library = {name for name, each in FUNCTIONS.items() if is_call(each)}
    assert functions == set(FUNCTIONS) - of_library
    assert {name for name in calls if hasattr(np, name) or "." in name or name in of_library} == of_library | GUFUNCS
    assert methods == {name for name in METHODS if name[0] != "_"}
    assert all(isinstance(getattr(np, name), np.ufunc) for name in listed)
    assert of_scipy == {
        name for name, each in vars(special).items() if isinstance(each, np.ufunc) and name in KERNEL_FUNCTIONS
    }
    assert fused.LOADED
    assert listed >= {name for name in SEVERAL if hasattr(np, name)}


def test_a_kernel_that_writes_memory_again_needs_no_results():
    def overwrite(x, a):
        x[:] = a + 1
        x[::2] = a[::2] * 2

    def update(x, a):
        x[::2] = a[::2] + 1
        return x * 2

    again, needed = "it writes memory that the kernel before writes", "it needs the results of the kernel before"
    for function, reason in ((overwrite, again), (update, needed)):
        lines = fusec.fuse(function).explain(np.zeros(4), np.ones(4)).lines
        assert ("kernel 2", f"not fused with the kernel before: {reason}") in lines


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


@pytest.mark.parametrize(
    "given", [np.array(3.0), np.float64(3), np.array([3.0, 4.0])], ids=["no axes", "number", "array"]
)
def test_flip_gives_the_number_of_an_array_without_axes(given):
    for step in (np.flip, lambda x: np.sign(np.reshape(np.flip(x), -1)), lambda x: np.flip(x) * 2 - np.flip(x, ())):
        fused = fusec.fuse(lambda x, step=step: step(x))
        for _ in range(2):
            found, expected = fused(given), step(given)
            np.testing.assert_array_equal(found, expected, strict=True)
            assert type(found) is type(expected)


def test_flip_of_an_array_without_axes_is_its_number_before_a_write():
    def step(x):
        flipped = np.flip(x)
        x[...] = 7
        return flipped, flipped + x

    ours, theirs = np.array(3.0), np.array(3.0)
    assert fusec.fuse(step)(ours) == step(theirs) == (3, 10)
    assert ours == theirs == 7


@pytest.mark.parametrize("options", [{"fp": "fast"}, {"fp": "strict"}, {"nmae": "f"}])
def test_an_unknown_option_of_fuse_is_named(options):
    with pytest.raises(FusecTypeError, match=f"takes no keyword '{next(iter(options))}'"):
        fusec.fuse(**options)


@fusec.fuse
def hypotenuse(x, y):
    return np.sqrt(x * x + y * y)


doubled = fusec.fuse(lambda x: x * 2)


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
    assert pickle.loads(pickle.dumps(doubled)) is doubled


def test_lambdas_and_inner_functions_pickle_by_their_code():
    factor, weights = 3.0, [np.ones(2), 1]

    def inner(x, more=5, *, shift=1):
        return squared(x) * factor + weights[0] * more + shift

    for function in (inner, lambda x: x * factor + 1, lambda x, by=2: x * by):
        found = pickle.loads(pickle.dumps(fusec.fuse(function)))
        np.testing.assert_array_equal(found(np.full(2, 3.0)), function(np.full(2, 3.0)))
    parts = pickling.parts_of(inner)
    with pytest.raises(pickle.UnpicklingError, match="define it in a module"):
        pickling.from_parts(parts._replace(version="another"))


@pytest.mark.parametrize(
    "function",
    [lambda b, _: b**2, lambda b, _: np.power(b, 2), lambda b, _: np.square(b), lambda b, _: np.conjugate(b),
     lambda b, _: b.conj() & b, lambda b, _: np.angle(b), lambda _, x: np.hypot(x, 70000.0) + 0],
)  # fmt: skip
@pytest.mark.sampled(3)
def test_bools_and_small_integers_have_numpys_types(function):
    b, x = np.array([True, False]), np.array([1, 2], np.uint8)
    found, wanted = fusec.fuse(function)(b, x), function(b, x)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-15)


def outcome(function, args):
    """What a call gives, and what it leaves in the arrays; the kind of error, if that is what it gives."""
    given = [each.copy() if isinstance(each, np.ndarray) else each for each in args]
    try:
        found = function(*given)
    except (TypeError, ValueError) as problem:
        return next(kind for kind in (TypeError, ValueError) if isinstance(problem, kind))
    parts = found if isinstance(found, tuple) else (found,)
    shown = [(type(each), getattr(each, "dtype", None), getattr(each, "shape", None), repr(each)) for each in parts]
    return shown, [repr(each) for each in given]


def filled(x, s):
    x = x * 1
    x[...] = s
    return x


def copied(x, s):
    x = np.zeros_like(x)
    np.copyto(x, s)
    return x


def masked(x, m):
    np.copyto(x, 1, where=m)


MANY = 230  # more than there are repairs of a schedule that store one value each
ROWS, INTEGERS = np.arange(12.0).reshape(3, 4), np.array([1, 0, 1, 0])


@pytest.mark.parametrize(
    ("function", "args"),
    [
        *((function, (np.ones(4, dtype), s)) for function in (filled, copied, np.full_like)
          for dtype in ("float64", "int32", "complex64")
          for s in (2.5, 2, True, np.float32(2.5), 1j, np.complex64(1j))),
        (lambda x, s: np.full_like(x, s), (np.array(3.0), 2.5)), (lambda x, s: np.full_like(x.T, s), (ROWS, 2)),
        (lambda x, s: x.fill(s), (ROWS, 2.5)), (lambda x: x.__setitem__(0, 1j), (np.ones(3),)),
        (lambda s, xp: (xp.full(2, s), xp.full((), s), xp.asarray(s)), (2.5, np)),
        *((lambda s, each=each: each(np.reshape(s, -1)), (np.float64(2),)) for each in (
            lambda x: x.sum(keepdims=True), lambda x: x.max(keepdims=True), lambda x: x.mean(axis=0), lambda x: x)),
        (lambda s: (np.reshape(s, (1, 1)), np.atleast_2d(s), np.broadcast_to(s, 3), np.copy(s), s * 2), (2.5,)),
        (lambda s: (s[...], s[None], np.transpose(s), s.reshape(-1)), (np.float32(2),)),
        (lambda s: (+s, -s, abs(s), divmod(s, 2), round(s), s.real), (-3,)),
        (masked, (ROWS[0], INTEGERS)), (masked, (ROWS[0], INTEGERS > 0)), (masked, (ROWS[0], INTEGERS * 1.0)),
        (lambda x, m: np.add(x, 1, out=x, where=m), (ROWS[0], INTEGERS)),
        *((lambda x, m, each=each: each(x, where=m), (ROWS[0], m)) for each in (np.sum, np.mean, np.any)
          for m in (INTEGERS, INTEGERS > 0)),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_numbers_become_arrays_and_masks_as_in_numpy(function, args):
    fused, expected = fusec.fuse(function), outcome(function, args)
    assert [outcome(fused, args) for _ in range(2)] == [expected] * 2


@pytest.mark.parametrize(
    ("function", "args"),
    [
        *((lambda x, shift=shift, axis=axis: np.roll(x, shift, axis), (ROWS,)) for shift, axis in (
            ((1, 1), (0, 1)), ([1, 2], [0, 1]), (1, (0, 1)), ((1, 2), 1), ((1, 2), None), ((1, 2), (1, 1)), (-14, 1),
            ((1, 2, 3), (1, 1)), (1, 5), (0, 0), (8, 1),
        )),
        (lambda x: np.roll(x, 1, 0), (np.ones((0, 3)),)), (lambda x, n: np.roll(x, (n, 1), (0, 1)), (ROWS, 2)),
        *((lambda x, options=options: np.diff(x, **options), (ROWS,)) for options in (
            {"prepend": 0}, {"prepend": ROWS[:, :2], "append": 9.5}, {"axis": 0, "append": 9, "n": 2}, {"n": 0},
            {"n": -1},
        )),
        (lambda x: np.diff(x), (np.array(1.0),)),
        *((lambda x, n, each=each: x[0, :3] + each(n), (ROWS, 3)) for each in (
            np.arange, np.ones, np.zeros, lambda n: np.linspace(0, 1, n), lambda n: np.arange(0, n, 1), np.eye,
            lambda n: np.array([n, n, n + 1]), lambda n: np.full(3, n), lambda n: {3: 2.0}[n], lambda n: len(f"{n:5}"),
        )),
        (lambda x, n, xp: x[0, :3] + xp.arange(n), (ROWS, 3, np)),
        (lambda x, n: x[0, :3] + np.arange(n), (ROWS, np.int8(3))),
        (lambda x, s: x if isinstance(s, float) and isinstance(x, np.ndarray) else -x, (ROWS, 2.0)),
    ],
)  # fmt: skip
def test_more_of_numpys_arguments_are_taken(function, args):
    assert outcome(fusec.fuse(function), args) == outcome(function, args)


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda x: np.isin(x, x, unknown=x), "unknown"), (lambda x: x.sum(unknown=1), r"'sum' with unknown="),
        (lambda x: np.nanprod(x, unknown=1), "unknown"), (lambda x: np.cumsum(x, unknown=1), "unknown"),
        (lambda x: np.nanmean(x, mean=1), "mean"),
    ],
)  # fmt: skip
def test_other_keywords_are_refused_by_name(function, what):
    with pytest.raises(TypeError, match=what):
        fusec.fuse(function)(ROWS)


def test_random_numbers_of_a_key_are_made_in_the_kernel():
    def draw(key, counter):
        return fusec.random.uniform64(key, counter), fusec.random.normal32(key, counter), philox(key, counter)

    philox, fused = fusec.random.philox, fusec.fuse(draw)
    counter = np.arange(100)
    for key in (1, 2, 2**40, 2**63 + 1, np.uint64(3)):
        for ours, theirs in zip(fused(key, counter), draw(key, counter), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert len(fused._plans) == 2  # for Python's numbers and NumPy's, but not for each key
    assert kernels(fused, 1, counter) == 1


def test_the_places_of_refusals_are_the_users():
    with pytest.raises(FusecTypeError, match=r"test_fuse\.py, line"):
        fusec.fuse(lambda x: fusec.random.integers(1, x, 0, x.sum().item()))(ROWS)


def test_a_reduction_of_very_many_chunks_is_two_kernels_of_the_report():
    total = fusec.fuse(lambda x: x.sum())
    assert kernels(total, np.ones(10)) == 1
    report = total.explain(np.ones(1_000_000))
    assert report.kernels == 1
    assert "combines them at its end: 245 totals for each of 1" in str(report)
    many = total.explain(np.broadcast_to(1.0, 100_000_000))
    assert many.kernels == 2
    assert "combines the totals of the kernel before" in str(many)


def test_many_dear_values_that_kernels_share_are_stored():
    def shared(x):
        powers = [np.sqrt(x + at) for at in range(MANY)]
        return [each.sum() for each in powers], [each[1:] for each in powers]

    x = np.linspace(0, 1, 9)
    fused = fusec.fuse(shared)
    plan, _ = fused._plan(fused_arguments((x,), {}))
    assert sum("several kernels need it" in note for note in plan.notes) <= MANY
    for ours, theirs in zip(fused(x), shared(x), strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14)


def test_bounds_of_clip_that_bound_nothing_need_not_fit_as_in_numpy():
    x = np.array([1, 2, 200], "uint8")
    for low, high in ((-2, 100), (-2, 300), (5, 300), (None, 300), (-1, None), (0, 255)):
        found = fusec.fuse(lambda x, low=low, high=high: np.clip(x, low, high))(x)
        np.testing.assert_array_equal(found, np.clip(x, low, high), strict=True)
    with pytest.raises(OverflowError):
        fusec.fuse(lambda x: np.clip(x, 300, 400))(x)


COMPARISONS = (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "uint32", "int64", "uint64"])
@pytest.mark.filterwarnings("ignore::fusec.FusecWarning")  # of bools
def test_a_number_that_is_passed_is_compared_as_it_is_whatever_the_dtype_holds(dtype):
    def compared(x, number):
        operators = x < number, x == number, x != number, number > x, x >= number
        return [*(each(x, number) for each in COMPARISONS), *operators, np.where(x < number, 1, 2), x < number + 1]

    x = np.array([0, 1, 10, 100], dtype)
    fused = fusec.fuse(compared)
    for number in (1, 256, -1, 266, 10, -246, 65546, 2**32 + 10, -(2**63), 2**63 - 2):
        for ours, theirs in zip(fused(x, number), compared(x, number), strict=True):
            np.testing.assert_array_equal(ours, theirs, strict=True, err_msg=f"{number}")
    assert sum(map(len, fused._plans.values())) == 1


def test_a_number_that_is_both_compared_and_added_must_fit_at_every_call():
    fused = fusec.fuse(lambda x, number: np.where(x < number, x + number, x))
    x = np.array([1, 200], "uint8")
    np.testing.assert_array_equal(fused(x, 50), [51, 200])
    for number in (256, -1, 256):
        with pytest.raises(OverflowError, match="F219"):
            fused(x, number)
    np.testing.assert_array_equal(fused(x, 50), [51, 200])


LAYOUTS = {
    "dense": lambda x: x,
    "strided": lambda x: x[::2],
    "flipped": lambda x: x[::-1],
    "rows": lambda x: x.reshape(3, 4),
    "a column": lambda x: x.reshape(3, 4)[:, :1],
    "transposed": lambda x: x.reshape(3, 4).T,
    "flipped rows": lambda x: x.reshape(3, 4)[:, ::-1],
    "one": lambda x: x[:1],
    "empty": lambda x: x[:0],
    "no axes": lambda x: x[3:4].reshape(()),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["ravel", "flatten", "reshape"])
def test_flat_arrays_are_views_where_numpys_are(name, layout):
    """A write into a flat array is seen through the argument where NumPy gives a view, and nowhere else."""

    def written(x):
        flat = x.reshape(-1) if name == "reshape" else getattr(x, name)()
        flat[...] = flat * 2 + x.size
        return flat, x + 1

    fused = fusec.fuse(written)
    ours, theirs = (LAYOUTS[layout](np.arange(12.0)) for _ in range(2))
    for _ in range(2):
        found, expected = fused(ours), written(theirs)
        for one, other in zip((*found, ours), (*expected, theirs), strict=True):
            np.testing.assert_array_equal(one, other)
        assert np.shares_memory(found[0], ours) == np.shares_memory(expected[0], theirs)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("order", "FAK")
@pytest.mark.parametrize("name", ["ravel", "flatten"])
def test_orders_other_than_c_are_numpys(name, order, layout):
    x = LAYOUTS[layout](np.arange(12.0))
    expected = getattr(x, name)(order)
    np.testing.assert_array_equal(fusec.fuse(lambda x: getattr(x, name)(order) + 0)(x), expected)


@pytest.mark.parametrize("other", [None, "a", b"a"])
@pytest.mark.parametrize("x", [np.arange(6.0).reshape(2, 3), np.ones((3, 4), "int8").T, np.ones((0, 2)), np.array(1.5)])
def test_an_array_compared_with_none_or_a_text_is_an_array_as_in_numpy(x, other):
    def compared(x):
        return x == other, x != other, other == x, other != x, np.where(x != other, x + 1, x), (x[..., None] == other)

    for ours, theirs in zip(fusec.fuse(compared)(x), compared(x), strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)
        assert isinstance(ours, np.ndarray) == isinstance(theirs, np.ndarray)  # NumPy 2.1 gives Python's own bools


def test_an_array_compared_with_another_object_is_refused_and_a_number_is_not():
    with pytest.raises(fusec.FusecTypeError, match="an array == a value of type range"):
        fusec.fuse(lambda x: x == range(3))(np.arange(3))
    fused = fusec.fuse(lambda x, number: (number is None, number == None, number != "a", x.sum() == None))  # noqa: E711
    assert fused(np.arange(3), 2.5) == (False, False, True, False)


def broadcast(x, y, which, index):
    parts = np.broadcast_arrays(x, y)
    parts[which][index] = 7
    return (x, y, *parts)


@pytest.mark.filterwarnings("ignore:Numpy has detected")
@pytest.mark.parametrize("shape", [(2, 3), (3,), (1, 3)])
@pytest.mark.parametrize("index", [..., (0, 0), (slice(None), 1)])
def test_results_of_broadcast_arrays_are_written_unless_they_repeat(shape, index):
    given = np.zeros((2, 3)), np.ones(shape)
    for which in range(2):
        fused = fusec.fuse(broadcast)
        if which and shape != (2, 3) and index != (0, 0):
            with pytest.raises(FusecTypeError, match="repeats"):
                fused(*(each.copy() for each in given), which, index)
            continue
        ours, theirs = (run(*(each.copy() for each in given), which, index) for run in (fused, broadcast))
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="read-only"):
        fusec.fuse(lambda x: np.broadcast_to(x * 1, (2, 3)).fill(1))(np.ones(3))


@pytest.mark.parametrize("given", [np.array(np.nan), np.float32(np.inf), 3.0, 2, np.array(5), np.array([np.nan, 1.0])])
def test_nan_to_num_gives_numbers_where_numpy_does(given):
    ours, theirs = fusec.fuse(lambda x: np.nan_to_num(x))(given), np.nan_to_num(given)
    assert type(ours) is type(theirs)
    np.testing.assert_array_equal(ours, theirs)


def test_a_method_with_too_many_arguments_is_refused_by_name():
    with pytest.raises(FusecTypeError, match="the method 'sum' with 8 positional arguments"):
        fusec.fuse(lambda x: x.sum(1, 2, 3, 4, 5, 6, 7))(ROWS)
