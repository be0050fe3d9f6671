"""Products of matrices by cuBLAS, called by pointer, stream and workspace.

Two of its functions do all: products of one pair of matrices and of several pairs, for all floats and complex numbers.
They run on a vector as cuBLAS's own products with vectors do. Sizes are 64 bits wide. A `Gemm` keeps all arguments but
the pointers as C values, so that a call converts three numbers.

Note [Bits of products]: float32 is multiplied as float32, never as TF32; totals of float16 and bfloat16 are float32.
The order of additions is cuBLAS's own: it may differ between its versions and between devices. Each call works in
memory that it is given, so that it does not depend on what other streams do meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_int, c_int64, c_size_t, c_void_p
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fusec.base import dtypes
from fusec.base.dtypes import DType
from fusec.errors.targets import ProductFailed
from fusec.runtime.cuda import driver
from fusec.runtime.cuda.libraries import math_library

# cuBLAS API reference, sections "cuBLAS Datatypes Reference" and "CUDA Datatypes Reference".
_REAL = {dtypes.FLOAT16: 2, dtypes.BFLOAT16: 14, dtypes.FLOAT32: 0, dtypes.FLOAT64: 1}  # CUDA_R_16F, ...
_KINDS = {**_REAL, dtypes.COMPLEX64: 4, dtypes.COMPLEX128: 5}  # cudaDataType
_COMPUTE_32F, _COMPUTE_64F = 68, 70  # cublasComputeType_t
_DEFAULT_MATH, _WHOLE_TOTALS = 0, 16  # cublasMath_t; the latter: no totals in the narrow type of the operands
_DEFAULT_ALGORITHM = -1
_PLAIN, _TRANSPOSED = c_int(0), c_int(1)

WORKSPACE_BYTES = {True: 32 << 20, False: 4 << 20}  # as cuBLAS's guide recommends: from sm_90 on, and before
ROWS = frozenset(_KINDS)
"""The dtypes of products."""


class Matrix(NamedTuple):
    """How cuBLAS, which counts down columns, reads an operand: as it lies or transposed. leading: elements from one
    column to the next; step: from one matrix of several to the next.
    """

    is_transposed: bool
    leading: int
    step: int


class Sizes(NamedTuple):
    """The rows and columns of a result, how many products each element adds up, and how many pairs of matrices."""

    rows: int
    columns: int
    inner: int
    count: int


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

    def __init__(self, sizes: Sizes, matrices: tuple[Matrix, Matrix, Matrix], operand: DType, result: DType) -> None:
        a, b, c = matrices
        assert not c.is_transposed, "results are as cuBLAS lays them out"
        self.sizes = sizes
        one, zero, compute = _factors(dtypes.compute_type(result))
        self._head = (
            *(_TRANSPOSED if each.is_transposed else _PLAIN for each in (a, b)),
            c_int64(sizes.rows), c_int64(sizes.columns), c_int64(sizes.inner), one,
        )  # fmt: skip
        several = sizes.count > 1
        first, second, third = (
            (c_int(_KINDS[row]), c_int64(each.leading), *((c_int64(each.step),) if several else ()))
            for each, row in ((a, operand), (b, operand), (c, result))
        )
        self._a, self._b = first, (*second, zero)
        self._c = (*third, *((c_int64(sizes.count),) if several else ()), compute, c_int(_DEFAULT_ALGORITHM))
        entries = library()
        self._call = entries.cublasGemmStridedBatchedEx_64 if several else entries.cublasGemmEx_64

    def __call__(self, handle: c_void_p, a: int, b: int, c: int) -> None:
        """Enqueue it. a, b, c: addresses of the first operand, the second, and the result. Raises ProductFailed."""
        status = self._call(
            handle, *self._head, c_void_p(a), *self._a, c_void_p(b), *self._b, c_void_p(c), *self._c
        )  # fmt: skip
        if status:
            _check(status, f"multiply matrices ({self.sizes.rows}, {self.sizes.inner}, {self.sizes.columns})")


@cache
def _factors(row: DType) -> tuple[c_void_p, c_void_p, c_int]:
    """Addresses of 1 and 0 of a dtype, and what cuBLAS calls computing in it."""
    pair = _kept[row] = np.array([1, 0], row.numpy)
    start, is_wide = pair.ctypes.data, row in (dtypes.FLOAT64, dtypes.COMPLEX128)
    return c_void_p(start), c_void_p(start + row.nbytes), c_int(_COMPUTE_64F if is_wide else _COMPUTE_32F)


_kept: dict[DType, Any] = {}  # memory of factors


def _check(status: int, what: str) -> None:
    if status:
        name = library().cublasGetStatusName(c_int(status)) or b"CUBLAS_STATUS_UNKNOWN"
        raise ProductFailed(what, name.decode()).at()


# --- handles ---------------------------------------------------------------------------------------------------------


class Handle:
    """cuBLAS's state for one device: one thread at a time uses it."""

    def __init__(self, device: int) -> None:
        self.pointer = c_void_p()
        with driver.on_device(device):
            _check(library().cublasCreate_v2(byref(self.pointer)), f"start on device {device}")
            _check(library().cublasSetMathMode(self.pointer, c_int(_DEFAULT_MATH | _WHOLE_TOTALS)), "keep to float32")
        self._nbytes = c_size_t(workspace_bytes(device))
        self._set: tuple[int, int] | None = None  # stream and workspace
        self._stream: int | None = None

    def on(self, stream: int, workspace: int) -> c_void_p:
        """The handle, whose next calls go to a stream and work in memory at an address. Raises ProductFailed."""
        if self._set != (stream, workspace):
            self._set = None
            if self._stream != stream:
                _check(library().cublasSetStream_v2(self.pointer, c_void_p(stream)), "use a stream")
                self._stream = stream
            _check(library().cublasSetWorkspace_v2(self.pointer, c_void_p(workspace), self._nbytes), "use memory")
            self._set = stream, workspace
        return self.pointer


class _Lease:
    """A handle while one thread has it; others take it when that thread has ended."""

    def __init__(self, device: int) -> None:
        self.device = device
        try:
            self.handle = _spare.setdefault(device, []).pop()
        except IndexError:
            self.handle = Handle(device)

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            _spare[self.device].append(self.handle)


_spare: dict[int, list[Handle]] = {}
_leases = threading.local()


def multiply(calls: Sequence[tuple[Gemm, int, int, int]], device: int, stream: int, workspace: int) -> None:
    """Enqueue products on a stream of a device. calls: each with its addresses. workspace: address of memory, of
    `workspace_bytes`. Raises ProductFailed.
    """
    if not driver.is_current(device):
        with driver.on_device(device):
            _multiply(calls, device, stream, workspace)
    else:
        _multiply(calls, device, stream, workspace)


def _multiply(calls: Sequence[tuple[Gemm, int, int, int]], device: int, stream: int, workspace: int) -> None:
    known = _leases.__dict__
    lease = known.get(device)
    if lease is None:
        lease = known[device] = _Lease(device)
    handle = lease.handle.on(stream, workspace)
    for gemm, a, b, c in calls:
        gemm(handle, a, b, c)
