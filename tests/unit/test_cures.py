"""What errors say to do: codes and hints on the exception, names that are alike, replacements for others."""

import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

import fusec
from fusec import FusecError
from fusec.base.diagnostics import did_you_mean
from fusec.base.dtypes import BY_NAME
from fusec.cli.main import main
from fusec.errors.base import CATALOGUE

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
        (lambda x: np.linalg.eig(x), "np.linalg.eigh"),
        (lambda x: np.unique(x), "np.sort"),
        (lambda x: np.bincount(x), "np.add.at"),
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


def test_inputs_of_different_types_are_converted_to_the_type_that_holds_both():
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = x")
    of_both = {
        ("int64", "float64"): "x.astype('float64')",
        ("float64", "int64"): "y.astype('float64')",
        ("int32", "float32"): "x.astype('float64') and y.astype('float64')",
    }
    for (x, y), cure in of_both.items():
        with pytest.raises(TypeError) as caught:
            kernel(np.ones(3, x), np.ones(3, y))
        assert caught.value.hint.endswith(f"the type that holds both: {cure}")


def test_weights_of_a_stencil_are_not_indexed_parameters():
    with pytest.raises(ValueError, match=r"array 'w' of stencil 'f' has shape \(2,\), not \(4,\)") as caught:
        fusec.stencil("def f(a, w): return a[-1]*w[0] + a[1]*w[1]")(np.arange(4.0), np.ones(2))
    assert "pass weights as numbers" in caught.value.hint


def test_what_cannot_be_decorated_is_named_in_plain_words():
    names = {len: "a built-in function", np.sin: "a ufunc", int: "a class", 3: "an int"}
    for given, name in names.items():
        with pytest.raises(TypeError, match=f"^{name} is not a function made with def"):
            fusec.elementwise(given)


def test_running_in_python_is_suggested_where_it_works():
    neighbours = "def f(a): return print(a[1])"
    for kernel in (fusec.stencil(neighbours), fusec.elementwise("def f(x): return print(x)")):
        with pytest.raises(FusecError, match="print") as caught:
            kernel(np.ones(3))
        assert caught.value.hint == "a kernel cannot print; return the value"


def test_a_line_without_source_is_not_shown():
    with pytest.raises(FusecError) as caught:
        fusec.fuse(eval("lambda x, y: x + y"))(np.ones(3), np.ones(2))
    assert "-->" in str(caught.value)
    assert "|" not in str(caught.value)


def test_counts_in_messages_agree_with_their_nouns():
    with pytest.raises(TypeError, match="1 offset into 'a', which has 2 axes") as caught:
        fusec.stencil("def f(a): return a[1]")(np.ones((2, 2)))
    assert caught.value.hint == "write 2 offsets, or give axes= the axes that the offsets are for"
    kernel = fusec.ElementwiseKernel("raw T x", "raw T y", "y[i] = x[i]", "r")
    with pytest.raises(ValueError, match=r"Loop size is undecided. .*\n  kernel 'r': every array argument is raw"):
        kernel(np.ones(3), np.ones(3))


def test_no_explanation_leaves_the_plural_to_the_reader(capsys):
    for code in sorted(CATALOGUE):
        main(["explain", code])
    assert not re.search(r"\} \w+\(s\)", capsys.readouterr().out)
