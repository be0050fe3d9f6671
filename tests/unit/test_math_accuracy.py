"""Every elementary function stays within its bound of the exact value; the measuring command measures what it says."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # tools is no part of the installed package

from fusec.base import ops
from fusec.base.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType
from fusec.ir.interpret import call
from fusec.math import callees, define
from tools.accuracy import __main__ as command
from tools.accuracy import measure, page, points, results
from tools.accuracy.functions import COMPLEX, EXACT, ROWS, UNARY, Row
from tools.accuracy.measure import Sample, exactly, judge
from tools.accuracy.sweeps import Shape, sweep
from tools.accuracy.targets import Cpu
from tools.accuracy.ulps import PLACES, errors, wide_of_floats

CPU = Cpu()
BOTH = pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=repr)
EVERY = pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.op)


def interpreted(row: Row, *arguments: np.ndarray) -> np.ndarray:
    types = tuple(FLOAT32 if each.dtype == np.float32 else FLOAT64 for each in arguments)
    function = define(row.op, types)
    with np.errstate(all="ignore"):
        return call(function, list(arguments), callees(function))


def assert_within_bound(row: Row, dtype: DType, sample: Sample) -> None:
    found = judge(row, dtype, sample, interpreted(row, *sample.arguments))[1]
    assert found.most <= row.bound, f"{row.op}{found.at} errs by {found.most:.3f} ulp"
    assert found.count > 0


def thinned(arguments: tuple[np.ndarray, ...], step: int) -> tuple[np.ndarray, ...]:
    return tuple(each[::step] for each in arguments)


# --- bounds --------------------------------------------------------------------------------------------------------


@BOTH
@EVERY
@pytest.mark.sampled(5)
def test_errors_stay_within_the_bound(row: Row, dtype: DType) -> None:
    assert_within_bound(row, dtype, exactly(row, points.drawn(row, dtype, 15 if row.slow else 150)))


@BOTH
@EVERY
@pytest.mark.sampled(5)
def test_errors_at_hard_arguments_stay_within_the_bound(row: Row, dtype: DType) -> None:
    assert_within_bound(row, dtype, exactly(row, thinned(points.hard(row, dtype), 23 if row.slow else 3)))


@pytest.mark.slow
@BOTH
@EVERY
def test_errors_at_all_hard_arguments_stay_within_the_bound(row: Row, dtype: DType) -> None:
    assert_within_bound(row, dtype, exactly(row, points.hard(row, dtype)))


@BOTH
@pytest.mark.parametrize("op", points.TURNS)
def test_the_hardest_reductions_stay_within_the_bound(op: str, dtype: DType) -> None:
    x = points.nearest_to_quarter_turns(dtype)
    assert len(x) > 50
    assert_within_bound(ROWS[op], dtype, exactly(ROWS[op], (x,)))


# In loops LLVM 22 mistook where(c, copy_sign(y, x), x) on AVX-512, which cbrt, asinh and atanh had.
@pytest.mark.parametrize("op", ["exp", "cbrt", "asinh", "atanh", "pow"])
def test_a_sparse_sweep_stays_within_the_bound(op: str) -> None:
    swept = sweep(ROWS[op], 5003, CPU, pairs=1 << 19)
    assert swept.worst <= ROWS[op].bound, swept
    assert swept.measured > 100_000


@pytest.mark.slow
@EVERY
def test_a_dense_sweep_stays_within_the_bound(row: Row) -> None:
    swept = sweep(row, 61, CPU, pairs=1 << 24)
    assert swept.worst <= row.bound, swept


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16], ids=repr)
@pytest.mark.parametrize("row", UNARY, ids=lambda row: row.op)
def test_all_narrow_results_are_nearly_correctly_rounded(row: Row, dtype: DType) -> None:
    found = measure.measure_narrow(row, dtype, {"cpu": CPU.evaluate})["cpu"]
    assert found.most <= 0.51, found


# --- the measure ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", PLACES, ids=repr)
def test_correct_rounding_errs_by_at_most_half_a_unit_and_a_neighbour_by_one(dtype: DType) -> None:
    random = np.random.default_rng(1)
    places = PLACES[dtype]
    span = random.uniform(places.least - places.digits, places.greatest - 1, 400)
    exact = (np.exp2(span) * random.choice([-1, 1], 400)).astype(np.longdouble)
    rounded = exact.astype(dtype.numpy)
    near = errors(rounded, wide_of_floats(exact), dtype)
    assert 0.3 < near.max() <= 0.5 or dtype == FLOAT64
    unsigned = rounded.view(f"u{rounded.dtype.itemsize}")
    next_one = (unsigned + unsigned.dtype.type(1)).view(dtype.numpy)  # away from zero
    away = errors(next_one, wide_of_floats(rounded.astype(np.longdouble)), dtype)
    np.testing.assert_array_equal(away, 1)


def test_overflow_counts_as_the_next_power_of_two_and_nan_as_infinitely_wrong() -> None:
    exact = wide_of_floats(np.array([1e40, 1e40, 3.40282356e38, np.nan, 1.0, np.nan]))
    found = np.array([np.inf, 3.4028235e38, np.inf, np.nan, np.nan, 1.0], np.float32)
    error = errors(found, exact, FLOAT32)
    assert list(error[[0, 1, 3, 4, 5]]) == [0, 1, 0, np.inf, np.inf]
    assert 0.4 < error[2] < 0.6


def test_the_sweeping_kernel_measures_as_numpy_does() -> None:
    x = np.linspace(-104, 89, 5001).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    with np.errstate(over="ignore"):
        got = np.nextafter(exact.astype(np.float32), np.float32(0))
    kernel_says = measure.error_kernel()(got, exact, 0.0)
    np.testing.assert_allclose(kernel_says, errors(got, wide_of_floats(exact), FLOAT32), rtol=1e-6)


def test_how_a_sweep_is_cut_does_not_matter() -> None:
    class Other(Cpu):
        shape = Shape(777, 5)

    row, step = ROWS["erf"], 400_009
    left, right = sweep(row, step, CPU), sweep(row, step, Other())
    assert left.digest == right.digest
    assert (left.worst, left.at, left.measured) == (right.worst, right.at, right.measured)
    assert left.digest != sweep(row, step + 2, CPU).digest


# --- the command line ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["--only", "exp,epx"], "unknown name 'epx'; known: exp, exp2"),
        (["--dtypes", "float8"], "unknown name 'float8'; known: float32"),
        (["--step", "60"], "60 is even"),
        (["--count", "0"], "0 is not positive"),
    ],
)
def test_the_measuring_command_refuses_what_it_does_not_know(
    asked: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.options(asked)
    assert says in capsys.readouterr().err


def test_stale_findings_exit_with_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    data = {"about": {}, "same": {}, "errors": {"float32": {"sinh": {"cpu": {"of": "another definition"}}}}}
    results.save(data, tmp_path / "found.json")
    monkeypatch.setattr("sys.argv", ["accuracy", "--stale", "--out", str(tmp_path / "found.json")])
    assert command.main() == 1
    assert capsys.readouterr().out == "float32 sinh, cpu\n"


# --- the page ------------------------------------------------------------------------------------------------------


def test_the_page_is_made_of_the_findings() -> None:
    assert results.FILE.with_suffix(".md").read_text() == page.text(results.read(results.FILE))


def test_every_function_is_measured_or_exact() -> None:
    defined = {name for name, op in ops.TABLE.items() if op.reference or not op.primitive}
    integers = {name for name in defined if not {"float", "complex"} & ops.TABLE[name].accepts}
    others = {name for name in defined if ops.TABLE[name].result == "bool" or name in ("where", "real", "imag")}
    assert not defined - integers - others - set(ROWS) - EXACT - set(COMPLEX)


def test_every_function_has_a_row_that_keeps_its_bound() -> None:
    table = results.read(results.FILE)["errors"]
    for dtype in ("float32", "float64"):
        for op, row in ROWS.items():
            assert float(table[dtype][op]["cpu"]["most"]) <= row.bound, (dtype, op)
    for dtype in ("float16", "bfloat16"):
        assert {row.op for row in UNARY} <= set(table[dtype])
    for dtype in ("complex64", "complex128"):
        assert set(COMPLEX) == set(table[dtype])
