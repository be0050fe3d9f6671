"""Scans as users call them: NumPy's results, dtypes and errors; the oracle's bits; bounds of errors; bad input."""

import functools
import math
import pickle
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import fusec
from fusec.dispatch import scans
from fusec.errors.base import FusecError
from fusec.ir.interpret_scans import scanned
from fusec.kinds.launch import Machine

SIZES = (1, 2, 31, 32, 33, 63, 64, 65, 2047, 2048, 2049, 4127, 8192)
ADD = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "add")


def add(a, b):
    with np.errstate(all="ignore"):
        return a + b


def expected(x, axis=-1, is_last=True):
    """The oracle's sums, in the dtype of x."""
    return np.moveaxis(scanned(np.moveaxis(x, axis, -1), add, is_last=is_last), -1, axis)


def normal(shape, dtype="f4"):
    return np.random.default_rng(np.prod(shape)).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_have_the_bits_of_the_order(dtype):
    for count in SIZES:
        x = normal((3, count), dtype)
        is_last = count > 32  # shorter axes are walked as others
        assert fusec.cumsum(x, axis=1).tobytes() == expected(x, 1, is_last).tobytes(), count
        flat = x[0].copy()
        assert fusec.cumsum(flat).tobytes() == expected(flat).tobytes(), count


def test_columns_have_the_bits_of_the_order():
    for count in (1, 2, 63, 64, 65, 128, 4097):
        for columns in (33, 300):
            x = normal((count, columns))
            assert fusec.cumsum(x, axis=0).tobytes() == expected(x, 0, False).tobytes(), (count, columns)


MACHINES = {"alone": Machine(1, 1, 1), "parted": Machine(1 << 62, 1 << 62, 1), "chain": Machine(1 << 62, 1 << 62, 1, 1)}


@pytest.fixture(params=MACHINES.values(), ids=MACHINES)
def forced(request, monkeypatch):
    """Calls in one kernel each, in as many as there can be, or in chains."""
    monkeypatch.setattr(scans, "machine_of", lambda _: request.param)


def test_bits_do_not_depend_on_the_number_of_kernels(forced):
    kernel = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "add")
    for count in (33, 2049, 70 * 2048 + 5):
        x = normal(count)
        assert kernel(x).tobytes() == expected(x).tobytes()
    for count in (65, 64 * 64 + 1):
        x = normal((count, 40))
        assert kernel(x, axis=0).tobytes() == expected(x, 0, False).tobytes()


@pytest.mark.slow
def test_totals_of_totals_of_totals_have_the_bits_of_the_order(forced):
    kernel = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "add")
    x = normal(2048 * 2048 + 3 * 2048 + 5)
    assert kernel(x).tobytes() == expected(x).tobytes()


LINE = (
    "float32 p, float32 q", "float32 y, bool high", "Line{p, q}", "Line{a.p * b.p, a.q * b.p + b.q}",
    "y = a.q; high = a.q > 1", None, "line", "Line", "struct Line { float p; float q; };",
)  # fmt: skip
TWO = ("T x", "T y, U z", "x", "a + b", "y = a; z = U(a * 3)", 0, "two")
PARTS = ("T x, bool starts", "T y", "x", "a + b", "y = a", 0, "parts")


def test_several_kernels_give_the_bits_of_one(monkeypatch):
    """Rows and columns, backwards, exclusive, in segments, of structs and with several outputs."""
    cases = [
        (lambda: fusec.ScanKernel(*PARTS, segments="starts", inclusive=False), ((70 * 2048 + 5,), 0), True),
        (lambda: fusec.ScanKernel(*PARTS, segments="starts", inclusive=False), ((3, 4100, 40), 1), False),
        (lambda: fusec.ScanKernel(*LINE), ((3, 5000), 1), False),
        (lambda: fusec.ScanKernel(*LINE), ((130, 9000), 0), True),
    ]
    for make, (shape, axis), reverse in cases:
        results = []
        for machine, several in ((Machine(1, 1, 1), False), (Machine(1 << 62, 1 << 62, 1), True)):
            monkeypatch.setattr(scans, "machine_of", lambda _, machine=machine: machine)
            kernel = make()
            x = normal(shape)
            args = (x, np.random.default_rng(2).random(shape) < 0.001) if kernel.nout == 1 else (x / 4, normal(shape))
            found = kernel(*args, axis=axis, reverse=reverse)
            assert ("kernel 3 " in str(kernel.explain(*args, axis=axis, reverse=reverse))) is several
            results.append([each.tobytes() for each in (found if isinstance(found, tuple) else (found,))])
        assert results[0] == results[1], (shape, axis, reverse)


def test_columns_around_the_caches_give_the_bits_of_those_in_caches(monkeypatch):
    """Rows that begin anywhere in a line, of one or two outputs, backwards, exclusive, in segments; nothing beside."""
    rng = np.random.default_rng(1)
    starts = rng.random((70, 229)) < 0.05
    kernels = [
        (lambda: fusec.ScanKernel(*PARTS, segments="starts", inclusive=False), ["f4"], True),
        (lambda: fusec.ScanKernel(*PARTS, segments="starts"), ["c8"], False),
        (lambda: fusec.ScanKernel(*TWO), ["f4", "f4"], False),
        (lambda: fusec.ScanKernel(*TWO), ["f8", "i1"], True),
    ]
    for make, dtypes, reverse in kernels:
        x = (rng.normal(size=(70, 229)) * 9).astype(dtypes[0])
        for shift in (0, 1):
            found = []
            for cache in (0, 1 << 40):
                monkeypatch.setattr("fusec.runtime.cpu.machine.last_level_cache_bytes", lambda cache=cache: cache)
                memory = [np.full(x.size + 80, 7, dtype) for dtype in dtypes]
                firsts = [(-each.ctypes.data % 64 // each.itemsize) + shift for each in memory]
                outs = [each[at : at + x.size].reshape(x.shape) for each, at in zip(memory, firsts, strict=True)]
                args = (x, starts) if len(dtypes) == 1 else (x,)
                make()(*args, out=outs[0] if len(outs) == 1 else tuple(outs), axis=0, reverse=reverse)
                found.append([each.tobytes() for each in outs])
                assert all((each[:at] == 7).all() for each, at in zip(memory, firsts, strict=True))
                assert all((each[at + x.size :] == 7).all() for each, at in zip(memory, firsts, strict=True))
            assert found[0] == found[1], (dtypes, shift)


@pytest.mark.parametrize("threads", [1, 2])
def test_one_thread_reads_everything_once_and_several_wide_rows(threads, monkeypatch):
    monkeypatch.setattr("fusec.runtime.cpu.machine.thread_count", lambda: threads)
    kernel = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "add")
    for shape, kernels in (((70 * 2048,), 3), ((2000, 40), 3), ((400, 300), 1)):
        report = str(kernel.explain(np.zeros(shape, "f4"), axis=0))
        assert report.count("kernel ") == (1 if threads == 1 else kernels), report


def test_outputs_in_repeated_calls():
    """The entries that answer after the first calls: in place, shifted, backwards, of other sizes."""
    for inclusive in (True, False):
        kernel = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "add", inclusive=inclusive)
        for shape, axis in (((1000,), 0), ((300, 50), 0)):
            x = np.random.default_rng(0).integers(-9, 9, shape).astype("f4")
            wanted = np.cumsum(x, axis) - (0 if inclusive else x)
            for reverse in (False, True):
                there = np.flip(x, axis) if reverse else x
                result = np.flip(wanted, axis) if reverse else wanted
                for _ in range(4):
                    memory = np.zeros(2 * x.size, "f4")
                    for start, end in ((0, 0), (0, 3), (3, 0), (0, x.size)):
                        source = memory[start : start + x.size].reshape(shape)
                        target = memory[end : end + x.size].reshape(shape)
                        source[...] = there
                        assert kernel(source, axis=axis, out=target, reverse=reverse) is target
                        np.testing.assert_array_equal(target, result)
                    np.testing.assert_array_equal(kernel(there, axis=axis, reverse=reverse), result)


def test_texts_and_reports():
    kernel = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "add")
    assert kernel.source(types={"T": "float32"}).count("__global__") == 2  # the first clears what groups publish
    assert kernel.source("metal", {"T": "float32"}).count("kernel void") == 3
    state = "struct Wide { double a, b, c, d, e; };"  # of more bytes than groups publish
    wide = fusec.ScanKernel("double x", "double y", "Wide{x}", "b", "y = a.a", None, "wide", "Wide", state)
    assert wide.source().count("__global__") == 3
    assert kernel.source("metal", {"T": "float32"}, shape=(9, 9)).count("kernel void") == 1
    assert kernel.source("ir", {"T": "float32"}, shape=(65, 9), axis=0, reverse=True).count("kernel add") == 1
    kernel(normal((40, 50)), axis=0)
    assert "define void" in kernel.source("llvm")
    assert "add" in kernel.source("asm")
    report = kernel.explain(normal((40, 50)), axis=0)
    assert report.bytes_moved == 2 * 40 * 50 * 4
    assert "40 elements along axis 0 of 2, 50 times" in str(report)
    assert "nothing to scan" in str(kernel.explain(np.zeros((0, 3)), axis=0))
    with pytest.raises(FusecError, match="T"):
        fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a").source()


def test_every_layout_is_scanned_where_it_lies():
    base = normal((40, 50, 36))
    for x in (base, base.transpose(2, 0, 1), base[::-1, :, ::2], base[:, 3:, ::-1], np.asfortranarray(base)):
        for axis in range(3):
            np.testing.assert_allclose(fusec.cumsum(x, axis=axis), np.cumsum(x, axis=axis, dtype="f8"), atol=1e-4)
            backwards = np.flip(np.cumsum(np.flip(x, axis), axis=axis, dtype="f8"), axis)
            np.testing.assert_allclose(ADD(x, axis=axis, reverse=True), backwards, atol=1e-4)
    wide = np.broadcast_to(base[0, 0], (70, 36))
    np.testing.assert_allclose(fusec.cumsum(wide, axis=0), np.cumsum(wide, axis=0, dtype="f8"), rtol=1e-5)


def test_reading_backwards_gives_the_bits_of_the_reversed_array():
    x = normal((3, 3000))
    assert ADD(x, reverse=True).tobytes() == np.ascontiguousarray(ADD(x[:, ::-1].copy())[:, ::-1]).tobytes()


ALL = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16")
REPEATED = ("u1", "i2", "u4", "i8")  # integers whose width or sign another dtype has, too


@pytest.mark.parametrize("dtype", [pytest.param(each, marks=[pytest.mark.slow] * (each in REPEATED)) for each in ALL])
@pytest.mark.sampled(3)
def test_dtypes_are_those_of_numpy_and_integers_its_values(dtype):
    x = (np.random.default_rng(1).normal(size=(3, 90)) * 3).astype(dtype)
    for axis in (0, 1, None):
        found, wanted = fusec.cumsum(x, axis), np.cumsum(x, axis)
        assert found.dtype == wanted.dtype
        if np.dtype(dtype).kind in "?bui":
            np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(fusec.cumprod(x, axis), np.cumprod(x, axis))
        else:
            np.testing.assert_allclose(found, wanted, rtol=0.02 if dtype == "f2" else 1e-4, atol=1e-2)
        if not dtype.startswith("c"):
            flat, along = (x.reshape(-1), 0) if axis is None else (x, axis)
            np.testing.assert_array_equal(fusec.cummax(x, axis), np.maximum.accumulate(flat, along))
            np.testing.assert_array_equal(fusec.cummin(x, axis), np.minimum.accumulate(flat, along))


def test_half_precision_is_rounded_once_per_element():
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x = normal(5000).astype(dtype)
        assert fusec.cumsum(x).tobytes() == expected(x.astype("f4")).astype(dtype).tobytes()


def test_asked_dtypes_and_outputs():
    x = np.arange(100, dtype="i1")
    assert fusec.cumsum(x, dtype="f4").dtype == np.float32
    out = np.zeros(100, "f8")
    assert fusec.cumsum(x, out=out) is out
    np.testing.assert_array_equal(out, np.cumsum(x, dtype="f8"))
    y = normal(5000)
    wanted = fusec.cumsum(y)
    fusec.cumsum(y, out=y)
    assert y.tobytes() == wanted.tobytes(), "the output may be the input"


def test_nan_stays_from_its_place_on():
    x = normal(300)
    x[[50, 200]] = np.nan, np.inf
    for ours, numpys in ((fusec.cumsum, np.add), (fusec.cummax, np.maximum), (fusec.cummin, np.minimum)):
        np.testing.assert_array_equal(np.isnan(ours(x)), np.isnan(numpys.accumulate(x)))
    np.testing.assert_array_equal(fusec.cummax(x), np.maximum.accumulate(x))


def test_initial_results_come_first():
    x = np.arange(1, 7, dtype="i1").reshape(2, 3)
    sums = fusec.cumulative_sum(x, axis=1, include_initial=True)
    assert sums.dtype == np.int64
    assert sums.tolist() == [[0, 1, 3, 6], [0, 4, 9, 15]]
    assert fusec.cumulative_prod(x, axis=0, include_initial=True).tolist() == [[1, 1, 1], [1, 2, 3], [4, 10, 18]]
    assert fusec.cumulative_sum(np.zeros(0), include_initial=True).tolist() == [0]


def test_results_of_another_library_s_array_are_of_that_library(monkeypatch):
    class Tensor:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    monkeypatch.setattr(Tensor, "__module__", "other")
    monkeypatch.setitem(sys.modules, "other", SimpleNamespace(from_dlpack=Tensor))
    x = Tensor(np.arange(6).reshape(2, 3))
    assert fusec.cumsum(x).array.tolist() == [0, 1, 3, 6, 10, 15]
    assert fusec.cumulative_sum(x, axis=1, include_initial=True).array.tolist() == [[0, 0, 1, 3], [0, 3, 7, 12]]


def test_empty_arrays_and_numbers():
    assert fusec.cumsum(np.zeros((0, 3)), axis=0).shape == (0, 3)
    assert fusec.cumsum(np.zeros((3, 0)), axis=0).shape == (3, 0)
    assert fusec.cumsum(np.float32(7)).tolist() == [7]
    assert fusec.cumsum([1, 2, 3]).tolist() == [1, 3, 6]


TOTALS = "cumsum cumprod cummax cummin logcumsumexp cumulative_sum cumulative_prod sum".split()


@pytest.mark.parametrize("name", [*TOTALS, "softmax", "log_softmax", "layer_norm"])
def test_axes_are_integers_of_any_sort_and_nothing_else(name):
    x, function = normal((3, 5)), getattr(fusec, name)
    for axis in (np.array(1), np.int8(1), np.array(-1)):
        np.testing.assert_array_equal(function(x, axis=axis), function(x, axis=1))
    for axis in (np.array([1]), np.array(1.0), 1.0, True, np.True_, np.array(True), "1"):
        with pytest.raises(TypeError, match=re.escape(f"not {axis!r} [F242]")):
            function(x, axis=axis)


@pytest.mark.parametrize("count", [2048, 5000, 300000])
def test_sums_keep_the_documented_bound(count):
    rng = np.random.default_rng(count)
    x = (rng.normal(size=count) * 2.0 ** rng.integers(-20, 20, count)).astype("f4")
    for found, depth in ((fusec.cumsum(x), levels(count, 2048)), (columns_of(x), levels(count, 64))):
        for at in (*range(1, count, count // 9), count - 1):
            exact = math.fsum(x[: at + 1].tolist())
            size = math.fsum(np.abs(x[: at + 1]).tolist())
            k = (69 if found.ndim == 1 else 64) * (depth + 1) - 1
            assert abs(float(found.reshape(count, -1)[at, 0]) - exact) <= k * 2**-24 / (1 - k * 2**-24) * size


def columns_of(x):
    return fusec.cumsum(np.repeat(x[:, None], 33, 1), axis=0)


def levels(count, chunk):
    return 0 if count <= chunk else 1 + levels(-(-count // chunk), chunk)


def test_many_ones_are_counted_exactly_up_to_what_a_float_holds():
    found = fusec.cumsum(np.ones(1 << 24, "f4"))
    assert np.array_equal(found, np.arange(1, (1 << 24) + 1, dtype="f4"))


# --- kernels of users ----------------------------------------------------------------------------------------------


def test_logcumsumexp_is_the_accumulation_of_logaddexp():
    special = np.array([-np.inf, -np.inf, 0, 1000, -1000, np.inf, -np.inf, 1, np.nan, 2])
    low = np.array([-np.inf, -2000, -1999, -np.inf, -3000, np.inf, 3])
    np.testing.assert_allclose(fusec.logcumsumexp(low), np.logaddexp.accumulate(low), rtol=1e-14)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(fusec.logcumsumexp(special), np.logaddexp.accumulate(special), rtol=1e-14)
    x = normal(5000, "f8") * 100
    np.testing.assert_allclose(fusec.logcumsumexp(x), np.logaddexp.accumulate(x), rtol=1e-13)


def test_segments_start_again_and_exclusive_results_do_not_see_their_element():
    x, starts = normal(5000, "f8"), np.random.default_rng(0).random(5000) < 0.01
    texts = ("T x, bool starts", "T y", "x", "a + b", "y = a", 0, "add")
    inclusive = fusec.ScanKernel(*texts, segments="starts")(x, starts)
    exclusive = fusec.ScanKernel(*texts, segments="starts", inclusive=False)(x, starts)
    edges = np.flatnonzero(starts)
    for part, sums in zip(np.split(x, edges), np.split(inclusive, edges), strict=True):
        np.testing.assert_allclose(sums, np.cumsum(part), atol=1e-12)
    before = np.concatenate([[0], inclusive[:-1]])
    np.testing.assert_array_equal(exclusive, np.where(starts, 0, before))


def test_a_linear_recurrence_is_a_scan_of_pairs():
    """y[i] = p[i] y[i - 1] + q[i], by maps that compose."""
    kernel = fusec.ScanKernel(
        "float64 p, float64 q", "float64 y", "Line{p, q}", "Line{a.p * b.p, a.q * b.p + b.q}", "y = a.q", None, "line",
        "Line", "struct Line { double p; double q; };",
    )  # fmt: skip
    p, q = np.random.default_rng(2).random((2, 3000))
    y, wanted = 0.0, []
    for at in range(3000):
        y = p[at] * y + q[at]
        wanted.append(y)
    np.testing.assert_allclose(kernel(p, q), wanted, rtol=1e-12)


def test_several_outputs_and_numbers_by_value():
    kernel = fusec.ScanKernel(
        "T x, T scale", "T low, bool high", "x * scale", "a + b", "low = a; high = a > (T)1", None, "several"
    )
    low, high = kernel(np.ones(40), 0.25)
    np.testing.assert_array_equal(low, np.arange(1, 41) / 4)
    np.testing.assert_array_equal(high, low > 1)


def test_kernels_travel():
    kernel = fusec.ScanKernel("T x", "T y", "x", "a * b", "y = a", 1, "product", inclusive=False)
    again = pickle.loads(pickle.dumps(kernel))
    assert again(np.arange(1.0, 6)).tolist() == [1, 1, 2, 6, 24]
    assert "product" in repr(again)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: fusec.cumsum(np.ones((2, 2)), axis=2), IndexError, "axis 2 is out of bounds for array of dimension 2"),
        (lambda: fusec.cumsum(np.ones(3), axis=-2), IndexError, "axis -2 is out of bounds for array of dimension 1"),
        (lambda: fusec.cumulative_sum(np.ones((2, 2))), ValueError, "axis=None"),
        (lambda: fusec.cumulative_sum(np.float64(1), axis=0), IndexError, "axis 0 is out of bounds"),
        (lambda: ADD(np.ones((2, 2)), axis=(0, 1)), ValueError, "one axis"),
        (lambda: ADD(np.ones(2), axis=0.5), TypeError, "integer"),
        (lambda: ADD(np.ones(2), out=np.ones(3)), ValueError, "shape"),
        (lambda: ADD(np.ones(2), out=np.ones(2, "f4")), TypeError, "float"),
        (lambda: ADD(np.ones(2), out=(np.ones(2), np.ones(2))), ValueError, "output"),
        (lambda: fusec.cummax(np.ones(2, "c8")), TypeError, "complex"),
        (lambda: fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", inclusive=False), ValueError, "identity"),
        (lambda: fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", segments="z"), ValueError, "segments"),
        (lambda: fusec.ScanKernel("T x, int8 z", "T y", "x", "a + b", "y = a", segments="z"), TypeError, "bool"),
        (lambda: fusec.ScanKernel("T x", "T y", "_J", "a + b", "y = a"), ValueError, "_J"),
        (lambda: fusec.ScanKernel("T x", "T y", "x +", "a + b", "y = a"), ValueError, "unexpected end"),
    ],
)
def test_mistakes_are_named(call, error, text):
    with pytest.raises(error, match=text) as caught:
        call()
    assert isinstance(caught.value, FusecError)


def test_the_page_says_what_scans_do():
    page = (Path(__file__).parents[2] / "docs" / "scans.md").read_text()
    exec("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), {})


def test_complex_values_that_are_the_same_for_all_columns():
    x = np.broadcast_to(np.arange(5).reshape(5, 1) * (1 + 2j), (5, 3))
    np.testing.assert_array_equal(fusec.cumsum(x, axis=0), np.cumsum(x, axis=0))
    kernel = fusec.ScanKernel("T x, complex128 z", "complex128 y", "z", "a + b", "y = a")
    np.testing.assert_array_equal(kernel(np.ones((5, 3)), 2j, axis=0)[:, 0], 2j * np.arange(1, 6))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("T y", "x", "a + q", "y = a"), "unknown name 'q'.*scan_expr"),
        (("T y", "x", "", "y = a"), "scan_expr is empty"),
        (("T a", "x", "a + b", "a = a"), "'a' is the total in post_map_expr"),
        (("T y", "x", "a + b", "if (a > 1) { y = a; return; } y = 0"), "return in the post_map_expr of a scan"),
        (("T y", "x", "a + b", "y = a; for (int k : {1, 2}) return;"), "return in the post_map_expr of a scan"),
    ],
)
def test_mistakes_in_texts_are_named_when_a_scan_is_defined(texts, message):
    with pytest.raises(FusecError, match=f"(?s){message}"):
        fusec.ScanKernel("T x", *texts, 0, "wrong")


def test_an_input_called_as_the_total_is_no_total():
    assert (
        fusec.ScanKernel("T x, T a", "T b", "x * a", "a + b", "b = a", 0, "scaled")(np.ones(4), 2.0) == [2, 4, 6, 8]
    ).all()
    with pytest.raises(FusecError, match="'a' is the total"):
        fusec.ReductionKernel("T x", "T a", "x", "a + b", "a = a", 0, "wrong")


def test_identities_given_as_numbers_are_values_of_the_totals():
    kernel = fusec.ScanKernel("T x", "T y", "x", "max(a, b)", "y = a", -np.inf, "greatest", inclusive=False)
    again = pickle.loads(pickle.dumps(kernel))
    for each in (kernel, again):
        np.testing.assert_array_equal(each(np.array([3.0, 1.0, 5.0])), [-np.inf, 3, 3])
        with pytest.raises(FusecError, match="-inf"):
            each(np.arange(3))


def test_scans_by_several_kernels_keep_little_memory_for_their_next_call():
    """What lies between kernels may be as large as the array; then no entry keeps it."""
    from fusec.dispatch.native_entries import MOST_BYTES

    kernel = fusec.ScanKernel("int8 x", "int8 y", "x", "a + b", "y = a", 0, "wide", "double")
    x = np.ones((MOST_BYTES, 8), np.int8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scans, "machine_of", lambda _: MACHINES["parted"])
        for _ in range(4):
            np.testing.assert_array_equal(kernel(x[:100], axis=0)[-1], [100] * 8)
        assert kernel.quick
        kernel.quick.clear()
        for _ in range(4):
            kernel(x, axis=0)
    assert all(isinstance(each, functools.partial) for each in kernel.quick.values())  # Python runs kernel by kernel


def test_a_keyword_that_calls_do_not_take_is_named():
    kernel = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", "0", "running")
    with pytest.raises(FusecError, match=r"'running' takes no keyword 'keepdims'.*F201"):
        kernel(np.arange(3), keepdims=True)


@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"reverse": True}], ids=str)
def test_elements_left_out_count_as_the_identity(options):
    kernel = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0)
    x = np.random.default_rng(3).normal(size=(7, 90)).astype("float32")
    mask = x > 0.2
    wanted = kernel(np.where(mask, x, np.float32(0)), **options)
    np.testing.assert_array_equal(kernel(x, where=mask, **options), wanted)
    np.testing.assert_array_equal(fusec.simulate(kernel)(x, where=mask, **options), wanted)
    out = np.empty_like(x)
    assert kernel(x, where=mask, out=out, **options) is out
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(kernel(x, where=True, **options), kernel(x, **options))


def test_a_mask_of_a_scan_is_bool_and_needs_an_identity():
    kernel = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a")
    with pytest.raises(ValueError, match=r"^scan operation 'scan_kernel'.*F244"):
        kernel(np.ones(3), where=np.array([True, False, True]))
    with pytest.raises(TypeError, match="F245"):
        fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0)(np.ones(3), where=np.array([1, 0, 1]))


def test_a_mask_leaves_the_type_of_elements_alone():
    """An identity that is a float would make floats of 64-bit integers in a choice between the two."""
    x = np.array([2**53 + 1, 2, 5])
    kernel = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0.0)
    np.testing.assert_array_equal(kernel(x, where=np.array([True, False, True])), [2**53 + 1, 2**53 + 1, 2**53 + 6])


def test_the_mask_of_a_scan_has_a_name_of_its_own():
    kernel = fusec.ScanKernel("T where, T where_", "T y", "where * where_", "a + b", "y = a", 0)
    np.testing.assert_array_equal(kernel(np.arange(3), 2, where=np.array([True, False, True])), [0, 0, 4])


@pytest.mark.parametrize(
    ("value", "preamble", "options"),
    [
        ("where(x)", "__device__ double where(double x) { return 5 * x; }", ()),
        ("where(x)", "template<typename T> __device__ T where(T x) { T where_ = 5 * x; return where_; }", ()),
        ("where(x)", "#define where(x) (5 * (x))", ()),
        ("x * where", "#define where 5.0", ()),
        ("x * where", "__constant__ double where = 5;", ()),
        ("x * where", "enum { where = 5 };", ()),
        ("x * where{5.0}.v", "struct where { double v; };", ()),
        ("x * where", "", ("-Dwhere=5",)),
    ],
)
def test_the_mask_of_a_scan_has_no_name_of_the_preamble(value, preamble, options):
    kernel = fusec.ScanKernel("float64 x", "float64 y", value, "a + b", "y = a", 0, preamble=preamble, options=options)
    x, taken = np.arange(1.0, 7.0), np.arange(6) % 2 == 1
    np.testing.assert_array_equal(kernel(x, where=taken), np.cumsum(5 * x * taken))
