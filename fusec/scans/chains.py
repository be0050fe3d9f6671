"""Scans on the CPU in one pass over memory: blocks of chunks that stay in a cache from their elements to their results.

The order of operations is that of the kernels of `fusec.scans.plans`; `fusec.runtime.cpu.chain_text` says how threads
hand prefixes on. Taken where several kernels would read everything twice from memory; results are written around the
caches.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from fusec import cache, layouts
from fusec.dtypes import DType
from fusec.generated import Kernel
from fusec.ir.expr import Expr
from fusec.ir.loops import Query
from fusec.ir.reductions import AXIS
from fusec.ir.scans import GIVEN, PARTIAL, PREFIX, Scan, chunk_of, levels_of
from fusec.ir.walk import expressions, operands, statements
from fusec.layouts import Nest, Shape, View
from fusec.passes.scan_pieces import BEFORE, LOCAL
from fusec.records import dataclass, replace
from fusec.reductions.pipeline import Request
from fusec.reductions.plans import arrange
from fusec.runtime.cpu import memory
from fusec.runtime.cpu.chain_words import ENTRY, GROUP, GROUPS, LINE, PIECE, WORDS
from fusec.runtime.cpu.chains import Driver, driver
from fusec.scalars import encode
from fusec.scans import pipeline
from fusec.scans.pipeline import Piece, PieceKind, ScanDefinition
from fusec.scans.plans import Walk

BYTE = np.dtype(np.uint8)
MOST_BYTES = 1 << 19  # of a block of columns: half of a small second cache
MOST_ROW_BYTES = 1 << 20  # of a block of a row, which has 32 chunks however large its values are
LEAST_COLUMNS = 128  # columns that are worth one call for each row
LEAST_SHARED = 1 << 15  # elements from which threads share the work


@dataclass(frozen=True)
class Chain:
    """A scan that is ready to run.

    job: the words, but for addresses and numbers of a call. addresses: (word, name, offset in bytes). scalars: (words,
    name, dtype, half). memory: (word, offset) of addresses in the working memory, of `nbytes`.
    """

    name: str
    job: array[int]
    addresses: tuple[tuple[int, str, int], ...]
    scalars: tuple[tuple[int, str, DType, int], ...]
    memory: tuple[tuple[int, int], ...]
    nbytes: int
    driver: Driver
    blocks: int
    is_shared: bool
    kernels: tuple[Kernel, ...]

    def run(self, addresses: Mapping[str, int], values: Mapping[str, object]) -> None:
        """Scan; returns when all is done. addresses: of arrays by name. values: numbers."""
        job = self.job[:]
        for word, name, offset in self.addresses:
            job[word] = addresses[name] + offset
        for word, name, dtype, half in self.scalars:
            job[word] = encode(values[name], dtype, name, self.name)[half]
        held = memory.empty((self.nbytes + LINE,), BYTE)
        start = -(-held.__array_interface__["data"][0] // LINE) * LINE
        for word, offset in self.memory:
            job[word] = start + offset
        self.driver.run(job.buffer_info()[0], self.blocks, shared=self.is_shared)


def is_worth(walk: Walk, scan: Scan, *, streaming: bool) -> bool:
    """Whether a scan of several kernels is one that chains are made for, and better by one.

    streaming: outputs exceed the caches. While everything is in a cache, a second reading costs less than the copies.
    """
    if not streaming:
        return False
    extents, axis = walk.extents, walk.axis
    is_last = axis == len(extents) - 1
    if len(extents) > (2 if is_last else 3) or any(param.written and param.read for param in scan.arrays):
        return False
    if _asks(scan):
        return False
    if not is_last:
        return extents[-1] >= LEAST_COLUMNS
    nbytes = sum(dtype.nbytes for _, dtype in scan.total.parts) * GROUP * chunk_of(True)
    return nbytes <= MOST_ROW_BYTES and extents[axis] < GROUP * GROUPS * chunk_of(True) ** 2


def _asks(scan: Scan) -> bool:
    """Whether texts ask for places or shapes, which pieces do not know."""
    bodies = [*scan.stage.body, *scan.reduction.finish, *scan.first]
    roots: list[Expr] = [root for stmt in statements(tuple(bodies)) for root in operands(stmt)]
    return any(isinstance(each, Query) for each in expressions([scan.running.value, *roots]))


def make(
    definition: ScanDefinition, request: Request, walk: Walk, scan: Scan, threads: int, *, streaming: bool
) -> Chain:
    """Compile the pieces and lay the job out."""
    return _Maker(definition, request, walk, scan, threads, streaming=streaming).chain()


@dataclass(frozen=True)
class _Array:
    """An array of a piece: its name and dtype, strides in bytes along the piece's axes, and the words of its entry but
    for the slot and the base, to which `offset` is added; `base` is None for an array of the user.
    """

    name: str
    dtype: DType
    strides: Shape
    base: int | None
    offset: int
    steps: tuple[int, int, int, int]


class _Maker:
    """One chain on its way."""

    def __init__(
        self, definition: ScanDefinition, request: Request, walk: Walk, scan: Scan, threads: int, *, streaming: bool
    ) -> None:
        self.definition, self.request, self.walk, self.scan = definition, request, walk, scan
        self.streaming, self.outputs = streaming, {param.name for param in scan.arrays if param.written}
        self.extents, self.axis = walk.extents, walk.axis
        self.is_last = self.axis == len(self.extents) - 1
        self.extent, self.chunk = self.extents[self.axis], chunk_of(self.is_last)
        self.dtypes = [dtype for _, dtype in scan.total.parts]
        self.size = max(dtype.nbytes for dtype in self.dtypes)
        chunks = -(-self.extent // self.chunk)
        self.columns = 1 if self.is_last else self.extents[-1]
        self.together = min(GROUP, chunks) if self.is_last else 1
        self.blocks = -(-chunks // self.together)
        self.span = 1 if self.is_last else self._span()
        self.spans = -(-self.columns // self.span)
        rows = min(self.chunk, self.extent)
        self.pitch = self.span * self.size
        self.local_stride = _lines(self.together * rows * self.size if self.is_last else rows * self.pitch)
        self.stride = _lines((GROUP + 1) * self.size if self.is_last else self.pitch)
        self.buffers = max(1, min(threads, self.blocks * self.spans * self._outer()))
        self.job = array("q", bytes(8 * len(WORDS)))
        self.addresses: list[tuple[int, str, int]] = []
        self.scalars: list[tuple[int, str, DType, int]] = []
        self.kernels: list[Kernel] = []
        parts = len(self.dtypes)
        self.places = [parts * self.local_stride + parts * self.stride * at for at in range(3)]
        self.buffer_bytes = self.places[-1] + parts * self.stride

    def _outer(self) -> int:
        return prod(self.extents[: self.axis])

    def _span(self) -> int:
        """Columns of a block: whole cache lines, spans of about one size."""
        rows = min(self.chunk, self.extent)
        most = max(GROUP, MOST_BYTES // (rows * sum(dtype.nbytes for dtype in self.dtypes)))
        spans = -(-self.columns // most)
        return min(self.columns, -(-self.columns // spans // LINE + 1) * LINE) if spans > 1 else self.columns

    def chain(self) -> Chain:
        """The whole."""
        pieces: dict[str, int] = {name: self._piece(name) for name in self._pieces()}
        parts, levels = len(self.dtypes), levels_of(self.extent, self.is_last) + 1
        level = parts * self.stride * (1 if self.is_last else 2)
        state = 5 * level if self.is_last else self.spans * levels * level
        given, scanned, prefixes = self.places
        words: dict[str, int] = {
            "buffer_bytes": _lines(self.buffer_bytes), "buffer_count": self.buffers, "blocks": self.blocks,
            "spans": self.spans, "columns": self.columns, "span": self.span, "extent": self.extent,
            "chunk": self.chunk, "chunks": self.together, "shift": int(self.scan.exclusive), "parts": parts,
            "sizes": self._append([dtype.nbytes for dtype in self.dtypes]), "local_stride": self.local_stride,
            "stride": self.stride, "given": given, "scanned": scanned, "prefixes": prefixes, "pitch": self.pitch,
            "span_bytes": levels * level, "level_bytes": level, **pieces,
        }  # fmt: skip
        words["locks"] = self._append([0] * (LINE // 8 * (self.buffers + 1)))
        words["turns"] = self._append([0] * (LINE // 8 * (self.spans + 1)))
        for name, value in words.items():
            self.job[WORDS.index(name)] = value
        places = ((WORDS.index("buffers"), 0), (WORDS.index("state"), self.buffers * words["buffer_bytes"]))
        blocks = self._outer() * self.blocks * self.spans
        return Chain(
            name=self.scan.name,
            job=self.job,
            addresses=tuple(self.addresses),
            scalars=tuple(self.scalars),
            memory=places,
            nbytes=self.buffers * words["buffer_bytes"] + state,
            driver=driver(of_rows=self.is_last, store=cache.default_cache()),
            blocks=blocks,
            is_shared=prod(self.extents) >= LEAST_SHARED and blocks > 1,
            kernels=tuple(self.kernels),
        )

    def _pieces(self) -> Sequence[PieceKind]:
        found: list[PieceKind] = ["local", "finish"]
        if self.blocks * self.together > 1:
            found += ["join", "gather"] if self.is_last else ["join"]
        return [*found, *(("first",) if self.scan.exclusive else ())]

    def _append(self, words: Sequence[int]) -> int:
        """Put words at the end of the job; their distance from its start in bytes."""
        start = 8 * len(self.job)
        self.job.extend(words)
        return start

    # --- pieces ----------------------------------------------------------------------------------------------------

    def _piece(self, kind: PieceKind) -> int:
        """Compile a kernel and append its words; their distance."""
        arrays, extents = self._arrays(kind)
        nest = Nest(extents, tuple(each.strides for each in arrays), (0,) * len(arrays))
        views = [(each.name, View(0, extents, each.strides, each.dtype)) for each in arrays]
        streaming = self.streaming and kind == "finish"
        layout = layouts.make_layout(nest, views, (), c_order=False, streaming=streaming)
        piece = Piece(kind, self.is_last, replace(layout, aligned=1))
        executable = pipeline.executable(self.definition, self.request, piece)
        kernel = executable.kernel
        self.kernels.append(kernel)
        walk = _Walk(tuple((each.name, each.strides, 0) for each in arrays))
        space = (GROUP,) if kind in ("gather", "local") and self.is_last else extents
        space = (1, *space[1:]) if len(space) > 1 else space
        arguments = arrange(kernel, walk, space, {}, {AXIS: 0, BEFORE: 1})
        count = len(kernel.slots) + 1  # and one that takes what the kernel does without
        template = self._append([*arguments.template, 0])
        self.scalars += [(template // 8 + slot, name, dtype, half) for slot, name, dtype, half in arguments.scalars]
        slots = {name: slot for slot, name, _ in arguments.pointers}
        known = [each for each in arrays if each.name in slots and each.offset >= 0]
        table = self._table(known, slots)
        axis = _scalar_slot(kernel, (AXIS, BEFORE))
        special = self._append(
            [slots.get(f"{name}{at}", count - 1) for at in range(len(self.dtypes)) for name in ROLES.get(kind, ())]
        )
        place = self.buffer_bytes
        self.buffer_bytes += 8 * count
        words = {
            "function": executable.address, "template": template, "slots": count, "table": table,
            "entries": len(known), "axis": count - 1 if axis is None else axis, "special": special, "place": place,
        }  # fmt: skip
        return self._append([words[name] for name in PIECE])

    def _table(self, arrays: Sequence[_Array], slots: Mapping[str, int]) -> int:
        """The entries of a kernel's pointers."""
        start = 8 * len(self.job)
        for each in arrays:
            if each.base is None:
                self.addresses.append((len(self.job) + ENTRY.index("base"), each.name, each.offset))
            edge = self.streaming and each.base is None and each.name in self.outputs
            self._append([slots[each.name], each.base is not None, each.base or 0, *each.steps, edge])
        return start

    def _arrays(self, kind: PieceKind) -> tuple[list[_Array], Shape]:
        """The arrays of a piece, and the extents of its walk."""
        rows, parts = min(self.chunk, max(self.extent, 2)), range(len(self.dtypes))
        match kind:
            case "local":
                program_inputs = {param.name for param in self.scan.arrays if not param.written}
                extents: Shape = (rows,) if self.is_last else (rows, self.span)
                found = [
                    each for each in self._users(inner=not self.is_last, along=True) if each.name in program_inputs
                ]
                for at in parts:
                    size = self.dtypes[at].nbytes
                    strides = (size,) if self.is_last else (self.pitch, size)
                    step = self.chunk * size if self.is_last else 0
                    found.append(self._own(PARTIAL, at, strides, at * self.local_stride, step))
            case "finish":
                extents = (rows,) if self.is_last else (self.span,)
                found = self._users(
                    inner=not self.is_last, along=self.is_last, shift=int(self.scan.exclusive), each_row=True
                )
                for at in parts:
                    size = self.dtypes[at].nbytes
                    step = self.chunk * size if self.is_last else self.pitch
                    found.append(self._own(LOCAL, at, (size,), at * self.local_stride, step))
                    strides, step = ((0,), size) if self.is_last else ((size,), 0)
                    found.append(self._own(PREFIX, at, strides, self.places[2] + at * self.stride, step))
            case "first":
                extents = (rows,) if self.is_last else (self.span,)
                found = self._users(inner=not self.is_last, along=self.is_last)
                found = [replace(each, steps=(each.steps[0], 0, *each.steps[2:])) for each in found]
            case "gather" | "join":
                extents = (GROUP,) if self.is_last else (self.span,)
                found = [
                    _Array(
                        f"{name}{at}",
                        self.dtypes[at],
                        (0 if name == PREFIX and self.is_last else self.dtypes[at].nbytes,),
                        None,
                        -1,
                        (0, 0, 0, 0),
                    )
                    for at in parts
                    for name in ROLES[kind]
                ]
        return found, extents

    def _own(self, name: str, at: int, strides: Shape, base: int, step: int) -> _Array:
        """An array in a buffer."""
        return _Array(f"{name}{at}", self.dtypes[at], strides, base, 0, (0, 0, 0, step))

    def _users(self, *, inner: bool, along: bool, shift: int = 0, each_row: bool = False) -> list[_Array]:
        """The arrays of the call. inner: pieces have columns. along: they have the axis. shift: elements further on."""
        found = []
        for name, view, row, offset in self.walk.operands:
            outer = row[0] if self.axis else 0
            step = row[self.axis]
            strides = ((step,) if along else ()) + ((row[-1],) if inner else ())
            each = step if each_row and not self.is_last else 0
            steps = (outer, self.chunk * step, self.span * row[-1] if inner else 0, each)
            found.append(_Array(name, view.dtype, strides, None, offset + shift * step, steps))
        return found


@dataclass(frozen=True)
class _Walk:
    """Operands as `arrange` takes them."""

    operands: tuple[tuple[str, Shape, int], ...]


ROLES = {"gather": (GIVEN, PARTIAL), "join": (PREFIX, LOCAL, PARTIAL)}
"""Arrays whose addresses the driver fills in itself, in its order."""


def _scalar_slot(kernel: Kernel, names: Sequence[str]) -> int | None:
    found = (at for at, slot in enumerate(kernel.slots) if slot.kind == "scalar" and slot.param in names)
    return next(found, None)


def _lines(nbytes: int) -> int:
    """Whole cache lines."""
    return -(-nbytes // LINE) * LINE
