"""Several kernels as one executable: chains, see Note [Chains] in `fusec.runtime.cpu.chain_text`, and sequences.

A composite has one position. Native entries take it for a kernel, so that a repeated call needs no Python between
kernels.
"""

from __future__ import annotations

import ctypes
import sys
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from fusec.base.dtypes import INT64
from fusec.base.kernel_abi import CodeStore, Kernel, Layout, Slot
from fusec.base.recorded import words_of
from fusec.base.records import dataclass, field, replace
from fusec.runtime.cpu import jit, threads
from fusec.runtime.cpu.area_text import HEAD, LINE
from fusec.runtime.cpu.chain_text import ENTRY, WORDS, chain_text
from fusec.runtime.cpu.engine import Executable
from fusec.runtime.cpu.grain import UNIT, Grain, grain_in_strips, grain_together
from fusec.runtime.cpu.processor import processor
from fusec.runtime.cpu.sequence_text import PART, STEP, STRIPED, TOGETHER, sequence_text

GRAIN = 5  # words of a grain
AREA = -1  # the source of a patch that is an address in the area
_ONE_BY_ONE = Grain(serial_below=0, least=1, most=1, share=1, unit=1)


@dataclass(frozen=True)
class CompositePiece:
    """One of the kernels.

    template: its slots. copies: a slot, the slot of the composite that it is a copy of, what is added. places: a slot,
    the name of an array of the area, bytes from its start. positions: how many it has. span: those of a strip, if it
    runs strip by strip with others.
    """

    executable: Executable
    template: array[int]
    copies: Sequence[tuple[int, int, int]]
    places: Sequence[tuple[int, str, int]]
    positions: int = 0
    span: int = 0


@dataclass(frozen=True)
class CompositeInterface:
    """A composite as its callers see it.

    slots: its arguments, after the description. layout: of the arrays among them. arrays: bytes of what lies between
    kernels, by name.
    """

    name: str
    slots: Sequence[Slot]
    layout: Layout
    arrays: Mapping[str, int]


@dataclass(frozen=True)
class Job:
    """The sizes of a chained scan.

    rows: scanned one after the other. blocks: of a row. span: positions of a block. sums, results: positions of a row
    for the kernels of totals and of results. group: positions of the kernel that advances. number, count: its slots of
    the number of a block and of the totals of the block.
    """

    rows: int
    blocks: int
    span: int
    sums: int
    results: int
    group: int
    number: int
    count: int


@dataclass(frozen=True)
class Moving:
    """A pointer of the kernel that advances: its slot, and its step in bytes per block and per row."""

    slot: int
    block: int
    row: int


_free = ctypes.CDLL(None).free
_free.argtypes, _free.restype = [ctypes.c_void_p], None


class Description:
    """The words of a description, and the area that they own, which live as long as somebody may call."""

    def __init__(self, words: array[int]) -> None:
        self.words, self._free = words, _free

    @property
    def address(self) -> int:
        """The address of the words."""
        return self.words.buffer_info()[0]

    def __del__(
        self,
        is_finalizing: Callable[[], bool] = sys.is_finalizing,
        word: type[ctypes.c_int64] = ctypes.c_int64,
        at: int = HEAD.index("spare"),
    ) -> None:
        if not is_finalizing() and self.words[at]:  # by then, this module's own names may be gone
            self._free(word.from_address(self.words[at] - 8).value)


@dataclass(frozen=True, eq=False)
class Composite(Executable):
    """Several kernels as an executable of one position; slot 0 is the address of the description."""

    description: Description | None = field(default=None, repr=False)
    pieces: tuple[Executable, ...] = ()


def chain(
    outside: CompositeInterface, job: Job, pieces: Sequence[CompositePiece], moving: Sequence[Moving]
) -> Composite | None:
    """A scan of long rows. pieces: kernels of totals, advance, results. None without a pool of threads."""
    if threads.pool(pieces[0].executable.store) is None:
        return None
    area = _Area(len(WORDS) + len(ENTRY) * len(moving), pieces, outside.arrays)
    known = {
        "blocks": job.blocks, "span": job.span, "sums": job.sums, "results": job.results, "group": job.group,
        "number": 8 * job.number, "count": 8 * job.count, "entries": len(moving),
    }  # fmt: skip
    for name, each, start in zip(("sum", "advance", "result"), pieces, area.starts, strict=True):
        known[f"{name}_function"] = each.executable.address
        area.patch(area.words + WORDS.index(f"{name}_slots"), AREA, 8 * start)
    for name, value in known.items():
        area.image[area.words + WORDS.index(name)] = value
    places = {slot: (array_name, offset) for slot, array_name, offset in pieces[1].places}
    for number, pointer in enumerate(moving):
        entry = area.words + len(WORDS) + len(ENTRY) * number
        array_name, offset = places[pointer.slot]
        area.image[entry : entry + len(ENTRY)] = (8 * pointer.slot, 0, pointer.block, pointer.row)
        area.patch(entry + 1, AREA, area.places[array_name] + offset)
    words = area.description(pieces[0].executable.store, job.rows * job.blocks)
    return _composite("chain", outside, words, [each.executable for each in pieces])


def sequence(
    outside: CompositeInterface, launches: Sequence[Sequence[CompositePiece]], words: array[int] | None = None
) -> Composite:
    """Kernels that run in order. launches: the kernels of each run together, and none needs what others of it make; or
    strip by strip, where each needs what those before it make of the same strip.

    words: their description, if it is known.
    """
    pieces = [each.executable for one in launches for each in one]
    return _composite("sequence", outside, words or sequence_words(outside.arrays, launches), pieces)


def sequence_words(arrays: Mapping[str, int], launches: Sequence[Sequence[CompositePiece]]) -> array[int]:
    """The description of a sequence. arrays: see `CompositeInterface`."""
    pieces = [each for one in launches for each in one]
    several = [one for one in launches if len(one) > 1]
    table = (len(STEP) + GRAIN) * len(launches)
    area = _Area(table + sum(1 + len(PART) * len(one) for one in several), pieces, arrays)
    table += area.words
    starts, grains = iter(area.starts), area.words + len(STEP) * len(launches)
    for number, one in enumerate(launches):
        step = area.words + len(STEP) * number
        slots = step + STEP.index("slots")
        if len(one) == 1:
            grain, words = one[0].executable.grain, (one[0].executable.address, 0, one[0].positions, 0)
            area.patch(slots, AREA, 8 * next(starts))
        else:
            area.patch(slots, AREA, 8 * table)
            area.image[table], table, end = len(one), table + 1, 0
            is_striped = one[0].span > 0
            for each in one:
                begin = each.span if is_striped else -(-end // UNIT) * UNIT
                end = each.positions if is_striped else begin + each.positions
                area.image[table : table + len(PART)] = (each.executable.address, 0, begin, end)
                area.patch(table + PART.index("slots"), AREA, 8 * next(starts))
                table += len(PART)
            work = [(each.executable.grain, each.positions) for each in one]
            grain = grain_in_strips(work) if is_striped else grain_together(work)
            positions = -(-end // one[-1].span) if is_striped else end
            words = (STRIPED if is_striped else TOGETHER, 0, positions, 0)
        area.image[step : step + len(STEP)] = words
        area.image[grains : grains + GRAIN] = grain.numbers
        area.patch(step + STEP.index("grain"), AREA, 8 * grains)
        grains += GRAIN
    return area.description(pieces[0].executable.store, len(launches))


def described_again(known: Composite, words: array[int]) -> Composite:
    """A composite with another description of the same kernels."""
    return Composite(
        known.kernel, known.address, known.object_bytes, known.grain, known.store, known.runner, Description(words),
        known.pieces,
    )  # fmt: skip


def _composite(
    driver: Literal["chain", "sequence"],
    outside: CompositeInterface,
    words: array[int],
    executables: Sequence[Executable],
) -> Composite:
    store = executables[0].store
    architecture = processor().architecture
    text = chain_text(architecture) if driver == "chain" else sequence_text(architecture)
    code = jit.compile_text(driver, text, store, "short")
    here = Slot("extent", "", 0, INT64)
    layout = replace(outside.layout, aligned=1)
    kernel = Kernel(outside.name, "llvm", (here, *outside.slots), "", layout)
    return Composite(
        kernel, code.address, b"", _ONE_BY_ONE, store, code.address, Description(words), tuple(executables)
    )


class _Area:
    """The image of an area and its patches. words: the number of the driver's first word. starts: those of slots."""

    def __init__(self, words: int, pieces: Sequence[CompositePiece], arrays: Mapping[str, int]) -> None:
        self.image, self.patches = [0] * (LINE // 8), list[int]()
        self.words, self.starts = len(self.image), list[int]()
        self.image.extend([0] * words)
        for each in pieces:
            self.starts.append(len(self.image))
            self.image.extend(each.template)
        self.places, end = dict[str, int](), 8 * len(self.image)
        for name, nbytes in arrays.items():
            self.places[name] = end = -(-end // LINE) * LINE
            end += nbytes
        self.nbytes = end
        for each, start in zip(pieces, self.starts, strict=True):
            for slot, source, added in each.copies:
                self.patch(start + slot, source, added)
            for slot, name, offset in each.places:
                self.patch(start + slot, AREA, self.places[name] + offset)

    def patch(self, word: int, source: int, added: int) -> None:
        """A word that calls differ in, see `fusec.runtime.cpu.area_text.PATCH`."""
        self.patches.extend((word, source, added))

    def description(self, store: CodeStore | None, size: int) -> array[int]:
        """All words of a description. size: positions of the driver."""
        pool = threads.pool(store)
        head = (0, self.nbytes, len(self.image), len(self.patches) // 3, pool.run_address if pool else 0, size)
        return words_of([*head, *self.image, *self.patches])
