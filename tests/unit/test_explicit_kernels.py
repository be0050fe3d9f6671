"""Loops over a grid compute what Python computes, whatever they index and update."""

import pickle
from threading import Thread

import numpy as np
import pytest

import fusec
from fusec import FusecError
from fusec import atomic_max as greatest
from fusec.runtime.cpu import fastcall

STEPS = (2, 3)


def alike(kernel, *args, **named):
    """Run compiled, interpreted and by Python; all leave the same arrays behind, which are returned."""
    copies = [[each.copy() if isinstance(each, np.ndarray) else each for each in args] for _ in range(3)]
    ways = (kernel, fusec.simulate(kernel), fusec.simulate(kernel, python=True))
    with np.errstate(all="ignore"):
        for run, given in zip(ways, copies, strict=True):
            assert run(*given, **named) is None
    for given in copies[1:]:
        for first, other in zip(copies[0], given, strict=True):
            np.testing.assert_array_equal(first, other)
    return [each for each in copies[0] if isinstance(each, np.ndarray)]


@fusec.kernel
def transpose(a, out, scale=2):
    rows, columns = a.shape
    for i, j in fusec.grid((rows, columns)):
        if a[i, j] < 0:
            continue
        out[j, i] = a[i, j] * scale


@fusec.kernel
def windows(x, out, n: int):
    """Local arrays, indices that are tuples, len, ndim and size."""
    for index in fusec.grid(out.shape):
        kept = fusec.local(STEPS, np.float64)
        for k in range(3):
            kept[0, k] = x[index[0] + k, index[1]]
            kept[1, k] += 1
        kept[-1, -1] *= 2
        first, second = kept[0, 0], kept[0, 1]
        kept[0, 0], kept[0, 1] = kept[0, 1], kept[0, 0]
        out[index] = first + kept[0, 0] * second + kept[1, 2] + len(kept) + n * x.ndim + x.size + kept.size


@fusec.kernel
def ends(x, out):
    for i in fusec.grid(len(out)):
        if i % 3 == 1:
            continue
        k = 0
        while x.flat[k] < i:
            k += 1
            if k == x.size - 1:
                break
        out[i] = out[i] + x[-1, -2] * k if x[0, 0] > 0 else x.flat[-1]
        out[i] += 1


@fusec.kernel
def updates(values, counts, bits, extremes, old):
    for i in fusec.grid(values.shape[0]):
        place = values[i] % 4
        before = fusec.atomic_add(counts, place, 1)
        fusec.atomic_and(bits, 0, ~np.uint32(1 << place))
        fusec.atomic_or(bits, 1, 1 << place)
        fusec.atomic_xor(bits, 2, values[i])
        greatest(extremes, 0, values[i])
        fusec.atomic_min(extremes, 1, values[i])
        fusec.atomic_cas(extremes, 2, 7, 9)
        fusec.atomic_exchange(extremes, 3, 5)
        if before < 0:
            old[i] = before


def test_a_grid_of_two_axes_reads_and_writes_by_indices():
    a = np.random.default_rng(1).integers(-5, 50, (33, 17)).astype("float32")
    _, out = alike(transpose, a, np.zeros((17, 33), "float32"))
    np.testing.assert_array_equal(out, np.where(a < 0, 0, 2 * a).T)
    _, strided = alike(transpose, a[::-2, ::3], np.zeros((6, 34))[:, ::2], scale=0.5)
    np.testing.assert_array_equal(strided, np.where(a < 0, 0, a / 2)[::-2, ::3].T)
    alike(transpose, a[:0], np.zeros((17, 0), "float32"))


def test_local_arrays_start_as_zeros_in_every_element():
    x = np.random.default_rng(2).random((40, 11))
    _, out = alike(windows, x, np.zeros((38, 11)), 3)
    np.testing.assert_array_equal(out, x[:-2] + x[1:-1] * x[1:-1] + 2 + 2 + 6 + x.size + 6)


def test_loops_and_early_ends_leave_the_other_elements_alone():
    x = np.sort(np.random.default_rng(3).uniform(-1, 30, (4, 5)).ravel()).reshape(4, 5)
    _, out = alike(ends, x, np.full(31, -1.0))
    assert (out[1::3] == -1).all()
    alike(ends, np.abs(x), np.full(31, -1.0))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32"])
def test_atomic_updates_lose_nothing(dtype):
    values = np.random.default_rng(4).integers(0, 100, 300).astype(dtype)
    bits = np.array([255, 0, 0], "uint32")
    arrays = (np.zeros(4, dtype), bits, np.array([0, 1000, 7, 7], dtype), np.zeros(300, dtype))
    _, counts, bits, extremes, _ = alike(updates, values, *arrays)
    np.testing.assert_array_equal(counts, np.bincount(values % 4, minlength=4))
    assert bits.tolist() == [255 & ~15, 15, int(np.bitwise_xor.reduce(values))]
    assert extremes.tolist() == [values.max(), values.min(), 9, 5]


def test_floats_are_added_atomically():
    @fusec.kernel
    def total(x, out):
        for i in fusec.grid(x.size):
            fusec.atomic_add(out, (), x[i])

    for dtype in ("float32", "float64"):
        (_, out) = alike(total, np.arange(1000, dtype=dtype) % 32, np.zeros((), dtype))
        assert out == (np.arange(1000) % 32).sum()


def test_the_grid_is_known_from_shapes_numbers_and_constants():
    @fusec.kernel
    def mark(out, count=4):
        half = out.shape[0] // 2
        for i, j in fusec.grid((min(half, count), STEPS[1] - 1)):
            out[i, j] += 1

    (out,) = alike(mark, np.zeros((9, 3)))
    assert out.sum() == 8
    (out,) = alike(mark, np.zeros((9, 3)), count=-1)
    assert out.sum() == 0


def test_numbers_are_stored_in_the_dtype_of_the_array():
    @fusec.kernel
    def fill(out, value):
        for i in fusec.grid(out.shape[0]):
            out[i] = value

    for dtype in ("int8", "float16", "bool", "complex64"):
        (out,) = alike(fill, np.zeros(5, dtype), 3)
        assert (out == np.array(3).astype(dtype)).all()
    (out,) = alike(fill, np.zeros(5, "int32"), 2.75)
    assert (out == 2).all()


def test_inputs_that_share_memory_with_outputs_are_copied_first():
    @fusec.kernel
    def shift(x, out):
        for i in fusec.grid(out.shape[0]):
            out[i] = x[i + 1]

    memory = np.arange(9.0)
    shift(memory, memory[:-1])
    np.testing.assert_array_equal(memory[:-1], np.arange(1.0, 9))


@fusec.kernel
def partly(x, out, scale, n, start=0):
    count = n + STEPS[0] - 2
    for i in fusec.grid(count):
        out[i] += scale * x[i + start]


@pytest.fixture
def alone(monkeypatch):
    """Whether calls come to Python."""
    reached = []
    prepared = partly.prepared
    monkeypatch.setattr(partly, "prepared", lambda *args: reached.append(args) or prepared(*args))
    return lambda *args, **named: (reached.clear(), partly(*args, **named), not reached)[2]


def test_repeated_calls_do_not_come_to_python_and_do_the_same(alone):
    if fastcall.objection_to_build():
        pytest.skip("no native entries here")
    x, out = np.arange(20.0), np.zeros(20)

    def run(scale, n, *start, into=out, of=x):
        before, expected = into.copy(), into.copy()
        expected[:n] += scale * of[start[0] if start else 0 :][:n]
        was_alone = alone(of, into, scale, n, *start)
        np.testing.assert_array_equal(into, expected)
        into[...] = before
        return was_alone

    assert [run(2.0, 7) for _ in range(4)] == [False, False, True, True]
    assert run(3.5, 7), "a number that the grid does not ask for"
    assert not run(2.0, 8), "a number that it does"
    assert not run(2, 7), "another type"
    assert not run(2.0, 7, into=np.zeros(40)[::2]), "other strides"
    assert not run(2.0, 7, into=np.zeros(20, np.float32)), "another dtype"
    assert not run(2.0, 7, 5), "an argument that was left out before"
    assert run(-1.0, 7)
    assert [run(2.0, 8) for _ in range(3)][-1]
    assert [run(2.0, 7, 5) for _ in range(3)][-1]
    assert not run(2.0, 7, 6, of=np.arange(30.0))
    assert run(1.0, 7)


def test_repeated_calls_are_refused_as_first_ones_are(alone):
    x, out = np.arange(20.0), np.zeros(20)
    for _ in range(4):
        alone(x, out, 1.0, 20)
    memory = np.arange(25.0)
    alone(memory[:20], memory[5:], 1.0, 20)  # as if the input had been copied
    np.testing.assert_array_equal(memory[5:], np.arange(5.0, 25) + np.arange(20.0))
    out.flags.writeable = False
    with pytest.raises(FusecError, match="read-only"):
        partly(x, out, 1.0, 20)
    for args in ((x, x.copy(), 1.0), (x, x.copy(), 1.0, 20.5), (x, [1.0], 1.0, 1), (x, x.copy(), 1.0, 20, 0, 0)):
        with pytest.raises(FusecError):
            partly(*args)
    two = fusec.kernel("def f(a, b):\n    for i in fusec.grid(a.size):\n        a[i], b[i] = b[i], a[i]")
    for _ in range(4):
        two(memory[:9], memory[9:18])
    with pytest.raises(FusecError, match="overlap in memory"):
        two(memory[:9], memory[1:10])


def test_repeated_calls_may_come_from_many_threads():
    x = np.arange(1000.0)
    outs = [np.zeros(1000) for _ in range(8)]

    def work(out):
        for _ in range(50):
            partly(x, out, 0.5, 1000)

    threads = [Thread(target=work, args=(out,)) for out in outs]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for out in outs:
        np.testing.assert_array_equal(out, 25 * x)


def test_texts_and_pickles_are_kernels_too():
    text = "def f(x, y):\n    for i in fusec.grid(x.size):\n        y.flat[i] = x.flat[i] + K"
    kernel = pickle.loads(pickle.dumps(fusec.kernel(text, names={"K": 2})))
    x, y = np.arange(6).reshape(2, 3), np.zeros(6)
    kernel(x, y)
    np.testing.assert_array_equal(y, np.arange(6) + 2)
    with pytest.raises(FusecError, match="cannot be simulated"):
        fusec.simulate(kernel, python=True)


def test_every_target_has_a_text():
    assert "atomicAdd(" in updates.source(
        "cuda", dict.fromkeys(("values", "counts", "bits", "extremes", "old"), "int32")
    )
    marks = {"cuda": "__global__", "metal": "kernel void", "llvm": "define", "ir": "raw[2]"}
    for target, mark in marks.items():
        assert mark in transpose.source(target, {"a": "float32", "out": "float32"})
    assert "(33, 17)" in str(transpose.explain(np.zeros((33, 17)), np.zeros((17, 33))))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((np.zeros((2, 2)),), "is missing the argument 'out'"),
        ((2.0, np.zeros((2, 2))), "must be an array"),
        ((np.zeros((2, 2)), np.zeros((2, 2)), np.ones(2)), "used as a number"),
        ((np.zeros(4), np.zeros((2, 2))), "2 names"),
        ((np.zeros((2, 2)), np.zeros(4)), "2 indices into an array of 1 axis"),
        ((np.zeros((2, 2)), np.zeros((2, 2)), 2, 3), "4 arguments"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(args, message):
    with pytest.raises(FusecError, match=message):
        transpose(*args)
    locked = np.zeros((2, 2))
    locked.flags.writeable = False
    with pytest.raises(FusecError, match="read-only"):
        transpose(np.zeros((2, 2)), locked)


def test_mandelbrots_set_has_its_points():
    @fusec.elementwise
    def steps(x, y):
        re, im = x, y
        for n in range(250):
            if re * re + im * im > 4:
                return n
            re, im = re * re - im * im + x, 2 * re * im + y
        return 250

    x, y = -2 + 3 * np.arange(1024) / 1024, -1.5 + 3 * np.arange(1024)[:, None] / 1024
    inside = int((steps(x, y) == 250).sum())
    assert abs(inside - 177_549) <= 0.0005 * 177_549, inside


def test_a_text_names_the_dtype_of_a_local_array():
    @fusec.kernel
    def doubled(x, out):
        for i in fusec.grid(x.size):
            t = fusec.local(2, "float64")
            t[1] = x[i]
            out[i] = t[1] * 2

    out = np.zeros(3)
    doubled(np.arange(3.0), out)
    assert out.tolist() == [0, 2, 4]


def test_what_each_element_sets_anew_carries_nothing():
    @fusec.kernel
    def sums(x, scale, out):
        total = scale * 2
        for i in fusec.grid(x.shape[0]):
            total = 1.0 if scale > 1 else 0.0
            for j in range(x.shape[1]):
                total += x[i, j]
            out[i] = total

    out = np.zeros(2)
    sums(np.ones((2, 3)), 2.0, out)
    assert out.tolist() == [4, 4]


def test_a_misspelt_function_of_fusec_is_suggested():
    with pytest.raises(FusecError, match="did you mean 'grid'"):
        fusec.kernel("def f(x):\n    for i in fusec.grd(3):\n        x[i] = 1")(np.ones(3))
    with pytest.raises(FusecError, match=r"docs/kernels\.md describes fusec\.grid"):
        fusec.elementwise("def f(x):\n    return fusec.qqqqqq(x)")(np.ones(3))
