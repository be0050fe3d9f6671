"""Reductions and scans of dates and durations, with their units and NaT.

What has a meaning is NumPy's own work, since no kernel knows units; anything else is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fusec.arguments.containers import Door, adopted
from fusec.arguments.layouts import Shape
from fusec.arguments.operands import Array, host_array, output_array, outputs_of
from fusec.arguments.signature import Parameter
from fusec.dispatch.axes import normalised
from fusec.dispatch.spec import CallOptions
from fusec.errors.arguments import OutShapeMismatch, UnsupportedDtype
from fusec.errors.reductions import DatesRefused

Given = np.dtype[Any]

OF_BOTH: Mapping[str, Callable[..., Any]] = {
    "min": np.min, "max": np.max, "ptp": np.ptp, "argmin": np.argmin, "argmax": np.argmax, "any": np.any, "all": np.all,
    "nanmin": np.fmin.reduce, "nanmax": np.fmax.reduce, "count_nonzero": np.count_nonzero,
    "minmax": lambda x, **options: (np.min(x, **options), np.max(x, **options)),
    "cummin": np.minimum.accumulate, "cummax": np.maximum.accumulate,
}  # fmt: skip
OF_DURATIONS: Mapping[str, Callable[..., Any]] = {
    "sum": np.sum, "mean": np.mean, "median": np.median, "cumsum": np.cumsum, "cumulative_sum": np.cumsum,
}  # fmt: skip


class Dated:
    """A built-in function for an array of dates or durations, called like the kernels of `arguments.run`.

    masked, starts: after the array come its where= and its initial=.
    """

    def __init__(self, name: str, given: Given, *, masked: bool = False, starts: bool = False) -> None:
        self.name, self.masked, self.starts = name, masked, starts
        self.function = function_of(name, given)
        self.quick: dict[object, Callable[..., object]] = {}  # nothing is faster
        names = ("low", "high") if name == "minmax" else ("z",)
        self.nout, self.in_params = len(names), ()
        self.out_params = tuple(Parameter(each, "T", None) for each in names)

    def run(self, args: tuple[object, ...], out: object, call: CallOptions) -> tuple[object, ...]:
        """All results, or the given outputs. Raises DatesRefused for what NumPy refuses."""
        x, rest, options = host_array(args[0], "x", self.name), list(args[1:]), dict[str, object]()
        if self.masked:
            options["where"] = rest.pop(0)
        if self.starts:
            options["initial"] = rest.pop(0)
        axes: Any = normalised(self.name, call.axis, x.shape)
        if self.name in ("argmin", "argmax"):
            axes = call.axis
        options |= {"axis": axes, "keepdims": call.keepdims}
        found = self._computed(lambda: self.function(x, **options), str(x.dtype))
        results = found if self.nout > 1 else (found,)
        for target, result in zip(outputs_of(out), results, strict=False):
            self._store(result, target, str(x.dtype))
        return outputs_of(out) or results

    def __call__(self, given: object, *, axis: int | None, out: object = None) -> object:
        """A scan of host arrays, in the container of the argument."""

        def call(inputs: tuple[object, ...], outputs: tuple[object, ...]) -> tuple[object, ...]:
            x = host_array(inputs[0], "x", self.name)
            (along,) = normalised(self.name, axis, x.shape)
            targets = [output_array(each, "out", self.name) for each in outputs]
            options = {"out": targets[0]} if targets else {}
            found = self._computed(lambda: self.function(x, axis=along, **options), str(x.dtype))
            return outputs or (found,)

        return adopted(Door(self.name, ("x",), 1, call, elementwise=False), (given,), outputs_of(out))[0]

    def with_initial(self, x: Array, along: int, out: object) -> object:
        """A scan of durations with 0 before its first element."""
        first = np.zeros((*x.shape[:along], 1, *x.shape[along + 1 :]), x.dtype)
        found = np.concatenate([first, np.asarray(self(x, axis=along))], along)
        if out is None:
            return found
        self._store(found, out, str(x.dtype))
        return out

    def _store(self, found: Array, target: object, dtype: str) -> None:
        """Put a result into an output of its shape. Raises OutShapeMismatch, and DatesRefused for another unit."""
        array = output_of(found.shape, target, self.name)
        self._computed(lambda: np.copyto(array, found), dtype)

    def _computed(self, compute: Callable[[], Any], dtype: str) -> Any:
        try:
            return compute()
        except (TypeError, ValueError) as problem:
            raise DatesRefused(self.name, dtype, str(problem).splitlines()[0]).at() from problem


def output_of(shape: Shape, out: object, name: str, param: str = "out") -> Array:
    """The array given for results of a shape. Raises OutShapeMismatch for another shape."""
    array = output_array(out, param, name)
    if array.shape != shape:
        raise OutShapeMismatch(name, param, array.shape, shape).at()
    return array


def is_dated(given: Given) -> bool:
    """Whether a dtype holds dates or durations."""
    return given.kind in "mM"


def function_of(name: str, given: Given) -> Callable[..., Any]:
    """The function that computes it. Raises UnsupportedDtype for operations without a meaning."""
    if name in OF_BOTH:
        return OF_BOTH[name]
    if name in OF_DURATIONS and given.kind == "m":
        return OF_DURATIONS[name]
    cure = "dates and durations are compared; durations also have sums and means"
    if name in OF_DURATIONS:
        cure = "dates have no sum; subtract one, x - x.min(), and add it to the result"
    raise UnsupportedDtype(name, "x", str(given), cure).at()
