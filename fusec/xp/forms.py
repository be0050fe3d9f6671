"""Forms of arrays: what a recorded operation depends on, shared by all arrays that have them."""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from fusec.base.kernel_abi import strides_in_order

Shape = tuple[int, ...]


class Form:
    """The dtype, shape and device of arrays. strides: in bytes, None in C order; limits: of integers, as a range."""

    __slots__ = ("__weakref__", "device", "dtype", "limits", "shape", "strides")

    def __init__(self, dtype: np.dtype[Any], shape: Shape, strides: Shape | None, device: str) -> None:
        self.dtype, self.shape, self.strides, self.device = dtype, shape, strides, device
        found = np.iinfo(dtype) if dtype.kind in "iu" else None
        self.limits = None if found is None else range(int(found.min), int(found.max) + 1)

    def __repr__(self) -> str:
        return f"<{self.dtype} {self.shape} {self.strides or ''}{self.device}>"


_FORMS: WeakValueDictionary[Any, Form] = WeakValueDictionary()


def form(dtype: np.dtype[Any], shape: Shape, strides: Shape | None = None, device: str = "cpu") -> Form:
    """The form of these facts: equal ones are the same object."""
    key = (dtype, shape, strides, device)
    found = _FORMS.get(key)
    return found if found is not None else _FORMS.setdefault(key, Form(*key))


def form_of(array: Any) -> Form:
    """The form of an array in host memory."""
    strides = None if array.flags.c_contiguous else array.strides
    if strides == strides_in_order(array.shape, range(array.ndim), array.itemsize):
        strides = None
    return form(array.dtype, array.shape, strides)
