"""Forms of arrays: what a recorded operation depends on, shared by all arrays that have them."""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from fusec.base import dtypes
from fusec.base.kernel_abi import strides_in_order
from fusec.errors.lazy import NotADType

Shape = tuple[int, ...]


class Device(str):
    """The name of a device: "cpu", or "cuda:0" with the number of a CUDA device. It equals the text.

    >>> xp.zeros(3).device == xp.Device("cpu") == "cpu"
    True
    """

    __slots__ = ()


CPU = Device("cpu")


class Form:
    """The dtype, shape and device of arrays. strides: in bytes, None in C order. limits: the range of an integer dtype.

    is_number: NumPy has a number instead of such an array, which operators do not change in place. places: the keys of
    the first few small parts that were written; reads: of those read while a write was pending.
    """

    __slots__ = ("__weakref__", "device", "dtype", "is_number", "limits", "places", "reads", "shape", "strides")

    def __init__(
        self, dtype: np.dtype[Any], shape: Shape, strides: Shape | None, device: Device, is_number: bool
    ) -> None:
        """Raises NotADType for a dtype that lazy arrays do not have."""
        if not is_held(dtype):
            raise refused(dtype)
        self.dtype, self.shape, self.strides, self.device = dtype, shape, strides, device
        self.is_number = is_number
        self.places: tuple[Any, ...] = ()
        self.reads: tuple[Any, ...] = ()
        found = np.iinfo(dtype) if dtype.kind in "iu" else None
        self.limits = None if found is None else range(int(found.min), int(found.max) + 1)

    def __repr__(self) -> str:
        return f"<{self.dtype} {self.shape} {self.strides or ''}{self.device}>"


def is_held(dtype: np.dtype[Any]) -> bool:
    """Whether lazy arrays can have a dtype."""
    return dtypes.from_numpy(dtype) is not None


def refused(dtype: np.dtype[Any], cure: str = "") -> Exception:
    """The error for a dtype that lazy arrays do not have."""
    from fusec.arguments.operands import cure_for

    return NotADType(str(dtype), "a dtype of lazy arrays", cure or cure_for(dtype)).at()


def native(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A NumPy array in the machine's byte order: a copy if it has another one."""
    return value if value.dtype.isnative else value.astype(value.dtype.newbyteorder("="))


_FORMS: WeakValueDictionary[Any, Form] = WeakValueDictionary()


def form(
    dtype: np.dtype[Any], shape: Shape, strides: Shape | None = None, device: Device = CPU, is_number: bool = False
) -> Form:
    """The form of these facts: equal ones are the same object."""
    key = (dtype, shape, strides, device, is_number)
    found = _FORMS.get(key)
    return found if found is not None else _FORMS.setdefault(key, Form(*key))


def as_number(found: Form) -> Form:
    """The form of a number, from that of an array without axes."""
    return found if found.is_number else form(found.dtype, (), None, found.device, is_number=True)


def form_of(array: Any, device: Device = CPU) -> Form:
    """The form of an array of NumPy's, or of what one on a device looks like."""
    if array.flags.c_contiguous:
        return form(array.dtype, array.shape, None, device)
    in_order = strides_in_order(array.shape, range(array.ndim), array.itemsize)
    return form(array.dtype, array.shape, None if array.strides == in_order else array.strides, device)
