"""Arrays behind which nothing may be read."""

import ctypes
import mmap

import numpy as np

PAGE = mmap.PAGESIZE


def at_end_of_page(array: np.ndarray) -> np.ndarray:
    """A copy of an array, with its strides, whose memory ends with a page after which nothing may be read (Linux)."""
    low, high = np.lib.array_utils.byte_bounds(array)
    span = high - low
    size = -(-span // PAGE) * PAGE
    memory = mmap.mmap(-1, size + PAGE)
    raw = np.frombuffer(memory, np.uint8)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    assert protect(ctypes.c_void_p(raw.ctypes.data + size), ctypes.c_size_t(PAGE), 0) == 0
    first = size - span + array.__array_interface__["data"][0] - low
    placed = np.ndarray(array.shape, array.dtype, memory, first, array.strides)
    placed[...] = array
    return placed
