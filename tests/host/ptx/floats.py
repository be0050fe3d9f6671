"""What PTX's floating-point instructions compute, on NumPy arrays.

Source: PTX ISA, "Floating Point Instructions". Rounding to nearest is NumPy's; the other modes are exact rationals.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from fusec.ir import rounding

Array = np.ndarray
DIRECTED = ("rz", "rm", "rp")


def fma(a: Array, b: Array, c: Array) -> Array:
    """fma.rn with a single rounding."""
    a, b, c = np.broadcast_arrays(a, b, c)
    if a.dtype == np.float16:  # the product is exact in float32 and rounded to odd in float64
        wide = a.astype(np.float64) * b.astype(np.float64)
        return rounding.add_to_odd(wide, c.astype(np.float64)).astype(np.float16)
    return rounding.fma(a, b, c)


def directed(exact: Callable[..., Fraction], nearest: Callable[..., Array], mode: str) -> Callable[..., Array]:
    """An operation rounded toward zero (rz), down (rm) or up (rp), made of the nearest result and the exact one."""

    def rounded(*operands: Array) -> Array:
        result = np.array(nearest(*operands))
        operands = np.broadcast_arrays(*operands)
        finite = np.logical_and.reduce([np.isfinite(each) for each in operands])
        for lane in np.flatnonzero(finite & ~np.isnan(result)):
            value = exact(*(Fraction(float(each[lane])) for each in operands))
            result[lane] = toward(value, result[lane], mode)
        return result

    return rounded


def toward(exact: Fraction, near: np.floating, mode: str) -> np.floating:
    """The neighbour of the exact value on the side that the mode asks for; near: one of its neighbours."""
    if mode == "rz":
        mode = "rm" if exact > 0 else "rp"
    limit = near.dtype.type(-math.inf if mode == "rm" else math.inf)
    if exact == 0:
        return near
    wrong = near == -limit or (np.isfinite(near) and _beyond(Fraction(float(near)), exact, mode))
    return np.nextafter(near, limit) if wrong else near


def _beyond(value: Fraction, exact: Fraction, mode: str) -> bool:
    return value > exact if mode == "rm" else value < exact


def minimum(a: Array, b: Array) -> Array:
    """min: of a number and nan the number; -0 is below +0."""
    chosen = np.fmin(a, b)
    return np.where((a == 0) & (b == 0) & np.signbit(a), a, np.where((a == 0) & (b == 0), b, chosen))


def maximum(a: Array, b: Array) -> Array:
    """max: of a number and nan the number; +0 is above -0."""
    chosen = np.fmax(a, b)
    return np.where((a == 0) & (b == 0) & ~np.signbit(a), a, np.where((a == 0) & (b == 0), b, chosen))


def or_nan(order: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """min.NaN and max.NaN: nan if any operand is."""
    return lambda a, b: np.where(np.isnan(a) | np.isnan(b), a.dtype.type(np.nan), order(a, b))


def saturated(values: Array) -> Array:
    """.sat: limited to 0 to 1, nan becomes 0."""
    one, zero = values.dtype.type(1), values.dtype.type(0)
    return np.where(values > zero, np.minimum(values, one), zero)


def flushed(values: Array) -> Array:
    """.ftz: subnormal numbers become zeros of their sign."""
    tiny = np.finfo(values.dtype).smallest_normal
    return np.where(np.abs(values) < tiny, np.copysign(values.dtype.type(0), values), values)


def copy_sign(sign: Array, magnitude: Array) -> Array:
    """copysign: the first operand brings the sign."""
    return np.copysign(magnitude, sign)


def is_normal(a: Array) -> Array:
    """testp.normal."""
    return np.isfinite(a) & (np.abs(a) >= np.finfo(a.dtype).smallest_normal)


def is_subnormal(a: Array) -> Array:
    """testp.subnormal."""
    return (a != 0) & (np.abs(a) < np.finfo(a.dtype).smallest_normal)


TESTS = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda a: ~np.isnan(a),
    "notanumber": np.isnan,
    "normal": is_normal,
    "subnormal": is_subnormal,
}

EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,
    "mad": lambda a, b, c: a * b + c,
}
NEAREST: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "fma": fma,
    "mad": fma,
    "div": np.divide,
    "sqrt": np.sqrt,
    "rcp": lambda a: np.divide(a.dtype.type(1), a),
}
APPROXIMATE: dict[str, Callable[..., Array]] = {  # in float64, then rounded: one of the results that PTX allows
    "div": np.divide,
    "sqrt": np.sqrt,
    "rcp": np.reciprocal,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "sin": np.sin,
    "cos": np.cos,
    "lg2": np.log2,
    "ex2": np.exp2,
    "tanh": np.tanh,
}


def approximate(name: str) -> Callable[..., Array]:
    """An approximate instruction, computed wide and rounded once."""
    compute = APPROXIMATE[name]
    return lambda *operands: compute(*(each.astype(np.float64) for each in operands)).astype(operands[0].dtype)
