"""Arrays in Apache Arrow's C data interface: two capsules, of a schema and of an array, with the elements in place.

Note [Release]: whoever takes a structure out of a capsule copies it, and calls `release` of the copy once; a capsule
that nobody has emptied does so itself. So `release` uses nothing but what it is given: `private` is a reference to the
object that owns all memory. The structures in the capsules belong to these.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fusec.errors.lazy import NoArrowArray

FORMATS = {
    "b1": "b", "i1": "c", "u1": "C", "i2": "s", "u2": "S", "i4": "i", "u4": "I", "i8": "l", "u8": "L",
    "f2": "e", "f4": "f", "f8": "g",
}  # fmt: skip
"""Arrow's formats, by NumPy's texts of dtypes."""


class ArrowSchema(ctypes.Structure):
    """The type of an array. Its elements are never missing: flags are 0."""

    _fields_ = (
        ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
        ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64), ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p), ("private", ctypes.c_void_p),
    )  # fmt: skip


class ArrowArray(ctypes.Structure):
    """The memory of an array: a bitmap of what is there, which is none, and the elements."""

    _fields_ = (
        ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.c_void_p),
        ("children", ctypes.c_void_p), ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p),
        ("private", ctypes.c_void_p),
    )  # fmt: skip


def exported(value: np.ndarray[Any, Any]) -> tuple[object, object]:
    """The capsules of an array in host memory, in which it stays if it is dense; bools are packed. Raises NoArrowArray.

    The array must not be written as long as somebody has the second capsule's memory, unless that is to be seen there.
    """
    if value.ndim != 1:
        raise NoArrowArray(f"{value.ndim} axes").at()
    text = FORMATS.get(value.dtype.str[1:], "").encode()
    if not text:
        raise NoArrowArray(f"elements of {value.dtype}").at()
    elements = np.packbits(value, bitorder="little") if value.dtype == bool else np.ascontiguousarray(value)
    schema = ArrowSchema(format=text, name=b"")
    buffers = (ctypes.c_void_p * 2)(None, elements.ctypes.data)
    array = ArrowArray(length=len(value), n_buffers=2, buffers=ctypes.addressof(buffers))
    return _capsule(schema, b"arrow_schema", text), _capsule(array, b"arrow_array", (elements, buffers))


def _capsule(made: Any, name: bytes, owner: object) -> object:
    """A structure in a capsule. owner: of all memory that the structure points to."""
    python, calls = _python(), _callbacks()
    made.private, made.release = id(owner), ctypes.cast(calls.release[type(made)], ctypes.c_void_p).value
    python.incref(id(owner))
    capsule = python.new(ctypes.addressof(made), name, ctypes.cast(calls.end[type(made)], ctypes.c_void_p))
    python.incref(id(made))
    python.set_context(id(capsule), id(made))
    return capsule


class _Python(NamedTuple):
    """Functions of the interpreter, which take objects by address: some of these are about to go."""

    new: Any
    pointer: Any
    context: Any
    set_context: Any
    incref: Any
    decref: Any


class _Callbacks(NamedTuple):
    """What others call, by structure."""

    release: dict[type, Any]
    end: dict[type, Any]


@cache
def _python() -> _Python:
    api, address, text = ctypes.pythonapi, ctypes.c_void_p, ctypes.c_char_p
    return _Python(
        ctypes.PYFUNCTYPE(ctypes.py_object, address, text, address)(("PyCapsule_New", api)),
        ctypes.PYFUNCTYPE(address, address, text)(("PyCapsule_GetPointer", api)),
        ctypes.PYFUNCTYPE(address, address)(("PyCapsule_GetContext", api)),
        ctypes.PYFUNCTYPE(ctypes.c_int, address, address)(("PyCapsule_SetContext", api)),
        ctypes.PYFUNCTYPE(None, address)(("Py_IncRef", api)),
        ctypes.PYFUNCTYPE(None, address)(("Py_DecRef", api)),
    )


@cache
def _callbacks() -> _Callbacks:
    """These live as long as the process: nobody says when the last of them is called."""
    python, kind = _python(), ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    found = _Callbacks({}, {})

    def add(structure: Any, name: bytes) -> None:
        def release(address: int) -> None:
            one = structure.from_address(address)
            owner, one.private, one.release = one.private, None, None
            python.decref(owner)

        def end(capsule: int) -> None:
            address, made = python.pointer(capsule, name), python.context(capsule)
            if structure.from_address(address).release:
                release(address)
            python.decref(made)

        found.release[structure], found.end[structure] = kind(release), kind(end)
        for each in (found.release[structure], found.end[structure]):
            python.incref(id(each))

    add(ArrowSchema, b"arrow_schema")
    add(ArrowArray, b"arrow_array")
    return found
