"""One or several launches in order, whose argument words lie in memory, so that a call only fills in what differs."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

from fusec.base.kernel_abi import signed_word
from fusec.runtime.cuda.counters import block_counter
from fusec.runtime.cuda.launching import grid_size, launch, threads_of_block
from fusec.runtime.cuda.module import CompiledModule
from fusec.runtime.cuda.native_launches import Fill, NativeLaunches, Row, builtin
from fusec.runtime.cuda.streams import StreamOn


class LaunchSequence:
    """Launches of kernels on one device, each in blocks of the default size.

    launches: of each its module, the elements of its iteration space, and its words, those that differ still 0.
    fills: which arguments of a call go to which words. counters: words that are addresses of the number of blocks that
    are done. store: keeps native code.
    enqueue: launches all in order, given a stream and the arguments, all integers. It raises LaunchFailed, and what is
    before that launch was enqueued.
    """

    enqueue: Callable[..., object]

    def __init__(
        self,
        launches: Sequence[tuple[CompiledModule, int, Sequence[int]]],
        device: int,
        fills: Sequence[Fill],
        counters: Sequence[int] = (),
        store: Any = None,
    ) -> None:
        template, rows = array("q"), list[Row]()
        modules: list[tuple[CompiledModule, int, int, int]] = []  # with the elements, and the words from and to
        for module, size, words in launches:
            block, first = threads_of_block(module, device, size), len(template)
            template.extend(words)
            blocks = grid_size(module.kernel, size, block, module.blocks_at_once(device, block))
            rows.append((int(module.load().function), blocks, block, first))
            modules.append((module, size, first, len(template)))
        count = 1 + max((number for _, number, _ in fills), default=-1)
        fills = [*fills, *((word, count, 0) for word in counters)]

        def one_by_one(begun: int, stream: int, *values: int) -> None:
            """Launch those from a number on while another device is current, or none; or say why the driver refuses."""
            held = template[:]
            for word, number, offset in fills:
                held[word] = signed_word(values[number] + offset)
            for module, size, first, stop in modules[begun:]:
                launch(module, held[first:stop], size, StreamOn(stream, device))

        native = builtin(NativeLaunches(template, fills, rows, device, one_by_one), store)

        def slow(stream: int, *values: int) -> None:
            one_by_one(0, stream, *values)

        all_given = native or slow

        def counted(stream: int, *values: int) -> None:
            counter = block_counter(stream, device)  # which keeps its memory until all is enqueued
            all_given(stream, *values, counter.pointer)

        self.enqueue = counted if counters else all_given
