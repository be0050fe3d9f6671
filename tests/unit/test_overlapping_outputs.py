"""Outputs of scans and reductions that lie where inputs are read: results are those of separate memory."""

import numpy as np
import pytest

import fusec

COUNT = 3000  # more than one chunk

LAYOUTS = {
    "same": lambda room, n: (room[:n], room[:n]),
    "reversed": lambda room, n: (room[:n], room[:n][::-1]),
    "reversed input": lambda room, n: (room[:n][::-1], room[:n]),
    "ahead": lambda room, n: (room[:n], room[1 : n + 1]),
    "behind": lambda room, n: (room[1 : n + 1], room[:n]),
    "step 2": lambda room, n: (room[:n], room[: 2 * n : 2]),
    "step -2": lambda room, n: (room[:n], room[2 * n - 1 :: -2][:n]),
    "input of step 2": lambda room, n: (room[: 2 * n : 2], room[:n]),
    "interleaved": lambda room, n: (room[: 2 * n : 2], room[1 : 2 * n : 2]),
}
SCANS = {
    "cumsum": lambda x, out: fusec.cumsum(x, out=out),
    "cumprod": lambda x, out: fusec.cumprod(x, out=out),
    "cummax": lambda x, out: fusec.cummax(x, out=out),
    "cummin": lambda x, out: fusec.cummin(x, out=out),
    "logcumsumexp": lambda x, out: fusec.logcumsumexp(x, out=out),
}
NUMPY = {"cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum, "cummin": np.minimum}
ADD = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "add")


def room_of(count, dtype="f4"):
    """Memory with room for steps of 2."""
    return np.random.default_rng(count).normal(size=2 * count + 1).astype(dtype)


def apart(scan, layout, count, dtype="f4"):
    """What the memory holds after a scan into it, and what it holds if the input is a copy."""
    left, right = room_of(count, dtype), room_of(count, dtype)
    x, out = LAYOUTS[layout](left, count)
    given = scan(x, out)
    assert given is out
    x, out = LAYOUTS[layout](right, count)
    out[...] = scan(np.array(x, order="K"), np.empty(x.shape, dtype))
    return left, right


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.sampled(3)
def test_a_scan_into_its_own_memory_gives_the_bits_of_separate_memory(layout):
    for name, scan in SCANS.items():
        for count in (7, 33, COUNT):
            left, right = apart(scan, layout, count)
            assert left.tobytes() == right.tobytes(), (name, count)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_scan_into_its_own_memory_is_that_of_numpy(layout):
    for name, ufunc in NUMPY.items():
        room = room_of(33, "f8")
        x, out = LAYOUTS[layout](room, 33)
        wanted = ufunc.accumulate(x)
        SCANS[name](x, out)
        np.testing.assert_allclose(out, wanted, rtol=1e-12, atol=1e-14, err_msg=name)


@pytest.mark.parametrize("shape", [(3, 3), (40, 40), (130, 130)])
def test_a_scan_into_its_transpose_reads_before_it_writes(shape):
    for axis in (0, 1):
        for reorder in (np.transpose, np.flipud, np.fliplr, np.rot90, lambda z: z):
            for order in "CF":
                z = np.asarray(np.arange(1.0, 1 + np.prod(shape)).reshape(shape), order=order)
                wanted = np.cumsum(z, axis=axis)
                out = reorder(z)
                fusec.cumsum(z, axis=axis, out=out)
                assert (out == wanted).all(), (axis, order)
                z = np.asarray(np.arange(1.0, 1 + np.prod(shape)).reshape(shape), order=order)
                ADD(z, reorder(z), axis=axis)
                assert (reorder(z) == wanted).all(), (axis, order)


def test_scans_backwards_and_in_segments_and_of_several_outputs_read_before_they_write():
    room = np.arange(1.0, 100)
    wanted = np.cumsum(room[:33][::-1])[::-1]
    ADD(room[:33], out=room[:66:2], reverse=True)
    assert (room[:66:2] == wanted).all()

    exclusive = fusec.ScanKernel(
        "T x, bool s", "T y", "x", "a + b", "y = a", 0, "restarted", inclusive=False, segments="s"
    )
    room = np.arange(1.0, 100)
    starts = np.arange(33) % 7 == 0
    wanted = exclusive(room[:33].copy(), starts)
    exclusive(room[:33], starts, out=room[:33][::-1])
    assert (room[:33][::-1] == wanted).all()

    pair = fusec.ScanKernel("T x, T w", "T y, T z", "x + w", "a + b", "y = a; z = -a", 0, "pair")
    room = np.arange(1.0, 100)
    wanted = np.cumsum(room[:33] + room[33:66])
    y, z = room[:66:2][::-1], room[1:66:2]
    pair(room[:33], room[33:66], out=(y, z))
    assert (y == wanted).all()
    assert (z == -wanted).all()


def test_a_scan_with_an_initial_result_reads_before_it_writes():
    for make in (lambda b: b[:-1], lambda b: b[1:], lambda b: b[::-1][1:], lambda b: b[::-1][:-1]):
        room = np.arange(1.0, 40)
        wanted = np.concatenate([[0.0], np.cumsum(make(room))])
        fusec.cumulative_sum(make(room), out=room, include_initial=True)
        assert (room == wanted).all()


def test_plans_of_overlapping_and_separate_outputs_do_not_mix():
    for _ in range(3):
        x = np.arange(1.0, 34)
        apart_from_x = np.empty(33)[::-1]
        fusec.cumsum(x, out=apart_from_x)
        wanted = np.cumsum(x)
        assert (apart_from_x == wanted).all()
        fusec.cumsum(x, out=x[::-1])
        assert (x[::-1] == wanted).all()


def test_a_reduction_into_its_own_memory_reads_before_it_writes():
    total = fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = a", 0, "total")
    places = {
        "first row": lambda z: z[0],
        "last row": lambda z: z[-1],
        "first column": lambda z: z[:, 0],
        "reversed row": lambda z: z[1, ::-1],
        "reversed column": lambda z: z[::-1, 1],
        "diagonal": lambda z: z.reshape(-1)[:: len(z) + 1],
        "step -2": lambda z: z.reshape(-1)[2 * len(z) - 1 :: -2],
    }
    for count in (5, 40, 300):
        for name, place in places.items():
            for axis in (0, 1):
                for reduce, ufunc in ((fusec.sum, np.add), (fusec.max, np.maximum), (total, np.add)):
                    z = np.arange(float(count * count)).reshape(count, count)
                    wanted = ufunc.reduce(z, axis=axis)
                    for _ in range(2):  # the second call may take a shorter way
                        z = np.arange(float(count * count)).reshape(count, count)
                        reduce(z, axis=axis, out=place(z))
                        assert (place(z) == wanted).all(), (count, name, axis)


def test_a_reduction_that_keeps_axes_or_all_into_its_own_memory_reads_before_it_writes():
    for _ in range(2):
        z = np.arange(1600.0).reshape(40, 40)
        wanted = z.sum(axis=1, keepdims=True)
        fusec.sum(z, axis=1, keepdims=True, out=z[::-1, 3:4])
        assert (z[::-1, 3:4] == wanted).all()
        z = np.arange(1600.0).reshape(40, 40)
        fusec.sum(z, out=z[7:8, 7].reshape(()))
        assert z[7, 7] == 1599 * 800
        z = np.arange(1600.0).reshape(40, 40)
        wanted = z.sum(axis=0)
        fusec.sum(z, axis=0, out=z[5], where=z >= 0)
        assert (z[5] == wanted).all()


def test_outputs_that_are_read_hold_what_they_held_or_zeros():
    for kernel, total in ((fusec.ScanKernel, np.cumsum), (fusec.ReductionKernel, np.sum)):
        adds = kernel("T x", "T y", "x", "a + b", "y += a", 0, "adds")
        x = np.arange(1.0, 1 + COUNT)
        held = np.full_like(total(x), 100.0)
        for start in (0.0, 100.0):
            given = (x,) if start == 0 else (x, np.asarray(held))
            assert (adds(*given) == start + total(x)).all()
    adds = fusec.ScanKernel("T x", "T y", "x", "a + b", "y += a", 0, "adds")
    for reorder in (lambda z: z, lambda z: z[::-1]):
        x = np.arange(1.0, 1 + COUNT)
        wanted = reorder(x) + np.cumsum(x)
        adds(x, out=reorder(x))
        assert (reorder(x) == wanted).all()
