"""Evaluating several arrays at once, and looking at what is recorded of them."""

from __future__ import annotations

from fusec.xp.array import Array
from fusec.xp.calls import Operand, array_of
from fusec.xp.recording import tape_of_all

__all__ = ["compute"]
MOST_STEPS = 1024  # of one plan: the time to make one grows faster than its steps


def compute(*arrays: Operand) -> tuple[Array, ...]:
    """Compute several arrays in one plan, so that they share kernels and what they have in common.

    arrays: lazy ones of any shapes and dtypes; NumPy's, numbers and lists become lazy ones. The result has each of
    them in order, with a value. What takes more than 1024 steps in all is computed in several plans.
    Raises what the evaluation raises; the arrays can be evaluated again then.

    >>> x = xp.asarray([1.0, 2.0, 3.0])
    >>> low, high = xp.compute(xp.min(x), xp.max(x))
    >>> float(low), float(high)
    (1.0, 3.0)
    """
    found = tuple(map(array_of, arrays))
    while (tape := tape_of_all(found, MOST_STEPS)) is not None:
        tape.evaluate()
    return found
