"""The launches of a kernel of a plan on a device, so that later calls only fill in addresses and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusec.base.dtypes import UINT8
from fusec.base.records import dataclass
from fusec.dispatch import engine
from fusec.dispatch.device_plans import cached_launch
from fusec.dispatch.fast_path_device import CachedLaunch
from fusec.dispatch.spec import CallOptions
from fusec.fusion.trace_values import Write
from fusec.runtime import cuda

MAX_KNOWN = 16  # alignments of operands for which a step keeps launches


@dataclass(eq=False)
class KnownLaunches:
    """The launches of one kernel for operands that are aligned in some way, in order. nbytes: of what is between."""

    launches: tuple[tuple[CachedLaunch, Any], ...]  # and the machine code of each
    nbytes: int

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


def alignment(operands: Sequence[Any]) -> tuple[int, ...]:
    """What the launches of a step depend on besides its plan."""
    return tuple([each.pointer % cuda.VECTOR_BYTES for each in operands if isinstance(each, cuda.DeviceArray)])


def keep(step: Any, operands: tuple[Any, ...], options: CallOptions, key: object) -> None:
    """Keep the launches of a call that has run, unless its kernel must look at memory: outputs may overlap inputs, or
    are empty, or their former contents count.
    """
    if 0 in step.group.shape or any(isinstance(each, Write) for each in step.stored):
        return
    kernel = step.kernel
    plan = kernel.plan(*engine.read_call(kernel, operands, None, options))
    if plan.is_idle or plan.bound.is_empty or plan.zeroed:
        return
    if len(step.launches) >= MAX_KNOWN:
        step.launches.clear()
    pairs = tuple((cached_launch(kernel.signature, each, plan.offsets), each.code) for each in plan.steps)
    step.launches[key] = KnownLaunches(pairs, plan.nbytes)
