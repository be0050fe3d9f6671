"""The launches of a kernel of a plan on a device, so that later calls only fill in addresses and numbers."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from fusec.base.dtypes import UINT8
from fusec.base.kernel_abi import USUAL_BLOCK, Kernel
from fusec.base.records import dataclass
from fusec.codegen import ON_DEVICE, target_of
from fusec.compiler import pipeline
from fusec.dispatch import engine
from fusec.dispatch.device_plans import cached_launch
from fusec.dispatch.fast_path_device import CachedLaunch
from fusec.dispatch.overlap import disturbed
from fusec.dispatch.spec import CallOptions
from fusec.fusion.trace_values import Write
from fusec.runtime import cuda

MAX_KNOWN = 16  # alignments of operands for which a step keeps launches


@dataclass(eq=False)
class KnownLaunches:
    """The launches of one kernel for operands that are aligned in some way, in order. nbytes: of what is between."""

    launches: tuple[tuple[CachedLaunch, Any], ...]  # and the machine code of each
    nbytes: int
    plan: Any  # that they are of

    def run(self, operands: Sequence[Any], stream: int, device: int) -> None:
        """Enqueue them."""
        held = cuda.empty((self.nbytes,), UINT8, device=device, stream=stream) if self.nbytes else None
        start = 0 if held is None else held.pointer
        for launch, code in self.launches:
            words = list(launch.template)
            for slot, at, offset in launch.pointers:
                words[slot] = operands[at].pointer + offset
            for slot, offset in launch.between:
                words[slot] = start + offset
            for slot, at, encoder in launch.scalars:
                words[slot] = encoder(operands[at])
            try:
                launch.launcher(words, stream)
            except Exception:  # another device is current, or the driver refuses: what follows does it or says why
                cuda.launch(code.module, words, code.threads, cuda.StreamOn(stream, device))


@dataclass(eq=False)
class JoinedLaunch:
    """The kernels of several steps as one, for operands that are aligned in some way.

    pointers: slot, number of the step, number of the operand, offset in bytes. numbers: likewise, with what encodes it.
    """

    code: Any
    template: array[int]
    pointers: tuple[tuple[int, int, int, int], ...]
    numbers: tuple[tuple[int, int, int, Any], ...]
    blocks: int

    def run(self, operands: Sequence[Sequence[Any]], stream: int, device: int) -> None:
        """Enqueue it. operands: of each step."""
        words = self.template[:]
        for slot, step, at, offset in self.pointers:
            words[slot] = operands[step][at].pointer + offset
        for slot, step, at, encoder in self.numbers:
            words[slot] = encoder(operands[step][at])
        cuda.launch(self.code, words, self.blocks, cuda.StreamOn(stream, device))


def joined(plans: Sequence[tuple[Any, Any]], device: int) -> JoinedLaunch | None:
    """The launch of several kernels that have run, each with its plan; None if they must be launched one by one."""
    if not all(plan is not None and len(plan.steps) == 1 for _, plan in plans):
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
    code = _compiled(kernels, device)
    if code is None:
        return None
    assert len(words) == len(code.kernel.slots), "words as the kernel takes them"
    return JoinedLaunch(code, words, tuple(pointers), tuple(numbers), blocks)


def _compiled(kernels: Sequence[Kernel], device: int) -> Any:
    """The machine code of several kernels as one; None if there is no such kernel."""
    arch, together = cuda.device(device).arch, target_of(ON_DEVICE).generator.together
    made = together and together(kernels, f"{kernels[0].title}_together")
    if made is None:
        return None
    texts = {"texts": [each.source for each in kernels]}
    name = pipeline.digest(f"together on {ON_DEVICE}", texts, arch, cuda.bindings_version())

    def build(made: Kernel) -> bytes:
        return cuda.compile(made, arch).packed()

    return pipeline.machine_code(name, arch, lambda: made, build, cuda.CompiledModule.unpacked)


def alignment(operands: Sequence[Any]) -> tuple[int, ...]:
    """What the launches of a step depend on besides its plan."""
    return tuple([each.pointer % cuda.VECTOR_BYTES for each in operands if isinstance(each, cuda.DeviceArray)])


def lasting_plan(step: Any, operands: tuple[Any, ...], options: CallOptions) -> Any:
    """The plan of a call that has run; None if its kernel must look at memory each time: outputs overlap inputs, or are
    empty, or their former contents count.
    """
    if 0 in step.group.shape:
        return None
    kernel = step.kernel
    backend, call = engine.read_call(kernel, operands, None, options)
    plan = kernel.plan(backend, call)
    if plan.is_idle or plan.bound.is_empty or plan.zeroed:
        return None
    writes = any(isinstance(each, Write) for each in step.stored)  # which memory is shared is part of a call's kind
    if writes and (engine.needs_staging(backend, call) or disturbed(kernel, call.arguments(backend))):
        return None
    return plan


def keep(step: Any, plan: Any, key: object) -> None:
    """Keep the launches of a plan."""
    if plan is None:
        return
    if len(step.launches) >= MAX_KNOWN:
        step.launches.clear()
    pairs = tuple((cached_launch(step.kernel.signature, each, plan.offsets), each.code) for each in plan.steps)
    step.launches[key] = KnownLaunches(pairs, plan.nbytes, plan)
