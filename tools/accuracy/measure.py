"""Errors of implementations at points: against mpmath, long doubles, or fusec's float64 functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

import fusec
from fusec.base.dtypes import FLOAT32, FLOAT64, DType
from tools.accuracy import points
from tools.accuracy.functions import Row
from tools.accuracy.long_doubles import function_of
from tools.accuracy.references import exact_values
from tools.accuracy.sweeps import Swept, sweep, ulps_text
from tools.accuracy.targets import Cpu, Cuda
from tools.accuracy.ulps import PLACES, Wide, errors, wide, wide_of_floats

Evaluate = Callable[..., np.ndarray]
RECHECKED = 48  # worst arguments by a quick reference that are looked at again with 40 digits


@dataclass(frozen=True)
class Found:
    """The errors of one implementation.

    most, at: the greatest error and its operands. usual: the greatest where operands and result are normal numbers.
    mean: over the arguments drawn or swept, not over those chosen because they are hard.
    """

    most: float
    at: tuple[float, ...]
    usual: float
    mean: float
    count: int


@dataclass(frozen=True)
class Sample:
    """Arguments with exact values; `rough` if those are only good to 1/1000 ulp."""

    arguments: tuple[np.ndarray, ...]
    exact: Wide
    unit: np.ndarray | None
    rough: bool

    def at(self, which: np.ndarray) -> tuple[np.ndarray, ...]:
        """Some of the arguments."""
        return tuple(each[which] for each in self.arguments)


def unit_at(row: Row, arguments: tuple[np.ndarray, ...], exact: np.ndarray) -> np.ndarray | None:
    """The row's unit at some points."""
    if not row.unit:
        return None
    with np.errstate(invalid="ignore"):  # nan that signals
        x, y = (each.astype(np.float64) for each in (arguments * 2)[:2])
    return _unit_kernel(row.unit)(x, y, exact)  # type: ignore[return-value]


@cache
def _unit_kernel(text: str) -> fusec.ElementwiseKernel:
    return fusec.ElementwiseKernel("float64 x, float64 y, float64 exact", "float64 unit", f"unit = {text}", "unit")


def exactly(row: Row, arguments: tuple[np.ndarray, ...]) -> Sample:
    """Points with values of 40 digits."""
    exact = wide(exact_values(row.op, *arguments))
    return Sample(arguments, exact, unit_at(row, arguments, _as_float64(exact)), rough=False)


def _as_float64(exact: Wide) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(exact.high, exact.exponent))


def drawn_sample(row: Row, count: int) -> Sample:
    """Arguments of float64 by chance: many where long doubles give their values, else fewer."""
    if function_of(row.op) is None:
        return exactly(row, points.drawn(row, FLOAT64, max(count // (1000 if row.slow else 50), 20)))
    return quickly(row, points.drawn(row, FLOAT64, count))


def quickly(row: Row, arguments: tuple[np.ndarray, ...]) -> Sample:
    """Points with values of long doubles where there are some, else of 40 digits."""
    quick = function_of(row.op)
    if quick is None:
        return exactly(row, arguments)
    with np.errstate(all="ignore"):
        exact = wide_of_floats(quick(*(each.astype(np.longdouble) for each in arguments)))
    return Sample(arguments, exact, unit_at(row, arguments, _as_float64(exact)), rough=True)


def judge(row: Row, dtype: DType, sample: Sample, found: np.ndarray) -> tuple[np.ndarray, Found]:
    """All errors, and their summary; where values were rough, the worst are measured again."""
    error = errors(found, sample.exact, dtype, sample.unit)
    if sample.rough:
        worst = np.argsort(np.where(np.isnan(sample.exact.high), -1, error))[-RECHECKED:]
        again = exactly(row, sample.at(worst))
        error[worst] = errors(found[worst], again.exact, dtype, again.unit)
    meaningful = ~np.isnan(sample.exact.high)
    usual = meaningful & is_usual(sample, dtype)
    at = int(np.argmax(np.where(meaningful, error, -1)))
    mean = float(np.mean(error[meaningful])) if meaningful.any() else 0.0
    most_usual = float(np.max(error[usual], initial=0.0))
    operands = tuple(float(each[at]) for each in sample.arguments)
    return error, Found(float(error[at]), operands, most_usual, mean, int(meaningful.sum()))


def is_usual(sample: Sample, dtype: DType) -> np.ndarray:
    """Where arguments and exact values are normal numbers, or 0."""
    places = PLACES[dtype]
    tiny = 2.0 ** (places.least - 1)
    result = (sample.exact.exponent >= places.least) & (sample.exact.exponent <= places.greatest)
    for each in sample.arguments:
        size = np.abs(each.astype(np.float64))
        result &= (size == 0) | (size >= tiny)
    return np.asarray(result | (sample.exact.high == 0))


def joined(parts: list[Found], mean: float | None = None) -> Found:
    """Several findings as one; the mean is that of the first."""
    worst = max(parts, key=lambda part: part.most)
    usual = max(part.usual for part in parts)
    return Found(
        worst.most, worst.at, usual, parts[0].mean if mean is None else mean, sum(part.count for part in parts)
    )


def measure_double(row: Row, evaluators: Mapping[str, Evaluate], count: int) -> dict[str, Found]:
    """Errors in float64 of several implementations, at the same points and near the worst of them."""
    samples = [drawn_sample(row, count), exactly(row, points.hard(row, FLOAT64))]
    found = {}
    for name, evaluate in evaluators.items():
        with np.errstate(all="ignore"):
            judged = [judge(row, FLOAT64, sample, evaluate(row, *sample.arguments)) for sample in samples]
            near = _near_the_worst(row, evaluate, samples[0], judged[0][0])
        found[name] = joined([*(each for _, each in judged), *near])
    return found


SEARCHES = (2.0**-3, 2.0**-6, 2.0**-10)  # how far from the worst arguments, relative to them


def _near_the_worst(row: Row, evaluate: Evaluate, sample: Sample, error: np.ndarray) -> list[Found]:
    """What is found by looking around the worst arguments of a sample, then around the worst of those."""
    random = np.random.default_rng(3)
    many = 400 if function_of(row.op) else 6 if row.slow else 30
    found = []
    for spread in SEARCHES:
        worst = np.argsort(np.where(np.isnan(sample.exact.high) | np.isinf(error), -1, error))[-24:]
        moved = tuple(
            (each[worst, None] * (1 + random.uniform(-spread, spread, (len(worst), many)))).ravel()
            for each in sample.arguments
        )
        sample = quickly(row, moved)
        error, summary = judge(row, FLOAT64, sample, evaluate(row, *moved))
        found.append(summary)
    return found


def measure_narrow(row: Row, dtype: DType, evaluators: Mapping[str, Evaluate]) -> dict[str, Found]:
    """Errors in float16 or bfloat16, of one operand: all of them."""
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    x = x[np.isfinite(x.astype(np.float32))]
    sample = referred(row, (x,))
    found = {}
    for name, evaluate in evaluators.items():
        with np.errstate(all="ignore"):
            found[name] = judge(row, dtype, sample, evaluate(row, x))[1]
    return found


def referred(row: Row, arguments: tuple[np.ndarray, ...]) -> Sample:
    """Points of a narrower format with values by fusec's float64 function."""
    value = Cpu().evaluate(row, *(each.astype(np.float64) for each in arguments))
    return Sample(arguments, wide_of_floats(value), unit_at(row, arguments, value), rough=False)


def swept_single(row: Row, target: Cpu | Cuda, step: int, pairs: int, progress: Callable[[str], None]) -> Swept:
    """A float32 sweep on a target."""
    return sweep(row, step, target, pairs, progress)


def hard_single(row: Row, evaluate: Evaluate, also: tuple[float, ...] = ()) -> Found:
    """Errors in float32 at chosen points, and at `also`, the worst of a sweep, with 40 digits."""
    arguments = points.hard(row, FLOAT32)
    if also and all(math.isfinite(each) for each in also):
        arguments = tuple(np.append(each, np.float32(value)) for each, value in zip(arguments, also, strict=True))
    sample = exactly(row, arguments)
    with np.errstate(all="ignore"):
        return judge(row, FLOAT32, sample, evaluate(row, *sample.arguments))[1]


@cache
def error_kernel() -> fusec.ElementwiseKernel:
    """The error of a float32 against a float64."""
    text = "error = exact == exact || got == got ? (float)ulps((double)got, exact, unit) : -1.0f"
    inputs = "float32 got, float64 exact, float64 unit"
    return fusec.ElementwiseKernel(inputs, "float32 error", text, "error_of", preamble=ulps_text(FLOAT32))


def peers_single(row: Row, evaluators: Mapping[str, Evaluate], step: int) -> dict[str, Found]:
    """Errors in float32 of other implementations, at every step-th pattern and at chosen points."""
    hard = exactly(row, points.hard(row, FLOAT32))
    parts = {name: [] for name in evaluators}  # type: dict[str, list[Found]]
    for x in pattern_chunks(row, step):
        with np.errstate(invalid="ignore"):  # nan that signals
            exact = Cpu().evaluate(row, *(each.astype(np.float64) for each in x))
        unit = unit_at(row, x, exact)
        usual = np.abs(exact) >= 2.0**-126
        for each in x:
            usual &= np.isfinite(each) & ((np.abs(each) >= np.float32(2.0**-126)) | (each == 0))
        usual = (usual & (np.abs(exact) < 2.0**128)) | (exact == 0)
        for name, evaluate in evaluators.items():
            with np.errstate(all="ignore"):
                error = error_kernel()(evaluate(row, *x), exact, 0.0 if unit is None else unit)
            parts[name].append(_summary(error, usual, x))  # type: ignore[arg-type]
    found = {}
    for name, evaluate in evaluators.items():
        count = sum(part.count for part in parts[name])
        mean = sum(part.mean * part.count for part in parts[name]) / max(count, 1)
        with np.errstate(all="ignore"):
            last = judge(row, FLOAT32, hard, evaluate(row, *hard.arguments))[1]
        found[name] = joined([*parts[name], last], mean)
    return found


def _summary(error: np.ndarray, usual: np.ndarray, x: tuple[np.ndarray, ...]) -> Found:
    counted = error >= 0
    at = int(np.argmax(error))
    mean = float(np.mean(error[counted], dtype=np.float64)) if counted.any() else 0.0
    most_usual = float(np.max(error[usual], initial=0.0))
    return Found(float(error[at]), tuple(float(each[at]) for each in x), most_usual, mean, int(counted.sum()))


def pattern_chunks(row: Row, step: int, size: int = 1 << 20) -> list[tuple[np.ndarray, ...]]:
    """Every step-th float32 in pieces; for two operands random pairs."""
    if row.arity == 2:
        return [points.drawn(row, FLOAT32, size // 4, seed) for seed in range(3)]
    total = -(-(1 << 32) // step)
    pieces = (np.arange(first, min(first + size, total), dtype=np.uint64) * step for first in range(0, total, size))
    return [(each.astype(np.uint32).view(np.float32),) for each in pieces]
