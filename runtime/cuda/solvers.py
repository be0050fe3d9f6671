"""Linear algebra by cuSOLVER, called by pointer, on a stream, in memory that it is given.

A `SolverCall` keeps all arguments of a function but the pointers as C values, and says how much memory it works in. It
does the same to several matrices of a size: by one call where the library has a function for that, else by one after
the other. Most functions are those of the 64-bit interface; cuBLAS has those that factor many small matrices at once.

Each function leaves a number for each matrix, which is not 0 if it could not do its work. `Outcome` reads them, for
which the host waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import byref, c_byte, c_char, c_int, c_int64, c_size_t, c_void_p
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from fusec.base import dtypes
from fusec.base.dtypes import DType
from fusec.errors.targets import CudaMathRefused
from fusec.runtime.cuda import driver, products, streams
from fusec.runtime.cuda.handles import Handles
from fusec.runtime.cuda.libraries import driver_api, math_library

MAX_CALLS = 1024
MOST_OF_MANY = 128  # rows of matrices, for each of them, that one call for all factors faster than a call for each
ROWS = frozenset((dtypes.FLOAT32, dtypes.FLOAT64, dtypes.COMPLEX64, dtypes.COMPLEX128))
"""The dtypes of matrices."""

# cusolver_common.h and cublas_api.h
_LETTERS = {dtypes.FLOAT32: "S", dtypes.FLOAT64: "D", dtypes.COMPLEX64: "C", dtypes.COMPLEX128: "Z"}
_LOWER, _UPPER = c_int(0), c_int(1)  # cublasFillMode_t
_PLAIN = c_int(0)  # cublasOperation_t
_MODES = {False: c_int(0), True: c_int(1)}  # cusolverEigMode_t: without vectors, with them
_NAMES = {
    1: "NOT_INITIALIZED", 2: "ALLOC_FAILED", 3: "INVALID_VALUE", 4: "ARCH_MISMATCH", 5: "MAPPING_ERROR",
    6: "EXECUTION_FAILED", 7: "INTERNAL_ERROR", 8: "MATRIX_TYPE_NOT_SUPPORTED", 9: "NOT_SUPPORTED", 10: "ZERO_PIVOT",
    11: "INVALID_LICENSE", 31: "INVALID_WORKSPACE",
}  # fmt: skip


@cache
def library() -> Any:
    """CuSOLVER. Raises CudaMathMissing, CudaExtraMissing."""
    return math_library("cusolver")


def _check(status: int, what: str) -> None:
    if status:
        raise CudaMathRefused("cuSOLVER", what, f"CUSOLVER_STATUS_{_NAMES.get(status, status)}").at()


class _Handle:
    """CuSOLVER's state for one device."""

    def __init__(self, device: int) -> None:
        self.pointer, self.params = c_void_p(), c_void_p()
        entries = library()
        with driver.on_device(device):
            _check(entries.cusolverDnCreate(byref(self.pointer)), f"start on device {device}")
            _check(entries.cusolverDnCreateParams(byref(self.params)), "make parameters")
        self._stream: int | None = None

    def use(self, stream: int) -> None:
        """Have the next calls go to a stream. Raises CudaMathRefused."""
        if self._stream != stream:
            self._stream = None
            _check(library().cusolverDnSetStream(self.pointer, c_void_p(stream)), "use a stream")
            self._stream = stream


_handles: Handles[_Handle] = Handles(_Handle)


class Stepped(NamedTuple):
    """An argument that is an array of each matrix. step: bytes from that of one matrix to that of the next."""

    step: int
    is_asked: bool = True  # whether the function that tells the memory takes it as well


class MatrixStack(NamedTuple):
    """So many dense matrices of a dtype and a size, on a device."""

    row: DType
    rows: int
    columns: int
    several: int
    device: int


class Interface(NamedTuple):
    """How functions are called. wide: the 64-bit interface, with parameters and memory of the host; works: in memory
    that they are given; at_once: for all matrices.
    """

    wide: bool = True
    works: bool = True
    at_once: bool = False


class SolverCall:
    """A function for several matrices of a size, but for its pointers. nbytes: of the memory that it works in.

    several: how many matrices there are.
    """

    def __init__(self, name: str, arguments: Sequence[Any], stack: MatrixStack, interface: Interface) -> None:
        entries, number = library(), c_int64 if interface.wide else c_int
        self.name, self._arguments, self._interface = name, arguments, interface
        self.several = stack.several
        self._calls = 1 if interface.at_once else stack.several
        self._several = (number(stack.several),) if interface.at_once else ()
        self._call = getattr(entries, f"cusolverDn{name}")
        self._units = self._host = 0
        if interface.works:
            with driver.on_device(stack.device):
                self._units, self._host = self._asked(getattr(entries, f"cusolverDn{name}_bufferSize"), stack.device)
        self.nbytes = self._units * (1 if interface.wide else stack.row.nbytes)

    def _asked(self, query: Any, device: int) -> tuple[int, int]:
        """The memory that it works in, in bytes or elements, and that of the host."""
        handle = _handles.of(device)
        asked = [each for each in self._arguments if type(each) is not Stepped or each.is_asked]
        arguments = [c_void_p() if type(each) is Stepped else each for each in asked]
        if self._interface.wide:
            there, here = c_size_t(), c_size_t()
            status = query(
                handle.pointer, handle.params, *arguments, byref(there), byref(here), *self._several
            )  # fmt: skip
            _check(status, f"plan {self.name}")
            return there.value, here.value
        units = c_int()
        _check(query(handle.pointer, *arguments, byref(units), *self._several), f"plan {self.name}")
        return units.value, 0

    def run(self, addresses: Sequence[int], device: int, stream: int) -> None:
        """Enqueue it. addresses: of memory to work in, of a number for each matrix, and of the arrays.

        Raises CudaMathRefused.
        """
        if not driver.is_current(device):
            with driver.on_device(device):
                return self.run(addresses, device, stream)
        handle, (space, info, *arrays) = _handles.of(device), addresses
        handle.use(stream)
        wide, works, _ = self._interface
        head = (handle.pointer, handle.params) if wide else (handle.pointer,)
        room = (c_void_p(space), c_size_t(self._units) if wide else c_int(self._units)) if works else ()
        if wide and works:
            host = (c_char * self._host)() if self._host else None
            room = (*room, host, c_size_t(self._host))
        for at in range(self._calls):
            places = iter(arrays)
            given = [
                c_void_p(next(places) + at * each.step) if type(each) is Stepped else each for each in self._arguments
            ]
            _check(self._call(*head, *given, *room, c_void_p(info + 4 * at), *self._several), f"run {self.name}")
        return None


_WIDE, _WIDE_AT_ONCE, _TYPED = Interface(), Interface(at_once=True), Interface(wide=False)
_MANY_FACTORED = Interface(wide=False, works=False, at_once=True)


def is_many(size: int, count: int) -> bool:
    """Whether one call factors so many matrices faster than a call for each."""
    return count > 1 and size <= MOST_OF_MANY * count


def _type(row: DType) -> c_int:
    return c_int(products.DATA_TYPES[row])


@lru_cache(MAX_CALLS)
def cholesky(stack: MatrixStack, is_upper: bool) -> SolverCall:
    """Factors in place. Arrays: the matrices; where there `is_many`, their addresses."""
    row, size, _, count, _ = stack
    fill = _UPPER if is_upper else _LOWER
    if is_many(size, count):
        arguments = fill, c_int(size), Stepped(0), c_int(size)
        return SolverCall(f"{_LETTERS[row]}potrfBatched", arguments, stack, _MANY_FACTORED)
    kind, extent = _type(row), c_int64(size)
    wide = fill, extent, kind, Stepped(size * size * row.nbytes), extent, kind
    return SolverCall("Xpotrf", wide, stack, _WIDE)


@lru_cache(MAX_CALLS)
def lu(stack: MatrixStack) -> SolverCall:
    """Triangular factors in place. Arrays: the matrices, and int64 pivots."""
    row, size, *_ = stack
    kind, extent = _type(row), c_int64(size)
    arguments = extent, extent, kind, Stepped(size * size * row.nbytes), extent, Stepped(8 * size, False), kind
    return SolverCall("Xgetrf", arguments, stack, _WIDE)


@lru_cache(MAX_CALLS)
def solution(stack: MatrixStack, columns: int) -> SolverCall:
    """Solutions of systems in place. Arrays: what `lu` made, its pivots, and the right-hand sides."""
    row, size, *_ = stack
    kind, extent = _type(row), c_int64(size)
    first, second = Stepped(size * size * row.nbytes), Stepped(size * columns * row.nbytes)
    arguments = _PLAIN, extent, c_int64(columns), kind, first, extent, Stepped(8 * size), kind, second, extent
    return SolverCall("Xgetrs", arguments, stack, Interface(works=False))


@lru_cache(MAX_CALLS)
def reflectors(stack: MatrixStack, step: int) -> SolverCall:
    """R and Householder's vectors in place. step: elements from one matrix to the next.

    Arrays: the matrices, and the factors of the vectors.
    """
    row, rows, columns, *_ = stack
    kind, few = _type(row), min(rows, columns)
    arguments = (
        c_int64(rows), c_int64(columns), kind, Stepped(step * row.nbytes), c_int64(rows), kind,
        Stepped(few * row.nbytes), kind,
    )  # fmt: skip
    return SolverCall("Xgeqrf", arguments, stack, _WIDE)


@lru_cache(MAX_CALLS)
def orthogonal(stack: MatrixStack, vectors: int, step: int) -> SolverCall:
    """Q of as many columns as the matrices have from so many vectors of Householder's, in place.

    Arrays and step: as of `reflectors`.
    """
    row, rows, columns, *_ = stack
    name = f"{_LETTERS[row]}{'ungqr' if row.is_complex else 'orgqr'}"
    arguments = (
        c_int(rows), c_int(columns), c_int(vectors), Stepped(step * row.nbytes), c_int(rows),
        Stepped(vectors * row.nbytes),
    )  # fmt: skip
    return SolverCall(name, arguments, stack, _TYPED)


@lru_cache(MAX_CALLS)
def singular_values(stack: MatrixStack, vectors: str) -> SolverCall:
    """Singular values of matrices, which are lost, of no fewer rows than columns.

    vectors: "A" for all, "S" for as many as there are values, "N" for none. Arrays: the matrices, the values, the left
    vectors in columns, and the right ones in rows.
    """
    row, rows, columns, *_ = stack
    kind, real, letter = _type(row), dtypes.real_type(row), c_byte(ord(vectors))
    left = {"A": rows, "S": columns, "N": 0}[vectors]
    tall, wide = c_int64(rows), c_int64(columns)
    arguments = (
        letter, letter, tall, wide, kind, Stepped(rows * columns * row.nbytes), tall, _type(real),
        Stepped(columns * real.nbytes), kind, Stepped(rows * left * row.nbytes), tall, kind,
        Stepped(columns * columns * row.nbytes * (left > 0)), wide, kind,
    )  # fmt: skip
    return SolverCall("Xgesvd", arguments, stack, _WIDE)


@lru_cache(MAX_CALLS)
def eigenvalues(stack: MatrixStack, is_upper: bool, has_vectors: bool) -> SolverCall:
    """Eigenvalues of Hermitian matrices in ascending order, and vectors in place. Arrays: the matrices, the values."""
    row, size, _, count, _ = stack
    kind, real, extent = _type(row), dtypes.real_type(row), c_int64(size)
    arguments = (
        _MODES[has_vectors], _UPPER if is_upper else _LOWER, extent, kind, Stepped(size * size * row.nbytes), extent,
        _type(real), Stepped(size * real.nbytes), kind,
    )  # fmt: skip
    if count > 1 and hasattr(library(), "cusolverDnXsyevBatched"):  # CUDA 12.6 and later
        return SolverCall("XsyevBatched", arguments, stack, _WIDE_AT_ONCE)
    return SolverCall("Xsyevd", arguments, stack, _WIDE)


def has_general_eigenvalues() -> bool:
    """Whether the library finds eigenvalues of any matrices: CUDA 12.8 and later."""
    return hasattr(library(), "cusolverDnXgeev")


@lru_cache(MAX_CALLS)
def general_eigenvalues(stack: MatrixStack, has_vectors: bool) -> SolverCall:
    """Eigenvalues of any square matrices, which are lost, and right vectors in columns; of real matrices, those of a
    conjugate pair of values are a column of real parts and one of imaginary parts.

    Arrays: the matrices, complex values, left vectors, which are none, and right vectors.
    """
    row, size, *_ = stack
    kind, whole, extent = _type(row), dtypes.complex_type(row), c_int64(size)
    arguments = (
        _MODES[False], _MODES[has_vectors], extent, kind, Stepped(size * size * row.nbytes), extent, _type(whole),
        Stepped(size * whole.nbytes), kind, Stepped(0), extent, kind,
        Stepped(size * size * row.nbytes * has_vectors), extent, kind,
    )  # fmt: skip
    return SolverCall("Xgeev", arguments, stack, _WIDE)


# --- many small systems ----------------------------------------------------------------------------------------------


class ManyFactored(NamedTuple):
    """Triangular factors of many matrices in place, by cuBLAS."""

    row: DType
    size: int
    several: int

    def run(self, addresses: Sequence[int], device: int, stream: int) -> None:
        """Enqueue it. addresses: of a number for each matrix, of the addresses of matrices, of int32 pivots.

        Raises CudaMathRefused.
        """
        info, matrices, pivots = addresses
        size = c_int(self.size)
        _by_cublas(
            f"cublas{_LETTERS[self.row]}getrfBatched",
            (size, c_void_p(matrices), size, c_void_p(pivots), c_void_p(info), c_int(self.several)), device, stream,
        )  # fmt: skip


class ManySolved(NamedTuple):
    """Solutions of many systems in place, by cuBLAS."""

    row: DType
    size: int
    columns: int
    several: int

    def run(self, addresses: Sequence[int], device: int, stream: int) -> None:
        """Enqueue it. addresses: of the addresses of what `ManyFactored` made, of its pivots, of the addresses of the
        right-hand sides. Raises CudaMathRefused.
        """
        matrices, pivots, sides = addresses
        size, refused = c_int(self.size), c_int()
        _by_cublas(
            f"cublas{_LETTERS[self.row]}getrsBatched",
            (
                _PLAIN, size, c_int(self.columns), c_void_p(matrices), size, c_void_p(pivots), c_void_p(sides), size,
                byref(refused), c_int(self.several),
            ), device, stream,
        )  # fmt: skip


def _by_cublas(name: str, arguments: Sequence[Any], device: int, stream: int) -> None:
    if not driver.is_current(device):
        with driver.on_device(device):
            return _by_cublas(name, arguments, device, stream)
    held, handle = products.workspace(stream, device), products.handles.of(device)
    handle.use(stream, held.pointer)
    call: Callable[..., int] = getattr(products.library(), name)
    products.check(call(handle.pointer, *arguments), f"run {name}")
    return None


# --- what became of it -----------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """Waits for functions, and asks whether they did their work on all of so many matrices. text: of the error."""

    several: int
    text: str
    error: type[Exception] = np.linalg.LinAlgError

    def run(self, addresses: Sequence[int], device: int, stream: int) -> None:
        """Wait, unless a CUDA graph is captured, which nothing waits for. Raises the error, CudaCallFailed."""
        if streams.is_captured(stream):
            return
        found = np.empty(self.several, np.int32)
        api = driver_api()
        with driver.on_device(device):
            copied = api.cuMemcpyDtoHAsync(found.ctypes.data, addresses[0], found.nbytes, api.CUstream(stream))
            driver.check(copied, "copy an array to the host")
            streams.synchronise(stream, device)
        if found.any():
            assert found.max() > 0, "arguments are as cuSOLVER takes them"
            raise self.error(self.text)
