"""Functions that only kernels have, in plain Python: they run when a kernel is not compiled.

In a function decorated with `fusec.kernel` they are compiled; called anywhere else, as `fusec.simulate` does with
``python=True``, they work on NumPy arrays, one element after the other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]
Index = int | tuple[int, ...]
Number = Any


class Thread(Protocol):
    """A position of a block that runs in Python, for `fusec.simulate`. position: in the grid; thread: in its
    block; block: that of the block; all as numbers for one axis, else as tuples.
    """

    position: Index
    thread: Index
    block: Index

    def meet(self) -> None:
        """Wait for the other positions of the block."""

    def shared(self, site: object, shape: int | Sequence[int], dtype: DTypeLike) -> Array:
        """The array of the block that belongs to a place in the text."""


HERE: ContextVar[Thread | None] = ContextVar("HERE", default=None)  # the position that runs, if one of a block does


def grid(shape: int | Sequence[int]) -> Iterable[Any]:
    """The positions of a kernel's elements: numbers below `shape`, or tuples of them in C order if it is a tuple."""
    here = HERE.get()
    if here is not None:
        return (here.position,)
    if isinstance(shape, Sequence):
        return np.ndindex(*(max(0, extent) for extent in shape))
    return range(shape)


def local(shape: int | Sequence[int], dtype: DTypeLike) -> Array:
    """A small array of zeros that belongs to one element; its shape is known when the kernel is compiled."""
    return np.zeros(shape, dtype)


def shared(shape: int | Sequence[int], dtype: DTypeLike) -> Array:
    """An array that the positions of a block share; its contents are undefined until they are written."""
    frame = sys._getframe(1)
    return _here("shared").shared((frame.f_code, frame.f_lasti), shape, dtype)


def barrier() -> None:
    """Wait until all positions of the block have arrived; afterwards their writes can be read."""
    _here("barrier").meet()


def thread_index() -> Index:
    """The position within its block: a number, or a tuple for a block with several axes."""
    return _here("thread_index").thread


def block_index() -> Index:
    """The position of the block among the blocks: a number, or a tuple for a block with several axes."""
    return _here("block_index").block


def _here(name: str) -> Thread:
    found = HERE.get()
    if found is None:
        raise RuntimeError(f"fusec.{name}() means something in kernels with block= only, compiled or in fusec.simulate")
    return found


def atomic_add(x: Array, index: Index, value: Number) -> Number:
    """Add to ``x[index]`` atomically and return the old value; the order of float additions is not fixed."""
    return _update(x, index, lambda old: old + value)


def atomic_min(x: Array, index: Index, value: Number) -> Number:
    """Set ``x[index]`` to the minimum of itself and a value, and return the old value; a number replaces nan."""
    return _update(x, index, lambda old: value if value < old or old != old else old)


def atomic_max(x: Array, index: Index, value: Number) -> Number:
    """Set ``x[index]`` to the maximum of itself and a value, and return the old value; a number replaces nan."""
    return _update(x, index, lambda old: value if value > old or old != old else old)


def atomic_and(x: Array, index: Index, value: Number) -> Number:
    """``x[index] &= value``; returns the old value."""
    return _update(x, index, lambda old: old & value)


def atomic_or(x: Array, index: Index, value: Number) -> Number:
    """``x[index] |= value``; returns the old value."""
    return _update(x, index, lambda old: old | value)


def atomic_xor(x: Array, index: Index, value: Number) -> Number:
    """``x[index] ^= value``; returns the old value."""
    return _update(x, index, lambda old: old ^ value)


def atomic_exchange(x: Array, index: Index, value: Number) -> Number:
    """``x[index] = value``; returns the old value."""
    old = x[index]
    x[index] = value
    return old


def atomic_cas(x: Array, index: Index, expected: Number, value: Number) -> Number:
    """``x[index] = value`` if ``x[index]`` is `expected`; returns the old value."""
    return _update(x, index, lambda old: value if old == expected else old)


def _update(x: Array, index: Index, change: Callable[[Any], Any]) -> Number:
    old = x[index]
    with np.errstate(over="ignore"):
        x[index] = np.asarray(change(old)).astype(x.dtype)
    return old
