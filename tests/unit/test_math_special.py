"""Values at zeros, infinities, nan and the ends of domains, as in C99's Annex F, and laws of symmetry."""

from __future__ import annotations

from fractions import Fraction
from math import erfc

import numpy as np
import pytest

import fusec
from fusec.base.dtypes import BOOL, COMPUTE_FLOATS, INT32, DType
from fusec.base.ops import TABLE
from fusec.ir.arithmetic import evaluate
from fusec.ir.interpret import call
from fusec.math import callees, define

INF, NAN, PI = np.inf, np.nan, np.pi
INT_MIN, INT_MAX = -(2.0**31), 2.0**31 - 1
WHOLE = [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (3.0, 3.0), (-4.0, -4.0), (1e30, 1e30)]
SPECIAL: dict[str, list[tuple[float, float]]] = {
    # op: (argument, value) pairs; nan goes to nan for all of them
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (1e5, INF), (-1e5, 0.0)],
    "exp2": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (10.0, 1024.0), (-3.0, 0.125), (1e5, INF), (-1e5, 0.0)],
    "exp10": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (3.0, 1000.0), (1e5, INF), (-1e5, 0.0)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (1e-42, 1e-42), (-1e-42, -1e-42), (1e5, INF)],
    "log": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (-INF, NAN), (-1e-42, NAN)],
    "log2": [(1.0, 0.0), (8.0, 3.0), (0.125, -3.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (-INF, NAN)],
    "log10": [(1.0, 0.0), (1000.0, 3.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (-INF, NAN)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (INF, INF), (-2.0, NAN), (-INF, NAN), (1e-42, 1e-42)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (1e-42, 1e-42)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (1e-42, 1e-42)],
    "sinpi": [(0.0, 0.0), (-0.0, -0.0), (1.0, 0.0), (-3.0, -0.0), (0.5, 1.0), (1.5, -1.0), (1e30, 0.0), (INF, NAN)],
    "cospi": [(0.0, 1.0), (1.0, -1.0), (0.5, 0.0), (2.5, 0.0), (1e30, 1.0), (INF, NAN), (-INF, NAN)],
    "sinc": [(0.0, 1.0), (-0.0, 1.0), (1.0, 0.0), (7.0, 0.0), (INF, 0.0), (-INF, 0.0)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.5, NAN), (-1.5, NAN), (INF, NAN), (-INF, NAN), (1e-42, 1e-42), (1, PI / 2)],
    "acos": [(1.0, 0.0), (1.5, NAN), (-1.5, NAN), (INF, NAN), (-INF, NAN), (0.0, PI / 2), (-1.0, PI)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (1e-42, 1e-42), (INF, PI / 2), (-INF, -PI / 2)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (1e5, INF), (-1e5, -INF), (1e-42, 1e-42)],
    "cosh": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (-1e5, INF)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (50.0, 1.0), (-50.0, -1.0), (1e-42, 1e-42)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (1e-42, 1e-42)],
    "acosh": [(1.0, 0.0), (INF, INF), (0.5, NAN), (-1.0, NAN), (-INF, NAN)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (2.0, NAN), (-2.0, NAN), (INF, NAN), (-INF, NAN)],
    "cbrt": [(0.0, 0.0), (-0.0, -0.0), (27.0, 3.0), (-8.0, -2.0), (INF, INF), (-INF, -INF)],
    "sqrt": [(0.0, 0.0), (-0.0, -0.0), (4.0, 2.0), (INF, INF), (-INF, NAN), (-1e-42, NAN)],
    "rsqrt": [(4.0, 0.5), (0.0, INF), (-0.0, -INF), (INF, 0.0), (-1.0, NAN), (-INF, NAN)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (9.0, 1.0), (-9.0, -1.0)],
    "erfc": [(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 2.0), (30.0, 0.0), (-9.0, 2.0)],
    "erfcx": [(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, INF), (-30.0, INF), (-1e30, INF)],
    "erfinv": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (-1.5, NAN), (INF, NAN), (-INF, NAN)],
    "erfcinv": [(1.0, 0.0), (0.0, INF), (-0.0, INF), (2.0, -INF), (-1.0, NAN), (3.0, NAN), (INF, NAN), (-INF, NAN)],
    "normcdf": [(0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0), (-50.0, 0.0), (50.0, 1.0)],
    "normcdfinv": [(0.5, 0.0), (0.0, -INF), (-0.0, -INF), (1.0, INF), (-1.0, NAN), (2.0, NAN), (INF, NAN)],
    "sigmoid": [(0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0), (-1e5, 0.0), (1e5, 1.0)],
    "softplus": [(INF, INF), (-INF, 0.0), (1000.0, 1000.0), (-1e5, 0.0)],
    "gamma": [(1.0, 1.0), (5.0, 24.0), (0.0, INF), (-0.0, -INF), (-1.0, NAN), (-INF, NAN), (INF, INF), (1e5, INF)],
    "lgamma": [(1.0, 0.0), (2.0, 0.0), (0.0, INF), (-0.0, INF), (-3.0, INF), (-1e30, INF), (INF, INF), (-INF, INF)],
    "i0": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (1e5, INF)],
    "i1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (-1e5, -INF)],
    "j0": [(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 0.0)],
    "j1": [(0.0, 0.0), (-0.0, -0.0), (INF, 0.0)],
    "y0": [(0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, 0.0), (-INF, NAN)],
    "y1": [(0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, 0.0), (-INF, NAN)],
    "absolute": [(0.0, 0.0), (-0.0, 0.0), (-INF, INF), (INF, INF), (-3.0, 3.0)],
    "floor": [*WHOLE, (0.5, 0.0), (-0.5, -1.0), (2.5, 2.0)],
    "ceil": [*WHOLE, (0.5, 1.0), (-0.5, -0.0), (-2.5, -2.0)],
    "trunc": [*WHOLE, (0.5, 0.0), (-0.5, -0.0), (-2.5, -2.0)],
    "rint": [*WHOLE, (0.5, 0.0), (-0.5, -0.0), (1.5, 2.0), (2.5, 2.0), (-2.5, -2.0), (0.75, 1.0)],
    "round": [*WHOLE, (0.5, 1.0), (-0.5, -1.0), (0.25, 0.0), (-0.25, -0.0), (2.5, 3.0)],
    "sign": [(0.0, 0.0), (-0.0, 0.0), (INF, 1.0), (-INF, -1.0), (1e-42, 1.0), (-3.0, -1.0)],
    "square": [(0.0, 0.0), (-0.0, 0.0), (-INF, INF), (-3.0, 9.0)],
    "reciprocal": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, -0.0), (-2.0, -0.5)],
    "deg2rad": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (180.0, PI), (-90.0, -PI / 2)],
    "rad2deg": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "frexp_mantissa": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (8.0, 0.5), (-3.0, -0.75), (2.0**-140, 0.5)],
    "modf_fraction": [(0.0, 0.0), (-0.0, -0.0), (INF, 0.0), (-INF, -0.0), (2.5, 0.5), (-2.5, -0.5), (-4.0, -0.0)],
    "logb": [(0.0, -INF), (-0.0, -INF), (INF, INF), (-INF, INF), (8.5, 3.0), (-0.75, -1.0), (2.0**-140, -140.0)],
    "spacing": [(INF, NAN), (-INF, NAN)],  # the others depend on the format, see test_math_exact
}
INTEGERS: dict[str, list[tuple[float, float]]] = {
    "frexp_exponent": [(0.0, 0), (-0.0, 0), (INF, 0), (-INF, 0), (NAN, 0), (8.0, 4), (-0.75, 0), (2.0**-140, -139)],
    "ilogb": [(0.0, INT_MIN), (-0.0, INT_MIN), (INF, INT_MAX), (-INF, INT_MAX), (NAN, INT_MIN), (8.5, 3)],
}
CLASSES: dict[str, list[tuple[float, bool]]] = {
    "isnan": [(0.0, False), (INF, False), (-INF, False), (NAN, True)],
    "isinf": [(0.0, False), (INF, True), (-INF, True), (NAN, False), (3e38, False)],
    "isfinite": [(0.0, True), (-0.0, True), (INF, False), (-INF, False), (NAN, False), (3e38, True), (1e-42, True)],
    "signbit": [(0.0, False), (-0.0, True), (INF, False), (-INF, True), (3.0, False), (-3.0, True)],
}

Rows = list[tuple[float, float, float]]
POWERS: Rows = [
    (0.0, -1.0, INF), (-0.0, -1.0, -INF), (-0.0, -2.0, INF), (0.0, 2.0, 0.0), (-0.0, 3.0, -0.0), (-1.0, INF, 1.0),
    (-1.0, -INF, 1.0), (1.0, NAN, 1.0), (NAN, 0.0, 1.0), (-2.0, 0.5, NAN), (0.5, -INF, INF), (0.5, INF, 0.0),
    (2.0, -INF, 0.0), (2.0, INF, INF), (-INF, -3.0, -0.0), (-INF, -2.0, 0.0), (-INF, 3.0, -INF), (-INF, 2.0, INF),
    (INF, -1.0, 0.0), (INF, 1.0, INF), (-2.0, 3.0, -8.0), (-2.0, 2.0, 4.0), (-2.0, -1.0, -0.5), (NAN, 1.0, NAN),
    (0.0, -INF, INF), (-0.0, -INF, INF), (0.0, -0.5, INF), (-0.0, -0.5, INF), (0.0, INF, 0.0), (-0.0, INF, 0.0),
    (-0.0, 2.0, 0.0), (-0.0, 0.5, 0.0), (0.0, 0.5, 0.0), (1.0, INF, 1.0), (1.0, -INF, 1.0), (1.0, 5.0, 1.0),
    (5.0, 0.0, 1.0), (5.0, -0.0, 1.0), (INF, 0.0, 1.0), (-INF, -0.0, 1.0), (0.0, 0.0, 1.0), (-0.0, -0.0, 1.0),
    (NAN, -0.0, 1.0), (-0.5, -INF, INF), (-0.5, INF, 0.0), (-2.0, -INF, 0.0), (-2.0, INF, INF), (2.0, NAN, NAN),
    (-INF, -0.5, 0.0), (-INF, 0.5, INF), (-INF, -INF, 0.0), (-INF, INF, INF), (INF, -INF, 0.0), (INF, INF, INF),
    (INF, 0.5, INF), (INF, -0.5, 0.0), (-0.0, 1.0, -0.0), (-0.0, -3.0, -INF), (-1.0, NAN, NAN), (0.0, NAN, NAN),
    (NAN, NAN, NAN), (NAN, -1.0, NAN), (-1e-42, 1.0, -1e-42), (-3.0, 1e30, INF), (-0.5, 1e30, 0.0),
]  # fmt: skip
ANGLES: Rows = [
    (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0), (0.0, -0.0, PI), (-0.0, -0.0, -PI), (0.0, -1.0, PI), (-0.0, -1.0, -PI),
    (0.0, 1.0, 0.0), (-0.0, 1.0, -0.0), (1.0, 0.0, PI / 2), (1.0, -0.0, PI / 2), (-1.0, 0.0, -PI / 2),
    (-1.0, -0.0, -PI / 2), (1.0, INF, 0.0), (-1.0, INF, -0.0), (1.0, -INF, PI), (-1.0, -INF, -PI), (0.0, INF, 0.0),
    (-0.0, -INF, -PI), (INF, 1.0, PI / 2), (-INF, 1.0, -PI / 2), (INF, -1.0, PI / 2), (-INF, -0.0, -PI / 2),
    (INF, INF, PI / 4), (INF, -INF, 3 * PI / 4), (-INF, INF, -PI / 4), (-INF, -INF, -3 * PI / 4), (NAN, 1.0, NAN),
    (1.0, NAN, NAN), (NAN, INF, NAN), (INF, NAN, NAN), (NAN, 0.0, NAN), (0.0, NAN, NAN),
]  # fmt: skip
TRUNCATED: Rows = [  # C's fmod and remainder
    (0.0, 2.0, 0.0), (-0.0, 2.0, -0.0), (0.0, -2.0, 0.0), (-0.0, INF, -0.0), (3.0, 0.0, NAN), (3.0, -0.0, NAN),
    (0.0, 0.0, NAN), (INF, 2.0, NAN), (-INF, 2.0, NAN), (INF, INF, NAN), (3.0, INF, 3.0), (-3.0, INF, -3.0),
    (3.0, -INF, 3.0), (NAN, 2.0, NAN), (2.0, NAN, NAN), (4.0, 2.0, 0.0), (-4.0, 2.0, -0.0), (-4.0, -2.0, -0.0),
]  # fmt: skip
PAIRS: dict[str, Rows] = {
    "pow": POWERS,
    "atan2": ANGLES,
    "hypot": [
        (INF, NAN, INF), (NAN, -INF, INF), (-INF, 1.0, INF), (1.0, INF, INF), (NAN, 1.0, NAN), (0.0, NAN, NAN),
        (3.0, -4.0, 5.0), (0.0, -0.0, 0.0), (-0.0, -3.0, 3.0), (-3.0, 0.0, 3.0), (1e-42, 0.0, 1e-42),
    ],
    "fmod": [*TRUNCATED, (5.5, 2.0, 1.5), (-5.5, 2.0, -1.5), (5.5, -2.0, 1.5)],
    "ieee_remainder": [*TRUNCATED, (5.5, 2.0, -0.5), (5.0, 2.0, 1.0), (7.0, 2.0, -1.0), (3.0, 2.0, -1.0)],
    # the Array API's % and //, in which it allows what Python and NumPy do with infinities
    "remainder": [
        (NAN, 1.0, NAN), (1.0, NAN, NAN), (INF, -INF, NAN), (0.0, -0.0, NAN), (0.0, 2.0, 0.0), (-0.0, 2.0, 0.0),
        (0.0, -2.0, -0.0), (-0.0, -2.0, -0.0), (2.0, 0.0, NAN), (-2.0, -0.0, NAN), (INF, 2.0, NAN), (-INF, -2.0, NAN),
        (2.0, INF, 2.0), (2.0, -INF, -INF), (-2.0, INF, INF), (-2.0, -INF, -2.0), (-5.0, 3.0, 1.0), (5.0, -3.0, -1.0),
        (6.0, -3.0, -0.0), (-6.0, 3.0, 0.0), (0.0, INF, 0.0), (0.0, -INF, -0.0),
    ],
    "floor_divide": [
        (NAN, 1.0, NAN), (1.0, NAN, NAN), (INF, -INF, NAN), (0.0, -0.0, NAN), (0.0, 2.0, 0.0), (-0.0, 2.0, -0.0),
        (0.0, -2.0, -0.0), (-0.0, -2.0, 0.0), (2.0, 0.0, INF), (2.0, -0.0, -INF), (-2.0, 0.0, -INF), (-2.0, -0.0, INF),
        (INF, 2.0, NAN), (-INF, 2.0, NAN), (INF, -2.0, NAN), (2.0, INF, 0.0), (2.0, -INF, -1.0), (-2.0, INF, -1.0),
        (-2.0, -INF, 0.0), (-5.0, 3.0, -2.0), (5.0, 3.0, 1.0), (6.0, -3.0, -2.0), (INF, 0.0, INF), (-INF, 0.0, -INF),
    ],
    "divide": [
        (INF, -INF, NAN), (0.0, -0.0, NAN), (0.0, 2.0, 0.0), (-0.0, 2.0, -0.0), (0.0, -2.0, -0.0), (2.0, 0.0, INF),
        (2.0, -0.0, -INF), (-2.0, -0.0, INF), (INF, -2.0, -INF), (2.0, -INF, -0.0), (-2.0, -INF, 0.0), (NAN, 0.0, NAN),
    ],
    "add": [
        (INF, -INF, NAN), (INF, INF, INF), (-INF, 1.0, -INF), (-0.0, -0.0, -0.0), (-0.0, 0.0, 0.0), (0.0, -0.0, 0.0),
        (0.0, 3.0, 3.0), (3.0, -3.0, 0.0), (NAN, INF, NAN),
    ],
    "multiply": [(INF, 0.0, NAN), (-0.0, INF, NAN), (INF, -INF, -INF), (-0.0, 3.0, -0.0), (-0.0, -3.0, 0.0)],
    "copysign": [(3.0, -0.0, -3.0), (-3.0, 0.0, 3.0), (INF, -1.0, -INF), (0.0, -INF, -0.0), (-0.0, 2.0, 0.0)],
    "nextafter": [
        (-0.0, 0.0, 0.0), (0.0, -0.0, -0.0), (NAN, 1.0, NAN), (1.0, NAN, NAN), (INF, INF, INF), (2.0, 2.0, 2.0),
        (-INF, -INF, -INF),
    ],
    "minimum": [(NAN, 1.0, NAN), (1.0, NAN, NAN), (0.0, -0.0, -0.0), (-0.0, 0.0, -0.0), (INF, -INF, -INF)],
    "maximum": [(NAN, 1.0, NAN), (1.0, NAN, NAN), (0.0, -0.0, 0.0), (-0.0, 0.0, 0.0), (INF, -INF, INF)],
    "fmin": [(NAN, 1.0, 1.0), (1.0, NAN, 1.0), (NAN, NAN, NAN), (0.0, -0.0, -0.0), (NAN, -INF, -INF)],
    "fmax": [(NAN, 1.0, 1.0), (1.0, NAN, 1.0), (NAN, NAN, NAN), (-0.0, 0.0, 0.0), (INF, -INF, INF), (NAN, -INF, -INF)],
    "logaddexp": [
        (INF, INF, INF), (INF, -INF, INF), (-INF, INF, INF), (-INF, -INF, -INF), (INF, 3.0, INF), (3.0, -INF, 3.0),
        (NAN, INF, NAN), (INF, NAN, NAN), (-INF, NAN, NAN), (1e30, -1e30, 1e30), (-INF, -0.0, 0.0),
    ],
    "logaddexp2": [
        (INF, INF, INF), (INF, -INF, INF), (-INF, INF, INF), (-INF, -INF, -INF), (3.0, 3.0, 4.0), (3.0, -INF, 3.0),
        (NAN, INF, NAN), (INF, NAN, NAN), (-INF, NAN, NAN), (1e30, -1e30, 1e30), (3e38, 3e38, 3e38),
    ],
    "heaviside": [(0.0, 0.5, 0.5), (-0.0, 0.25, 0.25), (INF, 9.0, 1.0), (-INF, 9.0, 0.0), (0.0, NAN, NAN)],
}  # fmt: skip

ODD = "sin tan deg2rad rad2deg sinpi asin atan sinh tanh asinh atanh cbrt erf erfinv i1 j1".split()
EVEN = "cos cospi cosh sinc i0 j0".split()


def run(op: str, *args: np.ndarray) -> np.ndarray:
    dtype: DType = next(t for t in COMPUTE_FLOATS if t.numpy == args[0].dtype)
    row = TABLE[op]
    if row.primitive:
        return np.asarray(evaluate(op, args, dtype))
    function = define(op, (dtype,) * len(args))
    return call(function, list(args), callees(function))


def assert_identical(found: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_array_equal(found, wanted)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]))


def columns(rows: list[tuple[float, ...]], dtype: DType) -> list[np.ndarray]:
    with np.errstate(over="ignore"):
        return [np.array(column, dtype.numpy) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
@pytest.mark.parametrize("op", SPECIAL)
def test_special_values(op: str, dtype: DType) -> None:
    x, wanted = columns([*SPECIAL[op], (NAN, NAN)], dtype)
    assert_identical(run(op, x), wanted)


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
@pytest.mark.parametrize("op", [*INTEGERS, *CLASSES])
def test_special_exponents_and_classes(op: str, dtype: DType) -> None:
    rows = {**INTEGERS, **CLASSES}[op]
    x = np.array([row[0] for row in rows], dtype.numpy)
    target = (INT32 if op in INTEGERS else BOOL).numpy
    np.testing.assert_array_equal(run(op, x), np.array([row[1] for row in rows]).astype(target), strict=True)


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
@pytest.mark.parametrize("op", PAIRS)
def test_special_values_of_two_arguments(op: str, dtype: DType) -> None:
    x, y, wanted = columns([*PAIRS[op], (NAN, NAN, NAN)], dtype)
    assert_identical(run(op, x, y), wanted)


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
def test_the_sign_of_nan_is_a_sign(dtype: DType) -> None:
    nans = np.array([NAN, np.copysign(NAN, -1)], dtype.numpy)
    signs = np.array([False, True])
    np.testing.assert_array_equal(run("signbit", nans), signs)
    np.testing.assert_array_equal(np.signbit(run("copysign", np.ones_like(nans), nans)), signs)
    np.testing.assert_array_equal(np.signbit(run("copysign", nans[:1], np.array([-0.0], dtype.numpy))), [True])
    np.testing.assert_array_equal(np.signbit(run("absolute", nans)), [False, False])


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
def test_fma_is_nan_where_product_or_sum_is(dtype: DType) -> None:
    rows = [(INF, 0.0, 1.0, NAN), (0.0, -INF, NAN, NAN), (INF, 2.0, -INF, NAN), (INF, 2.0, INF, INF)]
    rows += [
        (2.0, 3.0, NAN, NAN),
        (0.0, -1.0, 0.0, 0.0),
        (0.0, -1.0, -0.0, -0.0),
        (2.0, 3.0, -6.0, 0.0),
        (-0.0, 1.0, -0.0, -0.0),
    ]
    x, y, z, wanted = columns(rows, dtype)
    assert_identical(run("fma", x, y, z), wanted)


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
def test_ldexp_keeps_what_has_no_exponent(dtype: DType) -> None:
    x = np.array([0.0, -0.0, INF, -INF, NAN, 1.5], dtype.numpy)
    function = define("ldexp", (dtype, INT32))
    for power in (0, 5, -5, 2**31 - 1, -(2**31)):
        found = call(function, [x, np.full(x.shape, power, np.int32)], callees(function))
        with np.errstate(over="ignore", under="ignore"):
            assert_identical(found, np.ldexp(x, np.int32(max(min(power, 9999), -9999))))


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
def test_clip_keeps_nan_and_prefers_the_upper_bound(dtype: DType) -> None:
    rows = [(NAN, 0.0, 1.0, NAN), (5.0, 0.0, 1.0, 1.0), (-5.0, 0.0, 1.0, 0.0), (0.5, 2.0, 1.0, 1.0)]
    rows += [(0.5, NAN, 1.0, NAN), (0.5, 0.0, NAN, NAN), (INF, -INF, INF, INF), (-0.0, 0.0, 1.0, 0.0)]
    x, low, high, wanted = columns(rows, dtype)
    assert_identical(run("clip", x, low, high), wanted)


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
@pytest.mark.parametrize("op", ODD + EVEN)
def test_odd_and_even_functions_are_exactly_so(op: str, dtype: DType) -> None:
    random = np.random.default_rng(5)
    x = np.concatenate([random.uniform(0, 1, 200), random.uniform(0, 90, 200), 10.0 ** random.uniform(-40, 30, 200)])
    x = x.astype(dtype.numpy)
    left, right = run(op, -x), run(op, x)
    assert_identical(left, -right if op in ODD else right)


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
def test_integral_powers_of_small_numbers_are_exact(dtype: DType) -> None:
    x, y = (grid.ravel().astype(dtype.numpy) for grid in np.meshgrid(np.arange(-9.0, 10), np.arange(0.0, 7)))
    assert_identical(
        run("pow", x, y), np.array([float(int(a) ** int(b)) for a, b in zip(x, y, strict=True)], dtype.numpy)
    )


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
def test_logarithms_are_exact_at_powers(dtype: DType) -> None:
    least = -149 if dtype.bits == 32 else -1074
    exponents = np.arange(least, -least - 30).astype(dtype.numpy)
    with np.errstate(over="ignore", under="ignore"):
        powers = np.ldexp(dtype.numpy.type(1), exponents.astype(np.int32))
    finite = np.isfinite(powers)
    assert_identical(run("log2", powers[finite]), exponents[finite])
    assert_identical(run("exp2", exponents[finite]), powers[finite])
    tens = np.arange(0, 11 if dtype.bits == 32 else 23).astype(dtype.numpy)
    assert_identical(run("log10", np.array([float(10 ** int(n)) for n in tens], dtype.numpy)), tens)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cubes_need_no_power_and_are_within_their_bound(dtype):
    kernel = fusec.elementwise(lambda x: x**3)
    random = np.random.default_rng(0)
    reach = -np.finfo(dtype).minexp // 4
    x = np.ldexp(random.uniform(1, 2, 4000), random.integers(-reach, reach, 4000)) * random.choice([-1, 1], 4000)
    x = x.astype(dtype)
    exact, found = [Fraction(float(each)) ** 3 for each in x], kernel(x)
    apart = [abs(Fraction(float(our)) - their) for our, their in zip(found, exact, strict=True)]
    assert max(each / Fraction(float(unit)) for each, unit in zip(apart, np.spacing(abs(found)), strict=True)) < 0.501
    ends = np.array([0.0, -0.0, INF, -INF, NAN, np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal], dtype)
    expected = np.array([0.0, -0.0, INF, -INF, NAN, INF, 0.0], dtype)
    np.testing.assert_array_equal(kernel(ends), expected)
    np.testing.assert_array_equal(np.signbit(kernel(ends))[:4], np.signbit(expected)[:4])
    assert "cube" in kernel.source("ir", {"x": dtype})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_hypot_errs_by_half_an_ulp_where_results_are_normal(dtype):
    random, limits = np.random.default_rng(0), np.finfo(dtype)
    exponents = random.integers(limits.minexp + 2, limits.maxexp - 2, 3000)
    x = np.ldexp(random.uniform(1, 2, 3000).astype(dtype), exponents)
    y = (x * random.uniform(-2, 2, 3000)).astype(dtype)
    y[::50], x[::75] = 0, 0
    found = np.array([Fraction(float(each)) for each in run("hypot", x, y)])
    squares = np.array([Fraction(float(one)) ** 2 + Fraction(float(two)) ** 2 for one, two in zip(x, y, strict=True)])
    units = np.array([Fraction(float(each)) for each in np.spacing(run("hypot", x, y))])
    near = Fraction(502, 1000) * units
    assert np.all(np.maximum(found - near, 0) ** 2 <= squares)
    assert np.all(squares <= (found + near) ** 2)


@pytest.mark.parametrize(
    ("name", "least", "most", "exact"),
    [
        ("exp", -190.0, -80.0, np.exp),
        ("exp2", -270.0, -120.0, np.exp2),
        ("exp10", -80.0, -36.0, lambda x: 10.0**x),
        ("sigmoid", -190.0, -80.0, np.exp),
        ("softplus", -190.0, -80.0, np.exp),
        ("erfc", 9.0, 14.0, lambda x: np.array([erfc(each) for each in x])),
        ("normcdf", -20.0, -13.0, lambda x: np.array([erfc(-each / 2**0.5) / 2 for each in x])),
    ],
)
def test_small_powers_become_subnormal_and_then_vanish(name, least, most, exact):
    x = np.linspace(least, most, 20_001).astype(np.float32)
    found = fusec.ElementwiseKernel("float32 x", "float32 y", f"y = {name}(x)", "small")(x)
    wanted = exact(x.astype(np.float64))
    assert np.all(np.abs(found - wanted) <= np.spacing(wanted.astype(np.float32)))
    assert np.all((found == 0) == (wanted <= 2.0**-150))  # ties go to even
    assert 0 < np.count_nonzero(found) < found.size


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_negative_nan_stays_nan_in_vectors(dtype):
    x = np.full(67, -np.nan, dtype)
    for name in ("exp", "exp2", "exp10", "sigmoid", "softplus", "erfc", "normcdf", "sinh", "gamma"):
        kernel = fusec.ElementwiseKernel("T x", "T y", f"y = {name}(x)", "kernel")
        assert np.isnan(kernel(x)).all(), name
