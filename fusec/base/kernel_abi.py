"""The interface of code generators to runtimes: the layout of a kernel, its argument list and its source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from functools import cached_property
from typing import Literal, Protocol

from fusec.base.dtypes import DType
from fusec.base.records import dataclass

Fp = Literal["strict", "contract", "fast"]
"""What floating-point arithmetic may become: nothing else; a product and a sum may be one fma; also approximations."""
MAX_BLOCK = 1024  # threads of a block: the limit of CUDA's and Metal's devices so far
SHARED_BYTES = 48 << 10  # of shared memory that a block has on every CUDA device
ATOMIC_BYTES = 4  # of the least integers that instructions update
COPYING_BLOCK = 512  # threads of a block that has copies of arrays: more have too few registers, fewer more copies
VECTOR_BYTES = 16  # the widest load that every GPU has
USUAL_BLOCK = 256  # threads of a block unless a call says; texts promise compilers no more
SlotKind = Literal["size", "extent", "pointer", "stride", "scalar", "raw_size", "raw_extent", "raw_stride"]


class Step(Enum):
    """How the address of an operand moves along an axis: not at all, by one element, or by a run-time stride.

    DENSE: by as much as it moves along all of the axis inside. Only layouts in strips tell it from ANY, and have ZERO
    along other axes than the last.
    """

    ZERO = "0"
    UNIT = "1"
    ANY = "s"
    DENSE = "d"


@dataclass(frozen=True)
class Layout:
    """The memory layout that a kernel is specialised for; extents and strides stay run-time values."""

    ndim: int  # axes of the iteration space after merging, at least 1; the last one is innermost
    steps: tuple[
        tuple[str, tuple[Step, ...]], ...
    ] = ()  # of arrays that are not raw, the Step along each of these axes
    raw: tuple[tuple[str, tuple[int, bool]], ...] = ()  # of raw arrays, the number of axes, and whether C-contiguous
    c_order: bool = True  # the space is walked in C order of the logical shape: the flat index is the loop position
    wide: bool = False  # positions or byte offsets may need 64 bits
    aligned: int = 1  # every pointer of a UNIT operand is a multiple of this many bytes, its element size at least
    streaming: bool = False  # the outputs exceed the last-level cache, so that writing around it pays
    tiled: bool = False  # the axes that operands run along are so long that turning squares of them pays
    strips: bool = False  # the last axis is short: it is walked as one with the axis before it, in strips
    by_chunks: bool = False  # a reduction along the last axis takes a chunk of every row, then the next chunk of each
    gaps: tuple[tuple[str, int], ...] = ()  # of arrays with a small stride along their last axis, how many elements
    # Of a reduction whose threads have a row each: the arrays whose rows follow one another, and whether a row is read
    # before the kernel has stored all of it; the elements of a row.
    rows: tuple[tuple[str, bool], ...] = ()
    row: int = 0
    ragged: bool = False  # rows are long enough for vectors, but pointers and rows are not aligned to 16 bytes
    # Of small raw arrays that atomic updates change: how many copies of each the threads of a block have.
    copies: tuple[tuple[str, int], ...] = ()

    @property
    def has_long_rows(self) -> bool:
        """Whether vectors run over many elements before the next row begins."""
        return self.ndim == 1 or self.strips

    @property
    def along(self) -> int:
        """The axis along which the arrays of `rows` have their rows."""
        return self.step(self.rows[0][0]).index(Step.UNIT)

    def step(self, param: str) -> tuple[Step, ...]:
        """The steps of one non-raw array parameter."""
        return dict(self.steps)[param]

    @cached_property
    def key(self) -> str:
        """A short text that names the layout, e.g. ``2:x=s1,y=01;A=2c``; part of cache keys and kernel comments."""
        steps = ",".join(f"{name}={''.join(step.value for step in row)}" for name, row in self.steps)
        raw = ",".join(f"{name}={ndim}{'c' if contiguous else ''}" for name, (ndim, contiguous) in self.raw)
        flags = ("" if self.c_order else "p") + ("w" if self.wide else "") + ("n" if self.streaming else "")
        flags += ("t" if self.tiled else "") + ("s" if self.strips else "") + ("k" if self.by_chunks else "")
        flags += f"a{self.aligned}{'u' if self.ragged else ''}" + "".join(
            f"g{name}{count}" for name, count in self.gaps
        )
        flags += f"r{self.row}{','.join(name for name, _ in self.rows)}" if self.rows else ""
        flags += "".join(f"m{name}{count}" for name, count in self.copies)
        return f"{self.ndim}:{steps};{raw};{flags}"


def room_of_copies(arrays: int) -> int:
    """Bytes of shared memory for the copies of each of so many arrays, which begin where vectors may."""
    return (SHARED_BYTES - (1 << 10)) // arrays // 16 * 16  # the last KB is for gaps between arrays


def strides_in_order(shape: Sequence[int], order: Iterable[int], nbytes: int) -> tuple[int, ...]:
    """Strides in bytes of a dense array; order: its axes from outermost to innermost. nbytes: of an element."""
    strides = [nbytes] * len(shape)
    for axis in reversed(tuple(order)):
        strides[axis] = nbytes
        nbytes *= max(shape[axis], 1)
    return tuple(strides)


def signed_word(number: int) -> int:
    """The signed 64-bit word with the bits of an address, or of what a library has computed modulo 2^64."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


class CodeStore(Protocol):
    """A store of compiled code that outlives the process; fusec.compiler.disk_cache.Cache is one."""

    def get(self, kind: str, key: str) -> bytes | None:
        """The payload stored under kind and key, unchanged, or None."""

    def put(self, kind: str, key: str, payload: bytes, label: str = "") -> None:
        """Store a payload if possible."""


@dataclass(frozen=True)
class Slot:
    """One entry of a kernel's argument list.

    kind: "size" and "extent" (along `axis`) of the iteration space; "pointer", "stride" (bytes along `axis` of the
    space) and "scalar" of parameter `param` (complex128 takes two, the real part with axis 0, then the imaginary one
    with axis 1); "raw_size", "raw_extent", "raw_stride" (bytes) of a raw array, along its
    own `axis`. dtype: of the element or scalar; int64 for the rest.
    """

    kind: SlotKind
    param: str
    axis: int
    dtype: DType


@dataclass(frozen=True)
class Kernel:
    """A generated kernel: everything that a runtime needs to compile, launch and describe it."""

    name: str  # the entry point in `source`
    target: str  # see `fusec.codegen.TARGETS`
    slots: tuple[Slot, ...]  # the arguments in order
    source: str
    layout: Layout
    lanes: int = 1  # elements that one CPU vector step or one GPU thread takes at once
    cost: int = 1  # estimated scalar operations for an element, by which runtimes choose a grain
    notes: tuple[str, ...] = ()  # what was specialised, for explain()
    fills: tuple[
        str, ...
    ] = ()  # outputs that some path leaves unassigned: whoever allocates them fills them with zeros
    group: int = 1  # threads that read each other's values, so that a block has a multiple of these
    rows: int = 1  # of the iteration space, that are computed together
    # `source` in pieces, for a file of several kernels: (name, text) of each definition, callees first and the kernel
    # last; ("", text) of comments and directives
    parts: tuple[tuple[str, str], ...] = ()
    fp: Fp = "strict"  # the floating-point mode it was generated in
    block: int = 0  # of a block program, the threads of a block, each of which takes one element
    cluster: int = 1  # such blocks that take an element together
    # Elements that are worth a block, since it has work before and after them: blocks are large, and go on until all
    # elements are done. 0: blocks have no such work.
    share: int = 0
    is_record: bool = False  # the slots are fields of 8 bytes of one argument, which is passed by value

    @property
    def title(self) -> str:
        """The name without the prefix that separates entry points from a target's own names."""
        return self.name.removeprefix("fusec.")

    @property
    def label(self) -> str:
        """The name with the user's arguments, by which people tell kernels apart."""
        kinds = {slot.param: slot.dtype for slot in self.slots if slot.kind in ("pointer", "scalar")}
        return f"{self.title}({', '.join(f'{dtype} {param}' for param, dtype in kinds.items())})"

    @property
    def digest(self) -> str:
        """Content hash of the source."""
        import hashlib  # only where code is made

        return hashlib.sha256(self.source.encode()).hexdigest()
