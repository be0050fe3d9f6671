"""NVIDIA's Python packages, imported when first asked for; one that is missing becomes an error with the cure."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

from fusec.errors.targets import CudaExtraMissing, NvrtcMissing


def _imported(module: str, package: str) -> ModuleType:
    try:
        return import_module(module)
    except ImportError as reason:
        raise CudaExtraMissing(package, str(reason)).at() from reason


@cache
def driver_api() -> ModuleType:
    """``cuda.bindings.driver``, the calls of libcuda; libcuda itself is loaded by the first call of an entry.

    Raises CudaExtraMissing.
    """
    return _imported("cuda.bindings.driver", "cuda-bindings")


def bindings_version() -> str:
    """The version of cuda-bindings, which stands for that of the toolkit: NVRTC tells its own only once loaded."""
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
