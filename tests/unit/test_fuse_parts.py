"""Real and imaginary parts in fused functions: views of complex arrays, as NumPy has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec


def written_through(c: Any) -> Any:
    c.real[...] = 0
    c.imag[0, ::2] = [[7], [8]] if c.shape == (2, 4, 3) else 7
    return c


def seen_through(c: Any) -> Any:
    real, last = c.real, np.imag(c)[..., -1]
    c[:, 1] = 5 - 2j
    return real + 1, last * 2, real


def of_a_value(c: Any) -> Any:
    d = c * 2
    real, imag = d.real, d.imag
    d[0] = 3j
    imag += 1
    return d, real, imag, real.T.sum(0)


def set_by_name(c: Any) -> Any:
    d = c + 0
    d.real, c.imag = 1, c.real * 2
    d.imag *= 3
    d.real[0] += d.imag[1]
    return d


def swapped(c: Any) -> Any:
    old = c.real + 0
    c.real[...] = c.imag
    c.imag[...] = old
    return c.real.reshape(-1), c.real[0, 1, 0], np.flip(c.imag, 0), c.real.T


def of_reals(x: Any) -> Any:
    x.real[...] = x.real + 1
    x.real = x * 2
    return x.imag, x.real.dtype == x.dtype


FUNCTIONS = [written_through, seen_through, of_a_value, set_by_name, swapped]


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("lay", [np.asarray, np.transpose, lambda c: c[:, ::-1, :2]], ids=["C", "F", "sliced"])
@pytest.mark.sampled(5)
def test_parts_are_views(function: Callable[..., Any], lay: Callable[..., Any], dtype: str) -> None:
    def given() -> Any:
        return lay((np.arange(24).reshape(2, 4, 3) * (1 + 2j)).astype(dtype))

    fused, ours, theirs = fusec.fuse(function), given(), given()
    for _ in range(2):
        found, wanted = fused(ours), function(theirs)
        for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (found, wanted)), strict=True):
            np.testing.assert_array_equal(one, other, strict=True)
        np.testing.assert_array_equal(ours, theirs)


def test_parts_of_reals() -> None:
    ours, theirs = (np.arange(24.0).reshape(2, 3, 4).swapaxes(0, 1) for _ in range(2))
    found, wanted = fusec.fuse(of_reals)(ours), of_reals(theirs)
    np.testing.assert_array_equal(found[0], wanted[0], strict=True)
    assert found[0].strides == wanted[0].strides
    np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(ValueError, match="read-only"):
        fusec.fuse(lambda x: x.imag.fill(1))(ours)
    with pytest.raises(TypeError, match="does not have imaginary part to set"):
        fusec.fuse(lambda x: setattr(x, "imag", 1))(ours)


def test_parts_of_numbers() -> None:
    def parts(x: Any, n: Any) -> Any:
        return [each for number in (x.max(), x[0], n, np.float32(2) * x[1]) for each in (number.real, number.imag)]

    fused = fusec.fuse(parts)
    for x in (np.arange(3.0), np.arange(3), np.arange(3) * 1j, np.ones(3, bool)):
        for n in (3, True, 1.5, 2j):
            found, wanted = fused(x, n), parts(x, n)
            assert found == wanted
            assert list(map(type, found)) == list(map(type, wanted))


def test_parts_that_are_returned_share_memory_with_the_argument_alone() -> None:
    c = np.ones(3, complex)
    real, new = fusec.fuse(lambda c: (c.real, (c + 1).imag))(c)
    assert np.shares_memory(real, c)
    assert new.flags.c_contiguous
    real[1] = 7
    assert c[1] == 7


def test_new_arrays_of_the_layout_of_imaginary_parts_of_reals_are_written() -> None:
    def both(x: Any) -> Any:
        nothing, zeros, twice = x.imag, np.zeros_like(x), x * 2
        zeros[0] = twice[0] = x[0]
        return nothing + zeros + twice

    x = np.ones((2, 3))
    np.testing.assert_array_equal(fusec.fuse(both)(x), both(x), strict=True)


SHARED: dict[str, Callable[[Any], Any]] = {
    "bits before the array": lambda t: (t.view("int32"), t),
    "bits behind the array": lambda t: (t, t.view("int32")),
    "bits of two kinds": lambda t: (t.view("int32"), t.view("uint32")),
    "bits, and part of the array in a list": lambda t: (t.view("int32"), [t[1:]]),
}


@pytest.mark.parametrize("views", SHARED.values(), ids=SHARED)
def test_views_of_bits_share_memory_in_any_order_of_results(views: Callable[[Any], Any]) -> None:
    found = fusec.fuse(lambda x: views(x * 2))(np.arange(4, dtype="float32"))
    wanted = views(np.arange(4, dtype="float32") * 2)
    one, other, theirs = found[0], found[1], wanted[1]
    other, theirs = (each[0] if isinstance(each, list) else each for each in (other, theirs))
    np.testing.assert_array_equal(one, wanted[0], strict=True)
    np.testing.assert_array_equal(other, theirs, strict=True)
    assert np.shares_memory(one, other)


def test_parts_share_memory_with_the_complex_array_that_is_returned_behind_them() -> None:
    real, whole = fusec.fuse(lambda c: (lambda t: (t.real, t))(c * 2))(np.ones(3, complex))
    assert np.shares_memory(real, whole)


IN_OTHER_ORDER: dict[str, Callable[[Any], Any]] = {
    "bits": lambda x: x.view("int32"), "bits of a part": lambda x: x[1:].view("uint32"),
    "bits in the order of numbers": lambda x: x.view("float32"), "bits of a copy": lambda x: x.copy().view("int32"),
    "bits of a number": lambda x: x[1].view("int32"), "chosen elements": lambda x: x.__setitem__([0, 1], 5),
    "a ufunc's at": lambda x: np.add.at(x, [0, 1], 5), "put": lambda x: np.put(x, [0], 1), "sorted": lambda x: x.sort(),
    "an element": lambda x: x.__setitem__(0, 1),
}  # fmt: skip
OUTSIDE = np.arange(4, dtype=np.dtype("float32").newbyteorder())


@pytest.mark.parametrize("use", IN_OTHER_ORDER.values(), ids=IN_OTHER_ORDER)
def test_the_bytes_of_arrays_in_another_byte_order_are_neither_read_nor_written(use: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"dtype '.f4' of parameter 'x'.*F206"):
        fusec.fuse(lambda x: use(x))(OUTSIDE)
    with pytest.raises(TypeError, match=r"dtype '.f4' of parameter 'OUTSIDE'.*F206"):
        fusec.fuse(lambda: use(OUTSIDE))()
    np.testing.assert_array_equal(fusec.fuse(lambda x: (x + 0).view("int32"))(OUTSIDE), (OUTSIDE + 0).view("int32"))


def test_a_returned_part_that_came_before_a_write_is_refused():
    def row(x):
        best = x[x.sum(1).argmax()]
        x[0] = 0
        return best, best.shape

    with pytest.raises(fusec.FusecTypeError, match="read after a write"):
        fusec.fuse(row)(np.array([[9.0, 9], [1, 1], [0, 0]]))
    number = fusec.fuse(lambda x: (x[x.argmax()], x.fill(0))[0])(np.array([3.0, 1]))
    assert number == 3


def test_numbers_take_no_writes():
    def write(x):
        total = x.sum()
        total[...] = 3
        return total

    with pytest.raises(TypeError, match="does not support item assignment"):
        fusec.fuse(write)(np.arange(3.0))
    with pytest.raises(ValueError, match="enough dimensions"):
        fusec.fuse(lambda x: x @ 2)(np.arange(3.0))


def test_bits_in_another_byte_order_are_refused_by_every_call():
    fused = fusec.fuse(lambda x: x.view("i8"))
    for _ in range(3):
        np.testing.assert_array_equal(fused(np.arange(3.0)), np.arange(3.0).view("i8"))
        with pytest.raises(TypeError, match="F206"):
            fused(np.arange(3.0).astype(">f8"))
