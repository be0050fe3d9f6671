"""Evaluating arrays, and looking at what is recorded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from fusec.xp.array import Array
from fusec.xp.calls import array_of
from fusec.xp.recording import eagerly, tape_of_all
from fusec.xp.refusals import failure

if TYPE_CHECKING:
    from fusec.dispatch.explain import Explanation

__all__ = ["compute", "eager", "explain"]
MOST_STEPS = 1024  # of one plan: the time to make one grows faster than its steps


def compute(*arrays: Any) -> tuple[Any, ...]:
    """Compute several arrays in one plan, so that they share kernels and what they have in common.

    arrays: lazy arrays of any shapes and dtypes, also in lists and tuples. NumPy arrays, numbers and lists of numbers
    become lazy arrays. The result has all of them in order, with values. More than 1024 steps take several plans.
    Raises what the evaluation raises; the arrays can be evaluated again then.

    >>> x = xp.asarray([1.0, 2.0, 3.0])
    >>> low, high = xp.compute(xp.min(x), xp.max(x))
    >>> float(low), float(high)
    (1.0, 3.0)
    """
    are_plain = {*map(type, arrays)} == {Array}
    try:
        found = arrays if are_plain else tuple(map(_lazy, arrays))
        each = arrays if are_plain else [*_each(found)]
        while (tape := tape_of_all(each, MOST_STEPS)) is not None:
            tape.evaluate(*each)
    except Exception as problem:
        raise failure(problem)  # noqa: B904 - it says so
    return found


def _lazy(given: Any) -> Any:
    """Anything as an array; lists and tuples that hold lazy arrays stay lists and tuples."""
    if isinstance(given, (list, tuple)) and any(type(each) is Array for each in _each(given)):
        return getattr(given, "_make", type(given))(map(_lazy, given))
    return array_of(given)


def _each(given: Any) -> Iterator[Any]:
    """All items of nested lists and tuples."""
    if isinstance(given, (list, tuple)):
        for each in given:
            yield from _each(each)
    else:
        yield given


def eager() -> AbstractContextManager[None]:
    """Compute operations as they are recorded until the block ends, in this thread or task: for debugging.

    Arrays of all shapes and dtypes get their values there. So an index out of range, a library's error or a lack of
    memory is raised at its line, and a debugger shows elements. Results have the same bits. Arrays that were pending
    before the block are computed when an operation in the block needs them. Blocks may be nested. The environment
    variable FUSEC_EAGER=1 does the same for a whole program. Nothing is raised.

    >>> with xp.eager():
    ...     x = xp.sqrt(xp.asarray([1.0, 4.0]))  # computed here
    >>> x
    Array([1., 2.])
    """
    return eagerly()


def explain(*arrays: Any) -> Explanation:
    """Report what `compute` would do with the same arrays, as a printable value; nothing is computed.

    arrays: of any shapes and dtypes. The report is that of fused functions: kernels, calls of libraries, why a kernel
    is not part of the one before, the bytes that are moved, and the least that one kernel for all would move. What
    the arrays have in common with others that are in use is part of it, and so are those. Notebooks show a picture,
    whose text is `svg()`. Raises what making a plan raises.

    >>> x = xp.asarray([1.0, 2.0, 3.0])
    >>> report = xp.explain(xp.exp(x) * x)
    >>> report.kernels, report.bytes_moved, report.least_bytes
    (1, 48, 48)
    """
    from fusec.dispatch.explain import Explanation  # the compiler, which takes long to import
    from fusec.fusion.schedule.report import report

    tape = tape_of_all(_each(tuple(map(_lazy, arrays))), sys.maxsize)
    if tape is None:
        return Explanation("xp", (("kernels", "0"), ("note", "all of these arrays have values")), 0, least_bytes=0)
    return report("xp", tape.plan())
