"""evaluate(text) is what NumPy computes for the text: the same dtypes and, where NumPy is exact, the same bits."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusec
from tests.support.expression_texts import arguments, by_numpy, expression, values


def is_close_in_complex(found, wanted):
    """Complex products and quotients are NumPy's but for the last bits, and for what infinities and nan make of it."""
    parts = [np.stack([each.real, each.imag]).astype("c16").real for each in (found, wanted)]
    usual = np.isfinite(parts[0]) & np.isfinite(parts[1])
    scale = np.abs(wanted).astype("f8") + 1e-30
    return np.all(np.abs(parts[0] - parts[1])[usual] <= (1e-5 * np.broadcast_to(scale, usual.shape))[usual])


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_text_means_what_numpy_computes(data):
    random = Random(data.draw(st.integers(0, 2**32)))
    names = arguments(random)
    text = expression(random, data.draw(st.integers(1, 3)), list("abc"))
    wanted = by_numpy(text, names)
    if wanted is None:
        return
    refused = fusec.validate(text, names, {})
    if refused is not None:
        # NumPy compares the parts of the ones, and gives a constant for the others
        assert "complex numbers have no order" in str(refused) or "a bool is 0 or 1" in str(refused)
        return
    found = fusec.evaluate(text, names, {})
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if "1j" in text or any(np.iscomplexobj(each) for each in names.values()):
        return  # rounding: the law above is about types, the one below about values
    assert np.array_equal(found, wanted, equal_nan=wanted.dtype.kind == "f")


@given(st.data())
@settings(max_examples=8, deadline=None)
def test_complex_numbers_are_numpys_but_for_rounding(data):
    random = Random(data.draw(st.integers(0, 2**32)))
    names = {name: np.round(values(random, "c16", (3, 5)).real) + 1j for name in "ab"}
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


@pytest.mark.parametrize("text", ["sqrt(a) * (a + 0.5)", "max(sqrt(a), axis=None) - sqrt(a)", "min(sqrt(a)) + a * 1.5"])
def test_float16_is_rounded_once_and_in_totals(text):
    names = {"a": np.array([2, 5, 3, 7], "int8")}
    found, wanted = np.asarray(fusec.evaluate(text, names, {})), by_numpy(text, names)
    assert found.dtype == wanted.dtype
    assert np.array_equal(found, wanted)
