"""Lazy arrays on a device: the bits of those in host memory, for programs of all kinds."""

import pickle
import sys
import threading

import numpy as np
import pytest

import fusec
import fusec.xp as xp
from fusec.errors import FusecError
from fusec.runtime import cuda

THERE = "cuda:0"
DTYPES = ("bool", "int8", "int64", "uint16", "float32", "float64", "complex64")


def same(there, here):
    """Check that an array on the device has the bits of one in host memory."""
    assert (there.device, here.device) == (THERE, "cpu")
    assert (there.dtype, there.shape) == (here.dtype, here.shape)
    found, wanted = (bits(np.asarray(each.to_device("cpu"))) for each in (there, here))
    assert found == wanted


def bits(array):
    """The bytes of an array, with one nan for all: devices give it other signs and payloads."""
    array = np.array(array, order="C", ndmin=1)
    if array.dtype.kind in "fc":
        parts = array.view(array.real.dtype)
        parts[np.isnan(parts)] = np.nan
    return array.tobytes()


def both(program, *values):
    """Check a program of arrays on the device beside the same one in host memory."""
    found = program(*[xp.asarray(each, device=THERE) for each in values])
    wanted = program(*map(xp.array, values))
    for one, other in zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]:
        same(one, other)


def normal(*shape, dtype="float64", seed=0):
    values = np.random.default_rng(seed).normal(size=shape)
    with np.errstate(all="ignore"):
        return (values * 5).astype(dtype)


STEPS = (
    lambda x, y: x + y,
    lambda x, y: xp.where(x > y, x, y * 2),
    lambda x, y: xp.abs(x) - y,
    lambda x, y: x * 3 + (x < y),
    lambda x, y: xp.sum(x, axis=0) + y,
    lambda x, y: xp.max(y, axis=-1, keepdims=True) * x,
    lambda x, y: x.T.T[::-1] + y,
    lambda x, y: xp.exp(x * 0.01) + y,
    lambda x, y: x.reshape((-1,)).reshape(x.shape) * y[:1],
    lambda x, y: xp.sin(x) * xp.mean(y),
)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    rng = np.random.default_rng(seed)
    dtype, shape = ("float32", "float64")[seed % 2], [(3, 4), (1, 1), (5, 1025), (2, 0)][seed % 4]
    chosen = rng.choice(len(STEPS), 6)

    def program(x, y):
        for at in chosen:
            if shape[1] or at != 5:
                x, y = STEPS[at](x, y), x
        return x, y

    both(program, normal(*shape, dtype=dtype), normal(*shape, dtype=dtype, seed=1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype):
    both(lambda x: (x + x, x[1:], x == x[0], xp.sum(x), x.astype("float32") if dtype != "complex64" else x),
         normal(300, dtype=dtype))  # fmt: skip


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "std", "any", "all", "argmax"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reductions(name, axis):
    both(lambda x: getattr(xp, name)(x, axis=axis), normal(7, 130))


def test_writes_through_views_are_seen_and_earlier_reads_keep_what_was_there():
    def program(x):
        before = x * 2
        x[1:, ::2] += 10
        row = x[0]
        row[...] = 3
        x[2, :2] = [5.0, 6.0]
        later = x.T + 1
        x[x.shape[0] - 1] = x[0]
        return before, x, row, later, x[:, 1]

    both(program, normal(4, 5))
    there = xp.zeros(3, device=THERE)
    part = there[1:].compute()
    for step in range(3):  # later calls of one plan
        part += step
        assert there.tolist() == [0.0, float(sum(range(step + 1))), float(sum(range(step + 1)))]


def test_explaining_pending_writes_computes_nothing():
    x = xp.asarray(normal(64), device=THERE)
    view = x[::-1]
    x[1:] = view[:-1] * 2
    found = xp.explain(x)
    assert found.kernels >= 1
    assert xp.explain(x).kernels == found.kernels  # still pending
    here = xp.array(normal(64))
    here[1:] = here[::-1][:-1] * 2
    same(x, here)


def test_new_arrays_are_where_they_are_asked_for():
    for make in (
        lambda device: xp.zeros((2, 3), dtype="int16", device=device),
        lambda device: xp.ones(4, device=device),
        lambda device: xp.full((2, 0), 3, device=device),
        lambda device: xp.full(3, 2.5, dtype="float32", device=device),
        lambda device: xp.arange(2, 9, 3, device=device),
        lambda device: xp.linspace(0, 1, 7, device=device),
        lambda device: xp.eye(3, k=1, device=device),
        lambda device: xp.empty((2, 2), device=device),
        lambda device: xp.asarray([[1, 2], [3, 4]], device=device),
        lambda device: xp.ones_like(xp.zeros(3, device=device)) + xp.full_like(xp.zeros(3, device=device), 2),
        lambda device: xp.array(4.0, device=device, ndmin=2),
    ):
        same(make(xp.Device(THERE)), make("cpu"))
    assert THERE in xp.__array_namespace_info__().devices()


def test_moves_are_copies():
    here = xp.asarray([1.0, 2.0])
    there = here.to_device(THERE)
    assert there.to_device(THERE) is there
    there += 1
    back = there.to_device("cpu", stream=None)
    back[0] = 9
    assert (here.tolist(), there.tolist(), back.tolist()) == ([1, 2], [2, 3], [9, 3])
    with pytest.raises(FusecError, match="'cuda:99'"):
        here.to_device("cuda:99")
    copied = pickle.loads(pickle.dumps(there))
    same(copied, there.to_device("cpu"))


def test_looks_copy_and_nothing_else_does():
    x = xp.asarray([1.5, -2.0], device=THERE)
    assert repr(x * 2) == "Array([ 3., -4.])"
    assert (float(x[0]), bool(x[1] < 0), x.sum().item(), int(x[1])) == (1.5, True, -0.5, -2)
    with pytest.raises(TypeError, match="F780"):
        np.asarray(x)
    same(np.sin(x), np.sin(x.to_device("cpu")))


def test_devices_do_not_mix():
    x, y = xp.ones(3, device=THERE), xp.ones(3)
    others = (lambda: x + y, lambda: y * x, lambda: (x * 2) - (y * 2), lambda: xp.where(x > 0, x, y))
    for mix in (*others, lambda: x + np.ones(3), lambda: x[y.astype(int)], lambda: xp.concat([x, y])):
        with pytest.raises(ValueError, match="F776") as refusal:
            mix()
        assert "'cpu'" in str(refusal.value)
        assert f"'{THERE}'" in str(refusal.value)
        assert "test_lazy_arrays.py" in str(refusal.value)
    x[1] = 5
    same(x + np.float32(1) + 2, xp.asarray([4.0, 8.0, 4.0]))


def test_arrays_of_other_libraries_share_memory():
    values = np.arange(6.0).reshape(2, 3)
    own = cuda.from_numpy(values)
    x = xp.asarray(own)
    assert x.device == THERE
    assert x.__dlpack_device__() == (2, 0)
    assert x.__cuda_array_interface__["data"][0] == own.pointer
    x[0] = 7
    assert x.compute() is x
    np.testing.assert_array_equal(own.numpy(), [[7, 7, 7], [3, 4, 5]])
    assert xp.from_dlpack(x).__cuda_array_interface__["data"][0] == own.pointer
    apart = xp.asarray(own, copy=True)
    apart[...] = 0
    assert apart.tolist() == [[0] * 3] * 2
    assert own.numpy()[0, 0] == 7
    assert not hasattr(xp.ones(3), "__cuda_array_interface__")
    np.testing.assert_array_equal(np.from_dlpack(x, device="cpu"), own.numpy())


@pytest.mark.hardware
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_arrays_of_cupy_and_torch_share_memory(library):
    module = pytest.importorskip(library)
    given = module.arange(6, **({"device": "cuda"} if library == "torch" else {})).reshape(2, 3)
    x = xp.asarray(given)
    x[0] += 10
    x.compute()
    assert x.tolist() == given.tolist() == [[10, 11, 12], [3, 4, 5]]
    back = module.from_dlpack(x * 2)
    assert back.tolist() == [[20, 22, 24], [6, 8, 10]]


@pytest.mark.hardware
def test_what_kernels_do_not_compute_is_cupys():
    pytest.importorskip("cupy")
    x = xp.asarray(np.array([3.0, 1.0, 2.0, 1.0]), device=THERE)
    found = xp.percentile(x, xp.asarray([50.0, 100.0], device=THERE))
    assert found.tolist() == [1.5, 3]
    assert found.device == THERE


@pytest.mark.parametrize("key", [np.s_[1:], np.s_[::2], np.s_[:, 1], np.s_[2]], ids=str)
def test_writes_through_views_that_are_gone_are_seen(key):
    def program(x):
        x, other = (x + 0).compute(), x[0] * 2
        part = x[key].compute()
        part[...] = 7
        del part
        for number in range(4):
            (other + number).compute()
        return x

    both(program, normal(4, 5))


def test_what_needs_cupy_is_refused_where_it_stands(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    x = xp.asarray([3.0, 1.0, 2.0], device=THERE)
    changed = x * 2
    for refused in (lambda: xp.polyfit(x, x, 1), lambda: changed[True, changed > 1], lambda: xp.percentile(changed, x)):
        with pytest.raises(
            TypeError, match=r"CuPy, which would compute it there[\s\S]*pip install cupy[\s\S]*test_lazy_arrays.py"
        ):
            refused()
    assert changed.tolist() == [6, 2, 4]


def test_kernels_and_fused_functions_take_them():
    x = xp.asarray(normal(50), device=THERE)
    doubled = fusec.ElementwiseKernel("float64 x", "float64 y", "y = 2 * x")
    same(doubled(x), doubled(x.to_device("cpu")))
    fused = fusec.fuse(lambda x: x - x.mean())
    same(fused(x * 2), fused(x.to_device("cpu") * 2))


def test_threads_share_arrays():
    values = normal(1000)
    x, found, failed = xp.asarray(values, device=THERE), {}, []
    wanted = [float(xp.sum(xp.asarray(values) * at + 1)) for at in range(8)]

    def work(at):
        try:
            for _ in range(5):
                found[at] = float(xp.sum(x * at + 1))
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failed
    assert [found[at] for at in range(8)] == wanted


RANDOM = {
    "uniform64": lambda **more: xp.random.uniform((3, 1025), 2**64 - 3, low=-2, high=0.1, **more),
    "uniform32": lambda **more: xp.random.uniform(65537, 7, offset=2**64 - 65537, dtype="float32", **more),
    "normal64": lambda **more: xp.random.normal((2, 3, 65), 7, loc=3, stream=2**63, **more),
    "normal32": lambda **more: xp.random.normal(1000, 7, loc=[3.0], scale=0.5, dtype="float32", **more),
    "complex64": lambda **more: xp.random.normal(1001, 7, scale=2, dtype="complex64", **more),
    "complex128": lambda **more: xp.random.normal((5, 0), 7, dtype="complex128", **more),
    "exponential64": lambda **more: xp.random.exponential((), 7, scale=3, **more),
    "exponential32": lambda **more: xp.random.exponential(4097, 7, offset=5, dtype="float32", **more),
    "integers": lambda **more: xp.random.integers((9, 31), 7, -(2**31), [2**31] * 31, **more),
    "int8": lambda **more: xp.random.integers(300, 7, -3, 7, dtype="int8", **more),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_have_the_bits_of_those_in_host_memory(name):
    draw = RANDOM[name]
    same(draw(device=THERE), draw())
    same(draw(device=THERE) * 2 + 1, draw() * 2 + 1)


def test_random_numbers_are_made_where_their_arguments_are():
    key = xp.asarray([1, 2], device=THERE)
    same(xp.random.normal(9, key[0], offset=5, scale=2), xp.random.normal(9, 1, offset=5, scale=2))
    same(xp.random.uniform(2, 3, low=xp.zeros(2, device=THERE)), xp.random.uniform(2, 3))
    assert xp.random.normal(3, 1, loc=xp.ones(3)).device == "cpu"
    for mix in (
        lambda: xp.random.normal(3, 1, loc=xp.ones(3), device=THERE),
        lambda: xp.random.normal(3, 1, loc=np.ones(3), device=THERE),
        lambda: xp.random.uniform(3, key[0], device="cpu"),
    ):
        with pytest.raises(ValueError, match="F776"):
            mix()
    with pytest.raises(FusecError, match="'cuda:99'"):
        xp.random.normal(3, 1, device="cuda:99")


@pytest.mark.hardware
def test_vectors_and_orders_are_drawn_there():
    pytest.importorskip("cupy")
    same(xp.random.permutation(1000, 7, device=THERE), xp.random.permutation(1000, 7))
    rows = xp.arange(3000).reshape((1000, 3))
    same(xp.random.permutation(rows.to_device(THERE), 7), xp.random.permutation(rows, 7))
    mean, cov = [1.0, -2.0], [[4.0, 1.0], [1.0, 2.0]]
    found, wanted = (xp.random.multivariate_normal(100, 7, mean, cov, device=each) for each in (THERE, "cpu"))
    assert found.device == THERE
    np.testing.assert_allclose(np.asarray(found.to_device("cpu")), np.asarray(wanted), rtol=1e-12, atol=1e-12)


def test_nested_lists_of_arrays_stay_on_the_device():
    values = normal(3, 2, dtype="float32")
    both(lambda x: xp.asarray([[x[i, j] for i in range(3)] for j in range(2)], device=x.device), values)
    both(lambda x: xp.asarray([x[0], (1, 2)], dtype="float64", device=x.device), values)
    assert xp.asarray([xp.asarray(values, device=THERE)]).device == THERE


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32"])
@pytest.mark.parametrize("shape", [(0,), (5,), (4, 0), (3, 7)])
def test_vecdot_of_all_dtypes(shape, dtype):
    x, y = normal(*shape, dtype=dtype), normal(*shape, dtype=dtype, seed=1)
    if dtype != "float32":  # cuBLAS has an order of its own
        both(lambda x, y: xp.vecdot(x, y), x, y)
        both(lambda x, y: xp.vecdot(x, y, axis=0), x, y)
    given = [xp.asarray(each, device=THERE) for each in (x, y)]
    found = np.asarray(xp.vecdot(*given).to_device("cpu"))
    np.testing.assert_allclose(found, np.vecdot(x, y), rtol=1e-5, atol=1e-5)


def test_slices_between_arrays_without_axes():
    x = xp.asarray(np.arange(10), device=THERE)
    first, last = xp.asarray(2, device=THERE), xp.asarray(7, device=THERE)
    same(x[first:last], xp.arange(2, 7))
    x[:first] = last
    same(x[:3], xp.asarray([7, 7, 2]))


def test_a_number_as_the_first_operand_is_where_the_array_is():
    values = np.arange(5)
    both(lambda x: xp.isin(3, x), values)
    both(lambda x: xp.where(x > 2, 1, x), values)


@pytest.mark.parametrize("flipped", [xp.flip, lambda x: xp.flip(x, axis=()), lambda x: xp.roll(x, 1)])
def test_views_of_arrays_without_axes_read_nothing_on_the_host(flipped):
    both(lambda x: flipped(x) + 1, np.float64(3))
    both(lambda x: fusec.fuse(lambda x: np.flip(x) * 2)(x), np.float64(3))
