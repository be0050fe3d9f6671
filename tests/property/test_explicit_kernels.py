"""An explicit kernel that calls a function for every element, in any order, checked or not, is that function."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import fusec

COUNT = 37


def _writer_module():
    spec = importlib.util.spec_from_file_location("python_functions", Path(__file__).with_name("python_functions.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


python_functions = _writer_module()


def kernel_text(params, outputs):
    """A loop over the grid that takes the elements backwards, and writes the result in one or several arrays."""
    args = ", ".join(f"{param}[j]" for param in params)
    targets = ", ".join(f"{out}[j]" for out in outputs)
    if len(outputs) == 1:
        targets = targets.rstrip(",")
    return f"""
def walk({", ".join((*params, *outputs))}):
    n = len({params[0]})
    for i in fusec.grid(n):
        j = n - 1 - i
        if j % 5 == 3:
            continue
        {targets} = f({args})
"""


@pytest.mark.parametrize("first", range(0, 12, 4))
def test_a_kernel_that_calls_a_function_is_the_function(first):
    for seed in range(first, first + 4):
        writer = python_functions.Writer(seed)
        text = writer.source()
        arrays = [python_functions.values(dtype, COUNT, seed + at) for at, dtype in enumerate(writer.params.values())]
        wanted = fusec.elementwise(text)(*arrays)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        outputs = [f"result{at}" for at in range(len(wanted))]
        kernel = fusec.kernel(text + kernel_text(list(writer.params), outputs), bounds="check" if seed % 2 else "trust")
        found = [np.zeros_like(each) for each in wanted]
        kernel(*arrays, *found)
        left_out = np.arange(COUNT) % 5 == 3
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one[~left_out], other[~left_out], err_msg=f"seed {seed}\n{text}")
            assert not one[left_out].any()
