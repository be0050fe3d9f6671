"""Functions of each element that NumPy does not have, from one row each: fusec's own kernels compute them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from fusec.kernels.elementwise_kernel import ElementwiseKernel
from fusec.xp.array import Array
from fusec.xp.calls import Operand, array_of, call
from fusec.xp.documentation import composed
from fusec.xp.elementwise import Unary

__all__ = ["erf", "erfc", "erfinv", "exp10", "gamma", "gammaln"]


def floating(x: Operand) -> Array:
    """Anything as an array of floats: bools and integers become float64."""
    x = array_of(x)
    found: Array = x if x.dtype.kind in "fc" else x.astype(np.float64)
    return found


@cache
def _kernel(name: str) -> Any:
    return ElementwiseKernel("T x", "T y", f"y = {name}(x)", name)


def _special(name: str, sentence: str, example: str, result: str, kernel: str = "") -> Unary:
    def operate(x: Operand, /, **options: Any) -> Array:
        return call(_kernel(kernel or name), floating(x), **options)

    operate.__name__ = operate.__qualname__ = name
    shown = f"xp.round(xp.extra.{name}(xp.asarray([{example}])), 4)"
    operate.__doc__ = composed(f"{sentence}\n\n>>> {shown}\nArray([{result}])", ("x",))
    return operate


erf = _special("erf", "The error function.", "0.5", "0.5205")
erfc = _special("erfc", "1 - erf(x), precise where erf is almost 1.", "0.5", "0.4795")
erfinv = _special("erfinv", "The inverse of erf.", "0.5", "0.4769")
exp10 = _special("exp10", "10 to the power of the element.", "2.0", "100.")
gamma = _special("gamma", "The gamma function.", "5.0", "24.")
gammaln = _special("gammaln", "The logarithm of the absolute value of the gamma function.", "3.0", "0.6931", "lgamma")
