"""The law of functions in Python: a kernel gives, bit for bit, what Python gives for one element after the other."""

import warnings

import numpy as np

import fusec


def law(function, *arrays):
    found = fusec.elementwise(function)(*arrays)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        rows = [function(*row) for row in zip(*arrays, strict=True)]
    if not isinstance(found, tuple):
        found, rows = (found,), [(row,) for row in rows]
    for at, (one, column) in enumerate(zip(found, zip(*rows, strict=True), strict=True)):
        wanted = np.array(column)
        message = f"result {at} of {function.__name__}"
        np.testing.assert_array_equal(one, wanted.astype(one.dtype), message, strict=True)
        assert wanted.dtype.kind == one.dtype.kind, message
        if one.dtype.kind == "f":
            same = np.signbit(one) == np.signbit(wanted)
            assert (same | np.isnan(wanted)).all(), f"{message}: signs of zeros"
