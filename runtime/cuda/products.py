"""Products of matrices by cuBLAS, called by pointer, on a stream, in memory that it is given.

Two of its functions do all: products of one pair of matrices and of several pairs, for all floats and complex numbers.
They run on a vector as cuBLAS's own products with vectors do. Sizes are 64 bits wide. A `Gemm` keeps all arguments but
the pointers as C values, so that a call converts three numbers.

Note [Bits of products]: float32 is multiplied as float32, never as TF32; totals of float16 and bfloat16 are float32.
The order of additions is cuBLAS's own: it may differ between its versions and between devices. Each stream
has memory of its own to work in, so that a product does not depend on what other streams do meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_int, c_int64, c_size_t, c_void_p
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fusec.base import dtypes, locks
from fusec.base.dtypes import DType
from fusec.base.matrices import Matrix, ProductSizes
from fusec.errors.targets import CudaMathRefused
from fusec.runtime.cuda import driver
from fusec.runtime.cuda.handles import Handles
from fusec.runtime.cuda.libraries import math_library
from fusec.runtime.cuda.memory import CudaArray, empty
from fusec.runtime.cuda.streams import PER_THREAD, is_captured

# cuBLAS API reference, sections "cuBLAS Datatypes Reference" and "CUDA Datatypes Reference".
_REAL = {dtypes.FLOAT16: 2, dtypes.BFLOAT16: 14, dtypes.FLOAT32: 0, dtypes.FLOAT64: 1}  # CUDA_R_16F, ...
DATA_TYPES = {**_REAL, dtypes.COMPLEX64: 4, dtypes.COMPLEX128: 5}  # cudaDataType
_COMPUTE_32F, _COMPUTE_64F = 68, 70  # cublasComputeType_t
_DEFAULT_MATH, _WHOLE_TOTALS = 0, 16  # cublasMath_t; the latter: no totals in the narrow type of the operands
_DEFAULT_ALGORITHM = -1
_PLAIN, _TRANSPOSED = c_int(0), c_int(1)

WORKSPACE_BYTES = {True: 32 << 20, False: 4 << 20}  # as cuBLAS's guide recommends: from sm_90 on, and before
MOST_WORKSPACES = 16  # streams that keep memory for cuBLAS
ROWS = frozenset(DATA_TYPES)
"""The dtypes of products."""


@cache
def library() -> Any:
    """CuBLAS. Raises CudaMathMissing, CudaExtraMissing."""
    found = math_library("cublas")
    found.cublasGetStatusName.restype = c_char_p
    return found


def takes(operand: DType, result: DType) -> bool:
    """Whether cuBLAS multiplies operands of a dtype to a result of another."""
    narrow = (dtypes.FLOAT16, dtypes.BFLOAT16)
    return result in ROWS and (operand == result or (operand in narrow and result == dtypes.FLOAT32))


def workspace_bytes(device: int) -> int:
    """The bytes of memory that calls on a device are given to work in."""
    return WORKSPACE_BYTES[int(driver.device(device).arch.removeprefix("sm_").rstrip("af")) >= 90]


class Gemm:
    """A product of matrices, or of several pairs of them, but for its pointers."""

    def __init__(
        self, sizes: ProductSizes, matrices: tuple[Matrix, Matrix, Matrix], operand: DType, result: DType
    ) -> None:
        a, b, c = matrices
        assert not c.is_transposed, "results are as cuBLAS lays them out"
        self.sizes = sizes
        one, zero, compute = _factors(dtypes.compute_type(result))
        self._head = (
            *(_TRANSPOSED if each.is_transposed else _PLAIN for each in (a, b)),
            c_int64(sizes.rows), c_int64(sizes.columns), c_int64(sizes.inner), one,
        )  # fmt: skip
        several = sizes.pairs > 1
        first, second, third = (
            (c_int(DATA_TYPES[row]), c_int64(each.leading), *((c_int64(each.step),) if several else ()))
            for each, row in ((a, operand), (b, operand), (c, result))
        )
        self._a, self._b = first, (*second, zero)
        self._c = (*third, *((c_int64(sizes.pairs),) if several else ()), compute, c_int(_DEFAULT_ALGORITHM))
        entries = library()
        self._call = entries.cublasGemmStridedBatchedEx_64 if several else entries.cublasGemmEx_64

    def __call__(self, handle: c_void_p, a: int, b: int, c: int) -> None:
        """Enqueue it. a, b, c: addresses of the first operand, the second, and the result. Raises CudaMathRefused."""
        status = self._call(
            handle, *self._head, c_void_p(a), *self._a, c_void_p(b), *self._b, c_void_p(c), *self._c
        )  # fmt: skip
        if status:
            check(status, f"multiply matrices ({self.sizes.rows}, {self.sizes.inner}, {self.sizes.columns})")


@cache
def _factors(row: DType) -> tuple[c_void_p, c_void_p, c_int]:
    """Addresses of 1 and 0 of a dtype, and what cuBLAS calls computing in it."""
    pair = _kept[row] = np.array([1, 0], row.numpy)
    start, is_wide = pair.ctypes.data, row in (dtypes.FLOAT64, dtypes.COMPLEX128)
    return c_void_p(start), c_void_p(start + row.nbytes), c_int(_COMPUTE_64F if is_wide else _COMPUTE_32F)


_kept: dict[DType, Any] = {}  # memory of factors


def check(status: int, what: str) -> None:
    """Raise CudaMathRefused unless a call was done."""
    if status:
        name = library().cublasGetStatusName(c_int(status)) or b"CUBLAS_STATUS_UNKNOWN"
        raise CudaMathRefused("cuBLAS", what, name.decode()).at()


# --- handles ---------------------------------------------------------------------------------------------------------


class Handle:
    """CuBLAS's state for one device."""

    def __init__(self, device: int) -> None:
        self.pointer = c_void_p()
        with driver.on_device(device):
            check(library().cublasCreate_v2(byref(self.pointer)), f"start on device {device}")
            check(library().cublasSetMathMode(self.pointer, c_int(_DEFAULT_MATH | _WHOLE_TOTALS)), "keep to float32")
        self._nbytes = c_size_t(workspace_bytes(device))
        self._set: tuple[int, int] | None = None  # stream, and address of the memory to work in

    def use(self, stream: int, workspace: int) -> None:
        """Have the next calls go to a stream, and work in memory at an address. Raises CudaMathRefused."""
        if self._set == (stream, workspace):
            return
        entries, known, self._set = library(), self._set, None
        if known is None or known[0] != stream:
            check(entries.cublasSetStream_v2(self.pointer, c_void_p(stream)), "use a stream")
        check(entries.cublasSetWorkspace_v2(self.pointer, c_void_p(workspace), self._nbytes), "use memory")
        self._set = stream, workspace


handles: Handles[Handle] = Handles(Handle)


def workspace(stream: int, device: int) -> CudaArray:
    """Memory in which cuBLAS works on a stream, whose kernels run one after the other. What is captured into a graph,
    which may run on any stream, has new memory. Raises DeviceMemoryExhausted.
    """
    if not is_captured(stream):
        key = (device, stream, threading.get_ident() if stream == PER_THREAD else 0)
        found = _workspaces.get(key)
        if found is not None:
            return found
        with locks.lock:
            if len(_workspaces) < MOST_WORKSPACES:
                return _workspaces.setdefault(
                    key, empty((workspace_bytes(device),), dtypes.UINT8, None, device, stream)
                )
    return empty((workspace_bytes(device),), dtypes.UINT8, None, device, stream)


_workspaces: dict[tuple[int, int, int], CudaArray] = {}  # by device, stream and thread; they are never freed


def multiply(calls: Sequence[tuple[Gemm, int, int, int]], device: int, stream: int) -> None:
    """Enqueue products on a stream of a device. calls: each with its addresses. Raises CudaMathRefused."""
    if not driver.is_current(device):
        with driver.on_device(device):
            return multiply(calls, device, stream)
    held, handle = workspace(stream, device), handles.of(device)
    handle.use(stream, held.pointer)
    for gemm, a, b, c in calls:
        gemm(handle.pointer, a, b, c)
    return None


class Products(NamedTuple):
    """Several products in a row."""

    gemms: tuple[Gemm, ...]

    def run(self, addresses: Sequence[int], device: int, stream: int) -> None:
        """Enqueue them. addresses: of each its first operand, the second, and the result. Raises CudaMathRefused."""
        calls = [*zip(self.gemms, addresses[::3], addresses[1::3], addresses[2::3], strict=True)]
        multiply(calls, device, stream)
