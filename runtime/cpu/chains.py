"""Chained scans: three kernels as one executable, see Note [Chains] in `fusec.runtime.cpu.chain_text`."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from fusec.generated import Kernel, Layout, Slot
from fusec.records import dataclass, field, replace
from fusec.runtime.cpu import jit, threads
from fusec.runtime.cpu.chain_text import ENTRY, LINE, WORDS, chain_text
from fusec.runtime.cpu.engine import Executable
from fusec.runtime.cpu.grain import Grain
from fusec.runtime.cpu.processor import processor

AREA = -1  # the source of a patch that is an address in the area


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
class Piece:
    """One of the kernels: totals, advance, results.

    template: its slots. copies: a slot, the slot of the chain that it is a copy of, what is added. places: a slot, the
    name of an array of the area, bytes from its start.
    """

    executable: Executable
    template: array[int]
    copies: Sequence[tuple[int, int, int]]
    places: Sequence[tuple[int, str, int]]


@dataclass(frozen=True)
class Moving:
    """A pointer of the kernel that advances: its slot, and bytes from block to block and from row to row."""

    slot: int
    block: int
    row: int


@dataclass(frozen=True, eq=False)
class Chain(Executable):
    """A chained scan as an executable of one position; slot 0 is the address of its description."""

    description: array[int] = field(default_factory=lambda: array("q"), repr=False)
    pieces: tuple[Executable, ...] = ()


def make(
    name: str,
    slots: Sequence[Slot],
    layout: Layout,
    job: Job,
    pieces: Sequence[Piece],
    moving: Sequence[Moving],
    arrays: Mapping[str, int],
) -> Chain | None:
    """The executable; None where there is no pool. slots: after that of the description. arrays: bytes of each."""
    store = pieces[0].executable.store
    pool = threads.pool(store)
    if pool is None:
        return None
    area = _Area(job, pieces, moving, arrays)
    head = (area.nbytes, len(area.image), len(area.patches) // 3, job.rows * job.blocks, pool.run_address)
    description = array("q", (*head, *area.image, *area.patches))
    code = jit.compile_text("chain", chain_text(processor().architecture), store, "short")
    here = Slot("extent", "", 0, slots[0].dtype)
    kernel = Kernel(name, "llvm", (here, *slots), "", replace(layout, aligned=1))
    grain = Grain(serial_below=0, least=1, most=1, share=1, unit=1)
    executables = tuple(each.executable for each in pieces)
    return Chain(kernel, code.address, b"", grain, store, code.address, description, executables)


class _Area:
    """The image of an area and its patches."""

    def __init__(self, job: Job, pieces: Sequence[Piece], moving: Sequence[Moving], arrays: Mapping[str, int]) -> None:
        self.image = array("q", bytes(LINE))
        self.patches = array("q")
        at = len(self.image)  # of the job
        self.image.extend([0] * (len(WORDS) + len(ENTRY) * len(moving)))
        starts = []
        for each in pieces:
            starts.append(len(self.image))
            self.image.extend(each.template)
        places, end = {}, 8 * len(self.image)
        for name, nbytes in arrays.items():
            places[name] = end = -(-end // LINE) * LINE
            end += nbytes
        self.nbytes = end
        words = {
            "blocks": job.blocks, "span": job.span, "sums": job.sums, "results": job.results, "group": job.group,
            "number": 8 * job.number, "count": 8 * job.count, "entries": len(moving),
        }  # fmt: skip
        for name, each, start in zip(("sum", "advance", "result"), pieces, starts, strict=True):
            words[f"{name}_function"] = each.executable.address
            self._patch(at + WORDS.index(f"{name}_slots"), AREA, 8 * start)
            for slot, source, added in each.copies:
                self._patch(start + slot, source, added)
            for slot, known, offset in each.places:
                self._patch(start + slot, AREA, places[known] + offset)
        for name, value in words.items():
            self.image[at + WORDS.index(name)] = value
        known_at = {slot: (known, offset) for slot, known, offset in pieces[1].places}
        for number, pointer in enumerate(moving):
            entry = at + len(WORDS) + len(ENTRY) * number
            known, offset = known_at[pointer.slot]
            self.image[entry : entry + len(ENTRY)] = array("q", (8 * pointer.slot, 0, pointer.block, pointer.row))
            self._patch(entry + 1, AREA, places[known] + offset)

    def _patch(self, word: int, source: int, added: int) -> None:
        self.patches.extend((word, source, added))
