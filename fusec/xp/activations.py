"""Functions of neural networks: activations, normalisations, losses."""

from __future__ import annotations

import numpy as np

from fusec.library import normalisation, reductions
from fusec.xp.array import Array
from fusec.xp.calls import Axis, DType, Operand, array_of, call, given
from fusec.xp.creation import arange
from fusec.xp.documentation import documented
from fusec.xp.elementwise import exp, maximum, tanh
from fusec.xp.searching import take_along_axis, where
from fusec.xp.special import erf, floating

__all__ = [
    "gelu",
    "gelu_tanh",
    "layer_norm",
    "leaky_relu",
    "log_softmax",
    "logsumexp",
    "one_hot",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softmax_cross_entropy",
]


@documented
def softmax(x: Operand, /, axis: Axis = -1) -> Array:
    """exp(x) divided by its sum along axes, without overflow between; the result has the shape of x.

    axis: an integer or a tuple of them, None for all.

    >>> xp.extra.softmax(xp.asarray([0.0, 0.0]))
    Array([0.5, 0.5])
    """
    return call(normalisation.softmax, floating(x), axis=axis)


@documented
def log_softmax(x: Operand, /, axis: Axis = -1) -> Array:
    """The logarithm of softmax, without overflow between; the result has the shape of x.

    axis: an integer or a tuple of them, None for all.

    >>> xp.round(xp.extra.log_softmax(xp.asarray([0.0, 0.0])), 4)
    Array([-0.6931, -0.6931])
    """
    return call(normalisation.log_softmax, floating(x), axis=axis)


@documented
def logsumexp(x: Operand, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """The logarithm of the sum of exp(x), without overflow between.

    >>> round(float(xp.extra.logsumexp(xp.asarray([1000.0, 1000.0]))), 4)
    1000.6931
    """
    return call(reductions.logsumexp, floating(x), **given(axis=axis, keepdims=keepdims))


@documented
def layer_norm(x: Operand, /, weight: Operand = None, bias: Operand = None, *, eps: float = 1e-5) -> Array:
    """(x - mean) / sqrt(variance + eps) along the last axis, times weight, plus bias; it has the shape of x.

    weight, bias: as long as the last axis; None for 1 and 0. eps: a small number, for rows that are all alike.

    >>> xp.extra.layer_norm(xp.asarray([[1.0, 3.0]]), eps=0)
    Array([[-1.,  1.]])
    """
    further = {name: array_of(each) for name, each in given(weight=weight, bias=bias).items()}
    return call(normalisation.layer_norm, floating(x), eps=eps, **further)


@documented
def one_hot(x: Operand, /, num_classes: int, *, dtype: DType = None, axis: int = -1) -> Array:
    """1 where the position along a new axis is the element, 0 elsewhere.

    x: integers; those outside of [0, num_classes) have no 1. num_classes: the extent of the new axis.
    axis: where the new axis is in the result.

    >>> xp.extra.one_hot(xp.asarray([2, 0]), 3)
    Array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    x = array_of(x)
    if x.dtype.kind not in "iu":
        raise TypeError(f"one_hot takes integers, not {x.dtype}")
    hot: Array = x._viewed(np.expand_dims, -1) == arange(num_classes)
    found = hot.astype(np.float64 if dtype is None else dtype)
    return found if axis == -1 else found._viewed(np.moveaxis, -1, axis)


@documented
def relu(x: Operand, /) -> Array:
    """The greater of x and 0.

    >>> xp.extra.relu(xp.asarray([-1.0, 2.0]))
    Array([0., 2.])
    """
    return maximum(x, 0)


@documented
def leaky_relu(x: Operand, /, slope: float) -> Array:
    """X where it is positive, slope * x elsewhere.

    slope: a number; libraries differ in what they take for usual.

    >>> xp.extra.leaky_relu(xp.asarray([-1.0, 2.0]), 0.5)
    Array([-0.5,  2. ])
    """
    x = array_of(x)
    return where(x > 0, x, slope * x)  # type: ignore[no-any-return]


@documented
def sigmoid(x: Operand, /) -> Array:
    """1 / (1 + exp(-x)).

    >>> xp.extra.sigmoid(xp.asarray([0.0]))
    Array([0.5])
    """
    x = floating(x)
    found: Array = 0.5 * tanh(0.5 * x) + 0.5
    return found


@documented
def silu(x: Operand, /) -> Array:
    """X / (1 + exp(-x)).

    >>> xp.extra.silu(xp.asarray([0.0]))
    Array([0.])
    """
    x = floating(x)
    found: Array = x / (1 + exp(-x))
    return found


@documented
def gelu(x: Operand, /) -> Array:
    """X times the probability that a standard normal number is less.

    >>> xp.extra.gelu(xp.asarray([0.0]))
    Array([0.])
    """
    x = floating(x)
    found: Array = 0.5 * x * (1 + erf(x * 0.5**0.5))
    return found


@documented
def gelu_tanh(x: Operand, /) -> Array:
    """Gelu as networks approximate it by tanh.

    >>> xp.extra.gelu_tanh(xp.asarray([0.0]))
    Array([0.])
    """
    x = floating(x)
    found: Array = 0.5 * x * (1 + tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x * x * x)))
    return found


@documented
def softmax_cross_entropy(x: Operand, labels: Operand, /) -> Array:
    """The negative logarithm of the softmax of the right class, for each line of the last axis.

    labels: the right classes, integers; the shape is that of x without the last axis.

    >>> xp.round(xp.extra.softmax_cross_entropy(xp.asarray([[0.0, 0.0]]), xp.asarray([1])), 4)
    Array([0.6931])
    """
    picked = take_along_axis(log_softmax(x), array_of(labels)._viewed(np.expand_dims, -1))
    found: Array = -picked._viewed(np.squeeze, -1)
    return found
