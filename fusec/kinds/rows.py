"""How threads share rows: the chunks along the last axis of a reduction, and chunks along other axes."""

from __future__ import annotations

from typing import NamedTuple

from fusec.ir.loops import GROUP
from fusec.ir.reductions import ROUNDS, SHORT, Role, chunk_of

FEW_CHUNKS, FEW_COSTLY = 128, 4096  # up to which blocks share chunks instead of groups: of cheap, of costly elements
MANY = 1024  # chunks of few elements at least that threads take alone, or parts of groups
MOST_OF_FEW = 128  # elements of such chunks, beyond which a group has an element at least for each thread
FEW, NARROW_FEW = 8, 16  # threads that have such a chunk together: of usual, of narrow elements
LONG, LONG_COSTLY = 2048, 1024  # elements at least of a chunk that a block shares; of few chunks of costly elements
BLOCK = 512  # threads of such a block
MOST_BLOCKS = 8  # of a row of several chunks: a cluster of any device that has clusters
HELD_BYTES = 128  # of elements that a thread of a group holds in registers, if a block can hold the rest of a chunk
WIDE_HELD_BYTES = 256  # the same where it loads several at once
NARROW = 2  # bytes of such elements
BLOCK_BYTES, BLOCK_SLOTS = 256, 32  # and those that a thread of such a block holds; more threads of a lane take longer
MOST_HELD_BYTES = 512  # of elements that a thread holds if others cannot
ROUNDS_HELD = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64)  # of a lane that kernels are made to hold
MOST_AT_END = 4096  # results of chunks that one block combines as soon as another kernel would


class Sharing(NamedTuple):
    """How threads share a chunk.

    segments: threads of each lane, of a block that shares a chunk along the last axis; 0: a group shares it, or a
    thread has a chunk along another axis. rounds: elements of a lane, or of such a thread, that registers hold between
    walks; 0: none. is_full: whether every chunk has all of them. few: threads of a part of a group that share a chunk
    along the last axis, each of at most `rounds` elements; 0: others do. chunks: those of a row, which a block, or
    several blocks have all at once. is_wide: whether threads of a group have lanes side by side. blocks: those of a
    row, which have as many chunks each, a power of two, but for some that the last does without.
    """

    segments: int = 0
    rounds: int = 0
    is_full: bool = False
    few: int = 0
    chunks: int = 1
    is_wide: bool = False
    blocks: int = 1

    @property
    def code(self) -> str:
        """A text that differs for kernels with different code."""
        if self == Sharing():
            return ""
        few, chunks = f"f{self.few}" if self.few else "", f"*{self.chunks}" if self.chunks > 1 else ""
        chunks += f"/{self.blocks}" if self.blocks > 1 else ""
        return f"{self.segments}:{self.rounds}{'=' * self.is_full}{few}{'w' * self.is_wide}{chunks}"


class Level(NamedTuple):
    """A level of the reductions of a graph, as a kernel of its own: the inputs that it reads, and its lanes."""

    inputs: frozenset[str]
    lanes: int


class RowKind(NamedTuple):
    """The facts that decide how threads share rows.

    lanes: those of a chunk. is_costly: whether elements take long. held: bytes of registers that an element needs if
    it is kept there between walks, 0 if one walk reads all. is_narrow: whether arrays have so narrow elements that a
    group's threads do not load enough of them at once.
    """

    lanes: int
    is_costly: bool = False
    held: int = 0
    is_narrow: bool = False

    def fills_sides(self, extent: int) -> bool:
        """Whether rows of narrow elements are walked by several at once, if they lie at multiples of 16 bytes."""
        return self.is_narrow and extent % (self.lanes // GROUP) == 0

    def longest(self, blocks: int) -> int:
        """The most elements of a row that so many blocks hold between walks; 0 if there is nothing to hold."""
        return min(SHORT, blocks * self._chunks_of_block) * chunk_of(self.lanes, True) if self.held else 0

    @property
    def _chunks_of_block(self) -> int:
        """Chunks that a block can hold."""
        return BLOCK // (self._least_segments * self.lanes)

    @property
    def _least_segments(self) -> int:
        """The threads that a lane of a whole chunk needs so that they can hold its elements."""
        segments = 1
        while segments * BLOCK_BYTES < ROUNDS * self.held:
            segments *= 2
        return segments

    def _of_several(self, extent: int, rows: int) -> Sharing:
        """How threads share rows of several chunks, of which a block has one, or as few blocks of few chunks as can."""
        chunk, segments = chunk_of(self.lanes, True), self._least_segments
        chunks = -(-extent // chunk)
        if chunks > self._chunks_of_block:
            each = 1
            while each * MOST_BLOCKS < chunks:
                each *= 2
            blocks = -(-chunks // each)
            return Sharing(segments, ROUNDS, extent == blocks * each * chunk, chunks=chunks, blocks=blocks)
        while rows <= FEW_CHUNKS and 2 * segments * chunks * self.lanes <= BLOCK:
            segments *= 2
        return Sharing(segments, ROUNDS, extent % chunk == 0, chunks=chunks)

    def _of_few(self, extent: int) -> Sharing:
        """How threads share a chunk of few elements: as many as load a sector of memory at once, if it is not short."""
        if extent <= SHORT:
            most = 1 << (extent - 1).bit_length()
            return Sharing(0, most, most == extent, few=1)
        few = NARROW_FEW if self.is_narrow else FEW
        rounds = -(-extent // few)
        return Sharing(0, rounds, extent == rounds * few, few=few)

    def sharing(self, role: Role, extent: int, chunks: int, is_wide: bool = False) -> Sharing:
        """How threads share a chunk along the last axis. chunks: their number for all totals. is_wide: whether groups
        may load several elements at once.

        Many chunks of few elements have a thread each, or a part of a group. Groups combine results of chunks, and few
        cheap elements of one total: this may follow at the end of another kernel.
        """
        if role == "whole" and extent > chunk_of(self.lanes, True):
            return self._of_several(extent, chunks)
        if role == "whole" and extent <= min(MOST_OF_FEW, self.lanes) and chunks >= MANY:
            return self._of_few(extent)
        may_follow = chunks == 1 and extent <= MOST_AT_END and not self.is_costly
        long = LONG_COSTLY if self.is_costly and chunks <= FEW_CHUNKS else LONG
        is_shared = role in ("whole", "first") and extent >= long and 2 * self.lanes < BLOCK and not may_follow
        is_few = is_shared and chunks <= (FEW_COSTLY if self.is_costly else FEW_CHUNKS)
        segments = BLOCK // self.lanes if is_few else 0
        if not self.held or role not in ("whole", "first"):
            return Sharing(segments)
        rounds = _rounds(-(-extent // self.lanes))
        most = WIDE_HELD_BYTES if is_wide else HELD_BYTES
        if not segments and rounds * self.lanes // GROUP * self.held <= most:
            return Sharing(0, rounds, extent % (rounds * self.lanes) == 0, is_wide=is_wide)
        if may_follow:
            return Sharing()
        wanted = max(segments, 1) if chunks <= FEW_CHUNKS else 1
        while rounds > wanted * max(1, min(BLOCK_SLOTS, BLOCK_BYTES // self.held)):
            wanted *= 2
        rounds = -(-rounds // wanted) * wanted
        if wanted * self.lanes > BLOCK:
            return Sharing(segments)
        return Sharing(wanted, rounds, extent % (rounds * self.lanes) == 0)

    def column(self, role: Role, extent: int) -> Sharing:
        """The same along another axis, where a thread has a chunk."""
        rounds = _rounds(extent)
        if not self.held or role not in ("whole", "first") or rounds * self.held > MOST_HELD_BYTES:
            return Sharing()
        return Sharing(0, rounds, extent % rounds == 0)


def _rounds(wanted: int) -> int:
    """The rounds that kernels are made for, of which there are few: the least that suffice, or all of a chunk."""
    return next((each for each in ROUNDS_HELD if each >= wanted), ROUNDS)
