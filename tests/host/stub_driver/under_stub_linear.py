"""Run by test_stub_driver.py: linear algebra on devices by a stand-in for cuSOLVER, without CuPy."""

import ctypes
import threading
from unittest import mock

import numpy as np
import pytest
from under_stub_products import no_cupy  # noqa: F401 - a fixture

import fusec
import fusec.xp as xp
from fusec.errors import FusecError
from fusec.fusion.devices.device_repeats import RepeatedCall
from fusec.runtime import cuda
from fusec.runtime.cuda import libraries, solvers

pytestmark = [pytest.mark.usefixtures("host_twins"), pytest.mark.usefixtures("no_cupy")]
RNG = np.random.default_rng(7)
STACKS = [(), (1,), (3,), (2, 3), (0,)]


def called(*entries):
    """How many calls of these entries of cuSOLVER there were since the last look."""
    library = ctypes.CDLL("libcusolver.so.12")
    library.stub_cusolver_log.restype = ctypes.c_char_p
    log = library.stub_cusolver_log().decode()
    library.stub_cusolver_log_clear()
    return [log.count(f"{each} ") for each in entries]


def values(shape, dtype):
    """Numbers between -1 and 1."""
    own = RNG.random((2, *shape)) * 2 - 1
    return (own[0] + 1j * own[1] if np.dtype(dtype).kind == "c" else own[0]).astype(dtype)


def definite(shape, dtype):
    """Positive definite matrices."""
    half = values(shape, dtype)
    return (half @ half.mT.conj() + np.eye(shape[-1])).astype(dtype)


def close(found, wanted):
    found, tolerance = found.numpy(), 2e-4 if np.dtype(wanted.dtype).char in "fF" else 1e-9
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, tolerance, tolerance)


def check(function, *arrays, calls=4, compare=close):
    """Compare all calls, of which the last ones are repeated ones, with NumPy."""
    fused, wanted = fusec.fuse(function), function(*(each.copy() for each in arrays))
    for _ in range(calls):
        given = [cuda.from_numpy(each) for each in arrays]
        found = fused(*given)
        if isinstance(wanted, tuple):
            for one, other in zip(found, wanted, strict=True):
                compare(one, np.asarray(other))
        else:
            compare(found, np.asarray(wanted))
        for one, other in zip(given, arrays, strict=True):
            np.testing.assert_array_equal(one.numpy(), other)  # what is read is left as it is
    return found


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.sampled(5)
def test_cholesky(dtype, stack):
    a = definite((*stack, 5, 5), dtype)
    check(lambda a: (np.linalg.cholesky(a), np.linalg.cholesky(a, upper=True)), a)


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.sampled(5)
def test_systems(dtype, stack):
    a, b = definite((*stack, 4, 4), dtype), values((*stack, 4, 3), dtype)
    check(lambda a, b: (np.linalg.inv(a), np.linalg.solve(a, b), np.linalg.solve(a.mT, b[..., :1])), a, b)
    check(lambda a, b: np.linalg.solve(a, b), a, values((4,), dtype), calls=1)


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.sampled(5)
def test_determinants(dtype, stack):
    a = values((*stack, 5, 5), dtype)
    check(lambda a: (np.linalg.det(a), *np.linalg.slogdet(a)), a)
    check(lambda a: (np.linalg.det(a), *np.linalg.slogdet(a)), np.zeros_like(a), calls=1)


SHAPES = [(4, 4), (6, 3), (3, 6), (1, 1), (5, 1), (1, 5)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.sampled(5)
def test_qr(dtype, shape):
    for stack in ((), (2, 3)):
        a = values((*stack, *shape), dtype)
        check(
            lambda a: (*np.linalg.qr(a), *np.linalg.qr(a, "complete"), np.linalg.qr(a, "r"), *np.linalg.qr(a, "raw")),
            a,
            calls=2,
        )


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", [*SHAPES, (40, 3), (3, 40)])
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.sampled(5)
def test_singular_values(dtype, shape, full):
    few = min(shape)

    def function(a):
        u, s, vh = np.linalg.svd(a, full)
        whole = (u[..., :few] * s[..., None, :]) @ vh[..., :few, :]
        others = np.linalg.svd(a, compute_uv=False), np.linalg.svdvals(a)
        return whole, s, *others, u.mT.conj() @ u, vh @ vh.mT.conj()

    for stack in ((), (2, 3)):
        check(function, values((*stack, *shape), dtype), calls=2)


@pytest.mark.parametrize("uplo", "LU")
@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.sampled(5)
def test_hermitian_matrices(dtype, stack, uplo):
    a = values((*stack, 5, 5), dtype)  # of which one triangle is read

    def function(a):
        w, v = np.linalg.eigh(a, uplo)
        return w, (v * w[..., None, :]) @ v.mT.conj(), np.linalg.eigvalsh(a, uplo)

    check(function, a)


@pytest.mark.parametrize("dtype", "fdFD")
def test_any_square_matrices(dtype):
    for stack in ((), (2, 2), (0,)):
        a = values((*stack, 4, 4), dtype)
        x = xp.asarray(a, device="cuda:0")
        found, alone = xp.linalg.eig(x), xp.linalg.eigvals(x)
        w, v = (np.asarray(each.to_device("cpu")) for each in found)
        assert w.dtype == v.dtype == np.result_type(dtype, np.complex64)
        np.testing.assert_allclose(a @ v, v * w[..., None, :], 0, 2e-4 if dtype in "fF" else 1e-7)
        np.testing.assert_allclose(np.linalg.norm(v, axis=-2), 1, 1e-4)
        np.testing.assert_allclose(np.sort(np.asarray(alone.to_device("cpu"))), np.sort(w), 1e-3, 1e-3)


EMPTY = [
    lambda x: np.linalg.svd(x[:, :0]), lambda x: np.linalg.svd(x[:0, :]), lambda x: np.linalg.svd(x[:0, :], False),
    lambda x: np.linalg.qr(x[:, :0], "complete"), lambda x: np.linalg.qr(x[:, :0]), lambda x: np.linalg.qr(x[:0]),
    lambda x: np.linalg.inv(x[:0, :0]), lambda x: np.linalg.det(x[:0, :0]), lambda x: np.linalg.slogdet(x[:0, :0]),
    lambda x: np.linalg.solve(x[:0, :0], x[:0]), lambda x: np.linalg.solve(x, x[:, :0]),
    lambda x: np.linalg.eigh(x[:0, :0]), lambda x: np.linalg.cholesky(x[:0, :0]),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(EMPTY)))
def test_matrices_of_no_elements(case):
    check(lambda x: tuple(np.atleast_1d(EMPTY[case](x))) if case == 7 else EMPTY[case](x), np.eye(3), calls=2)


LAYOUTS = [
    lambda x: np.linalg.inv(x.mT), lambda x: np.linalg.cholesky(x.mT), lambda x: np.linalg.inv(x[:, ::-1, ::-1])[::-1],
    lambda x: np.linalg.cholesky(np.swapaxes(x, 0, 1).reshape(5, 3, 5).transpose(1, 0, 2) * 0 + x),
    lambda x: np.linalg.solve(x[0], x), lambda x: np.linalg.solve(x, x[:1]), lambda x: np.linalg.solve(x[:, None], x),
    lambda x: np.linalg.solve(x[:1], x[0, 0]), lambda x: np.linalg.inv((x * 8).astype(int) + 9 * np.eye(5, dtype=int)),
    lambda x: np.linalg.svdvals(x > 0), lambda x: np.linalg.solve(a=x, b=x[0]),
    lambda x: np.linalg.solve(b=x, a=x[0]),
    lambda x: np.linalg.eigvalsh(x[::-1, ::-1, ::-1]), lambda x: np.linalg.det(x[:, 1:4, 1:4].transpose(0, 2, 1)),
    lambda x: np.linalg.solve(x.astype("f"), x), lambda x: np.linalg.qr(x.transpose(2, 1, 0)),
    lambda x: np.linalg.inv(x.transpose(1, 2, 0)[:3, :3, :] + 3 * np.eye(3)),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(LAYOUTS)))
@pytest.mark.sampled(3)
def test_other_layouts_and_dtypes(case):
    check(LAYOUTS[case], definite((3, 5, 5), "d"))


def layered(x, y):
    """What nobody sees, what is returned, and writes before what may fail."""
    factor = np.linalg.cholesky(x @ x.T + np.eye(4))
    y[1:] += np.linalg.inv(factor)[1:] * 0.5
    return factor.T[::-1], np.linalg.solve(x @ x.T + 3 * np.eye(4), y).sum(axis=0), np.linalg.det(x) + 1


def test_linear_algebra_between_kernels_is_repeated():
    fused, a, b = fusec.fuse(layered), values((4, 4), "d"), values((4, 4), "d")
    with mock.patch.object(RepeatedCall, "_run", autospec=True, side_effect=RepeatedCall._run) as ran:
        for turn in range(6):
            x, y, own = cuda.from_numpy(a + turn), cuda.from_numpy(b), b.copy()
            called()
            found, wanted = fused(x, y), layered(a + turn, own)
            assert called("cusolverDnXpotrf", "cusolverDnXgetrf", "cusolverDnXgetrs") == [1, 3, 2]
            for one, other in zip((*found, y), (*wanted, own), strict=True):
                np.testing.assert_allclose(one.numpy(), other, 1e-9, 1e-9)
    assert ran.call_count == 4


FAILURES = [
    (np.linalg.cholesky, -np.eye(3), "Matrix is not positive definite"), (np.linalg.inv, np.ones((2, 2)), "Singular"),
    (lambda x: np.linalg.solve(x, x), np.zeros((3, 2, 2)), "Singular matrix"),
    (np.linalg.cholesky, np.stack([np.eye(3), -np.eye(3)]), "Matrix is not positive definite"),
    (np.linalg.svd, np.full((3, 2), np.nan), "SVD did not converge"),
    (np.linalg.eigh, np.full((3, 3), np.inf), "Eigenvalues did not converge"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(FAILURES)))
def test_what_cannot_be_done_raises_numpys_error(case):
    function, bad, message = FAILURES[case]

    def shifted(x, y):
        y += 1
        return function(x)

    fused, good = fusec.fuse(shifted), np.broadcast_to(np.eye(*bad.shape[-2:]) * 2, bad.shape)
    y = cuda.from_numpy(np.zeros(3))
    for turn in range(5):
        with pytest.raises(np.linalg.LinAlgError, match=message):
            fused(cuda.from_numpy(bad), y)
        fused(cuda.from_numpy(good), y)
        assert (y.numpy() == 2 * turn + 2).all()  # as NumPy, which writes before it raises
    x = xp.asarray(bad, device="cuda:0")
    pending = function(x) if case < 4 else function(x)[0]
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match=message):
            pending.to_device("cpu")


@pytest.mark.parametrize("turns", [1, 4])
def test_failures_of_lazy_arrays_stay_with_what_fails_on_devices(turns):
    for _ in range(turns):
        x, y = xp.zeros(6, device="cuda:0"), xp.ones((2, 2), device="cuda:0")
        x[2:5] += 1
        y *= 3
        bad, twice = xp.linalg.inv(y * 0), x * 2
        y[0] = bad[0]
        for _ in range(2):
            with pytest.raises(np.linalg.LinAlgError):
                xp.compute(x, bad, twice)
            assert x.tolist() == [0, 0, 1, 1, 1, 0]
            assert twice.tolist() == [0, 0, 2, 2, 2, 0]
        x += 1
        assert x.tolist() == [1, 1, 2, 2, 2, 1]
        with pytest.raises(np.linalg.LinAlgError):
            y.tolist()


def test_threads_and_devices_have_handles_of_their_own():
    fused, found, a = fusec.fuse(lambda a: np.linalg.inv(np.linalg.inv(a) * 2) + 1), {}, definite((3, 4, 4), "d")

    def run(device, turn):
        x = cuda.from_numpy(a + turn, device)
        found[device, turn] = [fused(x) for _ in range(5)][-1]

    threads = [threading.Thread(target=run, args=(turn % 2, turn)) for turn in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for (device, turn), each in found.items():
        assert each.device == device
        np.testing.assert_allclose(each.numpy(), (a + turn) / 2 + 1, 1e-9)


def test_a_stream_is_set_when_it_changes():
    a = definite((4, 4), "d")
    fused, x = fusec.fuse(lambda a: np.linalg.cholesky(a) + 1), cuda.from_numpy(a)
    for turn in range(8):
        called()
        np.testing.assert_allclose(fused(x, stream=1 + turn // 4).numpy(), np.linalg.cholesky(a) + 1)
        if turn > 2:
            assert called("cusolverDnCreate", "cusolverDnSetStream") == [0, int(turn == 4)]


def composed(x):
    return (
        np.linalg.pinv(x), np.linalg.pinv(x, 0.1), np.linalg.matrix_rank(x), np.linalg.cond(x),
        np.linalg.cond(x[..., :3], 1), np.linalg.cond(x[..., :3] * 0, np.inf),
        np.linalg.matrix_power(x[..., :3], -3), np.linalg.matrix_power(x[..., :3], 5), np.linalg.norm(x, 2, (1, 2)),
        np.linalg.multi_dot([x[0], x[1].T, x[2], x[0, 0]]), np.linalg.matrix_norm(x, ord="nuc"),
    )  # fmt: skip


def test_what_is_composed_of_others():
    check(composed, values((3, 3, 4), "d"))


def test_lazy_arrays_need_no_cupy():
    for turn in range(4):
        a = definite((5, 5), "d") + turn
        x = xp.asarray(a, device="cuda:0")
        found = [xp.linalg.inv(x) @ x, xp.linalg.cholesky(x), xp.linalg.slogdet(x).logabsdet, xp.linalg.eigh(x)[0]]
        wanted = [np.eye(5), np.linalg.cholesky(a), np.linalg.slogdet(a)[1], np.linalg.eigvalsh(a)]
        for one, other in zip(xp.compute(*found), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one.to_device("cpu")), other, 1e-9, 1e-9)


def test_a_missing_library_is_named_with_its_cure(monkeypatch):
    def missing(name):
        raise RuntimeError(f'Failure finding "{name}": no such file\nmore')

    monkeypatch.setattr("cuda.pathfinder.load_nvidia_dynamic_lib", missing)
    for each in (libraries.math_library, solvers.library):
        each.cache_clear()
    try:
        for function in (np.linalg.inv, lambda x: np.linalg.pinv(x)):
            with pytest.raises(FusecError, match=r"(?s)libcusolver, which .*fusec\[cuda-math\]") as caught:
                fusec.fuse(function)(cuda.from_numpy(np.eye(3)))
            assert caught.value.code == "F368"
        with pytest.raises(FusecError, match=r"(?s)libcusolver, which .*fusec\[cuda-math\]"):
            xp.linalg.eig(xp.asarray(np.eye(3), device="cuda:0"))
    finally:
        for each in (libraries.math_library, solvers.library):
            each.cache_clear()


def test_what_cusolver_refuses_is_named(monkeypatch):
    fused, x = fusec.fuse(lambda a: np.linalg.inv(a)), cuda.from_numpy(np.eye(3))
    for _ in range(4):
        fused(x)
    monkeypatch.setenv("FUSEC_STUB_FAIL", "cusolverDnXgetrf=7")
    with pytest.raises(FusecError, match="cuSOLVER refused to run Xgetrf: CUSOLVER_STATUS_INTERNAL_ERROR") as caught:
        fused(x)
    assert caught.value.code == "F369"
