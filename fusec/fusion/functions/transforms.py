"""Fourier transforms in fused functions, which NumPy computes between kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fusec.fusion.functions.libraries import Asked, LibraryFunction, Outcome, resized
from fusec.fusion.functions.moving import roll
from fusec.fusion.functions.reducing import normalised
from fusec.fusion.functions.routines import trace_of, traced
from fusec.fusion.functions.sharing import transform, transforms
from fusec.fusion.trace.tables import FUNCTIONS

SMALL = 2  # the most elements of an axis, in place of a size that is given; one element orders axes otherwise
_HALF = ("rfft", "ihfft")  # make half a spectrum, of real numbers
_WHOLE = ("irfft", "hfft")  # take half a spectrum


def _along_axis(name: str) -> Outcome:
    def outcome(asked: Asked) -> Any:
        given, n = asked.named, asked.example(asked.named.get("n"))
        if n is not None and n < 1:
            return asked.by_stand_ins()  # NumPy's error
        axis, norm = given.get("axis", -1), given.get("norm")
        shape = list(asked.example(given["a"]).shape)
        small = None if n is None else min(n, SMALL)
        found = asked.instead(asked.function, given["a"], n=small, axis=axis, norm=norm).by_stand_ins()
        shape[axis] = _length(name, shape[axis], n)
        return resized(found, shape)

    return outcome


def _length(name: str, extent: int, n: int | None) -> int:
    """How many elements a transform makes of an axis."""
    if name in _WHOLE:
        return 2 * (extent - 1) if n is None else n
    n = extent if n is None else n
    return n // 2 + 1 if name in _HALF else n


def _along_axes(name: str) -> Outcome:
    def outcome(asked: Asked) -> Any:
        given, sizes = asked.named, asked.example(asked.named.get("s"))
        shape = list(asked.example(given["a"]).shape)
        axes = given.get("axes", (-2, -1) if name.endswith("2") else None)
        if axes is None:
            axes = range(len(shape)) if sizes is None else range(-len(sizes), 0)
        axes = tuple(axes)
        if sizes is not None and (
            len(sizes) != len(axes) or any(each is None or each < -1 or not each for each in sizes)
        ):
            return asked.by_stand_ins()  # NumPy's error
        wanted: Sequence[int | None] = [None] * len(axes)
        small = None
        if sizes is not None:
            lengths = [shape[axis] if size == -1 else size for axis, size in zip(axes, sizes, strict=True)]
            wanted, small = lengths, tuple(min(size, SMALL) for size in lengths)
        found = asked.instead(asked.function, given["a"], s=small, axes=axes, norm=given.get("norm")).by_stand_ins()
        for axis, n in zip(axes[:-1], wanted, strict=False):
            shape[axis] = _length("fft", shape[axis], n)
        if axes:
            kind = name.rstrip("2n")
            shape[axes[-1]] = _length(kind, shape[axes[-1]], wanted[-1])
        return resized(found, shape)

    return outcome


def _shifted(sign: int) -> Callable[..., Any]:
    """np.fft.fftshift and its inverse."""

    def shift(x: Any, axes: Any = None) -> Any:
        x = traced(x, trace_of(x))
        along = normalised(axes, x.ndim)
        return roll(x, tuple(sign * (x.shape[at] // 2) for at in along), along)

    return shift


FUNCTIONS.update(
    {
        f"fft.{name}": LibraryFunction(
            called(name), f"np.fft.{name}", (0,), ("a",), outcome=kind(name), takes_sizes=True
        )
        for kind, called, names in (
            (_along_axis, transform, ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")),
            (_along_axes, transforms, ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")),
        )
        for name in names
    }
    | {"fft.fftshift": _shifted(1), "fft.ifftshift": _shifted(-1)}
)
