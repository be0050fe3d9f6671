"""The arguments that are tried in float64, by chance and by choice."""

from __future__ import annotations

from functools import cache

import mpmath as mp
import numpy as np

from fusec.base.dtypes import FLOAT32, DType
from tools.accuracy.functions import Row

# Arguments about which every function is tried: ends of ranges, constants, changes of method.
ANCHORS = (
    *(0.0, 5e-324, 2.2250738585072014e-308, 1e-300, 1.1754943508222875e-38, 1e-20, 2.0**-53, 2.0**-27, 2.0**-12),
    *(0.1, 0.25, 1 / 3, 0.35, 0.41421356237309503, 0.5, 2 / 3, 0.6931471805599453, 0.7, 0.75, 1.0, 4 / 3, 1.5, 1.57),
    *(2.0, 2.414213562373095, 2.5, 2.718281828459045, 3.0, 3.141592653589793, 4.0, 5.0, 7.5, 8.0, 9.0, 10.0, 12.0),
    *(16.0, 17.0, 19.0, 20.0, 22.0, 26.5, 27.2, 32.0, 36.7, 38.5, 44.4, 88.0, 88.7, 89.0, 103.9, 127.0, 150.0, 171.6),
    *(308.2, 323.3, 700.0, 709.78, 710.4, 713.9, 744.4, 745.1, 1023.0, 1074.0, 2.0**17, 2.0**23, 2.0**24, 2.0**38),
    *(2.0**52, 2.0**53, 2.0**54, 1e20, 1e100, 1.3407807929942596e154, 1e300, 1.7976931348623157e308),
)

# Results that lie closest to the middle between two floats, or to a float: V. Lefevre, J.-M. Muller, "Worst cases for
# correct rounding of the elementary functions in double precision", 2001.
CHOSEN: dict[str, tuple[float, ...]] = {
    "exp": (float.fromhex("0x1.9e9cbbfd6080bp-31"), 709.782712893384, -745.1332191019411, -708.3964185322641),
    "expm1": (-37.42994775023705, -36.04365338911715, 709.782712893384),
    "exp2": (1023.9999999999999, -1074.9999999999998, -1022.5),
    "exp10": (308.2547155599167, -323.6, -307.6526555685887),
    "log": (float.fromhex("0x1.62a88613629b6p+678"), 1.0000000000000002, 0.9999999999999999),
    "log1p": (-0.9999999999999999, 2.220446049250313e-16),
    "gamma": (171.6243769563027, 0.5, 1.4616321449683623, -170.56749727266123, -184.0, 2.2e-308),
    "lgamma": (1.4616321449683623, 1.0000000000000002, 0.9999999999999999, 2.0000000000000004, 2.5e305, 4.5, -4.5, 2.5),
    "erfc": (26.543258430632299, 27.226017111108366),
    "sinh": (710.4758600739439, float.fromhex("0x1.dffffffffffe3p-20")),
    "cosh": (710.4758600739439,),
    "cbrt": (1.7976931348623157e308, 5e-324),
    "i0": (713.9869, 8.0),
    "i1": (713.9876, 8.0),
}
TURNS = ("sin", "cos", "tan")  # near a multiple of pi / 2


@cache
def nearest_to_quarter_turns(dtype: DType) -> np.ndarray:
    """Floats m * 2^e that lie closest to multiples of pi / 2: m is a denominator of a convergent of 2^e * 2 / pi.

    The closest float64 of all, 6381956970095103 * 2^797, is among them (J.-M. Muller, "Elementary functions", 2006).
    """
    digits, greatest = (24, 104) if dtype == FLOAT32 else (53, 971)
    found = [6381956970095103 * 2.0**797] if dtype != FLOAT32 else []
    with mp.workprec(1400):
        for exponent in range(-digits, greatest, 1 if dtype == FLOAT32 else 7):
            rest = mp.frac(mp.mpf(2) ** exponent * 2 / mp.pi)
            before, current = 0, 1
            while current < 2**digits:
                if current >= 2 ** (digits - 1):
                    found.append(float(current) * 2.0**exponent)
                inverse = 1 / rest
                rest = mp.frac(inverse)
                before, current = current, int(mp.floor(inverse)) * current + before
    return np.array(found).astype(dtype.numpy)


def drawn(row: Row, dtype: DType, count: int, seed: int = 7) -> tuple[np.ndarray, ...]:
    """`count` arguments for each of the row's ranges, the same in every run."""
    random = np.random.default_rng(seed)
    if row.arity == 2:
        return _pairs(row, dtype, count, random)
    columns = [random.uniform(low, high, count) for low, high in row.ranges]
    for low, high in row.exponents:
        sign = 1 if row.positive else random.choice([-1, 1], count)
        columns.append(np.exp2(random.uniform(low, high, count)) * sign)
    with np.errstate(over="ignore", under="ignore"):
        return (np.concatenate(columns).astype(dtype.numpy),)


def hard(row: Row, dtype: DType) -> tuple[np.ndarray, ...]:
    """Arguments chosen because they are hard: of every function, and of this one."""
    if row.arity == 2:
        with np.errstate(all="ignore"):
            left, right = (each.ravel() for each in np.meshgrid(ANCHORS[::2], [*ANCHORS[1::4], -0.5, -3.0, -100.0]))
            return tuple(each.astype(dtype.numpy) for each in (left, right))
    with np.errstate(over="ignore", under="ignore"):
        centre = np.array([*ANCHORS, *CHOSEN.get(row.op, ())]).astype(dtype.numpy)
    centre = np.concatenate([centre, -centre])
    if row.op in TURNS:
        centre = np.concatenate([centre, nearest_to_quarter_turns(dtype)])
    near = [centre]
    for direction in (np.inf, -np.inf):
        moved = centre
        for _ in range(3):
            with np.errstate(over="ignore", under="ignore"):
                moved = np.nextafter(moved, dtype.numpy.type(direction))
            near.append(moved)
    values = np.unique(np.concatenate(near))
    return (values[np.isfinite(values)],)


def _pairs(row: Row, dtype: DType, count: int, random: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Magnitudes that meet, moderate numbers, wide ones, and for powers and sums of powers those that matter."""
    top, bottom = (127, -149) if dtype == FLOAT32 else (1023, -1074)
    exponent = random.uniform(bottom, top, count)
    wide = np.exp2(exponent) * random.choice([-1, 1], count)
    meeting = np.exp2((exponent + random.uniform(-14, 14, count)).clip(bottom, top))
    left, right = [random.uniform(-9, 9, count), wide], [random.uniform(-9, 9, count), meeting]
    if row.op == "pow":
        base = np.exp2(random.uniform(bottom, top, count))
        near = 1 + random.uniform(-0.5, 0.5, count) * np.exp2(-random.uniform(0, 40, count))
        left = [random.uniform(0, 9, count), base, near, random.uniform(0.5, 2, count)]
        right = [random.uniform(-30, 30, count)]
        with np.errstate(divide="ignore"):
            logarithms = [np.log2(each.astype(dtype.numpy)) for each in left[1:]]
            exponents = [random.uniform(bottom - 2, top + 2, count) for _ in range(2)]
            exponents.append(random.uniform(0.8, 1, count) * np.where(random.random(count) < 0.5, top, bottom + 52))
            right += [each / logarithm for each, logarithm in zip(exponents, logarithms, strict=True)]
    if row.op in ("logaddexp", "logaddexp2"):
        mid = random.uniform(-120, 120, count)
        low = -random.uniform(0, 3, count) * np.exp2(-random.uniform(0, 20, count))
        left, right = [mid, low], [mid + random.uniform(-20, 20, count), np.log1p(-np.exp(low))]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return tuple(np.concatenate(each).astype(dtype.numpy) for each in (left, right))
