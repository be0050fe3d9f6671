"""Launches: how many blocks of how many threads, the argument words, and the call into the driver."""

from __future__ import annotations

import operator
from array import array
from collections.abc import Sequence

import numpy as np

from fusec.errors.targets import BlockSizeRefused, LaunchFailed
from fusec.kernel import Kernel, Slot
from fusec.runtime.cuda import driver, streams
from fusec.runtime.cuda.driver import Device
from fusec.runtime.cuda.libraries import driver_api
from fusec.runtime.cuda.module import Module

MAX_BLOCK = 1024  # threads of a block on every device so far
USUAL_BLOCK = 256
WAVES = 16  # blocks for every resident one: enough to even out the tail, few enough to keep indices in registers
MAX_GRID = (1 << 31) - 1  # blocks along x

Number = int | float | complex


def launch(
    module: Module,
    slots: Sequence[Number],
    size: int,
    stream: object = None,
    block_size: int | None = None,
    *,
    device: int | None = None,
) -> None:
    """Enqueue a kernel on a stream and return without waiting; nothing happens if `size` is 0.

    slots: the values of `kernel.slots` in order: numbers, or an ``array("q")`` of ready words (64 bits, the value's own
    bits in the low bytes; a complex64 is one word, a complex128 two slots). size: elements of the iteration space.
    stream: whatever streams.handle takes. block_size: threads of a block, at most that many if the kernel cannot
    run more; None chooses. device: where the arrays are; None is the current one.
    Raises BlockSizeRefused, StreamRefused, LaunchFailed; a fault inside the kernel surfaces at a later call.
    """
    asked = USUAL_BLOCK if block_size is None else checked_block_size(block_size)
    if size == 0:
        return
    on = driver.device(driver.current_ordinal() if device is None else device)
    words = slots if isinstance(slots, array) and slots.typecode == "q" else encode(module.kernel, slots)
    assert len(words) == len(module.kernel.slots), (
        f"{module.kernel.name} has {len(module.kernel.slots)} slots, not {len(words)}"
    )
    block = min(asked, module.threads_per_block(on.ordinal))
    _enqueue(module, words, (grid_size(size, module.kernel.lanes, block, on), block), streams.handle(stream), on)


def checked_block_size(block_size: object) -> int:
    """The block size as an int. Raises BlockSizeRefused, a ValueError, with CuPy's text where CuPy has one."""
    try:
        threads = operator.index(block_size)  # type: ignore[arg-type]
    except TypeError as reason:
        raise BlockSizeRefused("an integer", repr(block_size)).at() from reason
    if threads <= 0:
        raise BlockSizeRefused("greater than zero", str(threads)).at()
    if threads > MAX_BLOCK:
        raise BlockSizeRefused(f"at most {MAX_BLOCK}", str(threads)).at()
    return threads


def grid_size(size: int, lanes: int, block: int, on: Device) -> int:
    """Blocks of an elementwise launch: one thread for every `lanes` elements, capped, since threads stride on."""
    needed = -(-size // (lanes * block))
    resident = on.multiprocessors * max(1, on.threads_per_multiprocessor // block)
    return max(1, min(needed, resident * WAVES, MAX_GRID))


def encode(kernel: Kernel, values: Sequence[Number]) -> array[int]:
    """The words of a kernel's slots; floats too large become infinities, integers out of range are a caller's bug."""
    assert len(values) == len(kernel.slots), f"{kernel.name} has {len(kernel.slots)} slots, not {len(values)}"
    return array("q", [_word(slot, value) for slot, value in zip(kernel.slots, values, strict=True)])


def _word(slot: Slot, value: Number) -> int:
    if slot.kind != "scalar":
        return _signed(operator.index(value))  # type: ignore[arg-type]
    with np.errstate(over="ignore"):
        bits = np.asarray(value).astype(slot.dtype.numpy).tobytes()
    part = bits[8 * slot.axis :][:8] if slot.dtype.bits == 128 else bits
    return int.from_bytes(part.ljust(8, b"\0"), "little", signed=True)


def _signed(number: int) -> int:
    """An address above 2^63 as the signed word with the same bits."""
    return number - (1 << 64) if number >= 1 << 63 else number


def _enqueue(module: Module, words: array[int], shape: tuple[int, int], stream: int, on: Device) -> None:
    """Every kernel parameter is read from its own 8-byte word: devices and hosts of CUDA are little-endian."""
    grid, block = shape
    loaded = module.load()
    api = driver_api()
    base, count = words.buffer_info()
    params = array("Q", range(base, base + 8 * count, 8))
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
