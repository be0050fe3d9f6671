"""The reductions that are built in, named and called as NumPy's and the Array API's.

Sums and products of small integers and bools accumulate in int64 or uint64 and wrap; float16 and bfloat16 accumulate in
float32 and are rounded once. Zero-dimensional results are NumPy scalars. A nan among the elements is the result, but
of functions named nan...; these give nan where no number is left.
"""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np

from fusec.arguments.annotations import Arrays, Axes
from fusec.arguments.operands import is_number
from fusec.arguments.scalars import flag
from fusec.dispatch.arguments import array_of, in_one_row
from fusec.dispatch.axes import plain_axis
from fusec.dispatch.reductions import UFUNCS
from fusec.errors.reductions import NoPosition, NotOneAxis, OnlyNan, UnknownOrder, WhereWithoutInitial
from fusec.library import arguments, dtype_rules
from fusec.library.arguments import Dtype, Number, dtype_of, masked, number, numbers, wanted
from fusec.library.documentation import built_in, family

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


# --- sums and products ---------------------------------------------------------------------------------------------


@family
def _total(
    name: str, x: Arrays, axis: Axes = None, dtype: Dtype = None, out: Any = None, *, keepdims: bool = False,
    initial: Number | None = None, where: Arrays = True,
) -> Any:  # fmt: skip
    initial = number(initial, name, "initial")
    given, array = array_of(x, name)
    mask = masked(where, array, name)
    starts, asked = initial is not None, wanted(dtype, out, name)
    kernel = dtype_rules.total(name, array.dtype, asked, starts=starts, masked=len(mask) > 0)
    return arguments.run(kernel, (given, *mask, *numbers(kernel, array, "initial", initial)), out, axis, keepdims)


sum = _total("sum", "The sum of elements.")  # noqa: A001 - NumPy's name
prod = _total("prod", "The product of elements.")
nansum = _total("nansum", "The sum of elements that are not nan.")
nanprod = _total("nanprod", "The product of elements that are not nan.")


@built_in
def mulsum(
    x: Arrays, y: Arrays, axis: Axes = None, dtype: Dtype = None, out: Any = None, *, keepdims: bool = False
) -> Any:
    """The sum of x * y, in one pass."""
    (given, left), (other, right) = array_of(x, "mulsum"), array_of(y, "mulsum", "y")
    kernel = dtype_rules.product("mulsum", left.dtype, right.dtype, wanted(dtype, out, "mulsum"))
    return arguments.run(kernel, (given, other), out, axis, keepdims)


@built_in
def vecdot(x: Arrays, y: Arrays, axis: SupportsIndex = -1, out: Any = None, *, keepdims: bool = False) -> Any:
    """The dot product along an axis, in the common dtype; complex x is conjugated.

    axis: an integer; negative ones count from the end.
    """
    (given, left), (other, right) = array_of(x, "vecdot"), array_of(y, "vecdot", "y")
    along = arguments.contracted("vecdot", left.shape, right.shape, axis)
    kernel = dtype_rules.product("vecdot", left.dtype, right.dtype, wanted(None, out, "vecdot"))
    return arguments.run(kernel, (given, other), out, along, keepdims)


# --- truth ---------------------------------------------------------------------------------------------------------


@family
def _truth(
    name: str, x: Arrays, axis: Axes = None, out: Any = None, *, keepdims: bool = False, where: Arrays = True
) -> Any:
    given, array = array_of(x, name)
    mask = masked(where, array, name)
    kernel = dtype_rules.truth(name, array.dtype, dtype_of(out, name), masked=len(mask) > 0)
    return arguments.run(kernel, (given, *mask), out, axis, keepdims)


any = _truth("any", "Whether any element is not zero.")  # noqa: A001
all = _truth("all", "Whether no element is zero.")  # noqa: A001


# --- extremes ------------------------------------------------------------------------------------------------------


@family
def _extreme(
    name: str, x: Arrays, axis: Axes = None, out: Any = None, *, keepdims: bool = False,
    initial: Number | None = None, where: Arrays = True,
) -> Any:  # fmt: skip
    given, array = array_of(x, name)
    mask = masked(where, array, name)
    initial = number(initial, name, "initial")
    if mask and initial is None:
        raise WhereWithoutInitial({"nanmin": "fmin", "nanmax": "fmax"}.get(name) or UFUNCS[name]).at()
    kernel = dtype_rules.extreme(
        name, array.dtype, dtype_of(out, name), starts=initial is not None, masked=len(mask) > 0
    )
    return arguments.run(kernel, (given, *mask, *numbers(kernel, array, "initial", initial)), out, axis, keepdims)


NEEDED = "initial: takes part in every total; needed for `where`."
min = _extreme("min", f"The least element; -0.0 is less than 0.0. {NEEDED}")  # noqa: A001
max = _extreme("max", f"The greatest element; 0.0 is greater than -0.0. {NEEDED}")  # noqa: A001
nanmin = _extreme("nanmin", "The least element that is not nan.")
nanmax = _extreme("nanmax", "The greatest element that is not nan.")


@built_in
def minmax(x: Arrays, axis: Axes = None, out: Any = None, *, keepdims: bool = False) -> tuple[Any, Any]:
    """The least and the greatest element, in one pass.

    out: a tuple of two arrays for the results; both are returned.
    """
    given, array = array_of(x, "minmax")
    kernel = dtype_rules.extreme("minmax", array.dtype, dtype_of(out, "minmax"))
    low, high = arguments.run(kernel, (given,), out, axis, keepdims)
    return low, high


@family
def _unmasked(name: str, x: Arrays, axis: Axes = None, out: Any = None, *, keepdims: bool = False) -> Any:
    given, array = array_of(x, name)
    rules = {"count_nonzero": dtype_rules.truth, "logsumexp": dtype_rules.logsumexp}
    kernel = rules.get(name, dtype_rules.extreme)(name, array.dtype, dtype_of(out, name))
    return arguments.run(kernel, (given,), out, axis, keepdims)


ptp = _unmasked("ptp", "The greatest element minus the least, in one pass; integers wrap.")
count_nonzero = _unmasked("count_nonzero", "The number of elements that are not zero, as int64; nan is not zero.")
logsumexp = _unmasked(
    "logsumexp", "The logarithm of the sum of exp(x), in one pass, without overflow; -inf for no elements."
)


@family
def _place(name: str, x: Arrays, axis: SupportsIndex | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
    given, array = array_of(x, name)
    one = plain_axis(axis)
    if isinstance(one, tuple):
        raise NotOneAxis(name, repr(axis)).at()
    keepdims = flag(keepdims, "keepdims", name)
    extent = arguments.extent_of(array, one)
    if extent == 0 and array.size == 0 and (one is None or 0 not in np.delete(array.shape, one)):
        raise NoPosition(name, array.shape).at()
    kernel = dtype_rules.place(name, array.dtype, dtype_of(out, name), short=extent < arguments.SHORT_INDEX)
    if one is None and not keepdims:
        given = in_one_row(given, array)  # one axis to walk in place of several that positions keep apart
    found = arguments.run(kernel, (given,), out, one, keepdims)
    if name.startswith("nan") and isinstance(found, (np.ndarray, np.generic)) and np.less(found, 0).any():
        raise OnlyNan(name).at()
    return found


argmin = _place(
    "argmin", "The position of the least element, the first among equals, as int64; nan counts as the least."
)
argmax = _place(
    "argmax",
    "The position of the greatest element, the first among equals, as int64; nan counts as the greatest.",
)
NO_NUMBER = """as int64; raises OnlyNan (a ValueError) where there is none.

On a device, where no call waits for its result, the position is -1 instead."""
nanargmin = _place("nanargmin", f"The position of the least number, {NO_NUMBER}")
nanargmax = _place("nanargmax", f"The position of the greatest number, {NO_NUMBER}")


# --- moments -------------------------------------------------------------------------------------------------------


def _moments(
    name: str, x: Arrays, axis: Axes = None, dtype: Dtype = None, out: Any = None, *, correction: float = 0,
    keepdims: bool = False, where: Arrays = True, ddof: float | None = None, mean: Arrays | None = None,
) -> Any:  # fmt: skip
    less = None if name.endswith("mean") else arguments.corrected(name, correction, ddof)
    given, array = array_of(x, name)
    mask, about = masked(where, array, name), None
    means: tuple[object, ...] = ()
    if mean is not None:
        if is_number(mean) and not isinstance(mean, np.generic):  # adapts to x, as Python's numbers do
            mean = np.asarray(mean, np.result_type(array.dtype, mean, 0.0))  # type: ignore[arg-type]
        known, seen = array_of(mean, name, "mean")
        means, about = (known,), seen.dtype
    kernel = dtype_rules.moments(name, array.dtype, wanted(dtype, out, name), masked=len(mask) > 0, about=about)
    further = numbers(kernel, array, "correction", less)
    return arguments.run(kernel, (given, *means, *mask, *further), out, axis, keepdims)


@family
def _mean(
    name: str, x: Arrays, axis: Axes = None, dtype: Dtype = None, out: Any = None, *, keepdims: bool = False,
    where: Arrays = True,
) -> Any:  # fmt: skip
    return _moments(name, x, axis, dtype, out, keepdims=keepdims, where=where)


mean = _mean("mean", "The arithmetic mean; of integers and bools in float64.")
nanmean = _mean("nanmean", "The mean of elements that are not nan.")

_spread = family(_moments)
var = _spread(
    "var",
    "The variance: the sum of squared distances from the mean, divided by the number of elements minus `correction`.",
)
std = _spread("std", "The standard deviation, the square root of `var`.")
nanvar = _spread("nanvar", "The variance of elements that are not nan.")
nanstd = _spread("nanstd", "The standard deviation of elements that are not nan.")


@built_in
def mean_var(
    x: Arrays, axis: Axes = None, dtype: Dtype = None, out: Any = None, *, correction: float = 0,
    keepdims: bool = False, where: Arrays = True, ddof: float | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Mean and variance, in one pass.

    out: a tuple of two arrays for the results; both are returned.
    """
    less = arguments.corrected("mean_var", correction, ddof)
    middle, spread = _moments("mean_var", x, axis, dtype, out, correction=less, keepdims=keepdims, where=where)
    return middle, spread


# --- norms ---------------------------------------------------------------------------------------------------------


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
    """The norm of a vector: the `ord`-th root of the sum of the absolute values to the power `ord`.

    ord: inf for the greatest absolute value, -inf for the least, 0 to count elements that are not zero. Squares are
    summed as they are: they overflow beyond the root of the largest number. Raises UnknownOrder.
    """
    if isinstance(ord, complex) or not is_number(ord):
        raise UnknownOrder(repr(ord)).at()
    given, array = array_of(x, "norm")
    kernel = dtype_rules.norm(ord, array.dtype, wanted(dtype, out, "norm"))
    return arguments.run(kernel, (given, *(() if ord in dtype_rules.NORMS else (ord,))), out, axis, keepdims)
