"""Errors over millions of arguments at once, by kernels that step through bit patterns on the CPU or a GPU.

Each element of such a kernel looks at many arguments and keeps the worst one, so that 2^32 of them leave a few
kilobytes. The exact value is the function's float64 result: its own error, below 2^-52, is nothing beside a float32's
last place, and is measured apart (see points.py); the worst argument is looked at again with 40 digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import fusec
from fusec.base.dtypes import FLOAT32, DType
from tools.accuracy.functions import Row
from tools.accuracy.ulps import PLACES

Progress = Callable[[str], None]

# Known values of the error, in a format with `DIGITS` digits whose least normal number has the exponent `LEAST`; a nan
# where only one side has one is an infinite error.
ULPS = """
__device__ double ulps(double got, double exact, double unit) {
    double wanted = fmin(fmax(exact, -OVER), OVER);
    double found = fmin(fmax(got, -OVER), OVER);
    long long exponent = (__double_as_longlong(fmax(fabs(wanted), unit)) >> 52) - 1022;
    exponent = exponent < LEAST ? LEAST : exponent > GREATEST ? GREATEST : exponent;
    double scale = __longlong_as_double((1023 + DIGITS - exponent) << 52);
    double error = fabs(found - wanted) * scale;
    return got == got && exact == exact ? error : HUGE_VAL;
}
"""

HASH = """
__device__ unsigned long long mixed(unsigned long long n) {
    n += 0x9E3779B97F4A7C15ull;
    n = (n ^ (n >> 30)) * 0xBF58476D1CE4E5B9ull;
    n = (n ^ (n >> 27)) * 0x94D049BB133111EBull;
    return n ^ (n >> 31);
}
__device__ float between(unsigned bits, float low, float high) {
    return low + (high - low) * ((float)(bits >> 8) * 0x1p-24f);
}
"""

BODY = """
double sum = 0; double most = -1; int n = 0; unsigned at_x = 0; unsigned at_y = 0; unsigned long long bits = 0;
for (int k = 0; k < count; ++k) {
    unsigned long long point = first + (unsigned long long)i + (unsigned long long)k * lanes;
    ARGUMENTS
    double x = (double)x_given; double y = (double)y_given;
    double exact = REFERENCE;
    float result = VALUE;
    double got = (double)result;
    double error = ulps(got, exact, UNIT);
    if (point < points && got == got) { bits += __float_as_uint(result) * (2 * point + 1); }
    if (point < points && (exact == exact || got == got)) {
        sum += error; n += 1;
        if (error > most) { most = error; at_x = __float_as_uint(x_given); at_y = __float_as_uint(y_given); }
    }
}
worst = most; worst_x = at_x; worst_y = at_y; total = sum; measured = n; digest = bits;
"""

PATTERNS = """
    float x_given = __uint_as_float((unsigned)(point * step)); float y_given = 0.0f;
"""

# Pairs of four kinds: any bits; magnitudes that meet; moderate numbers; and what is hard for the function.
PAIRS = """
    unsigned long long random = mixed(point);
    unsigned left = (unsigned)random; unsigned right = (unsigned)(random >> 32);
    unsigned more = (unsigned)mixed(random);
    int kind = (int)(point & 3);
    float x_given = __uint_as_float(left);
    float y_given = __uint_as_float(right);
    if (kind == 1) { NEAR }
    if (kind == 2) { x_given = between(left, -9.0f, 9.0f); y_given = between(right, -9.0f, 9.0f); }
    if (kind == 3) { HARD }
"""
MEETING = "y_given = x_given * exp2f(between(right, -14.0f, 14.0f)); if (more & 1) { y_given = -y_given; }"
NEAR = {
    "pow": "x_given = fabsf(x_given); y_given = between(right, -151.0f, 129.0f) / log2f(x_given);",
    "logaddexp": "x_given = between(left, -120.0f, 120.0f); y_given = x_given + between(right, -20.0f, 20.0f);",
    "logaddexp2": "x_given = between(left, -160.0f, 160.0f); y_given = x_given + between(right, -30.0f, 30.0f);",
}
HARD = {
    "pow": "x_given = 1.0f + between(left, -0.5f, 0.5f) * exp2f(-between(more, 0.0f, 24.0f));"
    " y_given = between(right, -151.0f, 129.0f) / log2f(x_given);",
    "logaddexp": "x_given = -between(left, 0.0f, 3.0f) * exp2f(-between(more, 0.0f, 20.0f));"
    " y_given = log1pf(-expf(x_given)) + between(right, -1e-6f, 1e-6f);",
    "logaddexp2": "x_given = -between(left, 0.0f, 4.0f) * exp2f(-between(more, 0.0f, 20.0f));"
    " y_given = log2f(1.0f - exp2f(x_given)) + between(right, -1e-6f, 1e-6f);",
}


@dataclass(frozen=True)
class Swept:
    """What a sweep found: arguments measured, error of the worst one and its operands, mean error.

    digest: the bits of all results that are numbers, each times an odd number that depends on its place, added up
    modulo 2^64: two sweeps whose results differ in one place have different digests, in several almost surely.
    """

    measured: int
    worst: float
    at: tuple[float, ...]
    mean: float
    digest: str


@dataclass(frozen=True)
class Shape:
    """Elements of one call, arguments that each of them looks at."""

    lanes: int
    count: int


def ulps_text(dtype: DType) -> str:
    """The error as a device function, for one format."""
    places = PLACES[dtype]
    text = ULPS.replace("OVER", f"0x1p{places.greatest}").replace("DIGITS", str(places.digits))
    return text.replace("LEAST", f"({places.least})").replace("GREATEST", str(places.greatest))


def sweep_kernel(row: Row) -> fusec.ElementwiseKernel:
    """The kernel that looks at the patterns (pairs of numbers for two operands) from `first` on."""
    binary = row.arity == 2
    arguments = PAIRS if binary else PATTERNS
    arguments = arguments.replace("NEAR", NEAR.get(row.op, MEETING)).replace("HARD", HARD.get(row.op, MEETING))
    body = BODY.replace("ARGUMENTS", arguments)
    body = body.replace("REFERENCE", row.call("x", "y") if binary else row.call("x"))
    body = body.replace("VALUE", row.call("x_given", "y_given") if binary else row.call("x_given"))
    body = body.replace("UNIT", f"({row.unit})" if row.unit else "0.0")
    return fusec.ElementwiseKernel(
        "uint64 first, uint64 points, uint64 lanes, uint64 step, int32 count",
        "float64 worst, uint32 worst_x, uint32 worst_y, float64 total, int32 measured, uint64 digest",
        body,
        f"sweep_{row.op}",
        preamble=ulps_text(FLOAT32) + (HASH if binary else ""),
    )


def sweep(row: Row, step: int, target: Any, pairs: int = 1 << 24, progress: Progress | None = None) -> Swept:
    """The float32 errors of every step-th pattern, or of that many pairs.

    target: of targets.py. Results are the same for every target and split, but for the mean's last places.
    """
    points = pairs if row.arity == 2 else -(-(1 << 32) // step)
    kernel = sweep_kernel(row)
    shape: Shape = target.shape
    lanes = min(shape.lanes, points)
    outputs = target.empty(lanes, ("float64", "uint32", "uint32", "float64", "int32", "uint64"))
    worst, bits, totals, measured, digest = -1.0, (0, 0), [], 0, 0
    for first in range(0, points, lanes * shape.count):
        count = min(shape.count, -(-(points - first) // lanes))
        kernel(first, points, lanes, step, count, *outputs)
        most, x, y, total, number, mixed = target.fetch(outputs)
        at = int(np.argmax(most))
        if most[at] > worst:
            worst, bits = float(most[at]), (int(x[at]), int(y[at]))
        totals.append(float(np.sum(total)))
        measured += int(np.sum(number, dtype=np.int64))
        digest += int(np.sum(mixed, dtype=np.uint64))
        if progress:
            progress(f"{row.op}: {min(100, 100 * (first + lanes * count) // points)} %, worst {worst:.3f}")
    at_values = tuple(_number(each) for each in bits[: row.arity])
    mean = math.fsum(totals) / max(measured, 1)
    return Swept(measured, worst, at_values, mean, f"{digest % 2**64:016x}")


def _number(bits: int) -> float:
    return float(np.array([bits], np.uint32).view(np.float32)[0])
