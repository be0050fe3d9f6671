"""The scans that are built in, named and called as NumPy's and the Array API's.

Sums and products of small integers and bools accumulate in int64 or uint64 and wrap; float16 and bfloat16 accumulate in
float32, and every element is rounded once. A nan is the result from its place on, as in NumPy's accumulate.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, SupportsIndex

import numpy as np

from fusec.arguments.annotations import Arrays
from fusec.arguments.containers import Door, adopted, overrides
from fusec.arguments.operands import Array, is_contained, outputs_of, wrapper_of
from fusec.base import locks
from fusec.base.dtypes import BOOL, FLOAT64, compute_type
from fusec.dispatch.arguments import array_of
from fusec.dispatch.axes import normalised, plain_axis
from fusec.dispatch.engine import is_on_device
from fusec.errors import FusecError
from fusec.errors.reductions import AxisNeeded, AxisNotInteger
from fusec.kernels.scan_kernel import ScanKernel
from fusec.library.arguments import Dtype, as_lent, wanted
from fusec.library.dates import Dated, is_dated, output_of
from fusec.library.documentation import family
from fusec.library.dtype_rules import WIDE, Given, Wanted, ordered, result_types, row_of

Scanning = ScanKernel | Dated

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "logcumsumexp"]

POWERS = """
struct Powers { REAL top; REAL sum; };
__device__ REAL anchor(REAL top) { return isfinite(top) ? top : (REAL)0; }
__device__ Powers joined(Powers a, Powers b) {
    Powers both;
    both.top = maximum(a.top, b.top);
    REAL zero = anchor(both.top), left = anchor(a.top) - zero, right = anchor(b.top) - zero;
    REAL power = exp(minimum(left + right, (REAL)0));
    both.sum = left == 0 ? a.sum + b.sum * power : a.sum * power + b.sum;
    return both;
}
__device__ Powers single(REAL x) {
    Powers made;
    made.top = x;
    made.sum = isfinite(x) ? (REAL)1 : exp(x);
    return made;
}"""
"""A sum of powers as ``sum * exp(anchor(top))``, whose greatest term is 1 unless it is 0 or infinite. Of two sums, the
one with the greater top keeps its anchor; that of a sum of 0 may be the greater one, and then it does not matter."""


RUNNING = {"cumsum": ("+", 0), "cumprod": ("*", 1), "cumulative_sum": ("+", 0), "cumulative_prod": ("*", 1)}
"""The op of a running total, and what it starts from."""


@family
def _total(name: str, x: Arrays, axis: SupportsIndex | None = None, dtype: Dtype = None, out: Any = None) -> Any:
    return _scanned(name, lambda own: _running(name, own, wanted(dtype, out, name)), x, axis, out)


cumsum = _total("cumsum", "The sums of all elements up to each one.")
cumprod = _total("cumprod", "The products of all elements up to each one.")


@family
def _standard(
    name: str,
    x: Arrays,
    /,
    *,
    axis: SupportsIndex | None = None,
    dtype: Dtype = None,
    out: Any = None,
    include_initial: bool = False,
) -> Any:
    given, array = array_of(x, name)
    if axis is None and array.ndim != 1:
        raise AxisNeeded(name, "None", array.ndim).at()
    kernel = _running(name, array.dtype, wanted(dtype, out, name))
    if not include_initial:
        return kernel(as_lent(x, given), axis=_along(axis), out=out)
    (along,) = normalised(name, _along(axis), array.shape)
    if isinstance(kernel, Dated):
        return kernel.with_initial(array, along, out)
    _, start = RUNNING[name]
    if is_on_device((given, *outputs_of(out))):
        with locks.lock:
            from fusec.library import cumulative_on_device

        return cumulative_on_device.with_initial(kernel, given, along, start, out)
    shape = (*array.shape[:along], array.shape[along] + 1, *array.shape[along + 1 :])
    (param,) = kernel.out_params
    assert param.dtype is not None, "a built-in scan declares its output"
    made = np.empty(shape, param.dtype.numpy) if out is None else output_of(shape, out, name, param.name)
    lead = (slice(None),) * along
    kernel(given, axis=along, out=made[(*lead, slice(1, None))])
    made[(*lead, slice(0, 1))] = start  # last: the output may be where the elements are
    if out is not None:
        return out
    wrap = wrapper_of((given,))
    return made if wrap is None else wrap(made)


AS_STANDARD = "axis: an integer; it may be omitted only if x has one dimension."
cumulative_sum = _standard("cumulative_sum", f"The Array API's `cumsum`.\n\n{AS_STANDARD}")
cumulative_prod = _standard("cumulative_prod", f"The Array API's `cumprod`.\n\n{AS_STANDARD}")


@family
def _along_axis(name: str, x: Arrays, axis: SupportsIndex | None = None, out: Any = None) -> Any:
    return _scanned(name, partial(_powers if name == "logcumsumexp" else _extreme, name), x, axis, out)


cummax = _along_axis("cummax", "The greatest of all elements up to each one, as NumPy's ``maximum.accumulate``.")
cummin = _along_axis("cummin", "The least of all elements up to each one.")
logcumsumexp = _along_axis(
    "logcumsumexp", "The logarithms of the sums of exp(x) up to each element, without overflow; of integers in float64."
)


# --- arguments -----------------------------------------------------------------------------------------------------


def _scanned(name: str, made: Callable[[Any], Scanning], x: object, axis: SupportsIndex | None, out: object) -> object:
    """A scan along an axis, or of all elements in order if none is named. made: the kernel for a dtype."""
    given, array = array_of(x, name)
    kernel, along = made(array.dtype), _along(axis)
    if axis is not None or array.ndim == 1:
        return kernel(as_lent(x, given), axis=along, out=out)
    line = _along_one(given, array)
    if not is_contained(x) or overrides(x):  # labels of several axes say nothing about one
        return kernel(line, axis=along, out=out)

    def call(_: object, outputs: tuple[object, ...]) -> tuple[object, ...]:
        return (kernel(line, axis=along, out=outputs or None),)

    return adopted(Door(name, ("x",), 1, call, elementwise=False), (x,), outputs_of(out))[0]


def _along(axis: object) -> int | None:
    """The axis as the kernel takes it; a tuple is left for it to refuse. Raises AxisNotInteger."""
    if axis is None or type(axis) is int:
        return -1 if axis is None else axis
    try:
        return plain_axis(axis)  # type: ignore[return-value]
    except FusecError as problem:
        raise AxisNotInteger(repr(axis), "None or one integer", "a scan runs along one axis").at() from problem


def _along_one(given: object, array: Array) -> object:
    """The elements along one axis, of the same library if it has a way."""
    if given is array or hasattr(given, "reshape"):
        with suppress(ValueError):  # fusec's own arrays are never copied by that
            return given.reshape(-1)
    if not is_on_device((given,)):
        wrap = wrapper_of((given,))
        return array.reshape(-1) if wrap is None else wrap(array.reshape(-1))
    with locks.lock:
        from fusec.library import cumulative_on_device

    return cumulative_on_device.flat(given)


# --- kernels -------------------------------------------------------------------------------------------------------


@lru_cache(1024)
def _running(name: str, given: Given, wanted: Wanted) -> Scanning:
    if is_dated(given) and wanted[0] is None:
        return Dated(name, given)
    row, (op, start) = row_of(given, name), RUNNING[name]
    result, held = result_types(name, WIDE.get(row.kind, row), wanted)
    return ScanKernel(f"{row} x", f"{result} y", "x", f"a {op} b", "y = a", start, name, held.name)


@lru_cache(1024)
def _extreme(name: str, given: Given) -> Scanning:
    if is_dated(given):
        return Dated(name, given)
    row, upwards = ordered(given, name), name == "cummax"
    both = f"{'maximum' if upwards else 'minimum'}(a, b)" if row != BOOL else "a || b" if upwards else "a && b"
    held = compute_type(row) if row != BOOL else row
    return ScanKernel(f"{row} x", f"{row} y", "x", both, "y = a", None, name, held.name)


@lru_cache(1024)
def _powers(name: str, given: Given) -> ScanKernel:
    row = ordered(given, name)
    floating = row if row.is_float else FLOAT64
    real = compute_type(floating).name
    return ScanKernel(
        f"{row} x", f"{floating} y", f"single(({real})x)", "joined(a, b)", "y = log(a.sum) + anchor(a.top)", None,
        name, "Powers", POWERS.replace("REAL", real),
    )  # fmt: skip
