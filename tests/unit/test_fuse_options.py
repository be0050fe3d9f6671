"""Options of ufuncs and reductions in fused functions: NumPy's dtypes and values, or its errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec

F = np.array([[-1.5, 2.0, 0.5], [3.0, -0.0, 1.0]])
I8, U4, B = F.astype("int8"), np.abs(F).astype("uint32"), F > 0
Z = F + 1j
CASTINGS = ["no", "equiv", "safe", "same_kind", "unsafe"]
REDUCED: dict[str, Any] = {
    "a maximum in another dtype": (lambda x: np.maximum.reduce(x, dtype="int32"), F),
    "a minimum with a start": (lambda x: np.minimum.reduce(x, 1, "float32", initial=0), I8),
    "bits of floats": (lambda x: np.bitwise_xor.reduce(x, dtype="int32"), F),
    "truth as integers": (lambda x: np.logical_or.reduce(x, dtype="int8"), I8),
    "truth as a narrow float": (lambda x: np.logical_xor.reduce(x, dtype="float16"), F),
    "truth as truth": (lambda x: np.logical_and.reduce(x, dtype=bool), F),
    "a complex start of integers": (lambda x: np.multiply.reduce(x, initial=1j), I8),
    "nan as the start of integers": (lambda x: np.prod(x, dtype="int32", initial=np.nan), U4),
    "the root in integers": (lambda x: np.std(x, out=np.zeros((), "int64")), I8),
    "mean of numbers in integers": (lambda x: np.nanmean(x, dtype="uint32"), F),
    "running totals along all axes": (lambda x: np.add.accumulate(x, axis=None), F),
    "a range in an array of another shape": (lambda x: np.ptp(x, out=np.zeros(3)), F),
    "a range of bools in floats": (lambda x: np.ptp(x, 0, out=np.zeros(3)), B),
    "a number among limits": (lambda x: np.clip(-1, None, x), I8),
    "a product with a number": (lambda x: np.tensordot(2j, x, 0), F),
    "a number stored": (lambda x: (lambda t: (np.copyto(t, 2, casting="no"), t)[1])(np.zeros(3)) + x, F),
    "a bool stored": (lambda x: (lambda t: (np.copyto(t, True, casting="no"), t)[1])(np.zeros(3)) + x, F),
}


def outcome(function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as problem:
        return problem


def compare(function: Any, *args: Any) -> None:
    found, wanted = outcome(fusec.fuse(function), *args), outcome(function, *args)
    if isinstance(wanted, Exception):
        kind = TypeError if isinstance(wanted, TypeError) else type(wanted)
        assert isinstance(found, kind), (found, wanted)
    else:
        np.testing.assert_array_equal(found, wanted, strict=True)


@pytest.mark.parametrize(("function", "x"), REDUCED.values(), ids=REDUCED)
def test_options_of_reductions_are_numpys(function: Any, x: Any) -> None:
    compare(function, x)


@pytest.mark.filterwarnings("ignore:Casting complex values:numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("casting", CASTINGS)
@pytest.mark.parametrize("dtype", [None, "float64", "int16", "complex64"])
def test_inputs_are_cast_by_the_rule_that_is_given(casting: Any, dtype: Any) -> None:
    for x in (F, F.astype("float32"), I8, U4, B, Z):
        for y in (F, I8, Z, 2, 2.0, True, np.float32(2)):
            compare(lambda x, y: np.add(x, y, casting=casting, dtype=dtype), x, y)
            if not isinstance(y, np.ndarray):
                compare(lambda x: np.multiply(x, y, casting=casting, dtype=dtype), x)  # noqa: B023


@pytest.mark.parametrize("dtype", ["i8", "u2", "?"])
@pytest.mark.parametrize("given", ["f8", "u1"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_means_of_integer_dtypes_add_up_integers(given, dtype, axis, monkeypatch):
    monkeypatch.setenv("FUSEC_TIERS", "0")  # compiled, not interpreted

    def means(x, mask):
        return np.mean(x, axis, dtype), x.mean(axis, dtype, where=mask)

    x = (np.arange(60).reshape(12, 5) * 1.7).astype(given)
    mask = np.arange(60).reshape(12, 5) % 3 < 2
    for one, wanted in zip(fusec.fuse(means)(x, mask), means(x, mask), strict=True):
        assert one.dtype == wanted.dtype
        np.testing.assert_array_equal(one, wanted)


def test_the_deviation_of_complex_numbers_is_not_taken_of_their_real_parts():
    with pytest.raises(fusec.FusecTypeError, match="F281"):
        fusec.fuse(lambda x: np.std(x, dtype=np.float32))(np.array([1 + 1j, 2, 3j]))


@pytest.mark.parametrize(("dtype", "given"), [("i4", "f8"), ("i4", "i8"), ("f4", "f8"), ("i8", "i4"), ("f8", "f4")])
def test_putmask_casts_arrays_by_the_rule_of_numpy(dtype, given):
    def put(x, values):
        np.putmask(x, x > 1, values)
        return x

    values = np.full(4, 1.5).astype(given)
    if np.can_cast(given, dtype):
        np.testing.assert_array_equal(
            fusec.fuse(put)(np.arange(4, dtype=dtype), values), put(np.arange(4, dtype=dtype), values)
        )
    else:
        with pytest.raises(TypeError, match="according to the rule 'safe'"):
            fusec.fuse(put)(np.arange(4, dtype=dtype), values)
