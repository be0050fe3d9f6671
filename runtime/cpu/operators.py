"""Builtins that record operators of lazy arrays whose steps are known, and leave all others to Python.

As the native entries of kernels (`fusec.runtime.cpu.fastcall`), they read objects whose layout was looked at; where it
is another, there are none.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any

import numpy as np

from fusec.base.records import dataclass
from fusec.runtime.cpu import description as d
from fusec.runtime.cpu import fastcall, jit
from fusec.runtime.cpu.operators_text import OperatorWord, operator_text

FUNCTIONS = {
    OperatorWord.VECTORCALL: "PyObject_Vectorcall",
    OperatorWord.NEW_TUPLE: "PyTuple_New",
    OperatorWord.GET_ITEM: "PyDict_GetItemWithError",
    OperatorWord.SET_ITEM: "PyDict_SetItem",
    OperatorWord.SET_DEFAULT: "PyDict_SetDefault",
    OperatorWord.CONTAINS: "PySequence_Contains",
    OperatorWord.CLEAR: "PyErr_Clear",
    OperatorWord.ALLOCATE: "PyType_GenericAlloc",
    OperatorWord.NEW_REFERENCE: "PyWeakref_NewRef",
    OperatorWord.FROM_POINTER: "PyLong_FromVoidPtr",
    OperatorWord.AS_LONG: "PyLong_AsLong",
    OperatorWord.FROM_LONG: "PyLong_FromLong",
    OperatorWord.NEW_DICT: "PyDict_New",
    OperatorWord.NEXT: "PyDict_Next",
    OperatorWord.APPEND: "PyList_Append",
    OperatorWord.REFERENT: "PyWeakref_GetObject",
    OperatorWord.PAUSE: "PyGC_Disable",
    OperatorWord.RESUME: "PyGC_Enable",
    OperatorWord.INCREF: "Py_IncRef",
    OperatorWord.DECREF: "Py_DecRef",
}
TYPES: dict[OperatorWord, Any] = {
    OperatorWord.FLOAT: float,
    OperatorWord.INT: int,
    OperatorWord.BOOL: bool,
    OperatorWord.COMPLEX: complex,
    OperatorWord.NDARRAY: np.ndarray,
    OperatorWord.NONE: None,
    OperatorWord.REFERENCE: weakref.ref,
    OperatorWord.TRUE: True,
    OperatorWord.FALSE: False,
    OperatorWord.ZERO: 0,
    OperatorWord.ONE: 1,
}
ATTRIBUTES = {
    "_tape": OperatorWord.TAPE,
    "_at": OperatorWord.AT,
    "_form": OperatorWord.FORM,
    "_value": OperatorWord.VALUE,
    "node": OperatorWord.NODE,
    "slots": OperatorWord.SLOTS,
    "places": OperatorWord.PLACES,
    "limits": OperatorWord.LIMITS,
    "is_closed": OperatorWord.CLOSED,
    "count": OperatorWord.COUNT,
    "depth": OperatorWord.DEPTH,
    "mark": OperatorWord.MARK,
    "root": OperatorWord.ROOT,
}


@dataclass(eq=False)
class OperatorForm:
    """What all operators have in common: the types of arrays and tapes; objects of each class whose attributes are
    read, by their names; lists that are empty as long as operators may be recorded so, the second one for operands with
    values; the trie; the list of all tapes, and what shortens it; and what a tape has behind its end.
    """

    array: type
    tape: type
    read: Mapping[str, Any]
    eager: list[Any]
    written: list[Any]
    trie: Any
    known: list[Any]
    forget: Callable[[], None]
    frozen: Any


class OperatorMaker:
    """Makes the builtins of operators."""

    def __init__(self, form: OperatorForm, store: Any) -> None:
        """Raises LookupError where objects have a layout that is not known. store: keeps the code."""
        if reason := fastcall.objection_to_build():
            raise LookupError(reason)
        self.form, self.words = form, [0] * OperatorWord.WORDS
        self.code = jit.compile_text("operate", operator_text(), store, "least")
        for name, one in form.read.items():
            self.words[ATTRIBUTES[name]] = _offset(one, name)
        own: dict[OperatorWord, Any] = {
            OperatorWord.ARRAY: form.array,
            OperatorWord.TAPES: form.tape,
            OperatorWord.EAGER: form.eager,
            OperatorWord.WRITTEN: form.written,
            OperatorWord.TRIE: form.trie,
            OperatorWord.KNOWN: form.known,
            OperatorWord.FORGET: form.forget,
            OperatorWord.FROZEN: form.frozen,
        }
        for word, value in (TYPES | own).items():
            self.words[word] = id(value)
        for word, function in FUNCTIONS.items():
            found = getattr(ctypes.pythonapi, function, None)
            if found is None:
                raise LookupError(f"the interpreter has no {function}")
            self.words[word] = ctypes.cast(found, ctypes.c_void_p).value or 0
        self.words[OperatorWord.ITEMS] = tuple.__basicsize__
        if not all(map(_has_its_count, ([], [None] * 3, (None,) * 3, dict.fromkeys(range(3))))):
            raise LookupError("lists or dictionaries have an unknown layout")

    def make(self, function: Any, operands: int, is_swapped: bool, fallback: Callable[..., Any]) -> Callable[..., Any]:
        """The builtin of an operator of one or two operands, which records a function."""
        words = [*self.words]
        words[OperatorWord.FALLBACK], words[OperatorWord.FUNCTION] = id(fallback), id(function)
        words[OperatorWord.OPERANDS], words[OperatorWord.SWAPPED] = operands, is_swapped
        signature = "(self, /)" if operands == 1 else "(self, other, /)"
        return fastcall.builtin(words, self.code, fallback.__name__, (fallback, function, self), signature)


def as_method(function: Callable[..., Any]) -> Any:
    """What an attribute of a class must be so that a builtin gets the object."""
    return _new_method()(function)


@cache
def _new_method() -> Callable[[Any], Any]:
    create = ctypes.pythonapi.PyInstanceMethod_New
    create.restype, create.argtypes = ctypes.py_object, [ctypes.py_object]
    return create


def _offset(one: Any, name: str) -> int:
    """How many bytes behind the start of an object an attribute is. Raises LookupError if that cannot be seen."""
    before, mark = getattr(one, name), object()
    setattr(one, name, mark)
    words = range(object.__basicsize__, type(one).__basicsize__, 8)
    found = [at for at in words if _word(id(one) + at) == id(mark)]
    setattr(one, name, before)
    if len(found) != 1:
        raise LookupError(f"'{name}' is not to be found in its object")
    return found[0]


def _word(address: int) -> int:
    value: int = ctypes.c_int64.from_address(address).value
    return value


def _has_its_count(items: Collection[Any]) -> bool:
    return _word(id(items) + d.COUNT) == len(items)
