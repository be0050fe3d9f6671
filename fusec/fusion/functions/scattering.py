"""Writes to elements that arrays of integers choose, in fused functions: NumPy makes them in a copy between kernels."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.errors.fusing import NotFusable
from fusec.fusion.functions import in_turn
from fusec.fusion.functions.libraries import Asked, Changing, LibraryFunction
from fusec.fusion.trace import tracer
from fusec.fusion.trace.converted import unwritable
from fusec.fusion.trace.indices import is_chosen
from fusec.fusion.trace.tables import FUNCTIONS, METHODS
from fusec.fusion.trace.trace import Trace, here
from fusec.fusion.trace.trace_values import laid_out


def _as_given(asked: Asked) -> Any:
    """What a function that changes its first argument makes of it; whatever else is wrong with a call, it says."""
    array = asked.examples[0]
    return laid_out(array, array.dtype)


def changed(function: Callable[..., Any], name: str, x: Any, *args: Any, **options: Any) -> None:
    """Have NumPy change an array; on devices, a kernel."""
    if not isinstance(x, tracer.Tracer):
        raise NotFusable(f"{name} of an array from outside", "pass it as an argument").at(here())
    if x._is_scalar or not x._seen.flags.writeable:
        raise unwritable(x._trace, x._memory)
    made = in_turn.changed(function, x, *args, **options) if x._trace.device != "cpu" else None
    if made is None:
        call = LibraryFunction(Changing(function), name, (0, 1, 2), ("v",), True, _as_given, takes_out=False)
        made = call(x, *args, **options)
    x._put(made._read())


def is_scatter(index: Any) -> bool:
    """Whether an index chooses elements by arrays of integers, or by integers that arrays hold."""
    items = index if isinstance(index, tuple) else (index,)
    kinds = [_kind_of(each) for each in items if is_chosen(each) and not _is_truth(each)]
    return bool(kinds) and all(kind in "iu" for kind in kinds)


def _is_truth(each: Any) -> bool:
    """Whether part of an index is one truth value."""
    return not isinstance(each, list) and not np.ndim(each) and np.result_type(each) == np.bool_


def _kind_of(each: Any) -> str:
    """The kind of the dtype of part of an index; empty lists are of integers, as in an index."""
    if isinstance(each, list):
        if not each or any(isinstance(part, tracer.Tracer) for part in each):
            return "i"
        each = np.asarray(each)
    return str(each.dtype.kind)


def _index(trace: Trace, index: Any) -> Any:
    """An index whose arrays and lists are traced."""
    if isinstance(index, tuple):
        return tuple(_index(trace, each) for each in index)
    if isinstance(index, list) and any(isinstance(each, tracer.Tracer) for each in index):
        return np.stack(index)
    if not isinstance(index, (list, np.ndarray)) or isinstance(index, tracer.Tracer):
        return index
    found = np.asarray(index)
    found = found if found.size else found.astype(np.intp)
    return tracer.made(trace, tracer._operand(trace, found))


def store(x: Any, index: Any, value: Any) -> None:
    """x[index] = value; of several values for one element, the last one stays."""
    parts, part = x._trace.parts, value._memory if isinstance(value, tracer.Tracer) else None
    parts.bring_back(part, x._memory, index)
    changed(operator.setitem, "an assignment to chosen elements", x, _index(x._trace, index), value)
    parts.bring_back(part, x._memory, index, is_stored=True)


def at(ufunc: np.ufunc, x: Any, index: Any, *rest: Any) -> None:
    """np.add.at and the like."""
    if not isinstance(x, tracer.Tracer):
        raise NotFusable(f"np.{ufunc.__name__}.at of an array from outside", "pass it as an argument").at(here())
    if not is_scatter(index) and not isinstance(index, (list, np.ndarray)):
        items = index if isinstance(index, tuple) else (index,)
        part = x[items if any(each is ... for each in items) else (*items, ...)]
        ufunc(part, *rest, out=part)
        return
    changed(ufunc.at, f"np.{ufunc.__name__}.at", x, _index(x._trace, index), *rest)


def reduced_at(ufunc: np.ufunc, x: Any, index: Any, *args: Any, **options: Any) -> Any:
    """np.add.reduceat and the like."""
    call = LibraryFunction(ufunc.reduceat, f"np.{ufunc.__name__}.reduceat", (0, 1), (), True)
    return call(x, index, *args, **options)


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """np.put."""
    changed(np.put, "np.put", a, ind, v, mode=mode)


def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """np.put_along_axis."""
    changed(np.put_along_axis, "np.put_along_axis", arr, indices, values, axis=axis)


FUNCTIONS.update({"put": put, "put_along_axis": put_along_axis})
METHODS.update({"put": put, "_at": at, "_reduced_at": reduced_at, "_is_scatter": is_scatter, "_scatter": store})
