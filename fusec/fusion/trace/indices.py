"""The parts of an index of a traced array: what gives a view, and what chooses elements."""

from __future__ import annotations

import operator
from types import EllipsisType
from typing import Any

import numpy as np

from fusec.errors.fusing import NotFusable
from fusec.fusion.trace.tables import METHODS
from fusec.fusion.trace.trace import here

NO_INTEGERS = "arrays used as indices must be of integer (or boolean) type"


def _is_traced(each: Any) -> bool:
    return bool(getattr(type(each), "__fusec_tracer__", False))


def is_mask(index: Any) -> bool:
    """Whether an index is an array of truth values that belongs to the trace, or one such value."""
    return _is_traced(index) and index.dtype == np.bool_


def has_mask(index: Any) -> bool:
    """Whether an index is a mask, or has one."""
    return any(map(is_mask, index)) if isinstance(index, tuple) else is_mask(index)


def is_known_mask(each: Any) -> bool:
    """Whether part of an index is truth values that do not belong to the trace."""
    if not isinstance(each, (bool, np.bool_, list, np.ndarray)) or _is_traced(each):
        return False
    is_mixed = isinstance(each, list) and any(map(_is_traced, each))
    return not is_mixed and np.asarray(each).dtype == np.bool_


def is_chosen(each: Any) -> bool:
    """Whether part of an index is an array, a list, or a number that an array holds."""
    if _is_traced(each):
        return each.ndim > 0 or each.dtype.kind == "b" or not each._read().is_weak
    return isinstance(each, (list, np.ndarray, bool, np.bool_))


def is_number(each: Any) -> bool:
    """Whether NumPy makes a view for part of an index: a slice, None, ... or a number, which an array may hold."""
    return not isinstance(each, (list, np.ndarray, bool, np.bool_))


def _bound(given: Any) -> Any:
    """A bound of a slice, whose value is known. Raises NeedsValues, and TypeError for what is no integer."""
    if not _is_traced(given):
        return given
    if given.ndim or given.dtype.kind not in "iu":
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    found = METHODS["_ask"](given, "__index__")
    return given._number("the bound of a slice") if found is NotImplemented else found


def basic(index: Any) -> tuple[Any, ...]:
    """An index as a tuple of integers, slices, None and Ellipsis. Raises IndexError, and NotFusable for arrays."""
    items = index if isinstance(index, tuple) else (index,)
    found: list[Any] = []
    for each in items:
        if isinstance(each, slice):
            found.append(slice(*map(_bound, (each.start, each.stop, each.step))))
        elif each is None or isinstance(each, EllipsisType):
            found.append(each)
        elif isinstance(each, (bool, np.bool_, list, np.ndarray)) or (_is_traced(each) and each.ndim):
            if (each if _is_traced(each) else np.asarray(each)).dtype.kind not in "biu":
                raise IndexError(NO_INTEGERS)
            cure = "indices are integers, slices, None and ..., and arrays of integers or of truth values"
            raise NotFusable("an index of this kind", cure).at(here())
        else:
            try:
                found.append(operator.index(each))
            except TypeError:
                text = "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer arrays"
                raise IndexError(f"{text} are valid indices") from None
    return tuple(found)
