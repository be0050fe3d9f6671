"""A decorated function gives, bit for bit, what Python gives when it runs it for one element after the other."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest

import fusec

COUNT = 24


def _writer_module():
    spec = importlib.util.spec_from_file_location("python_functions", Path(__file__).with_name("python_functions.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


python_functions = _writer_module()


def run_in_python(text, arrays, dtypes):
    names = {"np": np}
    exec(text, names)
    rows = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for row in zip(*arrays, strict=True):
            found = names["f"](*row)
            rows.append(found if isinstance(found, tuple) else (found,))
    return [np.array(column, dtype) for column, dtype in zip(zip(*rows, strict=True), dtypes, strict=True)]


def check(seed):
    writer = python_functions.Writer(seed)
    text = writer.source()
    arrays = [python_functions.values(dtype, COUNT, seed + at) for at, dtype in enumerate(writer.params.values())]
    found = fusec.elementwise(text)(*arrays)
    found = found if isinstance(found, tuple) else (found,)
    wanted = run_in_python(text, arrays, [each.dtype for each in found])
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=f"seed {seed}\n{text}", strict=True)
        if one.dtype.kind == "f":
            same = np.signbit(one) == np.signbit(other)
            assert (same | np.isnan(one)).all(), f"seed {seed}: signs of zeros\n{text}"


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_a_function_is_what_python_makes_of_every_element(first):
    for seed in range(first, first + 10):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1400, 50))
def test_many_functions_are_what_python_makes_of_every_element(first):
    for seed in range(first, first + 50):
        check(seed)
