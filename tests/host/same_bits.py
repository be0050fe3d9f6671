"""Comparison bit for bit, but for the payload and sign of nan, which no target promises."""

import numpy as np


def assert_same_bits(got: np.ndarray, expected: np.ndarray, what: str) -> None:
    assert got.dtype == expected.dtype, what
    assert got.shape == expected.shape, what
    for part in ("real", "imag") if expected.dtype.kind == "c" else ("",):
        a = np.ascontiguousarray(getattr(got, part) if part else got)
        b = np.ascontiguousarray(getattr(expected, part) if part else expected)
        if a.dtype.kind in "biu":
            differs = a != b
        else:
            bits = f"u{a.dtype.itemsize}"
            with np.errstate(all="ignore"):
                a_nan, b_nan = np.isnan(a.astype("f8")), np.isnan(b.astype("f8"))
            differs = (a_nan != b_nan) | (~a_nan & (a.view(bits) != b.view(bits)))
        if differs.any():
            first = tuple(int(axis[0]) for axis in np.nonzero(np.atleast_1d(differs)))
            pair = np.atleast_1d(a)[first], np.atleast_1d(b)[first]
            raise AssertionError(
                f"{what}{part}: {int(differs.sum())} differ, first at {first}: got {pair[0]!r}, not {pair[1]!r}"
            )
