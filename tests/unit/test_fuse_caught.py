"""Errors in fused functions: those that the function catches, those that leave it, and interrupts."""

import os
import sys
import traceback
from collections.abc import Callable
from os import environ, getenv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import fusec
from fusec.base.contexts import holding
from fusec.fusion.trace.trace import RECORDING

OPERATIONS: list[Callable[[Any], Any]] = [
    lambda x: x.reshape(2, -1),
    lambda x: x.reshape(len(x) // 2, 2),
    lambda x: x[4],
    lambda x: x[[0, 4]],
    lambda x: x[:, None, 0, 0],
    lambda x: x + np.ones(4),
    lambda x: x @ np.ones(5),
    lambda x: np.take(x, [5]),
    lambda x: np.take_along_axis(x, np.array([4]), 0),
    lambda x: np.array([x, [1, 2, 3]]),
    lambda x: np.stack([x, np.ones(4)]),
    lambda x: np.broadcast_to(x, (2, 4)),
    lambda x: np.concatenate([x[None], np.ones((2, 4))]),
    lambda x: np.einsum("i,i->i", x, np.ones(4)),
    lambda x: np.split(x, 2)[1],
    lambda x: sliding_window_view(x, 5),
    lambda x: np.zeros(5 - len(x)) + x.sum(),
    lambda x: fusec.evaluate("x + y", x=x, y=np.ones(5)),
    lambda x: np.copyto(x, np.ones(4)) or x,
]  # each of which fails for some extents


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("extents", [(3, 4, 5, 6, 7), (7, 6, 5, 4, 3)])
def test_a_caught_error_of_numpy_holds_for_the_extents_of_its_call(operation: Any, extents: tuple[int, ...]) -> None:
    def function(x: Any) -> Any:
        try:
            return operation(x) + 1
        except (ValueError, IndexError):
            return x * 2

    fused = fusec.fuse(function)
    for extent in extents:
        np.testing.assert_array_equal(fused(np.arange(float(extent))), function(np.arange(float(extent))), strict=True)


def test_a_caught_error_of_a_number_holds_for_its_value() -> None:
    """The function may catch what tells that a number is needed as such; it is traced for that number all the same."""

    def inverse(x: Any, n: int) -> Any:
        try:
            return x * (1 / n)
        except Exception:
            return x - 1

    def last(x: Any, n: int) -> Any:
        try:
            return x * range(n)[-1]
        except:  # noqa: E722
            return x - 1

    for function in (inverse, last):
        fused = fusec.fuse(function)
        for n in (0, 3, 2, 0):
            np.testing.assert_array_equal(fused(np.ones(2), n), function(np.ones(2), n), strict=True)


def test_lists_of_numbers_beside_arrays_are_rows() -> None:
    for make in (
        lambda x: np.array([x, [1, 2, 3]]),
        lambda x: np.array([[1.5, 2, 3], x]),
        lambda x: np.array([[[1, 2, 3], x], [x, (4, 5, 6)]]),
    ):
        for dtype in ("float32", "int8"):
            x = np.arange(3).astype(dtype)
            np.testing.assert_array_equal(fusec.fuse(make)(x), make(x), strict=True)


# --- what the user sees of errors -------------------------------------------------------------------------------------


def _bad_reshape(x: Any) -> Any:
    return x.reshape(5, -1)


def _bad_inverse(x: Any) -> Any:
    return np.linalg.inv(x * 0)


@pytest.mark.parametrize(
    "function", [_bad_reshape, lambda x: x[np.array([9])], _bad_inverse, lambda x: _bad_reshape(x)]
)
def test_tracebacks_of_numpys_errors_show_the_users_lines(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FUSEC_DEBUG", raising=False)
    fused = fusec.fuse(function)
    for _ in range(3):
        with pytest.raises((ValueError, IndexError)) as caught:
            fused(np.ones((3, 3)))
        files = [each.filename for each in traceback.extract_tb(caught.value.__traceback__)]
        inside = [each for each in files if Path(each).parts[-3:-1] != ("tests", "unit")]
        assert len(inside) <= 2, files
        shown = "".join(traceback.format_exception(caught.value))
        assert "_bad_reshape" in shown or "raised by" in shown


def test_tracebacks_print_the_frames_of_a_function_without_a_file() -> None:
    space: dict[str, Any] = {"np": np}
    exec(compile("def f(x): return x.reshape(7)", "/nowhere/gone.py", "exec"), space)
    with pytest.raises(ValueError, match="reshape") as caught:
        fusec.fuse(space["f"])(np.ones(3))
    assert "gone.py" in "".join(traceback.format_exception(caught.value))
    frame = traceback.walk_tb(caught.value.__traceback__)
    names = [each.f_globals for each, _ in frame if each.f_code.co_filename.endswith("gone.py")]
    assert len(names) == 1
    assert set(names[0]) == set(space)


# --- interrupts -------------------------------------------------------------------------------------------------------

COUNT = 0


def _counted(x: Any) -> Any:
    global COUNT
    COUNT = COUNT + 1
    return x * 2


@pytest.mark.parametrize("name", ["run_holding", "_result"])
@pytest.mark.parametrize("line", range(8))
def test_interrupts_leave_no_recording_behind(name: str, line: int) -> None:
    """A KeyboardInterrupt at any line that sets up a trace: later calls assign to names as before."""
    passed = [0]

    def interrupt(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_name == name and "fusec" in frame.f_code.co_filename and event == "line":
            passed[0] += 1
            if passed[0] == line + 1:
                sys.settrace(None)
                raise KeyboardInterrupt
        return interrupt

    fused, before = fusec.fuse(_counted), sys.gettrace()
    sys.settrace(interrupt)
    try:
        fused(np.ones(3))
    except KeyboardInterrupt as problem:
        held = problem  # as interactive sessions hold it
    else:
        held = None
    finally:
        sys.settrace(before)
    assert RECORDING.get() is None, held
    global COUNT
    COUNT = 0
    for _ in range(3):
        fused(np.ones(3))
    assert COUNT == 3


def test_a_value_held_in_a_context_ends_with_its_block() -> None:
    with holding(RECORDING, 1):
        with holding(RECORDING, 2):
            assert RECORDING.get() == 2
        assert RECORDING.get() == 1
    assert RECORDING.get() is None


# --- the environment --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "read",
    [
        lambda: environ["FUSEC_TEST"],
        lambda: os.environ["FUSEC_TEST"],
        lambda: os.environ.get("FUSEC_TEST", "0"),
        lambda: os.getenv("FUSEC_TEST"),
        lambda: getenv("FUSEC_TEST", "0"),
        lambda: dict(os.environ)["FUSEC_TEST"],
        lambda: __import__("os").environ["FUSEC_TEST"],
        lambda: "5" if "FUSEC_OTHER" in os.environ else os.environ["FUSEC_TEST"],
    ],
)
def test_variables_of_the_environment_are_looked_up_at_each_call(
    read: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fused = fusec.fuse(lambda x: x * float(read()))
    for value in ("1", "2", "3", "2"):
        monkeypatch.setenv("FUSEC_TEST", value)
        assert fused(np.ones(1)) == float(value)
    monkeypatch.setenv("FUSEC_OTHER", "1")
    assert fused(np.ones(1)) == float(read())


def test_numbers_that_do_not_fit_name_the_function() -> None:
    def add(x: Any, k: int) -> Any:
        return x + k

    fused = fusec.fuse(add)
    for _ in range(2):
        with pytest.raises(
            OverflowError, match=r"300 does not fit uint8(.*\n)+.*test_fuse_caught.py, line(.*\n)+.*def add"
        ):
            fused(np.arange(3, dtype="uint8"), 300)
