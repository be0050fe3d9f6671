"""Kernels compute products of vectors, of long rows with few results, and of short rows; a library the others."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusec

rng = np.random.default_rng(0)
VECTORS = fusec.fuse(lambda a, b: a @ b)
DTYPES = ["float32", "float64", "complex64", "int32", "uint8"]


def laid_out(shape, dtype, layout):
    """An array whose rows lie one behind the other, perhaps with gaps, or backwards, or are interleaved."""
    made = (rng.normal(size=(*shape[:-1], shape[-1] * 2)) * 50).astype(dtype)
    if np.dtype(dtype).kind == "c":
        made += made[..., ::-1] * np.asarray(1j, dtype)
    if layout == "dense":
        return made[..., : shape[-1]]
    return np.asfortranarray(made[..., ::2]) if layout == "interleaved" else made[..., :: 2 if layout == "gaps" else -2]


LAYOUTS = st.sampled_from(["dense", "gaps", "backwards", "interleaved"])


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 8), st.integers(0, 8), st.sampled_from([127, 128, 129, 1000, 4097, 9000]), st.sampled_from(DTYPES),
    st.sampled_from(DTYPES), LAYOUTS, LAYOUTS, st.sampled_from(["matmul", "dot"]),
)  # fmt: skip
def test_products_of_matrices_have_the_bits_of_those_of_vectors(rows, columns, length, one, other, of_a, of_b, name):
    a, b = laid_out((rows, length), one, of_a), laid_out((columns, length)[not columns :], other, of_b)
    function = getattr(np, name)
    with np.errstate(all="ignore"):
        found, wanted = fusec.fuse(lambda a, b: function(a, b.T))(a, b), function(a, b.T)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        scale = np.abs(a).astype(float) @ np.abs(b.T).astype(float)
        assert (np.abs(found - wanted) <= (1e-5 * scale if wanted.dtype.kind in "fc" else 0)).all()
        several = [layout for extent, layout in ((rows, of_a), (columns, of_b)) if extent > 1]
        between = several == ["interleaved"] and rows * max(columns, 1) > 4
        if rows * max(columns, 1) > 16 or length < 128 or between:
            if name == "matmul":  # np.dot has other bits for few columns on some processors
                np.testing.assert_array_equal(found, wanted)
            return
        for row, made in zip(a, found, strict=True):
            for column, each in zip(np.atleast_2d(b), np.atleast_1d(made), strict=True):
                assert each == VECTORS(row, column)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([0, 1, 5, 127, 128, 200]), st.sampled_from([0, 1, 4, 130]), st.integers(1, 9),
    st.sampled_from(["float32", "float64", "int32", "uint8"]), st.sampled_from(["float64", "int32"]), LAYOUTS, LAYOUTS,
)  # fmt: skip
def test_products_of_short_rows_add_in_order(rows, columns, length, one, other, of_a, of_b):
    a, b = laid_out((rows, length)[not rows :], one, of_a), laid_out((columns, length)[not columns :], other, of_b).T
    if a.ndim == b.ndim == 1:
        a = a[None]
    fused = fusec.fuse(lambda a, b: a @ b)
    with np.errstate(all="ignore"):
        found, wanted = fused(a, b), a @ b
        assert (found.shape, found.dtype, found.strides) == (wanted.shape, wanted.dtype, wanted.strides)
        is_turned = b.ndim == 2 and columns > 16 and abs(b.strides[1]) > abs(b.strides[0])
        is_copied = a.ndim == 2 and rows >= 128
        if length > (4 if a.ndim == b.ndim else 8) or max(rows, columns) < 128 or (is_turned and not is_copied):
            np.testing.assert_array_equal(found, wanted)
            return
        a, b = a.astype(wanted.dtype), b.astype(wanted.dtype)
        in_order = [np.multiply.outer(a[..., at], b[at]) for at in range(length)]
        np.testing.assert_array_equal(found, sum(in_order[1:], in_order[0]))


@pytest.mark.parametrize("lengths", [(3, 4, 5, 3), (9, 8, 1)])
def test_plans_for_other_short_rows_are_others(lengths):
    product = fusec.fuse(lambda a, b: 2 * (a @ b))
    for length in lengths:
        for columns in ((), (3,)):
            a, b = rng.normal(size=(300, length)), rng.normal(size=(length, *columns))
            np.testing.assert_allclose(product(a, b), 2 * (a @ b), 1e-12, 1e-12)


def test_products_of_short_rows_share_the_kernel_of_what_surrounds_them():
    fused = fusec.fuse(lambda x, w, y: x.T @ (np.tanh(x @ w) - y))
    report = fused.explain(*(rng.normal(size=shape) for shape in ((2000, 4), 4, 2000)))
    assert report.kernels == 2
    assert "library call" not in str(report)


@pytest.mark.parametrize("text", ["ik,jk->ij", "ki,jk->ji", "ki,kj->ij", "ik,kj"])
def test_contractions_of_two_axes_are_such_products(text):
    left, right = text.partition("->")[0].split(",")
    a, b = (rng.normal(size=[{"k": 500, "i": 3, "j": 4}[each] for each in term]) for term in (left, right))
    fused = fusec.fuse(lambda a, b: np.einsum(text, a, b) * 2)
    found = fused(a, b)
    np.testing.assert_allclose(found, np.einsum(text, a, b) * 2, 1e-11, 1e-11)
    assert "library call" not in str(fused.explain(a, b))
    one, other = a if left[1] == "k" else a.T, b.T if right[0] == "k" else b
    assert found[(1, 2) if text.endswith("ji") else (2, 1)] == 2 * VECTORS(one[2], other[1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_products_of_vectors_are_the_same_sum(dtype):
    a, b = (laid_out((1000,), dtype, "dense") for _ in range(2))
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


@pytest.mark.parametrize("a", [np.ones((3, 300), "float16"), np.ones((3, 300)) > 0, np.ones((20, 300))])
def test_other_products_are_the_librarys(a):
    assert "library call" in str(fusec.fuse(lambda a: a @ a.T).explain(a))


def test_vectors_of_different_lengths_are_refused_as_in_numpy():
    with pytest.raises(ValueError, match="mismatch"):
        VECTORS(np.ones(3), np.ones(4))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("text", "of"), [("ijkl,okl->oij", (2, 3, 3)), ("klij,kl->ij", (2, 3)), ("ijkl,mil->jkm", (4, 9, 3))]
)
@pytest.mark.sampled(5)
def test_products_of_windows_are_summed_without_a_copy(text, of, dtype):
    image, weight = laid_out((11, 14), dtype, "gaps"), laid_out(of, dtype, "dense")

    def filtered(image, weight):
        windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3))
        return np.einsum(text, windows if text[0] == "i" else windows.transpose(2, 3, 0, 1)[1:], weight)

    fused = fusec.fuse(filtered)
    for part in (image, image[1:, :-3] if text[-1] == "j" else image):
        with np.errstate(all="ignore"):
            found, wanted = fused(part, weight), filtered(part, weight)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-3 * np.abs(wanted).max())
    assert ("library call" in str(fused.explain(image, weight))) == (of == (4, 9, 3))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize(
    ("one", "other"),
    [((3, 150, 4), (3, 4, 7)), ((2, 1, 5, 3), (200, 3, 1)), ((150, 2), (3, 2, 2)), ((3, 5), (4, 5, 150)),
     ((4, 150, 7), 7), (2, (2, 150)), (3, (200, 3, 3)), ((0, 130, 4), (4, 3)), ((130, 3, 0), (0, 3))],
)  # fmt: skip
@pytest.mark.sampled(5)
def test_products_of_several_matrices_of_short_rows_add_in_order(one, other, dtype):
    a, b = ((rng.normal(size=shape) * 9).astype(dtype) for shape in (one, other))
    for x, y in ((a, b), (np.asfortranarray(a), b), (a, np.ascontiguousarray(b.T).T)):
        fused = fusec.fuse(lambda a, b: a @ b)
        found, wanted = fused(x, y), x @ y
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-4)
        is_turned = y.strides[-1] > y.itemsize and y.shape[-1] > 16 and x.shape[-2:][0] < 128
        assert ("library call" in str(fused.explain(x, y))) == (x.shape[-1] in (0, 5) or is_turned)


@pytest.mark.parametrize("dtype", ["float32", "complex128", "uint8"])
@pytest.mark.parametrize("shape", [(150, 3), (2, 131, 4), (3, 2, 128, 1)], ids=str)
def test_columns_that_lie_apart_are_laid_out_once_for_many_rows(shape, dtype):
    def scaled(x, y):
        return 2 * (x @ y.swapaxes(-1, -2)).T

    fused, plain = fusec.fuse(scaled), fusec.fuse(lambda x, y: (x * 2) @ y)
    x, y = (laid_out(shape, dtype, "dense") for _ in range(2))
    for other in (y, y[..., 1:, :], y[..., ::-1, :], np.broadcast_to(y[..., :1, :, :], y.shape) if y.ndim > 3 else y):
        found = fused(x, other)
        assert np.array_equal(found.T, plain(x, np.ascontiguousarray(other.swapaxes(-1, -2))))
        assert found.strides == scaled(x, other).strides
    report = fused.explain(x, y)
    assert report.kernels == 2
    assert "library call" not in str(report)


def test_plans_for_columns_that_lie_otherwise_are_others():
    product = fusec.fuse(lambda a, b: 2 * (a @ b))
    for rows, columns in ((200, 300), (200, 3), (3, 200), (130, 17), (17, 130), (200, 301)):
        a, b = rng.normal(size=(rows, 3)), rng.normal(size=(columns, 3))
        for _ in range(3):
            np.testing.assert_allclose(product(a, b.T), 2 * (a @ b.T), 1e-12, 1e-12)
            np.testing.assert_array_equal(product(a, b.T), fusec.fuse(product.__wrapped__)(a, b.T))


@pytest.mark.parametrize("first", [(2, 5), (3, 4), (2, 1500), (40, 3)], ids=str)
def test_products_by_labels_have_the_same_bits_whatever_was_called_before(first):
    rng = np.random.default_rng(0)
    y = rng.normal(size=(2, 1000))
    used, fresh = (fusec.fuse(lambda y: np.einsum("ij,kj->ik", y, y)) for _ in range(2))
    used(rng.normal(size=first))
    assert np.array_equal(used(y), fresh(y))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64"])
def test_vecdot_of_integers_is_summed_by_a_kernel(dtype):
    rng = np.random.default_rng(5)
    x, y = (rng.integers(0, 255, (4, 5, 3)).astype(dtype) for _ in range(2))
    for axis in (-1, 0, 1):
        fused = fusec.fuse(lambda x, y, axis=axis: np.vecdot(x, y, axis=axis))
        found, wanted = fused(x, y), np.vecdot(x, y, axis=axis)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
        assert fused.explain(x, y).kernels == 1
