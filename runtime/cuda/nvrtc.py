"""CUDA C text to machine code by NVRTC; needs neither a driver nor a device."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any, Literal

from fusec.base.records import dataclass
from fusec.errors.targets import CudaCompileFailed, DeviceUnsupported
from fusec.runtime.cuda.libraries import nvrtc_api

# Note [Bits]: the options that keep every target's bits the same. No contraction, subnormals kept, correctly rounded
# division and square root; they are NVRTC's defaults but for the first, and are spelled out lest a default changes.
STRICT = ("--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")


@dataclass(frozen=True)
class Goal:
    """The target of a compilation. arch: ``sm_90`` gives a cubin, ``compute_120`` PTX that the driver compiles."""

    arch: str
    form: Literal["cubin", "ptx"]


@dataclass(frozen=True)
class Image:
    """Code that the driver can load, and the compiler's log (registers and spills of every kernel)."""

    code: bytes
    goal: Goal
    log: str


def version() -> tuple[int, int]:
    """Major and minor version of NVRTC. Raises CudaExtraMissing, NvrtcMissing."""
    _, major, minor = nvrtc_api().nvrtcVersion()
    return int(major), int(minor)


def supported() -> tuple[int, ...]:
    """The architectures that NVRTC can compile for, as numbers (90 for sm_90), in increasing order."""
    _, archs = nvrtc_api().nvrtcGetSupportedArchs()
    return tuple(sorted(int(arch) for arch in archs))


def goal(arch: str) -> Goal:
    """The target for a device of architecture `arch`.

    Its own machine code if NVRTC knows it, else that of the nearest older one of the same major version (a cubin runs
    on later minor versions), else PTX of the newest older one. Raises DeviceUnsupported, ValueError for a bad name.
    """
    match = re.fullmatch(r"sm_(\d+)([af]?)", arch)
    if match is None:
        raise ValueError(f"arch must look like 'sm_90', got {arch!r}")
    number, known = int(match[1]), supported()
    if number in known:
        return Goal(arch, "cubin")
    older = [candidate for candidate in known if candidate < number]
    if not older:
        text = ".".join(str(part) for part in version())
        raise DeviceUnsupported(arch, text, ", ".join(f"sm_{candidate}" for candidate in known)).at()
    if older[-1] // 10 == number // 10:
        return Goal(f"sm_{older[-1]}", "cubin")
    return Goal(f"compute_{older[-1]}", "ptx")


def options(to: Goal) -> tuple[str, ...]:
    """The options of a compilation, in NVRTC's spelling."""
    report = ("--ptxas-options=-v",) if to.form == "cubin" else ()
    return (f"--gpu-architecture={to.arch}", *STRICT, *report)


def compile_text(source: str, name: str, to: Goal) -> Image:
    """Compile CUDA C. name: the kernel's name, for messages.

    Raises CudaCompileFailed with the compiler's log; the text is kept in a file, since it is fusec that wrote it.
    """
    nvrtc = nvrtc_api()
    status, program = nvrtc.nvrtcCreateProgram(source.encode(), f"{name}.cu".encode(), 0, [], [])
    assert int(status) == 0, f"NVRTC took no program: {status}"
    try:
        arguments = [option.encode() for option in options(to)]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(arguments), arguments)
        said = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        log = said.rstrip(b"\0").decode(errors="replace")
        if int(status) != 0:
            raise CudaCompileFailed(name, to.arch, log.strip() or str(status), str(_kept(source, name))).at()
        if to.form == "cubin":
            return Image(_text(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program), to, log)
        return Image(_text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program), to, log)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _text(size_of: Any, read: Any, program: Any) -> bytes:
    """A result of a program: NVRTC tells its size, then fills a buffer of the caller's."""
    status, nbytes = size_of(program)
    assert int(status) == 0, f"NVRTC gave no size: {status}"
    # The binding writes into these bytes, which must be its own: the interpreter shares bytes of length 1.
    buffer = bytes(int(nbytes) + 1)
    (status,) = read(program, buffer)
    assert int(status) == 0, f"NVRTC gave no result: {status}"
    return buffer[: int(nbytes)]


def _kept(source: str, name: str) -> Path:
    with tempfile.NamedTemporaryFile("w", prefix=f"fusec_{name}_", suffix=".cu", delete=False) as file:
        file.write(source)
    return Path(file.name)
