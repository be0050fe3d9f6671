"""Laws of type binding: inputs first, placeholders agree, numbers take no part."""

import numpy as np
import pytest

from fusec.arguments.scalars import encode
from fusec.arguments.signature import Parameter, Signature
from fusec.base.dtypes import FLOAT32, FLOAT64, INT32
from fusec.errors import FusecTypeError, FusecValueError

SIGNATURE = Signature(
    "axpy",
    (Parameter("a", "T", None), Parameter("x", "T", None), Parameter("k", "int32", INT32)),
    (Parameter("z", "T", None), Parameter("w", "U", None)),
)


def test_outputs_bind_what_inputs_leave_open():
    bound = SIGNATURE.bind([None, None, None, FLOAT32, FLOAT64])
    assert bound == {"a": FLOAT32, "x": FLOAT32, "k": INT32, "z": FLOAT32, "w": FLOAT64}


def test_a_mismatch_names_parameter_dtypes_and_reason():
    with pytest.raises(FusecTypeError, match=r"Type is mismatched. x float64 float32 T") as caught:
        SIGNATURE.bind([FLOAT32, FLOAT64, None, None, FLOAT32])
    assert "'a' has bound T to float32" in str(caught.value)
    with pytest.raises(TypeError, match=r"Type is mismatched\. k float64 int32"):
        SIGNATURE.bind([FLOAT32, FLOAT32, FLOAT64, None, FLOAT32])


def test_an_output_that_the_inputs_do_not_fit_is_what_is_wrong():
    with pytest.raises(FusecTypeError, match=r"Type is mismatched. z float64 float32 T") as caught:
        SIGNATURE.bind([None, FLOAT32, None, FLOAT64, FLOAT32])
    cure = "hint: pass an array of float32, or convert the inputs first, e.g. x.astype('float64')"
    assert str(caught.value).endswith(cure)
    assert "'x' has bound T to float32" in str(caught.value)


def test_outputs_that_disagree_are_not_cured_by_a_conversion():
    twice = Signature("twice", (), (Parameter("y", "T", None), Parameter("z", "T", None)))
    with pytest.raises(FusecTypeError, match=r"Type is mismatched. z float64 float32 T") as caught:
        twice.bind([FLOAT32, FLOAT64])
    assert str(caught.value).endswith("hint: pass an array of float32")


def test_a_placeholder_only_in_outputs_needs_the_output():
    with pytest.raises(FusecTypeError, match="type U of parameter 'w'") as caught:
        SIGNATURE.bind([FLOAT32, FLOAT32, None, None, None])
    assert "pass the output array" in str(caught.value)


def test_types_by_name():
    assert SIGNATURE.bind_names({"T": "float32", "U": np.float64})["w"] == FLOAT64
    assert SIGNATURE.bind_names({"T": np.dtype("f4"), "U": "int32"})["x"] == FLOAT32
    for wrong in ({"T": "float32"}, {"T": "float32", "U": "floot"}, {"T": "float32", "U": "int32", "V": "int8"}):
        with pytest.raises(FusecTypeError):
            SIGNATURE.bind_names(wrong)


@pytest.mark.parametrize("name", ["int8", "uint8", "int32", "uint64", "float16", "float32", "float64", "bool"])
@pytest.mark.parametrize("value", [0, 1, 100, True])
def test_a_number_is_stored_as_numpy_would(name, value):
    from fusec.base.dtypes import BY_NAME

    (slot,) = encode(value, BY_NAME[name], "p", "k")
    raw = slot.to_bytes(8, "little", signed=True)
    assert raw.startswith(np.array(value).astype(name).tobytes())


def test_complex128_takes_two_slots():
    from fusec.base.dtypes import COMPLEX64, COMPLEX128

    assert np.array(encode(1 + 2j, COMPLEX128, "p", "k"), np.int64).view(np.complex128)[0] == 1 + 2j
    assert np.array(encode(1 + 2j, COMPLEX64, "p", "k"), np.int64).view(np.complex64)[0] == 1 + 2j


@pytest.mark.parametrize(("value", "name"), [(128, "int8"), (-1, "uint32"), (1 << 63, "int64"), (2.0**40, "int32")])
def test_a_number_out_of_range_is_refused(value, name):
    from fusec.base.dtypes import BY_NAME

    with pytest.raises(FusecValueError, match="does not fit"):
        encode(value, BY_NAME[name], "p", "k")


@pytest.mark.parametrize(
    ("value", "name"),
    [(2.5, "int32"), (1j, "float32"), (np.nan, "int64"), (np.inf, "uint8"), (np.str_("a"), "float32")],
)
def test_a_number_of_another_kind_is_refused(value, name):
    from fusec.base.dtypes import BY_NAME

    with pytest.raises(FusecTypeError, match="is not a value of"):
        encode(value, BY_NAME[name], "p", "k")
