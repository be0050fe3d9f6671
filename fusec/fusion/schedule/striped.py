"""Products whose results are read by the next kernel strip by strip, while each strip is in a cache.

A product of many rows by few columns is made block by block, and the blocks lie one behind the other. If an
element-wise kernel follows that walks over the result in the order of its memory, a thread runs the kernel on a block
as soon as it has made it, so the result need not come from memory again. The bits are those of both one after the
other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fusec.base.kernel_abi import strides_in_order
from fusec.base.records import dataclass
from fusec.dispatch.plan import CompiledLaunch
from fusec.kinds.launch import Launch
from fusec.runtime.cpu.engine import Executable
from fusec.runtime.cpu.machine import thread_count
from fusec.runtime.cpu.products import STRIP, BlasProduct

Pointer = tuple[int, int]  # as in `fusec.fusion.schedule.native_sequence`
LEAST_STRIPS = 4  # of a thread; fewer would leave threads idle at the end


@dataclass(frozen=True)
class ProductPlace:
    """A product, the slots of its result and of what it reads, with bytes before each, and bytes of an element."""

    product: BlasProduct
    result: Pointer
    reads: tuple[Pointer, Pointer]
    nbytes: int


def spans_of(
    place: ProductPlace, each: CompiledLaunch[Executable], where: Mapping[str, Pointer],
    outputs: Collection[str], new: Collection[int | None],
) -> tuple[int, int] | None:  # fmt: skip
    """The positions of a strip of a product and of the kernel after it; None if the kernel needs more than a strip.

    where: the slot of each array, and bytes from its start. new: slots of memory that nothing else shares.
    """
    product, launch, kernel = place.product, each.launch, each.code.kernel
    if not product.span or type(launch) is not Launch or launch.layout.raw or launch.positions != product.elements:
        return None
    if kernel.rows != 1 or kernel.group != 1 or kernel.block:
        return None
    arrays, is_read = dict(launch.arrays), False
    for name, strides, offset in launch.operands:
        array = arrays.get(name, name)
        if array not in where:
            return None
        base, start = where[array]
        if base == place.result[0]:
            if start + offset != place.result[1] or not _is_dense(place, launch, strides):
                return None
            is_read = is_read or array not in outputs
        elif array in outputs and base not in new:
            return None
    blocks = max(1, STRIP // (2 * product.span * place.nbytes))
    if not is_read or -(-product.positions // blocks) < LEAST_STRIPS * thread_count():
        return None
    return blocks, blocks * product.span


def in_place(
    place: ProductPlace, each: CompiledLaunch[Executable], where: Mapping[str, Pointer], outputs: Collection[str]
) -> Pointer | None:
    """Where the kernel after a product stores a result that lies as the product does; None if it stores none, or stores
    it around the caches, out of which that would throw the strips.
    """
    if each.launch.layout.streaming:
        return None
    arrays = dict(each.launch.arrays)
    for name, strides, offset in each.launch.operands:
        array = arrays.get(name, name)
        if array in outputs and not offset and _is_dense(place, each.launch, strides):
            return where[array]
    return None


def _is_dense(place: ProductPlace, launch: Launch, strides: tuple[int, ...]) -> bool:
    """Whether elements as large as those of a product lie one behind the other in the order of the walk."""
    return tuple(strides) == tuple(strides_in_order(launch.extents, range(len(launch.extents)), place.nbytes))
