"""Python's integers of any size at every door: the exact value of Python or NumPy, or an error of the catalogue."""

import operator
import random
import warnings

import numpy as np
import pytest

import fusec
from fusec.errors import FusecError
from fusec.frontends.capture.closure import MAX_BITS

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64".split()
BITS = [1, 7, 8, 15, 16, 24, 31, 32, 53, 62, 63, 64, 65, 70, 127, 128, 511, 512, 513, 1023, 1024, 1300, 5000]
EDGES = [sign * ((1 << bits) + step) for bits in BITS for sign in (1, -1) for step in (-1, 0, 1)]


def outcome(function, *args):
    """What a call gives; the class of an error of the catalogue. All else is raised."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return function(*args)
    except FusecError as problem:
        text = str(problem)
        return problem if len(text) < 1000 else AssertionError(text)


def some(seed, count=12):
    """Edges, and numbers of random lengths."""
    chosen = random.Random(seed)
    lengths = [chosen.choice(BITS[:-1]) for _ in range(count // 2)]
    return [*chosen.sample(EDGES, count // 2), *(chosen.randint(-(1 << each), 1 << each) for each in lengths)]


def holds(found, exact):
    """Whether a result is an exact number, or a refusal."""
    return isinstance(found, OverflowError) or int(np.asarray(found).reshape(-1)[0]) == exact


@pytest.mark.parametrize("number", [each for each in EDGES if 31 <= abs(each).bit_length() <= 128], ids=hex)
def test_a_number_alone_is_itself_or_refused(number):
    exact = -(1 << 63) <= number < 1 << 63
    found = outcome(fusec.evaluate, str(number))
    assert holds(found, number)
    assert isinstance(found, OverflowError) != exact
    found = outcome(fusec.evaluate, "k", {"k": number})
    assert holds(found, number)
    assert isinstance(found, OverflowError) != exact


def folded(expression):
    """The value of an expression of numbers, without compiling it."""
    return outcome(fusec.simulate(fusec.elementwise(f"def f(x): return {expression}")), np.zeros(1))


@pytest.mark.parametrize("seed", range(4))
def test_folding_is_pythons(seed):
    operators = {
        "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
        "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
    }  # fmt: skip
    for left, right in zip(some(seed), some(seed + 100), strict=True):
        for op, exact in operators.items():
            if op in ("<<", ">>"):
                right %= 80
            if abs(left).bit_length() > 1200 or abs(right).bit_length() > 1200 or (op in ("//", "%") and not right):
                continue
            found = folded(f"({left}) {op} ({right})")
            assert holds(found, exact(left, right)), (left, op, right)
            found = folded(f"(({left}) {op} ({right})) < 1000")
            assert isinstance(found, OverflowError) or bool(found) == (exact(left, right) < 1000), (left, op, right)


@pytest.mark.parametrize("op", ["**", "<<", ">>"])
def test_huge_counts_take_no_time(op):
    for left in (0, 1, -1, 2, -7, 2**70):
        for right in (0, 1, 63, 64, 65, 2**31, 2**70, 2**1000):
            small = right <= 65
            found = folded(f"({left}) {op} {right}")
            if small:
                assert holds(found, {"**": operator.pow, "<<": operator.lshift, ">>": operator.rshift}[op](left, right))
            elif op == ">>" or abs(left) <= (op == "**"):
                exact = {">>": -1 if left < 0 else 0, "**": abs(left), "<<": 0}[op]  # these counts are even
                assert holds(found, exact)
            else:
                assert isinstance(found, OverflowError)


def doors(number):
    """Functions of an array that each bring in the number in another way, and what NumPy does there."""
    names = {"N": number, "np": np}
    add, less = "def f(x): return x + N", "def f(x): return x < N"
    shown = f"({number})"
    evaluated = fusec.evaluate
    yield fusec.elementwise(add, names=names), operator.add
    yield fusec.elementwise(less, names=names), operator.lt
    yield fusec.fuse(lambda x: x + number), operator.add
    yield fusec.fuse(lambda x: x < number), operator.lt
    if abs(number).bit_length() < 1300:
        yield lambda x: evaluated(f"x + {shown}"), operator.add
        yield lambda x: evaluated(f"{shown} > x"), operator.lt


CALLS = {
    "elementwise": fusec.elementwise("def f(x, k): return x + k"),
    "kernel": fusec.ElementwiseKernel("T x, T k", "T y", "y = x + k"),
    "fuse": fusec.fuse(lambda x, k: x + k),
    "evaluate": lambda x, k: fusec.evaluate("x + k"),
}


def agrees(found, wanted, array, number):
    """Whether a result is NumPy's, or both refuse.

    fusec alone refuses a bool and a number that it never is, and integers of thousands of bits.
    """
    if isinstance(found, FusecError):
        code = found.error.code
        alone = (array.dtype == bool and code == "F720") or (number.bit_length() > MAX_BITS and code == "F180")
        return isinstance(wanted, Exception) or alone
    if isinstance(wanted, Exception):
        return found.dtype == bool  # of exact comparisons
    return found.dtype == wanted.dtype and np.array_equal(found, wanted, equal_nan=True)


def in_numpy(function, *args):
    """What NumPy gives, or its refusal."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return function(*args)
    except (OverflowError, TypeError) as problem:
        return problem


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.slow) if seed else seed for seed in range(20)])
def test_arrays_and_integers_meet_as_in_numpy(seed):
    for number in some(seed, 4):
        for dtype in random.Random(seed).sample(DTYPES, 3):
            array = np.array([1, 0, 1], dtype)
            for door, reference in doors(number):
                wanted = in_numpy(reference, array, number)
                if reference is operator.lt and array.dtype.kind == "c":
                    continue
                found = outcome(door, array)
                assert agrees(found, wanted, array, number), (number, dtype, found, wanted)


@pytest.mark.parametrize("name", CALLS)
def test_arguments_meet_arrays_as_in_numpy(name):
    for dtype in ("uint8", "int64", "uint64", "float32", "float64"):
        array = np.array([1, 0, 1], dtype)
        for number in (1, 255, 256, -1, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**70, 2**200, 10**400, -(10**5000)):
            for _ in range(2):  # the second time by a native entry, if there is one
                found, wanted = outcome(CALLS[name], array, number), in_numpy(operator.add, array, number)
                assert agrees(found, wanted, array, number), (name, dtype, number, found, wanted)


def test_numbers_alone_are_exact_or_refused():
    same = fusec.elementwise("def f(x): return x")
    plain = fusec.vectorize(lambda x: x)
    for number in EDGES:
        for function in (same, plain):
            found = outcome(function, number)
            assert holds(found, number)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**70, 10**400, 10**5000], ids=int.bit_length)
def test_other_doors_refuse(number):
    x, i = np.ones(3), np.arange(3)
    names = {"N": number, "fusec": fusec, "np": np}
    stores = fusec.ElementwiseKernel("", "raw T z", "z[i] = 1", "stores")
    kernel = "def f(z):\n    for i in fusec.grid(3):\n        "
    cases = [
        lambda: stores(x, size=number),
        lambda: fusec.sum(i, initial=number),
        lambda: fusec.max(i, initial=number),
        lambda: fusec.sum(i, axis=number),
        lambda: fusec.cumsum(i, axis=number),
        lambda: fusec.elementwise("def f(x): return x")(x, block_size=number),
        lambda: fusec.elementwise("def f(x): return N", names=names)(x),
        lambda: fusec.elementwise("def f(x): return N if x > 1 else 1", names=names)(x),
        lambda: fusec.elementwise("def f(x): return max(x, N)", names=names)(i),
        lambda: fusec.elementwise("def f(x): return 1 << N", names=names)(x),
        lambda: fusec.elementwise("def f(x): return x << N", names=names)(i),
        lambda: fusec.elementwise("def f(x): return np.int32(N)", names=names)(x),
        lambda: fusec.elementwise("def f(x):\n    for k in range(N): x += k\n    return x", names=names)(i),
        lambda: fusec.elementwise("def f(x):\n    a = N\n    for k in range(3): a += 1\n    return a", names=names)(x),
        lambda: fusec.kernel(f"{kernel}z[i] = N", names=names)(i.copy()),
        lambda: fusec.kernel(f"{kernel}z[N] = 1", names=names)(i.copy()),
        lambda: fusec.stencil("def f(a): return a[N]", names=names)(i),
        lambda: fusec.fuse(lambda a: np.where(a > 1, number, a))(i),
    ]
    if number > 0:
        cases.append(lambda: fusec.kernel("def f(z):\n    for i in fusec.grid(N): z[0] = 1", names=names)(i.copy()))
    if number > 0 and number < 10**400:
        kernel_text = fusec.ElementwiseKernel("T x", "T y", f"y = {number}", "literal")
        if number >= 2**64:
            cases.append(lambda: kernel_text(x))
        cases.append(lambda: fusec.stencil("def f(a): return a[1]", boundary="constant", cval=number)(i))
    for at, case in enumerate(cases):
        assert isinstance(outcome(case), FusecError), at


def test_an_integer_too_large_is_named_at_its_place():
    with pytest.raises(OverflowError, match=r"Python integer 18446744073709551616 out of bounds for int64") as caught:
        fusec.evaluate("where(x, 2**64, 1)", {"x": np.ones(3)})
    assert "where(x, 2**64, 1)\n  | ^^^" in str(caught.value)
    with pytest.raises(OverflowError, match=r"does not fit int64, the type of parameter 'k'"):
        fusec.evaluate("k", {"k": 2**63})
