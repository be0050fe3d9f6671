"""Random reductions of functions give what functools.reduce gives of the same functions, run by Python."""

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fusec
from tests.support.reduction_texts import functions, in_python

INTEGERS = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32), st.sampled_from(INTEGERS), st.sampled_from(((7,), (3, 5), (2, 70), (130, 2))))
def test_integers_are_those_of_functools(seed, dtype, shape):
    random = Random(seed)
    mapping, combining = functions(random)
    rng = np.random.default_rng(seed)
    x, y = (np.frombuffer(rng.bytes(8 * int(np.prod(shape))), dtype)[: np.prod(shape)].reshape(shape) for _ in "xy")
    axis = random.choice((0, -1))
    total = fusec.reduction(map=mapping, combine=combining)
    try:
        wanted = in_python(mapping, combining, (x, y), axis)
    except OverflowError:
        with pytest.raises(OverflowError, match="F179"):
            total(x, y, axis=axis)
        return
    found = total(x, y, axis=axis)
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


@pytest.mark.parametrize(
    "mapped",
    ["(3 - (y if x > y else 1)) ^ 1", "((1 if x > y else 3) - 3) ^ y", "(1 - 3) ^ y", "(1 - 3) if x > y else y"],
)
def test_choices_have_one_type(mapped):
    mapping, combining = f"lambda x, y: (x * 0 + ({mapped}),)", "lambda a, b: (a[0] | b[0],)"
    arrays = (np.array([5, 6, 1], "uint8"), np.array([9, 2, 4], "uint8"))
    total = fusec.reduction(map=mapping, combine=combining)
    if "(1 - 3)" in mapped or "- 3) ^ y" in mapped:
        with pytest.raises(OverflowError):
            in_python(mapping, combining, arrays, 0)
        with pytest.raises(OverflowError, match="F179"):
            total(*arrays)
    else:
        assert [total(*arrays)] == in_python(mapping, combining, arrays, 0)
