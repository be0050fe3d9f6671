"""Several launches in order, whose argument words lie in memory, so that a call only fills in what differs."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from fusec.runtime.cuda import driver
from fusec.runtime.cuda.counters import block_counter
from fusec.runtime.cuda.launching import MAX_STREAMS, grid_size, launch, threads_of_block
from fusec.runtime.cuda.libraries import driver_api
from fusec.runtime.cuda.module import CompiledModule
from fusec.runtime.cuda.streams import StreamOn

MOST_SPARE = 4  # pieces of memory for argument words that stay for later calls


class ArgumentWords:
    """The argument words of all launches of one call, and their addresses, as the driver reads them."""

    def __init__(self, template: array[int]) -> None:
        self.words = template[:]
        base, count = self.words.buffer_info()
        self._addresses = array("Q", range(base, base + 8 * count, 8))
        self.start = self._addresses.buffer_info()[0]


class LaunchSequence:
    """Launches of kernels on one device, each in blocks of the default size.

    launches: of each its module, the elements of its iteration space, and its words, those that differ still 0.
    counters: words that are addresses of the number of blocks that are done.
    """

    def __init__(
        self, launches: Sequence[tuple[CompiledModule, int, Sequence[int]]], device: int, counters: Sequence[int] = ()
    ) -> None:
        self._template, self._device = array("q"), device
        self._modules: list[tuple[CompiledModule, int, int]] = []  # with the elements, and the end of the words
        self._rows: list[tuple[Any, int, int, int]] = []  # function, grid, block, bytes before the words' addresses
        for module, size, words in launches:
            block, first = threads_of_block(module, device, size), len(self._template)
            self._template.extend(words)
            self._rows.append((module.load().function, grid_size(module.kernel, size, block), block, 8 * first))
            self._modules.append((module, size, len(self._template)))
        self._counters = counters
        self._spare: list[ArgumentWords] = []
        self._streams: dict[int, Any] = {}
        self._launch = driver_api().cuLaunchKernel

    def take(self) -> ArgumentWords:
        """Memory for the words of a call, which `enqueue` takes back."""
        try:
            return self._spare.pop()
        except IndexError:
            return ArgumentWords(self._template)

    def enqueue(self, held: ArgumentWords, stream: int) -> None:
        """Launch all in order. Raises LaunchFailed, and what is before that launch was enqueued."""
        on = self._streams.get(stream)
        if on is None:
            on = self._named(stream)
        if self._counters:
            counter = block_counter(stream, self._device)
            for word in self._counters:
                held.words[word] = counter.pointer
        enqueue, start = self._launch, held.start
        is_here = driver.is_current(self._device)
        for at, (function, grid, block, first) in enumerate(self._rows):
            if not is_here or enqueue(function, grid, 1, 1, block, 1, 1, 0, on, start + first, 0)[0]:
                self._again(at, held, stream)
        if len(self._spare) < MOST_SPARE:
            self._spare.append(held)

    def _again(self, at: int, held: ArgumentWords, stream: int) -> None:
        """Launch one while another device is current, or none; or say why the driver refuses it."""
        module, size, stop = self._modules[at]
        launch(module, held.words[self._rows[at][3] // 8 : stop], size, StreamOn(stream, self._device))

    def _named(self, stream: int) -> Any:
        if len(self._streams) >= MAX_STREAMS:
            self._streams = {}
        found = self._streams[stream] = driver_api().CUstream(stream)
        return found
