"""Random reductions of functions give what functools.reduce gives of the same functions, run by Python."""

import functools

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fusec

INTEGERS = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")
COMBINED = ("{a} + {b}", "{a} * {b}", "{a} & {b}", "{a} | {b}", "{a} ^ {b}", "min({a}, {b})", "max({a}, {b})")
LEAVES = st.sampled_from(("x", "y", "1", "3", "x", "y"))


def grown(inner):
    """Expressions over x and y: arithmetic, bits, comparisons, choices."""
    pair = st.tuples(inner, inner)
    binary = st.tuples(inner, st.sampled_from(("+", "-", "*", "&", "|", "^")), inner).map(lambda t: f"({' '.join(t)})")
    chosen = st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if x > y else {t[1]} + 0 * {t[2]})")
    return binary | chosen | pair.map(lambda t: f"np.maximum(x, {t[0]} ^ {t[1]})")


EXPRESSIONS = st.recursive(LEAVES, grown, max_leaves=5)


@st.composite
def reductions(draw):
    """The functions of a reduction, as texts: what is mapped, part by part, and how each part combines."""
    parts = draw(st.lists(st.tuples(EXPRESSIONS, st.sampled_from(COMBINED)), min_size=1, max_size=4))
    mapped = ", ".join(f"x * 0 + {expression}" for expression, _ in parts)
    combined = ", ".join(op.format(a=f"a[{at}]", b=f"b[{at}]") for at, (_, op) in enumerate(parts))
    return f"lambda x, y: ({mapped},)", f"lambda a, b: ({combined},)"


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), reductions(), st.sampled_from(INTEGERS), st.sampled_from(((7,), (3, 5), (2, 70), (130, 2))))
def test_integers_are_those_of_functools(data, functions, dtype, shape):
    mapping, combining = functions
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x, y = (np.frombuffer(rng.bytes(8 * int(np.prod(shape))), dtype)[: np.prod(shape)].reshape(shape) for _ in "xy")
    axis = data.draw(st.sampled_from((0, -1)))
    found = fusec.reduction(map=mapping, combine=combining)(x, y, axis=axis)
    names = {"np": np}
    mapped, combined = eval(mapping, names), eval(combining, names)
    rows = zip(*(np.moveaxis(each, axis, -1).reshape(-1, shape[axis]) for each in (x, y)), strict=True)
    with np.errstate(all="ignore"):
        wanted = [functools.reduce(combined, map(mapped, *row)) for row in rows]
    for part, values in zip(found, zip(*wanted, strict=True), strict=True):
        assert part.dtype == np.result_type(*values)
        assert part.reshape(-1).tolist() == [int(each) for each in values]


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 99), st.sampled_from(("float32", "float64")), st.sampled_from((1, 200, 9000)))
def test_sums_of_floats_stay_within_their_bound(seed, dtype, count):
    x, y = np.random.default_rng(seed).normal(size=(2, count)).astype(dtype)
    found = fusec.reduction(map=lambda x, y: (x * y, abs(x * y)), combine=lambda a, b: (a[0] + b[0], a[1] + b[1]))(x, y)
    exact = np.multiply(x, y, dtype=dtype).astype("longdouble").sum()
    bound = (64 + 2 * 7 + 2) * np.finfo(dtype).eps * float(found[1])  # additions one after the other, twice over lanes
    assert abs(float(found[0]) - float(exact)) <= bound
