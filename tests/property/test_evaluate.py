"""evaluate(text) is what NumPy computes for the text: the same dtypes and, where NumPy is exact, the same bits."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import fusec

SHAPES = [(3, 5), (5,), (3, 1), ()]
DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "f4", "f8", "c8", "c16"]
ARITHMETIC = ["+", "-", "*", "/", "//", "%"]
BITS = ["&", "|", "^", "<<", ">>"]
TESTS = ["<", "<=", "==", "!=", ">", ">="]
UNARY = [
    "-{}", "+{}", "~{}", "abs({})", "floor({})", "ceil({})", "trunc({})", "sqrt({})", "isnan({})", "sign({})",
    "isfinite({})", "({}).real", "({}).imag", "conj(1.0*({}))", "square({})", "logical_not({})", "signbit({})",
]  # fmt: skip
BINARY = ["minimum({}, {})", "maximum({}, {})", "fmod({}, {})", "copysign({}, {})", "logical_xor({}, {})"]
TOTALS = ["min({})", "max({}, axis=1)", "any({})", "all({}, axis=1)", "sum(({}) > 1, axis=1)", "max({}, axis=None)"]
NAMES = {
    **{name: getattr(np, name) for name in (
        "floor", "ceil", "trunc", "sqrt", "isnan", "sign", "isfinite", "conj", "square", "logical_not", "signbit",
        "minimum", "maximum", "fmod", "copysign", "logical_xor", "where", "any", "all", "sum", "abs", "min", "max",
    )}
}  # fmt: skip


def values(draw, dtype, shape):
    """Small numbers, and now and then what is hard."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if kind in "iu":
        edges = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
        found = rng.integers(max(edges[0], -9), 9, shape).astype(dtype)
        return np.where(rng.random(shape) < 0.1, rng.choice(edges), found)
    found = rng.integers(-40, 40, shape) / 8
    found = np.where(rng.random(shape) < 0.1, rng.choice([np.nan, np.inf, -0.0, 1e30]), found)
    return (found + 1j * rng.integers(-9, 9, shape) if kind == "c" else found).astype(dtype)


@st.composite
def trees(draw, depth, names):
    """The text of an expression with an array in it; the operands of operators that mix two have one too."""
    if depth == 0:
        return draw(st.sampled_from(names))
    kind = draw(st.sampled_from("aaaabbttu2w?l"))
    inner = trees(depth - 1, names)
    match kind:
        case "a":
            return f"({draw(inner)} {draw(st.sampled_from(ARITHMETIC))} {draw(inner)})"
        case "b":
            return f"({draw(inner)} {draw(st.sampled_from(BITS))} {draw(inner)})"
        case "t":
            return f"({draw(inner)} {draw(st.sampled_from(TESTS))} {draw(inner)})"
        case "u":
            return draw(st.sampled_from(UNARY)).format(draw(inner))
        case "2":
            return draw(st.sampled_from(BINARY)).format(draw(inner), draw(inner))
        case "w":
            return f"where({draw(inner)}, {draw(inner)}, {draw(st.sampled_from(['0', '1.5', draw(inner)]))})"
        case "?":
            return draw(st.sampled_from(TOTALS)).format(draw(inner))
    number = draw(st.sampled_from(["2", "3", "7", "0", "0.5", "2.0", "1j", "True", "100", "k", "n", "s"]))
    op = draw(st.sampled_from([*ARITHMETIC, *TESTS]))
    return f"({draw(inner)} {op} {number})" if draw(st.booleans()) else f"({number} {op} {draw(inner)})"


def by_numpy(text, names):
    """The value, or None where NumPy has none."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(eval(text, {"__builtins__": {}, **NAMES}, names))
    except (TypeError, ValueError, OverflowError, AttributeError):
        return None


def is_close_in_complex(found, wanted):
    """Complex products and quotients are NumPy's but for the last bits, and for what infinities and nan make of it."""
    parts = [np.stack([each.real, each.imag]).astype("c16").real for each in (found, wanted)]
    usual = np.isfinite(parts[0]) & np.isfinite(parts[1])
    scale = np.abs(wanted).astype("f8") + 1e-30
    return np.all(np.abs(parts[0] - parts[1])[usual] <= (1e-5 * np.broadcast_to(scale, usual.shape))[usual])


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_text_means_what_numpy_computes(data):
    names = {}
    for name in "abc":
        names[name] = values(data.draw, data.draw(st.sampled_from(DTYPES)), data.draw(st.sampled_from(SHAPES)))
    text = data.draw(trees(data.draw(st.integers(1, 3)), list(names)))
    names |= {"k": 2.5, "n": 3, "s": data.draw(st.sampled_from([np.float32(1.5), np.int16(-3), np.uint8(200)]))}
    wanted = by_numpy(text, names)
    if wanted is None:
        return
    refused = fusec.validate(text, names, {})
    if refused is not None:
        assert "complex numbers have no order" in str(refused)  # NumPy compares their parts
        return
    found = fusec.evaluate(text, names, {})
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if "1j" in text or any(np.iscomplexobj(each) for each in names.values()):
        return  # rounding: the law above is about types, the one below about values
    assert np.array_equal(found, wanted, equal_nan=wanted.dtype.kind == "f")


@given(st.data())
@settings(max_examples=8, deadline=None)
def test_complex_numbers_are_numpys_but_for_rounding(data):
    names = {name: np.round(values(data.draw, "c16", (3, 5)).real) + 1j for name in "ab"}
    names = {name: np.where(np.isfinite(each), each, 2 - 1j) for name, each in names.items()}
    text = data.draw(
        st.sampled_from(["a*b + 2", "a/b - b", "conj(a)*b", "(a - 1j*b).imag", "abs(a)", "(a == b) | (a != 2)"])
    )
    found, wanted = fusec.evaluate(text, names, {}), by_numpy(text, names)
    assert found.dtype == wanted.dtype
    assert is_close_in_complex(np.asarray(found), wanted)


@given(
    st.integers(0, 12), st.sampled_from(["i4", "i8", "u1", "u8"]), st.sampled_from(["none", "moderate", "aggressive"])
)
@settings(max_examples=8, deadline=None)
def test_powers_of_integers_are_exact_however_they_are_computed(exponent, dtype, optimization):
    a = np.arange(40).astype(dtype)
    found = fusec.evaluate(f"a**{exponent}", optimization=optimization)
    assert np.array_equal(found, a**exponent)
    assert found.dtype == a.dtype
