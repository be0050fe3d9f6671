"""Errors of complex functions: in norm, |found - exact| in last places of |exact|, and of the worse part in its own."""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp
import numpy as np

import fusec
from fusec.base.dtypes import COMPLEX64, FLOAT32, FLOAT64, DType
from tools.accuracy.functions import COMPLEX
from tools.accuracy.measure import Found
from tools.accuracy.references import DIGITS
from tools.accuracy.ulps import PLACES, errors, wide

# How kernels spell what is not spelled as the op, of z and w.
SPELLED = {
    "sqrt_complex": "sqrt(z)",
    "abs_complex": "abs(z)",
    "multiply": "z * w",
    "divide": "z / w",
    "pow": "pow(z, w)",
}
EXACT: dict[str, Callable[..., object]] = {
    **{
        name: getattr(mp, name)
        for name in "exp log sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh".split()
    },
    "expm1": lambda z: mp.expm1(z),
    "log1p": lambda z: mp.log1p(z),
    "log2": lambda z: mp.log(z) / mp.ln2,
    "log10": lambda z: mp.log(z) / mp.ln10,
    "sqrt_complex": mp.sqrt,
    "abs_complex": abs,
    "arg": mp.arg,
    "norm": lambda z: z.real * z.real + z.imag * z.imag,
    "multiply": lambda z, w: z * w,
    "divide": lambda z, w: z / w,
    "square": lambda z: z * z,
    "reciprocal": lambda z: 1 / z,
    "sign": lambda z: z / abs(z),
    "pow": lambda z, w: mp.exp(w * mp.log(z)),
}
BINARY = ("multiply", "divide", "pow")
REAL = ("abs_complex", "arg", "norm")
INVERSE = ("asin", "acos", "atan", "asinh", "acosh", "atanh")


def arguments(dtype: DType, count: int, seed: int = 11) -> np.ndarray:
    """Numbers of moderate size, of any exponents, near 1, -1, i and -i, and near the axes; no part is 0."""
    random = np.random.default_rng(seed)

    def parts(spread: float) -> np.ndarray:
        sign = random.choice([-1, 1], (2, count))
        moved = sign * np.exp2(random.uniform(-spread, spread / 4, (2, count)))
        return np.asarray(moved[0] + 1j * moved[1])

    uniform = random.uniform(-4, 4, (4, count))
    special = random.choice([1, -1, 1j, -1j], count)
    thin = random.uniform(-2, 2, count) + 1j * random.choice([-1, 1], count) * np.exp2(random.uniform(-40, -1, count))
    groups = [uniform[0] + 1j * uniform[1], parts(8), parts(30), special + parts(24) * 0.01, thin, thin * 1j]
    return np.concatenate(groups).astype(dtype.numpy)


def extremes(dtype: DType, count: int, seed: int = 13) -> np.ndarray:
    """Numbers of any small distance from 1, -1, i and -i, down to the least number, and of the greatest size."""
    random, numbers = np.random.default_rng(seed), np.finfo(dtype.numpy)
    sign = random.choice([-1.0, 1.0], (4, count))
    small = sign * np.exp2(random.uniform(np.log2(float(numbers.smallest_subnormal)), -1, (4, count)))
    above = sign[2] + np.where(random.random(count) < 0.5, 0.0, small[0]) + 1j * small[1]
    great = sign * float(numbers.max) * np.exp2(random.uniform(-8, 0, (4, count)))
    return np.concatenate([above, above * 1j, great[0] + 1j * great[1]]).astype(dtype.numpy)


def measure(op: str, dtype: DType, count: int) -> Found:
    """Found.most is the error in norm, Found.usual that of the worse part; what over- or underflows is left out."""
    part = FLOAT32 if dtype == COMPLEX64 else FLOAT64
    z, w = arguments(dtype, count), arguments(dtype, count, 12)
    w = np.roll(w, 3 * count)
    if op in INVERSE:
        z = np.concatenate([z, extremes(dtype, count)])
    if op == "pow":
        w = np.where(np.abs(w) < 8, w, w / np.abs(w)).astype(dtype.numpy)
    binary = op in BINARY
    result = "R" if op not in REAL else str(part)
    kernel = fusec.ElementwiseKernel(
        "R z, R w" if binary else "R z", f"{result} v", f"v = {SPELLED.get(op, f'{op}(z)')}", f"one_{op}"
    )
    given = (z, w) if binary else (z,)
    found = np.asarray(kernel(*given))
    exact = [_value(op, point) for point in zip(*given, strict=True)]
    return _summary(part, found, exact, given)


def _digits(point: tuple[complex, ...]) -> int:
    """Decimal digits that keep 1 beside the square of the least part and of the greatest: 1 + z and 1 - z cancel."""
    sizes = [abs(part) for each in point for part in (float(each.real), float(each.imag)) if part]
    return DIGITS + 2 * max(abs(round(float(np.log10(size)))) for size in sizes)


def _value(op: str, point: tuple[complex, ...]) -> mp.mpc:
    with mp.workdps(_digits(point) if op in INVERSE else DIGITS):
        numbers = [mp.mpc(complex(each)) for each in point]
        try:
            return mp.mpc(EXACT[op](*numbers))
        except (ZeroDivisionError, OverflowError, ValueError):
            return mp.mpc(mp.nan)


def _summary(part: DType, found: np.ndarray, exact: list[mp.mpc], given: tuple[np.ndarray, ...]) -> Found:
    places = PLACES[part]
    size = [abs(each) for each in exact]
    usable = [
        i for i, each in enumerate(size) if mp.isfinite(each) and places.least <= mp.frexp(each)[1] < places.greatest
    ]
    in_norm, by_parts = [], []
    real = errors(found.real[usable], wide([exact[i].real for i in usable]), part)
    imag = errors(found.imag[usable], wide([exact[i].imag for i in usable]), part)
    for at, i in enumerate(usable):
        with mp.workdps(DIGITS):
            distance = abs(mp.mpc(complex(found[i])) - exact[i])
            in_norm.append(float(distance * mp.mpf(2) ** (places.digits - mp.frexp(size[i])[1])))
        by_parts.append(max(real[at], imag[at] if np.iscomplexobj(found) else 0.0))
    worst = int(np.argmax(in_norm))
    operands = [each[usable[worst]] for each in given]
    at_worst = tuple(float(number) for each in operands for number in (each.real, each.imag))
    return Found(in_norm[worst], at_worst, float(np.max(by_parts)), float(np.mean(in_norm)), len(usable))


def all_of(dtype: DType, count: int, only: set[str]) -> dict[str, Found]:
    """Every function asked for, or all if `complex` is among them."""
    return {op: measure(op, dtype, count) for op in COMPLEX if op in only or "complex" in only}
