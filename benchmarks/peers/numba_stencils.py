"""Stencils in Numba: explicit loops over the elements that have all neighbours, parallel over rows."""

from __future__ import annotations

import numba
import numpy as np


def laplacian(x, z):
    for i in numba.prange(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            total = x[i - 1, j - 1] + x[i - 1, j] + x[i - 1, j + 1] + x[i, j - 1] - np.float32(8) * x[i, j]
            z[i, j] = total + x[i, j + 1] + x[i + 1, j - 1] + x[i + 1, j] + x[i + 1, j + 1]


def laplacian_bytes(x, z):
    for i in numba.prange(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            total = x[i - 1, j - 1] + x[i - 1, j] + x[i - 1, j + 1] + x[i, j - 1] - 8 * x[i, j]
            z[i, j] = total + x[i, j + 1] + x[i + 1, j - 1] + x[i + 1, j] + x[i + 1, j + 1]


def edges_bytes(x, z):
    for i in numba.prange(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            total = np.int32(x[i - 1, j - 1]) + x[i - 1, j] + x[i - 1, j + 1] + x[i, j - 1] - 8 * np.int32(x[i, j])
            total = total + x[i, j + 1] + x[i + 1, j - 1] + x[i + 1, j] + x[i + 1, j + 1]
            z[i, j] = min(max(abs(total), 0), 255)


WINDOWS = {function.__name__: function for function in (laplacian, laplacian_bytes, edges_bytes)}
