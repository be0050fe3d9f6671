"""New arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.base.diagnostics import instance_of
from fusec.errors.lazy import NeedsCopy
from fusec.xp.array import Array
from fusec.xp.calls import DType, Operand, array_of, call, several
from fusec.xp.devices import checked
from fusec.xp.documentation import documented
from fusec.xp.forms import CPU
from fusec.xp.loading import on_device
from fusec.xp.recording import eager, lazy, record, wrapped
from fusec.xp.refusals import with_numbers

__all__ = [
    "arange",
    "array",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]
Shape = int | tuple[int, ...]
LENDING = ("__dlpack_device__", "__cuda_array_interface__")


@documented
def asarray(obj: Any, /, dtype: DType = None, *, device: Any = None, copy: bool | None = None) -> Array:
    """Anything as an array, which shares memory with an array of another library that has the dtype, unless copy=True.

    obj: an array, a number, nested lists of these, or an object with a buffer, DLPack, __cuda_array_interface__ or
    NumPy's protocols. device: "cpu" or "cuda:0", for example; None for where the array is.

    >>> xp.asarray([[1, 2], [3, 4]], dtype="float32")
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    if type(obj) is np.ndarray and dtype is None and device is None and not copy:
        return wrapped(obj)  # type: ignore[no-any-return]
    where = None if device is None else checked(device)
    if is_elsewhere(obj):
        obj = lazy(on_device().taken(obj, copy if where is None else None))
        copy = None if copy else copy
    if isinstance(obj, Array):
        if where is not None and where != obj.device:
            if copy is False:
                raise NeedsCopy(f"an array on {obj.device!r} for {where!r}").at()
            obj, copy = obj.to_device(where), None
        if dtype is not None and np.dtype(dtype) != obj.dtype:
            if copy is False:
                raise NeedsCopy("a conversion").at()
            return obj.astype(dtype)  # type: ignore[no-any-return]
        return call(np.copy, obj) if copy or (obj._form.is_number and copy is None) else obj
    if where not in (None, CPU) and copy is False:
        raise NeedsCopy(f"an array in host memory for {where!r}").at()
    if type(obj) in (list, tuple) and _device_in(obj):
        found = _stacked(obj, where)
        return found if dtype is None else found.astype(dtype, copy=False)
    try:
        found = np.array(_values(obj), dtype=dtype, copy=copy, subok=True)  # a masked one is refused
    except ValueError as problem:
        if copy is False and "avoid copy" in str(problem):
            raise NeedsCopy(f"the conversion of {instance_of(obj)}").at() from None
        raise
    return wrapped(with_numbers(found, obj)).to_device(where or CPU)  # type: ignore[no-any-return]


@documented
def array(obj: Any, /, dtype: DType = None, *, copy: bool | None = True, device: Any = None, ndmin: int = 0) -> Array:
    """Anything as a new array, with NumPy's name for it.

    obj: as `asarray` takes it. ndmin: how many axes there are at least; new ones come in front.

    >>> xp.array([1, 2], ndmin=2)
    Array([[1, 2]])
    """
    found = asarray(obj, dtype=dtype, copy=copy, device=device)
    return found if found.ndim >= ndmin else found.reshape((1,) * (ndmin - found.ndim) + found.shape)


def is_elsewhere(given: Any) -> bool:
    """Whether something is another library's array on a device."""
    if isinstance(given, (Array, np.ndarray)):
        return False
    return any(hasattr(type(given), name) for name in LENDING) and bool(on_device().is_there(given))


def _stacked(given: Any, device: Any) -> Array:
    """Nested lists as one array on a device: None for where the arrays in them are, to which numbers are copied."""
    if type(given) not in (list, tuple):
        return asarray(given, device=device)
    device = device or _device_in(given)
    return record(np.stack, [_stacked(each, device) for each in given])  # type: ignore[no-any-return]


def _device_in(given: Any) -> Any:
    """The device of the first array in nested lists that is on one."""
    if type(given) in (list, tuple):
        return next(filter(None, map(_device_in, given)), None)
    return given.device if isinstance(given, Array) and given.device != CPU else None


def _values(given: Any) -> Any:
    """Lists with NumPy's arrays for lazy ones."""
    if isinstance(given, (list, tuple)):
        return type(given)(map(_values, given)) if type(given) in (list, tuple) else [*map(_values, given)]
    return np.asarray(given) if isinstance(given, Array) else given


def made(function: Callable[..., Any], device: Any, *args: Any, **options: Any) -> Array:
    """A new array of NumPy's on a device."""
    where = checked(device)
    return wrapped(function(*args, **options)).to_device(where)  # type: ignore[no-any-return]


def filled(shape: Shape, value: Any, dtype: DType, device: Any) -> Array:
    """A new array of one number, which is made on its device."""
    where = checked(device)
    if where == CPU:
        return wrapped(np.full(shape, value, dtype))  # type: ignore[no-any-return]
    one = wrapped(np.full((), value, dtype)).to_device(where)
    return record(np.broadcast_to, one, shape).copy()  # type: ignore[no-any-return]


def zeroed(shape: Shape, dtype: DType, device: Any) -> Array:
    """A new array of zeros."""
    where = checked(device)
    if where == CPU:
        return wrapped(np.zeros(shape, dtype))  # type: ignore[no-any-return]
    return lazy(on_device().zeros(shape, wrapped(np.zeros((), dtype)).dtype, where))  # type: ignore[no-any-return]


@documented
def from_dlpack(x: object, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array of another library, in the same memory unless copy=True.

    x: an object with __dlpack__ and __dlpack_device__.

    >>> xp.from_dlpack(np.arange(3))
    Array([0, 1, 2])
    """
    if isinstance(x, Array) or is_elsewhere(x):
        return asarray(x, device=device, copy=copy)
    return made(np.from_dlpack, device, x, copy=copy)


@documented
def arange(start: Any, /, stop: Any = None, step: Any = 1, dtype: DType = None, *, device: Any = None) -> Array:
    """The numbers start, start + step, ... that lie before stop.

    start: the first number; if it is alone, stop, and the first number is 0. stop: the end, which is left out.
    step: the distance of two numbers, not 0.

    >>> xp.arange(2, 8, 2)
    Array([2, 4, 6])
    """
    bounds = (0, start) if stop is None else (start, stop)
    return made(np.arange, device, *bounds, step, dtype=dtype)


@documented
def linspace(
    start: Any, stop: Any, /, num: int = 50, *, dtype: DType = None, device: Any = None, endpoint: bool = True,
    **options: Any,
) -> Any:  # fmt: skip
    """Numbers at equal distances from start to stop.

    start, stop: numbers. num: how many. endpoint: whether stop is the last one; otherwise it is left out.

    >>> xp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    options |= {"endpoint": endpoint, "dtype": dtype}
    if options.get("retstep"):
        return tuple(eager(np.linspace, (start, stop, num), options))
    if isinstance(start, Array) or isinstance(stop, Array):
        found: Array = record(np.linspace, start, stop, num, **options)
        return found if device is None else found.to_device(checked(device))
    return made(np.linspace, device, start, stop, num, **options)


@documented
def empty(shape: Shape, dtype: DType = None, *, device: Any = None) -> Array:
    """An array whose elements are not set yet; here they are 0, so that programs give the same bits again.

    >>> xp.empty((2, 3)).shape
    (2, 3)
    """
    return zeroed(shape, dtype, device)


@documented
def zeros(shape: Shape, dtype: DType = None, *, device: Any = None) -> Array:
    """An array of zeros.

    >>> xp.zeros((2, 3))
    Array([[0., 0., 0.],
           [0., 0., 0.]])
    """
    return zeroed(shape, dtype, device)


@documented
def ones(shape: Shape, dtype: DType = None, *, device: Any = None) -> Array:
    """An array of ones.

    >>> xp.ones(3, dtype="int8")
    Array([1, 1, 1], dtype=int8)
    """
    return filled(shape, 1, np.float64 if dtype is None else dtype, device)


@documented
def full(shape: Shape, fill_value: Any, dtype: DType = None, *, device: Any = None) -> Array:
    """An array of one number.

    fill_value: a number or an array without axes.

    >>> xp.full(3, 7)
    Array([7, 7, 7])
    """
    if isinstance(fill_value, Array) and device is not None:
        fill_value = fill_value.to_device(CPU)
    return filled(shape, _values(fill_value), dtype, device)


@documented
def eye(n_rows: int, n_cols: int | None = None, /, k: int = 0, *, dtype: DType = None, device: Any = None) -> Array:
    """A matrix with ones on a diagonal and zeros elsewhere.

    n_rows, n_cols: its shape; n_cols=None for a square one.

    >>> xp.eye(2)
    Array([[1., 0.],
           [0., 1.]])
    """
    return made(np.eye, device, n_rows, n_cols, k=k, dtype=float if dtype is None else dtype)


@documented
def empty_like(x: Operand, /, dtype: DType = None, *, device: Any = None) -> Array:
    """An array of the same shape and dtype whose elements are not set yet.

    >>> xp.empty_like(xp.asarray([1, 2])).shape
    (2,)
    """
    return zeros_like(x, dtype=dtype, device=device)


@documented
def zeros_like(x: Operand, /, dtype: DType = None, *, device: Any = None) -> Array:
    """An array of zeros of the same shape and dtype.

    >>> xp.zeros_like(xp.asarray([1, 2]))
    Array([0, 0])
    """
    x = array_of(x)
    return zeros(x.shape, dtype=x.dtype if dtype is None else dtype, device=device or x.device)


@documented
def ones_like(x: Operand, /, dtype: DType = None, *, device: Any = None) -> Array:
    """An array of ones of the same shape and dtype.

    >>> xp.ones_like(xp.asarray([1, 2]))
    Array([1, 1])
    """
    x = array_of(x)
    return ones(x.shape, dtype=x.dtype if dtype is None else dtype, device=device or x.device)


@documented
def full_like(x: Operand, /, fill_value: Any, dtype: DType = None, *, device: Any = None) -> Array:
    """An array of one number of the same shape and dtype.

    fill_value: a number or an array without axes.

    >>> xp.full_like(xp.asarray([1, 2]), 7)
    Array([7, 7])
    """
    x = array_of(x)
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype, device=device or x.device)


@documented
def meshgrid(*arrays: Operand, indexing: str = "xy", **options: Any) -> tuple[Array, ...]:
    """The coordinates of a grid: for each array of one axis, one with an axis for each of them.

    >>> xp.meshgrid(xp.asarray([1, 2]), xp.asarray([10, 20]))[1]
    Array([[10, 10],
           [20, 20]])
    """
    return several(np.meshgrid, *map(array_of, arrays), indexing=indexing, **options)


@documented
def tril(x: Operand, /, k: int = 0) -> Array:
    """Matrices with zeros above a diagonal.

    >>> xp.tril(xp.asarray([[1, 2], [3, 4]]))
    Array([[1, 0],
           [3, 4]])
    """
    return call(np.tril, x, k=k)


@documented
def triu(x: Operand, /, k: int = 0) -> Array:
    """Matrices with zeros below a diagonal.

    >>> xp.triu(xp.asarray([[1, 2], [3, 4]]))
    Array([[1, 2],
           [0, 4]])
    """
    return call(np.triu, x, k=k)
