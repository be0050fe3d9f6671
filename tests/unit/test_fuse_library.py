"""Every library call in fused functions gives NumPy's values, dtypes, shapes and memory order, or its error."""

import warnings

import numpy as np
import pytest

import fusec

windows = np.lib.stride_tricks.sliding_window_view
rng = np.random.default_rng(0)
A = rng.normal(size=(4, 3))
B = rng.normal(size=(3, 5))
SQUARE = rng.normal(size=(2, 3, 3)) + 3 * np.eye(3)
POSITIVE = SQUARE @ SQUARE.mT
COUNTS = rng.integers(0, 9, (4, 6))
ROW = rng.normal(size=7)
BYTES = rng.integers(0, 256, (3, 5)).astype("uint8")

ROWS = {
    "matmul": [
        (lambda a, b: a @ b, A, B), (lambda a, b: b.T @ a.T, A, B), (lambda a, b: a[0] @ b, A, B),
        (lambda a, b: a @ b[:, 0], A, B), (lambda a, b: a[0] @ b[:, 0], A, B), (lambda a, b: a @ b, A[::-1, ::-1], B),
        (lambda a, b: a @ b, SQUARE, SQUARE[0]), (lambda a, b: a @ b, SQUARE[:, None], SQUARE),
        (lambda a: a @ a.T, COUNTS), (lambda a: a @ a.T, COUNTS.astype("int8")), (lambda a: a @ a.T, COUNTS > 4),
        (lambda a: a @ a.T, A.astype("float16")), (lambda a, b: a @ b, A.astype("float32"), B.astype("complex64")),
        (lambda a: a @ a.T, np.ones((2, 0))), (lambda a: a @ a.T, np.ones((0, 2))), (lambda a: a @ [1, 2, 3], A),
        (lambda a: [1, 2, 3, 4] @ a, A), (lambda a: np.ones(4) @ a, A),
        (lambda a, b: np.matmul(a, b, dtype="f4"), A, B),
        (lambda a: np.matmul(a, a.T, axes=[(-1, -2), (-1, -2), (-1, -2)]), A),
    ],
    "products": [
        (lambda a, b: np.dot(a, b), A, B), (lambda a: a.dot(2), A), (lambda a: np.dot(a[0], a[1]), A),
        (lambda a: a.dot(2), A.T.astype("f4")), (lambda a, n: np.inner(a, n), A.astype("f4"), 3),
        (lambda a, b: np.dot(a, b), SQUARE, SQUARE), (lambda a: np.inner(a, a), A), (lambda a: np.inner(a, 3.0), A),
        (lambda a, b: np.vdot(a, b), A, A + 1j), (lambda a, b: np.tensordot(a, b, 1), A, B),
        (lambda a: np.tensordot(a, a, ([0], [0])), COUNTS), (lambda a: np.tensordot(a, a, 0), A),
        (lambda a: np.outer(a, a), COUNTS[0]), (lambda a: np.vecdot(a, a), A + 2j),
        *([(lambda a, b: np.matvec(b.T, a), A, B), (lambda a, b: np.vecmat(a, b), A, B)] * hasattr(np, "matvec")),
        (lambda a, b: np.linalg.multi_dot([a, b, b.T]), A, B),
        (lambda a: np.linalg.matrix_power(a, 3), SQUARE), (lambda a: np.linalg.matrix_power(a, 0), SQUARE),
        (lambda a: np.linalg.matrix_power(a, 1), SQUARE), (lambda a: np.linalg.matrix_power(a, -1), SQUARE),
        (lambda a: np.linalg.norm(a), A), (lambda a: np.linalg.norm(a, np.inf, 1), A.astype("f4")),
        (lambda a: np.linalg.norm(a, "nuc", (0, 1), keepdims=True), A), (lambda a: np.linalg.norm(a, 0, 0), COUNTS),
        (lambda a, b: np.linalg.matmul(a, b), A, B), (lambda a, b: np.linalg.tensordot(a, b, axes=1), A, B),
        (lambda a: np.linalg.outer(a, a), COUNTS[0]), (lambda a: np.linalg.diagonal(a), SQUARE),
        (lambda a: np.linalg.vecdot(a, a, axis=0), A),
    ],
    "einsum": [
        *[(lambda a, b, t=t: np.einsum(t, a, b), A, B) for t in (
            "ij,jk->ik", "ij,jk", "ij,jk->ki", "ij,jk->", "...j,jk->...k", "ij,jk->ijk")],
        *[(lambda a, t=t: np.einsum(t, a), SQUARE) for t in (
            "ijk->kji", "ijj->i", "ijj->ij", "...jk->...kj", "ijk", "kji", "ijk->j")],
        *[(lambda a, t=t: np.einsum(t, a, a), SQUARE) for t in (
            "ijk,ikl->ijl", "ijk,ljk->il", "ijk,ijk->i", "ijj,ikk->jk", "ijk,ikl->lij",
            "...jk,...kl->...jl")],
        *[(lambda a, t=t: np.einsum(t, a, a), COUNTS.astype("int8")) for t in ("ij,kj->ik", "ij,ij->i")],
        (lambda a: np.einsum("ij,kj->ik", a, a), COUNTS > 4), (lambda a: np.einsum("ij,ij->i", a, a), COUNTS > 7),
        (lambda a, b: np.einsum(a, [0, 1], b, [1, 2], [0, 2]), A, B),
        (lambda a, b: np.einsum(a, [0, 1], b, [1, 2]), A, B),
        (lambda a, b: np.einsum("ij,jk,kl", a, b, b.T, optimize=True), A, B),
        (lambda a: np.einsum("i,j", a, a), COUNTS[0]),
        (lambda a: np.einsum("ij,j->i", a, [1, 2, 3]), A),
        (lambda a, b: np.einsum("ij,jk->ik", a, b, dtype="c16"), A, B),
        (lambda a, b: np.einsum("ij,jk->ik", a, b), A.T.copy().T, B[:, ::-2]),
        (lambda a: np.einsum("ij,kj->ik", a, a), A[:, :0]),
        (lambda a: np.einsum("ij,jk->ik", a.T, a + 1j), A), (lambda a: np.einsum("ij,kj->ik", a, a), A.astype("f4")),
        (lambda a: np.einsum("ijkl,kl->ij", windows(a, (2, 2)), a[:2, :2]), COUNTS),
        (lambda a: windows(a * 2 + 1, 2, axis=0).sum(-1), COUNTS),
        (lambda a: windows(a, (2, 3)).max(axis=(-1, -2)), COUNTS),
        (lambda a: np.einsum("ijkl,okl->oij", windows(a, (2, 2)), windows(a[0], (2,))[:4, None] * [[1], [2]]), COUNTS),
    ],
    "linalg": [
        *[(getattr(np.linalg, name), SQUARE) for name in ("inv", "det", "slogdet", "qr", "svd", "pinv", "cond")],
        *[(getattr(np.linalg, name), POSITIVE) for name in ("cholesky", "eigh", "eigvalsh")],
        (lambda a: np.linalg.svd(a, full_matrices=False), A), (lambda a: np.linalg.svd(a, compute_uv=False), A.T),
        (lambda a: np.linalg.qr(a, mode="complete"), A), (lambda a: np.linalg.qr(a, mode="r"), A),
        (lambda a: np.linalg.inv(a), SQUARE.astype("float32")), (lambda a: np.linalg.inv(a), np.asfortranarray(SQUARE)),
        (lambda a, b: np.linalg.solve(a, b), SQUARE[0], B), (lambda a, b: np.linalg.solve(a, b), SQUARE[0], B[:, 0]),
        (lambda a: np.linalg.matrix_rank(a), SQUARE), (lambda a: np.linalg.eigh(a).eigenvectors, POSITIVE[0]),
        (lambda a: np.linalg.slogdet(a).logabsdet, COUNTS[:4, :4]), (lambda a: np.linalg.inv(a), np.ones((0, 0))),
    ],
    "fft": [
        *[(getattr(np.fft, name), ROW) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")],
        *[(getattr(np.fft, name), A) for name in ("fft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")],
        (lambda a: np.fft.rfft(a, axis=0), A.astype("float32")), (lambda a: np.fft.fft(a, 6, 0), A),
        (lambda a: np.fft.irfft(a, 5, axis=0), A), (lambda a: np.fft.fft(a, 3, axis=0), A[:0]),
        (lambda a: np.fft.irfftn(a, (2, 4), (1, 0)), A[:1]), (lambda a: np.fft.rfft(a, 3, norm="ortho"), A.T),
        (lambda a: np.fft.rfftn(a, (2, 4), (1, 0)), A), (lambda a: np.fft.irfftn(a, (2, -1), (1, 0)), A),
        (lambda a: np.fft.fftshift(a), A), (lambda a: np.fft.ifftshift(a, 0), A),
        (lambda a: np.fft.fftshift(a, (1,)), A),
        (lambda a: np.fft.fftn(a.transpose(2, 0, 1), (2, 1), (1, 0)), np.arange(4.0).reshape(1, 2, 2)),
        (lambda a: np.fft.fft(a.transpose(2, 0, 1), 1, 0), np.arange(12.0).reshape(3, 2, 2)),
        (lambda a: np.fft.fft(a, axis=0), A.T), (lambda a: np.fft.fftn(a, axes=(0,)), COUNTS),
    ],
    "sorting": [
        (np.sort, COUNTS), (np.argsort, COUNTS), (lambda a: np.sort(a, axis=0), COUNTS), (np.sort_complex, COUNTS),
        (lambda a: np.sort(a, None), COUNTS), (lambda a: np.sort(a, axis=0), COUNTS.T),
        (lambda a: a.argsort(0), COUNTS),
        (lambda a: np.argsort(a, axis=None, kind="stable"), COUNTS), (lambda a: np.argsort(a, stable=True), COUNTS[0]),
        (lambda a: np.partition(a, 3), COUNTS), (lambda a: np.partition(a, 3, axis=0), COUNTS),
        (lambda a: np.argpartition(a, (1, 3), axis=-1)[..., 1], COUNTS),
        (lambda a: np.partition(a, 7, None)[7], COUNTS),
        (lambda a: np.lexsort((a[0], a[1])), COUNTS), (lambda a: np.lexsort(a), COUNTS),
        (lambda a, b: np.searchsorted(a, b), np.sort(ROW), A),
        (lambda a, n: np.searchsorted(a, n, "right"), np.sort(ROW), 0.5),
        (lambda a, b: np.searchsorted(a, b, sorter=np.argsort(a)), ROW, A),
        (lambda a: a.searchsorted(3), np.sort(COUNTS[0])),
        (lambda a: np.digitize(a, [0, 2, 5]), COUNTS), (lambda a, b: np.digitize(a, b, right=True), A, np.sort(ROW)),
        (lambda a, b: np.interp(a, b, b * 2), A, np.sort(ROW)),
        (lambda a, n: np.interp(n, a, a, left=n), np.sort(ROW), 0.5),
        (lambda a: np.histogram(a, 5), A), (lambda a: np.histogram(a, [0.0, 1, 2], density=True), A),
        (lambda a, n: np.histogram(a, n, weights=a), A, 3), (lambda a, b: np.histogram(a, b)[0], A, np.sort(ROW)),
        (lambda a: np.convolve(a, [1, 2, 1]), ROW), (lambda a, b: np.convolve(a, b, "same"), ROW, COUNTS[0]),
        (lambda a, b: np.correlate(a, b), ROW, COUNTS[0]), (lambda a, b: np.correlate(a, b, mode="full"), ROW, A[0]),
        (lambda a: np.unravel_index(a, (3, 4))[0] * 1, COUNTS), (lambda a: np.ravel_multi_index((a[0], a[1]),
        (9, 9)), COUNTS),
        (lambda a: np.ravel_multi_index(a[:2], (9, 9)), COUNTS), (np.packbits, COUNTS > 4),
        (lambda a: np.packbits(a, axis=0, bitorder="little"), COUNTS > 4),
        (np.unpackbits, BYTES), (lambda a: np.unpackbits(a, axis=1, count=11), BYTES),
        (lambda a: np.unpackbits(a, axis=0, count=-2), BYTES), (np.median, COUNTS), (lambda a: np.median(a, 0), A.T),
        (lambda a: np.median(a, axis=(0, 1), keepdims=True), A), (lambda a: np.nanmedian(a, -1), A),
        (lambda a: np.percentile(a, 30), A), (lambda a: np.percentile(a, [10, 50, 90], axis=0), A),
        (lambda a, q: np.quantile(a, q, axis=1, keepdims=True), A, 0.25),
        (lambda a: np.quantile(a, a[0] * 0, axis=1), A),
        (lambda a: np.nanquantile(a, 0.5, method="lower"), A.astype("float32")), (lambda a: np.median(a), np.ones(0)),
    ],
}  # fmt: skip


def parts(found):
    return found if isinstance(found, (tuple, list)) else (found,)


def steps(array):
    return [stride for extent, stride in zip(array.shape, array.strides, strict=True) if extent > 1]


def assert_alike(ours, theirs):
    assert type(ours) is type(theirs)
    for our, their in zip(parts(ours), parts(theirs), strict=True):
        assert (type(our), our.dtype, our.shape) == (type(their), their.dtype, their.shape)
        np.testing.assert_allclose(our, their, rtol=1e-3 if our.dtype.char == "e" else 1e-5, atol=1e-6)
        if our.size:
            assert steps(our) == steps(their)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.sampled(3)
def test_a_call_of_a_library_is_numpys(rows):
    for function, *args in ROWS[rows]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = function(*args)
            fused = fusec.fuse(function if function.__name__ == "<lambda>" else lambda a, f=function: f(a))
            for _ in range(2):
                assert_alike(fused(*args), expected)


@pytest.mark.parametrize("order", [None, 1, -1, 2, -2, np.inf, -np.inf, "nuc", "fro"])
def test_norms_of_a_matrix_are_numbers(order):
    def norms(a):
        return np.linalg.norm(a, order), np.linalg.matrix_norm(a, ord=order or "fro"), np.linalg.norm(a, order, (0, 1))

    for a in (np.diag([3.0, 4.0]), np.arange(6, dtype="f4").reshape(2, 3)):
        for found, expected in zip(fusec.fuse(norms)(a), norms(a), strict=True):
            assert type(found) is type(expected)
            np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("mode", ["raise", "clip", "wrap"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_integers_choose_arrays_as_in_numpy(mode, order):
    def choose(x, y):
        return np.choose(x, [0, y, y * 2], mode=mode) + 1

    x, y = np.array([[0, 1, 2], [2, 1, 0]], order=order), np.array([1.5, 2, 3])
    fused, wanted = fusec.fuse(choose), choose(x, y)
    for _ in range(3):
        found = fused(x, y)
        np.testing.assert_array_equal(found, wanted, strict=True)
        assert found.strides == wanted.strides
    x[0, 1] = 3
    if mode == "raise":
        with pytest.raises(ValueError, match="invalid entry in choice array"):
            fused(x, y)
        with pytest.raises(ValueError, match="0-length sequence"):
            fusec.fuse(lambda x: np.choose(x, []))(x)
    else:
        np.testing.assert_array_equal(fused(x, y), choose(x, y), strict=True)
