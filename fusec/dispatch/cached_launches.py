"""Launches of known kinds of calls: words that are ready, positions for what calls fill in, and two kernels as one."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from fusec.arguments.scalars import encode
from fusec.arguments.signature import Signature
from fusec.base.dtypes import FLOAT32, FLOAT64, DType
from fusec.base.kernel_abi import Kernel
from fusec.base.records import dataclass, replace
from fusec.codegen import ON_DEVICE, target_of
from fusec.compiler import pipeline
from fusec.compiler.disk_cache import default_cache
from fusec.dispatch.device import DeviceCode
from fusec.dispatch.fast_path_device import CachedLaunch, CachedSequence, Encoder
from fusec.dispatch.plan import CompiledLaunch, Plan
from fusec.kinds.reduction import has_end
from fusec.runtime import cuda

MOST_EXACT = 1 << 53  # float64 holds all integers up to here


@dataclass(eq=False)
class EndedLaunch:
    """The last two kernels of a reduction as one, whose words are those of both, and the address of a number."""

    code: Any
    template: array[int]
    launches: tuple[CachedLaunch, ...]
    blocks: int


def cached_launch(signature: Signature, step: CompiledLaunch[DeviceCode], between: Mapping[str, int]) -> CachedLaunch:
    """A launch with positions of arguments for their names. between: where arrays lie that are no arguments."""
    places = {param.name: number for number, param in enumerate(signature.params)}
    pointers = step.arguments.pointers
    return CachedLaunch(
        template=tuple(step.arguments.template),
        pointers=tuple((slot, places[name], offset) for slot, name, offset in pointers if name not in between),
        between=tuple((slot, between[name] + offset) for slot, name, offset in pointers if name in between),
        scalars=tuple(
            (slot, places[name], encoder_of(dtype, half, name, signature.name))
            for slot, name, dtype, half in step.arguments.scalars
        ),
    )


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
    code = compiled_together(None if made is None else replace(made, block=block), device)
    if code is None or len(code.kernel.slots) > cuda.MOST_WORDS:
        return None
    both = zip(kernels, pair, strict=True)
    launches = tuple(cached_launch(signature, each, plan.offsets) for (signature, plan), each in both)
    template = array("q", [*launches[0].template, *launches[1].template, 0])
    blocks = cuda.grid_size(kernel, first.code.threads, block)
    return EndedLaunch(code, template, launches, blocks)


def compiled_together(kernel: Kernel | None, device: int) -> Any:
    """The machine code of several kernels as one, if there is such a kernel."""
    if kernel is None:
        return None
    arch = cuda.device(device).arch
    texts = {"text": kernel.source, "block": str(kernel.block)}
    name = pipeline.digest(f"several on {ON_DEVICE}", texts, arch, cuda.bindings_version())

    def build(made: Kernel) -> bytes:
        return cuda.compile(made, arch).packed()

    return pipeline.machine_code(name, arch, lambda: kernel, build, cuda.CompiledModule.unpacked)


def in_sequence(plan: Plan[DeviceCode], signature: Signature, device: int) -> CachedSequence:
    """All launches of a plan in order, the last two as one where the last has little to do."""
    steps, parts, counters = plan.steps, list[tuple[Any, Sequence[CachedLaunch]]](), list[int]()
    rest = steps[-2:] if has_end([step.launch for step in steps]) else ()
    whole = ended([(signature, plan)] * 2, rest, device) if rest else None
    for step in steps[:-2] if whole else steps:
        launch = cached_launch(signature, step, plan.offsets)
        parts.append(((step.code.module, max(step.code.threads, 1), launch.template), (launch,)))
    if whole is not None:
        counters.append(sum(len(row[2]) for row, _ in parts) + len(whole.template) - 1)
        parts.append(((whole.code, whole.blocks, whole.template), whole.launches))
    arrays = tuple(sorted({argument for _, launches in parts for each in launches for _, argument, _ in each.pointers}))
    number = {argument: at for at, argument in enumerate(arrays)}
    fills, scalars, first = list[tuple[int, int, int]](), list[tuple[int, Encoder]](), 0
    numbers_from = len(arrays) + bool(plan.nbytes)
    for (_, _, template), launches in parts:
        start = first
        for each in launches:
            fills += [(start + slot, number[argument], offset) for slot, argument, offset in each.pointers]
            fills += [(start + slot, len(arrays), offset) for slot, offset in each.between]
            for slot, argument, encoder in each.scalars:
                fills.append((start + slot, numbers_from + len(scalars), 0))
                scalars.append((argument, encoder))
            start += len(each.template)
        first += len(template)
    sequence = cuda.LaunchSequence([row for row, _ in parts], device, fills, counters, default_cache())
    return CachedSequence(sequence.enqueue, arrays, tuple(scalars))


def encoder_of(dtype: DType, half: int, param: str, kernel: str) -> Encoder:
    """A function that encodes numbers for one slot; Python's numbers for float32 and float64 have a fast path."""

    def slow(value: Any) -> int:
        return encode(value, dtype, param, kernel)[half]

    if dtype not in (FLOAT32, FLOAT64):
        return slow
    pack = struct.Struct("<f4x" if dtype == FLOAT32 else "<d").pack

    def fast(value: Any) -> int:
        if type(value) is not float and (type(value) is not int or not -MOST_EXACT <= value <= MOST_EXACT):
            return slow(value)
        try:
            return int.from_bytes(pack(value), "little", signed=True)
        except OverflowError:  # beyond the largest float32
            return slow(value)

    return fast
