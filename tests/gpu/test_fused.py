"""Fused functions of arrays on a device: the CPU's bits, in the library and on the stream of the arrays."""

import sys

import numpy as np
import pytest

import fusec
from fusec import graph
from fusec.errors import FusecError
from fusec.runtime import cuda


def there(x):
    return cuda.from_numpy(x) if isinstance(x, np.ndarray) else x


def here(x):
    if isinstance(x, tuple):
        return tuple(map(here, x))
    return x.numpy() if isinstance(x, cuda.CudaArray) else x


def same(function, *args):
    """Compare a fused function on a device with the same on the CPU, twice, with what it writes."""
    fused, beside = fusec.fuse(function), fusec.fuse(function)
    for _ in range(2):
        given = [there(each) for each in args]
        copies = [each.copy() if isinstance(each, np.ndarray) else each for each in args]
        found, wanted = here(fused(*given)), beside(*copies)
        pairs = zip(*[each if isinstance(each, tuple) else (each,) for each in (found, wanted)], strict=True)
        for one, other in [*pairs, *zip(map(here, given), copies, strict=True)]:
            np.testing.assert_array_equal(one, other)
            assert np.asarray(one).dtype == np.asarray(other).dtype
            assert np.shape(one) == np.shape(other)


def chained(x, n):
    power = np.exp(x - x.max(axis=1, keepdims=True))
    total = power.sum(axis=1)
    return power / total[:, None] * n, total, power[::-1, 1:].T, x.sum(), x


def test_results_on_a_device_are_those_of_the_cpu():
    same(chained, np.random.default_rng(3).random((5, 7)), 2.5)


def written(x, y):
    x[1:-1] = x[1:-1] + 0.5 * (x[2:] + x[:-2])
    y *= x.sum(axis=0)
    x[::2, 0] = 3
    return x, y[1:]


def combined(x, y):
    x[1:] += y
    return y * 2, x


def complex_parts(c):
    d = c * 2
    d.real[...] = 1
    c.imag[0] = 7
    return d, d.imag, c.real.T


def constants(x):
    return x * np.arange(4.0) + np.full(4, 2.0)[::-1], np.arange(3), np.pi


def of_nothing(x):
    return x * 2, x.sum(axis=1), x.sum(), x[:, 1:], x.T + 1


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1)])
def test_arrays_of_few_elements(shape):
    same(of_nothing, np.full(shape, 2.0))


def test_writes_through_views():
    same(written, np.arange(20.0).reshape(5, 4), np.ones((3, 4)))


def masked(x, y):
    z = x * 2
    z[z > 2] = 2
    z[z < 0] *= y[z < 0]
    x[x > 1] = y[x > 1]
    x[x < -1] = -1
    return z


@pytest.mark.parametrize("shape", [(33, 65), (0, 3), (1, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_writes_to_what_masks_pick(shape, dtype):
    x, y = (np.random.default_rng(7).normal(size=(2, *shape)) * 4).astype(dtype)
    same(masked, x, y)
    assert fusec.fuse(masked).explain(there(x), there(y)).kernels == 1


def test_constants_and_parts():
    same(constants, np.ones((2, 4)))
    same(complex_parts, np.arange(6).reshape(2, 3) * (1 + 2j))


def test_arguments_that_share_memory():
    fused = fusec.fuse(combined)
    for turn in range(3):
        x, host = there(np.arange(8.0)), np.arange(8.0)
        y, wanted = (x[:-1], host[:-1]) if turn != 1 else (there(np.ones(7)), np.ones(7))
        found, expected = fused(x, y), combined(host, wanted)
        assert found[1] is x
        for one, other in zip((*found, y), (*expected, wanted), strict=True):
            np.testing.assert_array_equal(one.numpy(), other)


def layered(x):
    return x + x.sum(axis=0), x[1:, ::-1], np.flip(x).T


VIEWS = [lambda x: x.T, lambda x: x[::-1, ::2], lambda x: x[:, None, 1:, 0], lambda x: x[1:1]]


def test_forms_of_arguments_and_results():
    fused = fusec.fuse(layered)
    base = np.arange(60.0).reshape(3, 4, 5)
    for view in VIEWS:
        given, host = view(there(base)), view(base)
        assert (given.shape, given.strides) == (host.shape, host.strides)
        np.testing.assert_array_equal(given.numpy(), host)
        for one, other in zip(fused(given), fusec.fuse(layered)(host), strict=True):
            np.testing.assert_array_equal(one.numpy(), other)
            assert one.strides == other.strides or 0 in other.shape
    found = fused(given := there(base[0]))
    found[1][0, 0].reshape(1)  # a view of the argument's own memory
    fusec.ElementwiseKernel("", "float64 z", "z = 9")(found[1])
    np.testing.assert_array_equal(given.numpy()[1:], 9)


def test_results_are_arrays_of_their_own():
    fused, seen = fusec.fuse(chained), []
    for turn in range(3):
        x = np.random.default_rng(turn).random((5, 7))
        seen.append((fused(there(x), 2.0), fused(x, 2.0)))
    for found, wanted in seen:
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(here(one), other)


def spread(x, y):
    far = x - x.mean(axis=1, keepdims=True)
    return np.sqrt((far * far).sum(axis=1)) + y, far * 2


def test_arrays_of_other_extents():
    fused, beside = fusec.fuse(spread), fusec.fuse(spread)
    for shape in ((5, 7), (3, 4), (4, 4), (1, 9), (6, 2), (5, 7)):
        x, y = np.random.default_rng(3).random(shape), np.ones(shape[0])
        for one, other in zip(fused(there(x), there(y)), beside(x, y), strict=True):
            np.testing.assert_array_equal(one.numpy(), other)


class Model:
    def __init__(self):
        self.weight, self.rate = there(np.arange(3.0)), 0.5

    @fusec.fuse
    def step(self, x):
        self.weight = self.weight - self.rate * x
        return self.weight.sum()


def test_arrays_from_outside():
    model, weight, rate = Model(), np.arange(3.0), 0.5
    for turn in range(4):
        x = np.full(3, float(turn))
        total = model.step(there(x))
        weight = weight - rate * x
        assert (total.shape, float(total.numpy())) == ((), weight.sum())
        np.testing.assert_array_equal(model.weight.numpy(), weight)
        model.rate = rate = 0.25 * turn
    model.weight = np.zeros(3)
    with pytest.raises(FusecError, match="in host memory cannot be used together") as refusal:
        model.step(there(x))
    assert refusal.value.code == "F361"


def test_indices_from_outside_are_kept_inside():
    table, ids = there(np.arange(12.0).reshape(4, 3)), there(np.array([3, 0, -1, 9, -9]))
    fused = fusec.fuse(lambda factor: table[ids[::-1]][::-1] * factor)
    for factor in (2.0, 3.0):
        wanted = np.arange(12.0).reshape(4, 3)[[3, 0, 3, 3, 0]] * factor
        np.testing.assert_array_equal(fused(factor).numpy(), wanted)
        np.testing.assert_array_equal(fusec.fuse(lambda x, at: x[at] * factor)(table, ids).numpy(), wanted)  # noqa: B023


def test_arrays_in_two_places_are_refused():
    fused = fusec.fuse(lambda x, y: x + y)
    host = np.ones(3)
    for args in ((there(host), host), (host, there(host))):
        for _ in range(2):
            with pytest.raises(TypeError, match="in host memory cannot be used together"):
                fused(*args)
    np.testing.assert_array_equal(fused(host, host), 2)
    np.testing.assert_array_equal(fused(there(host), there(host)).numpy(), 2)
    with pytest.raises(TypeError, match="takes no keyword 'stream'"):
        fused(host, host, stream=1)


def product_of_percentiles(x):
    x += 1
    return np.percentile(x, x[0], axis=0) @ x * 2


def test_calls_of_numpy_without_cupy_are_refused_before_anything_is_written(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    x = there(np.ones((2, 2)))
    for _ in range(2):
        with pytest.raises(FusecError, match="on a device: CuPy") as refusal:
            fusec.fuse(product_of_percentiles)(x)
        assert refusal.value.code == "F286"
    np.testing.assert_array_equal(x.numpy(), 1)


DOUBLED = fusec.ElementwiseKernel("float64 x", "float64 z", "for (int i = 0; i < 2; ++i) z += x", "doubled")


def calling(x):
    y = np.exp(x)[::-1] * 2
    DOUBLED(x, y)
    return np.cumsum(y[:, ::-1], axis=0).T + 1, y


def test_kernels_called_between_kernels():
    fused, x = fusec.fuse(calling), np.arange(6.0).reshape(2, 3)
    wanted = fusec.fuse(calling)(x)
    for stream in (None, 2):
        for one, other in zip(fused(there(x), stream=stream), wanted, strict=True):
            np.testing.assert_array_equal(one.numpy(), other)


def test_compiled_graphs():
    made = graph.Graph("affine")
    x, b = made.input("x", "float32", ("n", 3)), made.input("b", "float32", (3,), donated=True)
    made.output((x * 2 + b).sum(axis=1), "total")
    made.output(b * 2, "twice")
    function, one, two = made.compile(), np.arange(6, dtype="f4").reshape(2, 3), np.arange(3, dtype="f4")
    wanted, out = function(one, two.copy()), (there(np.zeros(2, "f4")), there(np.zeros(3, "f4")))
    for found in (function(there(one), there(two)), function(there(one), there(two), out=out)):
        for array, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(array.numpy(), other)
    assert found[0] is out[0]


@pytest.mark.hardware
def test_calls_of_numpy_take_cupy():
    pytest.importorskip("cupy")
    fused, x = fusec.fuse(product_of_percentiles), np.arange(9.0).reshape(3, 3)
    for _ in range(2):
        np.testing.assert_allclose(fused(there(x)).numpy(), product_of_percentiles(x.copy()))
        np.testing.assert_allclose(fused(there(x), stream=2).numpy(), product_of_percentiles(x.copy()))


def test_arrays_of_two_devices_are_refused():
    try:
        other = cuda.from_numpy(np.ones(3), device=1)
    except FusecError:
        pytest.skip("there is one device")
    fused = fusec.fuse(lambda x, y: (x + y).sum() * 2)
    with pytest.raises(ValueError, match="must be on one device"):
        fused(other, there(np.ones(3)))
    found = fused(other, other)
    assert (found.device, found.numpy()) == (1, 12)


def test_streams_of_a_call(monkeypatch):
    def refuse(*_):
        raise AssertionError("nothing waits for the device")

    fused, x = fusec.fuse(chained), there(np.ones((5, 7)))
    fused(x, 2.0)
    with monkeypatch.context() as patch:
        patch.setattr("fusec.runtime.cuda.streams.synchronise", refuse)
        found = fused(x, 3.0, stream=2)
        again = fused(x, 3.0)
    assert {each.stream for each in found} == {2, 1}  # x moved on
    assert [each.stream for each in again] == [1] * 5
    np.testing.assert_array_equal(found[0].numpy(), again[0].numpy())


def test_reports_of_a_call():
    fused, x = fusec.fuse(chained), there(np.ones((5, 7)))
    assert fused.explain(x, 2.0).launches == fusec.fuse(chained).explain(np.ones((5, 7)), 2.0).launches


def test_source_of_a_call_is_that_of_one_on_the_host():
    fused, x, y = fusec.fuse(written), np.ones((5, 4)), np.ones((6, 4))
    for view in (lambda x: x, lambda x: x[::-1, ::2]):
        host = fused.source("cuda", view(x), view(y)[1:4])
        assert fused.source("cuda", view(there(x)), view(there(y))[1:4]) == host
    shared = there(x)
    assert fused.source("cuda", shared, shared[1:4]) == fused.source("cuda", x, x[1:4])
    fused.source("cuda", shared[:0], shared[1:4])


def test_what_the_function_sees_of_arrays_on_a_device():
    def function(x):
        seen.append((x.shape, x.dtype, x.device, type(x), x.strides))
        return x + 1

    seen, x = [], there(np.ones((2, 3))).T
    fusec.fuse(function)(x)
    assert seen == [((3, 2), np.float64, x.device, np.ndarray, (8, 24))]


def exponential(xp, x, y):
    return xp.exp(x)[1:, ::-1], xp.flip(x + y), (x * 2).T, x[1:], (x - y).sum()


@pytest.mark.hardware
def test_results_are_of_the_library_of_the_arguments():
    base = np.arange(12, dtype="f4").reshape(3, 4) / 8
    host = fusec.fuse(exponential)(np, base, base[0])
    fused = fusec.fuse(exponential)
    for name in ("torch", "cupy", "jax.numpy"):
        library = pytest.importorskip(name)
        if name == "torch":
            x, y = (library.asarray(each).cuda() for each in (base, base[0].copy()))
        else:
            x, y = library.asarray(base), library.asarray(base[0])
        for _ in range(2):
            found = fused(np, x, y)
            for one, other in zip(found, host, strict=True):
                assert type(one) is type(x)
                one = one.cpu().numpy() if name == "torch" else one.get() if name == "cupy" else np.asarray(one)
                np.testing.assert_array_equal(one, other)
        if name != "jax.numpy":
            found[3][...] = 5
            assert float(x[2, 1]) == 5
