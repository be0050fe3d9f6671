"""The interior of a stencil in vectors and in several rows at once gives what its border's loop gives."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage

import fusec
from fusec.base.dtypes import FLOAT32, UINT8, DType
from fusec.base.kernel_abi import Layout, Step
from fusec.codegen.llvm import LlvmOptions, generate
from fusec.codegen.llvm.interior import parts_of
from fusec.compiler import pipeline
from fusec.ir.loops import If, Program
from fusec.ir.verify import verify
from fusec.ir.walk import statements
from fusec.runtime.cpu import machine
from fusec.runtime.cpu.processor import processor
from tests.support.llvm_runner import fresh_symbol, run

WIDTHS = (1, 2, 3, 15, 16, 17, 18, 19, 33, 34, 35, 50, 66, 67, 97)
CROSS = "def f(a):\n    return a[-1, 0] + a[0, -1] + 3 * a + a[0, 1] + a[1, 0]\n"
WEIGHTS = np.array([[0, 1, 0], [1, 3, 1], [0, 1, 0]])


def program_of(text: str, dtype: DType, ndim: int, boundary: str = "reflect", **more: DType) -> Program:
    """The program of a stencil whose inputs and output have one dtype."""
    stencil = fusec.stencil(text, boundary=boundary)
    definition = stencil._variant(("array",) * len(stencil.params)).definition
    types = {**dict.fromkeys((*stencil.params, "out"), dtype), **more}
    ndims = {"": ndim, **dict.fromkeys(stencil.indexed, ndim)}
    return pipeline.lower(definition, types, ndims, frozenset())


def placed(shape: tuple[int, ...], dtype: DType, offset: int, fill: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """An array that starts some elements into a larger one, and the larger one."""
    size = int(np.prod(shape))
    around = np.full(size + 512, fill, dtype.numpy)
    start = (-around.ctypes.data // dtype.nbytes) % (64 // dtype.nbytes) + 128 + offset
    return around[start : start + size].reshape(shape), around


@pytest.mark.parametrize("dtype", [FLOAT32, UINT8])
@pytest.mark.parametrize("bits", [0, 128, 512])
def test_all_widths_cuts_and_places(dtype: DType, bits: int) -> None:
    program = program_of(CROSS, dtype, 2)
    rng = np.random.default_rng(bits)
    steps, raw = (("out", (Step.ANY, Step.UNIT)),), (("a", (2, True)),)
    ways = [(False, 0), (True, 0)] + [(True, 512)] * (bits == processor().permutes == 512 and dtype == FLOAT32)
    kernels = [
        generate(
            program,
            Layout(2, steps, raw, streaming=streaming),
            LlvmOptions(vector_bits=bits, permutes=permutes, symbol=fresh_symbol()),
        )
        for streaming, permutes in ways
    ]
    for (height, width), kernel in itertools.product(
        [*((9, width) for width in WIDTHS), (1, 40), (2, 40), (3, 40), (20, 48)], kernels
    ):
        shape = height, width
        a, before = placed(shape, dtype, int(rng.integers(3)), 77)
        out, after = placed(shape, dtype, int(rng.integers(16)) if width % 16 else 0, 55)
        a[...] = rng.integers(0, 30, shape)
        arrays = {"a": a, "out": out}
        size = height * width
        cuts = sorted(rng.integers(0, size + 1, 2)) if rng.random() < 0.5 else ()
        run(kernel, program, arrays, {}, shape, cuts)
        wanted = ndimage.correlate(a.astype("int64"), WEIGHTS, mode="reflect").astype(dtype.numpy)
        np.testing.assert_array_equal(out, wanted, err_msg=f"{shape} {cuts} {kernel.notes}")
        assert (after == 55).sum() == 512 + (out == 55).sum()
        assert (before == 77).sum() == 512


def test_the_interior_has_no_branch_and_shares_loads() -> None:
    for boundary, ndim in itertools.product(("constant", "nearest", "reflect", "mirror", "wrap", "skip"), (1, 2, 3)):
        offsets = [[0] * axis + [step] + [0] * (ndim - axis - 1) for axis in range(ndim) for step in (-1, 2)]
        text = " + ".join(f"a[{', '.join(map(str, offset))}]" for offset in offsets)
        parts = parts_of(program_of(f"def f(a): return {text} + a", FLOAT32, ndim, boundary), ndim, 512)
        assert parts is not None
        assert parts.peeled.low == (1,) * ndim
        assert parts.peeled.high == (2,) * ndim
        assert [rows for rows, _ in parts.stacked] == ([] if ndim == 1 else [6, 3])
        for part in (parts.peeled.interior, *(program for _, program in parts.stacked)):
            verify(part)
            assert not any(isinstance(stmt, If) for stmt in statements(part.body))
        verify(parts.peeled.edge)


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64", "float32"])
def test_rows_of_any_alignment_are_written_around_the_caches(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "last_level_cache_bytes", lambda: 1)
    f = fusec.stencil("def f(a, b): return a[-1, 0] + a[0, -1] + 3 * a + a[0, 1] + a[1, 0] - b")
    rng = np.random.default_rng(0)
    around = np.empty(8192, np.uint8)
    for height, width in itertools.product((1, 6, 11), (1, 17, 18, 31, 50, 66)):
        a, b = rng.integers(0, 30, (2, height, width)).astype(dtype)
        wanted = ndimage.correlate(a, WEIGHTS, mode="constant") - b
        np.testing.assert_array_equal(f(a, b), wanted)
        for start in rng.integers(0, 64, 3):  # elements need not be aligned to their own size
            around[...] = 77
            out = around[start : start + a.nbytes].view(dtype).reshape(a.shape)
            np.testing.assert_array_equal(f(a, b, out=out), wanted)
            assert (around[:start] == 77).all()
            assert (around[start + a.nbytes :] == 77).all()
        f(a, b, out=b)
        np.testing.assert_array_equal(b, wanted)


def test_an_output_may_be_an_input_that_is_looked_at_in_its_place() -> None:
    f = fusec.stencil("def f(a, b): return b + a[-1, 0] - a[0, 1]", boundary="nearest")
    for width in (5, 16, 37, 65, 100):
        rng = np.random.default_rng(width)
        a, b = rng.integers(0, 99, (2, 11, width)).astype("float32")
        wanted = f(a, b)
        given = b.copy()
        assert f(a, given, out=given) is given
        np.testing.assert_array_equal(given, wanted)


PADS = {"constant": "constant", "nearest": "edge", "reflect": "symmetric", "mirror": "reflect", "wrap": "wrap"}


def test_radii_beyond_the_array() -> None:
    for (mode, pad), radius in itertools.product(PADS.items(), (3, 9)):
        f = fusec.stencil(f"def f(a): return a[-{radius}, 1] + 2 * a[0, -{radius}] + 4 * a[1, {radius}]", boundary=mode)
        for height, width in ((1, 1), (2, 40), (3, 17), (8, 20), (21, 3), (25, 37)):
            a = np.arange(height * width, dtype="int64").reshape(height, width)
            padded = np.pad(a, radius, mode=pad)  # which SciPy cannot do where the radius exceeds the array
            far = [
                padded[radius + y : radius + y + height, radius + x : radius + x + width]
                for y, x in ((-radius, 1), (0, -radius), (1, radius))
            ]
            np.testing.assert_array_equal(f(a), far[0] + 2 * far[1] + 4 * far[2], err_msg=f"{mode} {(height, width)}")


def test_threads_part_rows_anywhere() -> None:
    a = np.random.default_rng(0).integers(0, 20, (611, 1013)).astype("float32")
    kernel = np.ones((3, 3), "float32")
    taps = " + ".join(f"a[{i}, {j}]" for i in (-1, 0, 1) for j in (-1, 0, 1))
    for mode in ("mirror", "constant"):
        f = fusec.stencil(f"def f(a): return {taps}", boundary=mode)
        np.testing.assert_array_equal(f(a), ndimage.correlate(a, kernel, mode=mode))


def test_views_with_gaps_between_rows_and_elements() -> None:
    whole = np.random.default_rng(1).integers(0, 50, (30, 200)).astype("float64")
    f = fusec.stencil(CROSS, boundary="wrap")
    for view in (whole[:, 3:77], whole[::2, ::-1], whole[3:9, ::3], whole.T, whole[..., None][:, :, 0]):
        np.testing.assert_array_equal(f(view), ndimage.correlate(np.ascontiguousarray(view), WEIGHTS, mode="wrap"))
