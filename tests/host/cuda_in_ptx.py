"""Runs emitted CUDA C as the PTX that NVRTC makes of it: many kernels in one translation unit."""

import re
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path

import numpy as np
import ptx
from arguments import encode

from fusec.base.kernel_abi import Kernel
from fusec.ir.loops import Program

ORDERS: tuple[ptx.Order, ...] = ("ascending", "descending", "shuffled")
ARCH = "compute_75"


def translation_unit(kernels: Sequence[Kernel]) -> str:
    """The kernels as one text, each in a namespace of its own, with the entry ``kernel_N``."""
    parts = []
    for number, kernel in enumerate(kernels):
        text, found = re.subn(
            rf"(__launch_bounds__\([\d, ]+\)) {re.escape(kernel.name)}\(", rf"\1 kernel_{number}(", kernel.source
        )
        assert found == 1, f"{kernel.name} is not the one entry of its text"
        parts.append(f"namespace emitted_{number} {{\n{text}}}\n")
    return "".join(parts)


def ptx_of(source: str, arch: str = ARCH) -> str:
    """What NVRTC makes of CUDA C with the options of fusec.runtime.cuda.nvrtc. arch: ``compute_90``."""
    from fusec.runtime.cuda import nvrtc  # needs the extra fusec[cuda]

    image = nvrtc.compile_text(source, "emitted", nvrtc.Goal(arch, "ptx"))
    return image.code.decode().rstrip("\0")


class CudaInPtx:
    """Kernels compiled by NVRTC for an architecture such as ``compute_75``.

    folder: keeps the CUDA C and the PTX, for whoever studies a fault. approximate: the text may use instructions that
    strict code must not (fp="fast"); they are computed more accurately than on a device.
    """

    def __init__(
        self, kernels: Sequence[Kernel], folder: Path | None = None, arch: str = ARCH, approximate: bool = False
    ) -> None:
        self.kernels = list(kernels)
        source = translation_unit(kernels)
        text = ptx_of(source, arch)
        if folder is not None:
            (folder / "unit.cu").write_text(source)
            (folder / f"unit_{arch}.ptx").write_text(text)
        self.module = ptx.load(text, approximate)

    def run(
        self,
        number: int,
        program: Program,
        arrays: Mapping[str, np.ndarray],
        scalars: Mapping[str, object],
        shape: tuple[int, ...],
        order: int = 0,
        blocks: int = 3,
        threads: int | None = None,
        together: int | None = None,
        shared: int = 0,
    ) -> dict[str, np.ndarray]:
        """Launch one kernel on copies of the arrays and return the copies.

        order: 0 first to last, 1 last to first, 2 shuffled. threads: of a block; by default so many that each takes
        one or two steps of the grid-stride loop. together, shared: as ptx.launch.
        """
        kernel = self.kernels[number]
        entry = f"kernel_{number}"
        memory = ptx.memory_of(self.module, entry, list(arrays.values()), kernel.layout.aligned)
        buffers = dict(zip(arrays, memory.buffers, strict=True))
        given = encode(kernel, program, buffers, scalars, shape)
        if threads is None:
            steps = -(-prod(shape) // kernel.lanes)
            threads = min(256, max(32, kernel.group, -(-steps * 3 // (5 * blocks * 32)) * 32))
        ptx.run(self.module, entry, blocks, threads, given, memory, shared, ORDERS[order], together)
        return {name: buffer.array for name, buffer in buffers.items()}


def run(
    kernel: Kernel,
    program: Program,
    arrays: Mapping[str, np.ndarray],
    scalars: Mapping[str, object],
    shape: tuple[int, ...],
    order: int = 0,
    arch: str = ARCH,
) -> dict[str, np.ndarray]:
    """Compile and launch one kernel, as CudaInPtx.run; kernels that belong together are faster in one CudaInPtx."""
    return CudaInPtx([kernel], arch=arch).run(0, program, arrays, scalars, shape, order)
