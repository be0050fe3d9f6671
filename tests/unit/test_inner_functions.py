"""Functions inside a function see its variables, as Python's closures do."""

import numpy as np
import pytest

import fusec
from fusec import FusecError
from tests.support.python_law import law

SCALE = 3.0
X = np.linspace(-1, 2, 7)


def outer(function, v):
    return function(v) + 1


def test_a_name_from_around_is_what_it_is_at_the_call():
    def f(x, y):
        k = 2

        def g(v, w=k):
            return v * s + w + SCALE

        s = x + 1
        first = g(y)
        s, k = s * 2, 5
        return first, g(y), g(w=1, v=2), k

    law(f, X, X * 3)


def test_statements_loops_and_functions_of_functions():
    def f(x, y):
        def g(v):
            return v * y

        def h(v):
            """Several statements."""
            total = 0
            for i in range(3):
                total = total + g(v) * i
            if total > 5:
                return total - y
            return total

        def apply(function, y):
            return function(y) + y

        for y in (1.5, 2.5):  # noqa: B007 - h sees it
            x = x + h(x)
        return h(y), apply(g, x), outer(g, x), outer(h, y), x

    law(f, X, X * 3)


def test_the_names_of_a_function_are_its_own():
    def f(x, s):
        def h(v):
            return v * s

        def g(s):
            x = h(s)
            return x + s

        return g(x), x, s

    law(f, X, X + 5)


def test_tuples_tables_and_several_results():
    table = np.arange(6.0).reshape(3, 2)

    def f(i, x):
        row = table[i]

        def parts(j):
            return row[j] * x, j

        def chosen(j):
            found, at = parts(j)
            return found + at

        a, b = parts(1)
        return a + b + chosen(0)

    law(f, np.arange(3), X[:3])


def test_neighbours_of_a_stencil_through_a_function():
    @fusec.stencil(boundary="skip")
    def laplacian(u):
        def at(i, j):
            return u[i, j]

        def both(i, j):
            return at(i, j) + at(-i, -j)

        return both(0, 1) + both(1, 0) - 4 * u

    u = np.random.default_rng(0).random((5, 6))
    wanted = u[1:-1, 2:] + u[1:-1, :-2] + (u[2:, 1:-1] + u[:-2, 1:-1]) - 4 * u[1:-1, 1:-1]
    np.testing.assert_array_equal(laplacian(u)[1:-1, 1:-1], wanted)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    def g(v):\n        return g(v)\n    return g(x)", "'g' calls itself"),
        ("    def a(v):\n        return b(v)\n    def b(v):\n        return a(v)\n    return a(x)", "calls itself"),
        ("    def g(v):\n        return v * s\n    r = g(x)\n    s = 2\n    return r", "unknown name 's'"),
        ("    def g(v):\n        return v\n    return g", "the function g is not a value"),
        ("    def g(v):\n        return v\n    return g(x, 1)", "takes 1 argument"),
        ("    def g(v):\n        pass\n    return g(x)", "can end without returning"),
        ("    def g(v):\n        nonlocal x\n        x = v\n    return g(x)", "nonlocal is not part"),
    ],
)
def test_what_python_allows_and_a_kernel_does_not_is_named(body, message):
    with pytest.raises(FusecError, match=message):
        fusec.elementwise(f"def f(x):\n{body}")(np.ones(3))


def test_an_array_is_not_indexed_in_several_statements():
    with pytest.raises(FusecError, match="in an inner function of several statements"):
        fusec.stencil(
            "def f(u):\n    def g(i):\n        k = i + 1\n        return u[k]\n    return u[0] + g(1)", boundary="wrap"
        )(np.ones(3))
