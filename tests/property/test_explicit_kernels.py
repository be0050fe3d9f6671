"""An explicit kernel that calls a function for every element, in any order, checked or not, is that function."""

import numpy as np
import pytest

import fusec
from tests.support import python_functions

COUNT = 37


@pytest.mark.parametrize("first", range(0, 12, 4))
def test_a_kernel_that_calls_a_function_is_the_function(first):
    for seed in range(first, first + 4):
        writer = python_functions.Writer(seed)
        text = writer.source()
        arrays = [python_functions.values(dtype, COUNT, seed + at) for at, dtype in enumerate(writer.params.values())]
        names = {"np": np, "fusec": fusec, **writer.tables}
        wanted = fusec.elementwise(text, names=names)(*arrays)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        outputs = [f"result{at}" for at in range(len(wanted))]
        whole, bounds = (
            text + python_functions.kernel_text(list(writer.params), outputs),
            "check" if seed % 2 else "trust",
        )
        kernel = fusec.kernel(whole, names=names, bounds=bounds)
        found = [np.zeros_like(each) for each in wanted]
        kernel(*arrays, *found)
        left_out = np.arange(COUNT) % 5 == 3
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one[~left_out], other[~left_out], err_msg=f"seed {seed}\n{text}")
            assert not one[left_out].any()
