"""NVIDIA's Python packages, imported at their first use; a missing one becomes an error with a hint."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from types import ModuleType

from fusec.errors.targets import CudaExtraMissing, CudaMathMissing, NvrtcMissing


def _imported(module: str, package: str) -> ModuleType:
    try:
        return import_module(module)
    except ImportError as reason:
        raise CudaExtraMissing(package, str(reason)).at() from reason


@cache
def driver_api() -> ModuleType:
    """``cuda.bindings.driver``, the calls of libcuda; the first call of an entry loads libcuda itself.

    Raises CudaExtraMissing.
    """
    return _imported("cuda.bindings.driver", "cuda-bindings")


def bindings_version() -> str:
    """The version of cuda-bindings, which stands for that of the toolkit: NVRTC reports its own only once loaded."""
    driver_api()
    return str(import_module("cuda.bindings").__version__)


@cache
def cuda_core() -> ModuleType:
    """``cuda.core``, for streams, memory pools and DLPack. Raises CudaExtraMissing."""
    _imported("cuda.core.utils", "cuda-core")
    return _imported("cuda.core", "cuda-core")


@cache
def nvrtc_api() -> ModuleType:
    """``cuda.bindings.nvrtc`` with its library loaded. Raises CudaExtraMissing, NvrtcMissing."""
    nvrtc = _imported("cuda.bindings.nvrtc", "cuda-bindings")
    try:
        nvrtc.nvrtcVersion()
    except RuntimeError as reason:
        raise NvrtcMissing(str(reason)).at() from reason
    return nvrtc


@cache
def math_library(name: str) -> ctypes.CDLL:
    """A library of CUDA's for mathematics, such as "cublas": the one that this process has loaded already, else that of
    NVIDIA's wheels, of conda, of the system, or of CUDA_PATH, as `cuda.pathfinder` finds it.

    Raises CudaMathMissing, CudaExtraMissing.
    """
    pathfinder = _imported("cuda.pathfinder", "cuda-pathfinder")
    try:
        return ctypes.CDLL(pathfinder.load_nvidia_dynamic_lib(name).abs_path)
    except (RuntimeError, OSError) as reason:
        raise CudaMathMissing(name, str(reason).strip().split("\n")[0]).at() from reason
