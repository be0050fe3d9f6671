"""Every function of the library on a device, at every class of size: the bits of the CPU.

A total of float32 is one kernel up to 8192 elements along the last axis and up to 64 along another one. Beyond that,
totals of chunks come first, and beyond 4096 elements along another axis, totals of those.
"""

import numpy as np
import pytest

import fusec
from fusec.base.dtypes import BY_NAME
from fusec.runtime import cuda
from tests.gpu.test_reductions import compare, normal
from tests.gpu.test_same_bits import assert_same_bits

HOMES = ("library.reductions", "library.normalisation", "library.median", "library.cumulative")
LIBRARY = sorted(name for home in HOMES for name in fusec.HOMES[home].split())
OF_ROWS = ("softmax", "log_softmax", "layer_norm")
OF_TWO = ("mulsum", "vecdot")
OF_ONE_AXIS = ("argmax", "argmin", "nanargmax", "nanargmin", *OF_ROWS, *fusec.HOMES["library.cumulative"].split())
SIZES = {
    "one": ((3, 1), -1),
    "row": ((3, 1000), -1),
    "chunk": ((2, 8192), -1),
    "chunks": ((2, 8200), -1),
    "many chunks": ((1, 70_000), -1),
    "column": ((60, 5), 0),
    "column of chunks": ((70, 5), 0),
    "column of many chunks": ((4100, 3), 0),
    "middle": ((3, 130, 4), 1),
    "all": ((5, 3000), None),
    "none": ((3, 0), -1),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", [name for name in LIBRARY if name != "median"])
def test_the_library_has_the_bits_of_the_host(name, size):
    shape, axis = SIZES[size]
    if axis is None and name in OF_ONE_AXIS:
        shape, axis = (np.prod(shape),), -1
    function, x = getattr(fusec, name), normal(*shape)
    if name.startswith("nan") and x.size > len(x):
        x.flat[-1] = np.nan
    args = (x, normal(*shape, seed=1)) if name in OF_TWO else (x,)
    if axis is None and name == "vecdot":
        axis = -1
    try:
        function(*args, axis=axis)
    except (ValueError, TypeError) as refusal:
        with pytest.raises(type(refusal)):
            function(*map(cuda.from_numpy, args), axis=axis)
        return
    compare(function, *args, axis=axis)


@pytest.mark.parametrize("name", OF_ROWS)
def test_rows_beyond_a_chunk(name):
    function = getattr(fusec, name)
    for shape, axis in (((3, 8200), -1), ((3, 8200), 1), ((70, 3), 0)):
        x = normal(*shape)
        compare(function, x, axis=axis)
        for _ in range(4):  # from the second call on, the levels are one fused function
            there = cuda.from_numpy(x)
            assert_same_bits(function(there, axis=axis), function(x, axis=axis))
            assert function(there, axis=axis, out=there) is there
            assert_same_bits(there, function(x, axis=axis))


def test_weights_of_rows_beyond_a_chunk():
    x, weight, rows = normal(2, 8200), normal(8200, seed=1), normal(3, 2, 8200, seed=2)
    for _ in range(3):
        compare(fusec.layer_norm, x, weight, 0.5)
        compare(fusec.layer_norm, x[0], rows, weight)  # the weights have more axes than what they scale


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("count", [40, 1000, 1001, 1024, 1992, 2048, 2056])
def test_narrow_rows(dtype, count):
    """Rows at multiples of 16 bytes, and others."""
    x = normal(5000, count + 8).astype(BY_NAME[dtype].numpy)
    for function in (fusec.softmax, fusec.log_softmax, fusec.layer_norm):
        for rows in (x[:, :count], x[:, 1 : count + 1], np.ascontiguousarray(x[:, :count])):
            compare(function, rows)
    compare(fusec.layer_norm, x[:300, :count], x[0, :count], normal(count, seed=1))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "uint8"])
@pytest.mark.parametrize("count", [2, 3, 12, 16, 31, 32, 33, 49, 100, 128, 129])
def test_many_rows_of_few_elements(dtype, count):
    """Threads have a row, or a part of a group has one; the last group is not full, and rows begin anywhere."""
    x = (normal(1031, count) * 20).astype(BY_NAME[dtype].numpy)
    functions, further = (fusec.softmax, fusec.layer_norm), {}
    if dtype == "uint8":
        functions, further = (fusec.argmax, fusec.sum, fusec.max), {"axis": -1}
    for function in functions:
        compare(function, x, **further)
        compare(function, x.reshape(-1, 1, count), **further)
        rows = cuda.from_numpy(x).reshape(-1)[1 : 1030 * count + 1].reshape(1030, count)
        there = x.reshape(-1)[1 : 1030 * count + 1].reshape(1030, count)
        assert_same_bits(function(rows, **further), np.asarray(function(there, **further)))
    if dtype != "uint8":
        there = cuda.from_numpy(x)
        fusec.softmax(there, out=there)
        assert_same_bits(there, fusec.softmax(x))


@pytest.mark.parametrize("count", [8193, 16385, 20000, 32768, 32769, 65536, 100_000, 262_144, 262_145])
def test_rows_of_several_chunks(count):
    """Blocks hold some, clusters of blocks longer ones, and a kernel for each level walks the longest."""
    x, weight, bias = normal(5, count), normal(count, seed=1), normal(5, count, seed=2)
    for function in (fusec.softmax, fusec.log_softmax, fusec.layer_norm):
        compare(function, x)
        compare(function, x.astype("f8"))
        compare(function, x.astype(BY_NAME["bfloat16"].numpy))
    compare(fusec.layer_norm, x, weight, bias)
    compare(fusec.softmax, normal(3, 2, count + 3)[:, 1, 3:])
    compare(fusec.logsumexp, normal(300, count), axis=1)
    given = cuda.from_numpy(x)
    fusec.softmax(given, out=given)
    assert_same_bits(given, fusec.softmax(x))


def test_medians_are_refused_on_a_device():
    with pytest.raises(TypeError):
        fusec.median(cuda.from_numpy(normal(5)))
