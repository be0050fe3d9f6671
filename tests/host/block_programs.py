"""Kernels whose positions come in blocks: shared arrays, barriers in loops and branches, what lives across them.

Each is a text with the arguments of a call, and lowered as a call lowers it; all are written so that the order of the
threads makes no difference.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))  # a child process has no conftest

from arguments import encode, layout_of
from guarded import Guarded
from programs import Case

import fusec
from fusec import passes
from fusec.compiler.pipeline import lower
from fusec.dispatch.engine import read_call
from fusec.dispatch.spec import CallOptions
from fusec.kernels.grid_kernel import Explicit

TILE = 4


@fusec.kernel(block=(TILE, 2 * TILE))
def transpose(a, out):
    """A tile with a column to spare, read the other way round; blocks that are no squares."""
    for i, j in fusec.grid(a.shape):
        tile = fusec.shared((TILE, 2 * TILE + 1), np.float32)
        (ty, tx), (by, bx) = fusec.thread_index(), fusec.block_index()
        tile[ty, tx] = a[i, j]
        fusec.barrier()
        at = ty * 2 * TILE + tx
        out[bx * 2 * TILE + at // TILE, by * TILE + at % TILE] = tile[at % TILE, at // TILE]


@fusec.kernel(block=16)
def tree_sum(x, out, n):
    """A reduction by halves, in a loop that all threads leave together; positions beyond the array."""
    for i in fusec.grid(-(-n // 16) * 16):
        part = fusec.shared(16, np.float32)
        t = fusec.thread_index()
        part[t] = x[i] if i < n else np.float32(0)
        s = 8
        while s > 0:
            fusec.barrier()
            if t < s:
                part[t] += part[t + s]
            s //= 2
        if t > 0:
            continue
        out[fusec.block_index()] = part[0]


@fusec.kernel(block=16)
def prefix_sum(x, out):
    """Hillis and Steele: two halves of an array by turns, whose number each thread keeps from barrier to barrier."""
    for i in fusec.grid(x.size):
        both = fusec.shared((2, 16), np.int32)
        t, now, d = fusec.thread_index(), 0, 1
        both[0, t] = x[i]
        fusec.barrier()
        while d < 16:
            value = both[now, t]
            if t >= d:
                value += both[now, t - d]
            now = 1 - now
            both[now, t] = value
            fusec.barrier()
            d *= 2
        out[i] = both[now, t]


@fusec.kernel(block=(TILE, TILE))
def matmul(a, b, c):
    """Tiles of both factors; a sum that each thread keeps through a loop with two barriers."""
    for i, j in fusec.grid(c.shape):
        left = fusec.shared((TILE, TILE), np.float32)
        right = fusec.shared((TILE, TILE), np.float32)
        ty, tx = fusec.thread_index()
        total = np.float32(0)
        for start in range(0, a.shape[1], TILE):
            left[ty, tx] = a[i, start + tx]
            right[ty, tx] = b[start + ty, j]
            fusec.barrier()
            for k in range(TILE):
                total += left[ty, k] * right[k, tx]
            fusec.barrier()
        c[i, j] = total


@fusec.kernel(block=16)
def histogram(x, bins, extremes):
    """Atomic updates of shared arrays, and of global ones after the last barrier."""
    for i in fusec.grid(x.size):
        counts = fusec.shared(5, np.int32)
        least = fusec.shared(2, np.float32)
        t = fusec.thread_index()
        if t < 5:
            counts[t] = 0
        if t == 7:
            least[0], least[1] = np.float32(1e9), np.float32(-1e9)
        fusec.barrier()
        fusec.atomic_add(counts, x[i], 1)
        fusec.atomic_min(least, 0, np.float32(x[i]) / 2)
        fusec.atomic_max(least, 1, np.float32(x[i]) / 2)
        fusec.barrier()
        if t < 5:
            fusec.atomic_add(bins, t, counts[t])
        elif t == 5:
            extremes[fusec.block_index(), 0] = least[0]
            extremes[fusec.block_index(), 1] = least[1]


@fusec.kernel(block=(2, 3, 4))
def box(a, out, weight: np.float32):
    """Three axes, extents that are no powers of two, a halo that some threads load beside their own element."""
    for i, j, k in fusec.grid(out.shape):
        tile = fusec.shared((4, 5, 6), np.float32)
        z, y, x = fusec.thread_index()
        at = (z * 3 + y) * 4 + x
        for step in range(5):
            place = at + step * 24
            dz, dy, dx = place // 30, place // 6 % 5, place % 6
            tile[dz, dy, dx] = a[i - z + dz, j - y + dy, k - x + dx]
        fusec.barrier()
        total = np.float32(0)
        for dz in range(3):
            for dy in range(3):
                for dx in range(3):
                    total += tile[z + dz, y + dy, x + dx]
        out[i, j, k] = total * weight


def divided(x, y):
    return x // y, x % y


@fusec.kernel(block=8)
def turns(x, out, n: int):
    """What lives across barriers: pairs that a function returns, arrays of one's own; rounds that end early."""
    for i in fusec.grid(x.size):
        ring = fusec.shared(8, np.int32)
        own = fusec.local(3, np.int32)
        t = fusec.thread_index()
        first, rest = divided(x[i], 5)
        ring[t] = rest
        is_first = first > 2
        for turn in range(n):
            fusec.barrier()
            seen = ring[(t + 1) % 8]
            own[turn % 3] += seen
            fusec.barrier()
            if turn == 4:
                break
            ring[t] = seen + first
            if is_first:
                continue
            ring[t] += own[0]
        if n > 2:
            fusec.barrier()
            first += ring[7 - t]
            if rest == 3:
                continue
            first *= 2
        if n > 100:
            continue
        out[i] = first * 100 + own[0] + own[1] * 3 + own[2] * 7


@fusec.kernel(block=(3, 5))
def wide(x, out):
    """float64, complex and narrow floats in shared arrays."""
    for i, j in fusec.grid(x.shape):
        f8 = fusec.shared(15, np.float64)
        c8 = fusec.shared(15, np.complex64)
        f2 = fusec.shared((3, 5), np.float16)
        y, z = fusec.thread_index()
        t = y * 5 + z
        f8[t], c8[t], f2[y, z] = x[i, j], complex(x[i, j], t), x[i, j] / 3
        fusec.barrier()
        out[i, j] = f8[14 - t] + c8[(t + 1) % 15].real * c8[t].imag + f2[2 - y, z]


KERNELS = (transpose, tree_sum, prefix_sum, matmul, histogram, box, turns, wide)
NOT_ON_METAL = {"wide"}


def block_cases() -> list[Case]:
    """A call of every kernel."""
    rng = np.random.default_rng(11)
    floats = rng.uniform(-9, 9, (12, 24)).astype("f4")
    small = rng.integers(0, 5, 48).astype("i4")
    return [
        case(transpose, a=floats, out=np.zeros((24, 12), "f4")),
        case(tree_sum, x=floats[0, :21].copy(), out=np.zeros(2, "f4"), n=21),
        case(prefix_sum, x=small, out=np.zeros(48, "i4")),
        case(matmul, a=floats[:8, :12].copy(), b=floats[:, :4].copy(), c=np.zeros((8, 4), "f4")),
        case(histogram, x=small, bins=np.zeros(5, "i4"), extremes=np.zeros((3, 2), "f4")),
        case(box, a=rng.integers(0, 9, (6, 8, 10)).astype("f4"), out=np.zeros((4, 6, 8), "f4"), weight=0.37),
        *(case(turns, x=rng.integers(0, 99, 24).astype("i4"), out=np.zeros(24, "i4"), n=n) for n in (0, 3, 7, 200)),
        case(wide, x=floats[:6, :10].astype("f8"), out=np.zeros((6, 10))),
    ]


def case(kernel: Explicit, **given: object) -> Case:
    """A kernel lowered for a call with these arguments."""
    variant, inputs, blocks = kernel.prepared((), given)
    backend, call = read_call(variant, inputs, None, CallOptions(size=blocks))
    types = call.given(backend).types(variant)
    arrays: Mapping[str, np.ndarray] = {name: each for name, each in given.items() if isinstance(each, np.ndarray)}
    ndims = {"": len(blocks), **{name: array.ndim for name, array in arrays.items()}}
    program = passes.run(lower(variant.definition, types, ndims, frozenset(call.values)), check=True)
    scalars = {name: value for name, value in given.items() if name not in arrays}
    title = " ".join([kernel.name, *(f"{name}={value}" for name, value in scalars.items() if name == "n")])
    return Case(title, program, arrays, blocks, scalars)


# --- on the CPU target, in a process of its own: the processor to compile for is read once and for all ----------------


def in_process(level: str, names: Sequence[str], folder: Path) -> list[dict[str, np.ndarray]]:
    """The arrays of some cases as the processor leaves them that FUSEC_CPU names."""
    taken = folder / f"{level}.arrays"
    environment = {**os.environ, "FUSEC_CPU": level, "FUSEC_NUM_THREADS": "2", "FUSEC_CACHE": "0"}
    done = subprocess.run(
        [sys.executable, __file__, str(taken), *names], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[dict[str, np.ndarray]] = pickle.loads(taken.read_bytes())
    return found


def on_cpu(case: Case) -> dict[str, np.ndarray]:
    """The arrays after a run on all threads, one block at a time each; memory around them is out of bounds."""
    from fusec.codegen import llvm
    from fusec.runtime.cpu import engine, threads
    from fusec.runtime.cpu.grain import Grain
    from fusec.runtime.cpu.processor import processor

    host = processor()
    layout = layout_of(case.program, case.arrays, case.shape)
    kernel = llvm.generate_blocks(
        case.program,
        layout,
        llvm.LlvmOptions(vector_bits=host.vector_bits, half_casts=host.converts_halves, permutes=host.permutes),
    )
    guarded = {name: Guarded(array) for name, array in case.arrays.items()}
    values = encode(kernel, case.program, guarded, case.scalars, case.shape)
    slots = ctypes.create_string_buffer(b"".join(value.ljust(8, b"\0") for value in values))
    code, pool = engine.compile(kernel), threads.pool()
    if pool is None:  # this process has one thread
        code._alone(0, prod(case.shape), ctypes.addressof(slots))
    else:
        pool.run(code.address, ctypes.addressof(slots), prod(case.shape), Grain(0, 1, 1, 1, 1))
    return {name: each.array.copy() for name, each in guarded.items()}


if __name__ == "__main__":
    wanted = {each.name: each for each in block_cases()}
    Path(sys.argv[1]).write_bytes(pickle.dumps([on_cpu(wanted[name]) for name in sys.argv[2:]]))
