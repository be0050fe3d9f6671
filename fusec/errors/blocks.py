"""Errors of kernels whose positions come in blocks (codes F390 to F399)."""

from __future__ import annotations

from typing import ClassVar

from fusec.errors.base import FusecError, FusecValueError, UserError


class BadBlock(UserError):
    """A `block=` that no device can run."""

    code: ClassVar[str] = "F390"
    message: ClassVar[str] = "block={given} is not a block: {reason}"
    hint: ClassVar[str] = "write block=256, or a number for each axis of the grid, block=(16, 16)"
    exception: ClassVar[type[FusecError]] = FusecValueError
    given: str
    reason: str


class GridNotInBlocks(UserError):
    """A grid that is no multiple of the block."""

    code: ClassVar[str] = "F391"
    message: ClassVar[str] = "kernel '{kernel}': the grid {grid} is not a multiple of block={block} along axis {axis}"
    hint: ClassVar[str] = (
        "write fusec.grid(-(-n // {extent}) * {extent}), which rounds n up, and test 'if i < n' before it matters"
    )
    exception: ClassVar[type[FusecError]] = FusecValueError
    kernel: str
    grid: str
    block: str
    axis: int
    extent: int


class BlockAxes(UserError):
    """A block that has another number of axes than the grid."""

    code: ClassVar[str] = "F392"
    message: ClassVar[str] = "the grid has {grid}, but block={block} has {axes}"
    hint: ClassVar[str] = "give block= a number for each axis of the grid, such as block=(16, 16)"
    grid: str
    block: str
    axes: str


class BarrierDiverges(UserError):
    """A barrier that only a part of a block comes to."""

    code: ClassVar[str] = "F393"
    message: ClassVar[str] = (
        "not all positions of a block reach the barrier in line {line}: the condition in line {condition} differs "
        "between them"
    )
    label: ClassVar[str] = "line {condition}, '{condition_text}', separates them"
    hint: ClassVar[str] = (
        "move the barrier out of the condition: barriers may stand under conditions on constants, numbers, shapes and "
        "block_index(), not on positions or the contents of arrays"
    )
    line: int
    condition: int
    condition_text: str


class SharedTooLarge(UserError):
    """Shared arrays that do not fit the memory of a block."""

    code: ClassVar[str] = "F394"
    message: ClassVar[str] = "the shared arrays of '{kernel}' take {nbytes} bytes; a block has {limit}"
    hint: ClassVar[str] = "make them smaller, or of a smaller dtype: every GPU has {limit} bytes"
    kernel: str
    nbytes: int
    limit: int


class BlockTooLarge(UserError):
    """A block whose positions keep more across barriers than a CPU's thread has room for."""

    code: ClassVar[str] = "F395"
    message: ClassVar[str] = "kernel '{kernel}': on the CPU a block keeps {nbytes} bytes from barrier to barrier"
    hint: ClassVar[str] = "at most {limit} fit: make the block smaller, or local arrays that live across a barrier"
    kernel: str
    nbytes: int
    limit: int


class BlockMisused(UserError):
    """Positions of a block that do not work together, found by fusec.simulate."""

    code: ClassVar[str] = "F396"
    message: ClassVar[str] = "kernel '{kernel}': {what}"
    hint: ClassVar[str] = (
        "positions see what others of their block have written only after fusec.barrier(), which all must reach"
    )
    kernel: str
    what: str
