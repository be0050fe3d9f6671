"""Builds the stand-in driver, and shared objects that it runs in place of cubins."""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fusec.base.kernel_abi import Kernel, Layout

HERE = Path(__file__).parent
_BLOCK_ENTRY = """
extern "C" const char* {name}__blocks(HOST_BLOCKS) {{
    return blocks_0_{name}(grid, block, dynamic, limit, order, poison, arguments);
}}
extern "C" unsigned long {name}__shared() {{ return blocks_0_{name}_shared(); }}
extern "C" const int {name}__threads = {bound};
"""


MATHEMATICS = {
    "libcublasLt.so.13": "stub_cublas.c",  # the stand-in has all of both
    "libnvJitLink.so.13": "stub_cublas.c",  # cuSOLVER is loaded behind these; nobody calls them
    "libcusparse.so.12": "stub_cublas.c",
    "libcufft.so.12": "stub_cufft.c",
    "libcusolver.so.12": "stub_cusolver.c",
    "libcublas.so.13": "stub_cublas.c",
}
_GCC = ("gcc", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror")


def build_driver(folder: Path) -> Path:
    """Compile libcuda.so.1 and other libraries into a folder, to be put first on LD_LIBRARY_PATH of a subprocess."""
    out = folder / "libcuda.so.1"
    named = ["-Wl,-soname,libcuda.so.1", "-ldl", "-lpthread"]
    subprocess.run([*_GCC, str(HERE / "stub_driver.c"), "-o", str(out), *named], check=True)
    for name, source in MATHEMATICS.items():
        named = [f"-Wl,-soname,{name}", f"-L{folder}", "-l:libcuda.so.1", "-lm"]
        subprocess.run([*_GCC, str(HERE / source), "-o", str(folder / name), *named], check=True)
    return out


def load_mathematics(folder: Path) -> ctypes.CDLL:
    """The stand-in for cuBLAS, which this process then finds before a real one, as it does those for others."""
    return [ctypes.CDLL(str(folder / name)) for name in MATHEMATICS][-1]


def environment(folder: Path, **settings: str) -> dict[str, str]:
    """The environment of a subprocess that finds the stand-in of `folder` as its driver."""
    env = {**os.environ, "LD_LIBRARY_PATH": f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    return {**env, "FUSEC_STUB_KERNELS": str(folder), "FUSEC_CACHE": "0", **settings}


def image_hash(image: bytes) -> str:
    """The FNV-1a hash by which the stand-in knows an image."""
    found = 0xCBF29CE484222325
    for byte in image:
        found = ((found ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{found:016x}"


def host_twin(image: bytes, source: str, name: str) -> None:
    """Compile a simple kernel's CUDA text for the host, where the stand-in finds it when it is given `image`."""
    _compile(image, f'#include "{HERE / "host_kernel.hpp"}"\n{source}\nHOST_ENTRY({name})\n')


def emitted_twin(image: bytes, kernel: Kernel) -> bytes:
    """The same for a kernel that fusec emitted, by the executor that tests/host checks emitted text with.

    Returns the image to load instead, marked as that of this text: a load of bool and one of int8, say, may be the
    same machine code, but not the same C++.
    """
    from cuda_on_host import NEEDS_BLOCKS, translation_unit  # a module of tests/host

    marked = image + b"TWIN:" + kernel.digest.encode()
    if NEEDS_BLOCKS.search(kernel.source):
        block_twin(marked, kernel.source)
        return marked
    entry = "const unsigned *grid, const unsigned *block, unsigned, void **params"
    flat = "if (grid[1] * grid[2] * block[1] * block[2] != 1) __builtin_trap();"
    call = f"{flat} kernel_0(grid[0], block[0], 0, params);"
    _compile(marked, f'{translation_unit([kernel])}\nextern "C" void {kernel.name}__host({entry}) {{ {call} }}\n')
    return marked


@contextmanager
def host_twins() -> Iterator[None]:
    """A block in which every text that NVRTC compiles gets such a twin."""
    from fusec.runtime.cuda import nvrtc

    real = nvrtc.compile_text

    def compile_both(source: str, name: str, goal: nvrtc.Goal) -> nvrtc.Image:
        image = real(source, name, goal)
        return replace(image, code=emitted_twin(image.code, Kernel(name, "cuda", (), source, Layout(1))))

    load_mathematics(Path(os.environ["FUSEC_STUB_KERNELS"]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nvrtc, "compile_text", compile_both)
        yield


def block_twin(image: bytes, source: str) -> None:
    """The same for a text with barriers, shared memory, or several kernels: run as fibers under watch."""
    from cuda_on_host import OF_BLOCKS, compile_blocks, parsed, thread_bounds
    from fibers import build_runtime

    folder = Path(os.environ["FUSEC_STUB_KERNELS"])
    out = folder / f"{image_hash(image)}.so"
    entries = "".join(_BLOCK_ENTRY.format(name=name, bound=bound) for name, bound in thread_bounds(source).items())
    if not out.exists():
        flags = parsed(folder, (*OF_BLOCKS, "-DHOST_FIBERS="))
        compile_blocks([source], out, build_runtime(folder), entries, flags)


def _compile(image: bytes, text: str) -> None:
    from cuda_on_host import COMPILED, parsed

    folder = Path(os.environ["FUSEC_STUB_KERNELS"])
    out = folder / f"{image_hash(image)}.so"
    if not out.exists():
        flags = parsed(folder, (*COMPILED, "-O1", "-fwrapv"))
        subprocess.run(["g++", *flags, "-shared", "-x", "c++", "-", "-o", str(out)], input=text.encode(), check=True)
