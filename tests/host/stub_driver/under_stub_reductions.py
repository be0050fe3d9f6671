"""Run by test_stub_driver.py where libcuda is the stand-in: reductions of device arrays, end to end."""

import ctypes
import gc
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fusec
from fusec.base.kernel_abi import Kernel, Layout
from fusec.dispatch.spec import CallOptions
from fusec.runtime import cuda
from fusec.runtime.cuda import launching
from tests.support.differences import differences

sys.path.append(str(Path(__file__).parents[1]))
pytestmark = pytest.mark.usefixtures("host_twins")
library = ctypes.CDLL("libcuda.so.1")
library.stub_log.restype = ctypes.c_char_p
TOTAL = fusec.ReductionKernel("T x", "T z", "x", "a + b", "z = a", "0", "total")
STREAM = 4096


def calls(*entries: str) -> list[str]:
    lines = [line.strip() for line in library.stub_log().decode().splitlines()]
    return [line for line in lines if line.startswith(entries)]


@pytest.fixture(autouse=True)
def _fresh_log():
    gc.collect()
    library.stub_log_clear()


class Exporter:
    """An array of another library."""

    def __init__(self, source, **changes):
        self.source = source
        self.__cuda_array_interface__ = {**source.__cuda_array_interface__, **changes}


X = np.random.default_rng(0).normal(size=20_000).astype("f4")


def test_a_kind_of_kernels_made_outside_runs_on_devices() -> None:
    kernel, wanted = differences(), np.diff(X.reshape(100, 200), axis=0)
    x, out = cuda.from_numpy(X.reshape(100, 200)), cuda.from_numpy(np.zeros_like(wanted))
    for _ in range(3):  # later calls take the fast path
        (found,) = kernel.run((x,), None, CallOptions(0))
        assert found.numpy().tobytes() == wanted.tobytes()
        kernel.run((x,), out, CallOptions(0))
        assert out.numpy().tobytes() == wanted.tobytes()
    assert kernel.quick[0, False, False](x).numpy().tobytes() == wanted.tobytes()


def test_the_kernels_of_a_reduction_follow_each_other_on_one_stream():
    there = cuda.from_numpy(X, stream=STREAM)
    library.stub_log_clear()
    z = TOTAL(there, stream=STREAM)
    launches = [re.search(r"grid (\d+) block (\d+) stream (\w+)", line) for line in calls("cuLaunchKernel")]
    assert [int(found[3], 16) for found in launches] == [STREAM, STREAM]
    assert all(int(found[2]) % 32 == 0 for found in launches)
    assert [line.split()[-1] for line in calls("cuMemFreeAsync")] == ["0x1000"]  # what lay between the two
    assert not calls("cuStreamSynchronize")
    assert z.numpy() == TOTAL(X)


def test_a_call_like_two_earlier_ones_compiles_nothing():
    first, second = cuda.from_numpy(X), cuda.from_numpy(X[::-1].copy())
    for _ in range(2):  # the second call makes one kernel of the last two
        TOTAL(first)
    library.stub_log_clear()
    assert TOTAL(second).numpy() == TOTAL(X[::-1].copy())
    assert not calls("cuLibraryLoadData")


def test_repeated_calls_follow_their_arguments():
    kernel = fusec.ReductionKernel("T x, T y", "T z, int64 n", "x * y", "a + b", "z = a; n = 1", "0", "repeated")
    rng = np.random.default_rng(1)
    for shape, axis in (((20_000,), None), ((70, 90), 0), ((70, 90), 1), ((9, 9, 9), None)):
        for _ in range(3):
            x, y = rng.normal(size=(2, *shape)).astype("f4")
            for second in (y, 2.5, y[:1], np.float32(3)):
                there = cuda.from_numpy(second) if isinstance(second, np.ndarray) else second
                given = cuda.from_numpy(x)
                for got, expected in zip(kernel(given, there, axis=axis), kernel(x, second, axis=axis), strict=True):
                    assert got.numpy().tobytes() == np.asarray(expected).tobytes()
    assert len([path for path in kernel.paths.of.values() if path.repeated]) == 3
    double = kernel(cuda.from_numpy(x.astype("f8")), 2.0)[0]
    assert double.numpy() == kernel(x.astype("f8"), 2.0)[0]
    with pytest.raises(ValueError, match="broadcast"):
        kernel(cuda.from_numpy(x), cuda.from_numpy(np.zeros(4, "f4")))


def test_repeated_calls_run_on_the_device_of_their_arrays():
    for round_ in range(3):
        for device in (0, 1):
            library.stub_log_clear()
            assert TOTAL(cuda.from_numpy(X, device=device)).device == device
            launches = [line.split()[-1] for line in calls("cuLaunchKernel")]
            assert set(launches) == {str(device)}
            assert len(launches) == 1 or round_ < 2 or device  # on the current device, two kernels have become one


def test_arrays_of_other_libraries_are_read_after_they_were_made_and_written_before_they_are_used():
    source, out = cuda.from_numpy(X), cuda.from_numpy(np.zeros((), "f4"))
    TOTAL(Exporter(source, stream=STREAM), out=Exporter(out, stream=2 * STREAM), stream=STREAM // 2)
    assert out.numpy() == TOTAL(X)
    waits = [line.split()[1] for line in calls("cuStreamWaitEvent")]
    assert waits[:2] == ["0x800", "0x800"]
    assert waits[2:] == ["0x2000"]


def test_kernels_run_where_the_arrays_are():
    assert TOTAL(cuda.from_numpy(X, device=1)).device == 1
    assert {line.split()[-1] for line in calls("cuLaunchKernel")} == {"1"}
    with pytest.raises(ValueError, match="some are on device 0 and on 1"):
        TOTAL(cuda.from_numpy(X), out=cuda.empty((), cuda.describe(cuda.from_numpy(X)).dtype, device=1))


def test_no_elements_launch_no_reduction():
    z = TOTAL(cuda.from_numpy(np.zeros((0, 3), "f4")), axis=0)
    assert z.numpy().tolist() == [0, 0, 0]
    assert TOTAL(cuda.from_numpy(np.zeros((0, 3), "f4")), axis=1).shape == (0,)
    assert all("copy" in line for line in calls("cuLaunchKernel"))


def test_explain_reports_the_kernels_of_the_device():
    report = TOTAL.explain(cuda.from_numpy(X))
    assert "3 blocks of 512 threads" in dict(report.lines)["kernel 1"]
    assert "32 threads in groups of 32" in dict(report.lines)["kernel 2"]
    assert not calls("cuLaunchKernel")
    assert "total_first" in TOTAL.source()


def test_explain_reports_the_elementwise_kernel_of_the_device():
    twice = fusec.ElementwiseKernel("T x", "T z", "z = x * 2", "twice")
    x = cuda.from_numpy(X)
    library.stub_log_clear()
    report = fusec.explain(twice, x)
    lines = dict(report.lines)
    assert lines["types"] == "x: float32, z: float32"
    assert lines["path"].endswith("launches again with other addresses")
    assert (lines["plan"], report.bytes_moved) == ("1 of 1", 2 * X.nbytes)
    assert not calls("cuLaunchKernel", "cuMemAlloc")
    assert "__global__" in twice.source()
    assert "twice compiled in " in lines["machine code"]
    assert twice(x).numpy()[0] == 2 * X[0]
    assert dict(fusec.explain(twice, x).lines)["plan"] == "1 of 1"  # the call has taken the plan that was reported


@pytest.mark.parametrize("call", [fusec.ElementwiseKernel, fusec.ReductionKernel])
def test_debug_level_1_says_how_code_for_a_device_came(call, monkeypatch, capsys):
    texts = (
        ("T x", "T z", "z = x * 5") if call is fusec.ElementwiseKernel else ("T x", "T z", "x", "a + b", "z = a", "0")
    )
    monkeypatch.setenv("FUSEC_DEBUG", "1")
    for how in ("compiled in", "from memory in"):
        call(*texts, name="told")(cuda.from_numpy(X))
        assert re.search(f"fusec: told.* {how} ", capsys.readouterr().err)


@fusec.elementwise
def scaled(x, y):
    return x * y


@fusec.kernel
def filled(x):
    for i in fusec.grid(x.shape[0]):
        x[i] = i


@pytest.mark.parametrize("each", ["ElementwiseKernel", "elementwise", "kernel"])
def test_explain_says_how_many_threads_a_block_has(each, monkeypatch):
    monkeypatch.setenv("FUSEC_STUB_KERNEL_THREADS", "256")  # as of __launch_bounds__(256)
    kernels = {
        "ElementwiseKernel": fusec.ElementwiseKernel("T x", "T z", "z = x * 3", "thrice"),
        "elementwise": fusec.elementwise("lambda x: x * 3"),
        "kernel": fusec.kernel("def fill(x):\n    for i in fusec.grid(x.shape[0]):\n        x[i] = 3"),
    }
    kernel, x = kernels[each], cuda.from_numpy(X)
    shown = [dict(fusec.explain(kernel, x, block_size=size).lines)["block"] for size in (None, 64, 1024)]
    most = "256 threads: the most that the kernel can run, see docs/kernels.md (block_size=1024)"
    assert shown == ["32 threads", "64 threads", most]  # there are few threads in all
    for size in (64, 1024):
        library.stub_log_clear()
        kernel(x, block_size=size)
        assert f" block {min(size, 256)} " in calls("cuLaunchKernel")[-1]


def test_explain_of_reductions_takes_outputs_on_the_device():
    z = cuda.from_numpy(np.zeros((), "f4"))
    x = cuda.from_numpy(X)
    assert dict(TOTAL.explain(x, out=z).lines) == dict(TOTAL.explain(x, z).lines)
    assert TOTAL.explain(x, out=z).bytes_moved == TOTAL.explain(x).bytes_moved


@pytest.mark.parametrize("each", ["elementwise", "kernel"])
def test_explain_takes_device_arrays_for_decorated_functions(each):
    x = cuda.from_numpy(X)
    report = fusec.explain(scaled, x, 2.0) if each == "elementwise" else fusec.explain(filled, x)
    assert "launches again" in report.path
    assert not calls("cuLaunchKernel")


@pytest.mark.parametrize(
    ("asked", "most", "threads"), [(1, 1024, 32), (32, 1024, 32), (100, 1024, 128), (256, 250, 224), (64, 33, 32)]
)
def test_blocks_hold_whole_groups(asked, most, threads):
    kernel = Kernel("total", "cuda", (), "", Layout(1), group=32)
    assert launching.block_of(kernel, asked, most) == threads
    assert launching.block_of(replace(kernel, group=1), asked, most) == min(asked, most)


def test_weights_of_rows_are_converted_there_too():
    x, weight = X[:600].reshape(200, 3)[:40].astype("f2"), X[:3]  # columns: short texts to compile
    found = fusec.layer_norm(cuda.from_numpy(x), cuda.from_numpy(weight), 0.5, axis=0)
    assert found.numpy().tobytes() == fusec.layer_norm(x, weight, 0.5, axis=0).tobytes()
    with pytest.raises(TypeError, match=r"bias\.astype\('float32'\)"):
        fusec.layer_norm(cuda.from_numpy(x), None, cuda.from_numpy(weight.astype("f8")))


def test_medians_are_not_taken_on_a_device():
    with pytest.raises(TypeError):
        fusec.median(cuda.from_numpy(X))


def test_what_is_wrong_is_said_as_on_the_host():
    there = cuda.from_numpy(X.reshape(100, 200))
    with pytest.raises(IndexError, match="axis 2 is out of bounds"):
        TOTAL(there, axis=2)
    with pytest.raises(TypeError, match="bool"):
        TOTAL(there, where=there)
    with pytest.raises(ValueError, match="broadcast"):
        TOTAL(there, where=cuda.from_numpy(np.ones(3, "?")))
    with pytest.raises((TypeError, ValueError), match="host"):
        TOTAL(there, out=np.zeros((), "f4"))
    with pytest.raises((TypeError, ValueError), match="read"):
        TOTAL(there, out=Exporter(cuda.from_numpy(np.zeros((), "f4")), data=(there.pointer, True)))
    assert not calls("cuLaunchKernel")


LONG_ROWS = {
    "softmax": lambda x, **options: fusec.softmax(x, axis=-1, **options),
    "log_softmax of columns": lambda x, **options: fusec.log_softmax(x, axis=0, **options),
    "layer_norm": lambda x, **options: fusec.layer_norm(x, 0.5, 2, axis=(0, 1), eps=1e-3, **options),
    "logsumexp": lambda x, **options: fusec.logsumexp(x, axis=1, **options),
    "all of var": lambda x, **options: fusec.var(x, **options),
}
RUN_FIRST = (("softmax", "float32"), ("layer_norm", "float32"))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(name, dtype, marks=[] if (name, dtype) in RUN_FIRST else pytest.mark.slow)
        for name in LONG_ROWS
        for dtype in ("float32", "float64")
    ],
)
def test_repeated_calls_of_long_rows_are_one_sequence_with_the_same_bits(name, dtype):
    call, shape = LONG_ROWS[name], (9001, 3) if "columns" in name else (3, 9001)
    rng = np.random.default_rng(5)
    for round_ in range(5):
        x = rng.normal(size=shape).astype(dtype)
        there, expected = cuda.from_numpy(x), call(x)
        library.stub_log_clear()
        found, out = call(there), cuda.from_numpy(np.zeros_like(expected))
        assert found.shape == np.shape(expected)
        assert found.numpy().tobytes() == np.asarray(expected).tobytes()
        assert call(there, out=out) is out
        assert out.numpy().tobytes() == np.asarray(expected).tobytes()
        assert round_ < 4 or not calls("cuLibraryLoadData")
    if "norm" in name or name == "softmax":
        assert call(there, out=there) is there
        assert call(there, out=there).numpy().tobytes() == call(expected).tobytes()


def test_long_rows_are_refused_in_repeated_calls_as_in_the_first():
    x = cuda.from_numpy(np.ones((2, 9001), "f4"))
    told = set()
    for _ in range(3):
        fusec.softmax(x)
        with pytest.raises(ValueError, match="9001") as problem:
            fusec.softmax(x, out=cuda.from_numpy(np.ones((3, 9001), "f4")))
        told.add(str(problem.value))
    assert len(told) == 1


def test_rows_of_several_chunks_are_one_launch():
    x = np.random.default_rng(1).normal(size=(3, 12_345)).astype("f4")
    there, wanted = cuda.from_numpy(x), [fusec.softmax(x), fusec.layer_norm(x, x[0])]
    for _ in range(3):  # later calls take the fast path
        library.stub_log_clear()
        assert fusec.softmax(there).numpy().tobytes() == wanted[0].tobytes()
        assert len(calls("cuLaunchKernel")) == 1
        assert fusec.layer_norm(there, cuda.from_numpy(x[0])).numpy().tobytes() == wanted[1].tobytes()
        assert len(calls("cuLaunchKernel")) == 2
    other = np.ascontiguousarray(x[:2, :9000])
    assert fusec.softmax(cuda.from_numpy(other)).numpy().tobytes() == fusec.softmax(other).tobytes()
    assert len(calls("cuLaunchKernel")) == 3
    longer = np.random.default_rng(2).normal(size=(2, 33_000)).astype("f4")
    assert fusec.softmax(cuda.from_numpy(longer)).numpy().tobytes() == fusec.softmax(longer).tobytes()
    assert len(calls("cuLaunchKernel")) == 4  # of a cluster of blocks for each row


def _softmax(x):
    power = np.exp(x - x.max(-1, keepdims=True))
    return power / power.sum(-1, keepdims=True)


def _scaled(x, weight):
    far = x - x.mean(-1, keepdims=True)
    return far / np.sqrt((far * far).mean(-1, keepdims=True) + np.float32(1e-5)) * weight, far.max(-1)


def _with_spread(x):
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)


def _with_wide_totals(x):
    power = np.exp(x - x.max(-1, keepdims=True))
    return power / power.sum(-1, keepdims=True), x.sum(-1, dtype="f8")


def test_fused_rows_of_several_chunks_are_one_launch_where_the_host_has_the_same_order():
    x = np.random.default_rng(1).normal(size=(3, 12_345)).astype("f4")
    cases = [(_softmax, (x,), 1), (_scaled, (x, x[1]), 1), (_with_spread, (x,), 0), (_with_wide_totals, (x,), 0)]
    for function, args, launches in cases:
        fused, on_host = fusec.fuse(function), fusec.fuse(function)
        for count in (12_345, 9000, 200, 12_345, 33_000):
            given = [np.ascontiguousarray(np.resize(each, (*each.shape[:-1], count))) for each in args]
            wanted = on_host(*given)
            for _ in range(3):
                library.stub_log_clear()
                found = fused(*map(cuda.from_numpy, given))
                made = len(calls("cuLaunchKernel"))
                pairs = zip(*(each if isinstance(each, tuple) else (each,) for each in (found, wanted)), strict=True)
                assert all(one.numpy().tobytes() == other.tobytes() for one, other in pairs)
            if launches:
                assert made == launches, (function, count, made)
            elif count > 9000:
                assert made > 1
