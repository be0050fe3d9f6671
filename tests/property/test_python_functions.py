"""A decorated function gives, bit for bit, what Python gives when it runs it for one element after the other."""

import numpy as np
import pytest

import fusec
from tests.support import python_functions

COUNT = 24


def check(seed):
    writer = python_functions.Writer(seed)
    text = writer.source()
    arrays = [python_functions.values(dtype, COUNT, seed + at) for at, dtype in enumerate(writer.params.values())]
    found = fusec.elementwise(text, names={"np": np, **writer.tables})(*arrays)
    found = found if isinstance(found, tuple) else (found,)
    wanted = python_functions.in_python(text, arrays, [each.dtype for each in found], writer.tables)
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
