"""check="wrap" reports the operations whose exact result their type does not hold, at their lines, and no others."""

import math
import operator
import pickle
import re
import traceback
from pathlib import Path

import numpy as np
import pytest

import fusec
from fusec import passes
from fusec.base.dtypes import INT32, UINT8
from fusec.compiler.lowering import lower_program
from fusec.frontends.c.definition import Definition
from fusec.passes.bounds import check_bounds

INTEGERS = [f"{kind}{bits}" for bits in (8, 16, 32, 64) for kind in ("int", "uint")]
FAST = ("uint8", "int64")
DTYPES = [pytest.param(each, marks=() if each in FAST else pytest.mark.slow) for each in INTEGERS]
OPERATIONS = {
    "x + y": operator.add, "x - y": operator.sub, "x * y": operator.mul, "x << y": None, "-x": lambda x, _: -x,
    "abs(x)": lambda x, _: abs(x), "x // y": lambda x, y: x // y if y else 0, "np.square(x)": lambda x, _: x * x,
    "x ** 3": lambda x, _: x**3,
}  # fmt: skip
A = np.array([[10, 200], [250, 3]], np.uint8)
B = np.array([[10, 50], [50, 3]], np.uint8)


def edges(dtype):
    """Values around the limits of an integer type, and of half its width."""
    info, half = np.iinfo(dtype), 1 << (np.iinfo(dtype).bits // 2)
    near = [info.min, 0, half, -half, info.max // 2, info.max, 7, -7]
    found = {value + step for value in near for step in (-1, 0, 1)}
    return sorted(value for value in found if info.min <= value <= info.max)


def fits(value, dtype):
    return np.iinfo(dtype).min <= value <= np.iinfo(dtype).max


def exact_of(expression, x, y):
    """The exact result; of a shift too far, something that fits nothing unless it is 0."""
    if expression != "x << y":
        return OPERATIONS[expression](x, y)
    return x << y if 0 <= y <= 64 else x << 70


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("expression", OPERATIONS)
def test_exactly_what_a_type_does_not_hold_is_reported(expression, dtype):
    plain = fusec.elementwise(f"def f(x, y): return {expression}", names={"np": np}, check="")
    kernel = fusec.elementwise(f"def f(x, y): return {expression}", names={"np": np}, check="wrap")
    pairs = [(x, y) for x in edges(dtype) for y in edges(dtype)]
    wraps = [not fits(exact_of(expression, x, y), dtype) for x, y in pairs]
    x, y = (np.array(each, dtype) for each in zip(*pairs, strict=True))
    good = np.logical_not(wraps)
    np.testing.assert_array_equal(kernel(x[good], y[good]), plain(x[good], y[good]))
    bad = np.flatnonzero(wraps)
    for at in np.random.default_rng(1).permutation(bad)[:6]:
        where = int(np.random.default_rng(at).integers(good.sum()))
        several = [np.insert(each[good], where, each[at]) for each in (x, y)]
        with pytest.raises(OverflowError, match=rf"beyond {dtype}, and wraps.*\[F721\]") as caught:
            kernel(*several)
        assert caught.value.error.element == str(where), pairs[at]
        exact = exact_of(expression, *pairs[at])
        if expression != "x << y" and abs(exact) < 1 << 128:
            assert f" is {exact}, beyond" in str(caught.value)


@pytest.mark.parametrize("given", [*DTYPES, "float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_exactly_the_casts_that_lose_are_reported(given):
    if given.startswith("float"):
        edge = [2.0**bits for bits in (7, 8, 15, 16, 31, 32, 63, 64)]
        values = [each for limit in edge for each in (limit, -limit, np.nextafter(np.dtype(given).type(limit), 0))]
        values += [-1.5, -0.99, 0.5, -128.9, -129.0, 255.9, np.nan, np.inf, -np.inf]
    else:
        values = edges(given)
    values = np.array(values, given)
    for dtype in ("int8", "uint8", "int32", "uint64", "int64"):
        kernel = fusec.simulate(fusec.elementwise(f"def f(x): return np.{dtype}(x)", names={"np": np}, check="wrap"))
        for value in values:
            exact = None if not np.isfinite(value) else int(value)
            if exact is not None and fits(exact, dtype):
                assert kernel(np.array([value]))[0] == exact
            else:
                with pytest.raises(OverflowError, match=rf"of {given} does not fit {dtype}, and becomes"):
                    kernel(np.array([value]))


def test_every_kind_of_kernel_says_line_element_and_operands(monkeypatch):
    monkeypatch.setenv("FUSEC_CHECK", "wrap")
    kernels = [
        fusec.elementwise("def f(x, y):\n    return x + y"),
        fusec.stencil("def f(x, y):\n    return x[0, 0] + y"),
        fusec.vectorize(lambda x, y: x + y),
        lambda x, y: fusec.evaluate("(x + y)"),  # texts that no other test has had known without checks
        lambda x, y: fusec.evaluate("(x + y)", optimization="none"),
        fusec.NumExpr("(x + y)", [("x", np.uint8), ("y", np.uint8)]),
    ]
    for kernel in kernels:
        for _ in range(3):  # no native entry goes around it
            with pytest.raises(OverflowError) as caught:
                kernel(A, B)
        assert re.search(r"250 \+ 50 is 300, beyond uint8, and wraps to 44 \[F721\]", str(caught.value))
        assert re.search(r"x.* \+ y.*\n.*\^ in element \(1, 0\)", str(caught.value))
        assert kernel(A // 2, B // 2).max() == 150
    text = fusec.ElementwiseKernel("T x, T y", "T z", "\n  z = x + y;")
    with pytest.raises(OverflowError, match=r"(?s)300 of int32 does not fit uint8, and becomes 44.*line 2.*\(1, 0\)"):
        text(A, B)
    explicit = fusec.kernel("def f(x, z):\n    for i in fusec.grid(4):\n        z[i] += x.flat[i]")
    with pytest.raises(OverflowError, match=r"(?s)50 \+ 250 is 300.*line 3.*in element 2"):
        explicit(A, B.reshape(-1).copy())
    monkeypatch.setenv("FUSEC_CHECK", "0")
    assert fusec.evaluate("x + y + 0", {"x": A, "y": B})[1, 0] == 44
    assert fusec.elementwise("def f(x, y): return x + y")(A, B)[1, 0] == 44


def test_what_is_not_evaluated_is_not_reported():
    guarded = fusec.elementwise("def f(x): return x + 100 if x < 100 else x", check="wrap")
    np.testing.assert_array_equal(guarded(A), np.where(A < 100, A + 100, A))
    text = fusec.ElementwiseKernel(
        "uint8 x", "uint8 z", "if (x < 100 && (unsigned char)(x + 100) > 5) z = x + 100; else z = x;", check="wrap"
    )
    np.testing.assert_array_equal(text(A), np.where(A < 100, A + 100, A))


HALVES = """def twice(x):
    for k in range(3):
        x = x * 2
        if x > 100:
            return x
    return x

def both(x, y):
    return twice(x), twice(y)

def f(x, y):
    a, b = both(x, y) if x < 60 else (x, y)
    return a // 2 + b // 2
"""


def test_functions_are_looked_through_where_they_are_called():
    kernel = fusec.elementwise(HALVES, check="wrap")
    plain = fusec.elementwise(HALVES)
    x = np.arange(30, dtype=np.uint8)
    np.testing.assert_array_equal(kernel(x, x), plain(x, x))
    for run in (kernel, pickle.loads(pickle.dumps(kernel)), fusec.simulate(kernel)):
        with pytest.raises(OverflowError, match=r"(?s)160 \* 2 is 320.*line 3.*in element 1") as caught:
            run(np.array([70, 20], np.uint8), np.array([1, 160], np.uint8))
        assert caught.value.span.text == "x = x * 2"
    text = fusec.ElementwiseKernel(
        "int32 x", "int32 z", "\nz = f(x);", check="wrap",
        preamble="__device__ int f(int a) { int b = 1; while (true) { b *= a; if (b > 1000) return b + 1; } }",
    )  # fmt: skip
    assert text(np.array([3, 10], np.int32)).tolist() == [2188, 10001]
    with pytest.raises(OverflowError, match=r"(?s)70000 \* 70000 is 4900000000, beyond int32.*line 2.*in element 1"):
        fusec.ElementwiseKernel(
            "int32 x", "int32 z", "\nz = f(x);", preamble="int f(int a) { return a * a; }", check="wrap"
        )(np.array([3, 70000], np.int32))


def test_the_example_of_the_page_runs():
    page = (Path(__file__).parents[2] / "docs" / "numerics.md").read_text()
    _, _, section = page.partition("## Integers that wrap")
    code, shown = re.match(r"(?s).*?```python\n(.*?)```\n\n(.*?)\n\n[^ ]", section).groups()
    with pytest.raises(OverflowError) as caught:
        exec(compile(code, "example.py", "exec"), {"__name__": "example"})
    lines = [line.strip() for line in shown.splitlines()]
    said = "".join(traceback.format_exception_only(caught.value)).splitlines()
    assert (said[0], said[-1]) == (lines[0], lines[-1])


BLOCK = """def f(x, out):
    for i in fusec.grid(out.size):
        part = fusec.shared(32, x.dtype)
        t = fusec.thread_index()
        part[t] = x[i]
        fusec.barrier()
        step = 16
        while step > 0:
            if t < step:
                part[t] += part[t + step]
            fusec.barrier()
            step //= 2
        out[i] = part[0]
"""


def test_blocks_with_barriers_are_checked():
    kernel = fusec.kernel(BLOCK, block=32, check="bounds,wrap")
    out = np.zeros(64, np.uint8)
    kernel(np.full(64, 7, np.uint8), out)
    assert set(out) == {224}
    with pytest.raises(OverflowError, match=r"(?s)128 \+ 128 is 256, beyond uint8, and wraps to 0.*part\[t\] \+="):
        kernel(np.full(64, 8, np.uint8), out)


def test_checks_combine_and_are_named():
    both = fusec.kernel(
        "def f(x, z):\n    for i in fusec.grid(z.size):\n        z[i] = x[i] + x[i + 1]", check="wrap,bounds"
    )
    assert both.checks == "bounds,wrap"
    z = np.zeros(2, np.uint8)
    both(np.array([1, 2, 3], np.uint8), z)
    assert z.tolist() == [3, 5]
    with pytest.raises(IndexError, match="index 2 of 'x' is outside"):
        both(np.array([1, 2], np.uint8), z)
    with pytest.raises(OverflowError, match=r"200 \+ 100 is 300"):
        both(np.array([200, 100, 1], np.uint8), z)
    for wrong in ("wraps", "wrap;bounds", 1):
        with pytest.raises(fusec.FusecError, match=r'(?s)check=.* is not known.*it is "wrap", "bounds"'):
            fusec.elementwise("def f(x): return x", check=wrong)
    with pytest.raises(fusec.FusecError, match=r"check=.* is not known"):
        fusec.evaluate("A + B", check="wraps")
    trusting = fusec.elementwise("def f(x): return x", bounds="trust", check="wrap")
    assert trusting.checks == "wrap"
    assert fusec.ElementwiseKernel("T x", "T y", "y = x", bounds="check", check="wrap").checks == "bounds,wrap"


@pytest.mark.parametrize("kinds", ["wrap", "bounds,wrap"])
def test_checked_programs_obey_the_rules_of_the_ir(kinds):
    texts = [
        "int k = 0; do { if (k == 2) { ++k; continue; } z += x[j + k] * 3; ++k; } while (k < 3 && x[j + k] * j >= 0);",
        "z = f(x[j] * j) > 3 && f(j + 1) > 2 ? f(f(j)) : (unsigned char)(j - 1);",
    ]
    function = "int f(int a) { for (int i = 0; i < a; ++i) { while (a > 3) { if (a == 7) return a; --a; } } return a; }"
    for text in texts:
        definition = Definition("raw T x, int32 j", "T z", text, preamble=function)
        program, sites = check_bounds(
            lower_program(definition, {"x": UINT8, "j": INT32, "z": UINT8}, {"x": 1}, frozenset()), kinds
        )
        passes.run(program, check=True)
        assert len(sites) >= 3
        assert {site.op for site in sites} >= {"convert"}


def test_a_kernel_shows_its_checks_for_every_target():
    kernel = fusec.elementwise("def f(x, y): return x * y + np.int8(x)", names={"np": np}, check="wrap")
    for target in ("cuda", "metal", "llvm", "ir"):
        assert "fusec_fault" in kernel.source(target, {"x": "int32", "y": "int64"})


def test_totals_of_expressions_are_exact_or_reported():
    big, high = np.array([2**62, 2**62, 1]), np.array([[2**63, 2**63], [1, 2]], np.uint64)
    names = {"a": A, "b": B, "big": big, "high": high}

    def run(text):
        return fusec.evaluate(text, names, check="wrap")

    assert run("sum(a)") == 463
    assert run("prod(a)") == 10 * 200 * 250 * 3
    assert run("sum(big - big)") == 0
    assert run("sum(high - 1, axis=0)").tolist() == [2**63 - 1, 2**63]
    assert run("sum(big * 1.0)") == float(2**63)
    with pytest.raises(
        OverflowError, match=rf"(?s)the sum of 3 elements is {2**63 + 1}, beyond int64.*\[F723\].*sum\(big\)"
    ):
        run("1 + sum(big)")
    with pytest.raises(OverflowError, match=rf"the sum of 2 elements is {2**64}, beyond uint64, and wraps to 0"):
        run("sum(high, axis=1)")
    with pytest.raises(OverflowError, match=r"the product of 3 elements is 2\d*, beyond int64"):
        run("prod(big)")
    with pytest.raises(OverflowError, match=r"250 \+ 50 is 300, beyond uint8"):
        run("sum(a + b)")
    assert fusec.evaluate("sum(big)", names) == -(2**63) + 1


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "uint64"])
def test_sums_are_reported_exactly_where_they_wrap(dtype):
    random, info = np.random.default_rng(1), np.iinfo(dtype)
    for length in (1, 2, 3, 40):
        x = random.integers(info.min, info.max, (50, length), dtype, endpoint=True)
        for axis, totals in ((1, x.astype(object).sum(1)), (None, [x.astype(object).sum()])):
            held = np.iinfo(np.uint64 if dtype[0] == "u" else np.int64)
            beyond = [not held.min <= total <= held.max for total in totals]
            text = "sum(x)" if axis is None else "sum(x, axis=1)"
            if not any(beyond):
                assert np.ravel(fusec.evaluate(text, check="wrap")).tolist() == list(totals)
            else:
                with pytest.raises(OverflowError, match=f"is {totals[beyond.index(True)]}, beyond"):
                    fusec.evaluate(text, check="wrap")


def test_what_reductions_and_scans_map_is_checked():
    total = fusec.ReductionKernel("T x, T y", "int64 z", "(T)(x + y)", "a + b", "z = a", "0", "total", check="wrap")
    dot = fusec.reduction(map=lambda x, y: x * y, identity=0, check="wrap")(lambda p, q: p + q)
    scan = fusec.ScanKernel("T x", "T y", "x * 2", "a + b", "y = a", "0", "scan", check="wrap")
    for _ in range(2):
        for axis in (None, 0, 1):
            with pytest.raises(OverflowError, match=r"(?s)300 of int32 does not fit uint8.*in element \(1, 0\)"):
                total(A, B, axis=axis)
        np.testing.assert_array_equal(total(A // 2, B, axis=0), (A // 2 + B).sum(0))
        with pytest.raises(OverflowError, match=r"200 \* 50 is 10000, beyond uint8"):
            dot(A, B)
        assert dot(A.astype(int), B.astype(int)) == np.vdot(A.astype(int), B.astype(int))
        with pytest.raises(OverflowError, match="400 of int32 does not fit uint8"):
            scan(A.reshape(-1))
    with pytest.raises(OverflowError, match="F722"):
        pickle.loads(pickle.dumps(total))(A, B)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_divisors_and_multiples_are_reported_exactly_where_they_wrap(name, dtype):
    kernel = fusec.simulate(fusec.elementwise(f"def f(x, y): return np.{name}(x, y)", names={"np": np}, check="wrap"))
    few = [*edges(dtype)[::3], 12, 18, np.iinfo(dtype).min]
    pairs = [(x, y) for x in few for y in few]
    exact = [getattr(math, name)(x, y) for x, y in pairs]
    good = [fits(each, dtype) for each in exact]
    x, y = (np.array(each, dtype) for each in zip(*pairs, strict=True))
    np.testing.assert_array_equal(kernel(x[good], y[good]), [each for each in exact if fits(each, dtype)])
    bad = np.flatnonzero(np.logical_not(good))
    for at in np.random.default_rng(1).permutation(bad)[:6]:
        text = rf"{name}\({x[at]}, {y[at]}\) is {exact[at]}, beyond {dtype}, and wraps to"
        with pytest.raises(OverflowError, match=text):
            kernel(x[[at]], y[[at]])


def test_binomial_coefficients_that_stop_are_reported():
    kernel = fusec.elementwise("def f(n, k): return math.comb(n, k)", names={"math": math}, check="wrap")
    most = 2**63 - 1
    for n, k in ((5, 2), (66, 33), (most, 1), (most, most - 1), (most, 0), (3, 7), (-2, 1)):
        wanted = math.comb(n, k) if n >= 0 else 0
        assert kernel(np.array([n]), np.array([k])).tolist() == [wanted]
    for n, k in ((67, 33), (most, 2), (10**10, 3)):
        with pytest.raises(
            OverflowError, match=rf"comb\({n}, {k}\) is {math.comb(n, k)}.*, beyond int64, and stops at {most}"
        ):
            kernel(np.array([5, n]), np.array([2, k]))
    with pytest.raises(OverflowError, match=r"comb\(100000, 50000\) is beyond int64, and stops at"):
        kernel(np.array([100000]), np.array([50000]))
