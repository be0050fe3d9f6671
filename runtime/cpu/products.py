"""Products of matrices by BLAS, in blocks that fusec's threads share.

Note [Blocks of products]: the blocks of a product depend on its sizes and its dtype alone, never on the number of
threads, and BLAS computes each of them on one thread. So the bits of a product do not depend on the number of threads.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np

from fusec.base import locks
from fusec.base.kernel_abi import CodeStore, Kernel, Layout
from fusec.base.matrices import Matrix, ProductSizes
from fusec.base.recorded import numbers_of, words_of
from fusec.base.records import dataclass, replace
from fusec.runtime.cpu import blas, jit
from fusec.runtime.cpu.engine import Executable
from fusec.runtime.cpu.grain import LEAST_CHUNK_NS, SERIAL_NS, SHARE, Grain
from fusec.runtime.cpu.machine import thread_count
from fusec.runtime.cpu.product_text import GEMM, GEMV, HOLD, PLAIN, TURNED, hold_text, product_text

LEAST_WORK = 1 << 19  # products of real numbers that a block adds up at least, some 10 us
MOST_BLOCKS = 64  # of all products of one call
FEW_BLOCKS, LARGE_WORK = 16, 1 << 24  # more blocks than these are as large: BLAS packs the operands of each anew
LEAST_SIDE = 64  # rows or columns of a block
STRIP = 1 << 18  # bytes of a block of many columns and few rows: it stays in a cache for the kernel that follows
LEAST_COLUMNS = 512  # of such a block, so that packing the other operand anew takes little time
UNIT = 16  # which blocks' rows and columns are multiples of, as those of BLAS's inner loops
OPERATIONS_IN_NS = {"s": 40, "d": 20, "c": 40, "z": 20}  # multiplications and additions of one thread
CALL_NS = 200.0
BYTES_IN_NS = 10.0  # read from a matrix that is multiplied by a vector
ALONE_GEMM, ALONE_GEMV = 1 << 17, 1 << 12  # products that OpenBLAS adds up on one thread, however many it has
LEAST_ELEMENTS = 1 << 16  # of a matrix that is multiplied by a vector, in a block
_ALONE = Grain(1 << 62, 1, 1, 1, 1)
_ZERO = (ctypes.c_double * 2)(0, 0)  # of either kind of complex numbers


@dataclass(frozen=True, eq=False)
class BlasProduct:
    """Products of pairs of matrices in memory.

    template: the slots but for the first three, the addresses of operands and result in the order of `places`.
    is_held: BLAS must be held to one thread. elements: of the result. span: those that a position makes, which lie one
    behind the other, as all do; 0 if they do not.
    """

    executable: Executable
    template: array[int]
    places: tuple[int, int, int]
    positions: int
    is_held: bool
    elements: int = 0
    span: int = 0

    def run(self, addresses: Sequence[int]) -> None:
        """Multiply. addresses: of the operands and the result."""
        slots = self.template[:]
        for slot, place in enumerate(self.places):
            slots[slot] = addresses[place]
        if not self.is_held:
            self.executable.run(slots.buffer_info()[0], self.positions)
            return
        first, last = holding(self.executable.store)
        shared = hold_slots().buffer_info()[0]
        first.run(shared, 1)
        try:
            self.executable.run(slots.buffer_info()[0], self.positions)
        finally:
            last.run(shared, 1)

    def swapped(self) -> BlasProduct:
        """The same for operands in the other order."""
        first, second, third = ((1, 0, 2)[place] for place in self.places)
        return replace(self, places=(first, second, third))


def product(
    sizes: ProductSizes,
    matrices: tuple[Matrix, Matrix, Matrix],
    starts: Sequence[Sequence[int]],
    dtype: np.dtype[np.generic],
    store: Callable[[], CodeStore | None],
) -> BlasProduct | None:
    """Products of an operand a with rows and an operand b with columns; None where BLAS is not known.

    starts: of each of several calls, elements before a, b and the result. store: gives what keeps the code.
    """  # fmt: skip
    known = blas.library()
    if known is None or not blas.takes(dtype):
        return None
    letter, nbytes = blas.LETTERS[dtype.char], dtype.itemsize
    if min(sizes.rows, sizes.columns) == 1:
        if max(sizes.rows, sizes.columns) == 1:
            return None
        names: tuple[str, ...] = GEMV
        span = 0
        values, positions, work = _gemv(sizes, matrices, len(starts), nbytes)
        is_held = values["block_work"] > ALONE_GEMV
    else:
        values, positions, work = _gemm(sizes, matrices, len(starts), letter, nbytes)
        names, is_held = GEMM, values["block_work"] > ALONE_GEMM
        span = _span(sizes, matrices[2], values) if len(starts) == 1 else 0
    is_vector = names is GEMV
    values |= {
        "function": known.functions[f"{letter}{'gemv' if is_vector else 'gemm'}"],
        "one": ctypes.addressof(_one(letter)), "zero": ctypes.addressof(_ZERO),
    }  # fmt: skip
    order = (1, 0, 2) if values.get("is_reversed") else (0, 1, 2)
    words = [*[values.get(name, 0) for name in names], *[each[at] * nbytes for each in starts for at in order]]
    executable = replace(_executable(letter, is_vector, known.integer, store), grain=_grain(work))
    elements = sizes.rows * sizes.columns * sizes.pairs
    return BlasProduct(executable, words_of(words), order, positions, is_held, elements, span)


@cache
def _executable(letter: str, is_vector: bool, integer: int, store: Callable[[], CodeStore | None]) -> Executable:
    """The code of products, whose grain others have."""
    kept = store()
    code = jit.compile_text("product", product_text(letter, is_vector, integer), kept, "short")
    return Executable(Kernel("product", "llvm", (), "", Layout(1, ())), code.address, b"", _ALONE, kept)


def _gemm(
    sizes: ProductSizes, matrices: tuple[Matrix, Matrix, Matrix], calls: int, letter: str, nbytes: int
) -> tuple[dict[str, int], int, float]:
    a, b, c = matrices
    weight = 4 if letter in "cz" else 1
    products = calls * sizes.pairs
    rows, columns = sizes.rows, sizes.columns
    while rows * columns * sizes.inner * weight >= 2 * LEAST_WORK and max(rows, columns) >= 2 * LEAST_SIDE:
        halved = (_half(rows), columns) if rows >= columns else (rows, _half(columns))
        is_large = halved[0] * halved[1] * sizes.inner * weight >= LARGE_WORK
        blocks = products * -(-sizes.rows // halved[0]) * -(-sizes.columns // halved[1])
        if blocks > (MOST_BLOCKS if is_large else FEW_BLOCKS):
            break
        rows, columns = halved
    is_flat = rows == sizes.rows and rows * sizes.inner * nbytes * 4 <= STRIP
    while is_flat and columns >= 2 * LEAST_COLUMNS and columns * (rows + sizes.inner) * nbytes > STRIP:
        columns = _half(columns)
    down, along = -(-sizes.rows // rows), -(-sizes.columns // columns)
    values = {
        "rows": sizes.rows, "columns": sizes.columns, "inner": sizes.inner,
        "lda": a.leading, "ldb": b.leading, "ldc": c.leading,
        "turn_a": TURNED if a.is_transposed else PLAIN, "turn_b": TURNED if b.is_transposed else PLAIN,
        "block_rows": rows, "block_columns": columns, "row_blocks": down, "blocks": down * along,
        "pairs": sizes.pairs, "step_a": a.step * nbytes, "step_b": b.step * nbytes, "step_c": c.step * nbytes,
        "row_a": (a.leading if a.is_transposed else 1) * nbytes, "row_c": nbytes,
        "column_b": (1 if b.is_transposed else b.leading) * nbytes, "column_c": c.leading * nbytes,
        "block_work": rows * columns * sizes.inner,
    }  # fmt: skip
    work = CALL_NS + 2.0 * rows * columns * sizes.inner * weight / OPERATIONS_IN_NS[letter]
    return values, products * down * along, work


def _span(sizes: ProductSizes, result: Matrix, values: Mapping[str, int]) -> int:
    """Elements of the result that lie one behind the other for each block, and block behind block; 0 if not."""
    if values["row_blocks"] > 1 or result.leading != sizes.rows:
        return 0
    if sizes.pairs == 1:
        return values["block_columns"] * sizes.rows
    whole = sizes.rows * sizes.columns
    return whole if values["blocks"] == 1 and result.step == whole else 0


def _gemv(
    sizes: ProductSizes, matrices: tuple[Matrix, Matrix, Matrix], calls: int, nbytes: int
) -> tuple[dict[str, int], int, float]:
    """Of a matrix and a vector. If the vector comes first, the product is that of the transposes."""
    a, b, c = matrices
    is_reversed = sizes.rows == 1
    matrix, vector = (b, a) if is_reversed else (a, b)
    size = max(sizes.rows, sizes.columns)
    is_turned = matrix.is_transposed != is_reversed
    stored = (sizes.inner, size) if is_turned else (size, sizes.inner)
    products = calls * sizes.pairs
    block = size
    while block * sizes.inner >= 2 * LEAST_ELEMENTS and block >= 2 * LEAST_SIDE:
        half = _half(block)
        if products * -(-size // half) > MOST_BLOCKS:
            break
        block = half
    blocks = -(-size // block)
    along = vector.leading if vector.is_transposed != is_reversed else 1
    values = {
        "rows": stored[0], "columns": stored[1], "lda": matrix.leading, "turn_a": TURNED if is_turned else PLAIN,
        "step_of_b": along, "step_of_c": c.leading if is_reversed else 1, "block_rows": block, "blocks": blocks,
        "pairs": sizes.pairs, "step_a": matrix.step * nbytes, "step_b": vector.step * nbytes,
        "step_c": c.step * nbytes, "block_a": (matrix.leading if is_turned else 1) * nbytes,
        "block_c": (c.leading if is_reversed else 1) * nbytes, "is_turned": is_turned, "is_reversed": is_reversed,
        "block_work": block * sizes.inner,
    }  # fmt: skip
    return values, products * blocks, CALL_NS + block * sizes.inner * nbytes / BYTES_IN_NS


def _half(size: int) -> int:
    return -(-size // (2 * UNIT)) * UNIT


def _grain(nanoseconds: float) -> Grain:
    """The grain of positions that take this long."""
    return Grain(*numbers_of(_grain_numbers, (nanoseconds,), 5))


def _grain_numbers(nanoseconds: float) -> tuple[int, int, int, int, int]:
    least = max(1, int(LEAST_CHUNK_NS / nanoseconds))
    most = max(least, int(100 * LEAST_CHUNK_NS / nanoseconds))
    serial_below = int(SERIAL_NS / nanoseconds) if thread_count() > 1 else 1 << 62
    return serial_below, least, most, SHARE, 1


@cache
def _one(letter: str) -> ctypes.Array[ctypes.c_float] | ctypes.Array[ctypes.c_double]:
    """1 and nothing imaginary."""
    return (ctypes.c_float * 2)(1, 0) if letter in "sc" else (ctypes.c_double * 2)(1, 0)


# --- one thread ------------------------------------------------------------------------------------------------------


_holding: list[Executable] = []  # none, or both


def holding(store: CodeStore | None) -> list[Executable]:
    """What holds BLAS to one thread, and what lets it go: functions of one position."""
    if _holding:
        return _holding
    made = []
    for is_first in (True, False):
        name = "hold" if is_first else "release"
        code = jit.compile_text(name, hold_text(is_first), store, "short")
        made.append(Executable(Kernel(name, "llvm", (), "", Layout(1, ())), code.address, b"", _ALONE, store))
    with locks.lock:
        _holding[:] = made
    return made


@cache
def hold_slots() -> array[int]:
    """The slots of both."""
    known = blas.library()
    assert known is not None, "there is a product"
    values = {"words": blas.hold().address, "get": known.get, "set": known.set}
    return array("q", [values[name] for name in HOLD])
