"""Products of vectors, and those with few results of long rows, are sums of kernels; all others are the library's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusec

rng = np.random.default_rng(0)
VECTORS = fusec.fuse(lambda a, b: a @ b)
DTYPES = ["float32", "float64", "complex64", "int32", "uint8"]


def laid_out(shape, dtype, step, backwards):
    """An array whose rows lie one behind the other, perhaps with gaps, or backwards."""
    made = (rng.normal(size=(*shape[:-1], shape[-1] * step)) * 50).astype(dtype)
    if np.dtype(dtype).kind == "c":
        made += made[..., ::-1] * np.asarray(1j, dtype)
    return made[..., :: -step if backwards else step]


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 8), st.integers(0, 8), st.sampled_from([127, 128, 129, 1000, 4097, 9000]), st.sampled_from(DTYPES),
    st.sampled_from(DTYPES), st.integers(1, 2), st.booleans(), st.sampled_from(["matmul", "dot"]),
)  # fmt: skip
def test_products_of_matrices_have_the_bits_of_those_of_vectors(rows, columns, length, one, other, step, back, name):
    a, b = laid_out((rows, length), one, step, back), laid_out((columns, length)[not columns :], other, step, back)
    function = getattr(np, name)
    product = fusec.fuse(lambda a, b: function(a, b.T))
    with np.errstate(all="ignore"):
        found, wanted = product(a, b), function(a, b.T)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        scale = np.abs(a).astype(float) @ np.abs(b.T).astype(float)
        bound = 1e-5 * scale if wanted.dtype.kind in "fc" else 0
        assert (np.abs(found - wanted) <= bound).all()
        if rows * max(columns, 1) > 16 or length < 128:
            np.testing.assert_array_equal(found, wanted)
            return
        for at, row in enumerate(a):
            for i, column in enumerate(np.atleast_2d(b)):
                assert np.ravel(found[at])[i] == VECTORS(row, column)


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_products_of_vectors_are_the_same_sum(dtype):
    a, b = (laid_out((1000,), dtype, 1, False) for _ in range(2))
    forms = [np.dot, np.inner, np.matmul, lambda a, b: np.vdot(np.conj(a), b), lambda a, b: np.vecdot(a.conj(), b),
             lambda a, b: np.multiply(a, b).sum(dtype=dtype)]  # fmt: skip
    found = [fusec.fuse(form)(a, b) for form in forms]
    assert {each.dtype for each in found} == {np.dtype(dtype)}
    assert len({each.item() for each in found}) == 1


@pytest.mark.parametrize("lengths", [(100, 1000, 101), (1000, 100, 1001), (128, 127, 126)])
def test_plans_for_other_lengths_keep_the_bits(lengths):
    @fusec.fuse
    def product(a, b):
        return 2 * (a @ b)

    for length in lengths:
        for _ in range(3):
            a, b = rng.normal(size=(3, length)), rng.normal(size=length)
            np.testing.assert_array_equal(product(a, b), fusec.fuse(product.__wrapped__)(a, b))


def test_what_surrounds_the_products_shares_their_kernel():
    def loss(x, y):
        return (x - y) @ (x - y) / len(x), np.sqrt((x + y) @ (x + y))

    x, y = rng.normal(size=(2, 1000))
    fused = fusec.fuse(loss)
    np.testing.assert_allclose(fused(x, y), loss(x, y))
    assert fused.explain(x, y).kernels == 1


def test_products_are_stored_where_they_are_to_be():
    def changed(x, out):
        np.matmul(x, x.T, out=out)
        x *= 2
        x[:, :3] = x @ x.T
        return x @ out[0].repeat(100)

    args, others = ([rng.normal(size=(3, 300)), np.zeros((3, 3))] for _ in range(2))
    others[0][...] = args[0]
    found, wanted = fusec.fuse(changed)(*args), changed(*others)
    for one, other in zip([found, *args], [wanted, *others], strict=True):
        np.testing.assert_allclose(one, other, 1e-10, 1e-10)


@pytest.mark.parametrize(
    "a", [np.ones((3, 300), "float16"), np.ones((3, 300)) > 0, np.ones((20, 300)), np.ones((300, 3)).T]
)
def test_other_products_are_the_librarys(a):
    assert "library call" in str(fusec.fuse(lambda a: a @ a.T).explain(a))


def test_vectors_of_different_lengths_are_refused_as_in_numpy():
    with pytest.raises(ValueError, match="mismatch"):
        VECTORS(np.ones(3), np.ones(4))
