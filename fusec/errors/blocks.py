"""Errors of kernels with blocks of threads (codes F390 to F399)."""

from __future__ import annotations

from fusec.errors.base import FusecValueError, Named, UserError


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
