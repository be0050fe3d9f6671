"""What a fused function makes of its Python numbers is what Python makes of them, and meets arrays as in NumPy."""

import operator
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fusec

CALM = {"deadline": None, "suppress_health_check": list(HealthCheck)}
DTYPES = ["bool", "int8", "uint8", "int16", "uint32", "int64", "uint64", "float32", "float64"]
BINARY = [
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.and_, operator.or_,
    operator.xor, operator.lshift, operator.rshift, operator.truediv, operator.pow, operator.lt, operator.eq,
]  # fmt: skip
UNARY = [operator.neg, operator.pos, operator.invert, abs]
NUMBERS = st.one_of(
    st.integers(-3, 10),
    st.sampled_from([100, 127, 128, 200, 255, 256, -128, -129, 2**31, 2**32 + 1, 2**40, 2**62, -(2**63), 2**63 - 1]),
)


def in_place(function):
    def use(x, n):
        x = x.copy()
        function(x, n)
        return x

    return use


LOUD = [  # NumPy's np.where wraps the number, and its comparisons take what int64 does not hold
    lambda x, n: x < n, lambda x, n: n >= x, lambda x, n: x == n, lambda x, n: x != n,
    lambda x, n: np.where(x > 3, x, n), lambda x, n: np.where(n, x, 1),
]  # fmt: skip
USES = [
    *LOUD, lambda x, n: x + n, lambda x, n: n - x, lambda x, n: x * n, lambda x, n: x // n, lambda x, n: x % n,
    lambda x, n: x & n, lambda x, n: x | n, lambda x, n: x << n, lambda x, n: x >> n, lambda x, n: x**n,
    lambda x, n: np.clip(x, 0, n),
    lambda x, n: np.clip(x, n, None), lambda x, n: np.minimum(x, n), lambda x, n: np.maximum(n, x),
    lambda x, n: np.sum(x, initial=n), lambda x, n: np.max(x, initial=n), lambda x, n: np.full_like(x, n),
    in_place(lambda x, n: operator.iadd(x, n)), in_place(lambda x, n: operator.setitem(x, ..., n)),
    in_place(lambda x, n: x.fill(n)), in_place(lambda x, n: np.multiply(x, n, out=x)),
    in_place(lambda x, n: operator.setitem(x, slice(1, None), n)),
    lambda x, n: n, lambda x, n: (x, n, [n + 1]),
]  # fmt: skip
DERIVED = st.recursive(
    st.sampled_from(["n", "m", 2, 7, -1]),
    lambda inner: st.one_of(st.tuples(st.sampled_from(UNARY), inner), st.tuples(st.sampled_from(BINARY), inner, inner)),
    max_leaves=4,
)


def made(tree, n, m):
    """What a tree of operators says of two numbers; shifts and powers too large to compute stay small."""
    if not isinstance(tree, tuple):
        return {"n": n, "m": m}.get(tree, tree)
    return tree[0](*(made(each, n, m) for each in tree[1:]))


def is_huge(tree, n, m):
    """Whether a shift or power in a tree is of numbers too large to wait for."""
    if not isinstance(tree, tuple):
        return False
    if any(is_huge(each, n, m) for each in tree[1:]):
        return True
    try:
        values = [made(each, n, m) for each in tree[1:]]
    except Exception:
        return False
    return tree[0] in (operator.lshift, operator.pow) and abs(values[1]) > 300


KINDS = (OverflowError, ZeroDivisionError, ValueError, TypeError)


def outcome(function, *args):
    """The result, or the exception."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args), None
        except Exception as error:
            return None, error


def check(dtype, tree, use, calls):
    def function(x, n, m):
        return use(x, made(tree, n, m))

    fused, x = fusec.fuse(function), np.array([0, 1, 2, 5, 100], dtype)
    for n, m in calls:
        if is_huge(tree, n, m) or (isinstance(outcome(made, tree, n, m)[0], float) and x.dtype.kind in "iu"):
            continue  # floats that become integers have a law of their own
        (wanted, theirs), (found, ours) = outcome(function, x, n, m), outcome(fused, x, n, m)
        if theirs is not None:
            assert ours is not None, (theirs, found)
            kinds = [each for each in KINDS if isinstance(theirs, each)]
            assert isinstance(ours, (*kinds, fusec.FusecError)), (theirs, ours)
        elif ours is not None:
            assert use in LOUD, ours
            assert isinstance(ours, OverflowError), ours
        elif type(wanted) is tuple:
            assert wanted[1:] == found[1:]
        else:
            assert type(wanted) is type(found)
            np.testing.assert_array_equal(found, wanted, strict=isinstance(wanted, np.ndarray))


calls = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=3)


@settings(max_examples=60, derandomize=True, **CALM)
@given(st.sampled_from(DTYPES), DERIVED, st.sampled_from(USES), calls)
def test_numbers_are_pythons_until_they_meet_an_array(dtype, tree, use, calls):
    check(dtype, tree, use, calls)


@pytest.mark.slow
@settings(max_examples=3000, **CALM)
@given(st.sampled_from(DTYPES), DERIVED, st.sampled_from(USES), calls)
def test_numbers_are_pythons_until_they_meet_an_array_in_many(dtype, tree, use, calls):
    check(dtype, tree, use, calls)
