"""Runs emitted CUDA C on the CPU: many kernels in one translation unit, compiled by g++ with cuda_on_host.hpp.

Element-wise kernels (`CudaOnHost`) run in a plain loop over threads. Block programs, which have barriers, shared memory
or warp functions, run as fibers under watch (`BlockPrograms`).
"""

import ctypes
import hashlib
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import fibers
import numpy as np
from arguments import encode, value_of
from fibers import GXX, Argument, Launch, Programs
from guarded import Guarded, KernelFault, in_child

from fusec.base.kernel_abi import Kernel
from fusec.ir.loops import Program

HEADER = "cuda_on_host.hpp"
COMPILED = ("-std=c++17", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", "-w", f"-I{fibers.HERE}")
FLAGS = (*COMPILED, "-shared")
OPTIMISED = ("-O1",)
VOLATILE = ("--param", "tsan-distinguish-volatile=1")  # such accesses are relaxed atomics on a device
OF_BLOCKS = (*COMPILED, *OPTIMISED, "-g1", "-gdwarf-4", "-fno-exceptions", *fibers.SANITIZED, *VOLATILE)
SANITIZED = ("-O0", "-fsanitize=undefined,float-cast-overflow", "-fno-sanitize-recover=all")
ORDERS = (0, 1, 2)  # as cuda_on_host.hpp numbers them
SHARED_LIMIT = 48 << 10  # bytes a block may have without asking the driver for more
NEEDS_BLOCKS = re.compile(r"\b(__shared__|__syncthreads\w*|__syncwarp|__\w+_sync|__threadfence|__activemask)\b")

_ENTRY = 'extern "C" __global__ void'
_ASM = (  # the only inline assembly that is emitted
    (re.compile(r'asm\("cvt\.f32\.f16 %0, %1;" : "=f"\((\w+)\) : "h"\((\w+)\)\);'), r"\1 = host::widen(\2);"),
    (
        re.compile(r'asm\("cvt\.rn\.f16\.f(?:32|64) %0, %1;" : "=h"\((\w+)\) : "[fd]"\((\w+)\)\);'),
        r"\1 = host::narrow(\2);",
    ),
)
_HEAD = re.compile(
    r'(?:extern\s+"C"\s+)?__global__\s+(?:__launch_bounds__\s*\(([^)]*)\)\s*)?void\s+'
    r"(?:__cluster_dims__\((\d+)\)\s*)?(?:__launch_bounds__\s*\(([^)]*)\)\s*)?(\w+)\s*\("
)
_ALIGN = r"(?:(?:alignas|__align__)\s*\((\w+)\)\s*)?"
_SHARED = re.compile(
    rf"{_ALIGN}(?:extern\s+)?__shared__\s+{_ALIGN}([\w\s:]+?(?:<[\w\s,]+>)?)\s*\b(\w+)\s*((?:\[[^\]]*\]\s*)*);",
    re.ASCII,
)
# What compiled device text may call: the runtime, what the compiler itself calls, and operations that are exact.
_CALLABLE = re.compile(
    r"(__start_|__stop_)?fiber_\w+|__tsan_\w+|__ubsan_\w+|mem(cpy|set|move)|_GLOBAL_OFFSET_TABLE_|__\w+([shdt]f|di|ti)\w*"
    r"|(fma|sqrt|floor|ceil|trunc|rint|nearbyint|fabs|copysign|ldexp|nextafter)f?"
)


def _in_cpp(source: str) -> str:
    for pattern, replacement in _ASM:
        source = pattern.sub(replacement, source)
    return source


def translation_unit(kernels: Sequence[Kernel] | Mapping[int, Kernel]) -> str:
    """The kernels as C++, each in a namespace of its own, with an entry ``kernel_N`` for each."""
    numbered = kernels.items() if isinstance(kernels, Mapping) else enumerate(kernels)
    parts = [f'#include "{HEADER}"']
    for number, kernel in numbered:
        assert kernel.source.count(_ENTRY) == 1, "a source has one kernel"
        text = _in_cpp(kernel.source.replace(_ENTRY, "void"))
        parts.append(f'namespace emitted_{number} {{\n#line 1 "{kernel.name}.cu"\n{text}}}')
        parts.append(
            f'extern "C" void kernel_{number}(unsigned blocks, unsigned threads, int order, void** arguments) {{\n'
            f"    host::launch(emitted_{number}::{kernel.name}, blocks, threads, order, arguments);\n}}"
        )
    return "\n".join(parts)


def block_unit(sources: Sequence[str]) -> str:
    """Texts as C++, each in a namespace of its own, with a ``blocks_NUMBER_NAME`` for every kernel in them."""
    parts = ["#define HOST_FIBERS", f'#include "{HEADER}"']
    for number, source in enumerate(sources):
        heads = list(_HEAD.finditer(source))
        spans = {found[4]: (found.start(), fibers.end_of_body(source, found.end())) for found in heads}
        prefix = f"fiber_list_{number}_"

        def variable(found: re.Match[str], spans: dict[str, tuple[int, int]] = spans, prefix: str = prefix) -> str:
            kind, name, extents = found[3], found[4], re.sub(r"\s", "", found[5])
            assert "extern" not in found[0] or "alignas" not in found[0], (
                "CUDA aligns extern variables by __align__ only"
            )
            owner = next((entry for entry, (start, end) in spans.items() if start < found.start() < end), "")
            lines = "\n" * found[0].count("\n")
            return fibers.placed(name, kind, extents, found[1] or found[2] or "1", prefix + owner) + lines

        text = _in_cpp(_SHARED.sub(variable, source))
        assert "__shared__" not in fibers.blanked(text), "cannot read __shared__; declare one variable at a time"
        text = re.sub(r'extern\s+"C"\s+(?=__global__)', "", text)
        text = re.sub(r"^[ \t]*#[ \t]*include\b", "//", text, flags=re.MULTILINE)
        name = next(iter(spans), "device")
        parts.append(f'namespace emitted_{number} {{\n#line 1 "{name}.cu"\n{text}\n}}')
        for head in heads:
            body = f"[](void** arguments) {{ host::call(emitted_{number}::{head[4]}, arguments); }}"
            cluster = int(head[2] or 1)
            parts.append(fibers.entry(f"blocks_{number}_{head[4]}", body, prefix + head[4], prefix, cluster))
    return "\n".join(parts)


def _refuse_foreign_calls(compiled: Path, sources: Sequence[str]) -> None:
    listed = subprocess.run(["nm", "-u", "-C", str(compiled)], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        name = line.split(maxsplit=1)[1]
        if _CALLABLE.fullmatch(name):
            continue
        plain = re.sub(r"\(.*", "", name)
        places = [
            f"{_HEAD.search(source)[4]}.cu:{source[: found.start()].count(chr(10)) + 1}"  # type: ignore[index]
            for source in sources
            for found in re.finditer(rf"\b{re.escape(plain)}\b", source)
        ]
        raise KernelFault(f"forbidden function: the text calls {name} at {', '.join(places) or 'an unknown place'}")


def parsed(folder: Path, flags: Sequence[str]) -> list[str]:
    """Options with which g++ uses a precompiled header for these texts, for the same flags.

    Processes that share a folder compile the header once.
    """
    assert GXX is not None, "g++ is missing"
    out = folder / f"{HEADER}.gch" / hashlib.sha256(" ".join(flags).encode()).hexdigest()[:16]
    if not out.exists():
        out.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as made:
            command = [GXX, *flags, "-x", "c++-header", str(fibers.HERE / HEADER), "-o", f"{made}/parsed"]
            subprocess.run(command, check=True)
            Path(made, "parsed").replace(out)
    return [f"-I{folder}", *flags]


def compile_blocks(
    sources: Sequence[str], library: Path, runtime: Path, more: str = "", flags: Sequence[str] = OF_BLOCKS
) -> None:
    """Compile block programs, and more text after them; KernelFault for calls of functions that device text has not."""
    assert GXX is not None, "g++ is missing"
    text, compiled = library.with_suffix(".cpp"), library.with_suffix(".o")
    text.write_text(f"{block_unit(sources)}\n{more}\n")
    command = [GXX, *flags, "-c", str(text), "-o", str(compiled)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    _refuse_foreign_calls(compiled, sources)
    fibers.link(GXX, compiled, library, runtime)


def thread_bounds(source: str) -> dict[str, int]:
    """The most threads a block of each entry may have."""
    return {found[4]: int((found[1] or found[3] or "1024").split(",")[0]) for found in _HEAD.finditer(source)}


class BlockPrograms(Programs):
    """CUDA texts with block programs, compiled together for the CPU.

    shared_limit: bytes of shared memory that a block may have.
    Raises KernelFault if the text calls a function that it must not, AssertionError if it does not compile.
    """

    def __init__(self, sources: Sequence[str], folder: Path, shared_limit: int = SHARED_LIMIT) -> None:
        self._bounds = [thread_bounds(source) for source in sources]
        library = folder / "blocks.so"
        compile_blocks(sources, library, fibers.runtime())
        super().__init__(library, [list(each) for each in self._bounds], shared_limit)

    def _call(self, launch: Launch, guarded: Mapping[str, Guarded], order: int, poison: int) -> Callable[[], None]:
        bound, (x, y, z) = self._bounds[self.unit_of(launch)][launch.entry], fibers.three(launch.block)
        if bound < x * y * z <= 1024:
            raise KernelFault(f"{launch.entry}: a block of {x * y * z} threads exceeds __launch_bounds__({bound})")
        return super()._call(launch, guarded, order, poison)

    def encoded(self, value: Argument, guarded: Mapping[str, Guarded]) -> tuple[int, object]:
        match value:
            case str():
                return fibers.stored(guarded[value].address.to_bytes(8, "little"))
            case bytes():
                return fibers.stored(value)
            case _:
                return fibers.stored(value.tobytes())


def block_args(
    kernel: Kernel,
    program: Program,
    arrays: Mapping[str, np.ndarray],
    scalars: Mapping[str, object],
    shape: tuple[int, ...],
) -> list[Argument]:
    """The args of a `Launch` of an emitted kernel: names of arrays for its pointers, else the bytes of values."""
    held = {name: SimpleNamespace(array=array) for name, array in arrays.items()}
    return [
        slot.param if slot.kind == "pointer" else value_of(slot, held, scalars, shape, program) for slot in kernel.slots
    ]


class CudaOnHost:
    """Kernels compiled for the CPU. sanitized: undefined behaviour ends the run.

    Those whose text has barriers, shared memory or warp functions are block programs, and always watched.
    """

    def __init__(self, kernels: Sequence[Kernel], folder: Path, sanitized: bool = False) -> None:
        assert GXX is not None, "g++ is missing"
        self.kernels = list(kernels)
        numbers = [number for number, kernel in enumerate(kernels) if NEEDS_BLOCKS.search(kernel.source)]
        self._units = {number: unit for unit, number in enumerate(numbers)}
        self._blocks = BlockPrograms([kernels[number].source for number in numbers], folder) if numbers else None
        source = folder / f"unit_{'ubsan' if sanitized else 'plain'}.cpp"
        plain = {number: kernel for number, kernel in enumerate(kernels) if number not in self._units}
        source.write_text(translation_unit(plain))
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
        shared: int = 0,
    ) -> dict[str, np.ndarray]:
        """Launch one kernel on copies of the arrays and return the copies. shared: bytes of dynamic shared memory."""
        kernel = self.kernels[number]
        if self._blocks is not None and number in self._units:
            args = block_args(kernel, program, arrays, scalars, shape)
            launch = Launch(kernel.name, blocks, max(threads, kernel.group), args, shared, self._units[number])
            return self._blocks.run(launch, arrays, [order])
        aligned = kernel.layout.aligned if kernel.layout.ragged else 16
        guarded = {name: Guarded(array, aligned=aligned) for name, array in arrays.items()}
        values = [
            ctypes.create_string_buffer(each, len(each)) for each in encode(kernel, program, guarded, scalars, shape)
        ]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        entry = getattr(self._library, f"kernel_{number}")
        in_child(lambda: entry(ctypes.c_uint(blocks), ctypes.c_uint(threads), ctypes.c_int(order), pointers))
        return {name: each.array for name, each in guarded.items()}
