"""What fusec shows of a reduction: the texts of all its kernels, and a report of a call."""

import numpy as np
import pytest

import fusec
from fusec.errors import FusecError

TOTAL = ("T x, T y", "T z", "(x - y) * (x - y)", "a + b", "z = sqrt(a)", "0", "distance")
TYPES = {"T": "float32"}


@pytest.fixture
def kernel():
    return fusec.ReductionKernel(*TOTAL)


@pytest.mark.parametrize(
    ("target", "mark"),
    [
        ("cuda", "__global__ "),
        ("metal", "kernel void "),
        ("llvm", "define "),
        ("ir", "kernel distance"),
        ("asm", ".globl"),
    ],
)
def test_source_shows_every_kernel(kernel, target, mark):
    one = kernel.source(target, TYPES, shape=(500,))
    two = kernel.source(target, TYPES, shape=(100_000,))
    assert two.count(mark) == 2 * one.count(mark) > 0
    assert two.endswith("\n")


def test_kernels_of_one_file_have_names_of_their_own(kernel):
    text = kernel.source("cuda", TYPES, shape=(70, 3, 70, 5), axis=(0, 2))
    names = [line.split("(256, 2) ")[1].rstrip("(") for line in text.splitlines() if "__global__" in line]
    assert len(names) == len(set(names)) >= 2
    assert names[0] == "distance_first"
    assert names[-1] == "distance_last"


def test_after_a_call_source_shows_that_call(kernel):
    x = np.ones((100, 300), "f8")
    kernel(x, x, axis=1)
    assert "double" in kernel.source("cuda")
    assert "distance_first" not in kernel.source("cuda")
    kernel(x, x, axis=0)
    assert "distance_first" in kernel.source("cuda")


def test_a_number_is_passed_by_value(kernel):
    assert "float y,\n" in kernel.source("cuda", TYPES, scalars=["y"])


def test_what_cannot_be_shown_is_an_error(kernel):
    with pytest.raises(FusecError, match="T"):
        kernel.source("cuda")
    with pytest.raises(FusecError, match="w"):
        kernel.source("cuda", TYPES, scalars=["w"])
    with pytest.raises(IndexError):
        kernel.source("cuda", TYPES, axis=3)
    with pytest.raises(FusecError, match="vulkan"):
        kernel.source("vulkan", TYPES)


def test_explain_counts_kernels_and_bytes(kernel):
    x = np.ones((300, 20_000), "f4")
    report = kernel.explain(x, x[:1], axis=1)
    said = dict(report.lines)
    assert [topic for topic, _ in report.lines if topic.startswith("kernel")] == ["kernel 1", "kernel 2"]
    assert "3 chunks for each of 300" in said["kernel 1"]
    assert "(300, 20000) to (300,)" in said["reduces"]
    partial = 300 * 3 * 4
    assert report.bytes_moved == x.nbytes + 20_000 * 4 + 2 * partial + 300 * 4
    assert "one element after the other" in dict(kernel.explain(x, x, axis=0).lines)["kernel 1"]


@pytest.mark.parametrize("make", [fusec.ReductionKernel, fusec.ScanKernel])
def test_options_are_a_tuple_of_texts(make):
    with pytest.raises(fusec.FusecTypeError, match="must be a tuple of texts, not str"):
        make("T x", "T y", "x", "a + b", "y = a", "0", options="-DN=3")


def test_sizes_of_indexers_are_those_of_the_arguments_and_of_the_result():
    """In map_expr and in post_map_expr, in reductions of one kernel and of several."""
    mean = fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = a / (_in_ind.size() / _out_ind.size())", "0", "mean")
    sizes = fusec.ReductionKernel(
        "T x", "int64 y, int64 z, int32 n, int32 m", "_in_ind.size() * 1000000 + _out_ind.size()", "max(a, b)",
        "y = a; z = _out_ind.size(); n = _out_ind.ndim; m = _in_ind.size()", "0", "sizes", "long long",
    )  # fmt: skip
    for shape, axis in (((3, 4), 0), ((300, 4), 0), ((4, 9000), 1), ((5, 6, 7), (0, 2)), ((5, 6, 7), None)):
        x = np.random.default_rng(0).normal(size=shape).astype("f4")
        expected = x.mean(axis=axis, dtype="f8")
        for _ in range(3):
            np.testing.assert_allclose(mean(x, axis=axis), expected, rtol=1e-4, atol=1e-6)
            y, z, n, m = sizes(x, axis=axis, keepdims=True)
            assert (y == x.size * 1000000 + expected.size).all()
            assert (z == expected.size).all()
            assert (n == expected.ndim).all()
            assert (m == x.size).all()
    np.testing.assert_array_equal(mean(np.zeros((0, 2), "f4"), axis=0), [np.nan, np.nan])
    with pytest.raises(FusecError, match="_in_ind"):
        fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = _in_ind.get()[0]", "0")(np.ones(3))
