"""Values with 64 digits from the C library's long doubles, where they are that long: fast, and good to 1/1000 ulp."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

AVAILABLE = bool(np.finfo(np.longdouble).nmant >= 63)
Function = Callable[..., np.ndarray]
_PI = np.longdouble("3.14159265358979323846264338327950288")


def _sine_of_half_turns(x: np.ndarray) -> np.ndarray:
    """sin(pi x): the nearest whole number is taken away exactly."""
    whole = np.rint(x)
    sign = np.where(np.fmod(whole, 2) == 0, 1, -1)
    return np.asarray(sign * np.sin(_PI * (x - whole)))


NUMPY: dict[str, Function] = {
    **{name: getattr(np, name) for name in "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh".split()},
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "exp10": lambda x: np.power(np.longdouble(10), x),
    "sinpi": lambda x: _sine_of_half_turns(x),
    "cospi": lambda x: _sine_of_half_turns(0.5 - np.abs(x - 2 * np.rint(x / 2))),
    "sinc": lambda x: np.where(x == 0, 1, _sine_of_half_turns(x) / (_PI * x)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.where(x > 0, x, 0) + np.log1p(np.exp(-np.abs(x))),
    "pow": np.power,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "logaddexp": np.logaddexp,
    "logaddexp2": np.logaddexp2,
}


def function_of(op: str) -> Function | None:
    """The function of long doubles, None if there is none good enough."""
    return NUMPY.get(op) if AVAILABLE else None
