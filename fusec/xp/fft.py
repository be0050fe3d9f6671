"""Discrete Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from fusec.xp.array import Array
from fusec.xp.calls import DType, Operand, array_of, call
from fusec.xp.creation import made
from fusec.xp.documentation import composed, documented
from fusec.xp.numpy_names import fallback
from fusec.xp.signatures import repeated

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


class TransformFunction(Protocol):
    """A transform along one axis."""

    def __call__(self, x: Operand, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array: ...


class TransformOfAxes(Protocol):
    """A transform along several axes."""

    def __call__(
        self, x: Operand, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
    ) -> Array: ...


def _along_one(name: str, sentence: str, example: str, result: str) -> TransformFunction:
    function = getattr(np.fft, name)

    def transform(x: Operand, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
        x = array_of(x)
        return call(function, x, n=n, axis=normalize_axis_index(axis, x.ndim), norm=norm)

    return cast("TransformFunction", _public(transform, name, sentence, example, result))


def _along_several(name: str, sentence: str, example: str, result: str) -> TransformOfAxes:
    function = getattr(np.fft, name)

    def transform(
        x: Operand, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
    ) -> Array:
        if s is not None and axes is None:
            axes = range(-len(s), 0)
        return call(function, x, s=s, axes=None if axes is None else tuple(axes), norm=norm)

    return cast("TransformOfAxes", _public(transform, name, sentence, example, result))


def _public(transform: Any, name: str, sentence: str, example: str, result: str) -> Callable[..., Array]:
    transform.__name__ = transform.__qualname__ = name
    names = transform.__code__.co_varnames[: transform.__code__.co_argcount]
    shown = f"xp.fft.{name}(xp.asarray({example}))"
    transform.__doc__ = composed(f"{sentence}\n\n>>> {shown}\nArray({result})", names)
    return repeated(transform)  # type: ignore[no-any-return]


fft = _along_one("fft", "The transform.", "[1.0, 1.0]", "[2.+0.j, 0.+0.j]")
ifft = _along_one("ifft", "The inverse of fft.", "[2.0, 0.0]", "[1.+0.j, 1.+0.j]")
rfft = _along_one("rfft", "The half of the transform of real x that tells all.", "[1.0, 1.0]", "[2.+0.j, 0.+0.j]")
irfft = _along_one("irfft", "The inverse of rfft; the usual n is even.", "[2.0, 0.0]", "[1., 1.]")
hfft = _along_one("hfft", "The real transform of half of a Hermitian x.", "[1.0, 0.0]", "[1., 1.]")
ihfft = _along_one("ihfft", "The inverse of hfft.", "[1.0, 1.0]", "[1.-0.j, 0.-0.j]")
fftn = _along_several("fftn", "The transform along several axes.", "[[4.0]]", "[[4.+0.j]]")
ifftn = _along_several("ifftn", "The inverse of fftn.", "[[4.0]]", "[[4.+0.j]]")
rfftn = _along_several("rfftn", "rfft along the last of the axes, fft along the others.", "[[4.0]]", "[[4.+0.j]]")
irfftn = _along_several("irfftn", "The inverse of rfftn; the last s is usually even.", "[[4.0, 0.0]]", "[[2., 2.]]")


@documented
def fftfreq(n: int, /, d: float = 1.0, *, dtype: DType = None, device: Any = None) -> Array:
    """The frequencies of the elements of fft.

    n: how many elements. d: the distance of two samples.

    >>> xp.fft.fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25])
    """
    return _frequencies(np.fft.fftfreq, n, d, dtype, device)


@documented
def rfftfreq(n: int, /, d: float = 1.0, *, dtype: DType = None, device: Any = None) -> Array:
    """The frequencies of the elements of rfft.

    n: how many elements the real array has. d: the distance of two samples.

    >>> xp.fft.rfftfreq(4)
    Array([0.  , 0.25, 0.5 ])
    """
    return _frequencies(np.fft.rfftfreq, n, d, dtype, device)


def _frequencies(function: Callable[..., Any], n: int, d: float, dtype: DType, device: Any) -> Array:
    return made(function, device, n, d).astype(float if dtype is None else dtype, copy=False)


@documented
def fftshift(x: Operand, /, axes: int | Sequence[int] | None = None) -> Array:
    """The elements moved so that frequency 0 is in the middle.

    axes: along which, an integer or several; None for all.

    >>> xp.fft.fftshift(xp.asarray([0, 1, -2, -1]))
    Array([-2, -1,  0,  1])
    """
    return call(np.fft.fftshift, x, axes=axes)


@documented
def ifftshift(x: Operand, /, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of fftshift.

    axes: along which, an integer or several; None for all.

    >>> xp.fft.ifftshift(xp.asarray([-2, -1, 0, 1]))
    Array([ 0,  1, -2, -1])
    """
    return call(np.fft.ifftshift, x, axes=axes)


def __getattr__(name: str) -> Any:
    return fallback(name, __name__, np.fft, "fft.", __all__)
