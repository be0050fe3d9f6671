"""Indices with masks on devices: x[key] and x[key] = value."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from fusec.fusion.at_once.choices import choice, elements, nonzero, spread, storing
from fusec.fusion.at_once.counting import converted, copied
from fusec.fusion.functions.masked import check_mask
from fusec.fusion.fuse import fuse
from fusec.runtime import cuda
from fusec.runtime.cuda import CudaArray

_indexed: Any = fuse(lambda x, key: x[key])


def getitem(x: CudaArray, key: Any) -> Any:
    """x[key] with masks among the parts of the key. Raises NumPy's IndexError."""
    if isinstance(key, CudaArray) and key.ndim:
        check_mask(x, key)
        return elements(x, choice(key))
    items = [*key] if isinstance(key, tuple) else [key]
    if len(items) == 1 and _is_truth(items[0]):
        return copied(x[None][: int(items[0].numpy() if _is_mask(items[0]) else items[0])])
    if any(map(_is_truth, items)):
        return NotImplemented
    return _indexed(x, tuple(_expanded(x, items)))


@fuse
def _stored(x: Any, key: Any, value: Any) -> None:
    x[key] = value


def setitem(x: CudaArray, key: Any, value: Any) -> Any:
    """x[key] = value with masks among the parts of the key. Raises NumPy's IndexError, ValueError."""
    items = [*key] if isinstance(key, tuple) else [key]
    if any(map(_is_truth, items)):
        return NotImplemented
    if not (isinstance(key, CudaArray) and isinstance(value, CudaArray)):
        _stored(x, tuple(_expanded(x, items)), value)
        return None
    check_mask(x, key)
    found, rest = choice(key), x.shape[key.ndim :]
    shape = (found.total, *rest)
    try:
        np.broadcast_to(np.broadcast_to(0, value.shape), shape)
    except ValueError:
        what = f"value array of shape {value.shape} could not be broadcast to indexing result of shape {shape}"
        raise ValueError(f"shape mismatch: {what}") from None
    if prod(shape):
        values = value if value.dtype == x.dtype else converted(value, x)
        whole = values.seen_as(shape, cuda.broadcast(values, shape, x.stream).strides)
        storing("stored")(*spread(found, x), whole, prod(rest), x)
    return None


def _is_mask(each: Any) -> bool:
    return isinstance(each, CudaArray) and each.dtype == bool


def _is_truth(each: Any) -> bool:
    """Whether part of a key is one truth value."""
    return isinstance(each, (bool, np.bool_)) or (_is_mask(each) and not each.ndim)


def _expanded(x: CudaArray, items: Sequence[Any]) -> list[Any]:
    """Parts of a key, with the places that masks pick in place of these. Raises IndexError for masks of other sizes."""
    found: list[Any] = []
    taken = sum(each.ndim if _is_mask(each) else each is not None and each is not ... for each in items)
    axis = 0
    for each in items:
        if _is_mask(each):
            check_mask(x, each, axis)
            found += nonzero(each)
            axis += each.ndim
        else:
            found.append(each)
            axis += x.ndim - taken if each is ... else each is not None
    return found
