"""The bit matrix on the CPU target, in a process of its own: the processor to compile for is read once and for all."""

from __future__ import annotations

import ctypes
import itertools
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # the child process has no conftest

from arguments import encode, layout_of  # noqa: E402
from programs import Case  # noqa: E402

from fusec import passes  # noqa: E402
from fusec.base.kernel_abi import Layout  # noqa: E402
from fusec.codegen import llvm  # noqa: E402
from fusec.ir.loops import Program  # noqa: E402
from fusec.runtime.cpu import engine, threads  # noqa: E402
from fusec.runtime.cpu.grain import Grain  # noqa: E402
from fusec.runtime.cpu.processor import Processor, processor  # noqa: E402

Outputs = dict[str, np.ndarray]
Run = Callable[[engine.Executable, int, int], None]
CUTS = (1, 3, 7, 8, 15, 16, 31, 33, 63, 64, 65, 127, 193, 254)  # starts and lengths on either side of all lanes' counts
SMALL = Grain(0, 64, 64, 1)  # chunks of one unit, however little there is to do


class Placed:
    """A copy of an array that starts one element behind an aligned address, with `step` elements between neighbours."""

    def __init__(self, original: np.ndarray, step: int) -> None:
        size, width = original.size, original.itemsize
        self._memory = np.zeros((size * abs(step) + 2) * width + 64, np.uint8)
        start = -self._memory.__array_interface__["data"][0] % 64 + width
        whole = self._memory[start : start + size * abs(step) * width].view(original.dtype)
        self.array = whole[::step]
        self.array[...] = original
        self.address = self.array.__array_interface__["data"][0]


def alone(code: engine.Executable, slots: int, size: int) -> None:
    """The whole range on this thread."""
    code._alone(0, size, slots)


def in_parts(code: engine.Executable, slots: int, size: int) -> None:
    """The range in uneven parts, the last first."""
    edges = [0, *(cut for cut in CUTS if cut < size), size]
    for low, high in reversed(list(itertools.pairwise(edges))):
        code._alone(low, high, slots)


def shared(code: engine.Executable, slots: int, size: int) -> None:
    """The range in chunks that two threads take."""
    pool = threads.pool()
    assert pool is not None, "this process may use two threads"
    pool.run(code.address, slots, size, SMALL)


VARIANTS: dict[str, tuple[Run, int]] = {
    "one thread": (alone, 1),
    "parts": (in_parts, 1),
    "two threads": (shared, 1),
    "every second element, two threads": (shared, 2),
    "backwards": (in_parts, -1),
}
FEW = ("one thread", "parts", "two threads")


def run(case: Case, variants: Sequence[str]) -> dict[str, Outputs]:
    """The outputs of a lowered case for every variant; a kernel is compiled once for every step between elements."""
    program, host = case.program, processor()
    compiled: dict[int, engine.Executable] = {}
    found = {}
    for variant in variants:
        launch, step = VARIANTS[variant]
        placed = {name: Placed(array, step) for name, array in case.arrays.items()}
        if step not in compiled:
            layout = layout_of(program, {name: each.array for name, each in placed.items()}, case.shape, aligned=1)
            compiled[step] = _compiled(program, layout, host)
        code = compiled[step]
        values = encode(code.kernel, program, placed, case.scalars, case.shape)  # type: ignore[arg-type]
        block = ctypes.create_string_buffer(b"".join(value.ljust(8, b"\0") for value in values))
        launch(code, ctypes.addressof(block), int(np.prod(case.shape)))
        found[variant] = {param.name: placed[param.name].array.copy() for param in program.arrays if param.written}
    return found


def _compiled(program: Program, layout: Layout, host: Processor) -> engine.Executable:
    kernel = llvm.generate(
        program,
        layout,
        llvm.LlvmOptions(vector_bits=host.vector_bits, half_casts=host.converts_halves, permutes=host.permutes),
    )
    return engine.compile(kernel)


def in_process(level: str, cases: Sequence[Case], variants: Sequence[str], folder: Path) -> list[dict[str, Outputs]]:
    """The outputs of all cases on the processor that FUSEC_CPU names, from one child process; passes run here."""
    cases = [replace(case, program=passes.run(case.program)) for case in cases]
    given, taken = folder / f"{level}.cases", folder / f"{level}.outputs"
    given.write_bytes(pickle.dumps((list(cases), list(variants))))
    environment: Mapping[str, str] = {**os.environ, "FUSEC_CPU": level, "FUSEC_NUM_THREADS": "2", "FUSEC_CACHE": "0"}
    command = [sys.executable, str(Path(__file__)), str(given), str(taken)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[dict[str, Outputs]] = pickle.loads(taken.read_bytes())
    return found


if __name__ == "__main__":
    wanted, kinds = pickle.loads(Path(sys.argv[1]).read_bytes())
    Path(sys.argv[2]).write_bytes(pickle.dumps([run(case, kinds) for case in wanted]))
