"""The part of cupy.testing that the tests use, written anew for NumPy arrays."""

import itertools
import os
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from cupy.testing._loops import _wraps_partial_xp

ALL_DTYPES = [np.dtype(code).type for code in "?bhilqBHILQefdFD"]
FLOATS = "efd"
INTEGERS = "bhilqBHILQ"

slow = pytest.mark.slow


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


def with_requires(*_):
    """The same test: what it requires is there."""
    return lambda test: test


def multi_gpu(_):
    """There is no GPU here."""
    return pytest.mark.skip(reason="several GPUs")


def _for(cases):
    """Run a test once for every case, a dictionary of arguments."""

    def decorate(test):
        @_wraps_partial_xp(test, *{name for case in cases for name in case})
        def run(self, *args, **kwargs):
            for case in cases:
                try:
                    test(self, *args, **{**kwargs, **case})
                except Exception:
                    print({name: np.dtype(dtype) for name, dtype in case.items()})
                    raise

        return run

    return decorate


def _chosen(codes, no_float16=False, no_bool=False, no_complex=False):
    left_out = ("e" if no_float16 else "") + ("?" if no_bool else "") + ("FD" if no_complex else "")
    return [np.dtype(code).type for code in codes if code not in left_out]


def for_dtypes(dtypes, name="dtype"):
    """Run a test once for each of these dtypes."""
    return _for([{name: np.dtype(dtype).type} for dtype in dtypes])


def for_all_dtypes(name="dtype", **options):
    """Run a test once for every dtype."""
    return for_dtypes(_chosen("?bhilqBHILQefdFD", **options), name)


def for_int_dtypes(name="dtype", **options):
    """Run a test once for every integer dtype and bool."""
    return for_dtypes(_chosen("?" + INTEGERS, **options), name)


def for_complex_dtypes(name="dtype", **options):
    """Each complex dtype."""
    return for_dtypes((np.complex64, np.complex128), name=name, **options)


def for_float_dtypes(name="dtype", **options):
    """Run a test once for every real floating-point dtype."""
    return for_dtypes(_chosen(FLOATS, **options), name)


def _pairs(dtypes, names, full):
    """All pairs of dtypes if asked for, else each with itself and with two others, as CuPy does by chance."""
    if full or os.environ.get("CUPY_TEST_FULL_COMBINATION", "0") != "0":
        pairs = itertools.product(dtypes, repeat=len(names))
    else:
        pairs = [(left, dtypes[(at + shift) % len(dtypes)]) for shift in (0, 3, 8) for at, left in enumerate(dtypes)]
    return _for([dict(zip(names, pair, strict=True)) for pair in pairs])


def for_all_dtypes_combination(names, full=None, **options):
    """Run a test once for pairs of dtypes."""
    return _pairs(_chosen("?bhilBHILefdFD", **options), names, full)


def for_int_dtypes_combination(names, full=None, **options):
    """Run a test once for pairs of integer dtypes and bool."""
    return _pairs(_chosen("?bhilBHIL", **options), names, full)


def _outcome(test, args, kwargs, accept_error):
    """The result of a test, or the error that it may raise."""
    try:
        return test(*args, **kwargs), None
    except Exception as error:
        if not isinstance(error, accept_error):
            raise
        return None, error


def _compared(check, accept_error):
    def decorate(test):
        @_wraps_partial_xp(test, "xp")
        def run(self, *args, **kwargs):
            import cupy

            with np.errstate(all="ignore"):
                expected, problem = _outcome(test, (self, *args), {**kwargs, "xp": np}, accept_error)
                found, error = _outcome(test, (self, *args), {**kwargs, "xp": cupy}, accept_error)
            assert (problem is None) == (error is None), f"{problem!r} and {error!r}"
            if problem is not None:
                return
            if isinstance(expected, tuple):
                assert isinstance(found, tuple)
                for pair in zip(found, expected, strict=True):
                    check(*pair)
            else:
                check(found, expected)

        return run

    return decorate


def _same_dtype(found, expected):
    assert np.asarray(found).dtype == np.asarray(expected).dtype


def numpy_cupy_array_equal(accept_error=()):
    """Run a test with NumPy and with the stand-in, and compare the results."""

    def check(found, expected):
        _same_dtype(found, expected)
        assert_array_equal(found, expected)

    return _compared(check, accept_error)


def numpy_cupy_allclose(rtol=1e-7, atol=0, accept_error=(), contiguous_check=True):
    """The same, up to rounding; rtol: for all, or by dtype."""

    def check(found, expected):
        _same_dtype(found, expected)
        bound = rtol.get(np.asarray(found).dtype.type, rtol["default"]) if isinstance(rtol, dict) else rtol
        assert_allclose(found, expected, bound, atol)

    return _compared(check, accept_error)


def shaped_arange(shape, xp=np, dtype=np.float32, order="C"):
    """1, 2, 3 … in the given shape."""
    dtype = np.dtype(dtype)
    values = np.arange(1, int(np.prod(shape)) + 1)
    if dtype.kind == "b":
        values = values % 2 == 0
    elif dtype.kind == "c":
        values = values + values * 1j
    return xp.array(values.astype(dtype).reshape(shape), order=order)


def shaped_random(shape, xp=np, dtype=np.float32, scale=10, seed=0, order="C"):
    """Random numbers from 0 to `scale` in the given shape."""
    dtype, random = np.dtype(dtype), np.random.RandomState(seed)
    if dtype.kind == "b":
        values = random.randint(2, size=shape)
    elif dtype.kind == "c":
        values = scale * (random.rand(*shape) + 1j * random.rand(*shape))
    else:
        values = scale * random.rand(*shape)
    return xp.array(np.asarray(values).astype(dtype), order=order)
