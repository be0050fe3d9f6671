"""Several kernels of a plan as one launch on a device."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from fusec.base.kernel_abi import USUAL_BLOCK
from fusec.base.records import dataclass
from fusec.codegen import ON_DEVICE, target_of
from fusec.dispatch.cached_launches import cached_launch, compiled_together
from fusec.runtime import cuda


@dataclass(eq=False)
class JoinedLaunch:
    """The kernels of several steps as one.

    pointers: slot, number of the step, number of the operand, offset in bytes. numbers: likewise, with what encodes it.
    """

    code: Any
    template: array[int]
    pointers: tuple[tuple[int, int, int, int], ...]
    numbers: tuple[tuple[int, int, int, Any], ...]
    blocks: int


def joined(plans: Sequence[tuple[Any, Any]], device: int) -> JoinedLaunch | None:
    """The launch of several kernels, each with its plan; None if they must be launched one by one."""
    if not all(len(plan.steps) == 1 for _, plan in plans):
        return None
    texts = [plan.steps[0].code.module.kernel for _, plan in plans]
    seen = list(dict.fromkeys(each.source for each in texts))
    order = sorted(range(len(plans)), key=lambda at: seen.index(texts[at].source))
    kernels = [texts[at] for at in order]
    words, pointers, numbers, blocks = array("q"), [], [], 0
    for at in order:
        kernel, plan = plans[at]
        launch = cached_launch(kernel.signature, plan.steps[0], plan.offsets)
        pointers += [(len(words) + slot, at, place, offset) for slot, place, offset in launch.pointers]
        numbers += [(len(words) + slot, at, place, encoder) for slot, place, encoder in launch.scalars]
        words.extend(launch.template)
        first, blocks = blocks, blocks + cuda.grid_size(texts[at], plan.steps[0].code.threads, USUAL_BLOCK)
        words.extend((first, blocks))
    if len(words) > cuda.MOST_WORDS or blocks > cuda.MAX_GRID:
        return None
    make = target_of(ON_DEVICE).generator.beside
    code = None if make is None else compiled_together(make(kernels, f"{kernels[0].title}_together"), device)
    if code is None:
        return None
    assert len(words) == len(code.kernel.slots), "words as the kernel takes them"
    return JoinedLaunch(code, words, tuple(pointers), tuple(numbers), blocks)
