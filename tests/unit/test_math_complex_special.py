"""Complex functions at zeros, infinities and nan, as C99's Annex G and the Array API list them, and at branch cuts.

A row reads `a b -> re im`. Arguments: a number, or a class of numbers: F finite, N finite but not 0, P positive;
| joins several. Results: a number or constant; ± before it where its sign is free; cis for infinity or 0 times (cos b,
sin b).
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fusec.base.dtypes import COMPLEX, DType
from fusec.ir.interpret import call
from fusec.math import callees, define

POSITIVE = ["0.25", "1.0", "7.5", "1e30"]
CLASSES = {
    "P": POSITIVE,
    "N": [sign + number for number in POSITIVE for sign in ("", "-")],
    "F": ["0", "-0", *(sign + number for number in POSITIVE for sign in ("", "-"))],
    "any": ["0", "-0", "3.5", "-1.0", "inf", "-inf", "nan"],
}
CONSTANTS = {"pi": np.pi, "pi/2": np.pi / 2, "pi/4": np.pi / 4, "3pi/4": 3 * np.pi / 4}

SPECIAL = {
    "acos": """
        0|-0 0 -> pi/2 -0;  0|-0 nan -> pi/2 nan;  F inf -> pi/2 -inf;  N nan -> nan nan;  -inf P -> pi -inf
        inf P -> 0 -inf;  -inf inf -> 3pi/4 -inf;  inf inf -> pi/4 -inf;  inf|-inf nan -> nan ±inf;  nan F -> nan nan
        nan inf -> nan -inf;  nan nan -> nan nan;  1.0 0 -> 0 -0""",
    "acosh": """
        0|-0 0 -> 0 pi/2;  F inf -> inf pi/2;  N nan -> nan nan;  0 nan -> nan ±pi/2;  -inf P -> inf pi;  inf P -> inf 0
        -inf inf -> inf 3pi/4;  inf inf -> inf pi/4;  inf|-inf nan -> inf nan;  nan F -> nan nan;  nan inf -> inf nan
        nan nan -> nan nan;  1.0 0 -> 0 0""",
    "asinh": """
        0 0 -> 0 0;  P inf -> inf pi/2;  F nan -> nan nan;  inf P -> inf 0;  inf inf -> inf pi/4;  inf nan -> inf nan
        nan 0 -> nan 0;  nan N -> nan nan;  nan inf -> ±inf nan;  nan nan -> nan nan""",
    "atanh": """
        0 0 -> 0 0;  0 nan -> 0 nan;  1.0 0 -> inf 0;  P inf -> 0 pi/2;  N nan -> nan nan;  inf P -> 0 pi/2
        inf inf -> 0 pi/2;  inf nan -> 0 nan;  nan F -> nan nan;  nan inf -> ±0 pi/2;  nan nan -> nan nan""",
    "cosh": """
        0 0 -> 1.0 0;  0 inf -> nan ±0;  0 nan -> nan ±0;  N inf -> nan nan;  N nan -> nan nan;  inf 0 -> inf 0
        inf N -> cis inf;  inf inf -> ±inf nan;  inf nan -> inf nan;  nan 0|-0 -> nan ±0;  nan N -> nan nan
        nan nan -> nan nan""",
    "sinh": """
        0 0 -> 0 0;  0 inf -> ±0 nan;  0 nan -> ±0 nan;  P inf -> nan nan;  P nan -> nan nan;  inf 0 -> inf 0
        inf P -> cis inf;  inf inf -> ±inf nan;  inf nan -> ±inf nan;  nan 0 -> nan 0;  nan N -> nan nan
        nan nan -> nan nan""",
    "tanh": """
        0 0 -> 0 0;  N inf -> nan nan;  0 inf -> 0 nan;  N nan -> nan nan;  0 nan -> 0 nan;  inf P -> 1.0 ±0
        inf inf -> 1.0 ±0;  inf nan -> 1.0 ±0;  nan 0 -> nan 0;  nan N -> nan nan;  nan nan -> nan nan""",
    "exp": """
        0|-0 0 -> 1.0 0;  F inf -> nan nan;  F nan -> nan nan;  inf 0 -> inf 0;  -inf F -> cis 0;  inf N -> cis inf
        -inf inf -> ±0 ±0;  inf inf -> ±inf nan;  -inf nan -> ±0 ±0;  inf nan -> ±inf nan;  nan 0 -> nan 0
        nan N|inf -> nan nan;  nan nan -> nan nan""",
    "expm1": """
        0 0 -> 0 0;  -0 0 -> ±0 0;  F inf -> nan nan;  F nan -> nan nan;  inf 0 -> inf 0;  inf N -> cis inf
        -inf inf -> -1.0 ±0;  inf inf -> ±inf nan;  -inf nan -> -1.0 ±0;  inf nan -> ±inf nan;  nan 0 -> nan 0
        nan N|inf -> nan nan;  nan nan -> nan nan""",
    "log": """
        -0 0 -> -inf pi;  0 0 -> -inf 0;  F inf -> inf pi/2;  F nan -> nan nan;  -inf P -> inf pi;  inf P -> inf 0
        -inf inf -> inf 3pi/4;  inf inf -> inf pi/4;  inf|-inf nan -> inf nan;  nan F -> nan nan;  nan inf -> inf nan
        nan nan -> nan nan;  1.0 0 -> 0 0""",
    "log1p": """
        -1.0 0 -> -inf 0;  F inf -> inf pi/2;  F nan -> nan nan;  -inf P -> inf pi;  inf P -> inf 0
        -inf inf -> inf 3pi/4;  inf inf -> inf pi/4;  inf|-inf nan -> inf nan;  nan F -> nan nan;  nan inf -> inf nan
        nan nan -> nan nan;  0 0 -> 0 0;  -0 0 -> -0 0""",
    "sqrt_complex": """
        0|-0 0 -> 0 0;  any inf -> inf inf;  F nan -> nan nan;  -inf P -> 0 inf;  inf P -> inf 0;  -inf nan -> nan ±inf
        inf nan -> inf nan;  nan F -> nan nan;  nan nan -> nan nan""",
    "abs_complex": """
        inf|-inf any -> inf;  any inf -> inf;  0|-0 0 -> 0;  0|-0 3.5 -> 3.5;  -7.5 0 -> 7.5;  nan F -> nan
        F nan -> nan;  nan nan -> nan""",
    "arg": """
        0 0 -> 0;  -0 0 -> pi;  F inf -> pi/2;  -inf P -> pi;  inf P -> 0;  -inf inf -> 3pi/4;  inf inf -> pi/4
        nan any -> nan;  any nan -> nan""",
    "sign": """
        0|-0 0|-0 -> 0 0;  nan any -> nan nan;  any nan -> nan nan;  P 0 -> 1.0 0;  inf F -> 1.0 ±0;  -inf F -> -1.0 ±0
        F inf -> ±0 1.0""",
    "proj": """
        inf|-inf any -> inf ±0;  any inf -> inf 0;  any -inf -> inf -0;  -1.0 -0 -> -1.0 -0;  nan 3.5 -> nan 3.5""",
    "conj": "any 3.5 -> any -3.5;  1.0 0 -> 1.0 -0;  nan -inf -> nan inf",
    "rint_complex": "2.5 -0.5 -> 2.0 -0;  inf nan -> inf nan;  -0 1.5 -> -0 2.0",
}
TURNED = {"asin": "asinh", "atan": "atanh", "sin": "sinh", "tan": "tanh"}
CONJUGATE = [op for op in SPECIAL if op not in ("abs_complex", "arg", "sign")]  # the sign of 0 - 0j is 0 + 0j
ODD, EVEN = "asinh atanh sinh tanh asin atan sin tan".split(), ["cosh", "cos"]

POINTS = [float(text) for text in (*CLASSES["F"], "inf", "-inf", "nan", "1.5707963267948966", "1e-30")]
PLANE = [complex(a, b) for a in POINTS for b in POINTS]


def run(op: str, *args: np.ndarray) -> np.ndarray:
    dtype: DType = next(t for t in COMPLEX if t.numpy == args[0].dtype)
    function = define(op, (dtype,) * len(args))
    return call(function, list(args), callees(function))


def rows_of(op: str) -> list[tuple[float, float, str]]:
    """The arguments of every row with its result."""
    rows = []
    for text in SPECIAL[op].replace("\n", ";").split(";"):
        if not text.strip():
            continue
        given, wanted = text.split("->")
        choices = [[each for name in word.split("|") for each in CLASSES.get(name, [name])] for word in given.split()]
        rows += [(float(a), float(b), wanted.strip()) for a, b in itertools.product(*choices)]
    return rows


def fits(found: float, wanted: str, kind: np.dtype[np.floating]) -> bool:
    """Whether one part of a result is what the row says."""
    text = wanted.lstrip("±-")
    size = float(kind.type(CONSTANTS.get(text) or float(text)))
    if np.isnan(size):
        return bool(np.isnan(found))
    near = abs(found) == size or abs(abs(found) - size) <= np.finfo(kind).eps * size
    return near and (wanted.startswith("±") or bool(np.signbit(found)) == wanted.startswith("-"))


def direction(size: str, angle: float) -> str:
    """The result that is 0 or infinity times (cos, sin) of a finite angle."""
    signs = ["-" if np.signbit(part) else "" for part in (np.cos(angle), np.sin(angle))]
    return f"{signs[0]}{size} {signs[1]}{size if angle else '0'}"


def agrees(found: np.ndarray, a: float, b: float, wanted: str) -> bool:
    parts = [float(found.real), float(found.imag)] if np.iscomplexobj(found) else [float(found)]
    kind = found.real.dtype
    if wanted.startswith("cis"):
        wanted = direction(wanted.split()[1], float(kind.type(b)))
    words = [str(value) if word == "any" else word for word, value in zip(wanted.split(), (a, b), strict=False)]
    return all(fits(part, word, kind) for part, word in zip(parts, words, strict=True))


@pytest.mark.parametrize("dtype", COMPLEX, ids=repr)
@pytest.mark.parametrize("op", SPECIAL)
def test_special_values_are_those_of_the_standards(op: str, dtype: DType) -> None:
    rows = rows_of(op)
    found = run(op, np.array([complex(a, b) for a, b, _ in rows], dtype.numpy))
    wrong = [
        f"{op}({a} {b}) = {value}, not {wanted}"
        for value, (a, b, wanted) in zip(found, rows, strict=True)
        if not agrees(value, a, b, wanted)
    ]
    assert not wrong, "\n".join(wrong)


def assert_same(found: np.ndarray, wanted: np.ndarray, free: np.ndarray) -> None:
    """Same bits but for nan; where `free`, signs may differ."""
    for part in ("real", "imag"):
        a, b = getattr(found, part), getattr(wanted, part)
        np.testing.assert_array_equal(np.where(free, abs(a), a), np.where(free, abs(b), b))
        told = ~(np.isnan(b) | free)
        np.testing.assert_array_equal(np.signbit(a[told]), np.signbit(b[told]))


@pytest.mark.parametrize("dtype", COMPLEX, ids=repr)
@pytest.mark.parametrize("op", [*CONJUGATE, "log2", "log10", *TURNED, "cos"])
def test_functions_of_conjugates_are_conjugate(op: str, dtype: DType) -> None:
    z = np.array(PLANE, dtype.numpy)
    free = np.isnan(z)  # signs beside a nan are free
    assert_same(run(op, z.conj()), run(op, z).conj(), free)


@pytest.mark.parametrize("dtype", COMPLEX, ids=repr)
@pytest.mark.parametrize("op", [*ODD, *EVEN])
def test_odd_and_even_functions_are_exactly_so(op: str, dtype: DType) -> None:
    z = np.array(PLANE, dtype.numpy)
    wanted = run(op, z)
    free = np.isnan(z) | np.isnan(wanted.real) | np.isnan(wanted.imag)
    assert_same(run(op, -z), -wanted if op in ODD else wanted, free)


@pytest.mark.parametrize("dtype", COMPLEX, ids=repr)
@pytest.mark.parametrize("op", TURNED)
def test_circular_functions_are_hyperbolic_ones_turned(op: str, dtype: DType) -> None:
    """f(z) = -i fh(i z), with i z = -b + i a by exchanging the parts."""
    z = np.array(PLANE, dtype.numpy)
    turned, wanted = np.empty_like(z), np.empty_like(z)
    turned.real, turned.imag = -z.imag, z.real
    hyperbolic = run(TURNED[op], turned)
    wanted.real, wanted.imag = hyperbolic.imag, -hyperbolic.real
    assert_same(run(op, z), wanted, np.zeros(z.shape, bool))


CUTS = {  # the axis on which the cut lies, and where on it
    "log": ("real", (-np.inf, 0)), "log2": ("real", (-np.inf, 0)), "log10": ("real", (-np.inf, 0)),
    "log1p": ("real", (-np.inf, -1)), "sqrt_complex": ("real", (-np.inf, 0)), "acosh": ("real", (-np.inf, 1)),
    "asin": ("real", (1, np.inf)), "acos": ("real", (1, np.inf)), "atanh": ("real", (1, np.inf)),
    "asinh": ("imag", (1, np.inf)), "atan": ("imag", (1, np.inf)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", COMPLEX, ids=repr)
@pytest.mark.parametrize("op", CUTS)
def test_the_sign_of_zero_chooses_the_side_of_a_branch_cut(op: str, dtype: DType) -> None:
    """On the cut a function is continuous with the side that the zero's sign names, and differs from the other."""
    axis, (low, high) = CUTS[op]
    along = np.array([-20, -3, -1.5, -1.01, -0.6, -0.01, 0.01, 0.6, 0.99, 1.01, 1.5, 3, 20])
    inside = along[(along > low) & (along < high)]
    inside = np.concatenate([inside, -inside]) if low == 1 else inside
    step = np.finfo(dtype.numpy).eps ** 2
    results = []
    for sign in (1.0, -1.0):
        at, near = np.empty(inside.shape, dtype.numpy), np.empty(inside.shape, dtype.numpy)
        for z, other in ((at, 0.0), (near, step)):
            z.real, z.imag = (inside, sign * other) if axis == "real" else (sign * other, inside)
        results.append(run(op, at))
        np.testing.assert_allclose(results[-1], run(op, near), rtol=8 * np.finfo(dtype.numpy).eps)
    assert (abs(results[0] - results[1]) > 0.01).all()


@pytest.mark.parametrize("dtype", COMPLEX, ids=repr)
def test_logarithms_to_other_bases_are_scaled_ones(dtype: DType) -> None:
    z = np.array(PLANE, dtype.numpy)
    natural = run("log", z)
    for op, base in (("log2", 2.0), ("log10", 10.0)):
        found = run(op, z)
        for part in ("real", "imag"):
            wanted = getattr(natural, part) / np.log(natural.real.dtype.type(base))
            got = getattr(found, part)
            np.testing.assert_allclose(got, wanted, rtol=8 * np.finfo(dtype.numpy).eps, atol=1e-37)
            known = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(wanted[known]))


@pytest.mark.parametrize("dtype", COMPLEX, ids=repr)
def test_classes_count_either_part(dtype: DType) -> None:
    z = np.array(PLANE, dtype.numpy)
    for op in ("isnan", "isinf", "isfinite"):
        np.testing.assert_array_equal(run(op, z), getattr(np, op)(z))


@pytest.mark.parametrize("dtype", COMPLEX, ids=repr)
@pytest.mark.parametrize("op", ["reciprocal", "conj"])
def test_exact_functions_are_numpys(op: str, dtype: DType) -> None:
    """Not square: NumPy's may fuse one of its products."""
    z = np.array(PLANE, dtype.numpy)
    with np.errstate(all="ignore"):
        wanted = getattr(np, op)(z)
    assert_same(run(op, z), wanted, np.zeros(z.shape, bool))


NUMPY = {op: f"arc{op[1:]}" for op in ("asin", "acos", "atan", "asinh", "acosh", "atanh")}
NUMPY |= {"sqrt_complex": "sqrt", "abs_complex": "abs", "arg": "angle", "rint_complex": "rint"}
DEVIATIONS = {  # where NumPy does not follow the standard or is less accurate, and how
    "sign": "where a part is nan and the other infinite the standard wants nan, NumPy gives a unit",
    "log1p": "NumPy takes the logarithm of 1 + z, in which small z are lost",
    "expm1": "at -inf with an infinite or nan imaginary part the standard wants -1, NumPy gives nan",
}


@pytest.mark.parametrize("op", [op for op in (*SPECIAL, *TURNED, "cos") if op not in ("proj", *DEVIATIONS)])
def test_values_at_special_arguments_are_numpys(op: str) -> None:
    """In complex128; the sign of a zero or infinity beside a nan aside."""
    z = np.array([w for w in PLANE if abs(w) < 10 or not np.isfinite(w)])
    if op == "acosh":  # older NumPy answers 0 + nan i as C did before its defect report 471; SPECIAL has it
        z = z[(z.real != 0) | ~np.isnan(z.imag)]
    with np.errstate(all="ignore"):
        wanted = getattr(np, NUMPY.get(op, op))(z)
    found = run(op, z)
    for part in ("real", "imag") if np.iscomplexobj(wanted) else ("real",):
        a, b = getattr(found, part), getattr(wanted, part)
        free = np.isnan(getattr(wanted, "imag" if part == "real" else "real")) | np.isnan(z)
        np.testing.assert_allclose(
            np.where(free, abs(a), a), np.where(free, abs(b), b), rtol=1e-14, atol=1e-300, err_msg=f"{op} {part}"
        )
