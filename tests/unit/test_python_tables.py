"""Tuples and arrays from outside: items by any index, loops over them, what they hold once a function is decorated."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import fusec
from fusec import FusecError, FusecIndexError
from fusec.frontends.capture.frozen_globals import MAX_TABLE
from fusec.ir.verify import TABLE_LENGTH
from tests.support.python_law import law

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128".split()
ODD = [np.nan, -0.0, np.inf, 5e-324, 1e-45, 1.5, -2.5]
WEIGHTS = (0.25, 0.5, 0.25, 7)
PAIRS = ((1, 2.5), (3, 4.5), (5, 6.5))
ROWS = np.arange(24.0).reshape(4, 3, 2)
LONG = np.linspace(0, 1, 100)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.sampled(3)
def test_an_element_is_numpys_for_every_dtype_and_kind_of_index(dtype):
    with np.errstate(all="ignore"):
        table = np.array(ODD if np.dtype(dtype).kind in "fc" else [0, 1, 2, 100, 127, 3, 1]).astype(dtype)

    def f(i):
        return table[i]

    with np.errstate(all="ignore"):
        law(f, np.arange(7).astype("uint8"))
        law(f, np.arange(-7, 7))
        law(f, np.arange(-7, 7).astype("int8"))


def test_swapped_strided_and_single_arrays_are_tables_too():
    swapped, strided, single = np.arange(9, dtype=">i4"), np.arange(20.0)[::-2], np.array([3.5])

    def f(i):
        return swapped[i] + strided[i], single[i - i], single[0], strided[-1]

    law(f, np.arange(9))


def test_rows_items_of_tuples_and_what_is_known_of_an_array():
    def f(i, x):
        row = ROWS[i]
        first, second = row[i % 3]
        whole, part = PAIRS[i % 3]
        i = i + 1
        return row[1][0] + first * second + ROWS[i % 4, 2, 1] + whole * part, len(ROWS) + ROWS.size + ROWS.shape[1], x

    law(f, np.arange(4), np.linspace(0, 1, 4))


def test_items_that_are_computed_are_chosen_from():
    def f(i, x):
        return (x, 2 * x, 0.5, x - 1, 7)[i], ((x, i), (x * x, 3))[i % 2][0]

    law(f, np.arange(5), np.linspace(-1, 1, 5))


def helper(table, x, i):
    return table[i] * x


def test_tables_go_to_functions():
    def f(i, x):
        return helper(LONG, x, i) + helper(ROWS[i % 4, 1], x, i % 2) + helper(WEIGHTS, x, i % 4)

    law(f, np.arange(60), np.linspace(-1, 1, 60))


def test_loops_over_tuples_and_arrays_are_pythons():
    def f(x):
        total = x * 0
        for k in (1, 2, 3):
            total = total + x * k
        for at, weight in enumerate(WEIGHTS, 1):
            total += weight * at
        for (whole, part), weight in zip(PAIRS, reversed(WEIGHTS)):  # noqa: B905
            if whole == 3:
                continue
            if total > 8:
                break
            total += whole * part - weight
        for y in (x, total):
            x = x + y
        for each in LONG:
            if each > x:
                break
            total += each
        for at, (p, q) in enumerate(ROWS[0]):
            total += p * q * at
        return total, k, x

    law(f, np.linspace(-3, 3, 41))


def test_a_loop_written_out_leaves_by_every_way():
    def f(x):
        for k in (3, 4):
            for w in WEIGHTS:
                if x < w:
                    break
                x = x + w * k
                if x > 20:
                    continue
                x = x - 0.125
                if x == 8:
                    return x, k
            if x < 1:
                continue
            x = x - 1
        return x, k

    law(f, np.linspace(-3, 9, 97))


def test_a_table_is_what_it_was_when_the_function_was_decorated():
    table, numbers, config = np.arange(4), [1, 2, 3, 4], SimpleNamespace(table=np.arange(4.0), list=[5, 6, 7, 8])

    def inner(i):
        return table[i]

    @fusec.elementwise
    def f(i):
        return table[i] + numbers[i] * 10 + config.table[i] * 100 + config.list[i] * 1000 + inner(i) * 10000

    i = np.arange(4)
    wanted = i + (i + 1) * 10 + i * 100.0 + (i + 5) * 1000 + i * 10000
    for _ in range(2):
        table[:], numbers[:], config.table[:], config.list[:] = 9, [9] * 4, 9, [9] * 4
        np.testing.assert_array_equal(f(i), wanted)
        np.testing.assert_array_equal(f(i.astype("int8")), wanted)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f))(i), wanted)


def test_unchecked_an_index_outside_is_that_of_the_nearest_item():
    table = np.array([10, 11, 12])
    f = fusec.elementwise(lambda i: table[i] + (1, 2, 3)[i])
    far = np.array([-(2**63), -4, -3, 2, 3, 2**63 - 1])
    np.testing.assert_array_equal(f(far), [11, 11, 11, 15, 15, 15])
    np.testing.assert_array_equal(f(np.array([2**64 - 1, 2**63, 3, 0], "uint64")), [15, 15, 15, 11])


def test_checked_an_index_outside_is_reported(monkeypatch):
    monkeypatch.setenv("FUSEC_CHECK", "bounds")
    table = np.array([10, 11, 12])

    @fusec.elementwise
    def f(i):
        return table[i] if i < 9 else table[0]

    np.testing.assert_array_equal(f(np.array([-3, 2, 100])), [10, 12, 10])
    for index in (-4, 3):
        with pytest.raises(FusecIndexError, match=f"index {index} is outside a table of 3 items") as caught:
            f(np.array([0, index, 1]))
        assert "return table[i]" in str(caught.value)
        assert "in element 1" in str(caught.value)
        assert "from -3 to 2;" in caught.value.hint


def test_tables_have_up_to_a_bound_of_elements():
    assert MAX_TABLE == TABLE_LENGTH
    table = np.arange(MAX_TABLE) * 3
    f = fusec.elementwise(lambda i: table[i])
    i = np.array([0, 1, MAX_TABLE - 1])
    np.testing.assert_array_equal(f(i), table[i])
    larger, longer, empty = np.zeros(MAX_TABLE + 1), (1,) * (MAX_TABLE + 1), np.zeros(0)
    for g in (lambda i: larger[i], lambda i: longer[i], lambda i: empty[i]):
        with pytest.raises(FusecError, match=r"at most 4096|is empty"):
            fusec.elementwise(g)(i)


def test_an_integer_beyond_64_bits_is_no_item_of_a_table():
    wide = (1, 2**64)
    with pytest.raises(OverflowError, match="18446744073709551616"):
        fusec.elementwise(lambda i: wide[i])(np.arange(2))


def test_reductions_and_scans_have_tables():
    weights = np.array([1.0, 2.0, 4.0])
    total = fusec.reduction(map=lambda x, i: x * weights[i], combine=lambda a, b: a + b)
    x, i = np.arange(6.0), np.arange(6) % 3
    assert total(x, i) == (x * weights[i]).sum()


@pytest.mark.parametrize("boundary", ["skip", "reflect", "constant"])
def test_a_stencil_of_loops_is_that_of_its_neighbours_written_out(boundary):
    @fusec.stencil(boundary=boundary)
    def loops(a):
        found = 0 * a[0, 0]
        for i in range(-1, 2):
            for j, w in zip((-2, 0, 1), WEIGHTS):  # noqa: B905
                at = j + 1
                found += a[i, at - 1] * w
        return found

    @fusec.stencil(boundary=boundary)
    def written(a):
        found = 0 * a[0, 0]
        found += a[-1, -2] * 0.25
        found += a[-1, 0] * 0.5
        found += a[-1, 1] * 0.25
        found += a[0, -2] * 0.25
        found += a[0, 0] * 0.5
        found += a[0, 1] * 0.25
        found += a[1, -2] * 0.25
        found += a[1, 0] * 0.5
        found += a[1, 1] * 0.25
        return found

    a = np.random.default_rng(5).normal(size=(19, 23)).astype("float32")
    np.testing.assert_array_equal(loops(a), written(a))


def test_offsets_of_a_captured_radius_skip_the_border():
    radius = 2

    @fusec.stencil(boundary="skip")
    def box(a):
        total = 0
        for k in range(-radius, radius + 1):
            if k == 1:
                continue
            total += a[k]
        return total

    a = np.arange(10)
    np.testing.assert_array_equal(box(a)[2:-2], a[:-4] + a[1:-3] + a[2:-2] + a[4:])
    assert not box(a)[:2].any()
