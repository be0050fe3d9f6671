"""What a fused function makes twice is made once, wherever nobody can tell."""

import numpy as np
import pytest

import fusec
from tests.support.reports import library_calls

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(5, 300)), rng.normal(size=(300, 4))


def made(function, *args):
    """The result of a fused function, checked against NumPy, and how many calls of libraries and totals it makes."""
    fused = fusec.fuse(function)
    for _ in range(3):  # the third call runs native kernels
        fresh, other = ([np.copy(each) for each in args] for _ in range(2))
        found, wanted = fused(*fresh), function(*other)
        for one, two in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, two, 1e-11, 1e-11)
        for one, two in zip(fresh, other, strict=True):
            np.testing.assert_allclose(one, two, 1e-11, 1e-11)
    report = fused.explain(*args)
    return found, (library_calls(report), str(report).count("totals ("))


def correlations(x):
    return np.cov(x), np.corrcoef(x), np.cov(x) + np.corrcoef(x)


def products_of_products(x, y):
    return (x @ y) @ (x @ y).T, np.tanh((x @ y) @ (x @ y).T)


def of_means(x, y):
    return (x - x.mean(1, keepdims=True)) @ y, 2 * ((x - x.mean(1, keepdims=True)) @ y)


def sorted_twice(x):
    return np.sort(x, axis=0) + 1, np.sort(x, axis=0)[::-1] * 2


def contracted_twice(x, y):
    return np.einsum("ij,jk->ki", x, y) + 1, np.einsum("ij,jk->ki", x, y) * 2


@pytest.mark.parametrize(
    ("function", "args", "calls"),
    [
        (correlations, (X,), 1),
        (products_of_products, (X, Y), 2),
        (of_means, (X, Y), 1),
        (sorted_twice, (X,), 1),
        (contracted_twice, (X, Y), 1),
    ],
)
def test_a_call_of_a_library_is_made_once(function, args, calls):
    assert made(function, *args)[1][0] == calls


def test_totals_are_made_once():
    def centred(x, y):
        return (x - x.sum(1, keepdims=True)) @ y, (x / x.sum(1, keepdims=True)) @ y

    assert made(centred, X, Y)[1][1] == 1


def test_results_have_memory_of_their_own():
    def twice(x, y):
        return x @ y, x @ y, x.sum(0), x.sum(0)

    found, (calls, _) = made(twice, X, Y)
    assert calls == 1
    for at in (0, 2):
        kept = found[at + 1].copy()
        found[at][...] = 7
        np.testing.assert_array_equal(found[at + 1], kept)


@pytest.mark.parametrize("written", ["x", "y"])
def test_operands_that_change_make_another_product(written):
    def between(x, y):
        first = x @ y
        if written == "x":
            x[1] += 1
        else:
            y *= 2
        return first, x @ y, x @ y * 3

    assert made(between, X, Y)[1][0] == 2


def test_a_product_that_is_written_is_not_what_the_next_one_gives():
    def scaled(x, y):
        one = x @ y
        one *= 2
        other = x @ y
        other[0] = 1
        third = x @ y
        one[:, 1] = third[:, 0]
        return one, other, third

    assert made(scaled, X, Y)[1][0] == 1


def test_other_arguments_are_another_call():
    def orders(x):
        return np.sort(x, axis=0) + 1, np.sort(x, axis=1) + 1, np.sort(x, axis=0, kind="stable") + 1

    assert made(orders, X)[1][0] == 3


@pytest.mark.parametrize("extents", [(5, 300, 4), (7, 11, 3), (2, 70, 1), (0, 3, 2)])
def test_plans_for_other_extents_leave_out_the_same(extents):
    @fusec.fuse
    def both(x, y):
        x = x - x.mean(1, keepdims=True) if x.shape[1] else x
        return (x @ y) * 2, (x @ y).sum(0), np.exp((x - x.mean(1, keepdims=True)) @ y)

    rows, inner, columns = extents
    for extra in (0, 1, 4):
        x, y = rng.normal(size=(rows + extra, inner)), rng.normal(size=(inner, columns + extra))
        with np.errstate(invalid="ignore"):
            for one, two in zip(both(x, y), both.__wrapped__(x, y), strict=True):
                np.testing.assert_allclose(one, two, 1e-11, 1e-11)
