"""Functions that scale elements by totals of their row: softmax, its logarithm, layer_norm."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from fusec import dtypes
from fusec.dtypes import FLOAT64, INT64, DType, compute_type
from fusec.errors.arguments import UnsupportedDtype
from fusec.errors.reductions import NotReducible
from fusec.ir.expr import scalar_type
from fusec.ir.graph import Count, Graph, Input, Reduce
from fusec.math.value import Value, sqrt, unary
from fusec.operands import cure_for
from fusec.planned import briefly
from fusec.reductions.arguments import array_of
from fusec.reductions.binding import Axis
from fusec.reductions.graph_kernels import GraphKernel

__all__ = ["layer_norm", "log_softmax", "softmax"]


@briefly
def softmax(x: object, axis: Axis = -1, out: object = None) -> object:
    """Powers of e relative to their sum: exp(x - m) / sum(exp(x - m)), m the greatest x; integers give float64."""
    given, array = array_of(x, "softmax")
    return softmax_kernel(array.dtype)(given, axis=axis, out=out)


@briefly
def log_softmax(x: object, axis: Axis = -1, out: object = None) -> object:
    """The logarithm of softmax: x - m - log(sum(exp(x - m))), m the greatest x."""
    given, array = array_of(x, "log_softmax")
    return log_softmax_kernel(array.dtype)(given, axis=axis, out=out)


@briefly
def layer_norm(
    x: object,
    weight: object = None,
    bias: object = None,
    axis: Axis = -1,
    *,
    eps: float = 1e-5,
    out: object = None,
) -> object:
    """Each row with mean 0 and variance 1, times weight, plus bias: (x - mean) / sqrt(var + eps) * weight + bias.

    weight, bias: arrays of the dtype of x that broadcast against it, or None. axis: what makes a row.
    """
    given, array = array_of(x, "layer_norm")
    kernel = layer_norm_kernel(array.dtype, scales=weight is not None, shifts=bias is not None)
    further = tuple(each for each in (weight, bias) if each is not None)
    return kernel(given, *further, eps, axis=axis, out=out)


# --- graphs --------------------------------------------------------------------------------------------------------


@lru_cache(64)
def softmax_kernel(given: np.dtype[Any]) -> GraphKernel:
    """The kernel of softmax."""
    source, x, kind = _input(given, "softmax")
    power = unary("exp", x - _total("maximum", x))
    result = power * (1.0 / _total("add", power))
    return GraphKernel(Graph("softmax", (source,), (("y", result.to(kind).expr),)))


@lru_cache(64)
def log_softmax_kernel(given: np.dtype[Any]) -> GraphKernel:
    """The kernel of log_softmax."""
    source, x, kind = _input(given, "log_softmax")
    greatest = _total("maximum", x)
    result = (x - greatest) - unary("log", _total("add", unary("exp", x - greatest)))
    return GraphKernel(Graph("log_softmax", (source,), (("y", result.to(kind).expr),)))


@lru_cache(64)
def layer_norm_kernel(given: np.dtype[Any], *, scales: bool, shifts: bool) -> GraphKernel:
    """The kernel of layer_norm; its inputs are x, weight and bias if there are, and eps."""
    source, x, kind = _input(given, "layer_norm")
    count = Value(Count(INT64)).to(x.dtype)
    far = x - _total("add", x) / count
    eps = Input("eps", x.dtype)
    result = far * (1.0 / sqrt(_total("add", far * far) / count + Value(eps)))
    inputs = [source]
    for name, wanted in (("weight", scales), ("bias", shifts)):
        if wanted:
            inputs.append(Input(name, source.type))
            value = Value(inputs[-1]).to(x.dtype)
            result = result * value if name == "weight" else result + value
    return GraphKernel(Graph("layer_norm", (*inputs, eps), (("y", result.to(kind).expr),)))


def _input(given: np.dtype[Any], name: str) -> tuple[Input, Value, DType]:
    """The input x, its elements as they are computed with, and the dtype of the result."""
    row = dtypes.from_numpy(given)
    if row is None:
        raise UnsupportedDtype(name, "x", str(given), cure_for(given)).at()
    if row.is_complex:
        raise NotReducible(name, row.name, "complex numbers have no order; pass a part").at()
    kind = row if row.is_float else FLOAT64
    source = Input("x", row)
    return source, Value(source).to(compute_type(kind)), kind


def _total(op: str, value: Value) -> Value:
    return Value(Reduce(op, value.expr, scalar_type(value.expr)))
