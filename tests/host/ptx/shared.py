"""Shared memory of blocks, which watches for races and for reads of what nobody has written."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ptx.faults import OutOfBounds, SharedRace, Uninitialised
from ptx.memory import FIRST, POISON, SHIFT, check_alignment, describe
from ptx.types import UNSIGNED

Array = np.ndarray
_NOBODY, _SEVERAL = -1, -2


@dataclass(frozen=True)
class Places:
    """Who runs: for each thread of a group its number, that of its warp and that of its block in the batch."""

    threads: Array
    warps: Array
    blocks: Array


def _unknown(count: int, size: int) -> list[Array]:
    return [np.full(size, _NOBODY, np.int32) for _ in range(count)]


class SharedMemory:
    """The shared memory of the blocks that run together, with who last read and wrote each byte.

    Accesses of two threads are ordered if the block passed a barrier between them, or if they belong to one warp that
    synchronised in between; otherwise a write beside any other access is a race, but for two atomic updates. A plain
    read beside an atomic update is one too, unless an update of the same place by the reader follows: the read that
    starts a loop around compare-and-swap. Missed is a reader that an update follows, and that then reads elsewhere.
    """

    def __init__(self, blocks: int, nbytes: int, everyone: Places) -> None:
        """everyone: all threads, with their warps and blocks."""
        self.nbytes, self._stride, self._everyone = nbytes, -(-nbytes // 16) * 16, everyone
        total, threads = blocks * self._stride, len(everyone.threads)
        self._bytes = np.full(total, POISON, np.uint8)
        self._views = {width: self._bytes.view(kind) for width, kind in UNSIGNED.items()}
        self._is_written, self._is_atomic = np.zeros(total, bool), np.zeros(total, bool)
        self.epochs = np.zeros(blocks, np.int32)  # barriers that each block has passed
        self.warp_epochs = np.zeros(int(everyone.warps.max()) + 1, np.int32)  # and warp-wide ones
        self._writer, self._writer_warp, self._write_epoch, self._write_warp_epoch = _unknown(4, total)
        self._reader, self._reader_warp, self._read_epoch, self._read_warp_epoch = _unknown(4, total)
        # Of each thread the place it last read plainly, when, and whether another thread updates that place.
        self._last, self._last_epoch, self._last_warp_epoch = _unknown(3, threads)
        self._is_beside = np.zeros(threads, bool)

    def _places(self, addresses: Array, blocks: Array, nbytes: int) -> Array:
        check_alignment(addresses, nbytes)
        offsets = (addresses - np.uint64(FIRST)).view(np.int64)
        wrong = (offsets < 0) | (offsets + nbytes > self.nbytes)
        if wrong.any():
            raise OutOfBounds(f"outside shared memory: {describe(addresses, wrong, nbytes)}")
        return offsets + blocks * self._stride

    def load(self, addresses: Array, who: Places, width: int, count: int, is_atomic: bool = False) -> list[Array]:
        """As GlobalMemory.load. Raises Uninitialised, SharedRace."""
        places = self._places(addresses, who.blocks, width * count)
        if not is_atomic:
            self._check_left_alone(who.threads[self._last[who.threads] != places])
        for byte in range(width * count):
            self._note_read(places + byte, addresses, who, is_atomic)
        self._note_last(places, who, is_atomic)
        places = places >> SHIFT[width]
        return [self._views[width][places + k] for k in range(count)]

    def store(
        self, addresses: Array, who: Places, width: int, values: Sequence[Array], is_atomic: bool = False
    ) -> None:
        """As GlobalMemory.store. Raises SharedRace."""
        places = self._places(addresses, who.blocks, width * len(values))
        if is_atomic:
            self._note_update(places, who)
        for byte in range(width * len(values)):
            self._note_write(places + byte, addresses, who, is_atomic)
        places = places >> SHIFT[width]
        for k, each in enumerate(values):
            self._views[width][places + k] = each

    def _race(self, wrong: Array, addresses: Array, what: str) -> None:
        if wrong.any():
            raise SharedRace(f"{what} without a barrier between: {describe(addresses, wrong, 1)}")

    def _note_read(self, at: Array, addresses: Array, who: Places, is_atomic: bool) -> None:
        if not self._is_written[at].all():
            wrong = ~self._is_written[at]
            raise Uninitialised(f"shared memory is read before it is written: {describe(addresses, wrong, 1)}")
        epochs, warp_epochs = self.epochs[who.blocks], self.warp_epochs[who.warps]
        if is_atomic:  # the write that follows looks for races
            return
        beside = self._unordered_write(at, who, epochs, warp_epochs)
        self._race(beside & ~self._is_atomic[at], addresses, "a read beside a write")
        self._is_beside[who.threads[beside]] = True
        others = (self._read_epoch[at] == epochs) & (self._reader[at] != who.threads)
        others &= ~((self._reader_warp[at] == who.warps) & (self._read_warp_epoch[at] != warp_epochs))
        foreign = others & (self._reader_warp[at] != who.warps)
        self._reader[at] = np.where(others, _SEVERAL, who.threads)
        self._reader_warp[at] = np.where(foreign, _SEVERAL, who.warps)
        self._read_epoch[at], self._read_warp_epoch[at] = epochs, warp_epochs
        # Several threads of this very instruction on one byte: the last has just been noted, the others are lost.
        lost = self._reader[at] != np.where(others, _SEVERAL, who.threads)
        self._reader[at[lost]] = _SEVERAL
        mixed = self._reader_warp[at] != np.where(foreign, _SEVERAL, who.warps)
        self._reader_warp[at[mixed]] = _SEVERAL

    def _note_write(self, at: Array, addresses: Array, who: Places, is_atomic: bool) -> None:
        epochs, warp_epochs = self.epochs[who.blocks], self.warp_epochs[who.warps]
        wrong = self._unordered_write(at, who, epochs, warp_epochs)
        writer, warp = who.threads, who.warps
        if is_atomic:
            beside = wrong & self._is_atomic[at]
            wrong &= ~self._is_atomic[at]
            writer = np.where(beside, _SEVERAL, writer)
            warp = np.where(beside & (self._writer_warp[at] != warp), _SEVERAL, warp)
        self._race(wrong, addresses, "a write beside a write")
        if not is_atomic:
            same_warp = (self._reader_warp[at] == who.warps) & (self._read_warp_epoch[at] != warp_epochs)
            wrong = (self._read_epoch[at] == epochs) & (self._reader[at] != who.threads) & ~same_warp
            self._race(wrong, addresses, "a write beside a read")
        self._writer[at], self._writer_warp[at] = writer, warp
        self._write_epoch[at], self._write_warp_epoch[at] = epochs, warp_epochs
        self._race(self._writer[at] != writer, addresses, "two writes at once")
        self._is_written[at], self._is_atomic[at] = True, is_atomic

    # --- reads beside atomic updates -------------------------------------------------------------------------------

    def _note_last(self, places: Array, who: Places, is_atomic: bool) -> None:
        """A plain read is a thread's last one; an update of the same place makes it part of itself."""
        own = self._last[who.threads] == places
        if is_atomic:
            self._last[who.threads[own]] = _NOBODY
            self._is_beside[who.threads[own]] = False
            return
        self._last[who.threads] = places
        self._last_epoch[who.threads] = self.epochs[who.blocks]
        self._last_warp_epoch[who.threads] = self.warp_epochs[who.warps]

    def _note_update(self, places: Array, who: Places) -> None:
        """Other threads that read these places last must update them, too, before they do anything else."""
        every = self._everyone
        readers = np.isin(self._last, places) & (self._last_epoch == self.epochs[every.blocks])
        if readers.any():
            readers[who.threads] = False
            by_warp = np.isin(every.warps, who.warps) & (self._last_warp_epoch != self.warp_epochs[every.warps])
            self._is_beside |= readers & ~by_warp

    def _check_left_alone(self, threads: Array) -> None:
        """Raises SharedRace if one of the threads has read what others update, and did not update it itself."""
        wrong = threads[self._is_beside[threads]]
        if len(wrong):
            raise SharedRace(f"{len(wrong)} threads read shared memory beside atomic updates without a barrier between")

    def finish(self, blocks: Array) -> None:
        """The blocks come to a barrier, or to their ends. Raises SharedRace."""
        threads = np.flatnonzero(np.isin(self._everyone.blocks, blocks))
        self._check_left_alone(threads)
        self._last[threads] = _NOBODY
        self.epochs[blocks] += 1

    def _unordered_write(self, at: Array, who: Places, epochs: Array, warp_epochs: Array) -> Array:
        """Where another thread wrote since the last barrier of the block, and since the last one of a common warp."""
        writer = self._writer[at]
        recent = (self._write_epoch[at] == epochs) & (writer != who.threads) & (writer != _NOBODY)
        return recent & ~((self._writer_warp[at] == who.warps) & (self._write_warp_epoch[at] != warp_epochs))
