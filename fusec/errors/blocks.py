"""Errors of kernels with blocks of positions (codes F390 to F399)."""

from __future__ import annotations

from fusec.errors.base import FusecValueError, Named, UserError


class BadBlock(UserError, code="F390", exception=FusecValueError):
    """A `block=` that no device can run."""

    message = "block={given} is not a block: {reason}"
    hint = "write block=256, or a number for each axis of the grid, block=(16, 16)"
    given: str
    reason: str


class GridNotInBlocks(Named, code="F391", exception=FusecValueError):
    """A grid that is no multiple of the block."""

    message = "kernel '{name}': the grid {grid} is not a multiple of block={block} along axis {axis}"
    hint = "write fusec.grid(-(-n // {extent}) * {extent}), which rounds n up, and test 'if i < n' before it matters"
    grid: str
    block: str
    axis: int
    extent: int


class BlockAxes(UserError, code="F392"):
    """A block that has another number of axes than the grid."""

    message = "the grid has {grid}, but block={block} has {axes}"
    hint = "give block= a number for each axis of the grid, such as block=(16, 16)"
    grid: str
    block: str
    axes: str


class BarrierDiverges(UserError, code="F393"):
    """A barrier that only a part of a block comes to."""

    message = (
        "not all positions of a block reach the barrier in line {line}: the condition in line {condition} differs "
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
    """Shared arrays that do not fit the memory of a block."""

    message = "the shared arrays of '{name}' take {nbytes} bytes; a block has {limit}"
    hint = "make them smaller, or of a smaller dtype: every GPU has {limit} bytes"
    nbytes: int
    limit: int


class BlockTooLarge(Named, code="F395"):
    """A block whose positions keep more across barriers than a CPU's thread has room for."""

    message = "kernel '{name}': on the CPU a block keeps {nbytes} bytes from barrier to barrier"
    hint = "at most {limit} fit: make the block smaller, or local arrays that live across a barrier"
    nbytes: int
    limit: int


class BlockMisused(Named, code="F396"):
    """Positions of a block that do not work together, found by fusec.simulate."""

    message = "kernel '{name}': {what}"
    hint = "positions see what others of their block have written only after fusec.barrier(), which all must reach"
    what: str
