"""What kernels find when they are checked (codes F380 to F389, F720 to F724 and F740)."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import ClassVar

from fusec.base import diagnostics
from fusec.errors.base import FusecError, FusecIndexError, FusecOverflowError, FusecRuntimeError, UserError


class IndexOutside(UserError):
    """An index that lies outside its array, found as the kernel ran."""

    code: ClassVar[str] = "F380"
    message: ClassVar[str] = "kernel '{kernel}': {index} of '{array}' is outside its {limit} elements"
    label: ClassVar[str] = "in element {element}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecIndexError
    kernel: str
    array: str
    index: str
    limit: int
    element: str
    cure: str = "indices count from 0; a negative variable does not count from the end"


class AssertionFailed(UserError):
    """An assertion that did not hold, found as the kernel ran."""

    code: ClassVar[str] = "F381"
    message: ClassVar[str] = "kernel '{kernel}': an assertion does not hold"
    label: ClassVar[str] = "in element {element}"
    hint: ClassVar[str] = "fusec.simulate runs the kernel in Python, where print and a debugger work"
    exception: ClassVar[type[FusecError]] = FusecRuntimeError
    kernel: str
    element: str


class ItemOutside(UserError):
    """An index outside a tuple, or an array from outside, found as the kernel ran."""

    code: ClassVar[str] = "F740"
    message: ClassVar[str] = "kernel '{kernel}': index {index} is outside a table of {limit} items"
    label: ClassVar[str] = "in element {element}"
    hint: ClassVar[str] = "indices run from -{limit} to {last}; unchecked kernels take the nearest item"
    exception: ClassVar[type[FusecError]] = FusecIndexError
    kernel: str
    index: int
    limit: int
    last: int
    element: str


class CannotCheck(UserError):
    """A kernel whose accesses cannot be checked, since it computes with addresses."""

    code: ClassVar[str] = "F382"
    message: ClassVar[str] = "kernel '{kernel}' moves pointers, whose bounds are unknown"
    hint: ClassVar[str] = "index the arrays themselves, x[i], or run it without checks"
    kernel: str


class LocalArrayAfterTheCheck(UserError):
    """A reduction or scan that indexes a local array where its check does not look."""

    code: ClassVar[str] = "F384"
    message: ClassVar[str] = "kernel '{kernel}' indexes a local array in what combines or finishes, or in a function"
    hint: ClassVar[str] = "a check of a reduction or scan looks at what is made of each element: index there"
    kernel: str


class AssertionAfterTheCheck(UserError):
    """A reduction or scan that asserts something where its check does not look."""

    code: ClassVar[str] = "F385"
    message: ClassVar[str] = "kernel '{kernel}' has an assertion in what combines or finishes, or in a function"
    hint: ClassVar[str] = "a check of a reduction looks at what is made of each element: assert it in map itself"
    about: ClassVar[str] = """\
A checked reduction looks at its elements before it combines any of them.

    late = "def least(a, b):\\n    assert b >= 0\\n    return min(a, b)"
    soon = "def positive(x):\\n    assert x >= 0\\n    return x"
    reduction(late, bounds="check")(np.ones(3))                                             # wrong
    reduction("lambda a, b: min(a, b)", map=soon, bounds="check")(np.ones(3))               # right"""
    kernel: str


class CombinationNotChecked(UserError):
    """A reduction or scan that combines integers in a way that the check for those that wrap does not follow."""

    code: ClassVar[str] = "F386"
    message: ClassVar[str] = "kernel '{kernel}' combines integers in a way that the check \"wrap\" does not follow"
    hint: ClassVar[str] = 'it follows a + b and a * b of one total; combine floats, or say check=""'
    about: ClassVar[str] = """\
The check compares sums and products of reductions and scans with the exact ones. It follows no others that may wrap.

    reduction("lambda a, b: a * 3 + b", check="wrap")(np.ones(3, np.int32))                 # wrong
    reduction("lambda a, b: a + b", check="wrap")(np.ones(3, np.int32))                     # right"""
    kernel: str


class UnknownCheck(UserError):
    """A way of checking that there is none of."""

    code: ClassVar[str] = "F383"
    message: ClassVar[str] = "{where} is {given}"
    hint: ClassVar[str] = "{cure}"
    where: str
    given: str
    cure: str = '"check" turns checks on, "trust" off; for all kernels there is FUSEC_CHECK=bounds'


class ConstantComparison(UserError):
    """A bool compared with a number that it never is, below, or above, so that the answer is known."""

    code: ClassVar[str] = "F720"
    message: ClassVar[str] = "a bool is 0 or 1, so '{op} {number}' is always {answer}"
    hint: ClassVar[str] = "{cure}"
    about: ClassVar[str] = """\
Sums and products of bools are bools, in NumPy and in what kernels compute from it, so that a count of neighbours on a
bool board is 0 or 1 and never 3. A comparison whose answer is known is refused; fused functions, which follow NumPy,
warn instead.

    elementwise("def f(x): return x + x == 2")(np.ones(3, "bool"))               # wrong
    elementwise("def f(x): return np.int8(x) + x == 2")(np.ones(3, "bool"))      # right"""
    op: str
    number: str
    answer: str
    cure: str


COMPARED: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def constant_comparison(op: str, number: float, cure: str) -> ConstantComparison | None:
    """The error for ``x op number`` of a bool, None if the answer depends on the bool or the number is 0 or 1."""
    answers = {COMPARED[op](each, number) for each in (0, 1)}
    if number in (0, 1) or len(answers) == 2:
        return None
    return ConstantComparison(op, str(diagnostics.short(number)), "true" if answers == {True} else "false", cure)


class IntegerWraps(UserError):
    """An operation on integers whose exact result its type does not hold, found as the kernel ran."""

    code: ClassVar[str] = "F721"
    message: ClassVar[str] = "kernel '{kernel}': {operation} beyond {dtype}, and {result}"
    label: ClassVar[str] = "in element {element}"
    hint: ClassVar[str] = "convert an operand to a wider type first; where wrapping is intended, leave this check off"
    exception: ClassVar[type[FusecError]] = FusecOverflowError
    kernel: str
    operation: str
    result: str
    dtype: str
    element: str


class CastLoses(UserError):
    """A cast to an integer type that does not hold the value, found as the kernel ran."""

    code: ClassVar[str] = "F722"
    message: ClassVar[str] = "kernel '{kernel}': {value} of {given} does not fit {dtype}, and becomes {result}"
    label: ClassVar[str] = "in element {element}"
    hint: ClassVar[str] = "store it in a wider type, or clip it first; where the loss is intended, leave this check off"
    exception: ClassVar[type[FusecError]] = FusecOverflowError
    kernel: str
    value: str
    given: str
    dtype: str
    result: str
    element: str


class TotalWraps(UserError):
    """A sum or product of the elements of an array that its type does not hold."""

    code: ClassVar[str] = "F723"
    message: ClassVar[str] = "kernel '{kernel}': {what} beyond {dtype}, and wraps to {result}"
    label: ClassVar[str] = "in total {element}"
    hint: ClassVar[str] = "combine floats, e.g. float64(x); where wrapping is intended, leave this check off"
    exception: ClassVar[type[FusecError]] = FusecOverflowError
    kernel: str
    what: str
    dtype: str
    result: str
    element: str
