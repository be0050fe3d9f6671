"""Products whose blocks the next kernel reads strip by strip: the bits are those of one after the other."""

import numpy as np
import pytest

import fusec
from fusec.fusion.schedule import native_sequence
from fusec.runtime.cpu import blas

pytestmark = pytest.mark.skipif(blas.library() is None, reason="NumPy's BLAS is not OpenBLAS")
PRODUCT = fusec.fuse(lambda x, w: x @ w)
SHAPES = [
    ((200001, 6), (6, 4)), ((90000, 5), (5, 7)), ((60000, 17), (17, 33)), ((40000, 9), (9, 1)), ((30000, 40), (40, 64)),
    ((50000, 7, 5), (5, 6)), ((40000, 6, 5), (40000, 5, 6)), ((3, 40000, 9), (9, 6)),
]  # fmt: skip


@pytest.fixture
def spans(monkeypatch):
    """The spans that kernels after products got."""
    found, known = [], native_sequence.spans_of

    def noted(*given):
        found.append(known(*given))
        return found[-1]

    monkeypatch.setattr(native_sequence, "spans_of", noted)
    return found


def normal(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    return (values + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def checked(program, *given, calls=5):
    """Call a program often; every result has the bits that it has after a product alone."""
    fused, rest = fusec.fuse(lambda x, w, *others: program(x @ w, *others)), fusec.fuse(program)
    wanted = rest(PRODUCT(*given[:2]).copy(), *given[2:])
    for _ in range(calls):
        found = fused(*given)
        for one, other in zip(*(each if type(each) is tuple else (each,) for each in (found, wanted)), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize(("left", "right"), SHAPES, ids=str)
@pytest.mark.sampled(8)
def test_strips_have_the_bits_of_whole_arrays(left, right, dtype):
    x, w, b = normal(left, dtype, 0), normal(right, dtype, 1), normal(right[-1:], dtype, 2)
    for one in (x, np.asfortranarray(x), x[::-1], x[::2]):
        checked(lambda y, b: (y + b) * 2 - y, one, w, b)
    checked(lambda y, b: (abs(y + b), y), x, w, b)


def test_many_rows_by_few_columns_run_in_strips(spans):
    x, w, b = (normal(shape, "float32", seed) for seed, shape in enumerate([(2000003, 6), (6, 4), (4,)]))
    checked(lambda y, b: np.maximum(y + b, 0), x, w, b)
    assert spans[-1] is not None


PROGRAMS = {
    "elements elsewhere": lambda y, b: y + y[::-1],
    "elements before": lambda y, b: y[1:] - y[:-1],
    "a total": lambda y, b: (y / y.sum(0), y + b),
    "turned": lambda y, b: y.T * b[:, None],
    "again": lambda y, b: np.tanh(y + b) @ np.ones((len(b), 3)) + y.mean(),
    "returned too": lambda y, b: (y, y + b, (y * b)[5:]),
    "bools": lambda y, b: (y > b, y + b),
    "positions": lambda y, b: y + np.arange(len(y))[:, None],
    "viewed": lambda y, b: (y.reshape(-1, 2) + 1, y.ravel()[::-1] * 2),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_read_more_than_a_strip_wait_for_the_product(name):
    x, w, b = (normal(shape, "float64", seed) for seed, shape in enumerate([(200000, 6), (6, 4), (4,)]))
    fused = fusec.fuse(lambda x, w, b: PROGRAMS[name](x @ w, b))
    wanted = PROGRAMS[name](x @ w, b)
    for _ in range(5):
        found = fused(x, w, b)
        for one, other in zip(*(each if type(each) is tuple else (each,) for each in (found, wanted)), strict=True):
            np.testing.assert_allclose(one, other, 1e-9, 1e-9)


def test_operands_are_not_written_before_all_of_the_product_has_read_them():
    def step(x, w, other):
        x[...] = np.maximum(x @ w, 0)
        other[1:] = other[:-1] @ w
        return other @ w + 1

    w = normal((6, 6), "float64", 0)
    given, others = ([normal((200000, 6), "float64", seed) for seed in (1, 2)] for _ in range(2))
    fused = fusec.fuse(step)
    for _ in range(4):
        np.testing.assert_allclose(fused(given[0], w, given[1]), step(others[0], w, others[1]), 1e-9, 1e-9)
        for one, other in zip(given, others, strict=True):
            np.testing.assert_allclose(one, other, 1e-9, 1e-9)
            one[...] = other


def test_other_extents_have_their_own_strips(spans):
    program = fusec.fuse(lambda x, w, b: np.maximum(x @ w + b, 0))
    w, b = normal((6, 4), "float32", 0), normal((4,), "float32", 1)
    for rows in (900000, 900001, 5, 1000, 800000, 0, 1, 700003, 30000, 950000):
        x = normal((rows, 6), "float32", 2)
        for _ in range(4):
            np.testing.assert_array_equal(program(x, w, b), np.maximum(PRODUCT(x, w) + b, 0))
    assert any(each is not None for each in spans)
