"""Arguments of built-in reductions: arrays, masks, numbers and axes; from there to a kernel, which runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike

from fusec import forking
from fusec.errors.arguments import UnknownKeyword, WrongNumberOfOutputs
from fusec.errors.reductions import (
    NoPosition,
    NotOneAxis,
    NotOneNumber,
    OnlyNan,
    WhereNotBool,
    WhereTooLarge,
    WhereWithoutInitial,
)
from fusec.operands import Array, host_array, is_number
from fusec.reductions import choosing
from fusec.reductions.binding import UFUNCS, Axis
from fusec.reductions.kernels import Reducing
from fusec.signature import join

Dtype = DTypeLike | None
Number = bool | int | float | complex
Given = TypeVar("Given")
SHORT_INDEX = 1 << 31  # elements whose positions int32 holds


def array_of(x: object, name: str) -> tuple[object, Array]:
    """The argument as a kernel takes it, and as an array to look at; numbers and lists become arrays.

    Of an array on a device the second has dtype and shape alone.
    """
    if isinstance(x, np.ndarray):
        return x, x
    if is_number(x) or isinstance(x, (list, tuple)):
        made = np.asarray(x)
        return made, made
    with forking.lock:
        from fusec.runtime import cuda

    if cuda.is_device_array(x):
        found = cuda.describe(x)
        return x, np.broadcast_to(np.empty((), found.dtype.numpy), found.shape)
    return x, host_array(x, "x", name)


def named(dtype: Dtype) -> np.dtype[Any] | None:
    """The dtype asked for."""
    return None if dtype is None else np.dtype(dtype)


def dtype_of(out: object) -> np.dtype[Any] | None:
    """The dtype of a given output; of one that is no array, none."""
    given = out[0] if isinstance(out, (tuple, list)) and out else out
    return None if given is None or is_number(given) else array_of(given, "out")[1].dtype


def _masked(where: object, array: Array, name: str) -> tuple[object, ...]:
    """The mask as an argument; none if all elements take part."""
    if where is True or where is None:
        return ()
    given, mask = array_of(where, name)
    if mask.dtype != np.bool_:
        raise WhereNotBool(name, str(mask.dtype)).at()
    try:
        np.broadcast_to(mask, array.shape)
    except ValueError as problem:
        raise WhereTooLarge(mask.shape, array.shape).at() from problem
    return (given,)


def _number(value: Given, name: str, keyword: str) -> Given:
    """A number as it is, an array without axes as the number it holds. Raises NotOneNumber."""
    if value is None or is_number(value):
        return value
    if isinstance(value, np.ndarray) and not value.ndim:
        return cast("Given", value[()])
    given = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
    cure = "add an array to the result instead" if keyword == "initial" else "pass a Python or NumPy number"
    raise NotOneNumber(name, keyword, given, cure).at()


def refuse(name: str, unknown: Mapping[str, object]) -> None:
    """Raise UnknownKeyword for keywords that are left over, with NumPy's `ddof` in mind."""
    for keyword in unknown:
        takes = "a call takes axis=, dtype=, out=, correction=, keepdims= and where="
        raise UnknownKeyword(name, keyword, "pass correction= instead" if keyword == "ddof" else takes).at()


def run(kernel: Reducing, args: tuple[object, ...], out: object, axis: Axis, keepdims: bool) -> object:
    """The output, or a tuple of several. Raises WrongNumberOfOutputs."""
    if out is not None:
        count = len(out) if isinstance(out, (tuple, list)) else 1
        if count != kernel.nout:
            raise WrongNumberOfOutputs(kernel.name, kernel.nout, count, join(kernel.out_params)).at()
    if axis is None or type(axis) is int:
        quick = kernel.quick.get((axis, keepdims, out is not None))
        if quick is not None:
            return quick(*args) if out is None else quick(*args, *(out if type(out) is tuple else (out,)))
    found = kernel.reduce(args, out, axis, keepdims, True)
    return found[0] if kernel.nout == 1 else found


def total(
    name: str,
    rule: str,
    x: object,
    axis: Axis,
    dtype: Dtype,
    out: object,
    keepdims: bool,
    initial: Number | None,
    where: object,
    *,
    skips_nan: bool = False,
) -> object:
    """A sum or product."""
    initial = _number(initial, name, "initial")
    given, array = array_of(x, name)
    mask = _masked(where, array, name)
    kernel = choosing.total(
        name, rule, array.dtype, named(dtype), dtype_of(out), starts=initial is not None, masked=bool(mask),
        skips_nan=skips_nan,
    )  # fmt: skip
    return run(kernel, (given, *mask, *(() if initial is None else (initial,))), out, axis, keepdims)


def product(name: str, x: object, y: object, axis: Axis, dtype: Dtype, out: object, keepdims: bool) -> object:
    """A sum of products."""
    (given, left), (other, right) = array_of(x, name), array_of(y, name)
    kernel = choosing.product(name, left.dtype, right.dtype, named(dtype), dtype_of(out))
    return run(kernel, (given, other), out, axis, keepdims)


def truth(name: str, x: object, axis: Axis, out: object, keepdims: bool, where: object) -> object:
    """Whether any or all elements are not zero, or how many."""
    given, array = array_of(x, name)
    mask = _masked(where, array, name)
    return run(choosing.truth(name, array.dtype, masked=bool(mask)), (given, *mask), out, axis, keepdims)


def extreme(
    name: str,
    rule: str,
    x: object,
    axis: Axis,
    out: object,
    keepdims: bool,
    initial: Number | None,
    where: object,
    *,
    skips_nan: bool = False,
) -> object:
    """The least or greatest element, both, or their distance."""
    given, array = array_of(x, name)
    mask = _masked(where, array, name)
    initial = _number(initial, name, "initial")
    if mask and initial is None:
        raise WhereWithoutInitial({"nanmin": "fmin", "nanmax": "fmax"}.get(name, UFUNCS[rule])).at()
    kernel = choosing.extreme(
        name, rule, array.dtype, starts=initial is not None, masked=bool(mask), skips_nan=skips_nan
    )
    return run(kernel, (given, *mask, *(() if initial is None else (initial,))), out, axis, keepdims)


def moments(
    outputs: tuple[str, ...],
    x: object,
    axis: Axis,
    dtype: Dtype,
    out: object,
    keepdims: bool,
    where: object,
    correction: float | None,
    *,
    skips_nan: bool = False,
) -> object:
    """Means and variances."""
    name = ("nan" if skips_nan else "") + "_".join(outputs)
    given, array = array_of(x, name)
    mask = _masked(where, array, name)
    correction = _number(correction, name, "correction")
    kernel = choosing.moments(outputs, array.dtype, named(dtype), dtype_of(out), masked=bool(mask), skips_nan=skips_nan)
    return run(kernel, (given, *mask, *(() if correction is None else (correction,))), out, axis, keepdims)


def place(name: str, x: object, axis: int | None, out: object, keepdims: bool, *, skips_nan: bool) -> object:
    """The place of an extreme element."""
    given, array = array_of(x, name)
    if isinstance(axis, (tuple, list)):
        raise NotOneAxis(name, repr(axis)).at()
    if axis is None and given is array and array.flags.c_contiguous and not keepdims:
        given = array = array.reshape(-1)  # one axis to walk in place of several that positions keep apart
    along = _extent(array, axis)
    if along == 0 and array.size == 0 and (axis is None or 0 not in np.delete(array.shape, axis)):
        raise NoPosition(name, array.shape).at()
    kernel = choosing.place(name, array.dtype, short=along < SHORT_INDEX, skips_nan=skips_nan)
    found = run(kernel, (given,), out, axis, keepdims)
    if skips_nan and isinstance(found, np.ndarray) and (found < 0).any():
        raise OnlyNan(f"nan{name}").at()
    return found


def _extent(array: Array, axis: object) -> int:
    """Elements of a total; of an axis that is none, whatever."""
    if axis is None:
        return array.size
    is_axis = isinstance(axis, (int, np.integer)) and -array.ndim <= axis < array.ndim
    return array.shape[axis] if is_axis else 1  # type: ignore[call-overload]
