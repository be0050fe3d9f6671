"""Launches: how many blocks of how many threads, the argument words, and the call into the driver."""

from __future__ import annotations

import operator
from array import array
from collections.abc import Sequence

import numpy as np

from fusec.base.kernel_abi import COPYING_BLOCK, MAX_BLOCK, USUAL_BLOCK, Kernel, Slot, signed_word
from fusec.errors.targets import LaunchFailed
from fusec.runtime.cuda import driver, streams
from fusec.runtime.cuda.driver import DeviceProperties
from fusec.runtime.cuda.libraries import driver_api
from fusec.runtime.cuda.module import MAX_GRID, CompiledModule
from fusec.runtime.cuda.streams import StreamOn

GROUP_BLOCK = 64  # where groups work for long: few of them in a block spread evenly, and all that fit run
LEAST_BLOCK = 32  # threads of a warp, which run together anyway
MANY_BLOCKS = 512  # so many spread evenly over the multiprocessors of a large GPU
MOST_WORDS = 512  # of 8 bytes, that a kernel is given
WIDE = 1 << 31  # elements from which kernels count in 64 bits

Number = int | float | complex


def launch(
    module: CompiledModule,
    slots: Sequence[Number],
    size: int,
    on: StreamOn | None = None,
    block_size: int | None = None,
) -> None:
    """Enqueue a kernel on a stream and return without waiting; nothing happens if `size` is 0.

    slots: the values of `kernel.slots` in order: numbers, or an ``array("q")`` of ready words (64 bits, the value's own
    bits in the low bytes; a complex64 is one word, a complex128 two slots). size: elements of the iteration space.
    on: a stream of the device where the arrays are. block_size: threads of a block, rounded up to whole groups of the
    kernel, fewer if it cannot run so many; None chooses.
    Raises StreamRefused, LaunchFailed; a fault inside the kernel surfaces at a later call.
    """
    assert block_size is None or 0 < block_size <= MAX_BLOCK, f"a block of {block_size}"
    assert block_size is None or not module.kernel.block, f"{module.kernel.name} has blocks of its own"
    if size == 0:
        return
    stream, ordinal = on or StreamOn()
    device = driver.device(driver.current_ordinal() if ordinal is None else ordinal)
    words = slots if isinstance(slots, array) and slots.typecode == "q" else encode(module.kernel, slots)
    assert len(words) == len(module.kernel.slots), (
        f"{module.kernel.name} has {len(module.kernel.slots)} slots, not {len(words)}"
    )
    block = threads_of_block(module, device.ordinal, size, block_size)
    grid = grid_size(module.kernel, size, block, module.blocks_at_once(device.ordinal, block))
    _enqueue(module, words, (grid, block), streams.handle(stream), device)


def threads_of_block(module: CompiledModule, device: int, size: int, asked: int | None = None) -> int:
    """How many threads each block of a launch on a device has.

    size: elements of the iteration space. asked: the number that the call asks for; None if it asks for none.
    """
    kernel = module.kernel
    return block_of(kernel, usual_block(kernel, size) if asked is None else asked, module.threads_per_block(device))


def usual_block(kernel: Kernel, size: int) -> int:
    """The default number of threads of a block. It is smaller if full blocks would not spread over the device."""
    if kernel.block:
        return kernel.block
    if kernel.share:
        return COPYING_BLOCK
    if kernel.group > 1:
        return GROUP_BLOCK
    if kernel.is_record:  # its blocks were counted for the usual size
        return USUAL_BLOCK
    threads = -(-size // kernel.lanes)
    return min(USUAL_BLOCK, max(LEAST_BLOCK, 1 << (threads // MANY_BLOCKS).bit_length() >> 1))


def block_of(kernel: Kernel, asked: int, most: int) -> int:
    """Threads of a block: the requested number, rounded up to whole groups, and no more than the kernel can run."""
    groups = min(-(-asked // kernel.group), most // kernel.group)
    assert groups, f"{kernel.name} cannot run a group of {kernel.group} threads"
    assert not kernel.block or kernel.block <= most, f"{kernel.name} cannot run blocks of {kernel.block} threads"
    return groups * kernel.group


def grid_size(kernel: Kernel, size: int, block: int, at_once: int = MAX_GRID) -> int:
    """Blocks of an elementwise launch: one thread for every `lanes` elements, so that no thread has to stride.
    Of a block program one block for every element; of several kernels as one, the size is the number of blocks.

    Fewer blocks whose threads go on cost 1 to 4 % of the bandwidth (H200). 32-bit positions must not wrap when all
    threads make one more step, so there threads stride beyond 2^31. Of blocks that have work before and after their
    elements, no more than run at once on the device.
    """
    if kernel.block or kernel.is_record:
        return min(size, MAX_GRID // kernel.cluster) * kernel.cluster
    step = kernel.lanes * block
    most = MAX_GRID if kernel.layout.wide else min(MAX_GRID, max(1, WIDE // step))
    if kernel.share:
        return min(-(-size // max(step, kernel.share)), most, at_once)
    return min(-(-size // step), most)


def encode(kernel: Kernel, values: Sequence[Number]) -> array[int]:
    """The words of a kernel's slots; floats too large become infinities, integers out of range are a caller's bug."""
    assert len(values) == len(kernel.slots), f"{kernel.name} has {len(kernel.slots)} slots, not {len(values)}"
    return array("q", [_word(slot, value) for slot, value in zip(kernel.slots, values, strict=True)])


def _word(slot: Slot, value: Number) -> int:
    if slot.kind != "scalar":
        return signed_word(operator.index(value))  # type: ignore[arg-type]
    with np.errstate(over="ignore"):
        bits = np.asarray(value).astype(slot.dtype.numpy).tobytes()
    part = bits[8 * slot.axis :][:8] if slot.dtype.bits == 128 else bits
    return int.from_bytes(part.ljust(8, b"\0"), "little", signed=True)


def _enqueue(
    module: CompiledModule, words: array[int], shape: tuple[int, int], stream: int, on: DeviceProperties
) -> None:
    """Every parameter of a kernel is read from its own 8-byte word, or a record from all of them: devices and hosts of
    CUDA are little-endian.
    """
    grid, block = shape
    loaded = module.load()
    api = driver_api()
    base, count = words.buffer_info()
    params = array("Q", (base,) if module.kernel.is_record else range(base, base + 8 * count, 8))
    entered = driver.enter(on)
    try:
        (code,) = api.cuLaunchKernel(
            loaded.function, grid, 1, 1, block, 1, 1, 0, api.CUstream(stream), params.buffer_info()[0], 0
        )
    finally:
        driver.leave(entered)
    if int(code) != 0:
        name, reason = driver.reason_of(code)
        raise LaunchFailed(module.kernel.name, name, reason, grid, block, on.ordinal).at()
