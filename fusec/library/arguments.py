"""The arguments of built-in reductions: arrays, masks, numbers and axes; and the call of their kernel."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike

from fusec.arguments.operands import Array, is_number, outputs_of, scalars_of
from fusec.arguments.scalars import encode
from fusec.arguments.signature import join
from fusec.dispatch.arguments import array_of
from fusec.dispatch.axes import plain_axis
from fusec.dispatch.axis_spec import Along, Axis
from fusec.dispatch.planned_axis import AxisKernel
from fusec.dispatch.reductions import UFUNCS
from fusec.errors.arguments import UnknownKeyword, WrongNumberOfOutputs
from fusec.errors.reductions import (
    ContractedAxis,
    CorrectionTwice,
    KeepdimsNotBool,
    NoPosition,
    NotOneAxis,
    NotOneNumber,
    OnlyNan,
    WhereNotBool,
    WhereTooLarge,
    WhereWithoutInitial,
    axis_outside,
)
from fusec.library import dtype_rules
from fusec.library.dates import Dated

Dtype = DTypeLike | None
Number = bool | int | float | complex
Given = TypeVar("Given")
SHORT_INDEX = 1 << 31  # elements whose positions int32 holds


def named(dtype: Dtype) -> np.dtype[Any] | None:
    """The requested dtype."""
    return None if dtype is None else np.dtype(dtype)


def dtype_of(out: object) -> np.dtype[Any] | None:
    """The dtype of a given output; None for an output that is not an array."""
    given = out[0] if isinstance(out, (tuple, list)) and out else out
    return None if given is None or is_number(given) else array_of(given, "out")[1].dtype


def _masked(where: object, array: Array, name: str) -> tuple[object, ...]:
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


def _numbers(kernel: AxisKernel | Dated, array: Array, keyword: str, value: object) -> tuple[object, ...]:
    """The number as an argument, none if there is none; refused if it does not fit, where no kernel would look."""
    if value is None:
        return ()
    if not array.size and not isinstance(kernel, Dated):
        (dtype,) = (param.dtype for param in kernel.in_params if param.name == keyword)
        assert dtype is not None, "formulas know the types of their numbers"
        encode(value, dtype, keyword, kernel.name)
    return (value,)


def _number(value: Given, name: str, keyword: str, *, needed: bool = False) -> Given:
    """A number as it is, an array without axes as the number it holds. Raises NotOneNumber."""
    if is_number(value) or (value is None and not needed):
        return value
    if isinstance(value, np.ndarray) and not value.ndim:
        return cast("Given", value[()])
    kind = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
    given = "None" if value is None else kind
    cure = "add an array to the result instead" if keyword == "initial" else "pass a Python or NumPy number"
    raise NotOneNumber(name, keyword, given, cure).at()


def corrected(name: str, correction: float, ddof: float | None, unknown: Mapping[str, object]) -> float:
    """The correction of the number of elements, under either name. Raises CorrectionTwice, and UnknownKeyword."""
    for keyword in unknown:
        takes = "a call takes axis=, dtype=, out=, correction=, ddof=, keepdims=, mean= and where="
        raise UnknownKeyword(name, keyword, takes).at()
    if ddof is None:
        return correction
    if correction != 0:
        raise CorrectionTwice(name).at()
    return ddof


def plain_keepdims(keepdims: object, name: str) -> bool:
    """Whether axes are kept: a bool, or an integer as one. Raises KeepdimsNotBool."""
    if isinstance(keepdims, np.bool_):
        return bool(keepdims)
    try:
        return bool(operator.index(keepdims))  # type: ignore[arg-type]
    except TypeError as reason:
        raise KeepdimsNotBool(name, repr(keepdims)).at() from reason


def run(
    kernel: AxisKernel | Dated,
    args: tuple[object, ...],
    out: object,
    axis: Axis,
    keepdims: bool,
    *,
    scalars: bool = True,
) -> object:
    """The output, or a tuple of several; new ones without axes as NumPy `scalars`. Raises WrongNumberOfOutputs."""
    if out is not None:
        count = len(out) if isinstance(out, (tuple, list)) else 1
        if count != kernel.nout:
            raise WrongNumberOfOutputs(kernel.name, kernel.nout, count, join(kernel.out_params)).at()
    if keepdims is not True and keepdims is not False:
        keepdims = plain_keepdims(keepdims, kernel.name)
    if axis is not None and type(axis) is not int:
        axis = plain_axis(axis)
    quick = kernel.quick.get((axis, keepdims, out is not None))
    found: Any = kernel.run(args, out, Along(axis, keepdims)) if quick is None else quick(*args, *outputs_of(out))
    if found.__class__ is tuple:
        found = found if kernel.nout > 1 else found[0]
        return scalars_of(found) if scalars and out is None else found
    return found[()] if scalars and found.__class__ is np.ndarray and not found.ndim and out is None else found


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
    kernel = dtype_rules.total(
        name, rule, array.dtype, named(dtype), dtype_of(out), starts=initial is not None, masked=bool(mask),
        skips_nan=skips_nan,
    )  # fmt: skip
    return run(kernel, (given, *mask, *_numbers(kernel, array, "initial", initial)), out, axis, keepdims)


def product(name: str, x: object, y: object, axis: Axis, dtype: Dtype, out: object, keepdims: bool) -> object:
    """A sum of products."""
    (given, left), (other, right) = array_of(x, name), array_of(y, name, "y")
    if name == "vecdot":
        axis = _contracted(name, left.shape, right.shape, axis)
    kernel = dtype_rules.product(name, left.dtype, right.dtype, named(dtype), dtype_of(out))
    return run(kernel, (given, other), out, axis, keepdims)


def _contracted(name: str, left: tuple[int, ...], right: tuple[int, ...], axis: Axis) -> int:
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


def truth(name: str, x: object, axis: Axis, out: object, keepdims: bool, where: object) -> object:
    """Whether any or all elements are not zero, or how many."""
    given, array = array_of(x, name)
    mask = _masked(where, array, name)
    kernel = dtype_rules.truth(name, array.dtype, dtype_of(out), masked=bool(mask))
    return run(kernel, (given, *mask), out, axis, keepdims)


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
    """The minimum, the maximum, both, or their difference."""
    given, array = array_of(x, name)
    mask = _masked(where, array, name)
    initial = _number(initial, name, "initial")
    if mask and initial is None:
        raise WhereWithoutInitial({"nanmin": "fmin", "nanmax": "fmax"}.get(name, UFUNCS[rule])).at()
    kernel = dtype_rules.extreme(
        name, rule, array.dtype, dtype_of(out), starts=initial is not None, masked=bool(mask), skips_nan=skips_nan
    )
    return run(kernel, (given, *mask, *_numbers(kernel, array, "initial", initial)), out, axis, keepdims)


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
    mean: object = None,
) -> object:
    """Means and variances. mean: a mean that is already known."""
    name = ("nan" if skips_nan else "") + "_".join(outputs)
    given, array = array_of(x, name)
    mask = _masked(where, array, name)
    if outputs != ("mean",):
        correction = _number(correction, name, "correction", needed=True)
    means: tuple[object, ...] = ()
    about = None
    if mean is not None:
        if is_number(mean) and not isinstance(mean, np.generic):  # adapts to x, as Python's numbers do
            mean = np.asarray(mean, np.result_type(array.dtype, mean, 0.0))  # type: ignore[arg-type]
        known, seen = array_of(mean, name, "mean")
        means, about = (known,), seen.dtype
    kernel = dtype_rules.moments(
        outputs, array.dtype, named(dtype), dtype_of(out), about=about, masked=bool(mask), skips_nan=skips_nan
    )
    numbers = _numbers(kernel, array, "correction", correction)
    return run(kernel, (given, *means, *mask, *numbers), out, axis, keepdims)


def place(name: str, x: object, axis: Axis, out: object, keepdims: bool, *, skips_nan: bool) -> object:
    """The position of an extreme element."""
    given, array = array_of(x, name)
    one, asked = plain_axis(axis), f"nan{name}" if skips_nan else name
    if isinstance(one, tuple):
        raise NotOneAxis(asked, repr(axis)).at()
    keepdims = plain_keepdims(keepdims, asked)
    if one is None and given is array and array.flags.c_contiguous and not keepdims:
        given = array = array.reshape(-1)  # one axis to walk in place of several that positions keep apart
    extent = _extent(array, one)
    if extent == 0 and array.size == 0 and (one is None or 0 not in np.delete(array.shape, one)):
        raise NoPosition(asked, array.shape).at()
    kernel = dtype_rules.place(name, array.dtype, dtype_of(out), short=extent < SHORT_INDEX, skips_nan=skips_nan)
    found = run(kernel, (given,), out, one, keepdims)
    if skips_nan and isinstance(found, (np.ndarray, np.generic)) and np.less(found, 0).any():
        raise OnlyNan(asked).at()
    return found


def _extent(array: Array, axis: int | None) -> int:
    """Elements of a total; of an axis that is none, whatever."""
    if axis is None:
        return array.size
    return array.shape[axis] if -array.ndim <= axis < array.ndim else 1
