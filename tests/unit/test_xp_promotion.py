"""Promotion of lazy arrays: NumPy's, and no more than the standard's where a block asks for that."""

import operator
import threading
from itertools import product

import numpy as np
import pytest

import fusec
import fusec.xp as xp

INTEGERS, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
FLOATS, COMPLEX = ("float32", "float64"), ("complex64", "complex128")
DTYPES = ("bool", *INTEGERS, *UNSIGNED, *FLOATS, *COMPLEX)
KINDS = (("bool",), INTEGERS + UNSIGNED, FLOATS + COMPLEX)


def is_defined(left: str, right: str) -> bool:
    """Whether the standard says what two dtypes promote to."""
    mixed = {left, right} & {"uint64"} and {left, right} & {*INTEGERS}
    return not mixed and any(left in kind and right in kind for kind in KINDS)


def example(dtype: str) -> xp.Array:
    return xp.asarray([1, 0], dtype=dtype)


@pytest.mark.parametrize("left", DTYPES)
def test_the_standards_promotion_is_numpys_where_it_is_defined_and_refused_elsewhere(left):
    for right in DTYPES:
        calls = (
            lambda: example(left) == example(right),  # noqa: B023 - called at once
            lambda: xp.where(example("bool"), example(left), example(right)),  # noqa: B023
            lambda: xp.concat([example(left), example(right)]),  # noqa: B023
            lambda: xp.equal(example(left), example(right)),  # noqa: B023
            lambda: xp.result_type(example(left), right),  # noqa: B023
        )
        for call in calls:
            usual = call()
            with xp.flags(promotion="standard"):
                if is_defined(left, right):
                    assert getattr(call(), "dtype", call()) == getattr(usual, "dtype", usual)
                    continue
                with pytest.raises(fusec.FusecTypeError, match="have no common dtype in the standard") as caught:
                    call()
                assert caught.value.code == "F771"
                assert left in str(caught.value)
                assert right in str(caught.value)


NUMBERS = {bool: ("bool",), int: INTEGERS + UNSIGNED + FLOATS + COMPLEX, float: FLOATS + COMPLEX,
           complex: FLOATS + COMPLEX}  # fmt: skip


@pytest.mark.parametrize("number", [True, 2, 2.5, 2j])
def test_numbers_meet_arrays_of_their_kind_or_a_higher_one(number):
    for dtype, swapped in product(DTYPES, (False, True)):
        x = example(dtype)
        operands = (number, x) if swapped else (x, number)
        with xp.flags(promotion="standard"):
            for function in (operator.eq, xp.equal):
                if dtype in NUMBERS[type(number)]:
                    assert function(*operands).dtype == bool
                else:
                    with pytest.raises(fusec.FusecTypeError):
                        function(*operands)


IN_PLACE = (operator.iadd, operator.isub, operator.imul)


def test_operators_in_place_are_checked_and_change_nothing_if_they_are_refused():
    for operate in IN_PLACE:
        x = xp.asarray([1.0, 2.0])
        with xp.flags(promotion="standard"), pytest.raises(fusec.FusecTypeError):
            operate(x, xp.asarray([1, 2]))
        assert x.tolist() == [1.0, 2.0]


def test_the_usual_promotion_comes_back_behind_a_block_also_after_an_error():
    with pytest.raises(ZeroDivisionError), xp.flags(promotion="standard"):
        raise ZeroDivisionError
    assert (example("int8") + example("float64")).dtype == np.float64
    with xp.flags(promotion="standard"), xp.flags(promotion="numpy"):
        assert (example("int8") + example("float64")).dtype == np.float64
    with xp.flags(promotion="standard"), xp.flags(promotion="standard"):
        pass
    assert xp.add(example("bool"), 2.5).dtype == np.float64


def test_a_block_concerns_its_own_thread_alone():
    found = []
    with xp.flags(promotion="standard"):
        other = threading.Thread(target=lambda: found.append((example("int8") + example("float64")).dtype))
        other.start()
        other.join()
    assert found == [np.float64]


def test_numbers_alone_are_refused_by_the_standard():
    assert float(xp.add(1, 2.5)) == 3.5
    with xp.flags(promotion="standard"), pytest.raises(fusec.FusecTypeError, match="needs an array") as caught:
        xp.add(1, 2.5)
    assert caught.value.code == "F773"


def test_an_unknown_promotion_is_refused():
    with pytest.raises(fusec.FusecValueError, match="promotion='strict'") as caught, xp.flags(promotion="strict"):
        pass
    assert "'standard'" in caught.value.hint
    with pytest.raises(TypeError, match="keyword"), xp.flags(mode="standard"):
        pass


# --- dtypes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_can_cast_and_isdtype_are_numpys_of_arrays_dtypes_and_their_classes(dtype):
    for other in DTYPES:
        wanted = np.can_cast(np.dtype(dtype), np.dtype(other))
        assert xp.can_cast(getattr(xp, dtype), other) is xp.can_cast(example(dtype), other) is bool(wanted)
    kinds = "bool|signed integer|unsigned integer|integral|real floating|complex floating|numeric".split("|")
    for kind in kinds:
        assert xp.isdtype(example(dtype).dtype, kind) is bool(np.isdtype(np.dtype(dtype), kind))
        assert xp.isdtype(np.dtype(dtype).type, (kind, xp.bool)) is bool(np.isdtype(np.dtype(dtype), (kind, np.bool)))


@pytest.mark.parametrize("dtype", ["float16", *FLOATS, *COMPLEX])
def test_limits_of_floats_are_python_numbers(dtype):
    for given in (getattr(xp, dtype), np.dtype(dtype).type, xp.zeros(2, dtype=dtype)):
        found, wanted = xp.finfo(given), np.finfo(dtype)
        for name in ("eps", "max", "min", "smallest_normal"):
            assert type(getattr(found, name)) is float
            assert getattr(found, name) == getattr(wanted, name)
        assert (type(found.bits), found.bits, found.dtype) == (int, wanted.bits, wanted.dtype)
        assert found.tiny == wanted.tiny


@pytest.mark.parametrize("dtype", INTEGERS + UNSIGNED)
def test_limits_of_integers_are_python_numbers(dtype):
    for given in (getattr(xp, dtype), xp.zeros(2, dtype=dtype)):
        found, wanted = xp.iinfo(given), np.iinfo(dtype)
        assert all(type(getattr(found, name)) is int for name in ("bits", "max", "min"))
        assert (found.bits, found.max, found.min, found.dtype) == (wanted.bits, wanted.max, wanted.min, wanted.dtype)


@pytest.mark.parametrize(
    "call",
    [lambda: xp.finfo(xp.int64), lambda: xp.iinfo(xp.float32), lambda: xp.finfo(1.5), lambda: xp.finfo("nonsense"),
     lambda: xp.astype(xp.zeros(2), None), lambda: xp.isdtype(3, "bool"), lambda: xp.can_cast(None, xp.int8)],
)  # fmt: skip
def test_what_is_no_dtype_of_the_kind_is_refused(call):
    with pytest.raises(fusec.FusecTypeError, match=r"is not an? ") as caught:
        call()
    assert caught.value.code == "F775"
    assert caught.value.hint


@pytest.mark.parametrize("given", [np.array(["a"]), np.array([None]), np.zeros(2, np.longdouble), ["a"], [[1], [1, 2]]])
def test_arrays_of_other_things_than_numbers_are_refused(given):
    with pytest.raises((TypeError, ValueError)):
        xp.asarray(given)


def test_arrays_of_the_other_byte_order_are_converted():
    found = xp.asarray(np.arange(3, dtype=np.dtype("int32").newbyteorder()))
    assert found.dtype.isnative
    assert found.tolist() == [0, 1, 2]


def test_arrays_without_axes_stay_arrays():
    x = xp.asarray([1.0, 2.0])
    for found in (x[0], xp.sum(x), x @ x, xp.max(x), x.mean(), xp.asarray(1.0) + 1, xp.linalg.det(xp.eye(2)),
                  xp.median(x), xp.take(x, 0), xp.where(True, 1.0, 2.0), xp.exp(0.5)):  # fmt: skip
        assert isinstance(found, xp.Array)
        assert found.shape == ()
