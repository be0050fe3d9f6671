"""Reductions and scans find indices outside of arrays as other kernels do, and are the same where there are none."""

import pickle

import numpy as np
import pytest

import fusec
from fusec import FusecError

SUM = ("raw T x, int64 at, T w", "T y", "x[at] * w", "a + b", "y = a", "0")
X = np.arange(5.0)
AT = np.array([[0, 4, 2], [1, 3, 3]])


def kernels(bounds: str | None):
    return {
        "reduction": fusec.ReductionKernel(*SUM, "checked_sum", bounds=bounds),
        "scan": fusec.ScanKernel(*SUM, "checked_running", bounds=bounds),
    }


@pytest.mark.parametrize("sort", ["reduction", "scan"])
@pytest.mark.parametrize("bad", [5, -1, 2**40, -(2**62)])
def test_an_index_outside_is_reported_with_its_place(sort: str, bad: int) -> None:
    kernel = kernels("check")[sort]
    at = AT.copy()
    at[1, 2] = bad
    for _ in range(4):
        out = np.full((2, 3) if sort == "scan" else 2, 7.0)
        with pytest.raises(IndexError) as caught:
            kernel(X, at, 2.0, out, axis=1)
        text = str(caught.value)
        assert f"index {bad} of 'x' is outside its 5 elements" in text
        assert "map_expr, line 1" in text
        assert "in element 5" in text
        assert (out == 7).all(), "nothing was written"


@pytest.mark.parametrize("sort", ["reduction", "scan"])
def test_checks_change_no_result(sort: str) -> None:
    checked, plain = kernels("check")[sort], kernels("trust")[sort]
    for at in (AT, AT[:, ::-1], np.tile(AT, (3, 4000)), AT[:0], np.asfortranarray(AT)):
        for axis in (0, 1):
            if at.shape[axis] or sort == "scan":
                np.testing.assert_array_equal(checked(X, at, 0.5, axis=axis), plain(X, at, 0.5, axis=axis))


def test_the_setting_checks_all_kernels_that_do_not_say_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEC_CHECK", "bounds")
    for sort, kernel in kernels(None).items():
        with pytest.raises(IndexError):
            kernel(X, AT + 3, 1.0, axis=1)
        assert kernel.checks
        assert not kernels("trust")[sort].checks
        assert pickle.loads(pickle.dumps(kernel)).checks
    monkeypatch.setenv("FUSEC_CHECK", "0")
    assert not kernels(None)["scan"].checks
    with pytest.raises(FusecError, match="bounds="):
        kernels("sometimes")


def test_elements_that_are_left_out_are_not_looked_at() -> None:
    kernel = kernels("check")["reduction"]
    where = np.array([True, False, True])
    assert kernel(X, np.array([1, 99, 2]), 1.0, where=where) == 3
    with pytest.raises(IndexError):
        kernel(X, np.array([1, 2, 99]), 1.0, where=where)


def test_positions_and_conditions_are_those_of_the_reduction() -> None:
    places = fusec.ReductionKernel(
        "raw T x, int64 at", "T y", "x[at + _J]", "a + b", "y = a", "0", "at_j", bounds="check"
    )
    assert places(X, np.array([0, 1, 2])) == 0 + 2 + 4
    with pytest.raises(IndexError, match=r"index 6 of 'x'"):
        places(X, np.array([0, 1, 4]))
    guarded = fusec.ReductionKernel(
        "raw T x, int64 at", "T y", "at < x.size() ? x[at] : 0", "a + b", "y = a", "0", "guarded", bounds="check"
    )
    assert guarded(X, np.array([4, 5, 100])) == 4
    axes = fusec.ReductionKernel(
        "raw T x, int64 at", "T y", "x[_ind(at)]", "a + b", "y = a", "0", "axes", bounds="check",
        preamble="#define _ind(n) (n)",
    )  # fmt: skip
    assert axes(X, np.array([4, 0])) == 4


def test_numbers_lists_and_totals_of_nothing_are_checked_alike() -> None:
    kernel = kernels("check")["reduction"]
    assert kernel(X, np.zeros((0, 3), np.int64), 1.0, axis=0).tolist() == [0, 0, 0]
    twice = fusec.ReductionKernel("raw T x, T w", "T y", "x[3] * w", "a + b", "y = a", "0", "third", bounds="check")
    assert twice(X, np.ones(2)) == 6
    with pytest.raises(IndexError, match="index 3 of 'x' is outside its 2 elements"):
        twice(X[:2], np.ones(2))


def test_kernels_without_indices_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "plain_checked", bounds="check")
    monkeypatch.setattr(fusec.dispatch.checked, "run", None)
    for _ in range(4):
        assert kernel(X) == 10
    assert kernel.quick, "calls have a native entry"


TABLE = (1.0, 2.0, 4.0)


def looked_up(k):
    assert k != 1
    return TABLE[k]


def test_functions_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(**options):
        return fusec.reduction(map=looked_up, combine=lambda a, b: a + b, identity=0, **options)

    monkeypatch.setenv("FUSEC_CHECK", "bounds")
    for kernel in (made(), made(bounds="check"), pickle.loads(pickle.dumps(made(bounds="check")))):
        for _ in range(4):
            assert kernel(np.array([0, 2, -1])) == 9
            with pytest.raises(IndexError, match="index 7 is outside a table of 3 items"):
                kernel(np.array([0, 2, 7]))
            with pytest.raises(RuntimeError, match="an assertion does not hold"):
                kernel(np.array([0, 1]))
    assert made(bounds="trust")(np.array([0, 1])) == 3


def positive(x):
    assert x >= 0
    return x


def bounded_sum(a, b):
    assert a < 100
    return a + b


@pytest.mark.parametrize(
    ("kernel", "line"),
    [
        (lambda bounds: fusec.reduction(combine=bounded_sum, map=lambda x: x, bounds=bounds), "assert a < 100"),
        (lambda bounds: fusec.reduction(combine=lambda a, b: positive(a) + b, bounds=bounds), "assert x >= 0"),
        (lambda bounds: fusec.reduction(combine=lambda a, b: a, finish=positive, bounds=bounds), "assert x >= 0"),
        (lambda bounds: fusec.reduction(combine=lambda a, b: a, map=lambda x: positive(x), bounds=bounds), "assert x"),
    ],
    ids=["combine", "function of combine", "finish", "function of map"],
)
def test_assertions_that_no_check_sees_are_refused(kernel, line: str) -> None:
    """They did nothing."""
    assert kernel("trust")(X) >= 0
    with pytest.raises(FusecError, match=line) as caught:
        kernel("check")(X)
    assert caught.value.code == "F385"


CHOOSE = "__device__ int g(long long k) { int v[2] = {1, 2}; return v[k]; }"


LAST = "int v[2] = {1, 2}; y = v[a]"


@pytest.mark.parametrize(
    "kernel",
    [
        lambda **bounds: fusec.ReductionKernel("int64 k", "int64 y", "g(k)", "a + b", "y = a", "0", "r", **bounds),
        lambda **bounds: fusec.ScanKernel("int64 k", "int64 y", "g(k)", "a + b", "y = a", name="s", **bounds),
        lambda **bounds: fusec.ReductionKernel("int64 k", "int64 y", "k", "a + b", LAST, "0", "r", **bounds),
        lambda **bounds: fusec.ScanKernel("int64 k", "int64 y", "k", "a + b", LAST, name="s", **bounds),
    ],
    ids=["map", "map of a scan", "end", "end of a scan"],
)
def test_local_arrays_that_no_check_sees_are_refused(kernel):
    """They ran unchecked, and an index outside ended the process."""
    assert kernel(bounds="trust", preamble=CHOOSE)(np.array([0, 1])).size
    with pytest.raises(FusecError) as caught:
        kernel(bounds="check", preamble=CHOOSE)(np.array([0, 10**9]))
    assert caught.value.code == "F384"
