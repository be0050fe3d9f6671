"""Repeated calls of fused functions on a device take a shorter way, and mean what first calls mean."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from unittest import mock

import numpy as np
import pytest

import fusec
from fusec import graph
from fusec.fusion.devices.device_repeats import DeviceRepeats
from fusec.fusion.memory.results import MISSED
from fusec.runtime import cuda
from tests.gpu.test_repeated import LIBRARIES, back


def same(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        one = back(one) if hasattr(one, "__dlpack__") else one
        np.testing.assert_array_equal(one, other)
        assert (np.asarray(one).dtype, np.shape(one)) == (np.asarray(other).dtype, np.shape(other))


def is_repeated(function, *args, **options):
    """Whether a call takes the short way, and is answered there."""
    answers, real = [], DeviceRepeats.call

    def call(self, *given):
        answers.append(real(self, *given))
        return answers[-1]

    with mock.patch.object(DeviceRepeats, "call", call):
        function(*args, **options)
    return any(each is not MISSED for each in answers)


def several(x, y, factor):
    """Several kernels, with memory between them, and within one of them."""
    power = np.exp(x - x.max())
    share = power / power.sum()
    return share * factor, share[1:] + y, (x * y[0]).sum(axis=0), x[:, 1:], factor


def rows(turn, shape=(40, 1000)):
    rng = np.random.default_rng(turn)
    return rng.random(shape), rng.random((shape[0] - 1, shape[1]))


@pytest.mark.parametrize("make", LIBRARIES)
def test_later_calls_see_new_values_addresses_and_numbers(make):
    fused, beside, kept = fusec.fuse(several), fusec.fuse(several), []
    for turn, factor in enumerate((2.0, -0.5, 1e-3, 3.0, 2.0)):
        x, y = rows(turn)
        kept.append((fused(make(x), make(y), factor), beside(x, y, factor)))
        if turn % 2:
            kept.pop(0)  # whose memory is used again
    for found, wanted in kept:
        same(found, wanted)
    x, y = map(make, rows(7))
    assert is_repeated(fused, x, y, 2.0)
    assert is_repeated(fused, x, y, factor=2.0) is is_repeated(fused, x, y, 2) is False  # known the next time but one
    for _ in range(2):
        same(fused(x, y, factor=3), beside(*rows(7), 3))
    assert is_repeated(fused, x, y, factor=3)


@pytest.mark.parametrize("make", LIBRARIES)
def test_forms_of_arrays_are_told_apart(make):
    fused, beside = fusec.fuse(several), fusec.fuse(several)
    for _ in range(3):
        for shape in ((4, 6), (6, 4)):
            for dtype in ("f8", "f4"):
                for view in (lambda x: x, lambda x: x[:, 1:], lambda x: x[::2, :3]):
                    x, y = (each.astype(dtype) for each in rows(3, shape))
                    there = make(x), make(y)
                    y = view(y)[: view(x).shape[0] - 1]
                    given = view(there[0]), view(there[1])[: y.shape[0]]
                    same(fused(*given, 2.0), beside(view(x), y, 2.0))


def update(weights, moments, gradient, rate):
    for weight, moment, step in zip(weights, moments, gradient, strict=True):
        moment *= 0.5
        moment += step * step
        weight -= rate * step / (np.sqrt(moment) + 1e-3)
    return sum(weight.sum() for weight in weights)


@pytest.mark.parametrize("make", LIBRARIES)
def test_lists_of_arrays_that_are_written(make):
    fused, rng = fusec.fuse(update), np.random.default_rng(1)
    given = [[rng.random(size) for size in (5, 700, 33)] for _ in range(3)]
    mine, theirs = [[make(each) for each in row] for row in given], [[each.copy() for each in row] for row in given]
    for _ in range(4):
        found, wanted = fused(*mine, 0.1), fusec.fuse(update)(*theirs, 0.1)
        same([found, *chain(*mine)], [wanted, *chain(*theirs)])
    assert is_repeated(fused, *mine, 0.1)
    update(*theirs, 0.1)
    assert not is_repeated(fused, *mine[:2], [mine[0][0], *mine[2][1:]], 0.1)  # a gradient that is a weight
    theirs[2][0] = theirs[0][0]
    update(*theirs, 0.1)
    for one, other in zip(chain(*mine), chain(*theirs[:2], given[2]), strict=True):
        np.testing.assert_allclose(back(one), other)


def stepped(u, v):
    u[1:-1] = u[:-2] + 2 * u[2:] - v.sum()
    v += u
    return u[::2]


@pytest.mark.parametrize("make", LIBRARIES)
def test_writes_and_arguments_that_meet(make):
    fused, beside = fusec.fuse(stepped), fusec.fuse(stepped)
    for turn in (0, 0, 0, 3, 0, 4, 3, 0):
        host = np.random.default_rng(turn).random(12)
        there = make(host)
        same([fused(there[:8], there[turn : turn + 8])], [beside(host[:8], host[turn : turn + 8])])
        same([there], [host])
        host = [np.arange(8.0), np.ones(8)]
        there = [make(each) for each in host]
        same([fused(*there)], [beside(*host)])
        same(there, host)
    assert is_repeated(fused, *there)
    assert is_repeated(fused, there[0][:6], there[1][2:]) is False  # of other extents
    whole = make(np.ones(24))
    assert is_repeated(fused, whole[:8], whole[8:16])
    assert not is_repeated(fused, whole[:8], whole[7:15])
    assert not is_repeated(fused, whole[:8], whole[1:9])  # aligned in another way, too


RATE = 0.5


class Model:
    def __init__(self, weight):
        self.weight, self.seen = weight, 0

    @fusec.fuse
    def step(self, x):
        total = (self.weight * x).sum()
        self.weight = self.weight - RATE * x * total
        return total, x / total


@pytest.mark.parametrize("make", LIBRARIES)
def test_arrays_and_numbers_from_outside(make, monkeypatch):
    mine, theirs = Model(make(np.arange(3.0))), Model(np.arange(3.0))
    for turn in range(8):
        monkeypatch.setitem(globals(), "RATE", 0.5 if turn < 4 else 0.25)
        x = np.full(3, turn + 1.0)
        same(mine.step(make(x)), theirs.step(x))
        np.testing.assert_array_equal(back(mine.weight), theirs.weight)
        if turn in (3, 7):
            assert is_repeated(mine.step, make(x))
            theirs.step(x)
    mine.weight, theirs.weight = make(np.ones((2, 3))), np.ones((2, 3))
    same(mine.step(make(x)), theirs.step(x))


@pytest.mark.parametrize("make", LIBRARIES)
def test_numbers_that_are_needed_or_do_not_fit(make):
    fused = fusec.fuse(lambda x, n, add: (x.reshape(n, -1).sum(axis=0) + add, x + add))
    x = np.arange(12, dtype="i1")
    for turn in range(3):
        for n in (3, 4):
            total, more = fused(make(x), n, turn)
            np.testing.assert_array_equal(back(total), x.reshape(n, -1).sum(axis=0) + turn)
            np.testing.assert_array_equal(back(more), x + turn)
    assert is_repeated(fused, make(x), 3, 1)
    for _ in range(2):
        with pytest.raises(OverflowError, match="add"):
            fused(make(x), 3, 1000)


DOUBLED = fusec.ElementwiseKernel("T x", "T z", "for (int i = 0; i < 2; ++i) z += x", "doubled")


def calling(x):
    half = x * 0.5
    again = DOUBLED(half) + 1
    return np.cumsum(again[::-1], axis=0) + 1, np.cumsum(half.T, axis=1), again.sum()


@pytest.mark.parametrize("make", LIBRARIES)
def test_kernels_called_between_kernels(make):
    fused, beside = fusec.fuse(calling), fusec.fuse(calling)
    for turn in range(5):
        x = np.random.default_rng(turn).random((7, 5))
        same(fused(make(x)), beside(x))


@pytest.mark.parametrize("make", LIBRARIES)
def test_compiled_graphs(make):
    made = graph.Graph("centred")
    x = made.input("x", "float64", ("n", 3))
    far = x - x.sum(axis=0) * 0.25
    made.output(far * far.sum(), "far")
    function = made.compile()
    for turn in range(4):
        x = np.random.default_rng(turn).random((4, 3))
        out = make(np.zeros((4, 3)))
        same([function(make(x)), function(make(x), out=out)], [function(x), function(x)])
        same([out], [function(x)])
    assert is_repeated(function, make(x))
    assert is_repeated(function, make(x), out=out)


def test_a_launch_that_fails_leaves_the_next_call_as_it_was():
    fused, beside = fusec.fuse(several), fusec.fuse(several)
    for turn in range(3):
        x, y = rows(turn)
        same(fused(cuda.from_numpy(x), cuda.from_numpy(y), 2.0), beside(x, y, 2.0))
    args = cuda.from_numpy(x), cuda.from_numpy(y), 2.0
    refuse = mock.patch("fusec.runtime.cuda.sequences.launch", side_effect=RuntimeError)
    with refuse as told, pytest.raises(RuntimeError), ThreadPoolExecutor(1) as pool:
        pool.submit(fused, *args).result()  # no context is current there: the long way enqueues it
    assert told.call_count == 1
    same(fused(*args), beside(x, y, 2.0))
    with ThreadPoolExecutor(1) as pool:
        same(pool.submit(fused, *args).result(), beside(x, y, 2.0))


@pytest.mark.parametrize("make", LIBRARIES)
def test_calls_on_a_stream(make):
    fused, beside = fusec.fuse(several), fusec.fuse(several)
    for turn in range(8):
        x, y = rows(turn)
        options = {"stream": 1} if turn % 3 else {}
        same(fused(make(x), make(y), 2.0, **options), beside(x, y, 2.0))
    assert is_repeated(fused, make(x), make(y), 2.0)
    assert not is_repeated(fused, make(x), make(y), 2.0, stream=1)


def test_threads_at_once():
    fused, wrong = fusec.fuse(several), []
    wanted = [several(*rows(turn), float(turn)) for turn in range(4)]

    def calls(turn):
        x, y = map(cuda.from_numpy, rows(turn))
        for _ in range(20):
            found = fused(x, y, float(turn))
            if not all(np.allclose(back(one), other) for one, other in zip(found[:4], wanted[turn][:4], strict=True)):
                wrong.append(turn)

    threads = [threading.Thread(target=calls, args=(turn,)) for turn in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


@pytest.mark.parametrize("make", LIBRARIES)
def test_calls_that_are_noted_run_nothing(make):
    fused = fusec.fuse(several)
    x, y = map(make, rows(0, (4, 6)))
    for _ in range(3):
        fused(x, y, 2.0)
    text = fused.source("cuda", x, y, 2.0)
    assert text == fusec.fuse(several).source("cuda", *rows(0, (4, 6)), 2.0)
    assert fused.explain(x, y, 2.0).launches == fusec.fuse(several).explain(*rows(0, (4, 6)), 2.0).launches
    outer = fusec.fuse(lambda x, y: fused(x, y, 2.0)[0] + 1)
    np.testing.assert_array_equal(back(outer(x, y)), back(fused(x, y, 2.0)[0]) + 1)
    fused.clear_cache()
    assert not is_repeated(fused, x, y, 2.0)


def regression(x, weights, wanted):
    """Products between kernels, of short rows and of long ones."""
    share = 1 / (1 + np.exp(-(x @ weights)))
    step = x.T @ (share - wanted) / len(wanted)
    return weights - step, np.dot(x.T, x * share[:, None]), x[1:] @ weights, share


@pytest.mark.hardware
@pytest.mark.parametrize("make", LIBRARIES)
def test_calls_of_libraries_between_kernels_are_repeated(make):
    fused, kept = fusec.fuse(regression), []
    for turn in range(6):
        for rows in (50, 20_000):
            rng = np.random.default_rng(turn)
            given = rng.normal(size=(rows, 4)), rng.normal(size=4), rng.random(rows)
            kept.append((fused(*map(make, given)), regression(*given)))
            assert {type(each) for each in kept[-1][0]} == {type(make(given[0]))}
            if turn > 2:
                assert is_repeated(fused, *map(make, given))
                kept.pop(turn)  # whose memory is used again
    for found, wanted in kept:
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(back(one), other, rtol=1e-10, atol=1e-12)


@pytest.mark.hardware
def test_calls_of_libraries_between_kernels_are_on_the_stream_of_tensors():
    torch = pytest.importorskip("torch")
    fused, stream = fusec.fuse(regression), torch.cuda.Stream()
    rng = np.random.default_rng(5)
    given = rng.normal(size=(300_000, 4)), rng.normal(size=4), rng.random(300_000)
    there = [torch.asarray(each, device="cuda") for each in given]
    torch.cuda.synchronize()
    for turn in range(5):
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)
            moved = there[0] * (turn + 1)  # known on this stream alone
            found = fused(moved, *there[1:])
            later = [each + 1 for each in found]
            del moved, found
        for one, other in zip(later, regression(given[0] * (turn + 1), *given[1:]), strict=True):
            with torch.cuda.stream(stream):
                np.testing.assert_allclose(one.cpu().numpy(), other + 1, rtol=1e-9, atol=1e-11)
