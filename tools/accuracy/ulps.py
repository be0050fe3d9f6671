"""Errors in units of the last place: |found - exact| over the distance of floats around the exact value.

Below the least normal number the distance is that of subnormals. What overflows counts as the power of two that follows
the greatest float, so that a correctly rounded infinity errs by at most half a unit.
"""

from __future__ import annotations

from dataclasses import dataclass

import mpmath as mp
import numpy as np

from fusec.base.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType


@dataclass(frozen=True)
class Places:
    """A float format: digits of its significands, exponents (as frexp's) of its least and greatest normal numbers."""

    digits: int
    least: int
    greatest: int


PLACES: dict[DType, Places] = {
    FLOAT16: Places(11, -13, 16),
    BFLOAT16: Places(8, -125, 128),
    FLOAT32: Places(24, -125, 128),
    FLOAT64: Places(53, -1021, 1024),
}


@dataclass(frozen=True)
class Wide:
    """Real numbers (high + low) * 2^exponent with |high| in [1/2, 1), or 0; nan for none."""

    high: np.ndarray
    low: np.ndarray
    exponent: np.ndarray

    def __getitem__(self, at: np.ndarray) -> Wide:
        return Wide(self.high[at], self.low[at], self.exponent[at])


def wide(values: list[mp.mpf]) -> Wide:
    """Numbers of mpmath."""
    parts = [_split(value) for value in values]
    high, low, exponent = zip(*parts, strict=True) if parts else ((), (), ())
    return Wide(np.array(high, np.float64), np.array(low, np.float64), np.array(exponent, np.int64))


def _split(value: mp.mpf) -> tuple[float, float, int]:
    if mp.isnan(value):
        return np.nan, 0.0, 0
    if mp.isinf(value):
        return (0.5 if value > 0 else -0.5), 0.0, 4000
    fraction, exponent = mp.frexp(value)
    high = float(fraction)
    return high, float(fraction - high), max(-4000, min(4000, int(exponent)))


def wide_of_floats(values: np.ndarray) -> Wide:
    """Floats of any width, long doubles with both halves of their significands."""
    with np.errstate(invalid="ignore"):
        fraction, exponent = np.frexp(np.where(np.isinf(values), np.sign(values) * 0.5, values))
    high = fraction.astype(np.float64)
    low = (fraction - high).astype(np.float64)
    exponent = np.where(np.isinf(values), 4000, exponent)
    return Wide(high, low, exponent.astype(np.int64))


def errors(found: np.ndarray, exact: Wide, dtype: DType, unit: np.ndarray | None = None) -> np.ndarray:
    """The error of each value, 0 where both are nan, inf where one is.

    unit: magnitudes; where the exact value is less, the unit's last place counts instead.
    """
    places = PLACES[dtype]
    wanted_exponent = np.minimum(exact.exponent, places.greatest + 1)
    over = exact.exponent > places.greatest
    high = np.where(over, np.copysign(0.5, exact.high), exact.high)
    low = np.where(over, 0.0, exact.low)
    given = found.astype(np.float64)
    finite = np.where(np.isinf(given), np.copysign(1.0, given), given)
    mantissa, exponent = np.frexp(finite)
    exponent = np.where(np.isinf(given), places.greatest + 1, exponent)
    mantissa = np.where(np.isinf(given), np.copysign(0.5, given), mantissa)
    shift = np.clip(exponent - wanted_exponent, -1100, 1000)
    place = np.where(exact.high == 0, places.least, np.clip(wanted_exponent, places.least, places.greatest))
    if unit is not None:
        place = np.maximum(place, np.frexp(unit)[1])
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs((np.ldexp(mantissa, shift) - high) - low)
        error = np.ldexp(distance, np.clip(wanted_exponent - place + places.digits, -1100, 1100))
    nan = np.isnan(given)
    return np.where(nan & np.isnan(exact.high), 0.0, np.where(nan | np.isnan(exact.high), np.inf, error))
