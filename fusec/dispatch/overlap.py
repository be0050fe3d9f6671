"""Memory that arguments of a call share: what is refused, and what must be read before it is written.

Element-wise kernels copy such inputs first. Kernels along axes, which read inputs more than once, store their results
elsewhere first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fusec.arguments.layouts import View, has_internal_overlap
from fusec.arguments.operands import Array, is_same_memory, may_overlap, shares_memory
from fusec.errors.arguments import OutputOverlapsItself, OutputsOverlap


class ArrayArgument(NamedTuple):
    """An array of a call."""

    name: str
    view: View
    array: Array | None = None  # on the host, where elements are compared; elsewhere ranges of addresses decide
    raw: bool = False  # the texts address it


def check_outputs(kernel: str, outputs: Sequence[ArrayArgument]) -> None:
    """Refuse outputs that share memory with themselves or others. Raises OutputOverlapsItself, OutputsOverlap."""
    for at, output in enumerate(outputs):
        if not output.raw and has_internal_overlap(output.view):
            raise OutputOverlapsItself(kernel, output.name).at()
        for other in outputs[:at]:
            if _meet(output, other):
                raise OutputsOverlap(kernel, other.name, output.name).at()


def is_copied(source: ArrayArgument, outputs: Sequence[ArrayArgument]) -> bool:
    """Whether an input must be copied since an output may change an element before it is read.

    Elements may be the same memory: each is read before it is written.
    """
    return any(
        _meet(source, output) and (source.raw or output.raw or not _are_same(source.view, output.view))
        for output in outputs
    )


def is_staged(
    inputs: Sequence[ArrayArgument], outputs: Sequence[ArrayArgument], in_place: frozenset[tuple[str, str]]
) -> bool:
    """Whether results must be stored elsewhere first, since an output may lie where inputs do.

    in_place: names of outputs and inputs that may be the same memory.
    """
    return any(
        may_overlap(output.view, source.view)
        and not ((output.name, source.name) in in_place and _are_same(output.view, source.view))
        for output in outputs
        for source in inputs
    )


def _are_same(one: View, other: View) -> bool:
    """Whether two arrays are the same elements in the same order."""
    return is_same_memory(one, other) and one.dtype.bits == other.dtype.bits


def _meet(one: ArrayArgument, other: ArrayArgument) -> bool:
    if not may_overlap(one.view, other.view):
        return False
    return one.array is None or other.array is None or shares_memory(one.array, other.array)
