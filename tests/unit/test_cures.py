"""What errors say to do: codes and hints on the exception, names that are alike, replacements for others."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import fusec
from fusec import FusecError
from fusec.base.diagnostics import did_you_mean
from fusec.base.dtypes import BY_NAME

openly = {"scale": 3, "open": open, "scan": fusec.cumsum}


def test_an_exception_has_its_code_and_its_hint():
    with pytest.raises(FusecError) as caught:
        fusec.elementwise("def f(x): return scal * x", names=openly)(np.ones(3))
    assert caught.value.code == "F135"
    assert caught.value.hint == "did you mean 'scale'?"
    assert caught.value.hint in str(caught.value)


def test_an_axis_error_is_numpys_and_pickles():
    with pytest.raises(np.exceptions.AxisError) as caught:
        fusec.sum(np.ones((2, 2)), axis=5)
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert isinstance(error, FusecError)
        assert (error.axis, error.ndim, error.code) == (5, 2, "F240")
        assert "axis 5 is out of bounds for array of dimension 2" in str(error)


@pytest.mark.parametrize("name", ["opne", "opens"])
def test_no_name_is_suggested_that_a_kernel_cannot_use(name):
    with pytest.raises(FusecError) as caught:
        fusec.elementwise(f"def f(x): return {name}(x)", names=openly)(np.ones(3))
    assert "did you mean" not in str(caught.value)


def test_a_name_with_a_digit_is_not_taken_for_one_without():
    assert did_you_mean("norm3d", ["norm", "nor"]) == ""
    assert did_you_mean("flaot32", ["float32"]) == "did you mean 'float32'?"
    with pytest.raises(FusecError, match=r"sqrt\(x \* x \+ y \* y \+ z \* z\)"):
        fusec.ElementwiseKernel("float32 x", "float32 y", "y = norm3d(x, x, x)")(np.ones(3, "float32"))


@pytest.mark.parametrize(
    "given", [["float32(float32)"], "float64(float64, int32)", ("f8(f8[:])", "f4(f4[:])"), "(f8, f8)"]
)
@pytest.mark.parametrize("door", [fusec.vectorize, fusec.elementwise, fusec.kernel, fusec.stencil])
def test_numbas_signatures_are_named(door, given):
    with pytest.raises(TypeError, match="gives types, and is not a function") as caught:
        door(given)
    assert "types are inferred at every call" in caught.value.hint


@pytest.mark.parametrize("text", ["def f(x): return (x)", "lambda x: (x)"])
def test_texts_are_no_signatures(text):
    assert fusec.elementwise(text)(2.0) == 2


WORDS = np.array(["Oslo", "Bonn", "Oslo"])


@pytest.mark.parametrize("words", [WORDS, WORDS.astype(object)])
def test_words_become_numbers_as_the_hint_says(words):
    with pytest.raises(FusecError, match=r"number words with np\.unique\(x, return_inverse=True\)\[1\]"):
        fusec.sum(words)
    assert fusec.sum(np.unique(words, return_inverse=True)[1]) == 2


def test_words_from_outside_become_numbers_as_the_hint_says():
    with pytest.raises(FusecError, match="number words with np"):
        fusec.elementwise("def f(x): return x + names[0]", names={"names": WORDS})(np.ones(3))


PATHS = "def f(x, y):\n    if x == 1:\n        return x\n    return y"
VARIABLE = "def f(x, y):\n    if x == 1:\n        z = x\n    else:\n        z = y\n    return z"


@pytest.mark.parametrize("text", [PATHS, VARIABLE])
@pytest.mark.parametrize(
    ("first", "second", "cure"),
    [
        ("float64", "int32", "convert one, e.g. np.float64("),
        ("int32", "float64", "convert one, e.g. np.float64("),
        ("int64", "float32", "convert both, e.g. np.float64("),
        ("uint64", "int8", "convert both, e.g. np.float64("),
        ("complex64", "float64", "convert both, e.g. np.complex128("),
        ("float8_e4m3fn", "float8_e5m2", "convert both, e.g. np.float32("),
    ],
)
def test_paths_of_different_types_are_told_a_dtype_that_holds_both(text, first, second, cure):
    function = fusec.elementwise(text)
    with pytest.raises(FusecError) as caught:
        function(*(np.ones(3).astype(BY_NAME[each].numpy) for each in (first, second)))
    assert cure in caught.value.hint


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("RawKernel", "fusec.kernel"),
        ("guvectorize", "fusec.reduction"),
        ("jit", "fusec.elementwise"),
        ("sums", "'sum'"),
    ],
)
def test_names_that_fusec_has_not_say_what_to_use(name, cure):
    with pytest.raises(AttributeError, match=cure):
        getattr(fusec, name)
    assert not hasattr(fusec, name)


@pytest.mark.parametrize(
    ("function", "cure"),
    [
        (lambda x: np.select([x > 1], [x]), "xp.where"),
        (lambda x: np.outer(x, x), "a[:, None] * b"),
        (lambda x: np.sort(x), "before or after"),
        (lambda x: x.sort(), "before or after"),
        (lambda x: x.cumsum(), "fusec.cumsum"),
    ],
)
def test_what_cannot_be_fused_names_one_replacement(function, cure):
    with pytest.raises(FusecError) as caught:
        fusec.fuse(function)(np.ones(3))
    assert caught.value.code == "F281"
    assert cure in caught.value.hint
    assert len(caught.value.hint) < 100


@pytest.mark.parametrize("variable", ["FUSEC_POOL_BYTES", "FUSEC_CPU"])
def test_a_setting_that_means_nothing_is_refused_by_name(variable):
    code = "import numpy, fusec; fusec.sum(numpy.ones(9))"
    env = {**os.environ, variable: "1x"}
    made = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert made.returncode == 1
    assert f"{variable} is '1x', but must be" in made.stderr
