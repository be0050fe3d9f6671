"""Runs emitted CUDA C on the CPU: many kernels in one translation unit, compiled by g++ with cuda_on_host.hpp."""

import ctypes
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from arguments import encode
from guarded import Guarded, in_child

from fusec.ir.loops import Program
from fusec.kernel import Kernel

HERE = Path(__file__).parent
GXX = shutil.which("g++")
FLAGS = ("-std=c++17", "-fPIC", "-shared", "-ffp-contract=off", "-fno-strict-aliasing", "-w")
OPTIMISED = ("-O1",)
SANITIZED = ("-O0", "-fsanitize=undefined,float-cast-overflow", "-fno-sanitize-recover=all")
ORDERS = (0, 1, 2)  # as cuda_on_host.hpp numbers them

_ENTRY = 'extern "C" __global__ void'
_ASM = (  # the only inline assembly that is emitted
    (re.compile(r'asm\("cvt\.f32\.f16 %0, %1;" : "=f"\((\w+)\) : "h"\((\w+)\)\);'), r"\1 = host::widen(\2);"),
    (
        re.compile(r'asm\("cvt\.rn\.f16\.f(?:32|64) %0, %1;" : "=h"\((\w+)\) : "[fd]"\((\w+)\)\);'),
        r"\1 = host::narrow(\2);",
    ),
)


def translation_unit(kernels: Sequence[Kernel]) -> str:
    """The kernels as C++, each in a namespace of its own, with an entry ``kernel_N`` for each."""
    parts = [f'#include "{HERE / "cuda_on_host.hpp"}"']
    for number, kernel in enumerate(kernels):
        assert kernel.source.count(_ENTRY) == 1, "a source has one kernel"
        text = kernel.source.replace(_ENTRY, "void")
        for pattern, replacement in _ASM:
            text = pattern.sub(replacement, text)
        parts.append(f'namespace emitted_{number} {{\n#line 1 "{kernel.name}.cu"\n{text}}}')
        parts.append(
            f'extern "C" void kernel_{number}(unsigned blocks, unsigned threads, int order, void** arguments) {{\n'
            f"    host::launch(emitted_{number}::{kernel.name}, blocks, threads, order, arguments);\n}}"
        )
    return "\n".join(parts)


class CudaOnHost:
    """Kernels compiled for the CPU. sanitized: undefined behaviour ends the run."""

    def __init__(self, kernels: Sequence[Kernel], folder: Path, sanitized: bool = False) -> None:
        assert GXX is not None, "g++ is missing"
        self.kernels = list(kernels)
        source = folder / f"unit_{'ubsan' if sanitized else 'plain'}.cpp"
        source.write_text(translation_unit(kernels))
        library = source.with_suffix(".so")
        command = [GXX, *FLAGS, *(SANITIZED if sanitized else OPTIMISED), str(source), "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:4000]
        self._library = ctypes.CDLL(str(library))

    def run(
        self,
        number: int,
        program: Program,
        arrays: Mapping[str, np.ndarray],
        scalars: Mapping[str, object],
        shape: tuple[int, ...],
        order: int = 0,
        blocks: int = 3,
        threads: int = 32,
    ) -> dict[str, np.ndarray]:
        """Launch one kernel on copies of the arrays and return the copies."""
        kernel = self.kernels[number]
        guarded = {name: Guarded(array) for name, array in arrays.items()}
        values = [
            ctypes.create_string_buffer(each, len(each)) for each in encode(kernel, program, guarded, scalars, shape)
        ]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        entry = getattr(self._library, f"kernel_{number}")
        in_child(lambda: entry(ctypes.c_uint(blocks), ctypes.c_uint(threads), ctypes.c_int(order), pointers))
        return {name: each.array for name, each in guarded.items()}
