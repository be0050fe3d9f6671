"""Arguments of a call as fusec sees them: host arrays of any library, device arrays, numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from fusec import dtypes
from fusec.dtypes import DType
from fusec.errors.arguments import UnsupportedArgument, UnsupportedDtype
from fusec.layouts import Shape, View, bounds
from fusec.scalars import SCALAR_TYPES

Array = NDArray[np.generic]
Wrap = Callable[[Array], object]


def is_number(value: object) -> bool:
    """True for Python and NumPy numbers (a 0-d array is an array)."""
    return isinstance(value, SCALAR_TYPES)


def is_foreign(value: object) -> bool:
    """True for what is neither a number nor a NumPy array: another library's array, or a mistake."""
    return value is not None and not isinstance(value, (np.ndarray, *SCALAR_TYPES))


def host_array(value: object, param: str, kernel: str) -> Array:
    """A NumPy view of any array in host memory; raises UnsupportedArgument if it is none."""
    if _is_masked(value):
        cure = "its mask would be lost: pass .filled(value) or .data"
        raise UnsupportedArgument(kernel, param, "numpy.ma.MaskedArray", cure).at()
    if isinstance(value, np.ndarray):
        return value
    try:
        if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
            return np.from_dlpack(value)
        if hasattr(value, "__array_interface__"):
            return np.asarray(value)
    except Exception as problem:  # whatever another library raises
        reason = str(problem) if isinstance(problem, BufferError | RuntimeError | TypeError) else repr(problem)
        raise UnsupportedArgument(kernel, param, type(value).__name__, reason).at() from problem
    raise UnsupportedArgument(kernel, param, str(type(value))).at()


def _is_masked(value: object) -> bool:
    """True for numpy.ma's arrays; numpy.ma itself, slow to import, is loaded if there is one."""
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(value, masked.MaskedArray)


def wrapper_of(values: Sequence[object]) -> Wrap | None:
    """How results go back to the library of the first foreign array; None if all arrays are NumPy's."""
    for value in values:
        if not is_foreign(value):
            continue
        library = sys.modules.get(type(value).__module__.partition(".")[0])
        wrap = getattr(library, "from_dlpack", None)
        if callable(wrap):
            return lambda array, wrap=wrap: wrap(array)  # type: ignore[misc]
    return None


def dtype_of(array: Array, param: str, kernel: str) -> DType:
    """The dtype row of an array; raises UnsupportedDtype with the cure for its kind."""
    found = dtypes.from_numpy(array.dtype)
    if found is None:
        raise UnsupportedDtype(kernel, param, str(array.dtype), cure_for(array.dtype)).at()
    return found


def cure_for(dtype: np.dtype[np.generic]) -> str:
    """What to do with an array of an unsupported dtype."""
    if dtype.hasobject:
        return "objects cannot be computed on natively; convert with .astype('float64')"
    if not dtype.isnative:
        return f"the byte order is foreign; convert with .astype('{dtype.newbyteorder('=').name}')"
    if dtype.names is not None:
        return "pass the fields as separate arrays"
    if dtype.kind in "mM":
        return "pass .view('int64')"
    if dtype.kind in "fc":
        return "extended precision is not portable; convert with .astype('float64') or .astype('complex128')"
    return f"supported are {', '.join(dtypes.BY_NAME)}"


def view_of(array: Array, dtype: DType) -> View:
    """The array as memory."""
    pointer: int = array.__array_interface__["data"][0]
    return View(pointer, array.shape, array.strides, dtype)


def memory_order(shape: Shape, strides: Sequence[Shape]) -> tuple[int, ...]:
    """Axes of a new array, outermost in memory first, after the first operand that fixes them (NumPy's order K)."""
    for row in strides:
        if len(row) > 1 and all(row):
            return tuple(sorted(range(len(shape)), key=lambda axis: -abs(row[axis])))
    return tuple(range(len(shape)))


def is_same_memory(left: View, right: View) -> bool:
    """True if both walk the same addresses in the same order."""
    return left.pointer == right.pointer and left.shape == right.shape and left.strides == right.strides


def may_overlap(left: View, right: View) -> bool:
    """True if the address ranges meet; strided arrays may interleave without sharing an element."""
    low, high = bounds(left)
    other_low, other_high = bounds(right)
    return low < other_high and other_low < high


def shares_memory(left: Array, right: Array) -> bool:
    """True if two arrays whose ranges meet really share an element, or if that is too hard to tell."""
    try:
        return np.shares_memory(left, right, max_work=1000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True
