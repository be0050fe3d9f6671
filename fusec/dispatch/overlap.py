"""Memory that arguments of a call share: what is refused, and what must be read before it is written.

Element-wise kernels copy such inputs first. Kernels along axes, which read inputs more than once, store their results
elsewhere first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from fusec.arguments.layouts import View, are_apart, bounds, has_internal_overlap
from fusec.arguments.operands import is_same_memory, share_elements
from fusec.errors.arguments import OutputOverlapsItself, OutputsOverlap

if TYPE_CHECKING:
    from fusec.dispatch.spec import KernelSpec

Target = TypeVar("Target")


class ArrayArgument(NamedTuple):
    """An array of a call."""

    name: str
    view: View
    raw: bool = False  # the texts address it


def check_outputs(
    kernel: str, outputs: Sequence[ArrayArgument], spans: Sequence[tuple[int, int]] | None = None
) -> None:
    """Refuse outputs that share memory with themselves or others. Raises OutputOverlapsItself, OutputsOverlap.

    spans: the bounds of the outputs, if they are known.
    """
    apart = are_apart([bounds(each.view) for each in outputs] if spans is None else spans)
    for at, output in enumerate(outputs):
        if not output.raw and has_internal_overlap(output.view):
            raise OutputOverlapsItself(kernel, output.name).at()
        for other in outputs[: 0 if apart else at]:
            if share_elements(output.view, other.view):
                raise OutputsOverlap(kernel, other.name, output.name).at()


def disturbed(kernel: KernelSpec, arrays: Sequence[ArrayArgument | None]) -> list[int]:
    """The positions of inputs to copy before a call, as NumPy does: an output may change an element before it is read.

    arrays: of all parameters, None for numbers and for outputs to allocate. Raises what `check_outputs` raises.
    """
    marked = list(zip(arrays, kernel.is_written, strict=True))
    outputs = [each for each, written in marked if each is not None and written]
    spans = [bounds(each.view) for each in outputs]
    check_outputs(kernel.name, outputs, spans)
    low, high = min([low for low, _ in spans], default=0), max([high for _, high in spans], default=0)
    return [
        position
        for position, (each, written) in enumerate(marked)
        if each is not None and not written and _reaches(each, low, high)
        if any(share_elements(each.view, output.view) and not may_coincide(each, output) for output in outputs)
    ]


def is_staged(
    inputs: Sequence[ArrayArgument], outputs: Sequence[ArrayArgument], in_place: frozenset[tuple[str, str]]
) -> bool:
    """Whether results must be stored elsewhere first, since an output may lie where inputs do.

    in_place: names of outputs and inputs that may be the same memory.
    """
    spans = [(source, *bounds(source.view)) for source in inputs]
    return any(
        low < stop and start < high and not ((output.name, source.name) in in_place and may_coincide(source, output))
        for output in outputs
        for low, high in (bounds(output.view),)
        for source, start, stop in spans
    )


def run_aside(
    targets: Sequence[Target],
    aside: Sequence[Target],
    reads: bool,
    copy: Callable[[Target, Target], None],
    run: Callable[[], object],
) -> None:
    """Run a call whose results are stored elsewhere first.

    targets: the given outputs. aside: those of the call. reads: whether it reads them. copy: from the first to the
    second.
    """
    for source, target in zip(targets, aside if reads else (), strict=False):
        copy(source, target)
    run()
    for source, target in zip(aside, targets, strict=True):
        copy(source, target)


def may_coincide(source: ArrayArgument, output: ArrayArgument) -> bool:
    """Whether an input and an output are the same elements in the same order: each is read before it is written."""
    one, other = source.view, output.view
    return not (source.raw or output.raw) and is_same_memory(one, other) and one.dtype.bits == other.dtype.bits


def _reaches(argument: ArrayArgument, low: int, high: int) -> bool:
    """Whether an array has bytes in a range of addresses, as far as its bounds tell."""
    start, stop = bounds(argument.view)
    return start < high and low < stop
