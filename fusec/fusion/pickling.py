"""Pickles of fused functions: by name where a module has one, else by the code of the function."""

from __future__ import annotations

import importlib
import marshal
import sys
from operator import attrgetter
from pickle import UnpicklingError
from types import CellType, FunctionType
from typing import Any, NamedTuple

from fusec.frontends.capture.namespace import closure_of

VERSION = sys.implementation.cache_tag or sys.version
"""Code is that of one version of Python."""


def name_of(value: object, module: str, qualname: str) -> str:
    """The name under which a module has an object: its own, or another one; "" if there is none."""
    if named(module, qualname) is value:
        return qualname
    names = getattr(sys.modules.get(module), "__dict__", {})
    return next((name for name, each in list(names.items()) if each is value), "")


def named(module: str, qualname: str) -> Any:
    """The object that a module has under a name; None if there is none."""
    try:
        return attrgetter(qualname)(sys.modules[module])
    except (AttributeError, KeyError):
        return None


class FunctionParts(NamedTuple):
    """What a lambda or a nested function is made of."""

    version: str  # of the Python that wrote `code`
    code: bytes
    module: str
    qualname: str
    defaults: Any
    keywords: Any
    cells: tuple[Any, ...]  # `CellType` for those without contents


def parts_of(function: FunctionType) -> FunctionParts:
    """The parts from which `from_parts` makes a function."""
    cells = tuple(closure_of(function).get(name, CellType) for name in function.__code__.co_freevars)
    return FunctionParts(
        VERSION, marshal.dumps(function.__code__), function.__module__, function.__qualname__, function.__defaults__,
        function.__kwdefaults__, cells,
    )  # fmt: skip


def from_parts(parts: FunctionParts) -> FunctionType:
    """A lambda, or a nested function. Raises UnpicklingError for other versions of Python."""
    version, code, module, qualname, defaults, keywords, cells = parts
    if version != VERSION:
        raise UnpicklingError(f"'{qualname}' was pickled by {version}, and this is {VERSION}: define it in a module")
    names = vars(importlib.import_module(module))
    closure = tuple(CellType() if each is CellType else CellType(each) for each in cells)
    made = FunctionType(marshal.loads(code), names, None, defaults, closure or None)
    made.__qualname__, made.__kwdefaults__ = qualname, keywords
    return made
