"""A kernel compiled for CUDA: text to image by NVRTC, image to function through the driver."""

from __future__ import annotations

from typing import Any

from fusec.base import locks
from fusec.base.kernel_abi import Kernel
from fusec.base.records import dataclass, field
from fusec.environment import debug
from fusec.errors.targets import CudaCallFailed, DriverTooOld
from fusec.runtime.cuda import driver, nvrtc
from fusec.runtime.cuda.libraries import driver_api
from fusec.runtime.cuda.nvrtc import Goal, Image

MAX_GRID = (1 << 31) - 1  # blocks along x
_MAX_THREADS_PER_BLOCK = 0  # CUfunction_attribute


@dataclass(frozen=True)
class LoadedKernel:
    """A kernel in the driver: its handle as the CUfunction that launches take, its thread limit by device, and how many
    blocks of a size run at once.
    """

    function: Any
    handle: Any
    limits: dict[int, int] = field(default_factory=dict)
    at_once: dict[tuple[int, int], int] = field(default_factory=dict)


class CompiledModule:
    """A compiled kernel; the driver loads it at the first launch, for all devices, until the process ends.

    image: the machine code, or PTX. kernel: what it was made from.
    """

    def __init__(self, kernel: Kernel, image: Image) -> None:
        self.kernel = kernel
        self.image = image
        self._loaded: LoadedKernel | None = None

    def load(self) -> LoadedKernel:
        """The kernel in the driver. Raises NoCudaDriver, NoCudaDevice, DriverTooOld, CudaCallFailed."""
        if self._loaded is None:
            driver.initialise()
            with locks.lock:
                if self._loaded is None:
                    self._loaded = _load(self.kernel.name, self.image)
        return self._loaded

    def threads_per_block(self, device: int) -> int:
        """The most threads that a block of this kernel may have on a device: below 1024 if it needs many registers."""
        loaded = self.load()
        limit = loaded.limits.get(device)
        if limit is None:
            api = driver_api()
            kind = api.CUfunction_attribute(_MAX_THREADS_PER_BLOCK)
            limit = int(driver.check(api.cuKernelGetAttribute(kind, loaded.handle, device), "query a kernel"))
            loaded.limits[device] = limit
        return limit

    def blocks_at_once(self, device: int, block: int) -> int:
        """Of a kernel whose blocks have work before and after their elements: how many run on a device at a time."""
        if not self.kernel.share:
            return MAX_GRID
        loaded = self.load()
        found = loaded.at_once.get((device, block))
        if found is None:
            with driver.on_device(device):
                api = driver_api()
                each = api.cuOccupancyMaxActiveBlocksPerMultiprocessor(loaded.function, block, 0)
            found = driver.device(device).multiprocessors * max(1, int(driver.check(each, "query a kernel")))
            loaded.at_once[device, block] = found
        return found

    def packed(self) -> bytes:
        """The image as bytes, for `unpacked`."""
        goal = self.image.goal
        return f"{goal.form} {goal.arch}\n".encode() + self.image.code

    @staticmethod
    def unpacked(kernel: Kernel, data: bytes) -> CompiledModule:
        """The module of a kernel whose image was `packed`; needs no NVRTC, which takes long to load."""
        head, _, code = data.partition(b"\n")
        form, arch = head.decode().split()
        return CompiledModule(kernel, Image(code, Goal(arch, "cubin" if form == "cubin" else "ptx"), ""))

    def __repr__(self) -> str:
        return f"<Module {self.kernel.name} {self.image.goal.arch} {self.image.goal.form}>"


def compile(kernel: Kernel, arch: str | None = None) -> CompiledModule:  # noqa: A001 - a stage
    """Compile a kernel for an architecture, e.g. ``"sm_90"``; without one, for the current device.

    Needs a driver only if `arch` is None. Raises CudaCompileFailed (a bug of fusec), DeviceUnsupported, NvrtcMissing,
    CudaExtraMissing, and without `arch` NoCudaDriver and NoCudaDevice.
    """
    assert kernel.target == "cuda", f"kernel {kernel.name} was generated for {kernel.target}"
    goal = nvrtc.goal(arch or driver.device(driver.current_ordinal()).arch)
    image = nvrtc.compile_text(kernel.source, kernel.name, goal)
    debug.show(5, f"{kernel.name} {kernel.digest[:12]} for {goal.arch}: NVRTC says", image.log.strip())
    if debug.is_wanted(6) and goal.form == "cubin":
        ptx = nvrtc.compile_text(kernel.source, kernel.name, Goal(goal.arch.replace("sm_", "compute_"), "ptx"))
        debug.show(6, f"{kernel.name} {kernel.digest[:12]} PTX", ptx.code.rstrip(b"\0").decode())
    return CompiledModule(kernel, image)


def _load(name: str, image: Image) -> LoadedKernel:
    api = driver_api()
    code = image.code if image.goal.form == "cubin" else image.code.rstrip(b"\0") + b"\0"
    try:
        library = driver.check(api.cuLibraryLoadData(code, [], [], 0, [], [], 0), f"load kernel '{name}'")
    except CudaCallFailed.exception as reason:
        has = int(driver.check(api.cuDriverGetVersion(), "tell its version"))
        needs = nvrtc.version()
        if has // 1000 < needs[0]:
            raise DriverTooOld(f"{has // 1000}.{has % 1000 // 10}", f"{needs[0]}.{needs[1]}").at() from reason
        raise
    handle = driver.check(api.cuLibraryGetKernel(library, name.encode()), f"find kernel '{name}' in its image")
    return LoadedKernel(api.CUfunction(int(handle)), handle)
