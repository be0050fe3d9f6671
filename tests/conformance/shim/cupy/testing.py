"""The part of cupy.testing that the tests use, written anew for NumPy arrays."""

import functools
import itertools
import sys

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal  # noqa: F401

ALL_DTYPES = [np.dtype(code).type for code in "?bhilqBHILQefdFD"]


def product(options):
    """Every combination of the listed values, as dictionaries."""
    return [dict(zip(options, values, strict=True)) for values in itertools.product(*options.values())]


def parameterize(*cases):
    """One class for every case, put into the module of the test."""

    def decorate(cls):
        module = sys.modules[cls.__module__]
        for number, case in enumerate(cases):
            name = f"{cls.__name__}_{number}"
            setattr(module, name, type(name, (cls,), {**case, "__module__": cls.__module__}))
        return

    return decorate


def for_all_dtypes(name="dtype", no_float16=False, no_bool=False, no_complex=False):
    """Run a test once for every dtype."""

    def decorate(test):
        @functools.wraps(test)
        def run(self, *args, **kwargs):
            for dtype in ALL_DTYPES:
                kind = np.dtype(dtype).kind
                if (no_float16 and dtype is np.float16) or (no_bool and kind == "b") or (no_complex and kind == "c"):
                    continue
                try:
                    test(self, *args, **{**kwargs, name: dtype})
                except Exception:
                    print(f"dtype {np.dtype(dtype)}")
                    raise

        del run.__wrapped__  # pytest must not look for a fixture called dtype
        return run

    return decorate


def numpy_cupy_array_equal():
    """Run a test with NumPy and with the stand-in, and compare the results."""

    def decorate(test):
        @functools.wraps(test)
        def run(self, *args, **kwargs):
            import cupy

            with np.errstate(all="ignore"):
                expected = test(self, *args, xp=np, **kwargs)
                found = test(self, *args, xp=cupy, **kwargs)
            assert np.asarray(found).dtype == np.asarray(expected).dtype
            assert_array_equal(found, expected)

        del run.__wrapped__
        return run

    return decorate


def shaped_arange(shape, xp=np, dtype=np.float32, order="C"):
    """1, 2, 3 … in the given shape."""
    dtype = np.dtype(dtype)
    values = np.arange(1, int(np.prod(shape)) + 1)
    if dtype.kind == "b":
        values = values % 2 == 0
    elif dtype.kind == "c":
        values = values + values * 1j
    return xp.array(values.astype(dtype).reshape(shape), order=order)
