"""The arguments of built-in functions: arrays, masks, numbers and axes; and the call of their kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike

from fusec.arguments.operands import Array, is_foreign, is_number, outputs_of, scalars_of
from fusec.arguments.scalars import encode, flag
from fusec.arguments.signature import Parameter, join
from fusec.base import dtypes
from fusec.base.diagnostics import did_you_mean, instance_of
from fusec.dispatch.arguments import array_of
from fusec.dispatch.axes import plain_axis
from fusec.dispatch.interception import present
from fusec.dispatch.planned import Planned
from fusec.dispatch.spec import Axis, CallOptions
from fusec.errors.arguments import WrongNumberOfOutputs
from fusec.errors.language import ParameterType
from fusec.errors.reductions import (
    ContractedAxis,
    CorrectionTwice,
    NotOneAxis,
    NotOneNumber,
    WhereNotBool,
    WhereTooLarge,
    axis_outside,
)
from fusec.library import dtype_rules
from fusec.library.dates import Dated

Dtype = DTypeLike | None
Number = bool | int | float | complex
Given = TypeVar("Given")
SHORT_INDEX = 1 << 31  # elements whose positions int32 holds


def dtype_of(out: object, name: str) -> np.dtype[Any] | None:
    """The dtype of a given output; None for an output that is not an array."""
    given = out[0] if isinstance(out, (tuple, list)) and out else out
    return None if given is None or is_number(given) else array_of(given, name, "out")[1].dtype


def wanted(dtype: Dtype, out: object, name: str) -> dtype_rules.Wanted:
    """The dtypes that dtype= and out= ask for. Raises ParameterType."""
    return None if dtype is None else _named(dtype), dtype_of(out, name)


def _named(dtype: Dtype) -> np.dtype[Any]:
    """The dtype that dtype= names. Raises ParameterType."""
    try:
        return np.dtype(dtype)
    except TypeError:
        shown = dtype if isinstance(dtype, str) else repr(dtype)
        cure = f"{did_you_mean(shown, dtypes.BY_NAME)} dtype= takes a name such as 'float32', or a NumPy dtype".lstrip()
        raise ParameterType(shown, cure).at() from None


def as_lent(x: object, given: object) -> Any:
    """An argument as functions along rows take it: an array of another library as it is, others as they were read."""
    return x if given is not x and is_foreign(x) else given


def masked(where: object, array: Array, name: str) -> tuple[object, ...]:
    """The mask as an argument; none if all elements take part."""
    if where is True:
        return ()
    if where is None:
        raise WhereNotBool(name, "None").at()
    given, mask = array_of(where, name, "where")
    if mask.dtype != np.bool_:
        raise WhereNotBool(name, str(mask.dtype)).at()
    try:
        np.broadcast_to(mask, array.shape)
    except ValueError as problem:
        raise WhereTooLarge(mask.shape, array.shape).at() from problem
    return (given,)


def numbers(kernel: Planned | Dated, array: Array, keyword: str, value: object) -> tuple[object, ...]:
    """The number as an argument, none if there is none; refused if it does not fit, where no kernel would look."""
    if value is None:
        return ()
    if not array.size and not isinstance(kernel, Dated):
        (dtype,) = (param.dtype for param in kernel.in_params if param.name == keyword)
        assert dtype is not None, "formulas know the types of their numbers"
        encode(value, dtype, keyword, kernel.name)
    return (value,)


def number(value: Given, name: str, keyword: str, *, needed: bool = False) -> Given:
    """A number as it is, a zero-dimensional array as its number. Raises NotOneNumber."""
    if (value is None and not needed) or is_number(value):
        return value
    if isinstance(value, np.ndarray) and not value.ndim:
        return cast("Given", value[()])
    kind = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else instance_of(value)
    given = "None" if value is None else kind
    cure = "add an array to the result instead" if keyword == "initial" else "pass a Python or NumPy number"
    raise NotOneNumber(name, keyword, given, cure).at()


def corrected(name: str, correction: float, ddof: float | None) -> float:
    """The correction of the number of elements, under either name. Raises CorrectionTwice."""
    if ddof is None:
        return number(correction, name, "correction", needed=True)
    if correction != 0:
        raise CorrectionTwice(name).at()
    return number(ddof, name, "correction", needed=True)


def check_outputs(name: str, params: Sequence[Parameter], out: object) -> None:
    """Raise WrongNumberOfOutputs unless there is one for each parameter."""
    count = len(out) if isinstance(out, (tuple, list)) else 1
    if count != len(params):
        raise WrongNumberOfOutputs(name, len(params), count, join(params)).at()


def totals(kernel: Planned | Dated, args: tuple[object, ...], out: object, axis: Axis, keepdims: bool) -> Any:
    """The output, or a tuple of several; new ones without axes as arrays. Raises WrongNumberOfOutputs."""
    if out is not None:
        check_outputs(kernel.name, kernel.out_params, out)
    if keepdims is not True and keepdims is not False:
        keepdims = flag(keepdims, "keepdims", kernel.name)
    if axis is not None and type(axis) is not int:
        axis = plain_axis(axis)
    quick = kernel.quick.get((axis, keepdims, out is not None)) if present() is None else None
    found: Any = kernel.run(args, out, CallOptions(axis, keepdims)) if quick is None else quick(*args, *outputs_of(out))
    return found[0] if found.__class__ is tuple and kernel.nout == 1 else found


def run(kernel: Planned | Dated, args: tuple[object, ...], out: object, axis: Axis, keepdims: bool) -> Any:
    """The same with new outputs without axes as NumPy scalars."""
    found = totals(kernel, args, out, axis, keepdims)
    return scalars_of(found) if out is None else found


def contracted(name: str, left: tuple[int, ...], right: tuple[int, ...], axis: Axis) -> int:
    """The axis of a dot product, which both vectors lie along. Raises NotOneAxis, AxisOutOfBounds, ContractedAxis."""
    found = plain_axis(axis)
    if not isinstance(found, int):
        cure = "vectors lie along one axis; mulsum sums products over several"
        raise NotOneAxis(name, repr(axis), cure, "").at()
    for shape in (left, right):
        if not -len(shape) <= found < len(shape):
            raise axis_outside(name, found, shape).at()
    if found >= 0 and len(left) != len(right):
        problem, cure = (
            "the numbers of axes differ",
            "count the axis from the end: a negative axis is the same for both",
        )
        raise ContractedAxis(name, left, right, found, problem, cure).at()
    if left[found] != right[found]:
        problem, cure = f"{left[found]} and {right[found]} elements", "vectors have one length; mulsum broadcasts them"
        raise ContractedAxis(name, left, right, found, problem, cure).at()
    return found


def extent_of(array: Array, axis: int | None) -> int:
    """Elements of a total; of an axis that is none, whatever."""
    if axis is None:
        return array.size
    return array.shape[axis] if -array.ndim <= axis < array.ndim else 1
