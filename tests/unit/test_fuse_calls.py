"""Library calls in fused functions: NumPy's results, in order with kernels, and errors that undo nothing."""

import tracemalloc

import numpy as np
import pytest

import fusec
from fusec.fusion.functions import contractions
from tests.support.reports import library_calls


def topics(function, *args):
    return [topic for topic, _ in function.explain(*args).lines]


def kernels(function, *args):
    return int(dict(function.explain(*args).lines)["kernels"])


def test_an_affine_map_with_a_rectifier_is_a_product_and_a_kernel():
    @fusec.fuse
    def layer(x, w, b):
        return np.maximum(x @ w.T + b, 0)

    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(5, 3)), rng.normal(size=(4, 3)), rng.normal(size=4)
    for _ in range(2):
        np.testing.assert_array_equal(layer(x, w, b), np.maximum(x @ w.T + b, 0))
    assert kernels(layer, x, w, b) == 1
    assert ("library call", "np.matmul of float64 (5, 3), float64 (3, 4): float64 (5, 4)") in layer.explain(
        x, w, b
    ).lines


def test_a_call_reads_memory_before_later_writes_and_after_earlier_ones():
    def step(x, y):
        x += y
        first = x @ y
        x[0] = 7
        y[...] = x @ y
        return first, x @ x, y[::-1] @ x

    fused = fusec.fuse(step)
    for seed in range(2):
        theirs = [np.random.default_rng(seed + at).integers(-9, 9, (3, 3)) for at in range(2)]
        ours = [each.copy() for each in theirs]
        for mine, wanted in zip((*fused(*ours), *ours), (*step(*theirs), *theirs), strict=True):
            np.testing.assert_array_equal(mine, wanted)


def test_a_call_that_raises_leaves_what_was_not_written_yet():
    def step(x, y):
        x += 1
        z = np.linalg.inv(y)
        x *= 2
        y += z

    fused = fusec.fuse(step)
    for y in (np.eye(2), np.zeros((2, 2)), np.eye(2) * 2):
        theirs, ours = [np.ones(2), y.copy()], [np.ones(2), y.copy()]
        if y.any():
            step(*theirs)
            fused(*ours)
        else:
            with pytest.raises(np.linalg.LinAlgError):
                step(*theirs)
            with pytest.raises(np.linalg.LinAlgError) as caught:
                fused(*ours)
            assert "test_fuse_calls.py" in caught.value.__notes__[0]
        for mine, wanted in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(mine, wanted)


def test_a_call_that_raises_finds_what_was_written_and_reads_what_was_there():
    def step(x):
        before = x.copy()
        x += 1
        found = np.linalg.inv(before)
        x *= 2
        return found, before

    fused = fusec.fuse(step)
    for x in (np.eye(2) * 3, np.zeros((2, 2)), np.eye(2)):
        theirs, ours = x.copy(), x.copy()
        if x.any():
            for mine, wanted in zip(fused(ours), step(theirs), strict=True):
                np.testing.assert_array_equal(mine, wanted)
        else:
            for function, given in ((step, theirs), (fused, ours)):
                with pytest.raises(np.linalg.LinAlgError):
                    function(given)
        np.testing.assert_array_equal(ours, theirs)


def test_an_unused_call_that_raises_still_raises():
    fused = fusec.fuse(lambda x: (np.linalg.cholesky(x), x + 1)[1])
    np.testing.assert_array_equal(fused(np.eye(2)), np.eye(2) + 1)
    with pytest.raises(np.linalg.LinAlgError):
        fused(-np.eye(2))


def test_calls_run_where_kernels_are_interpreted():
    fused = fusec.fuse(lambda x: (x + 1) @ x * 2)
    x = np.arange(4.0).reshape(2, 2)
    np.testing.assert_array_equal(fusec.simulate(fused)(x), (x + 1) @ x * 2)
    assert topics(fusec.fuse(lambda x: x @ x), x) == ["kernels", "library call", "bytes moved", "least possible"]


def windows_product(x, w):
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))
    return np.maximum(np.einsum("nhwij,oij->nohw", windows, w), 0)


@pytest.mark.parametrize("most", [1 << 20, 1000])
def test_windows_are_contracted_without_a_matrix_of_columns(most, monkeypatch):
    monkeypatch.setattr(contractions, "MAX_COPY", most)
    rng = np.random.default_rng(0)
    fused = fusec.fuse(windows_product)
    for x in (rng.integers(-9, 9, (3, 12, 10)), rng.integers(-9, 9, (12, 3, 10)).swapaxes(0, 1)[:, ::-1]):
        w = rng.integers(-9, 9, (4, 3, 3))
        np.testing.assert_array_equal(fused(x, w), windows_product(x, w))


def test_a_contraction_copies_windows_in_parts():
    x, w, fused = np.ones((8, 142, 142)), np.ones((1, 3, 3)), fusec.fuse(windows_product)
    fused(x, w)
    tracemalloc.start()
    found = fused(x, w)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * found.nbytes + 4 * contractions.MAX_COPY < 9 * x.nbytes


def test_equal_calls_in_a_row_are_one_line_of_the_report():
    def powers(x):
        for _ in range(5):
            x = x @ x
        return np.sin(x) @ x, np.cumsum(x @ x, axis=0), np.sin(x).sum(axis=1)

    square = np.eye(4)
    report = fusec.fuse(powers).explain(square)
    called = [text for topic, text in report.lines if topic == "library call"]
    product = "np.matmul of float64 (4, 4), float64 (4, 4): float64 (4, 4)"
    assert f"5 x {product}" in called
    assert library_calls(report) == 7 > len(called)


def test_the_report_says_that_the_kernel_before_is_a_call_itself():
    report = fusec.fuse(lambda x: (np.cumsum(x, axis=0), np.sin(x).sum(axis=1))).explain(np.ones((4, 5)))
    assert "not fused with the kernel before: fusec.cumsum has kernels of its own" in str(report)
    assert "a library call is between them" not in str(report)
    between = fusec.fuse(lambda x: np.sin(np.linalg.inv(np.sin(x)))).explain(np.eye(3))
    assert "not fused with the kernel before: a library call is between them" in str(between)
