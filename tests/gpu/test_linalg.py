"""Linear algebra on devices: cuSOLVER computes it, and no CuPy is needed. Errors are bounded by residuals."""

import os
import sys
import threading

import numpy as np
import pytest

import fusec
import fusec.xp as xp
from fusec.runtime import cuda

WARM = 3  # calls before all of a call is known
SIZES = [(5,), (3, 4, 4), (2, 3, 7)]  # a matrix, and stacks of them; the last extent is that of rows
LARGE = pytest.param((300,), marks=pytest.mark.hardware)
MANY = pytest.param((500, 24), marks=pytest.mark.hardware)


@pytest.fixture(autouse=True)
def _no_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)


def values(shape, dtype, seed=0):
    """Numbers between -1 and 1."""
    own = np.random.default_rng(seed).random((2, *shape)) * 2 - 1
    return (own[0] + 1j * own[1] if np.dtype(dtype).kind == "c" else own[0]).astype(dtype)


def definite(shape, dtype):
    """Positive definite matrices whose condition numbers are small."""
    half = values(shape, dtype)
    return (half @ half.mT.conj() / shape[-1] + np.eye(shape[-1])).astype(dtype)


def square(sizes, dtype, make=values):
    return make((*sizes, sizes[-1]), dtype)


def eps(array, factor=1):
    """What may be wrong with an element of matrices of so many rows, whose elements are at most about 1."""
    size = max(array.shape[-2:]) if array.ndim > 1 else 1
    return float(np.finfo(array.dtype).eps) * size * 40 * factor


def adjoint(x):
    return x.mT.conj()


def near(found, wanted, bound, what=""):
    assert found.shape == wanted.shape
    error = np.abs(found - wanted).max(initial=0)
    assert error <= bound, f"{what}: {error:.3g} instead of {bound:.3g}"


def called(function, *arrays):
    """What several calls give in turn; the last ones are repeated ones."""
    fused = fusec.fuse(function)
    for _ in range(WARM + 1):
        given = [cuda.from_numpy(each) for each in arrays]
        found = fused(*given)
        found = found if isinstance(found, tuple) else (found,)
        yield [each.numpy() for each in found]
        for one, other in zip(given, arrays, strict=True):
            np.testing.assert_array_equal(one.numpy(), other)  # what is read is left as it is


def same_forms(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        assert (one.dtype, one.shape) == (np.asarray(other).dtype, np.shape(other))


@pytest.mark.parametrize("sizes", [*SIZES, LARGE, MANY])
@pytest.mark.parametrize("dtype", "fdFD")
def test_cholesky_factors(dtype, sizes):
    a = square(sizes, dtype, definite)

    def function(a):
        return np.linalg.cholesky(a), np.linalg.cholesky(a, upper=True)

    for lower, upper in called(function, a):
        same_forms((lower, upper), function(a))
        near(lower @ adjoint(lower), a, eps(a))
        near(adjoint(upper) @ upper, a, eps(a))
        assert not np.triu(lower, 1).any()
        assert not np.tril(upper, -1).any()


@pytest.mark.parametrize("sizes", [*SIZES, LARGE, MANY])
@pytest.mark.parametrize("dtype", "fdFD")
def test_systems_are_solved(dtype, sizes):
    a, b = square(sizes, dtype, definite), values((*sizes, 3), dtype, 1)

    def function(a, b):
        return np.linalg.inv(a), np.linalg.solve(a, b), np.linalg.solve(a.mT, b[..., :1])

    for found in called(function, a, b):
        same_forms(found, function(a, b))
        inverse, one, other = found
        near(a @ inverse, np.broadcast_to(np.eye(sizes[-1]), a.shape), eps(a))
        near(a @ one, b, eps(a))
        near(a.mT @ other, b[..., :1], eps(a))


@pytest.mark.parametrize("sizes", [*SIZES, LARGE, MANY])
@pytest.mark.parametrize("dtype", "fdFD")
def test_determinants(dtype, sizes):
    a = square(sizes, dtype, definite)
    a[..., 0, :] *= -1

    def function(a):
        return (np.linalg.det(a), *np.linalg.slogdet(a))

    wanted = function(a.astype("D" if dtype in "FD" else "d"))
    for found in called(function, a):
        same_forms(found, function(a))
        for one, other in zip(found, wanted, strict=True):
            is_held = np.abs(other) < 1e30
            np.testing.assert_allclose(one[is_held], np.asarray(other)[is_held], eps(a) * 10, eps(a))
    for sign, size in called(np.linalg.slogdet, np.zeros_like(a)):
        assert (sign == 0).all()
        assert (size == -np.inf).all()


SHAPES = [(4, 4), (3, 6), (1, 5), (40, 3), (3, 40)]
OF_SHAPES = [*((dtype, (6, 3)) for dtype in "fdFD"), *((dtype, shape) for shape in SHAPES for dtype in "fD")]
OF_SHAPES += [pytest.param("d", shape, marks=pytest.mark.hardware) for shape in ((200, 150), (150, 200), (1000, 20))]


@pytest.mark.parametrize("stack", [(), (2, 3)])
@pytest.mark.parametrize(("dtype", "shape"), OF_SHAPES)
def test_orthogonal_factors(dtype, shape, stack):
    a = values((*stack, *shape), dtype)

    def function(a):
        return (*np.linalg.qr(a), *np.linalg.qr(a, "complete"), np.linalg.qr(a, "r"))

    for found in called(function, a):
        same_forms(found, function(a))
        for q, r in (found[:2], found[2:4]):
            near(q @ r, a, eps(a))
            near(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), adjoint(q).shape[:-1] + q.shape[-1:]), eps(a))
            assert not np.tril(r, -1).any()
        np.testing.assert_array_equal(found[4], found[1])


@pytest.mark.parametrize("stack", [(), (2, 3)])
@pytest.mark.parametrize(("dtype", "shape"), OF_SHAPES)
def test_singular_values(dtype, shape, stack):
    a, few = values((*stack, *shape), dtype), min(shape)

    def function(a):
        return (*np.linalg.svd(a), *np.linalg.svd(a, full_matrices=False), np.linalg.svd(a, compute_uv=False))

    for found in called(function, a):
        wanted = function(a)
        same_forms(found, wanted)
        for u, s, vh in (found[:3], found[3:6]):
            near((u[..., :few] * s[..., None, :]) @ vh[..., :few, :], a, eps(a, 4))
            near(adjoint(u) @ u, np.broadcast_to(np.eye(u.shape[-1]), (*stack, *u.shape[-1:] * 2)), eps(a, 4))
            near(vh @ adjoint(vh), np.broadcast_to(np.eye(vh.shape[-2]), (*stack, *vh.shape[-2:-1] * 2)), eps(a, 4))
            near(s, wanted[1], eps(a, 4))
        near(found[6], wanted[6], eps(a, 4))


@pytest.mark.parametrize("uplo", "LU")
@pytest.mark.parametrize("sizes", [*SIZES, LARGE, MANY])
@pytest.mark.parametrize("dtype", "fdFD")
def test_hermitian_matrices_of_which_one_triangle_is_read(dtype, sizes, uplo):
    a = square(sizes, dtype)
    half = np.tril(a, -1) if uplo == "L" else np.triu(a, 1)
    whole = half + adjoint(half) + np.eye(sizes[-1]) * a.real

    def function(a):
        return (*np.linalg.eigh(a, uplo), np.linalg.eigvalsh(a, uplo))

    for found in called(function, a):
        wanted = function(a)
        same_forms(found, wanted)
        w, v, alone = found
        near(whole @ v, v * w[..., None, :], eps(a, 4))
        near(adjoint(v) @ v, np.broadcast_to(np.eye(sizes[-1]), a.shape), eps(a, 4))
        near(w, wanted[0], eps(a, 4))
        near(alone, wanted[2], eps(a, 4))


OF_ANY = [(dtype, sizes) for dtype in "fdFD" for sizes in ((4,), (2, 3, 4))]
OF_ANY += [pytest.param(dtype, (100,), marks=pytest.mark.hardware) for dtype in "dD"]


@pytest.mark.parametrize(("dtype", "sizes"), OF_ANY)
def test_any_square_matrices(dtype, sizes):
    a = square(sizes, dtype)
    x = xp.asarray(a, device="cuda:0")
    found, alone = xp.linalg.eig(x), xp.linalg.eigvals(x)
    w, v = (np.asarray(each.to_device("cpu")) for each in found)
    assert w.dtype == v.dtype == np.result_type(dtype, np.complex64)
    bound = 1e-6 if "FUSEC_STUB_KERNELS" in os.environ else eps(a, 10)
    near(a @ v, v * w[..., None, :], bound if dtype in "dD" else 1e-4)
    np.testing.assert_allclose(np.linalg.norm(v, axis=-2), 1, 1e-4)
    wanted = np.sort_complex(np.linalg.eigvals(a).astype("D"))
    np.testing.assert_allclose(np.sort_complex(np.asarray(alone.to_device("cpu"))), wanted, 0, 1e-3)


EMPTY = [
    lambda x: np.linalg.svd(x[:, :0]), lambda x: np.linalg.svd(x[:0]), lambda x: np.linalg.svd(x[:0], False),
    lambda x: np.linalg.qr(x[:, :0], "complete"), lambda x: np.linalg.qr(x[:, :0]), lambda x: np.linalg.qr(x[:0]),
    lambda x: (np.linalg.inv(x[:0, :0]),), lambda x: np.linalg.slogdet(x[:0, :0]), lambda x: (x[:0], np.linalg.det(x)),
    lambda x: (np.linalg.solve(x[:0, :0], x[:0]), np.linalg.solve(x, x[:, :0])), lambda x: np.linalg.eigh(x[:0, :0]),
    lambda x: (np.linalg.cholesky(x[:0, :0]), np.linalg.inv(np.broadcast_to(x, (0, 3, 3)))),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(EMPTY)))
def test_matrices_of_no_elements(case):
    for found in called(EMPTY[case], np.eye(3)):
        for one, other in zip(found, EMPTY[case](np.eye(3)), strict=True):
            np.testing.assert_array_equal(one, other)


LAYOUTS = [
    lambda x: np.linalg.inv(x.mT), lambda x: np.linalg.cholesky(x.mT), lambda x: np.linalg.inv(x[:, ::-1, ::-1])[::-1],
    lambda x: np.linalg.solve(x[0], x), lambda x: np.linalg.solve(x, x[:1]), lambda x: np.linalg.solve(x[:, None], x),
    lambda x: np.linalg.solve(x, x[0, 0]), lambda x: np.linalg.inv((x * 8).astype(int) + 9 * np.eye(5, dtype=int)),
    lambda x: np.linalg.svdvals(x > 0), lambda x: np.linalg.solve(b=x, a=x[0]), lambda x: np.linalg.pinv(x[..., :3]),
    lambda x: np.linalg.eigvalsh(x[::-1, ::-1, ::-1]), lambda x: np.linalg.det(x[:, 1:4, 1:4].transpose(0, 2, 1)),
    lambda x: np.linalg.solve(x.astype("f"), x), lambda x: np.linalg.inv(x.transpose(1, 2, 0)[:3, :3, :] + np.eye(3)),
    lambda x: np.linalg.matrix_rank(x[..., :3]), lambda x: np.linalg.cond(x), lambda x: np.linalg.cond(x, 1),
    lambda x: np.linalg.cond(x * 0, np.inf), lambda x: np.linalg.matrix_power(x, -3), lambda x: np.linalg.norm(x[0], 2),
    lambda x: np.linalg.multi_dot([x[0], x[1, :, :2], x[2, :2], x[0, 0]]),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(LAYOUTS)))
def test_other_layouts_dtypes_and_functions(case):
    a = definite((3, 5, 5), "d")
    for (found,) in called(LAYOUTS[case], a):
        wanted = LAYOUTS[case](a)
        same_forms([found], [wanted])
        np.testing.assert_allclose(found, wanted, 1e-6 if case == 13 else 1e-11, 1e-11)


FAILURES = [
    (np.linalg.cholesky, -np.eye(3), "Matrix is not positive definite"), (np.linalg.inv, np.ones((2, 2)), "Singular"),
    (lambda x: np.linalg.solve(x, x), np.zeros((3, 2, 2)), "Singular matrix"),
    (np.linalg.cholesky, np.stack([np.eye(3), -np.eye(3)]), "Matrix is not positive definite"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(FAILURES)))
def test_what_cannot_be_done_raises_numpys_error(case):
    function, bad, message = FAILURES[case]

    def shifted(x, y):
        y += 1
        return function(x)

    fused, good = fusec.fuse(shifted), np.broadcast_to(np.eye(bad.shape[-1]) * 2, bad.shape)
    y = cuda.from_numpy(np.zeros(3))
    for turn in range(WARM + 2):
        with pytest.raises(np.linalg.LinAlgError, match=message):
            fused(cuda.from_numpy(bad), y)
        fused(cuda.from_numpy(good), y)
        assert (y.numpy() == 2 * turn + 2).all()  # as NumPy, which writes before it raises
    pending = function(xp.asarray(bad, device="cuda:0"))
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match=message):
            pending.to_device("cpu")


def layered(x, y):
    factor = np.linalg.cholesky(x @ x.T + np.eye(len(x)))
    y[1:] += np.linalg.inv(factor)[1:] * 0.5
    return factor.T, np.linalg.solve(x @ x.T + 3 * np.eye(len(x)), y).sum(axis=0), np.linalg.det(x) + 1


@pytest.mark.parametrize("library", ["torch", "own"])
def test_linear_algebra_between_kernels(library):
    if library == "own":
        make, back = cuda.from_numpy, lambda each: each.numpy()
    else:
        torch = pytest.importorskip("torch")
        make, back = (lambda each: torch.from_numpy(each).cuda()), lambda each: each.cpu().numpy()
    fused, a, b = fusec.fuse(layered), values((4, 4), "d"), values((4, 4), "d", 2)
    for turn in range(WARM + 3):
        own = b.copy()
        x, y = make(a + turn), make(b.copy())
        found, wanted = fused(x, y), layered(a + turn, own)
        for one, other in zip((*found, y), (*wanted, own), strict=True):
            np.testing.assert_allclose(back(one), other, 1e-8, 1e-8)


def test_results_have_the_same_bits_each_time_and_on_other_streams():
    fused = fusec.fuse(lambda x: (np.linalg.inv(x), np.linalg.cholesky(x), *np.linalg.eigh(x), *np.linalg.svd(x[0])))
    x = cuda.from_numpy(definite((3, 6, 6), "d"))
    first = [each.numpy() for each in fused(x)]
    for turn in range(6):
        for one, other in zip(fused(x, stream=1 + turn % 2), first, strict=True):
            np.testing.assert_array_equal(one.numpy(), other)


def test_threads_solve_at_once():
    fused, found, a = fusec.fuse(lambda a: np.linalg.inv(np.linalg.inv(a) * 2) + 1), {}, definite((3, 4, 4), "d")

    def run(turn):
        x = cuda.from_numpy(a + turn)
        found[turn] = [fused(x, stream=1 + turn % 2) for _ in range(20)][-1].numpy()

    threads = [threading.Thread(target=run, args=(turn,)) for turn in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for turn in range(4):
        np.testing.assert_allclose(found[turn], (a + turn) / 2 + 1, 1e-8)


def test_lazy_arrays():
    for turn in range(WARM + 1):
        a = definite((5, 5), "d") + turn
        x = xp.asarray(a, device="cuda:0")
        found = [xp.linalg.inv(x) @ x, xp.linalg.cholesky(x), xp.linalg.slogdet(x).logabsdet, xp.linalg.eigh(x)[0]]
        wanted = [np.eye(5), np.linalg.cholesky(a), np.linalg.slogdet(a)[1], np.linalg.eigvalsh(a)]
        for one, other in zip(xp.compute(*found), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one.to_device("cpu")), other, 1e-9, 1e-9)


@pytest.mark.hardware
def test_a_draw_of_many_dimensions():
    half = values((1000, 1000), "d")
    covariance = half @ half.T / 1000 + np.eye(1000)
    factor = xp.linalg.cholesky(xp.asarray(covariance, device="cuda:0"))
    z = xp.random.normal((1000, 2000), 7, device="cuda:0")
    draws = factor @ z
    distance = xp.sum(draws * xp.linalg.solve(xp.asarray(covariance, device="cuda:0"), draws), axis=0)
    assert abs(float(xp.mean(distance)) - 1000) < 5


@pytest.mark.hardware
def test_graphs_of_pytorch_capture_factors_without_a_check():
    torch = pytest.importorskip("torch")

    def function(x):
        return np.linalg.cholesky(x) * 2

    a = definite((64, 64), "d")
    fused, x = fusec.fuse(function), torch.from_numpy(a).cuda()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM):
            fused(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = fused(x)
    for turn in range(1, 4):
        x.copy_(torch.from_numpy(a * turn))
        graph.replay()
        torch.cuda.synchronize()
        np.testing.assert_allclose(found.cpu().numpy(), function(a * turn), 1e-10)
