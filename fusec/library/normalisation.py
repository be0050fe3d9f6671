"""Functions that scale elements by the totals of their row: softmax, its logarithm, layer_norm."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np

from fusec.arguments.annotations import Arrays, Axes
from fusec.arguments.operands import is_number
from fusec.base.dtypes import FLOAT64, INT64, DType, compute_type, promote
from fusec.dispatch.arguments import array_of
from fusec.errors.arguments import TypeMismatch, UnsupportedArgument
from fusec.errors.reductions import NotReducible
from fusec.ir.expr import scalar_type
from fusec.ir.graph import Count, Input, KernelGraph, Reduce
from fusec.library.arguments import as_lent
from fusec.library.documentation import built_in, family
from fusec.library.dtype_rules import ordered, row_of
from fusec.library.graph_kernel import GraphKernel
from fusec.math.value import Term, sqrt, unary

__all__ = ["layer_norm", "log_softmax", "softmax"]

Scale = np.dtype[Any] | Literal["number"] | None  # of weight or bias: of an array, a number, or nothing


@family
def _relative(name: str, x: Arrays, axis: Axes = -1, out: Any = None) -> Any:
    given, array = array_of(x, name)
    kernel = (softmax_kernel if name == "softmax" else log_softmax_kernel)(array.dtype)
    return kernel(as_lent(x, given), axis=axis, out=out)


softmax = _relative(
    "softmax",
    "The exponentials divided by their sum: exp(x - m) / sum(exp(x - m)), m the greatest x; integers give float64.",
)
log_softmax = _relative("log_softmax", "The logarithm of softmax: x - m - log(sum(exp(x - m))), m the greatest x.")


@built_in
def layer_norm(
    x: Arrays,
    weight: Arrays | None = None,
    bias: Arrays | None = None,
    axis: Axes = -1,
    *,
    eps: float = 1e-5,
    out: Any = None,
) -> Any:
    """Rows scaled to mean 0 and variance 1, times weight, plus bias: (x - mean) / sqrt(var + eps) * weight + bias.

    weight, bias: numbers, None, or arrays that broadcast against x and fit the dtype of the computation: float32
    for x of float32 and narrower floats, else float64. axis: the axes of a row. Raises TypeMismatch for wider dtypes.
    """
    given, array = array_of(x, "layer_norm")
    kernel = layer_norm_kernel(array.dtype, _scale_of(weight, "weight"), _scale_of(bias, "bias"))
    further = tuple(each for each in (weight, bias) if each is not None)
    return kernel(as_lent(x, given), *further, eps, axis=axis, out=out)


# --- graphs --------------------------------------------------------------------------------------------------------


@lru_cache(64)
def softmax_kernel(given: np.dtype[Any]) -> GraphKernel:
    """The kernel of softmax."""
    source, x, kind = _input(given, "softmax")
    power = unary("exp", x - _total("maximum", x))
    result = power * (1.0 / _total("add", power))
    return GraphKernel(KernelGraph("softmax", (source,), (("y", result.to(kind).expr),)))


@lru_cache(64)
def log_softmax_kernel(given: np.dtype[Any]) -> GraphKernel:
    """The kernel of log_softmax."""
    source, x, kind = _input(given, "log_softmax")
    greatest = _total("maximum", x)
    result = (x - greatest) - unary("log", _total("add", unary("exp", x - greatest)))
    return GraphKernel(KernelGraph("log_softmax", (source,), (("y", result.to(kind).expr),)))


@lru_cache(256)
def layer_norm_kernel(given: np.dtype[Any], weight: Scale = None, bias: Scale = None) -> GraphKernel:
    """The kernel of layer_norm; its inputs are x, weight and bias if present, and eps."""
    source, x, kind = _input(given, "layer_norm")
    count = Term(Count(INT64)).to(x.dtype)
    far = x - _total("add", x) / count
    eps = Input("eps", x.dtype)
    result = far * (1.0 / sqrt(_total("add", far * far) / count + Term(eps)))
    inputs = [source]
    for name, scale in (("weight", weight), ("bias", bias)):
        if scale is not None:
            inputs.append(Input(name, _held(scale, name, source.type, x.dtype)))
            value = Term(inputs[-1]).to(x.dtype)
            result = result * value if name == "weight" else result + value
    return GraphKernel(KernelGraph("layer_norm", (*inputs, eps), (("y", result.to(kind).expr),)))


def _input(given: np.dtype[Any], name: str) -> tuple[Input, Term, DType]:
    """The input x, its elements as they are computed with, and the dtype of the result."""
    row = ordered(given, name)
    kind = row if row.is_float else FLOAT64
    source = Input("x", row)
    return source, Term(source).to(compute_type(kind)), kind


def _scale_of(value: object, name: str) -> Scale:
    """What the kernel needs to know of weight or bias. Raises UnsupportedArgument."""
    if value is None:
        return None
    if is_number(value):
        return "number"
    if isinstance(value, tuple):
        raise UnsupportedArgument("layer_norm", name, "tuple", "axis is the keyword axis=, not an argument here").at()
    return array_of(value, "layer_norm", name)[1].dtype


def _held(scale: np.dtype[Any] | Literal["number"], name: str, row: DType, computed: DType) -> DType:
    """The dtype of weight or bias. Raises UnsupportedDtype, NotReducible, and TypeMismatch for one that is too wide."""
    if scale == "number":
        return computed
    found = row_of(scale, "layer_norm", name)
    if found.is_complex:
        raise NotReducible("layer_norm", found.name, f"{name} must be real; pass {name}.real").at()
    if promote(found, computed) != computed:
        reason = f"x of {row} is computed in {computed}, which does not hold it"
        cure = f"convert it first, e.g. {name}.astype('{computed}')"
        raise TypeMismatch("layer_norm", name, found.name, computed.name, reason, cure).at()
    return found


def _total(op: str, value: Term) -> Term:
    return Term(Reduce(op, value.expr, scalar_type(value.expr)))
