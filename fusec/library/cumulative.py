"""The scans that are built in, named and called as NumPy's and the Array API's.

Sums and products of small integers and bools accumulate in int64 or uint64 and wrap; float16 and bfloat16 accumulate in
float32, and every element is rounded once. A nan is the result from its place on, as in NumPy's accumulate.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, SupportsIndex

import numpy as np

from fusec.arguments.annotations import Arrays
from fusec.arguments.containers import Door, adopted, overrides
from fusec.arguments.layouts import Shape
from fusec.arguments.operands import Array, is_contained, is_foreign, output_array, outputs_of, wrapper_of
from fusec.base import locks
from fusec.base.dtypes import BOOL, FLOAT64, DType, compute_type
from fusec.dispatch.arguments import array_of
from fusec.dispatch.axes import normalised, plain_axis
from fusec.dispatch.planned import is_on_device
from fusec.errors import FusecError
from fusec.errors.arguments import OutShapeMismatch
from fusec.errors.reductions import AxisNotInteger
from fusec.errors.scans import AxisNeeded
from fusec.kernels.scan_kernel import ScanKernel
from fusec.library.arguments import Dtype, dtype_of, named
from fusec.library.dates import Dated, is_dated
from fusec.library.documentation import built_in
from fusec.library.dtype_rules import WIDE, Asked, Given, asked, ordered, row_of

Scanning = ScanKernel | Dated

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "logcumsumexp"]

POWERS = """
struct Powers { REAL top; REAL sum; };
__device__ REAL anchor(REAL top) { return isfinite(top) ? top : (REAL)0; }
__device__ Powers joined(Powers a, Powers b) {
    Powers both;
    both.top = maximum(a.top, b.top);
    REAL zero = anchor(both.top);
    both.sum = a.sum * exp(anchor(a.top) - zero) + b.sum * exp(anchor(b.top) - zero);
    return both;
}
__device__ Powers single(REAL x) {
    Powers made;
    made.top = x;
    made.sum = isfinite(x) ? (REAL)1 : exp(x);
    return made;
}"""
"""A sum of powers as ``sum * exp(anchor(top))``, whose greatest term is 1 unless it is 0 or infinite."""


@built_in
def cumsum(x: Arrays, axis: SupportsIndex | None = None, dtype: Dtype = None, out: Any = None) -> Any:
    """The sums of all elements up to each one."""
    return _total("cumsum", "+", 0, x, axis, dtype, out)


@built_in
def cumprod(x: Arrays, axis: SupportsIndex | None = None, dtype: Dtype = None, out: Any = None) -> Any:
    """The products of all elements up to each one."""
    return _total("cumprod", "*", 1, x, axis, dtype, out)


@built_in
def cumulative_sum(
    x: Arrays,
    /,
    *,
    axis: SupportsIndex | None = None,
    dtype: Dtype = None,
    out: Any = None,
    include_initial: bool = False,
) -> Any:
    """The Array API's `cumsum`: axis= may be left out for one dimension only."""
    return _standard("cumulative_sum", "+", 0, x, axis, dtype, out, include_initial)


@built_in
def cumulative_prod(
    x: Arrays,
    /,
    *,
    axis: SupportsIndex | None = None,
    dtype: Dtype = None,
    out: Any = None,
    include_initial: bool = False,
) -> Any:
    """The Array API's `cumprod`: axis= may be left out for one dimension only."""
    return _standard("cumulative_prod", "*", 1, x, axis, dtype, out, include_initial)


@built_in
def cummax(x: Arrays, axis: SupportsIndex | None = None, out: Any = None) -> Any:
    """The greatest of all elements up to each one, as NumPy's ``maximum.accumulate``."""
    return _scanned("cummax", lambda dtype: _extreme("cummax", dtype), x, axis, out)


@built_in
def cummin(x: Arrays, axis: SupportsIndex | None = None, out: Any = None) -> Any:
    """The least of all elements up to each one."""
    return _scanned("cummin", lambda dtype: _extreme("cummin", dtype), x, axis, out)


@built_in
def logcumsumexp(x: Arrays, axis: SupportsIndex | None = None, out: Any = None) -> Any:
    """The logarithms of the sums of exp(x) up to each element, without overflow; of integers in float64."""
    return _scanned("logcumsumexp", _powers, x, axis, out)


# --- arguments -----------------------------------------------------------------------------------------------------


def _scanned(name: str, made: Callable[[Any], Scanning], x: object, axis: SupportsIndex | None, out: object) -> object:
    """A scan along an axis, or of all elements in order if none is named. made: the kernel for a dtype."""
    given, array = array_of(x, name)
    kernel, along = made(array.dtype), _along(axis)
    if axis is not None or array.ndim == 1:
        return kernel(x if given is not x and is_foreign(x) else given, axis=along, out=out)
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
        return given.reshape(-1)
    if not is_on_device((given,), None, True):
        wrap = wrapper_of((given,))
        return array.reshape(-1) if wrap is None else wrap(array.reshape(-1))
    with locks.lock:
        from fusec.library import cumulative_on_device

    return cumulative_on_device.flat(given)


def _output(kernel: ScanKernel, shape: Shape, out: object) -> Array:
    """The output of one more element along an axis: the array given, or a new one, of the kernel's declared dtype."""
    (param,) = kernel.out_params
    assert param.dtype is not None, "a built-in scan declares its output"
    if out is None:
        return np.empty(shape, param.dtype.numpy)
    view = output_array(out, param.name, kernel.name)
    if view.shape != shape:
        raise OutShapeMismatch(kernel.name, param.name, view.shape, shape).at()
    return view


def _total(name: str, op: str, start: int, x: object, axis: SupportsIndex | None, dtype: Dtype, out: object) -> object:
    return _scanned(name, lambda own: _running(name, op, start, own, named(dtype), dtype_of(out)), x, axis, out)


def _standard(
    name: str,
    op: str,
    start: int,
    x: object,
    axis: SupportsIndex | None,
    dtype: Dtype,
    out: object,
    include_initial: bool,
) -> object:
    given, array = array_of(x, name)
    if axis is None and array.ndim != 1:
        raise AxisNeeded(name, "None", array.ndim).at()
    kernel = _running(name, op, start, array.dtype, named(dtype), dtype_of(out))
    if not include_initial:
        return kernel(x if given is not x and is_foreign(x) else given, axis=_along(axis), out=out)
    (along,) = normalised(name, _along(axis), array.shape)
    if isinstance(kernel, Dated):
        return kernel.with_initial(array, along, out)
    if is_on_device((given,), out, True):
        with locks.lock:
            from fusec.library import cumulative_on_device

        return cumulative_on_device.with_initial(kernel, given, array.shape, along, start, out)
    shape = (*array.shape[:along], array.shape[along] + 1, *array.shape[along + 1 :])
    made = _output(kernel, shape, out)
    lead = (slice(None),) * along
    kernel(given, axis=along, out=made[(*lead, slice(1, None))])
    made[(*lead, slice(0, 1))] = start  # last: the output may be where the elements are
    if out is not None:
        return out
    wrap = wrapper_of((given,))
    return made if wrap is None else wrap(made)


# --- kernels -------------------------------------------------------------------------------------------------------


@lru_cache(1024)
def _running(name: str, op: str, start: int, given: Given, dtype: Asked, out: Asked) -> ScanKernel | Dated:
    if is_dated(given) and dtype is None:
        return Dated(name, given)
    row = row_of(given, name)
    default = WIDE.get(row.kind, row)
    result = asked(name, default, dtype, out)
    held = compute_type(default if dtype is None else result)
    return _kernel(name, row, result, "x", f"a {op} b", held, start)


@lru_cache(1024)
def _extreme(name: str, given: Given) -> ScanKernel | Dated:
    if is_dated(given):
        return Dated(name, given)
    row = ordered(given, name)
    if row == BOOL:
        return _kernel(name, row, row, "x", "a || b" if name == "cummax" else "a && b", row)
    word = "maximum" if name == "cummax" else "minimum"
    return _kernel(name, row, row, "x", f"{word}(a, b)", compute_type(row))


@lru_cache(1024)
def _powers(given: Given) -> ScanKernel:
    row = ordered(given, "logcumsumexp")
    floating = row if row.is_float else FLOAT64
    real = compute_type(floating).name
    return ScanKernel(
        f"{row} x", f"{floating} y", f"single(({real})x)", "joined(a, b)", "y = log(a.sum) + anchor(a.top)", None,
        "logcumsumexp", "Powers", POWERS.replace("REAL", real),
    )  # fmt: skip


def _kernel(
    name: str, row: DType, result: DType, mapped: str, combined: str, held: DType, start: int | None = None
) -> ScanKernel:
    return ScanKernel(f"{row} x", f"{result} y", mapped, combined, "y = a", start, name, held.name)
