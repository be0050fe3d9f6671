"""The targets of the bit matrix, one row each: what runs a list of cases there and gives back what they left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np
from arguments import layout_of
from cuda_in_ptx import CudaInPtx
from cuda_on_host import GXX, ORDERS, CudaOnHost
from matrix_programs import needs_double
from metal_on_host import CLANG, MetalOnHost
from programs import Case

from fusec import passes
from fusec.base.dtypes import real_type
from fusec.base.kernel_abi import Kernel, Layout
from fusec.codegen import cuda, metal
from fusec.ir.interpret import interpret
from fusec.ir.loops import Program
from fusec.passes.expand import expand

Outputs = dict[str, np.ndarray]


class Host(Protocol):
    """Compiled kernels that can be launched by number."""

    def run(
        self,
        number: int,
        program: Program,
        arrays: Outputs,
        scalars: dict[str, object],
        shape: tuple[int, ...],
        order: int = 0,
    ) -> Outputs:
        """Launch on copies of the arrays and return the copies."""


@dataclass(frozen=True)
class Target:
    """A target that runs emitted text.

    available: its compiler is here. accepts: it has the dtypes of a case. turns: of so many cases it takes one, where
    not all are wanted.
    """

    available: bool
    accepts: Callable[[Case], bool]
    generate: Callable[[Program, Layout], Kernel]
    compile: Callable[[Sequence[Kernel], Path], Host]
    turns: int = 1


NVRTC = find_spec("cuda") is not None and find_spec("cuda.bindings") is not None

TARGETS = {
    "cuda": Target(GXX is not None, lambda case: True, cuda.generate, CudaOnHost, turns=2),
    "metal": Target(CLANG is not None, lambda case: not needs_double(case), metal.generate, MetalOnHost),
    "ptx": Target(NVRTC, lambda case: True, cuda.generate, lambda kernels, folder: CudaInPtx(kernels), turns=3),
}


def interpreted(case: Case) -> Outputs:
    """What the interpreter leaves, of the program as written: no pass but the expansion has touched it."""
    arrays = case.copies()
    interpret(expand(case.program), arrays, case.scalars, case.shape)
    return {param.name: arrays[param.name] for param in case.program.arrays if param.written}


def least(case: Case) -> int:
    """The alignment that the elements of every array have without being placed with care."""
    return max(real_type(param.dtype).nbytes for param in case.program.arrays)


def run(target: Target, cases: Sequence[Case], folder: Path) -> list[Outputs]:
    """What a target leaves of each case; cases take turns with vector accesses and with orders of threads."""
    programs = [passes.run(case.program) for case in cases]
    kernels = [
        target.generate(program, layout_of(program, case.arrays, case.shape, aligned=16 if number % 2 else least(case)))
        for number, (program, case) in enumerate(zip(programs, cases, strict=True))
    ]
    host = target.compile(kernels, folder)
    found = []
    for number, (program, case) in enumerate(zip(programs, cases, strict=True)):
        left = host.run(number, program, dict(case.arrays), {}, case.shape, ORDERS[number % len(ORDERS)])
        found.append({param.name: left[param.name] for param in program.arrays if param.written})
    return found
