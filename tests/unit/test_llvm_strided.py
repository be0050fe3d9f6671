"""Elements a run-time stride apart, read by whole vectors: the right ones, and no byte outside of the array."""

import re
import sys

import numpy as np
import pytest

import fusec
from tests.support.page_ends import at_end_of_page

copy = fusec.ElementwiseKernel("T x", "T z", "z = x", "copy_strided")


@pytest.mark.skipif(sys.platform != "linux", reason="protects a page by Linux's mprotect")
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("step", [-4, -3, -2, -1, 2, 3, 4, 5, 9])
def test_nothing_is_read_beyond_the_last_element(dtype, step):
    for n in (64, 128, 192, 200):
        array = np.arange(n * abs(step)).astype(dtype)[::step][:n]
        placed = at_end_of_page(array)
        assert np.array_equal(copy(placed), array)
        placed[...] = 0
        copy(array, placed)
        assert np.array_equal(placed, array)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "int32", "uint64", "complex128"])
@pytest.mark.parametrize("step", [-7, -4, -3, -2, -1, 2, 3, 4, 7])
def test_strided_elements_are_the_right_ones(dtype, step):
    whole = np.random.default_rng(0).integers(0, 100, 3000).astype(dtype)
    for n in (1, 15, 63, 64, 65, 129, 300):
        some = whole[::step][:n]
        assert np.array_equal(copy(some), some)
        found, wanted = np.ones_like(whole), np.ones_like(whole)
        copy(some, found[::step][:n])
        wanted[::step][:n] = some
        assert np.array_equal(found, wanted)


def test_rows_of_any_stride_in_two_dimensions():
    whole = np.random.default_rng(0).random((40, 900), np.float32)
    add = fusec.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add_strided")
    for x, y in ((whole[:, ::3], whole[::-1, 300:600]), (whole[::2, ::-2], whole[:20, 450:]), (whole.T, whole.T[::-1])):
        assert np.array_equal(add(x, y), x + y)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float32", "float64", "complex128"])
@pytest.mark.parametrize("columns", [1, 70, 300])
@pytest.mark.sampled(5)
def test_arrays_that_are_joined_have_any_strides(dtype, columns):
    whole = np.random.default_rng(0).integers(0, 2, (9, 4 * columns)).astype(dtype)
    repeated = np.broadcast_to(whole[:2, :1], (2, columns))
    parts = (
        whole[:2, :columns],
        repeated,
        whole[2:4, ::4],
        whole[4:6, columns - 1 :: -1][:, :columns],
        whole[6:, ::-4],
    )
    join = fusec.fuse(lambda a, b, c, d, e: np.concatenate([a + a, b, c, d, e]))
    assert np.array_equal(join(*parts), np.concatenate([parts[0] + parts[0], *parts[1:]]))
    roll = fusec.fuse(lambda a, b: np.roll(a, 1, 0) + np.roll(b, -1, 1))
    for one in parts:
        for other in parts[:4]:
            if one.shape == other.shape:
                assert np.array_equal(roll(one, other), np.roll(one, 1, 0) + np.roll(other, -1, 1))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_addresses_of_small_elements_fit_registers(dtype):
    """Indices come from memory here. Elements at positions need only one address."""
    table, indices = np.arange(256).astype(dtype), np.arange(255, -1, -1).astype("uint8")

    def lanes(body):
        kernel = fusec.ElementwiseKernel("raw T t, uint8 x", "T z", body, "look_up")
        assert np.array_equal(kernel(table, indices), table[indices if "t[x]" in body else slice(None)])
        return int(re.search(r"(\d+) lanes", str(fusec.explain(kernel, table, indices)))[1])

    assert (lanes("z = t[x]") < lanes("z = t[i]")) == (table.itemsize < 4)


def test_code_for_one_stride_serves_no_other():
    """Steps that arguments have, and those that the function takes, change from call to call with the extents."""
    random = np.random.default_rng(0)

    def program(x, image):
        padded = np.pad(image.astype(float), 1, mode="edge")
        around = padded[:-2, 1:-1] + padded[2:, 1:-1] - padded[1:-1, :-2] * padded[1:-1, 2:]
        return x[::2, 1::3] - x[1::2, ::3], around

    fused = fusec.fuse(program)
    for size in (12, 30, 120):
        for step in (1, 2, 3, 4, 5, -1, -2):
            x = random.normal(size=(size, 6 * size))[:, ::step][:, : size - size % 6]
            image = random.integers(0, 256, (size + 1, 5 * size), dtype="uint8")[:, 2:][:, ::step][:, : size - 1]
            for ours, wanted in zip(fused(x, image), program(x, image), strict=True):
                assert np.array_equal(ours, wanted)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex64"])
def test_short_rows_of_a_larger_array_are_read_where_they_are(dtype):
    product = fusec.fuse(lambda matrix, x: (matrix * x[:, None, :]).sum(-1))
    for count in (7, 40, 333):
        for columns in (2, 3, 4, 5):
            matrix = np.random.default_rng(0).integers(0, 4, (count, 3, columns)).astype(dtype)
            x = matrix[:, 1]
            assert np.array_equal(product(matrix, x), (matrix * x[:, None, :]).sum(-1))


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "int64", "complex64"])
@pytest.mark.parametrize("indices", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "int64"])
def test_elements_at_indices_of_any_dtype_are_the_right_ones(dtype, indices):
    random = np.random.default_rng(0)
    table = random.integers(0, 100, 90).astype(dtype)
    least = 0 if indices.startswith("u") else -len(table)
    take = fusec.fuse(lambda table, at: (table[at], table[::-1][at] + table[at]))
    for n in (1, 15, 64, 1003):
        at = random.integers(least, len(table), n).astype(indices)
        for found, wanted in zip(take(table, at), (table[at], table[::-1][at] + table[at]), strict=True):
            assert np.array_equal(found, wanted)


def test_indices_that_are_replaced_after_they_are_read_count_as_they_were():
    take = fusec.ElementwiseKernel(
        "raw uint8 table", "uint8 at, uint8 z", "unsigned char k = at; at = 7; z = table[k]", "take_and_replace"
    )
    table = np.arange(255, -1, -1, dtype=np.uint8)
    at = np.arange(999).astype(np.uint8)
    before, found = at.copy(), np.empty_like(at)
    take(table, at, found)
    assert np.array_equal(found, table[before])
    assert (at == 7).all()
