"""Offsets, grids, counters and borders at the ends of what their types hold: right, or refused by name."""

import numpy as np
import pytest

import fusec
from fusec import FusecError
from fusec.frontends.python.stencil import MAX_OFFSET

FAR = MAX_OFFSET


@pytest.mark.parametrize("offset", [-(2**63), 2**63 - 1, FAR + 1, -FAR - 1, "np.int64(-2**63)"])
def test_offsets_beyond_the_bound_are_refused(offset):
    far = fusec.stencil(f"def f(a): return a[{offset}]", boundary="wrap", names={"np": np})
    with pytest.raises(FusecError, match=r"offset -?\d+ is beyond 2147483648"):
        far(np.ones(100, np.uint8))


@pytest.mark.parametrize("mode", ["constant", "nearest", "reflect", "mirror", "wrap", "skip"])
@pytest.mark.parametrize("offset", [FAR, -FAR])
def test_offsets_up_to_the_bound_are_looked_up(mode, offset):
    a = np.arange(7, dtype=np.uint8)
    at = np.arange(7) + offset
    pads = {"nearest": np.clip(at, 0, 6), "wrap": at % 7, "mirror": 6 - abs(at % 12 - 6)}
    pads["reflect"] = np.where(at % 14 < 7, at % 14, 13 - at % 14)
    wanted = a[pads[mode]] if mode in pads else np.zeros(7)
    assert fusec.stencil(f"def f(a): return a[{offset}]", boundary=mode)(a).tolist() == wanted.tolist()


@pytest.mark.parametrize("mode", ["constant", "nearest", "reflect", "mirror", "wrap"])
def test_offsets_of_a_call_stay_inside(mode):
    f = fusec.stencil("def f(a, k: int): return a[k]", boundary=mode, cval=5)
    for k in (-(2**63), 2**63 - 1):
        assert set(f(np.full(100, 5, np.uint8), k).tolist()) == {5}


@fusec.kernel
def square(out, n, m):
    for _i, _j in fusec.grid((n, m)):
        fusec.atomic_add(out, 0, 1)


@fusec.kernel
def squared(out, n):
    for _i in fusec.grid(n * n):
        fusec.atomic_add(out, 0, 1)


def test_grids_are_counted_exactly():
    out = np.zeros(1, np.int64)
    for _ in range(3):  # native entries stand before Python from the second call on
        square(out, 2, 3)
        squared(out, np.int8(12))
        for n, m in ((2**32, 2**32), (2**63 - 1, 2**63 - 1), (2**62, 2)):
            with pytest.raises(FusecError, match=rf"grid \(n, m\) is too large: {n} x {m} is more"):
                square(out, n, m)
        for n in (2**32, -(2**32), np.int64(2**32)):
            with pytest.raises(FusecError, match="grid n \\* n is too large: 18446744073709551616 is"):
                squared(out, n)
        with pytest.raises(FusecError, match=r"m, which is 2\.5, is not an integer"):
            square(out, 2, 2.5)
        square(out, -(2**63), 2**63 - 1)
        square(out, 0, 2**63 - 1)
    assert out.tolist() == [3 * (6 + 144)]


def test_a_shift_fills_no_memory():
    shifted = fusec.kernel("def f(out, n):\n    for i in fusec.grid(1 << n):\n        fusec.atomic_add(out, 0, 1)\n")
    out = np.zeros(1, np.int64)
    for n, message in ((2**40, "shift by 1099511627776 bits"), (63, "too large"), (-1, "negative shift")):
        with pytest.raises(FusecError, match=message):
            shifted(out, n)
    shifted(out, 3)
    assert out.tolist() == [8]


def test_an_extent_of_a_tuple_is_named():
    @fusec.kernel
    def f(out, n):
        shape = (2, n / 2)
        for i, j in fusec.grid(shape):
            out[i, j] = 1

    with pytest.raises(FusecError, match=r"shape\[1\], which is 1\.5, is not an integer"):
        f(np.ones((2, 2)), 3)


@pytest.mark.parametrize("given", ["2**63 - 8, 2**63 - 1, 5", "-2**63 + 7, -2**63, -5", "-2**63, 2**63 - 1, 2**62"])
def test_counters_that_would_leave_their_type_are_refused(given):
    with pytest.raises(FusecError, match="leaves int64"):
        counted(given)


@pytest.mark.parametrize("given", ["2**63 - 8, 2**63 - 1", "2**63 - 11, 2**63 - 1, 5", "-2**63 + 9, -2**63, -1"])
def test_counters_up_to_the_ends_of_their_type_count(given):
    rounds = eval(f"range({given})")
    assert counted(given).tolist() == [sum(rounds) % 2**64, len(rounds)]


def counted(given):
    """The sum of a range modulo 2**64, and how many numbers it has."""
    parts = ", ".join(str(eval(part)) for part in given.split(","))
    body = f"n = np.uint64(0)\n    for i in range({parts}):\n        x += i\n        n += 1\n    return x, n"
    total, rounds = fusec.elementwise(f"def f(x):\n    {body}", names={"np": np})(np.zeros(1, np.int64))
    return np.concatenate([total.view(np.uint64), rounds])


@pytest.mark.parametrize(
    ("cval", "dtype"),
    [(2.5, "int64"), (np.nan, "int32"), (np.inf, "int8"), (-1, "uint8"), (256, "uint8"), (np.int64(300), "uint8"),
     (2**63, "int64"), (2.0**63, "int64"), (2, "bool"), (1j, "int16")],
)  # fmt: skip
def test_borders_that_no_element_can_be_are_refused(cval, dtype):
    with pytest.raises(FusecError, match=f"cval=.* is not a value of {dtype}, the dtype of 'a'"):
        fusec.stencil("def f(a): return a[-1]", cval=cval)(np.ones(2, dtype))


@pytest.mark.parametrize(
    ("cval", "dtype"),
    [(2.0, "int64"), (-(2.0**63), "int64"), (255, "uint8"), (2**64 - 1, "uint64"), (True, "int8"), (1, "bool"),
     (0.1, "float32"), (np.inf, "float16"), (2.5j, "complex64"), (2**24 + 1, "float32")],
)  # fmt: skip
def test_borders_are_what_the_dtype_holds(cval, dtype):
    found = fusec.stencil("def f(a): return a[-1]", cval=cval)(np.ones(2, dtype))
    assert found[0] == np.asarray(cval).astype(dtype)
