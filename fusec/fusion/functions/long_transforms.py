"""Fourier transforms of one long row: transforms of many short rows, which fit the caches and are shared by threads.

A row of n = rows * columns elements is a matrix. Its columns are transformed, element (i, j) is multiplied by the
(i * j)-th power of the n-th root of unity, its rows are transformed, and the result is read down the columns: the
four-step algorithm of D. H. Bailey, "FFTs in external or hierarchical memory", J. Supercomputing 4 (1990). Real rows
are transformed as complex ones of half the length, whose two halves are then taken apart: J. W. Cooley, P. A. W. Lewis
and P. D. Welch, "The fast Fourier transform algorithm", J. Sound and Vibration 12 (1970).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial, wraps
from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from fusec.base import locks
from fusec.runtime.cpu import memory

LONG = 1 << 17  # elements of a complex row from which two transforms of short ones take less time
NARROW = 64  # rows and columns at least: fewer leave long rows that fit no cache

Rows = Callable[..., Any]
"""A complex transform of an array along an axis, by NumPy."""


class Powers(NamedTuple):
    """Powers of a root of unity, each the product of two: high[k >> shift] * low[k & mask]."""

    high: Any
    low: Any
    shift: int
    mask: int


@lru_cache(8)
def powers(n: int, factor: complex, sign: int, dtype: np.dtype[Any]) -> Powers:
    """The powers 0 to n of exp(sign * 2 pi i / n), times a factor. dtype: complex."""
    shift = (n.bit_length() + 1) // 2
    low, high = np.arange(1 << shift), np.arange((n >> shift) + 1) << shift
    roots = [np.exp(sign * 2j * np.pi * (each / n)) for each in (high, low)]
    return Powers((factor * roots[0]).astype(dtype), roots[1].astype(dtype), shift, (1 << shift) - 1)


class Kernels(NamedTuple):
    """What stands between the transforms."""

    copied: Any
    multiplied: Any
    apart: Any
    together: Any


@cache
def kernels() -> Kernels:
    """They are made when the first long row comes."""
    with locks.lock:
        from fusec.kernels.elementwise_kernel import ElementwiseKernel

    power = "raw T high, raw T low, int64 shift, int64 mask"
    return Kernels(
        copied=ElementwiseKernel("T x", "T y", "y = x", "fft_copied"),
        multiplied=ElementwiseKernel(
            f"T x, int64 k, int64 l, {power}", "T y",
            "long long at = k * l; y = x * (high[at >> shift] * low[at & mask])", "fft_multiplied",
        ),
        apart=ElementwiseKernel(
            f"T x, int64 k, int64 l, raw T row, int64 rows, int64 columns, {power}", "T y",
            """
            long long opposite = k == 0 ? 0 : rows - k;
            long long column = k != 0 ? columns - 1 - l : l == 0 ? 0 : columns - l;
            T other = conj(row[opposite * columns + column]);
            long long at = l * rows + k;
            y = 0.5 * (x + other) + high[at >> shift] * low[at & mask] * (x - other)
            """, "fft_apart",
        ),
        together=ElementwiseKernel(
            f"T x, T z, {power}", "T y",
            """
            T one = x, other = conj(z);
            if (i == 0) { one = T(real(x)); other = T(real(z)); }
            y = 0.5 * (one + other) + high[i >> shift] * low[i & mask] * (one - other)
            """, "fft_together",
        ),
    )  # fmt: skip


def in_short_rows(name: str, rows: Callable[[str], Rows]) -> Callable[..., Any]:
    """One of NumPy's transforms, by transforms of short rows where it is given one long row. rows: finds these."""
    function: Callable[..., Any] = getattr(np.fft, name)

    @wraps(function)
    def call(a: Any, n: Any = None, axis: int = -1, norm: Any = None, **options: Any) -> Any:
        is_plain = type(a) is np.ndarray and a.ndim == 1 and axis in (0, -1) and norm in (None, "backward")
        cut = _cut(name, a, n) if is_plain and not options else None
        return function(a, n, axis, norm, **options) if cut is None else TRANSFORMS[name](a, cut, rows)

    return call


def _cut(name: str, a: Any, n: Any) -> tuple[int, int] | None:
    """Rows and columns of a complex row; None for what is short, has gaps, is another size, or divides badly."""
    if a.dtype.char not in ("d" if name == "rfft" else "D") or not (a.flags.c_contiguous and a.flags.aligned):
        return None
    size = a.size if name != "irfft" else 2 * (a.size - 1)
    count, odd = (size, 0) if name in ("fft", "ifft") else divmod(size, 2)
    if n not in (None, size) or odd or count < LONG or not a.dtype.isnative:
        return None
    found = next((each for each in range(isqrt(count), NARROW - 1, -1) if count % each == 0), None)
    return None if found is None else (found, count // found)


def _matrix(x: Any, cut: tuple[int, int], rows: Rows, sign: int) -> Any:
    """The transform of a complex row; its elements lie down the columns of the result."""
    count, columns = cut
    first = rows(x.reshape(cut), axis=0)
    at, across = np.arange(count)[:, None], np.arange(columns)
    kernels().multiplied(first, at, across, *powers(x.size, 1, sign, x.dtype), first)
    return rows(first, axis=1)


def _in_order(found: Any) -> Any:
    """The columns of a matrix one after the other."""
    made = memory.empty(found.shape[::-1], found.dtype, (0, 1))
    kernels().copied(found.T, made)
    return made.reshape(-1)


def _fft(name: str, x: Any, cut: tuple[int, int], rows: Callable[[str], Rows]) -> Any:
    return _in_order(_matrix(x, cut, rows(name), -1 if name == "fft" else 1))


def _rfft(x: Any, cut: tuple[int, int], rows: Callable[[str], Rows]) -> Any:
    dtype, (count, columns) = np.dtype("D"), cut
    found = _matrix(x.view(dtype), cut, rows("fft"), -1)
    made = memory.empty((count * columns + 1,), dtype, (0,))
    start = found[0, 0]
    kernels().apart(
        found.T, np.arange(count), np.arange(columns)[:, None], found.reshape(-1), count, columns,
        *powers(x.size, -0.5j, -1, dtype), made[:-1].reshape(columns, count),
    )  # fmt: skip
    made[-1] = start.real - start.imag
    return made


def _irfft(x: Any, cut: tuple[int, int], rows: Callable[[str], Rows]) -> Any:
    together = memory.empty((x.size - 1,), x.dtype, (0,))
    kernels().together(x[:-1], x[:0:-1], *powers(2 * (x.size - 1), 0.5j, 1, x.dtype), together)
    return _in_order(_matrix(together, cut, rows("ifft"), 1)).view(x.real.dtype)


TRANSFORMS: dict[str, Callable[[Any, tuple[int, int], Callable[[str], Rows]], Any]] = {
    "fft": partial(_fft, "fft"),
    "ifft": partial(_fft, "ifft"),
    "rfft": _rfft,
    "irfft": _irfft,
}
