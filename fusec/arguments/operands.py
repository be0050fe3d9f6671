"""The arguments of a call: host arrays of any library, device arrays, numbers.

What is taken, and what becomes of it, is one rule for all that is called; docs/arguments.md has it as a table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fusec.arguments.layouts import Shape, View, bounds
from fusec.arguments.scalars import SCALAR_TYPES
from fusec.base import dtypes
from fusec.base.diagnostics import instance_of
from fusec.base.dtypes import DType
from fusec.errors.arguments import OutputIsNotAnArray, OutputIsReadOnly, UnsupportedArgument, UnsupportedDtype
from fusec.errors.base import FusecError

Array = NDArray[np.generic]
Wrap = Callable[[Array], object]
Form = str
"""How an argument is given: "array", "default", "Python float" and so on, or "number float32" for one of NumPy's."""

IN_MEMORY = ("__array_interface__", "__array_struct__")  # what shares memory with NumPy, besides DLPack and buffers
TEXT = (str, bytes)
LISTS = (list, tuple, range)  # what NumPy makes an array of, item by item
WRITEABLE = 0x400  # among the flags of NumPy's C API


def is_number(value: object) -> bool:
    """True for Python and NumPy numbers (a 0-d array is an array)."""
    return isinstance(value, SCALAR_TYPES)


def form_of(value: object) -> Form:
    """How an argument is passed."""
    kind = type(value)
    if kind in (float, int, bool, complex):
        return f"Python {kind.__name__}"
    if isinstance(value, np.generic):
        dtype = dtypes.from_numpy(value.dtype)
        return "array" if dtype is None else f"number {dtype}"
    if isinstance(value, (bool, int, float, complex)):  # a subclass
        base = next(each for each in (bool, int, float, complex) if isinstance(value, each))
        return f"Python {base.__name__}"
    return "array"


def is_foreign(value: object) -> bool:
    """True for arguments that are neither numbers nor plain NumPy arrays: they are converted, and may wrap results."""
    return type(value) is not np.ndarray and value is not None and not isinstance(value, SCALAR_TYPES)


def is_contained(value: object) -> bool:
    """True for converted arguments that may wrap results: all foreign objects but lent memory."""
    kind: Any = type(value)
    return kind is not np.ndarray and value is not None and not isinstance(value, SCALAR_TYPES) and not lends(kind)


@lru_cache(256)
def lends(kind: type) -> bool:
    """Whether objects of a class speak DLPack."""
    return not issubclass(kind, np.ndarray) and hasattr(kind, "__dlpack__") and hasattr(kind, "__dlpack_device__")


def host_array(value: object, param: str, kernel: str) -> Array:
    """An array in host memory, a list or a buffer, as a plain NumPy array in native byte order.

    Memory is shared where NumPy shares it. Raises UnsupportedArgument for anything else, and for masked arrays.
    """
    found = value if type(value) is np.ndarray else _read(value, param, kernel)
    return found if found.dtype.isnative else found.astype(found.dtype.newbyteorder("="))


def admitted(value: object, param: str, kernel: str) -> object:
    """An argument that calls can inspect: conversions happen once; memory of other libraries stays in place."""
    if is_number(value) or is_lent(value):
        return value
    return host_array(value, param, kernel)


def output_array(value: object, param: str, kernel: str, taken: str = "") -> Array:
    """The memory of an output as a NumPy array; taken: how outputs are passed.

    Raises OutputIsNotAnArray for what is no memory, such as a list, OutputIsReadOnly, and UnsupportedDtype.
    """
    if value is None or is_number(value):
        raise OutputIsNotAnArray(kernel, param, repr(value), taken).at()
    if type(value) is not np.ndarray and not _is_memory(value):
        lost = "writes to a copy would be lost; "
        raise OutputIsNotAnArray(kernel, param, instance_of(value), taken or lost).at()
    found = value if type(value) is np.ndarray else _read(value, param, kernel)
    if not found.flags.writeable:
        raise OutputIsReadOnly(kernel, param).at()
    if not found.dtype.isnative:
        raise UnsupportedDtype(kernel, param, str(found.dtype), cure_for(found.dtype)).at()
    return found


def _read(value: object, param: str, kernel: str) -> Array:
    """A plain NumPy array of what is none, by the first protocol that works. Raises UnsupportedArgument."""
    if _is_masked(value):
        cure = "its mask would be lost: pass .filled(value) or .data"
        raise UnsupportedArgument(kernel, param, "numpy.ma.MaskedArray", cure).at()
    if isinstance(value, np.ndarray):
        return np.asarray(value)
    if isinstance(value, TEXT):
        is_bytes = isinstance(value, bytes)
        cure = "np.frombuffer(x, 'uint8') reads bytes as numbers" if is_bytes else "text is not an array"
        raise UnsupportedArgument(kernel, param, type(value).__name__, cure).at()
    if isinstance(value, type):
        raise UnsupportedArgument(kernel, param, str(type(value)), f"pass an instance of {value.__name__}").at()
    problem: Exception | None = None
    ways: tuple[tuple[Callable[[Any], Array], Callable[[object], bool]], ...]
    ways = (np.from_dlpack, _speaks_dlpack), (np.asarray, _is_readable)
    for read, applies in ways:
        if not applies(value):
            continue
        try:
            found = read(value)
            if found.ndim and found.dtype == object:
                raise_for_container(value, param, kernel)
            if found.ndim or found.dtype != object:  # else NumPy sees no array, but one object
                return found
        except FusecError:
            raise
        except Exception as refusal:  # whatever another library raises
            problem = problem or refusal
    if problem is None:
        raise UnsupportedArgument(kernel, param, str(type(value))).at()
    reason = str(problem) if isinstance(problem, BufferError | RuntimeError | TypeError | ValueError) else repr(problem)
    raise UnsupportedArgument(kernel, param, type(value).__name__, reason).at() from problem


def _has(value: object, name: str) -> bool:
    """Whether an object, not a class, has an attribute; one that raises has none."""
    try:
        return not isinstance(value, type) and getattr(value, name, None) is not None
    except Exception:  # a property of another library
        return False


def _speaks_dlpack(value: object) -> bool:
    return _has(value, "__dlpack__") and _has(value, "__dlpack_device__")


def _is_memory(value: object) -> bool:
    """Whether NumPy can see the memory of an object, so that what is written there is seen by others."""
    if isinstance(value, np.ndarray) or _speaks_dlpack(value) or any(_has(value, each) for each in IN_MEMORY):
        return True
    return not isinstance(value, TEXT) and _has_buffer(value)


def _is_readable(value: object) -> bool:
    """Whether NumPy makes an array of numbers of an object, and not one of objects."""
    return isinstance(value, LISTS) or _has(value, "__array__") or _is_memory(value)


def _has_buffer(value: object) -> bool:
    try:
        memoryview(value).release()  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):
        return False
    return True


def is_lent(value: object) -> bool:
    """Whether an array of another library shares its memory, so that results may return to that library."""
    if isinstance(value, np.ndarray):
        return False
    return _speaks_dlpack(value) or _has(value, "__cuda_array_interface__")


def _is_masked(value: object) -> bool:
    """True for numpy.ma's arrays; if there is one, numpy.ma, which is slow to import, is there and has the class."""
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    return masked is not None and isinstance(value, masked)


def wrapper_of(values: Sequence[object]) -> Wrap | None:
    """The function that returns results to the library of the first foreign array; None if all arrays are NumPy's."""
    for value in values:
        if not is_foreign(value):
            continue
        ask = getattr(type(value), "__array_namespace__", None)
        library = sys.modules.get(type(value).__module__.partition(".")[0]) if ask is None else ask(value)
        wrap = getattr(library, "from_dlpack", None)
        if callable(wrap) and is_lent(value):
            return lambda array, wrap=wrap: wrap(array)  # type: ignore[misc]
    return None


def dtype_of(array: Array, param: str, kernel: str) -> DType:
    """The dtype row of an array. Raises UnsupportedDtype with a hint for its kind."""
    found = dtypes.from_numpy(array.dtype)
    if found is None:
        raise UnsupportedDtype(kernel, param, str(array.dtype), cure_for(array.dtype)).at()
    return found


WORDS = "and number words with np.unique(x, return_inverse=True)[1]"


def cure_for(dtype: np.dtype[np.generic]) -> str:
    """The hint for an array of an unsupported dtype."""
    if dtype.hasobject:
        return f"objects cannot be computed on natively; convert numbers with .astype('float64'), {WORDS}"
    if not dtype.isnative:
        return f"the byte order is foreign; pass an array of {dtype.newbyteorder('=').name}"
    if dtype.names is not None:
        return "pass the fields as separate arrays"
    if dtype.kind in "mM":
        return "compute with np.asarray(x).view('int64'), whose least number is NaT; back with .view(x.dtype)"
    if dtype.kind in "SUTa":
        return f"text is not a number; convert numbers that it spells with .astype('float64'), {WORDS}"
    if dtype.kind in "fc":
        return "extended precision is not portable; convert with .astype('float64') or .astype('complex128')"
    return f"supported are {', '.join(dtypes.BY_NAME)}"


CURES_OF_CONTAINERS = {  # by how the name of a dtype of pandas begins
    "category": "pass the codes, x.cat.codes, or the values, np.asarray(x)",
    "datetime64": "write x.dt.tz_convert(None): dates without a time zone",
    "period": "write x.dt.to_timestamp(), and compute with its int64",
    "interval": "pass the ends, x.array.left and x.array.right",
    "str": f"text is not a number; convert numbers that it spells with .astype('float64'), {WORDS}",
    **dict.fromkeys(("boolean", "Int", "UInt", "Float"), "write x.to_numpy('float64', na_value=np.nan)"),
}


def raise_for_container(value: object, param: str, kernel: str) -> None:
    """Raise UnsupportedDtype for a container whose own dtype, or whose columns, NumPy reads as objects."""
    if _has(value, "select_dtypes"):
        cure = "columns of objects cannot be computed on: x.select_dtypes('number') has the others"
        raise UnsupportedDtype(kernel, param, "object", cure).at()
    own = str(getattr(value, "dtype", ""))
    for start, cure in CURES_OF_CONTAINERS.items():
        if own.startswith(start):
            raise UnsupportedDtype(kernel, param, own, cure).at()


def view_of(array: Array, dtype: DType) -> View:
    """The array as memory."""
    pointer: int = array.__array_interface__["data"][0]
    return View(pointer, array.shape, array.strides, dtype)


class ArrayPlace:
    """Where an array lies in the memory of some device, of which nothing is read. nbytes: of an element."""

    def __init__(self, pointer: int, shape: Shape, strides: Shape, nbytes: int, readonly: bool = False) -> None:
        void = f"|V{nbytes}"
        self.__array_interface__ = {
            "data": (pointer, readonly), "shape": shape, "strides": strides, "version": 3,
            "typestr": void, "descr": [("", void)],  # without the latter, NumPy 2.1 crashes
        }  # fmt: skip


class Outline(np.ndarray):
    """An array whose elements may not be read, since its memory may be freed, or be on a device."""

    geometry: Any = None  # where it lies, as traces have it, if they ask often

    def __repr__(self) -> str:
        """The layout of the array: a debugger that prints what a trace holds must not read its memory."""
        return f"<outline of an array of {self.dtype}, shape {self.shape}, strides {self.strides}>"

    __str__ = __repr__


def outline_of(memory: ArrayPlace, dtype: np.dtype[Any]) -> Array:
    """The outline of an array that lies there."""
    return np.asarray(memory).view(dtype).view(Outline)


def share_elements(left: View, right: View) -> bool:
    """Whether two views, on any device, have a byte in common, or if this is too expensive to decide."""
    if not may_overlap(left, right):
        return False
    places = (ArrayPlace(each.pointer, each.shape, each.strides, each.dtype.nbytes) for each in (left, right))
    return shares_memory(*map(np.asarray, places))


def is_writeable(array: Array) -> bool:
    """Whether an array may be written. NumPy's own answer warns about arrays that np.broadcast_arrays made."""
    return bool(array.flags.num & WRITEABLE)


def without_memory(array: Array) -> Array:
    """The outline of an array, which neither owns the memory nor is read. An array of objects is returned itself."""
    if array.dtype.hasobject:
        return array
    pointer, readonly = array.__array_interface__["data"]
    return outline_of(ArrayPlace(pointer, array.shape, array.strides, array.itemsize, readonly), array.dtype)


def strided(array: Array, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """An array of the same memory in another shape, for dtypes too that NumPy's own function cannot name."""
    if array.dtype.str != "<f1":  # as float8_e5m2 is called
        return np.lib.stride_tricks.as_strided(array, shape, strides, subok=True)
    return np.lib.stride_tricks.as_strided(array.view(np.uint8), shape, strides, subok=True).view(array.dtype)


def memory_order(shape: Shape, strides: Sequence[Shape]) -> tuple[int, ...]:
    """The axes of a new array, outermost first, in the order of the first operand that fixes them (NumPy's order K)."""
    for row in strides:
        if len(row) > 1 and all(row):
            return tuple(sorted(range(len(shape)), key=lambda axis: -abs(row[axis])))
    return tuple(range(len(shape)))


def is_same_memory(left: View, right: View) -> bool:
    """True if both walk the same addresses in the same order."""
    return left.pointer == right.pointer and left.shape == right.shape and steps_of(left) == steps_of(right)


def steps_of(view: View) -> tuple[int, ...]:
    """The strides of a view; 0 for axes along which there is nothing to step to."""
    return tuple([stride if extent > 1 else 0 for extent, stride in zip(view.shape, view.strides, strict=True)])


def may_overlap(left: View, right: View) -> bool:
    """True if the address ranges overlap; strided arrays may interleave without sharing an element."""
    low, high = bounds(left)
    other_low, other_high = bounds(right)
    return low < other_high and other_low < high


def shares_memory(left: Array, right: Array) -> bool:
    """True if two arrays with overlapping ranges share an element, or if this is too expensive to decide."""
    try:
        return np.shares_memory(left, right, max_work=1000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def outputs_of(out: object) -> tuple[object, ...]:
    """The outputs of out=: none, one, or several."""
    if out is None:
        return ()
    return tuple(out) if isinstance(out, (tuple, list)) else (out,)


def scalars_of(found: Any) -> Any:
    """New results as NumPy returns them: NumPy scalars if they have no axes; arrays of other libraries stay arrays."""
    if found.__class__ is tuple:
        return tuple([each[()] if each.__class__ is np.ndarray and not each.ndim else each for each in found])
    return found[()] if found.__class__ is np.ndarray and not found.ndim else found
