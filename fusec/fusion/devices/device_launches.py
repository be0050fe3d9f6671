"""Several kernels of a plan as one launch on a device."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from fusec.arguments.signature import Signature
from fusec.base.kernel_abi import USUAL_BLOCK, Kernel
from fusec.base.records import dataclass, replace
from fusec.codegen import ON_DEVICE, target_of
from fusec.compiler import pipeline
from fusec.dispatch.device_plans import cached_launch
from fusec.dispatch.fast_path_device import CachedLaunch
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


@dataclass(eq=False)
class EndedLaunch:
    """The last two kernels of a reduction as one, whose words are those of both, and the address of a number."""

    code: Any
    template: array[int]
    launches: tuple[CachedLaunch, ...]
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
    code = None if make is None else _compiled(make(kernels, f"{kernels[0].title}_together"), device)
    if code is None:
        return None
    assert len(words) == len(code.kernel.slots), "words as the kernel takes them"
    return JoinedLaunch(code, words, tuple(pointers), tuple(numbers), blocks)


def ended(kernels: Sequence[tuple[Signature, Any]], pair: Sequence[Any], device: int) -> EndedLaunch | None:
    """Two launches as one, of which the second follows when the first is done; None if they must come one by one.

    kernels: of which they are, each with its plan.
    """
    make = target_of(ON_DEVICE).generator.ended
    if make is None:
        return None
    first, last = pair
    kernel, end = (each.code.module.kernel for each in (first, last))
    made, block = make(kernel, end, f"{kernel.title}_to_end"), cuda.usual_block(kernel, first.code.threads)
    code = _compiled(None if made is None else replace(made, block=block), device)
    if code is None or len(code.kernel.slots) > cuda.MOST_WORDS:
        return None
    both = zip(kernels, pair, strict=True)
    launches = tuple(cached_launch(signature, each, plan.offsets) for (signature, plan), each in both)
    template = array("q", [*launches[0].template, *launches[1].template, 0])
    blocks = cuda.grid_size(kernel, first.code.threads, block)
    return EndedLaunch(code, template, launches, blocks)


def _compiled(kernel: Kernel | None, device: int) -> Any:
    """The machine code of several kernels as one, if there is such a kernel."""
    if kernel is None:
        return None
    arch = cuda.device(device).arch
    texts = {"text": kernel.source, "block": str(kernel.block)}
    name = pipeline.digest(f"several on {ON_DEVICE}", texts, arch, cuda.bindings_version())

    def build(made: Kernel) -> bytes:
        return cuda.compile(made, arch).packed()

    return pipeline.machine_code(name, arch, lambda: kernel, build, cuda.CompiledModule.unpacked)
