"""check="wrap" compares sums and products that reductions and scans combine with those of integers without a width."""

import itertools

import numpy as np
import pytest

import fusec
from fusec.library import cumulative, dtype_rules

A = np.array([[10, 200], [250, 3]], np.uint8)


def kernel(combine, out="T z"):
    return fusec.ReductionKernel("T x", out, "x", combine, "z = a", "0", "total", check="wrap")


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64"])
@pytest.mark.sampled(5)
def test_reductions_report_exactly_the_totals_that_wrap(axis, dtype):
    kernels = [kernel("a + b"), fusec.reduction("lambda p, q: p + q", identity=0, check="wrap")]
    for scale in (1, 60, 2**61):
        x = (np.array([[1, 2], [-1, 0]]) * scale % 256).astype(dtype)
        totals = x.astype(object).sum(axis)
        info = np.iinfo(dtype)
        bad = [each for each in np.ravel(totals) if not info.min <= each <= info.max]
        for total in kernels:
            if bad:
                with pytest.raises(OverflowError, match=rf"the sum of \d elements is {bad[0]}, beyond {dtype}, .*F723"):
                    total(x, axis=axis)
            else:
                np.testing.assert_array_equal(
                    total(x, axis=axis), totals.astype(dtype) if axis in (0, 1, -1) else totals
                )


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("reverse", [True, False])
def test_scans_report_exactly_the_running_totals_that_wrap(inclusive, reverse):
    scan = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", "0", "scan", inclusive=inclusive, check="wrap")
    for x in ([10, 200, 250, 3], [100, 100, 100], [3, 250, 2], [1, 2, 255], [255, 0, 1], [5]):
        given = x[::-1] if reverse else x
        running = [*itertools.accumulate(given)] if inclusive else [0, *itertools.accumulate(given[:-1])]
        bad = [each for each in running if each > 255]
        running = running[::-1] if reverse else running
        if bad:
            first = next(at for at, each in enumerate(running) if each > 255)
            with pytest.raises(OverflowError, match=rf"the running sum is {running[first]}, beyond uint8") as caught:
                scan(np.array(x, np.uint8), reverse=reverse)
            assert caught.value.error.element == str(first)
        else:
            assert scan(np.array(x, np.uint8), reverse=reverse).tolist() == running


def test_what_cannot_be_followed_is_refused_and_what_cannot_wrap_is_not():
    for combine in ("a * 3 + b", "a - b", "a + b + 1"):
        with pytest.raises(fusec.FusecError, match=r"kernel 'total' combines integers in a way .*F386"):
            kernel(combine)(A)
    for combine, wanted in (
        ("max(a, b)", 250),
        ("min(a, b)", 3),
        ("a ^ b", 59),
        ("a > b ? a : b", 250),
        ("a | b", 251),
    ):
        assert kernel(combine)(A) == wanted
    assert kernel("a * 3 + b", "float64 z")(A.astype(float)).dtype == np.float64
    with pytest.raises(OverflowError, match="the product of 4 elements is 1500000, beyond uint8"):
        kernel("a * b")(A)
    assert kernel("b * a", "int64 z")(A) == 1500000
    starts = fusec.ScanKernel(
        "T x, bool first", "T y", "x", "a + b", "y = a", "0", "starts", segments="first", check="wrap"
    )
    with pytest.raises(fusec.FusecError, match="F386"):
        starts(A.reshape(-1), np.zeros(4, bool))


def test_the_setting_checks_sums_that_are_built_in(monkeypatch):
    monkeypatch.setenv("FUSEC_CHECK", "wrap")
    caches = dtype_rules.total, dtype_rules.product, cumulative._running
    for each in caches:
        each.cache_clear()
    try:
        for total in (fusec.sum, fusec.prod, fusec.cumsum, fusec.cumprod):
            with pytest.raises(OverflowError, match=r"beyond uint8, and wraps to .*F723"):
                total(A.reshape(-1), dtype="uint8")
            assert np.ravel(total(A.reshape(-1)))[-1] == (463 if "sum" in total.__name__ else 1500000)
        with pytest.raises(OverflowError, match=r"200 \* 200 is 40000, beyond uint8"):
            fusec.vecdot(A, A)
        assert fusec.sum(A // 4, axis=0, dtype="uint8", where=A > 3).tolist() == [64, 50]
        assert fusec.mean(A) == 115.75
        assert fusec.sum(A.astype(bool)) == 4
    finally:
        for each in caches:
            each.cache_clear()
