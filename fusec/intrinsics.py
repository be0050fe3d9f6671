"""Functions that only kernels have, as plain Python has them: what a kernel computes when it is not compiled.

In a function decorated with `fusec.kernel` they are compiled; called anywhere else, as `fusec.simulate` does with
``python=True``, they work on NumPy arrays, one element after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]
Index = int | tuple[int, ...]
Number = Any


def grid(shape: int | Sequence[int]) -> Iterable[Any]:
    """The positions of a kernel's elements: numbers below `shape`, or tuples of them in C order for a tuple."""
    if isinstance(shape, Sequence):
        return np.ndindex(*(max(0, extent) for extent in shape))
    return range(shape)


def local(shape: int | Sequence[int], dtype: DTypeLike) -> Array:
    """A small array of an element's own, of zeros; its shape is known when the kernel is compiled."""
    return np.zeros(shape, dtype)


def atomic_add(x: Array, index: Index, value: Number) -> Number:
    """Add to ``x[index]`` as if alone, and return what was there; floats in any order."""
    return _update(x, index, lambda old: old + value)


def atomic_min(x: Array, index: Index, value: Number) -> Number:
    """Make ``x[index]`` the lesser of itself and a value, and return what was there; nan gives way."""
    return _update(x, index, lambda old: value if value < old or old != old else old)


def atomic_max(x: Array, index: Index, value: Number) -> Number:
    """Make ``x[index]`` the greater of itself and a value, and return what was there; nan gives way."""
    return _update(x, index, lambda old: value if value > old or old != old else old)


def atomic_and(x: Array, index: Index, value: Number) -> Number:
    """``x[index] &= value``, returning what was there."""
    return _update(x, index, lambda old: old & value)


def atomic_or(x: Array, index: Index, value: Number) -> Number:
    """``x[index] |= value``, returning what was there."""
    return _update(x, index, lambda old: old | value)


def atomic_xor(x: Array, index: Index, value: Number) -> Number:
    """``x[index] ^= value``, returning what was there."""
    return _update(x, index, lambda old: old ^ value)


def atomic_exchange(x: Array, index: Index, value: Number) -> Number:
    """``x[index] = value``, returning what was there."""
    old = x[index]
    x[index] = value
    return old


def atomic_cas(x: Array, index: Index, expected: Number, value: Number) -> Number:
    """``x[index] = value`` if it is `expected`, returning what was there."""
    return _update(x, index, lambda old: value if old == expected else old)


def _update(x: Array, index: Index, change: Callable[[Any], Any]) -> Number:
    old = x[index]
    with np.errstate(over="ignore"):
        x[index] = np.asarray(change(old)).astype(x.dtype)
    return old


def cospi(x: Number) -> Number:
    """cos(pi x), as kernels have it too."""
    return np.cos(np.pi * np.asarray(x, np.float64)).astype(np.asarray(x).dtype)[()]


def sinpi(x: Number) -> Number:
    """sin(pi x), as kernels have it too."""
    return np.sin(np.pi * np.asarray(x, np.float64)).astype(np.asarray(x).dtype)[()]
