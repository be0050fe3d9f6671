"""The types of results are NumPy's, for every operator and function, every pair of dtypes, and Python's own numbers."""

import re
import warnings

import numpy as np
import pytest

from fusec.base.dtypes import from_numpy
from fusec.frontends.python.definition import FunctionText, PythonDefinition
from fusec.frontends.python.lower import infer
from fusec.fusion.expression_kernels import ExpressionKernel

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128".split()
PAIRS = [f"x {op} y" for op in ("+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", ">=", "&", "|", "^", "<<", ">>")]
PAIRS += [
    f"np.{name}(x, y)"
    for name in "minimum maximum fmin fmax arctan2 hypot copysign fmod logaddexp power add left_shift gcd lcm"
    " logical_and logical_or logical_xor nextafter float_power heaviside logaddexp2 subtract multiply divide"
    " floor_divide remainder bitwise_and bitwise_or bitwise_xor right_shift equal less_equal".split()
]
PAIRS += ["np.where(x == x, x, y)", "np.clip(x, y, y)"]
SINGLES = [
    f"np.{name}(x)"
    for name in "sin exp log1p sqrt cbrt arctan floor ceil trunc rint abs sign isnan isinf isfinite signbit conj real"
    " imag negative positive invert logical_not angle deg2rad square conjugate reciprocal".split()
]
SINGLES += ["-x", "+x", "~x", "not x", "abs(x)", "x.real", "x.imag", "float(x)", "bool(x)", "x.astype(np.int16)"]
# What fusec has otherwise, on purpose: bools stay bools where NumPy makes float16 of them. Complex numbers have no
# order, and do not turn into real ones silently.
OTHERWISE = {("floor", "bool"), ("ceil", "bool"), ("trunc", "bool")}


def in_numpy(expression, *values):
    """The dtype that NumPy computes, None if it refuses."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = eval(expression, {"np": np}, dict(zip("xy", values, strict=False)))
    except (TypeError, ValueError, OverflowError, AttributeError):
        return None
    return np.asarray(found).dtype.name


def inferred(expressions, types, numbers=()):
    """The dtypes that fusec infers for a function of all these results."""
    text = f"def f({', '.join([*types, *(name for name, _ in numbers)])}):\n    return {', '.join(expressions)},\n"
    outputs = tuple(f"out{at}" for at in range(len(expressions)))
    definition = PythonDefinition("f", (FunctionText("f", "f", "f", 1, text),), outputs, numbers=tuple(numbers))
    rows = {name: from_numpy(dtype) for name, dtype in types.items()}
    return [dtype.name for dtype in infer(definition, rows, {}).results]


def is_ordered(expression, *dtypes):
    """Whether an expression asks nothing of complex numbers that they have not."""
    compares = any(
        word in expression
        for word in "< > less min max clip // % floor_divide remainder sign float( astype reciprocal".split()
    )
    return not (any("complex" in dtype for dtype in dtypes) and compares)


@pytest.mark.parametrize("left", DTYPES)
def test_two_arrays_have_numpys_type(left):
    for right in DTYPES:
        values = np.dtype(left).type(1), np.dtype(right).type(1)
        wanted = {each: in_numpy(each, *values) for each in PAIRS if is_ordered(each, left, right)}
        wanted = {each: dtype for each, dtype in wanted.items() if dtype is not None}
        found = dict(zip(wanted, inferred(wanted, {"x": left, "y": right}), strict=True))
        assert found == wanted, right


def turned_around(expression):
    """The same with x and y exchanged; the names of functions stay."""
    return re.sub(r"\b[xy]\b", lambda name: {"x": "y", "y": "x"}[name.group()], expression)


@pytest.mark.parametrize("kind", [bool, int, float, complex])
def test_python_numbers_adapt_as_in_numpy(kind):
    for dtype in DTYPES:
        value, number = np.array([1], dtype), kind(1)
        for turned in (False, True):
            pairs = [turned_around(each) if turned else each for each in PAIRS]
            if turned:
                pairs.remove("np.clip(y, x, x)")  # NumPy makes an array of its first argument
            wanted = {each: in_numpy(each, value, number) for each in pairs if is_ordered(each, dtype, kind.__name__)}
            wanted = {each: found for each, found in wanted.items() if found is not None}
            found = inferred(wanted, {"x": dtype}, [("y", kind.__name__)])
            assert dict(zip(wanted, found, strict=True)) == wanted, dtype
            written = [re.sub(r"\by\b", f"({number!r})", each) for each in wanted]  # in the text itself
            assert dict(zip(wanted, inferred(written, {"x": dtype}), strict=True)) == wanted, dtype


def as_text(expression):
    """A function of numbers as evaluate has it."""
    return expression.replace("np.", "")


@pytest.mark.parametrize("kind", [bool, int, float, complex])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float16", "float32", "complex64"])
def test_numbers_adapt_as_in_numpy_in_texts(kind, dtype):
    value, number = np.array([1], dtype), kind(1)
    for expression in PAIRS[16:]:
        wanted = in_numpy(expression, value, number)
        if wanted is None or not is_ordered(expression, dtype, kind.__name__):
            continue
        for each, given in ((expression, (value, number)), (turned_around(expression), (number, value))):
            text = as_text(each)
            part = ExpressionKernel(text).parts[0]
            assert part.result(part.source.prepared(given)).name == wanted, text


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_array_has_numpys_type(dtype):
    wanted = {each: in_numpy(each, np.dtype(dtype).type(1)) for each in SINGLES if is_ordered(each, dtype)}
    wanted = {
        each: found
        for each, found in wanted.items()
        if found is not None and (each[3:].partition("(")[0], dtype) not in OTHERWISE
    }
    assert dict(zip(wanted, inferred(wanted, {"x": dtype}), strict=True)) == wanted
