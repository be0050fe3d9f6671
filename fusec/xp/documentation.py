"""The docstrings of the namespace: a sentence and an example are written, the rest is composed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from fusec.xp.refusals import refusing
from fusec.xp.signatures import repeated

F = TypeVar("F", bound=Callable[..., Any])

ARGUMENTS = {
    "x": "x: an array, lazy or NumPy's; a number or a list becomes one.",
    "x1": "x1: like x2; an array, lazy or NumPy's, a number or a list.",
    "x2": "x2: broadcasts against x1.",
    "shape": "shape: an integer or a tuple of them.",
    "axis": "axis: an integer; negative ones count from the end.",
    "axes": "axes: integers; negative ones count from the end.",
    "dtype": "dtype: that of the result; None for NumPy's choice.",
    "device": "device: where the result is, such as 'cpu'; None for where the arguments are.",
    "copy": "copy: True for new memory, False for the same memory or an error, None for a copy only if needed.",
    "keepdims": "keepdims: keep the reduced axes, with one element each.",
    "options": "options: NumPy's further ones, such as out=.",
    "arrays": "arrays: lazy ones or NumPy's.",
    "indexing": "indexing: 'xy' for Cartesian order, 'ij' for the order of matrices.",
    "descending": "descending: the greatest first.",
    "stable": "stable: keep the order of equal elements.",
    "correction": "correction: subtracted from the number of elements before the division.",
    "include_initial": "include_initial: put the result of no elements first.",
    "invert": "invert: those that are not there instead.",
    "norm": "norm: 'backward', 'ortho' or 'forward': which transform is scaled.",
    "n": "n: the length of the transformed axis; it is cut or filled up with zeros.",
    "s": "s: the lengths of the transformed axes, which are cut or filled up with zeros.",
    "k": "k: which diagonal; positive ones are above the main one.",
    "offset": "offset: the diagonal; positive ones are above the main one. For random arrays, the first counter.",
    "rtol": "rtol: singular values below this part of the greatest count as zero; None for NumPy's choice.",
    "ord": "ord: the order of the norm.",
}
SEVERAL = {"axis": "axis: an integer or a tuple of them, None for all; negative ones count from the end."}
TOTALS = "The shape of the result is that of x without the reduced axes."
ERRORS = "Raises what NumPy raises for these shapes and dtypes, when it is recorded."


def documented(function: F) -> F:
    """Complete a docstring, which has a sentence and an example, with the parameters and errors.

    The steps of those that take arrays are found again, as Note [Signatures] says.
    """
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARKEYWORDS)]
    function.__doc__ = composed(function.__doc__ or "", names)
    takes_arrays = code.co_posonlyargcount or code.co_flags & inspect.CO_VARARGS
    return repeated(function) if takes_arrays else refusing(function)


def composed(text: str, names: tuple[str, ...]) -> str:
    """The docstring of a function with these parameters."""
    own, mark, example = inspect.cleandoc(text).partition("\n\n>>> ")
    is_total = "keepdims" in names
    known = ARGUMENTS | (SEVERAL if is_total else {})
    told = [known[each] for each in names if each in known and f"{each}:" not in own]
    told += [TOTALS] if is_total and "shape" not in own else []
    return "\n".join([own, "", *told, ERRORS, *(["", f">>> {example}"] if mark else [])])
