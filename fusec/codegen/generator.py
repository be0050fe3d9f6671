"""The interface of a code generator, and its options beside a program and its memory layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Fp, Kernel, Layout
from fusec.base.records import dataclass
from fusec.ir.loops import Program
from fusec.ir.reductions import ReductionIR

SINGLE = "-fsingle-precision-constant"


class Features(Protocol):
    """What machine code is written for: `fusec.runtime.cpu.processor` has it."""

    @property
    def vector_bits(self) -> int:
        """Width of the vector registers."""

    @property
    def converts_halves(self) -> bool:
        """Whether there are instructions between float16 and float32."""

    @property
    def permutes(self) -> int:
        """Bits of the registers whose elements are permuted by variable indices."""


@dataclass(frozen=True)
class Options:
    """The options of a kernel."""

    processor: Callable[[], Features]  # that of this machine, for those who ask
    fp: Fp = "strict"
    flags: tuple[str, ...] = ()  # compiler options, as the user gave them


@dataclass(frozen=True)
class Generator:
    """The code generator of a target; a module of the table of targets has it under the name `GENERATOR`."""

    program: Callable[[Program, Layout, Options], Kernel]
    join: Callable[[Sequence[Kernel]], str]  # kernels of different names as one file
    renamed: Callable[[Kernel, str], Kernel]  # a kernel under another title
    approximate: frozenset[tuple[str, DType]] = frozenset()  # ops that fp="fast" leaves to instructions of the target
    beside: Callable[[Sequence[Kernel], str], Kernel | None] | None = None  # kernels as one, each for blocks of its own
    ended: Callable[[Kernel, Kernel, str], Kernel | None] | None = None  # a kernel with another one at its end
    # Of targets without many threads only, which get loops along an axis as they are:
    reduction: Callable[[ReductionIR, Layout, int, Options], Kernel] | None = None  # a phase, along an axis of a layout
    columns: Callable[[Program, Layout, Options], Kernel] | None = None  # a scan along an axis before the last one
