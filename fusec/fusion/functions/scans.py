"""NumPy's cumulative functions under fuse: scans of fusec's own, each a kernel between the others."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fusec.fusion.functions.composing import compose
from fusec.fusion.functions.libraries import LibraryFunction
from fusec.fusion.functions.routines import where
from fusec.fusion.trace.conditions import require
from fusec.fusion.trace.tables import FUNCTIONS, METHODS
from fusec.fusion.trace.trace import Trace
from fusec.fusion.trace.trace_values import LibraryCall, outermost_first, phantom
from fusec.fusion.trace.tracer import Tracer
from fusec.library import cumulative

SCANS = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}
"""The ufuncs whose `accumulate` is a scan."""


def scanned(name: str, x: Any, **options: Any) -> Any:
    """What fusec's function of a name makes."""
    given = {key: each for key, each in options.items() if each is not None}
    order, axis = outermost_first(x._seen), given.get("axis")
    is_plain = given.keys() <= {"axis", "dtype"} and isinstance(axis, int) and -x.ndim <= axis < x.ndim
    if is_plain and order != (*range(x.ndim),) and 0 not in x._seen.strides:  # laid out as the array is
        turned = scanned(name, np.transpose(x, order), axis=order.index(axis % x.ndim), dtype=given.get("dtype"))
        return np.transpose(turned, [order.index(each) for each in range(x.ndim)])
    require([x], lambda array: (outermost_first(array), 0 in array.strides) == (order, 0 in x._seen.strides))
    found = compose(getattr(cumulative, name), (x if x.ndim else x.reshape(1),), given)
    assert found is not None, "it is a function of fusec"
    if is_plain or (x.ndim == 1 and given.keys() <= {"axis", "dtype"}):
        _follows(found[0]._trace)
    return found[0]


def _follows(trace: Trace) -> None:
    """State that the last library call makes an array of its operand's shape, whatever the extents."""
    call = trace.statements[-1]
    assert isinstance(call, LibraryCall), "scans are steps of their own"
    (operand,) = [trace.leaves[each].phantom for each in call.operands]
    (made,) = [each.phantom for each in call.buffers]
    if made.shape == operand.shape and made.flags.c_contiguous:
        call.again = partial(_alike, made.dtype)


def _alike(dtype: np.dtype[Any], seen: Sequence[Any]) -> tuple[Any, ...]:
    """New arrays of a dtype, with the shapes of others."""
    return tuple([phantom(each.shape, dtype) for each in seen])


def _along(name: str, start: int | None = None) -> Callable[..., Any]:
    """Running totals along an axis. start: what stands for nan, if anything does."""

    def scan(x: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        if axis is None and x.ndim > 1:
            x._refuse_labelled(f"'{name}' without axis=", "pass axis=, whose default differs")
        axis = None if axis is None else operator.index(axis)
        if start is not None and x.dtype.kind in "fc":
            x = where(np.isnan(x), x.dtype.type(start), x)
        if dtype is None and isinstance(out, Tracer):
            try:
                dtype = np.result_type(x.dtype, out.dtype)
            except np.exceptions.DTypePromotionError:  # of float16 and bfloat16
                dtype = out.dtype
            if dtype != out.dtype:
                found = scanned(name, x, axis=axis, dtype=dtype)
                if found.shape != out.shape:
                    raise ValueError("provided out is the wrong size for the accumulation.")
                out[...] = found
                return out
        return scanned(name, x, axis=axis, dtype=dtype, out=out)

    return scan


def _standard(name: str) -> Callable[..., Any]:
    """The same, as the Array API has them."""

    def scan(x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False) -> Any:
        if x.ndim > 1 and axis is None:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        return scanned(name, x, axis=axis, dtype=dtype, out=out, include_initial=include_initial or None)

    return scan


def accumulated(ufunc: np.ufunc, x: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    """A ufunc's accumulate; NumPy's own, where no scan of fusec is the same."""
    name = SCANS.get(ufunc.__name__)
    if isinstance(out, tuple):
        (out,) = out
    if axis is None and x.ndim > 1:
        raise ValueError("accumulate does not allow multiple axes")
    is_ordered = ufunc.__name__ in ("maximum", "minimum")
    if name is None or not x.ndim or (is_ordered and (x.dtype.kind == "c" or dtype is not None)):
        return LibraryFunction(ufunc.accumulate, f"np.{ufunc.__name__}.accumulate")(x, axis, dtype, out=out)
    if is_ordered:
        return scanned(name, x, axis=axis, out=out)
    return FUNCTIONS[name](x, axis, dtype, out)


METHODS["_accumulated"] = accumulated
for _name in ("cumsum", "cumprod"):
    FUNCTIONS[_name] = METHODS[_name] = _along(_name)
FUNCTIONS["nancumsum"], FUNCTIONS["nancumprod"] = _along("cumsum", 0), _along("cumprod", 1)
FUNCTIONS.update({name: _standard(name) for name in ("cumulative_sum", "cumulative_prod")})
