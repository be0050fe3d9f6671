"""Run by test_stub_driver.py: fused functions of arrays of other libraries, and calls of NumPy between kernels."""

import ctypes
import gc
import sys
from types import ModuleType, SimpleNamespace
from unittest import mock

import cupy_over_stub
import numpy as np
import pytest
from under_stub_scans import Tensor, tensor  # noqa: F401 - a fixture

import fusec
import fusec.xp as xp
from fusec.errors import FusecError
from fusec.fusion.devices.device_repeats import RepeatedCall
from fusec.fusion.fused_plan import FusedPlan
from fusec.runtime import cuda
from fusec.runtime.cuda import counters

pytestmark = pytest.mark.usefixtures("host_twins")


@pytest.fixture
def cupy(monkeypatch):
    made = cupy_over_stub.module()
    monkeypatch.setitem(sys.modules, "cupy", made)
    return made


def layered(x, w):
    hidden = np.tanh(x @ w)
    x[0] = 7
    return np.linalg.solve(hidden.T @ hidden + np.eye(3), np.ones(3)), hidden[::-1, 1:], x, x[1:].T, hidden.sum()


X, W = np.random.default_rng(3).random((5, 4)), np.random.default_rng(4).random((4, 3))


def check(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        one = one.get() if isinstance(one, cupy_over_stub.ndarray) else one.numpy()
        np.testing.assert_allclose(one, other, rtol=1e-12)
        assert (one.dtype, one.shape) == (np.asarray(other).dtype, np.shape(other))


def test_results_and_calls_of_numpy_are_cupys(cupy):
    fused = fusec.fuse(layered)
    for stream in (None, 2):
        x = cupy.asarray(X)
        found = fused(x, cupy.asarray(W), stream=stream)
        assert {type(each) for each in found} == {cupy.ndarray}
        assert found[2] is x
        assert found[3].data.ptr == x.data.ptr + 32
        assert found[1].strides == (-24, 8)
        check(found, layered(X.copy(), W))


def test_calls_of_numpy_on_our_arrays_take_cupy(cupy):
    fused = fusec.fuse(layered)
    for _ in range(2):
        found = fused(cuda.from_numpy(X), cuda.from_numpy(W))
        assert {type(each) for each in found} == {cuda.CudaArray}
        check(found, layered(X.copy(), W))


def test_what_cupy_does_not_do_is_refused(cupy, monkeypatch):
    fused, x = fusec.fuse(lambda x: np.percentile(x * 2, x) + 1), cuda.from_numpy(np.arange(4.0))
    with pytest.raises(FusecError, match="CuPy does not have it for these arrays") as refusal:
        fused(x)
    assert refusal.value.code == "F286"
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(FusecError, match="CuPy, which would compute it there, cannot be imported"):
        fused(x)


def test_results_of_calls_may_be_views_of_operands(cupy):
    fused = fusec.fuse(lambda x: np.linalg.matrix_transpose(x) @ np.eye(5) + 0)
    np.testing.assert_array_equal(fused(cupy.asarray(X)).get(), X.T)


class ArrayImpl:
    """An array of a library with JAX's name, which are dense in C order."""

    def __init__(self, own):
        self.own, self.shape, self.dtype = own, own.shape, own.dtype
        assert 0 in own.shape or own.strides == np.empty(own.shape, own.dtype).strides

    def __dlpack_device__(self):
        return self.own.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.own.__dlpack__(**options)


ArrayImpl.__module__ = "jaxlib.xla_extension"


@pytest.fixture
def jax(monkeypatch):
    made = ModuleType("jax")
    made.dlpack = SimpleNamespace(from_dlpack=ArrayImpl)
    monkeypatch.setitem(sys.modules, "jax", made)
    return lambda values: ArrayImpl(cuda.from_numpy(values))


def viewed(x, y):
    z = np.exp(x) + y
    return (
        z,
        z[1:, 0],
        z.T,
        z[::-1],
        x[1:],
        x.T,
        x[:, ::-1],
        x,
        z.sum(axis=1),
        x[2:2],
        z.sum(),
        np.broadcast_to(y, x.shape),
    )


@pytest.mark.parametrize(("library", "kind"), [("tensor", Tensor), ("jax", ArrayImpl)])
def test_results_and_views_are_of_the_library_of_the_first_array(library, kind, request):
    asarray, fused = request.getfixturevalue(library), fusec.fuse(viewed)
    wanted = fusec.fuse(viewed)(X, X[0])
    for second in (asarray, cuda.from_numpy):
        x = asarray(X)
        found = fused(x, second(X[0]))
        for at, (one, other) in enumerate(zip(found, wanted, strict=True)):
            assert type(one) is kind or (at == 11 and second is not asarray)
            np.testing.assert_array_equal(getattr(one, "own", one).numpy(), other)
        assert found[7] is x
        if library == "tensor":
            assert [found[at].own.pointer - x.own.pointer for at in (4, 5)] == [32, 0]
            assert found[0].own.pointer == found[2].own.pointer


def test_arrays_that_never_change_are_not_written(jax):
    def function(x):
        x += 1
        return x

    with pytest.raises(ValueError, match="read-only"):
        fusec.fuse(function)(jax(X))


def beside(x, y, z, w):
    for each in (x, y, w):
        each *= 0.5
        each += z[0]
    return np.stack([z, -z, z]), z + 1j, np.concatenate([y.T, y.T])


def entries_called():
    """The entries of the driver that were called since the last look."""
    library = ctypes.CDLL("libcuda.so.1")
    library.stub_log.restype = ctypes.c_char_p
    log = library.stub_log().decode()
    library.stub_log_clear()
    return [line.split()[0] for line in log.splitlines()]


def logged(*entries):
    """How many calls of these entries of the driver there were since the last look."""
    found = entries_called()
    return [found.count(each) for each in entries]


def test_kernels_that_share_a_launch_are_one_from_the_second_call_on():
    fused = fusec.fuse(beside)
    aligned = [[X, W, X[0], np.arange(3001.0)], [X[1:], W[1:], X[0], np.arange(300.0)[1:]]]
    for turn, given in enumerate((*aligned, *aligned, *aligned)):
        expected = [each.copy() for each in given]
        wanted = beside(*expected)
        whole = [cuda.from_numpy(each.copy()) for each in given]
        logged()
        found = fused(*whole)
        assert logged("cuLaunchKernel") == [5 if turn < 2 else 2]
        for one, other in zip((*found, *whole), (*wanted, *expected), strict=True):
            np.testing.assert_array_equal(one.numpy(), other)


def test_arguments_that_are_written_may_overlap():
    def update(x, y):
        x += y
        y *= 2

    fused = fusec.fuse(update)
    for offset in (0, 1, 8, 20) * 3:
        expected, memory = np.arange(40.0), cuda.from_numpy(np.arange(40.0))
        update(expected[:20], expected[offset : offset + 20])
        fused(memory[:20], memory[offset : offset + 20])
        np.testing.assert_array_equal(memory.numpy(), expected)


def chained(x, y, turns=2):
    for _ in range(turns):  # two kernels
        x = np.sqrt(x * (y / x.sum(axis=0)))
        x = x / x.sum(axis=1)[:, None]
    return x, x.max()


def python_calls(function, *args):
    """The functions of fusec that a call runs."""
    seen = []

    def note(frame, event, _):
        if event == "call" and frame.f_globals.get("__name__", "").startswith("fusec"):
            seen.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return seen


def test_repeated_calls_of_many_kernels_run_no_more_python_than_those_of_few():
    found = []
    for turns in (1, 4):
        fused, x, y = fusec.fuse(chained), cuda.from_numpy(X), cuda.from_numpy(X)
        for _ in range(3):
            check(fused(x, y, turns), chained(X, X, turns))
        found.append(python_calls(fused, x, y, turns))
    assert found[0] == found[1]
    assert len(found[0]) < 50, found[0]


def test_repeated_calls_export_no_arrays(tensor):  # noqa: F811
    fused = fusec.fuse(chained)
    for turn in range(4):
        x, y = tensor(X + turn), tensor(X)
        check([each.own for each in fused(x, y)], chained(X + turn, X))
    assert (x.exports, y.exports) == (0, 0)


def test_repeated_calls_with_constants_export_no_arrays(tensor):  # noqa: F811
    fused = fusec.fuse(lambda xp, x, function, dtype=None: function(xp.sqrt(x)).astype(dtype or x.dtype))
    for turn in range(4):
        for module in (np, fusec.xp):
            for function, dtype in ((np.square, np.float32), (lambda x: x + 1, None)):
                x = tensor(X + turn)
                wanted = function(np.sqrt(X + turn)).astype(dtype or X.dtype)
                check([fused(module, x, function, dtype=dtype).own], [wanted])
                assert x.exports == 0 or turn < 3  # the launches are prepared by then


def test_repeated_calls_allocate_what_is_between_their_kernels_at_once():
    fused, x, y = fusec.fuse(chained), cuda.from_numpy(X), cuda.from_numpy(X)
    found = fused(x, y)
    gc.disable()
    try:
        for turn in range(6):
            entries_called()
            found = fused(x, y)
            called = entries_called()
            assert called.count("cuMemAllocFromPoolAsync") <= 3  # also of two results
            if turn > 2:  # what calls before the last have given back is used again
                assert called == ["cuLaunchKernel"] * 4
    finally:
        gc.enable()
    del found


ENDS = [((70_000,), None), ((300, 40), 0), ((3, 9000), 1), ((5, 3, 20, 30), (0, 2, 3)), ((20, 33, 5), (0, 2))]


@pytest.mark.parametrize(("shape", "axis"), ENDS)
def test_totals_of_chunks_are_combined_by_the_last_block(shape, axis):
    fused = fusec.fuse(lambda x, y: (x.sum(axis), x.var(axis) + y.sum(axis)))
    for seed in range(3):
        x, y = (np.random.default_rng((seed, at)).random(shape) for at in (0, 1))
        mine = cuda.from_numpy(x), cuda.from_numpy(y)
        logged()
        found = fused(*mine, stream=2 - seed % 2)
        assert logged("cuLaunchKernel") == [2 if seed == 0 else 1]
        for one, other in zip(found, fused(x, y), strict=True):
            np.testing.assert_array_equal(one.numpy(), other)


def losses(x, y):
    rows = np.sqrt(((x - y) ** 2).sum(axis=1))
    return rows.mean(), rows.max(), x.max(axis=0).min()


@pytest.mark.parametrize("shape", [(40, 30), (3000, 7), (5, 3), (20, 9000)])
def test_totals_of_few_totals_are_found_by_the_last_block(shape):
    fused = fusec.fuse(losses)
    for seed in range(3):
        x, y = (np.random.default_rng((seed, at)).random(shape) for at in (0, 1))
        mine = cuda.from_numpy(x), cuda.from_numpy(y)
        logged()
        found = fused(*mine)
        assert logged("cuLaunchKernel") == [fused.explain(x, y).kernels] or not seed
        for one, other in zip(found, fused(x, y), strict=True):
            np.testing.assert_array_equal(one.numpy(), other)


def test_graphs_that_are_captured_count_blocks_in_memory_of_their_own(monkeypatch):
    fused, x = fusec.fuse(lambda x: x.sum()), cuda.from_numpy(np.arange(70_000.0))
    cleared, clear = [], counters.fill_with_zeros
    monkeypatch.setattr(counters, "fill_with_zeros", lambda *given: (cleared.append(given[0]), clear(*given)))
    for is_captured in (False, False, False, True, True, False):
        monkeypatch.setattr(counters, "is_captured", lambda stream, is_captured=is_captured: is_captured)
        if is_captured:
            cleared.clear()
        assert fused(x, stream=2).numpy() == 70_000 * 69_999 / 2  # the legacy stream cannot be captured
        assert len(cleared) == 1 or not is_captured


@pytest.mark.parametrize("library", ["tensor", "cupy", None])
@pytest.mark.parametrize("text", ["2 * a + sqrt(b)", "sum(a * b, axis=1)", "max(a)"])
def test_repeated_expressions_run_little_python(text, library, request):
    made = cuda.from_numpy if library is None else request.getfixturevalue(library)
    asarray = getattr(made, "asarray", made)
    for turn in range(6):
        names = {"a": X + turn, "b": X}
        there = {name: asarray(value) for name, value in names.items()}
        found, wanted = fusec.evaluate(text, there), fusec.evaluate(text, names)
        assert type(found) is type(there["a"])
        assert fusec.evaluate(text, {**names, "b": X[:1]}).shape == wanted.shape
        check([getattr(found, "own", found)], [wanted])
    if library is None:
        assert len(python_calls(fusec.evaluate, text, there)) < 45
    other = {"a": asarray(np.float32(X)), "b": asarray(X[:, :2].copy())}
    if "b" in text.replace("sub", ""):
        with pytest.raises(ValueError, match="broadcast"):
            fusec.evaluate(text, other)
    check([getattr(fusec.evaluate("max(a)", other), "own", fusec.evaluate("max(a)", other))], [np.float32(X).max()])


def between(x, w, factor):
    hidden = np.tanh(x @ w * factor)
    product = hidden.T @ hidden
    return product, np.sqrt(product + 1), x[1:] @ w, (hidden @ np.ones((3, 2))).sum(axis=0)


def test_repeated_calls_take_arrays_that_never_change(jax):
    fused = fusec.fuse(lambda x, y: (np.exp(x) + y, (x * y).sum(), x, (x - y).T))
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = x - 2 * y", "minus_twice")
    kept = []
    with mock.patch.object(RepeatedCall, "_run", autospec=True, side_effect=RepeatedCall._run) as ran:
        for turn in range(6):
            x, y = jax(X + turn), jax(X * 2)
            found = fused(x, y)
            assert found[2] is x
            assert {type(each) for each in found} == {type(x)}
            kept.append(((*found, kernel(x, y)), X + turn, X * 2))
            assert type(kept[-1][0][-1]) is type(x)
        short = [fused(jax(X[:3]), jax(X[1:4])) for _ in range(2)][1]
        check([short[0].own], [np.exp(X[:3]) + X[1:4]])
    assert ran.call_count == 0  # since results include a transpose, which JAX copies
    for found, x, y in kept:
        check([each.own for each in found], [np.exp(x) + y, (x * y).sum(), x, (x - y).T, x - 2 * y])
    fused = fusec.fuse(lambda x, y: (np.exp(x) + y, x))
    with mock.patch.object(RepeatedCall, "_run", autospec=True, side_effect=RepeatedCall._run) as ran:
        kept = [(fused(jax(X + turn), jax(X)), np.exp(X + turn) + X, X + turn) for turn in range(6)]
    assert ran.call_count == 4
    for found, *wanted in kept:
        check([each.own for each in found], wanted)
    for call in (kernel, fused):
        assert {"Cuda.run", "describe"}.isdisjoint(python_calls(call, jax(X), jax(X)))


def test_arrays_that_are_computed_are_not_exported_again(jax, monkeypatch):
    exports, is_ready = [], True
    export = ArrayImpl.__dlpack__
    own = {
        "is_ready": lambda self: is_ready,
        "unsafe_buffer_pointer": lambda self: self.own.pointer,
        "device": property(lambda self: ("gpu", self.own.device)),
        "format": property(lambda self: SimpleNamespace(layout=tuple(range(len(self.shape))))),
        "__dlpack__": lambda self, **options: exports.append(self) or export(self, **options),
    }
    for name, value in own.items():
        monkeypatch.setattr(ArrayImpl, name, value, raising=False)
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = x - 2 * y", "minus_twice")
    fused = fusec.fuse(lambda x, y: np.exp(x) + y)
    for call, wanted in ((kernel, X * 3 - 2 * X), (fused, np.exp(X * 3) + X)):
        for _ in range(3):
            call(jax(X * 3), jax(X))
        for is_ready in (True, False, True):
            x, y = jax(X * 3), jax(X)
            exports.clear()
            check([call(x, y).own], [wanted])
            assert exports == ([] if is_ready else [x, y])
            assert {"Cuda.run", "describe"}.isdisjoint(python_calls(call, x, y))


@pytest.mark.parametrize("library", ["tensor", "cupy", "jax", None])
def test_repeated_calls_of_libraries_take_arrays_of_all(library, request, cupy):
    made = cuda.from_numpy if library is None else request.getfixturevalue(library)
    asarray, fused = getattr(made, "asarray", made), fusec.fuse(between)
    asked = []
    with mock.patch.object(RepeatedCall, "_run", autospec=True, side_effect=RepeatedCall._run) as ran:
        for turn in range(6):
            x, w = asarray(X + turn), asarray(W * turn)
            kept = fused(x, w, 1.0 + turn)
            asked.append((kept, between(X + turn, W * turn, 1.0 + turn)))
            assert {type(each) for each in kept} == {type(x)}
            if library == "tensor" and turn > 2:
                assert (x.exports, w.exports) == (0, 0)
    assert ran.call_count >= 3
    for found, wanted in asked:
        check([getattr(each, "own", each) for each in found], wanted)


def test_results_of_calls_may_be_views_of_operands_in_repeated_calls(cupy, tensor):  # noqa: F811
    for asarray in (tensor, cuda.from_numpy, cupy.asarray):
        fused = fusec.fuse(lambda x: (np.linalg.matrix_transpose(x), np.linalg.matrix_transpose(x) @ np.eye(5) + 0))
        for turn in range(4):
            x = asarray(X + turn)
            found = fused(x)
            check([getattr(each, "own", each) for each in found], [(X + turn).T] * 2)


def test_repeated_expressions_with_out_run_little_python():
    x, y, out = (cuda.from_numpy(each) for each in (X, X[0], X))
    for number in (3, 2.5, np.float64(0.5), True):
        names = {"x": x, "y": y, "n": number}
        for _ in range(4):
            assert fusec.evaluate("n * x + y", names, out=out) is out
            np.testing.assert_array_equal(out.numpy(), number * X + X[0])
            np.testing.assert_array_equal(fusec.evaluate("n * x + y", names).numpy(), number * X + X[0])
        assert len(python_calls(lambda names=names: fusec.evaluate("n * x + y", names, out=out))) < 40
    for _ in range(4):
        assert fusec.evaluate("2 * x + y", names, out=out) is out
        np.testing.assert_array_equal(out.numpy(), 2 * X + X[0])
    assert len(python_calls(lambda: fusec.evaluate("2 * x + y", names, out=out))) < 35
    for _ in range(2):
        with pytest.raises(FusecError, match="int32"):
            fusec.evaluate("2 * x + y", names, out=cuda.from_numpy(np.int32(X)))


def recorded(a, b, number):
    hidden = xp.tanh(a * b) + a * number - b
    total = xp.sum(hidden)
    a[1:] += hidden[:-1]
    return hidden / total, total, hidden[::2], a * 2


def test_repeated_evaluations_of_lazy_arrays_run_prepared_launches():
    kept = []
    with mock.patch.object(FusedPlan, "run", autospec=True, side_effect=FusedPlan.run) as ran:
        for turn in range(7):
            gc.collect()
            there = [xp.asarray(each, device="cuda:0") for each in (X + turn, X * 2)]
            found = xp.compute(*recorded(*there, 1.5 + turn), there[0])
            wanted = np.tanh((X + turn) * X * 2) + (X + turn) * (1.5 + turn) - X * 2
            written = np.vstack([X[:1] + turn, X[1:] + turn + wanted[:-1]])
            whole = (wanted / wanted.sum(), wanted.sum(), wanted[::2], written * 2, written)
            kept.append((found, whole))
            assert ran.call_count == min(2, turn + 1)
    for found, wanted in kept:
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one.to_device("cpu")), other, 1e-12)
            assert (one.shape, one.dtype) == (np.shape(other), other.dtype)


def test_lazy_arrays_that_share_memory_are_told_from_those_that_do_not():
    for turn in range(8):
        a = xp.asarray(X + turn, device="cuda:0")
        x, y = (a[1:], a[:-1]) if turn % 2 else (a[1:], xp.asarray(X[:-1] + turn, device="cuda:0"))
        xp.compute(x, y)
        x += 2 * y
        wanted = X + turn
        wanted[1:] += 2 * (X[:-1] + turn)
        np.testing.assert_array_equal(np.asarray(a.to_device("cpu")), wanted)


def test_functions_without_kernels_may_be_called_again_and_again():
    fused, x = fusec.fuse(lambda x: (x[1:].T, x)), cuda.from_numpy(X)
    for _ in range(4):
        part, whole = fused(x)
        assert whole is x
        assert part.pointer == x[1:].pointer


def test_outputs_between_whose_elements_others_lie_are_written_by_one_kernel():
    def columns(x, y):
        wide = np.empty((len(x), 3), x.dtype)
        wide[:, 0], wide[:, 1], wide[:, 2] = x + y, x - y, x * y
        return wide, np.stack([x + 1, y * 2], axis=-1)

    fused = fusec.fuse(columns)
    for extent in (7, 7, 7, 7, 4, 9):
        x, y = np.random.default_rng(extent).random((2, extent))
        found = fused(cuda.from_numpy(x, 0), cuda.from_numpy(y, 0))
        check(found, columns(x, y))
