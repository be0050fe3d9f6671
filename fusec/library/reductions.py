"""The reductions that are built in, named and called as NumPy's and the Array API's.

Sums and products of small integers and bools accumulate in int64 or uint64 and wrap; float16 and bfloat16 accumulate in
float32 and are rounded once. Results without axes are NumPy scalars. A nan among the elements is the result, but
of functions named nan...; these give nan where no number is left.
"""

from __future__ import annotations

from typing import Any, SupportsIndex

from fusec.arguments.annotations import Arrays, Axes
from fusec.arguments.operands import is_number
from fusec.dispatch.arguments import array_of
from fusec.errors.reductions import UnknownOrder
from fusec.library import arguments, dtype_rules
from fusec.library.arguments import Dtype, Number
from fusec.library.documentation import built_in

# --- sums and products ---------------------------------------------------------------------------------------------

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "logsumexp",
    "max",
    "mean",
    "mean_var",
    "min",
    "minmax",
    "mulsum",
    "nanargmax",
    "nanargmin",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "norm",
    "prod",
    "ptp",
    "std",
    "sum",
    "var",
    "vecdot",
]


@built_in
def sum(  # noqa: A001 - NumPy's name
    x: Arrays,
    axis: Axes = None,
    dtype: Dtype = None,
    out: Any = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: Arrays = True,
) -> Any:
    """The sum of elements."""
    return arguments.total("sum", "sum", x, axis, dtype, out, keepdims, initial, where)


@built_in
def prod(
    x: Arrays,
    axis: Axes = None,
    dtype: Dtype = None,
    out: Any = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: Arrays = True,
) -> Any:
    """The product of elements."""
    return arguments.total("prod", "prod", x, axis, dtype, out, keepdims, initial, where)


@built_in
def nansum(
    x: Arrays,
    axis: Axes = None,
    dtype: Dtype = None,
    out: Any = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: Arrays = True,
) -> Any:
    """The sum of elements that are not nan."""
    return arguments.total("nansum", "sum", x, axis, dtype, out, keepdims, initial, where, skips_nan=True)


@built_in
def nanprod(
    x: Arrays,
    axis: Axes = None,
    dtype: Dtype = None,
    out: Any = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: Arrays = True,
) -> Any:
    """The product of elements that are not nan."""
    return arguments.total("nanprod", "prod", x, axis, dtype, out, keepdims, initial, where, skips_nan=True)


@built_in
def mulsum(
    x: Arrays, y: Arrays, axis: Axes = None, dtype: Dtype = None, out: Any = None, *, keepdims: bool = False
) -> Any:
    """The sum of x * y, in one pass."""
    return arguments.product("mulsum", x, y, axis, dtype, out, keepdims)


@built_in
def vecdot(x: Arrays, y: Arrays, axis: SupportsIndex = -1, out: Any = None, *, keepdims: bool = False) -> Any:
    """The dot product along an axis, of the conjugate of x if that is complex, in the dtype of both together."""
    return arguments.product("vecdot", x, y, axis, None, out, keepdims)


@built_in
def count_nonzero(x: Arrays, axis: Axes = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """How many elements are not zero, int64; nan is not."""
    return arguments.truth("count_nonzero", x, axis, out, keepdims, True)


# --- truth ---------------------------------------------------------------------------------------------------------


@built_in
def any(x: Arrays, axis: Axes = None, out: Any = None, *, keepdims: bool = False, where: Arrays = True) -> Any:  # noqa: A001
    """Whether any element is not zero."""
    return arguments.truth("any", x, axis, out, keepdims, where)


@built_in
def all(x: Arrays, axis: Axes = None, out: Any = None, *, keepdims: bool = False, where: Arrays = True) -> Any:  # noqa: A001
    """Whether no element is zero."""
    return arguments.truth("all", x, axis, out, keepdims, where)


# --- extremes ------------------------------------------------------------------------------------------------------


@built_in
def min(  # noqa: A001
    x: Arrays,
    axis: Axes = None,
    out: Any = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: Arrays = True,
) -> Any:
    """The least element; -0.0 is less than 0.0. initial: takes part in every total; needed for `where`."""
    return arguments.extreme("min", "min", x, axis, out, keepdims, initial, where)


@built_in
def max(  # noqa: A001
    x: Arrays,
    axis: Axes = None,
    out: Any = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: Arrays = True,
) -> Any:
    """The greatest element; 0.0 is greater than -0.0. initial: takes part in every total; needed for `where`."""
    return arguments.extreme("max", "max", x, axis, out, keepdims, initial, where)


@built_in
def nanmin(
    x: Arrays,
    axis: Axes = None,
    out: Any = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: Arrays = True,
) -> Any:
    """The least element that is not nan."""
    return arguments.extreme("nanmin", "min", x, axis, out, keepdims, initial, where, skips_nan=True)


@built_in
def nanmax(
    x: Arrays,
    axis: Axes = None,
    out: Any = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: Arrays = True,
) -> Any:
    """The greatest element that is not nan."""
    return arguments.extreme("nanmax", "max", x, axis, out, keepdims, initial, where, skips_nan=True)


@built_in
def minmax(x: Arrays, axis: Axes = None, out: Any = None, *, keepdims: bool = False) -> tuple[Any, Any]:
    """The least and the greatest element, in one pass."""
    found = arguments.extreme("minmax", "minmax", x, axis, out, keepdims, None, True)
    assert isinstance(found, tuple), "two outputs"
    return found


@built_in
def ptp(x: Arrays, axis: Axes = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """The greatest element less the least, in one pass; integers wrap."""
    return arguments.extreme("ptp", "ptp", x, axis, out, keepdims, None, True)


@built_in
def argmin(x: Arrays, axis: SupportsIndex | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """The place of the least element, of the first among equals, int64; nan counts as less than all numbers."""
    return arguments.place("argmin", x, axis, out, keepdims, skips_nan=False)


@built_in
def argmax(x: Arrays, axis: SupportsIndex | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """The place of the greatest element, of the first among equals, int64; nan counts as greater than all numbers."""
    return arguments.place("argmax", x, axis, out, keepdims, skips_nan=False)


@built_in
def nanargmin(x: Arrays, axis: SupportsIndex | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """The place of the least number, int64; raises OnlyNan (a ValueError) where there is none.

    On a device, where no call waits for its result, the place is -1 instead.
    """
    return arguments.place("argmin", x, axis, out, keepdims, skips_nan=True)


@built_in
def nanargmax(x: Arrays, axis: SupportsIndex | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """The place of the greatest number, int64; raises OnlyNan (a ValueError) where there is none.

    On a device, where no call waits for its result, the place is -1 instead.
    """
    return arguments.place("argmax", x, axis, out, keepdims, skips_nan=True)


# --- moments -------------------------------------------------------------------------------------------------------


@built_in
def mean(
    x: Arrays,
    axis: Axes = None,
    dtype: Dtype = None,
    out: Any = None,
    *,
    keepdims: bool = False,
    where: Arrays = True,
) -> Any:
    """The arithmetic mean; of integers and bools in float64."""
    return arguments.moments(("mean",), x, axis, dtype, out, keepdims, where, None)


@built_in
def nanmean(
    x: Arrays,
    axis: Axes = None,
    dtype: Dtype = None,
    out: Any = None,
    *,
    keepdims: bool = False,
    where: Arrays = True,
) -> Any:
    """The mean of elements that are not nan."""
    return arguments.moments(("mean",), x, axis, dtype, out, keepdims, where, None, skips_nan=True)


@built_in
def var(
    x: Arrays,
    axis: Axes = None,
    dtype: Dtype = None,
    out: Any = None,
    *,
    correction: float = 0,
    keepdims: bool = False,
    where: Arrays = True,
    ddof: float | None = None,
    mean: Arrays | None = None,
    **unknown: object,
) -> Any:
    """The variance: squared distances from the mean, summed and divided by the number of elements less `correction`."""
    correction = arguments.corrected("var", correction, ddof, unknown)
    return arguments.moments(("var",), x, axis, dtype, out, keepdims, where, correction, mean=mean)


@built_in
def std(
    x: Arrays,
    axis: Axes = None,
    dtype: Dtype = None,
    out: Any = None,
    *,
    correction: float = 0,
    keepdims: bool = False,
    where: Arrays = True,
    ddof: float | None = None,
    mean: Arrays | None = None,
    **unknown: object,
) -> Any:
    """The standard deviation, the root of `var`."""
    correction = arguments.corrected("std", correction, ddof, unknown)
    return arguments.moments(("std",), x, axis, dtype, out, keepdims, where, correction, mean=mean)


@built_in
def nanvar(
    x: Arrays,
    axis: Axes = None,
    dtype: Dtype = None,
    out: Any = None,
    *,
    correction: float = 0,
    keepdims: bool = False,
    where: Arrays = True,
    ddof: float | None = None,
    mean: Arrays | None = None,
    **unknown: object,
) -> Any:
    """The variance of elements that are not nan."""
    correction = arguments.corrected("nanvar", correction, ddof, unknown)
    return arguments.moments(("var",), x, axis, dtype, out, keepdims, where, correction, mean=mean, skips_nan=True)


@built_in
def nanstd(
    x: Arrays,
    axis: Axes = None,
    dtype: Dtype = None,
    out: Any = None,
    *,
    correction: float = 0,
    keepdims: bool = False,
    where: Arrays = True,
    ddof: float | None = None,
    mean: Arrays | None = None,
    **unknown: object,
) -> Any:
    """The standard deviation of elements that are not nan."""
    correction = arguments.corrected("nanstd", correction, ddof, unknown)
    return arguments.moments(("std",), x, axis, dtype, out, keepdims, where, correction, mean=mean, skips_nan=True)


@built_in
def mean_var(
    x: Arrays,
    axis: Axes = None,
    dtype: Dtype = None,
    out: Any = None,
    *,
    correction: float = 0,
    keepdims: bool = False,
    where: Arrays = True,
    ddof: float | None = None,
    **unknown: object,
) -> tuple[Any, Any]:
    """Mean and variance in one pass; `out` is a tuple of two arrays."""
    correction = arguments.corrected("mean_var", correction, ddof, unknown)
    found = arguments.moments(("mean", "var"), x, axis, dtype, out, keepdims, where, correction)
    assert isinstance(found, tuple), "two outputs"
    return found


# --- norms and logarithms ------------------------------------------------------------------------------------------


@built_in
def norm(
    x: Arrays,
    ord: float = 2,  # noqa: A002 - NumPy's name
    axis: Axes = None,
    dtype: Dtype = None,
    out: Any = None,
    *,
    keepdims: bool = False,
) -> Any:
    """A vector's norm: the `ord`-th root of the sum of absolute values to the power `ord`.

    ord: inf for the greatest absolute value, -inf for the least, 0 to count elements that are not zero. Squares are
    summed as they are: they overflow beyond the root of the largest number. Raises UnknownOrder.
    """
    if isinstance(ord, complex) or not is_number(ord):
        raise UnknownOrder(repr(ord)).at()
    given, array = array_of(x, "norm")
    kernel = dtype_rules.norm(ord, array.dtype, arguments.named(dtype), arguments.dtype_of(out))
    numbers = () if ord in dtype_rules.NORMS else (ord,)
    return arguments.run(kernel, (given, *numbers), out, axis, keepdims)


@built_in
def logsumexp(x: Arrays, axis: Axes = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """The logarithm of the sum of exp(x), in one pass, without overflow; -inf for no elements."""
    given, array = array_of(x, "logsumexp")
    return arguments.run(dtype_rules.logsumexp(array.dtype, arguments.dtype_of(out)), (given,), out, axis, keepdims)
