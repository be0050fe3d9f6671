"""The BLAS that NumPy has loaded: its functions by address, and its number of threads.

OpenBLAS alone is known, under the names that NumPy's wheels and distributions give it. Its threads wait busily after
each product and take processors from those of fusec. So fusec's threads share the products of its plans instead, and
OpenBLAS is held to one thread meanwhile.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module

import numpy as np

from fusec.base.records import dataclass

LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}
"""BLAS's letter for a dtype, by NumPy's letter."""
_FORMS = (("scipy_", "64_", 8), ("", "64_", 8), ("scipy_", "", 4), ("", "", 4))
"""Prefixes and suffixes of names, and the bytes of the integers that such functions take."""


@dataclass(frozen=True)
class Blas:
    """Functions of CBLAS by name, such as "sgemm". integer: bytes of one. get, set: addresses of the functions that
    tell and change the number of threads.
    """

    functions: Mapping[str, int]
    integer: int
    get: int
    set: int


@cache
def library() -> Blas | None:
    """NumPy's BLAS; None if it is not OpenBLAS, or cannot be found."""
    try:
        found = ctypes.CDLL(_module_of_numpy())  # names are looked for in what it depends on, too
    except OSError:
        return None
    for prefix, suffix, integer in _FORMS:
        names = [f"{prefix}cblas_{letter}{kind}{suffix}" for letter in LETTERS.values() for kind in ("gemm", "gemv")]
        names += [f"{prefix}openblas_{word}_num_threads{suffix}" for word in ("get", "set")]
        addresses = [_address(found, name) for name in names]
        if all(addresses):
            *functions, get, set_ = addresses
            pairs = [f"{letter}{kind}" for letter in LETTERS.values() for kind in ("gemm", "gemv")]
            return Blas(dict(zip(pairs, functions, strict=True)), integer, get, set_)
    return None


def _module_of_numpy() -> str:
    return str(import_module("numpy._core._multiarray_umath").__file__)


def _address(found: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(getattr(found, name), ctypes.c_void_p).value or 0 if hasattr(found, name) else 0


class Hold:
    """How many calls hold OpenBLAS to one thread, for native code: a lock, a count, and the threads that it had."""

    WORDS = 3

    def __init__(self) -> None:
        self.words = (ctypes.c_int64 * self.WORDS)()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.words))  # other threads may be using it at the very end
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    @property
    def address(self) -> int:
        """The address of the words."""
        return ctypes.addressof(self.words)

    def _forget(self) -> None:
        """In a child process: the calls of the parent's other threads never end here."""
        blas = library()
        if self.words[1] and blas is not None:
            ctypes.CFUNCTYPE(None, ctypes.c_int)(blas.set)(self.words[2])
        self.words[:] = [0] * self.WORDS


@cache
def hold() -> Hold:
    """The one of this process."""
    return Hold()


def takes(dtype: np.dtype[np.generic]) -> bool:
    """Whether BLAS multiplies elements of a dtype."""
    return dtype.char in LETTERS and dtype.isnative
