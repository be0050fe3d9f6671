"""Errors of NumPy's about lazy arrays as errors of the catalogue, with the user's line.

An error keeps its text, and is still of its class in Python or NumPy. One that comes from other code, such as an
`__array__` of the user's, stays as it is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from itertools import islice
from types import CodeType, TracebackType
from typing import Any, TypeVar, cast

import numpy as np

from fusec.base import locks
from fusec.base.diagnostics import instance_of, shown_number
from fusec.base.dtypes import cure_for
from fusec.base.source import Span
from fusec.environment import debug
from fusec.errors import FusecError, FusecIndexError, FusecMemoryError, FusecOverflowError, FusecTypeError
from fusec.errors.base import FusecValueError, UserError
from fusec.errors.lazy import Failed, FusecLinAlgError, NotADType, RefusedByNumPy
from fusec.errors.reductions import FusecAxisError
from fusec.xp.loading import lines

F = TypeVar("F", bound=Callable[..., Any])

CLASSES: dict[type[Exception], type[FusecError]] = {
    ValueError: FusecValueError,
    TypeError: FusecTypeError,
    IndexError: FusecIndexError,
    OverflowError: FusecOverflowError,
    MemoryError: FusecMemoryError,
    np.exceptions.AxisError: FusecAxisError,
    np.linalg.LinAlgError: FusecLinAlgError,
}
PRIVATE = "numpy._core._exceptions"  # the module of NumPy's own TypeErrors and MemoryErrors
CURES = {
    "read-only": "write to a copy: xp.asarray(x, copy=True)",
    "inhomogeneous": "give all lists at a level the same length",
    "cannot delete array elements": "write x = xp.delete(x, i), which makes a new array",
    "Array.__format__": "write np.array2string(np.asarray(x), precision=3), or format the numbers of x.tolist()",
    "Array doesn't define __round__": "write xp.round(x, n)",
    "either both or neither of x and y": "pass both: xp.where(condition, x1, x2)",
    "0-dimensional arrays can be converted": "pick an element, such as x[0], or call x.item() if there is only one",
}
"""Hints, by a part of the text."""

MAX_LINES = 4096  # older ones are forgotten
_LINES: dict[int, tuple[object, CodeType, int]] = {}
_OUR_FILES: set[str] = set()  # that have been on the way to a user's line

NO_DTYPE = re.compile(r"data type '(\w+)' not understood")
UNEXPECTED = re.compile(r"got an unexpected keyword argument '(\w+)'")
UFUNC_KEYWORDS = ("out", "where", "casting", "order", "dtype", "subok")  # before NumPy 2.4 they have no signature
OWN_KINDS = (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def refusal(problem: Exception, function: Callable[..., Any] | None = None) -> Exception:
    """An error to raise: as one of the catalogue, without the frames that it has come through. One of the user's code
    stays as it is.

    function: what the user has called.
    """
    found = _catalogued(problem, function)
    if found is not None:
        found.__suppress_context__ = True
        return found
    return _brief(problem)


def failure(problem: Exception) -> Exception:
    """The error of an evaluation to raise: with the line that recorded the operation, if that is known."""
    if isinstance(problem, FusecError) or not any(hasattr(each, "place") for each in _notes(problem)):
        return _brief(problem)
    return refusal(problem)


def _brief(problem: Exception) -> Exception:
    """An error of the catalogue without the frames that it has come through, unless FUSEC_DEBUG shows them."""
    if not isinstance(problem, FusecError) or debug.level():
        return problem
    problem.__suppress_context__ = True
    return problem.with_traceback(None)


def _catalogued(problem: Exception, function: Callable[..., Any] | None) -> FusecError | None:
    """The error of the catalogue for another one; None if it stays as it is."""
    if isinstance(problem, FusecError):
        return None if problem.span is not None else type(problem)(problem.error, _here())
    kind = CLASSES.get(_class_of(problem))
    if kind is None or not _is_ours(problem.__traceback__):
        return None
    for note in _notes(problem):
        if (place := getattr(note, "place", None)) is not None:
            return _made(kind, Failed(str(problem), note.name), place, problem)
    if function is not None and (given := UNEXPECTED.search(str(problem))) is not None:
        found = _unknown(function, given[1])
        if found is not None:
            return found.at(_here())
    text = str(problem)
    cure = next((cure for part, cure in CURES.items() if part in text), "")
    if (unknown := NO_DTYPE.fullmatch(text)) is not None:
        cure = cure_for(unknown[1])
    return _made(kind, RefusedByNumPy(text, cure), _here(), problem)


def as_array(given: Any) -> np.ndarray[Any, Any]:
    """Numbers, lists and the like as an array of NumPy's. Raises NotADType for what has other elements."""
    return with_numbers(np.asarray(given), given)


def with_numbers(found: np.ndarray[Any, Any], given: Any) -> np.ndarray[Any, Any]:
    """An array that was made of something. Raises NotADType if that has elements that are no numbers."""
    if found.dtype.kind != "O" or hasattr(given, "dtype"):
        return found
    while type(given) in (list, tuple) and given:
        given = next((each for each in given if np.asarray(each).dtype.kind == "O"), given[0])
    raise NotADType(*_not_numbers(given)).at(_here())


def _not_numbers(given: Any) -> tuple[str, str, str]:
    """What is no array of numbers, what is wanted, and the hint."""
    if type(given) is int:
        return shown_number(given), "an integer of 64 bits", "pass a float, float(x), if it may be rounded"
    if given is None:
        return "None", "a number", "pass a number, an array or a list; nan stands for numbers that are missing"
    if isinstance(given, dict):
        return "a dict", "an array of numbers", "pass list(x.values())"
    if hasattr(given, "__iter__"):
        return instance_of(given), "an array of numbers", "pass a list of numbers, list(x)"
    cure = "pass float(x)" if hasattr(given, "__float__") else "pass an array, a number or a list of numbers"
    return instance_of(given), "an array of numbers", cure


def note_line(holder: object) -> None:
    """Note the user's line of a step that may fail, by what is in the first slot of the step."""
    frame = sys._getframe(2)  # beyond the recorder, whose line is not the user's
    while (name := (code := frame.f_code).co_filename) in _OUR_FILES or name.startswith(lines().LIBRARIES):
        _OUR_FILES.add(name)
        if frame.f_back is None:
            break
        frame = frame.f_back
    _LINES[id(holder)] = holder, code, frame.f_lasti
    if len(_LINES) > MAX_LINES:
        with locks.lock:
            for each in [*_LINES][: MAX_LINES // 2]:
                _LINES.pop(each, None)


def pass_line(holder: object, other: object) -> None:
    """Have something else in the first slot of a step stand for the same line."""
    found = _LINES.get(id(holder))
    if found is not None:
        _LINES[id(other)] = other, *found[1:]


def line_of(holder: object) -> Span | None:
    """The user's line of a step, by what is in its first slot; None if it is not known."""
    found = _LINES.get(id(holder))
    if found is None:
        return None
    _, code, at = found
    number = next(islice(code.co_positions(), at // 2, None))[0]  # an instruction has two bytes
    return cast("Span", lines().line(code.co_filename, number or code.co_firstlineno))


def refusing(function: F) -> F:
    """The function, whose errors are of the catalogue."""

    @wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except Exception as problem:
            raise refusal(problem, function)  # noqa: B904 - it says so

    return cast("F", run)


def _class_of(problem: Exception) -> type[Exception]:
    """The class that users see of an error."""
    kind = type(problem)
    return next(each for each in kind.__mro__ if each.__module__ != PRIVATE) if kind.__module__ == PRIVATE else kind


def _is_ours(at: TracebackType | None) -> bool:
    """Whether the code that raised an error is NumPy's or fusec's."""
    if at is None:
        return True
    while at.tb_next is not None:
        at = at.tb_next
    return at.tb_frame.f_code.co_filename.startswith(lines().LIBRARIES)


def _notes(problem: Exception) -> list[Any]:
    return getattr(problem, "__notes__", [])


def _made(kind: type[FusecError], error: UserError, place: Span, problem: Exception) -> FusecError:
    found = kind(error, place)
    if isinstance(found, FusecAxisError):
        found.axis, found.ndim = problem.axis, problem.ndim  # type: ignore[attr-defined]
    return found


def _unknown(function: Callable[..., Any], keyword: str) -> UserError | None:
    """The error for an unknown keyword; None if the function has it."""
    from fusec.errors.arguments import unknown_keyword

    name = getattr(function, "__name__", "")
    known = _keywords(function)
    if any(each.kind is Parameter.VAR_KEYWORD for each in _params(function)):  # which NumPy's function takes
        known += [each for each in _keywords(getattr(np, name, None)) if each not in known]
    return unknown_keyword(name, keyword, known) if known and keyword not in known else None


def _keywords(function: Any) -> list[str]:
    """The names by which a function takes arguments."""
    params = _params(function)
    if not params and isinstance(function, np.ufunc):
        return [*UFUNC_KEYWORDS]
    return [each.name for each in params if each.kind in OWN_KINDS and each.name != "self"]


def _params(function: Any) -> list[Parameter]:
    """The parameters of a function; none of a builtin that has no signature."""
    try:
        return [*signature(function).parameters.values()]
    except (TypeError, ValueError):
        return []


def _here() -> Span:
    """The user's line."""
    return cast("Span", lines().here())
