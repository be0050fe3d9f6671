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
    """A position of a block that runs in Python, for `fusec.simulate`."""

    position: Index  # in the grid: a number for one axis, else a tuple
    thread: Index  # in its block
    block: Index  # of the block

    def meet(self) -> None:
        """Wait for the other positions of the block."""

    def shared(self, site: object, shape: int | Sequence[int], dtype: DTypeLike) -> Array:
        """The array of the block that belongs to a place in the text."""


HERE: ContextVar[Thread | None] = ContextVar("HERE", default=None)  # the position that runs, if one of a block does


def grid(shape: int | Sequence[int]) -> Iterable[Any]:
    """The positions of a kernel's elements: numbers below `shape`, or tuples of them in C order if it is a tuple.

    shape: an integer, or one for each axis, of any integer dtype; a negative extent counts as 0.
    Raises TypeError outside of kernels if the shape is not of integers.

    >>> list(fusec.grid((2, 2)))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    here = HERE.get()
    if here is not None:
        return (here.position,)
    if isinstance(shape, Sequence):
        return np.ndindex(*(max(0, extent) for extent in shape))
    return range(shape)


def local(shape: int | Sequence[int], dtype: DTypeLike) -> Array:
    """A small array of zeros that belongs to one element; its shape is known when the kernel is compiled.

    shape: an integer or a tuple, known when the kernel is compiled. dtype: of the elements.
    Raises TypeError outside of kernels if the dtype is not one.

    >>> fusec.local(3, np.float32)
    array([0., 0., 0.], dtype=float32)
    """
    return np.zeros(shape, dtype)


def shared(shape: int | Sequence[int], dtype: DTypeLike) -> Array:
    """An array that the positions of a block share; its contents are undefined until they are written.

    shape: an integer or a tuple, known when the kernel is compiled. dtype: of the elements.
    Raises FusecRuntimeError outside of kernels with block=, as `barrier` and the indices do.

    >>> @fusec.kernel(block=4)
    ... def reverse(x):
    ...     for i in fusec.grid(x.shape[0]):
    ...         row = fusec.shared(4, x.dtype)
    ...         row[3 - fusec.thread_index()] = x[i]
    ...         fusec.barrier()
    ...         x[i] = row[fusec.thread_index()] + 10 * fusec.block_index()
    >>> x = np.arange(8)
    >>> reverse(x)
    >>> x
    array([ 3,  2,  1,  0, 17, 16, 15, 14])
    """
    frame = sys._getframe(1)
    return _here("shared").shared((frame.f_code, frame.f_lasti), shape, dtype)


def barrier() -> None:
    """Wait until all positions of the block have arrived; afterwards their writes can be read.

    Raises FusecRuntimeError outside of kernels with block=; `fusec.shared` has an example with all of them.

    >>> fusec.barrier()
    Traceback (most recent call last):
    fusec.FusecRuntimeError: fusec.barrier() works only in kernels with block=, compiled or in fusec.simulate [F397]
    hint: call it in the loop of a function that fusec.kernel(block=...) decorates
    """
    _here("barrier").meet()


def thread_index() -> Index:
    """The position within its block: a number, or a tuple for a block with several axes.

    Raises FusecRuntimeError outside of kernels with block=; `fusec.shared` has an example with all of them.

    >>> @fusec.kernel(block=3)
    ... def places(x):
    ...     for i in fusec.grid(x.shape[0]):
    ...         x[i] = fusec.thread_index()
    >>> x = np.zeros(6, int)
    >>> places(x)
    >>> x
    array([0, 1, 2, 0, 1, 2])
    """
    return _here("thread_index").thread


def block_index() -> Index:
    """The position of the block among the blocks: a number, or a tuple for a block with several axes.

    Raises FusecRuntimeError outside of kernels with block=; `fusec.shared` has an example with all of them.

    >>> @fusec.kernel(block=3)
    ... def blocks(x):
    ...     for i in fusec.grid(x.shape[0]):
    ...         x[i] = fusec.block_index()
    >>> x = np.zeros(6, int)
    >>> blocks(x)
    >>> x
    array([0, 0, 0, 1, 1, 1])
    """
    return _here("block_index").block


def _here(name: str) -> Thread:
    found = HERE.get()
    if found is None:
        from fusec.errors.checks import OutsideBlock  # only mistakes need it

        raise OutsideBlock(name).at()
    return found


def atomic_add(x: Array, index: Index, value: Number) -> Number:
    """Add to ``x[index]`` atomically and return the old value; the order of float additions is not fixed.

    x: an array of any shape. index: of an element, one number or a tuple with one for each axis. value: the other
    operand, which is converted to the dtype of x. Raises IndexError outside of kernels if the index is out of bounds.

    >>> x = np.array([1, 2])
    >>> int(fusec.atomic_add(x, 0, 5)), x.tolist()
    (1, [6, 2])
    """
    return _update(x, index, lambda old: old + value)


def atomic_min(x: Array, index: Index, value: Number) -> Number:
    """Set ``x[index]`` to the minimum of itself and a value, and return the old value; a number replaces nan.

    x: an array of any shape. index: of an element, one number or a tuple with one for each axis. value: the other
    operand, which is converted to the dtype of x. Raises IndexError outside of kernels if the index is out of bounds.

    >>> x = np.array([7, 2])
    >>> int(fusec.atomic_min(x, 0, 5)), x.tolist()
    (7, [5, 2])
    """
    return _update(x, index, lambda old: value if value < old or old != old else old)


def atomic_max(x: Array, index: Index, value: Number) -> Number:
    """Set ``x[index]`` to the maximum of itself and a value, and return the old value; a number replaces nan.

    x: an array of any shape. index: of an element, one number or a tuple with one for each axis. value: the other
    operand, which is converted to the dtype of x. Raises IndexError outside of kernels if the index is out of bounds.

    >>> x = np.array([1, 2])
    >>> int(fusec.atomic_max(x, 0, 5)), x.tolist()
    (1, [5, 2])
    """
    return _update(x, index, lambda old: value if value > old or old != old else old)


def atomic_and(x: Array, index: Index, value: Number) -> Number:
    """``x[index] &= value``; returns the old value.

    x: an array of any shape. index: of an element, one number or a tuple with one for each axis. value: the other
    operand, which is converted to the dtype of x. Raises IndexError outside of kernels if the index is out of bounds.

    >>> x = np.array([7, 2])
    >>> int(fusec.atomic_and(x, 0, 5)), x.tolist()
    (7, [5, 2])
    """
    return _update(x, index, lambda old: old & value)


def atomic_or(x: Array, index: Index, value: Number) -> Number:
    """``x[index] |= value``; returns the old value.

    x: an array of any shape. index: of an element, one number or a tuple with one for each axis. value: the other
    operand, which is converted to the dtype of x. Raises IndexError outside of kernels if the index is out of bounds.

    >>> x = np.array([1, 2])
    >>> int(fusec.atomic_or(x, 0, 4)), x.tolist()
    (1, [5, 2])
    """
    return _update(x, index, lambda old: old | value)


def atomic_xor(x: Array, index: Index, value: Number) -> Number:
    """``x[index] ^= value``; returns the old value.

    x: an array of any shape. index: of an element, one number or a tuple with one for each axis. value: the other
    operand, which is converted to the dtype of x. Raises IndexError outside of kernels if the index is out of bounds.

    >>> x = np.array([1, 2])
    >>> int(fusec.atomic_xor(x, 0, 5)), x.tolist()
    (1, [4, 2])
    """
    return _update(x, index, lambda old: old ^ value)


def atomic_exchange(x: Array, index: Index, value: Number) -> Number:
    """``x[index] = value``; returns the old value.

    x: an array of any shape. index: of an element, one number or a tuple with one for each axis. value: what is
    stored, which is converted to the dtype of x. Raises IndexError outside of kernels if the index is out of bounds.

    >>> x = np.array([1, 2])
    >>> int(fusec.atomic_exchange(x, 0, 5)), x.tolist()
    (1, [5, 2])
    """
    old = x[index]
    x[index] = value
    return old


def atomic_cas(x: Array, index: Index, expected: Number, value: Number) -> Number:
    """``x[index] = value`` if ``x[index]`` is `expected`; returns the old value.

    x: an array of any shape. index: of an element, one number or a tuple with one for each axis. expected: a number.
    value: what is stored, which is converted to the dtype of x.
    Raises IndexError outside of kernels if the index is out of bounds.

    >>> x = np.array([1, 2])
    >>> int(fusec.atomic_cas(x, 0, 1, 5)), x.tolist()
    (1, [5, 2])
    """
    return _update(x, index, lambda old: value if old == expected else old)


def _update(x: Array, index: Index, change: Callable[[Any], Any]) -> Number:
    old = x[index]
    with np.errstate(over="ignore"):
        x[index] = np.asarray(change(old)).astype(x.dtype)
    return old
