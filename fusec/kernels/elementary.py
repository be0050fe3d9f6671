"""Elementary functions outside of kernels, with the same bits as in kernels.

A kernel that names one of these gets the function itself. NumPy's would differ in the last bit, now and then.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from fusec.errors import FusecRuntimeError

Number = Any
"""A NumPy number of float32 or float64, or an array of them."""


def log(x: Number) -> Number:
    """The natural logarithm, with the bits of kernels."""
    return _same("log")(x)


def cospi(x: Number) -> Number:
    """cos(pi x), with the bits of kernels."""
    return _same("cospi")(x)


def sinpi(x: Number) -> Number:
    """sin(pi x), with the bits of kernels."""
    return _same("sinpi")(x)


@cache
def _same(name: str) -> Callable[[Number], Number]:
    """The function of numbers and arrays: compiled, or interpreted where nothing can be compiled."""
    from fusec.kernels.elementwise_kernel import ElementwiseKernel  # most of what imports this module never comes here

    kernel = ElementwiseKernel("T x", "T y", f"y = {name}(x)", name)

    def function(x: Number) -> Number:
        given = np.asarray(x)
        try:
            return np.asarray(kernel(given))[()]
        except FusecRuntimeError:
            from fusec.kernels.simulate import simulate

            return np.asarray(simulate(kernel)(given))[()]

    return function
