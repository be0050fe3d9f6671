"""Runs emitted Metal on the CPU: many kernels in one translation unit, compiled by clang with metal_on_host.hpp."""

import ctypes
import os
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
NAMES = [f"clang++-{version}" for version in range(24, 16, -1)]  # older ones have no half on every machine
CLANG = os.environ.get("FUSEC_CLANG") or next((path for path in map(shutil.which, NAMES) if path), None)
FLAGS = (
    "-std=c++17",
    "-O1",
    "-fPIC",
    "-shared",
    "-nostdinc",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fsigned-char",
)
STRICT = ("-Wno-everything", "-Werror=implicit-function-declaration", "-Werror=double-promotion")
SANITIZED = (
    "-fsanitize=undefined,float-cast-overflow",
    "-fno-sanitize=alignment,function,vptr",
    "-fno-sanitize-recover=all",
)
BUFFERS = 31
ORDERS = (0, 1, 2)

_SIGNATURE = re.compile(r"^kernel void (\w+)\(\n(.*?)\)\n\{", re.MULTILINE | re.DOTALL)
_PARAMETER = re.compile(r"(.+?)(\w+) \[\[(\w+)(?:\((\d+)\))?\]\]")


class MetalError(AssertionError):
    """The text is not what Metal accepts."""


def _wrapper(kernel: Kernel, number: int) -> str:
    """An entry that takes buffers by index and runs every thread of a grid."""
    found = _SIGNATURE.search(kernel.source)
    assert found is not None, "a source has one kernel"
    arguments, seen = [], set()
    for line in found[2].split(",\n"):
        parsed = _PARAMETER.fullmatch(line.strip())
        assert parsed is not None, f"cannot read the parameter {line}"
        c_type, name, attribute, index = parsed[1].strip(), parsed[2], parsed[3], parsed[4]
        match attribute:
            case "buffer":
                if int(index) >= BUFFERS or index in seen:
                    raise MetalError(f"buffer({index}) of {name} is out of range or taken")
                seen.add(index)
                qualified = c_type.replace(f"{kernel.name}_arguments", f"emitted_{number}::{kernel.name}_arguments")
                pointer = qualified[:-1] + "*" if qualified.endswith("&") else qualified
                arguments.append(f"{'*' * qualified.endswith('&')}({pointer})buffers[{index}]")
            case "thread_position_in_grid":
                arguments.append("uint2{at % width, at / width}" if c_type == "uint2" else "at")
            case "threads_per_grid":
                arguments.append("uint2{width, height}")
            case _:
                raise MetalError(f"unknown attribute {attribute}")
    return f"""
extern "C" void kernel_{number}(uint width, uint height, int order, void** buffers) {{
    const uint total = width * height;
    for (uint n = 0; n < total; ++n) {{
        const uint at = order == 0 ? n : order == 1 ? total - 1 - n : (uint)(n * 7919ul % total);
        emitted_{number}::{kernel.name}({", ".join(arguments)});
    }}
}}"""


def translation_unit(kernels: Sequence[Kernel]) -> str:
    """The kernels as C++, each in a namespace of its own, with an entry ``kernel_N`` for each."""
    parts = [f'#include "{HERE / "metal_on_host.hpp"}"']
    for number, kernel in enumerate(kernels):
        text = kernel.source.replace("#include <metal_stdlib>\n", "")
        for name in re.findall(r"device complex64\* (\w+) \[\[", text):
            text = re.sub(
                rf"^( +)((?:\*?{name}\b|\*?fusec_moved\({name},).*?) = (.*);$",
                r"\1host_store(&\2, \3);",
                text,
                flags=re.M,
            )
        text = text.replace("struct complex64 { float re, im; };\n", "")
        text = re.sub(r" \[\[\w+(\(\d+\))?\]\]", "", text)
        parts.append(
            f'namespace emitted_{number} {{\n#line 1 "{kernel.name}.metal"\n{text}}}{_wrapper(kernel, number)}'
        )
    return "\n".join(parts)


class MetalOnHost:
    """Kernels compiled for the CPU. Raises MetalError where Metal would not accept the text."""

    def __init__(self, kernels: Sequence[Kernel], folder: Path, sanitized: bool = False) -> None:
        assert CLANG is not None, "clang is missing"
        self.kernels = list(kernels)
        source = folder / f"unit_{'ubsan' if sanitized else 'plain'}.cpp"
        source.write_text(translation_unit(kernels))
        library = source.with_suffix(".so")
        options = [*FLAGS, *STRICT, *(SANITIZED if sanitized else ())]
        trap = ["-fsanitize-trap=undefined,float-cast-overflow"] if sanitized else []
        command = [CLANG, *options, *trap, str(source), "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise MetalError(done.stderr[:4000])
        self._library = ctypes.CDLL(str(library))

    def run(
        self,
        number: int,
        program: Program,
        arrays: Mapping[str, np.ndarray],
        scalars: Mapping[str, object],
        shape: tuple[int, ...],
        order: int = 0,
    ) -> dict[str, np.ndarray]:
        """Dispatch one kernel on copies of the arrays, with a few threads too many, and return the copies."""
        kernel = self.kernels[number]
        guarded = {name: Guarded(array) for name, array in arrays.items()}
        encoded = encode(kernel, program, guarded, scalars, shape)
        pointers = [value for slot, value in zip(kernel.slots, encoded, strict=True) if slot.kind == "pointer"]
        packed = b""
        for slot, value in zip(kernel.slots, encoded, strict=True):
            if slot.kind != "pointer":
                unit = slot.dtype.nbytes // (2 if slot.dtype.is_complex else 1)
                packed += bytes(-len(packed) % unit) + value
        block = ctypes.create_string_buffer(packed, (len(packed) + 7) // 8 * 8)
        addresses = [int.from_bytes(value, "little") for value in pointers]
        buffers = (ctypes.c_void_p * (len(addresses) + 1))(*addresses, ctypes.addressof(block))
        size = int(np.prod(shape, dtype=np.int64))
        width = 7 if kernel.layout.wide else size + 3
        height = (size + 13) // 7 if kernel.layout.wide else 1
        entry = getattr(self._library, f"kernel_{number}")
        in_child(lambda: entry(ctypes.c_uint(width), ctypes.c_uint(height), ctypes.c_int(order), buffers))
        return {name: each.array for name, each in guarded.items()}
