"""Fourier transforms of one long row, which are taken apart: their error beside NumPy's, and what stays NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import fusec
import fusec.xp as xp
from fusec.fusion.functions import long_transforms, sharing
from fusec.fusion.functions.sharing import transform

COUNTS = [1 << 17, 362 * 363, 64 * 2053]  # of complex elements
NAMES = ["fft", "ifft", "rfft", "irfft"]


def row(name, count, seed=0):
    rng = np.random.default_rng(seed)
    real = rng.normal(size=2 * count if name == "rfft" else count + (name == "irfft"))
    return real if name == "rfft" else real + 1j * rng.normal(size=real.size)


def error(found, exact):
    return float(np.sqrt((abs(found - exact) ** 2).sum() / (abs(exact) ** 2).sum()))


@pytest.fixture
def taken_apart(monkeypatch):
    """The long rows."""
    found = []
    for name, function in long_transforms.TRANSFORMS.items():
        monkeypatch.setitem(
            long_transforms.TRANSFORMS,
            name,
            lambda *given, function=function: found.append(given[1]) or function(*given),
        )
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.sampled(3)
def test_the_error_is_that_of_numpy(name, count, taken_apart):
    x = row(name, count)
    found, wanted = transform(name)(x), getattr(np.fft, name)(x)
    exact = getattr(np.fft, name)(x.astype(np.longdouble if name == "rfft" else np.clongdouble))
    assert len(taken_apart) == 1
    assert np.prod(taken_apart[0]) == count
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert error(found, exact) < 1.5 * error(wanted, exact) + 1e-16
    assert abs(found - exact).max() < 3 * abs(wanted - exact).max()


@pytest.mark.parametrize("name", NAMES)
def test_the_number_of_threads_changes_no_bits(name, monkeypatch):
    x, found = row(name, COUNTS[1]), []
    for threads in (1, 3):
        monkeypatch.setattr(sharing, "thread_count", lambda threads=threads: threads)
        sharing._pool.cache_clear()
        found.append(transform(name)(x).tobytes())
    sharing._pool.cache_clear()
    assert found[0] == found[1]


def test_a_transform_and_its_inverse_give_the_row_again():
    x, z = row("rfft", COUNTS[2]), row("fft", COUNTS[2])
    np.testing.assert_allclose(transform("irfft")(transform("rfft")(x)), x, rtol=0, atol=1e-14)
    np.testing.assert_allclose(transform("ifft")(transform("fft")(z)), z, rtol=0, atol=1e-14)


def test_spectra_of_real_rows_have_no_imaginary_part_at_their_ends():
    x = row("irfft", COUNTS[0])
    ends = x.copy()
    ends[[0, -1]] = ends[[0, -1]].real
    assert np.array_equal(transform("irfft")(x), transform("irfft")(ends))
    assert np.array_equal(transform("rfft")(row("rfft", COUNTS[0]))[[0, -1]].imag, [0, 0])


@pytest.mark.parametrize(
    ("name", "given", "options"),
    [
        ("fft", row("fft", COUNTS[0]), {"norm": "ortho"}),
        ("fft", row("fft", COUNTS[0]), {"n": 200_000}),
        ("fft", row("fft", 2 * COUNTS[0])[::2], {}),
        ("fft", row("fft", COUNTS[0] - 4), {}),
        ("fft", row("fft", 131_101), {}),
        ("fft", row("fft", COUNTS[0]).astype("c8"), {}),
        ("fft", row("fft", COUNTS[0]).astype(">c16"), {}),
        ("rfft", row("rfft", COUNTS[0])[1:], {}),
        ("rfft", row("fft", 2 * COUNTS[0]).real.astype("i4"), {}),
        ("irfft", row("irfft", COUNTS[0]), {"n": 2 * COUNTS[0] + 1}),
    ],
    ids=["norm", "n", "gaps", "short", "prime", "complex64", "big-endian", "odd", "integers", "odd n"],
)
def test_other_rows_have_numpys_bits(name, given, options, taken_apart):
    found = transform(name)(given, **options)
    assert not taken_apart
    assert found.tobytes() == getattr(np.fft, name)(given, **options).tobytes()


def test_fused_functions_and_lazy_arrays_take_long_rows_apart(taken_apart):
    x = row("rfft", COUNTS[1])

    def smooth(x):
        spectrum = np.fft.rfft(x * 2)
        return np.fft.irfft(np.where(abs(spectrum) > 1, spectrum, 0), len(x))

    wanted = smooth(x)
    fused = fusec.fuse(smooth)
    np.testing.assert_allclose(fused(x), wanted, rtol=0, atol=1e-14)
    again = x[::-1].copy()
    np.testing.assert_allclose(fused(again), smooth(again), rtol=0, atol=1e-14)
    lazy = xp.fft.irfft(xp.fft.rfft(xp.asarray(x)), n=x.size)
    np.testing.assert_allclose(np.asarray(lazy), x, rtol=0, atol=1e-14)
    assert len(taken_apart) == 6
