"""Functions that only kernels have, as plain Python has them: what a kernel computes when it is not compiled.

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
    """A position of a block that runs in Python: what `fusec.simulate` makes. position: in the grid; thread: in its
    block; block: that of the block; all as numbers for one axis, else as tuples.
    """

    position: Index
    thread: Index
    block: Index

    def meet(self) -> None:
        """Wait for the others of the block."""

    def shared(self, site: object, shape: int | Sequence[int], dtype: DTypeLike) -> Array:
        """The array of the block that a place in the text makes."""


HERE: ContextVar[Thread | None] = ContextVar("HERE", default=None)  # the position that runs, if one of a block does


def grid(shape: int | Sequence[int]) -> Iterable[Any]:
    """The positions of a kernel's elements: numbers below `shape`, or tuples of them in C order for a tuple."""
    here = HERE.get()
    if here is not None:
        return (here.position,)
    if isinstance(shape, Sequence):
        return np.ndindex(*(max(0, extent) for extent in shape))
    return range(shape)


def local(shape: int | Sequence[int], dtype: DTypeLike) -> Array:
    """A small array of an element's own, of zeros; its shape is known when the kernel is compiled."""
    return np.zeros(shape, dtype)


def shared(shape: int | Sequence[int], dtype: DTypeLike) -> Array:
    """An array that the positions of a block have together; it holds anything until they write to it."""
    frame = sys._getframe(1)
    return _here("shared").shared((frame.f_code, frame.f_lasti), shape, dtype)


def barrier() -> None:
    """Wait until all positions of the block have come here; then what they have written can be read."""
    _here("barrier").meet()


def thread_index() -> Index:
    """Where the position is in its block: a number, or a tuple for a block of several axes."""
    return _here("thread_index").thread


def block_index() -> Index:
    """Where the block is among the blocks: a number, or a tuple for a block of several axes."""
    return _here("block_index").block


def _here(name: str) -> Thread:
    found = HERE.get()
    if found is None:
        raise RuntimeError(f"fusec.{name}() means something in kernels with block= only, compiled or in fusec.simulate")
    return found


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
