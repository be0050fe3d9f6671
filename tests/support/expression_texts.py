"""Random texts for evaluate, arrays for their names, and what NumPy makes of them."""

from __future__ import annotations

from random import Random

import numpy as np

SHAPES = [(3, 5), (5,), (3, 1), ()]
DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "f4", "f8", "c8", "c16"]
ARITHMETIC = ["+", "-", "*", "/", "//", "%"]
BITS = ["&", "|", "^", "<<", ">>"]
TESTS = ["<", "<=", "==", "!=", ">", ">="]
UNARY = [
    "-{}", "+{}", "~{}", "abs({})", "floor({})", "ceil({})", "trunc({})", "sqrt({})", "isnan({})", "sign({})",
    "isfinite({})", "({}).real", "({}).imag", "conj(1.0*({}))", "square({})", "logical_not({})", "signbit(fmin({}, 4))",
]  # fmt: skip
BINARY = ["minimum({}, {})", "maximum({}, {})", "fmod({}, {})", "copysign({}, fmin({}, 4))", "logical_xor({}, {})"]
TOTALS = ["min({})", "max({}, axis=1)", "any({})", "all({}, axis=1)", "sum(({}) > 1, axis=1)", "max({}, axis=None)"]
NAMES = {
    **{name: getattr(np, name) for name in (
        "floor", "ceil", "trunc", "sqrt", "isnan", "sign", "isfinite", "conj", "square", "logical_not", "signbit",
        "minimum", "maximum", "fmin", "fmod", "copysign", "logical_xor", "where", "any", "all", "sum", "abs", "min",
        "max",
    )}
}  # fmt: skip


def values(random: Random, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Small numbers, and now and then what is hard."""
    rng = np.random.default_rng(random.getrandbits(32))
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if kind in "iu":
        edges = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
        found = rng.integers(max(edges[0], -9), 9, shape).astype(dtype)
        return np.where(rng.random(shape) < 0.1, rng.choice(edges), found)
    found = rng.integers(-40, 40, shape) / 8
    found = np.where(rng.random(shape) < 0.1, rng.choice([np.nan, np.inf, -0.0, 1e30]), found)
    with np.errstate(over="ignore"):
        return (found + 1j * rng.integers(-9, 9, shape) if kind == "c" else found).astype(dtype)


def expression(random: Random, depth: int, names: list[str]) -> str:
    """An expression with an array in it; the operands of operators that mix two have one too."""
    if depth == 0:
        return random.choice(names)

    def inner() -> str:
        return expression(random, depth - 1, names)

    match random.choice("aaaabbttu2w?l"):
        case "a":
            return f"({inner()} {random.choice(ARITHMETIC)} {inner()})"
        case "b":
            return f"({inner()} {random.choice(BITS)} {inner()})"
        case "t":
            return f"({inner()} {random.choice(TESTS)} {inner()})"
        case "u":
            return random.choice(UNARY).format(inner())
        case "2":
            return random.choice(BINARY).format(inner(), inner())
        case "w":
            return f"where({inner()}, {inner()}, {random.choice(['0', '1.5', inner()])})"
        case "?":
            return random.choice(TOTALS).format(inner())
    number = random.choice(["2", "3", "7", "0", "0.5", "2.0", "1j", "True", "100", "k", "n", "s"])
    op = random.choice([*ARITHMETIC, *TESTS])
    return f"({inner()} {op} {number})" if random.random() < 0.5 else f"({number} {op} {inner()})"


def arguments(random: Random) -> dict[str, object]:
    """Arrays a, b and c; numbers k, n and s."""
    names: dict[str, object] = {name: values(random, random.choice(DTYPES), random.choice(SHAPES)) for name in "abc"}
    return names | {"k": 2.5, "n": 3, "s": random.choice([np.float32(1.5), np.int16(-3), np.uint8(200)])}


def by_numpy(text, names):
    """The value, or None where NumPy has none. Its types are NumPy's, but float16 is held in float32.

    So evaluate computes: it rounds once, for the result and for a total; NumPy rounds after every operation.
    """
    totals: list[np.dtype] = []

    def noting(total):
        def call(*args, **kwargs):
            found = total(*args, **kwargs)
            totals.append(found.dtype)
            return found

        return call

    def rounding(total):
        def call(*args, **kwargs):
            found = total(*args, **kwargs)
            return found.astype(totals.pop(0)).astype(found.dtype)

        return call

    try:
        with np.errstate(all="ignore"):
            typed = {**NAMES, "min": noting(np.min), "max": noting(np.max)}
            kind = np.asarray(eval(text, {"__builtins__": {}, **typed}, names)).dtype
            wide = {name: _widened(each) if isinstance(each, np.ufunc) else each for name, each in NAMES.items()}
            wide |= {"min": rounding(np.min), "max": rounding(np.max)}
            return np.asarray(eval(text, {"__builtins__": {}, **wide}, names)).astype(kind)
    except (TypeError, ValueError, OverflowError, AttributeError):
        return None


def _widened(function):
    """The function, in float32 where NumPy would compute in float16."""

    def call(*args):
        found = function(*args)
        return function(*args, dtype=np.float32) if found.dtype == np.float16 else found

    return call
