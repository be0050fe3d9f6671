"""First calls are interpreted while their kernels are compiled in the background; only time tells the difference."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fusec
from fusec import FusecError
from fusec.base import background
from fusec.compiler import pipeline
from fusec.dispatch import tiers
from fusec.dispatch.host import Host

X = np.linspace(-2, 3, 12, dtype="float32").reshape(3, 4)
NUMBERS = count()


@pytest.fixture(autouse=True)
def tiered(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The calls that are interpreted."""
    found, outputs = [], tiers._outputs

    def noted(*call: Any) -> Any:
        made = outputs(*call)
        found.append(call[0].name)
        return made

    monkeypatch.setenv("FUSEC_TIERS", "1")
    monkeypatch.setenv("FUSEC_CACHE", "0")
    monkeypatch.setattr(tiers, "_outputs", noted)
    yield found
    settle()


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """The background does nothing."""
    monkeypatch.setattr(background, "submit", lambda job: True)


def settle() -> None:
    """Wait until the background has nothing to do."""
    background.hurry()
    while background._thread is not None:
        time.sleep(0.001)


def new(text: str = "z = x * 2 + {}", inputs: str = "T x", outputs: str = "T z", **options: Any) -> Any:
    """A kernel that nobody has compiled."""
    number = next(NUMBERS)
    return fusec.ElementwiseKernel(inputs, outputs, text.format(number), f"tiers{number}", **options)


# --- which calls ------------------------------------------------------------------------------------------------------


def test_calls_are_interpreted_until_code_is_there(tiered: list[Any]) -> None:
    kernel = new()
    first = kernel(X)
    assert len(tiered) == 1
    settle()
    assert not kernel.is_waiting
    assert kernel(X).tobytes() == first.tobytes()
    assert len(tiered) == 1


def test_code_in_memory_is_used_at_once(tiered: list[Any]) -> None:
    kernel = new()
    kernel.compile(X)
    kernel(X)
    kernel(np.ones((7, 8), "float32"))  # another plan, the same code
    assert not tiered


def test_code_on_disk_is_used_at_once(tiered: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FUSEC_CACHE", "1")
    monkeypatch.setenv("FUSEC_CACHE_DIR", str(tmp_path))
    text = f"z = x * 3 + {next(NUMBERS)}"
    fusec.ElementwiseKernel("T x", "T z", text, "on_disk").compile(X)
    pipeline.forget_executables()
    fusec.ElementwiseKernel("T x", "T z", text, "on_disk")(X)
    assert not tiered


def test_debugging_and_the_setting_wait_for_the_compiler(tiered: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEC_DEBUG", "1")
    new()(X)
    monkeypatch.delenv("FUSEC_DEBUG")
    monkeypatch.setenv("FUSEC_TIERS", "0")
    new()(X)
    assert not tiered


@pytest.mark.parametrize(
    "make",
    [
        lambda: new(fp="fast")(X),
        lambda: new(fp="contract")(X),
        lambda: new(bounds="check")(X),
        lambda: new()(np.ones(20_000, "float32")),
        lambda: new("for (int k = 0; k < 3; k++) {{ z = x + k + {}; }}")(X),
        lambda: new("z[i] = x + {}", outputs="raw T z")(X, np.zeros(12, "float32")),
        lambda: new("atomicAdd(&y[0], x); z = x + {}", outputs="raw T y, T z")(X, np.zeros(1, "float32"), into()),
    ],
)
def test_what_the_interpreter_should_not_answer_waits(make: Callable[[], Any], tiered: list[Any]) -> None:
    make()
    assert not tiered


def test_many_calls_of_a_kind_wait_in_the_end(tiered: list[Any], idle: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "PATIENCE", 1e-9)
    kernel = new()
    for _ in range(3):
        kernel(X)
    assert len(tiered) == 1


def test_many_kinds_of_calls_wait_in_the_end(tiered: list[Any], idle: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "PATIENCE", 1e-9)
    kernel = new()
    for extent in (3, 4, 5):
        kernel(X[:, :extent])
        kernel(np.ones((extent, extent + 1), "float32"))
    assert len(tiered) == 1


def test_calls_of_a_known_kind_are_bound_until_that_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = new()
    kernel.compile(X)
    bound, bind = [], Host.bound
    monkeypatch.setattr(Host, "bound", lambda *call: (bound.append(1), bind(*call))[1])
    kernel(np.ones((7, 8), "float32"))
    assert len(bound) == 2  # for the call, and for calls to come
    kernel(np.ones((9, 5), "float32"))
    assert len(bound) == 2


# --- the same results -------------------------------------------------------------------------------------------------

A, B = X, X[::-1, ::-1]


def into(shape: tuple[int, ...] = (3, 4), order: str = "C") -> np.ndarray[Any, Any]:
    return np.full(shape, 7, "float32", order)


def changed(call: Callable[[Any], Any], given: np.ndarray[Any, Any]) -> Any:
    """What a call makes of an array."""
    found = call(given)
    return found, given


def fused(function: Callable[..., Any], *args: Any) -> Any:
    number = next(NUMBERS) + 0.5
    return fusec.fuse(lambda *given: function(*given, number))(*args)


CALLS: dict[str, Callable[[], Any]] = {
    "new": lambda: new("z = x * x + {0}")(A),
    "transposed": lambda: new("z = x * x + y + {0}", "T x, T y")(A.T, B.T),
    "broadcast": lambda: new("z = x * y + {0}", "T x, T y")(A, B[0]),
    "zero dimensions": lambda: new("z = x + {0}")(np.array(2, "float32")),
    "no elements": lambda: new("z = x + {0}")(A[:, :0]),
    "several outputs": lambda: new("z = x + {0}; w = x > 0", outputs="T z, bool w")(A),
    "a number": lambda: new("z = x * a + {0}", "T x, float64 a")(A, 3),
    "size": lambda: new("z = i * a + {0}", "int32 a", "int64 z")(3, size=9),
    "positions": lambda: new("z = i + x + {0}")(A),
    "raw input": lambda: new("z = x + y[i % 3] + {0}", "T x, raw T y")(A, B.ravel()),
    "out": lambda: changed(lambda out: new("z = x + {0}")(A, out), into()),
    "strided out": lambda: changed(lambda out: new("z = x + {0}")(A, out[::2, ::-1]), into((6, 4))),
    "in place": lambda: changed(lambda x: new("z = x + z * {0}")(x, x), A.copy()),
    "overlap": lambda: changed(lambda x: new("z = x + {0}")(x[:-1], x[1:]), A.copy()),
    "partly assigned": lambda: new("if (x > {0}) z = x")(A),
    "sum": lambda: fused(lambda x, n: (x + n).sum(), A),
    "two axes": lambda: fused(lambda x, n: (x + n).sum(axis=(0, 2)), np.arange(60.0).reshape(3, 4, 5)),
    "long row": lambda: fused(lambda x, n: np.exp(x + n).sum(), np.linspace(0, 1, 9000)),
    "chunks": lambda: fused(lambda x, n: (x + n).sum(axis=0), np.linspace(0, 1, 900).reshape(300, 3)),
    "softmax": lambda: fused(lambda x, n: np.exp(x + n - x.max()) / x.sum(), A),
    "warnings": lambda: fused(lambda x, n: np.log(x) / 0 + n, A),
    "where=": lambda: fusec.reduction(f"def f{next(NUMBERS)}(a, b): return a + b", identity=0)(A, axis=0, where=A > 0),
    "scan": lambda: fusec.ScanKernel("T x", "T y", "x", "a + b", f"y = a + {next(NUMBERS)}", 0)(A, axis=1),
    "reversed scan": lambda: fusec.ScanKernel("T x", "T y", "x", "a + b", f"y = a + {next(NUMBERS)}", 0)(
        np.linspace(0, 1, 600).reshape(200, 3), axis=0, reverse=True
    ),
    "out of a reduction": lambda: changed(
        lambda out: fusec.ReductionKernel("T x", "T y", "x", "a + b", f"y = a + {next(NUMBERS)}", 0)(
            A, axis=0, out=out[::2]
        ),
        into((8,)),
    ),
    "reduction in place": lambda: changed(
        lambda x: fusec.ScanKernel("T x", "T y", "x", "a + b", f"y = a + {next(NUMBERS)}", 0)(x, axis=1, out=x),
        A.copy(),
    ),
    "stencil": lambda: fusec.stencil(f"lambda x: x[-1, 0] + x[0, 1] * {next(NUMBERS)}")(A),
    "evaluate": lambda: fusec.evaluate(f"a * a + {next(NUMBERS)}", {"a": A}),
}


def parts_of(found: Any) -> Iterator[Any]:
    if isinstance(found, tuple):
        for each in found:
            yield from parts_of(each)
    elif found is not None:
        each = np.asarray(found)
        yield type(found), each.dtype, each.shape, each.strides, each.tobytes()


@pytest.mark.parametrize("name", CALLS)
def test_interpreted_calls_give_what_compiled_ones_do(
    name: str, tiered: list[Any], idle: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    global NUMBERS
    at = next(NUMBERS)
    NUMBERS = count(at)
    with np.errstate(all="raise"):
        first = CALLS[name]()
    assert tiered
    NUMBERS = count(at)
    monkeypatch.setenv("FUSEC_TIERS", "0")
    assert [*parts_of(first)] == [*parts_of(CALLS[name]())]


def test_a_negative_nan_of_float8_has_its_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([0x38, 0xB8, 0x00, 0x80, 0x7F, 0xFF], np.uint8).view(ml_dtypes.float8_e4m3fn)
    for tier in "10":
        monkeypatch.setenv("FUSEC_TIERS", tier)
        bits, signs, ones = fusec.fuse(lambda x: (+x, np.signbit(x), np.copysign(np.ones_like(x), x)))(x)
        assert bits.tobytes() == x.tobytes()
        np.testing.assert_array_equal(signs, np.signbit(x))
        assert ones.tobytes() == np.copysign(np.ones_like(x), x).tobytes()


def test_calls_refuse_what_compiled_ones_refuse(tiered: list[Any]) -> None:
    kernel = new("z = x * a + {0}", "T x, int8 a")
    for _ in range(2):
        with pytest.raises(FusecError, match="int8 holds -128 to 127"):
            kernel(X, 300)
    with pytest.raises(FusecError) as caught:
        new("z = x + nothing{0}")(X)
    assert caught.value.code
    assert not tiered


def test_indices_outside_of_arrays_leave_the_call_to_the_compiler(tiered: list[Any]) -> None:
    kernel, y = new("z = x > 100 ? y[i + 50] : x + {0}", "T x, raw T y"), np.ones(3, "float32")
    assert kernel(X, y).shape == X.shape
    wild = new("z = y[n] + x + {0}", "T x, raw T y, int64 n")
    with_gap = np.ones(40, "float32")[:4]
    assert wild(X, with_gap, 20)[0, 0] == X[0, 0] + 1 + next(NUMBERS) - 1
    assert len(tiered) == 1


# --- what can happen --------------------------------------------------------------------------------------------------


def test_an_error_of_the_compiler_is_raised_by_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, plan = new(), Host.plan

    def refused(*_: Any) -> Any:
        raise fusec.FusecError.__mro__[1]("no")  # any exception

    monkeypatch.setattr(Host, "plan", refused)
    kernel(X)
    settle()
    with pytest.raises(Exception, match="no"):
        kernel(X)
    monkeypatch.setattr(Host, "plan", plan)
    assert kernel(X).shape == X.shape


@pytest.mark.parametrize("problem", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_call_has_written_nothing(
    problem: type[BaseException], tiered: list[Any], idle: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, out, interpret = new("z = x + {0}; w = -x", outputs="T z, T w"), (into(), into()), tiers.interpret

    def halfway(*call: Any) -> None:
        interpret(*call)
        raise problem

    monkeypatch.setattr(tiers, "interpret", halfway)
    if problem is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            kernel(X, *out)
        assert all((each == 7).all() for each in out)
    monkeypatch.undo()
    kernel(X, *out)
    np.testing.assert_array_equal(out[1], -X)


def test_threads_that_call_at_once_have_one_result(tiered: list[Any]) -> None:
    kernel, found = new("z = exp(x) + {0}"), list[bytes]()
    barrier = threading.Barrier(8)

    def call() -> None:
        barrier.wait()
        for _ in range(5):
            found.append(kernel(X).tobytes())

    threads = [threading.Thread(target=call) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 40
    assert len({*found}) == 1
    assert len(kernel.waiting) == 1


def test_a_call_that_waits_takes_over_what_has_not_begun(tiered: list[Any]) -> None:
    kernel = new()
    kernel(X)
    kernel.compile(X)
    assert not kernel.is_waiting
    kernel(X)
    assert len(tiered) == 1


def test_the_background_begins_once_no_new_kind_of_call_has_come_for_a_moment() -> None:
    background.hurry()  # of no account: there is nothing to do
    begun: list[float] = []
    with background.stepping_back():
        start = time.perf_counter()
        assert background.submit(lambda: begun.append(time.perf_counter()))
        time.sleep(0.03)
    end = time.perf_counter()
    settle_quietly(begun)
    assert begun[0] >= min(end, start + background.LONGEST)


def settle_quietly(begun: list[float]) -> None:
    while not begun:
        time.sleep(0.001)


def test_kernels_of_a_plan_become_a_sequence_once_they_are_compiled(tiered: list[Any]) -> None:
    number = next(NUMBERS)
    fused = fusec.fuse(lambda x: (x * number, x.sum(axis=0) * number))
    results = [fused(X)[1].tobytes() for _ in range(3)]
    settle()
    results += [fused(X)[1].tobytes() for _ in range(4)]
    assert len({*results}) == 1
    (plans,) = fused._plans.values()
    assert plans[0].native is not None


def test_kernels_of_a_plan_are_compiled_beside_each_other(tiered: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    begun, compiled, plan = [], [], Host.plan
    submit = background.submit
    monkeypatch.setattr(background, "submit", lambda job: begun.append(job) or submit(job))
    monkeypatch.setattr(Host, "plan", lambda *call: compiled.append(call[1]) or plan(*call))
    number, x = next(NUMBERS) + 0.5, np.ones((20_000, 2))
    kept = fusec.fuse(lambda x: (np.sqrt(x * number), (x * number).sum(axis=0), np.exp(x[0] + number)))
    first = kept(x)
    settle()
    assert len(begun) == 3
    assert len(tiered) == 1  # that of few elements
    assert len(compiled) == len({*compiled})  # nothing is done twice
    assert [*parts_of(first)] == [*parts_of(kept(x))]


PROLOGUE = """
import os, sys, time
import numpy as np
import fusec
kernel = fusec.ElementwiseKernel("T x", "T z", "z = x * 2", "twice")
x = np.ones(4)
"""
SCRIPTS = {
    "exit at once": "assert kernel(x)[0] == 2",
    "exit while it compiles": "kernel(x); time.sleep(0.03)",
    "exit by an exception": "kernel(x); raise SystemExit(0)",
    "calls at the end": "import atexit; atexit.register(lambda: kernel(np.ones(5))); kernel(x)",
    "fork": """
kernel(x)
for pause in (0, 0.02, 0.05):
    time.sleep(pause)
    child = os.fork()
    if not child:
        import faulthandler
        faulthandler.dump_traceback_later(20, exit=True)
        assert kernel(x)[0] == 2
        kernel.compile(x)
        assert kernel(x)[0] == 2 and not kernel.is_waiting
        other = fusec.ElementwiseKernel("T x", "T z", "z = x * 3", "thrice")
        assert other(x)[0] == 3
        while other.is_waiting:
            time.sleep(0.001)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
""",
    "interrupt": """
import signal
def again(*_): raise KeyboardInterrupt
signal.signal(signal.SIGALRM, again)
for number in range(20):
    kernel = fusec.ElementwiseKernel("T x", "T z", f"z = x * 2 + {number}", "twice")
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005 * number + 1e-6)
        found = kernel(x)
        time.sleep(0.02)
    except KeyboardInterrupt:
        found = kernel(x)
    assert found[0] == 2 + number
""",
}


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.sampled(3)
def test_processes_end_and_fork_at_any_moment(name: str, tmp_path: Path) -> None:
    if name == "fork" and not hasattr(os, "fork"):
        pytest.skip("needs fork")
    environment = {**os.environ, "FUSEC_CACHE": "1", "FUSEC_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROLOGUE + SCRIPTS[name]]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert not [*tmp_path.rglob("*.tmp")]


def test_the_first_value_needs_neither_llvm_nor_code_generators(tmp_path: Path) -> None:
    script = "import fusec, sys, numpy as np\nfrom fusec.base import background\nbackground.submit = lambda job: True\n"
    script += "fusec.fuse(lambda x: np.exp(x) + x.sum())(np.ones(9))\n"
    script += "print([name for name in ('llvmlite.binding', 'fusec.codegen.llvm', 'lark') if name in sys.modules])"
    environment = {**os.environ, "FUSEC_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("is_started", [True, False])
def test_an_interrupt_while_the_background_starts_leaves_it_at_work(
    is_started: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle()
    start, kernel = threading.Thread.start, new()

    def interrupted(thread: threading.Thread) -> None:
        if is_started:
            start(thread)
        raise KeyboardInterrupt

    with monkeypatch.context() as here:
        here.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            kernel(X)
    kernel(X)
    settle()
    assert not kernel.is_waiting


def test_python_ends_though_the_background_is_stuck():
    code = """
import threading, time
from fusec.base import background
background.LAST, begun = 0.2, threading.Event()
background.submit(lambda: (begun.set(), threading.Event().wait()))
background.hurry()
assert begun.wait(60)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
