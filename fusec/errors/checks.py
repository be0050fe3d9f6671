"""Errors of blocks (codes F390 to F399), and those reported by checked kernels (F380 to F389, F720 to F724, F740)."""

from __future__ import annotations

import operator
from collections.abc import Callable

from fusec.base import diagnostics
from fusec.errors.base import FusecIndexError, FusecOverflowError, FusecRuntimeError, FusecValueError, Named, UserError


class BadBlock(UserError, code="F390", exception=FusecValueError):
    """An impossible `block=`."""

    message = "block={given} is not a block: {reason}"
    hint = "write block=256, or one number for each axis of the grid, such as block=(16, 16)"
    given: str
    reason: str


class GridNotInBlocks(Named, code="F391", exception=FusecValueError):
    """A grid that is not a multiple of the block."""

    message = "kernel '{name}': the grid {grid} is not a multiple of block={block} along axis {axis}"
    hint = "write fusec.grid(-(-n // {extent}) * {extent}), which rounds n up, and skip the rest by 'if i < n'"
    grid: str
    block: str
    axis: int
    extent: int


class BlockAxes(UserError, code="F392"):
    """A block whose number of axes differs from that of the grid."""

    message = "the grid has {grid}, but block={block} has {axes}"
    hint = "give block= one number for each axis of the grid, such as block=(16, 16)"
    grid: str
    block: str
    axes: str


class BarrierDiverges(UserError, code="F393"):
    """A barrier that only a part of a block reaches."""

    message = (
        "not all positions of a block reach the barrier on line {line}: the condition on line {condition} differs "
        "between them"
    )
    label = "line {condition}, '{condition_text}', separates them"
    hint = (
        "move the barrier out of the condition: barriers may stand under conditions on constants, numbers, shapes and "
        "block_index(), not on positions or the contents of arrays"
    )
    line: int
    condition: int
    condition_text: str


class SharedTooLarge(Named, code="F394"):
    """Shared arrays that exceed the memory of a block."""

    message = "the shared arrays of '{name}' take {nbytes} bytes; a block has {limit}"
    hint = "make them smaller, or use a smaller dtype: every GPU has at least {limit} bytes"
    nbytes: int
    limit: int


class BlockTooLarge(Named, code="F395"):
    """A block whose positions keep more across barriers than a CPU thread has room for."""

    message = "kernel '{name}': on the CPU a block keeps {nbytes} bytes across barriers"
    hint = "at most {limit} fit: make the block smaller, or the local arrays that are used across a barrier"
    nbytes: int
    limit: int


class BlockMisused(Named, code="F396"):
    """A mistake in the cooperation of a block's positions, found by fusec.simulate."""

    message = "kernel '{name}': {what}"
    hint = "a position sees what others of its block have written only after fusec.barrier(), which all must reach"
    what: str


class OutsideBlock(Named, code="F397", exception=FusecRuntimeError):
    """A function of blocks that is called where no block runs."""

    message = "fusec.{name}() works only in kernels with block=, compiled or in fusec.simulate"
    hint = "call it in the loop of a function that fusec.kernel(block=...) decorates"


class IndexOutside(Named, code="F380", exception=FusecIndexError):
    """An index outside its array, found as the kernel ran."""

    message = "kernel '{name}': {index} of '{array}' is outside its {limit:element}"
    label = "in element {element}"
    array: str
    index: str
    limit: int
    element: str
    cure: str = "indices count from 0; a negative variable does not count from the end"


class AssertionFailed(Named, code="F381", exception=FusecRuntimeError):
    """An assertion that did not hold, found as the kernel ran."""

    message = "kernel '{name}': an assertion does not hold"
    label = "in element {element}"
    hint = "fusec.simulate runs the kernel in Python, where print and a debugger work"
    element: str


class ItemOutside(Named, code="F740", exception=FusecIndexError):
    """An index outside a tuple or a constant array, found as the kernel ran."""

    message = "kernel '{name}': index {index} is outside a table of {limit:item}"
    label = "in element {element}"
    hint = "indices run from -{limit} to {last}; unchecked kernels take the nearest item"
    index: int
    limit: int
    last: int
    element: str


class CannotCheck(Named, code="F382"):
    """A kernel that moves pointers, so its accesses cannot be checked."""

    message = "kernel '{name}' moves pointers, whose bounds are unknown"
    hint = "index the arrays themselves, x[i], or run it without checks"


class LocalArrayAfterTheCheck(Named, code="F384"):
    """A reduction or scan that indexes a local array where the check does not reach."""

    message = "kernel '{name}' indexes a local array where it combines or finishes, or in a function"
    hint = "the check of a reduction or scan covers only the value of each element: index there"


class AssertionAfterTheCheck(Named, code="F385"):
    """A reduction or scan that has an assertion where the check does not reach."""

    message = "kernel '{name}' has an assertion where it combines or finishes, or in a function"
    hint = "the check of a reduction covers only the value of each element: put the assertion into map itself"
    about = """\
A checked reduction tests all elements before it combines any of them.

    late = "def least(a, b):\\n    assert b >= 0\\n    return min(a, b)"
    soon = "def positive(x):\\n    assert x >= 0\\n    return x"
    reduction(late, bounds="check")(np.ones(3))                                             # wrong
    reduction("lambda a, b: min(a, b)", map=soon, bounds="check")(np.ones(3))               # right"""


class CombinationNotChecked(Named, code="F386"):
    """A reduction or scan whose combination of integers cannot be checked for wrapping."""

    message = "kernel '{name}' combines integers in a way that the check \"wrap\" does not support"
    hint = 'it supports a + b and a * b of one total; combine floats, or pass check=""'
    about = """\
The check compares sums and products of reductions and scans with the exact ones. It supports no other combination.

    reduction("lambda a, b: a * 3 + b", check="wrap")(np.ones(3, np.int32))                 # wrong
    reduction("lambda a, b: a + b", check="wrap")(np.ones(3, np.int32))                     # right"""


class UnknownCheck(UserError, code="F383"):
    """An unknown check."""

    message = "{where}{given} is not known"
    where: str
    given: str
    cure: str = '"check" turns checks on, "trust" turns them off; FUSEC_CHECK=bounds checks all kernels'


class ConstantComparison(UserError, code="F720"):
    """A comparison of a bool with a number whose result is always the same."""

    message = "a bool is 0 or 1, so '{op} {number}' is always {answer}"
    about = """\
Sums and products of bools are bools, in NumPy and therefore in kernels, so a count of neighbours on a
bool board is 0 or 1 and never 3. A comparison whose result is constant is refused; fused functions follow NumPy and
only warn.

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


class IntegerWraps(Named, code="F721", exception=FusecOverflowError):
    """An operation on integers whose exact result does not fit its type, found as the kernel ran."""

    message = "kernel '{name}': {operation} beyond {dtype}, and {result}"
    label = "in element {element}"
    hint = "convert an operand to a wider type first; where wrapping is intended, leave this check off"
    operation: str
    result: str
    dtype: str
    element: str


class CastLoses(Named, code="F722", exception=FusecOverflowError):
    """A cast of a value that the integer type does not hold, found as the kernel ran."""

    message = "kernel '{name}': {value} of {given} does not fit {dtype}, and becomes {result}"
    label = "in element {element}"
    hint = "store it in a wider type, or clip it first; where the loss is intended, leave this check off"
    value: str
    given: str
    dtype: str
    result: str
    element: str


class TotalWraps(Named, code="F723", exception=FusecOverflowError):
    """A sum or product of an array's elements that does not fit its type."""

    message = "kernel '{name}': {what} beyond {dtype}, and wraps to {result}"
    label = "in total {element}"
    hint = "combine floats, e.g. float64(x); where wrapping is intended, leave this check off"
    what: str
    dtype: str
    result: str
    element: str
