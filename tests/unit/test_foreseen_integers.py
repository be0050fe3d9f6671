"""Integers that a text fixes must fit the dtype that they meet, on every way through its choices."""

import numpy as np
import pytest

import fusec

X, Y = np.array([1, 2, 3], np.uint8), np.array([2, 2, 2], np.uint8)
CHOICES = {  # each with an integer that it may be
    "1 if x > y else 300": 300, "300 if x > y else 1": 300, "-1 if x > y else 1": -1, "np.where(x > y, 1, 300)": 300,
    "max(300, 2)": 300, "max(9, 7) - (1 if x > y else -256)": 265, "(1 if x > y else 200) * 2": 400,
    "int(x > y) * 300": 300, "(0 if x > 1 else 1 if x > 2 else 999)": 999, "abs(-300 if x > y else 3)": 300,
}  # fmt: skip


def elementwise(text):
    return fusec.elementwise(f"def f(x, y): return {text}", names={"np": np})


@pytest.mark.parametrize("text", CHOICES)
def test_a_choice_with_an_integer_that_does_not_fit_is_refused(text):
    with pytest.raises(
        OverflowError, match=rf"(?s)Python integer {CHOICES[text]} out of bounds for uint8 \[F179\].*int64\("
    ):
        elementwise(f"x + ({text})")(X, Y)
    wide = elementwise(f"np.int64(x) + ({text})")(X, Y)
    f = eval(f"lambda x, y: x + ({text})", {"np": np})
    np.testing.assert_array_equal(wide, [f(int(x), int(y)) for x, y in zip(X, Y, strict=True)])


def test_expressions_refuse_choices_as_well():
    names = {"x": X, "y": Y, "s": X.astype(np.int8)}
    for text, number in (
        ("x + where(x > y, 1, 300)", 300),
        ("where(x > y, -1, 1) * x", -1),
        ("x + maximum(300, 2)", 300),
    ):
        with pytest.raises(OverflowError, match=rf"Python integer {number} out of bounds for uint8 \[F179\]"):
            fusec.evaluate(text, names)
    with pytest.raises(
        OverflowError, match=r"200 out of bounds for int8(?s:.*)int64\(x\), np.int64\(x\) in a function"
    ):
        fusec.evaluate("s + 200", names)
    np.testing.assert_array_equal(fusec.evaluate("int64(s) + 200", names), [201, 202, 203], strict=True)


def test_choices_that_fit_are_computed():
    for text in ("1 if x > y else 255", "np.where(x > y, 0, 7)", "max(3, 200)", "min(300, 2)", "int(x > y) * 255"):
        f = eval(f"lambda x, y: x + ({text})", {"np": np})
        wanted = [int(f(int(x), int(y))) % 256 for x, y in zip(X, Y, strict=True)]
        np.testing.assert_array_equal(elementwise(f"x + ({text})")(X, Y), np.array(wanted, np.uint8), strict=True)


def test_comparisons_with_integers_that_are_computed_are_exact():
    for text in ("x < (1 if x > y else 300)", "(300 if x > y else -1) <= x", "x != int(x > y) * 257"):
        f = eval(f"lambda x, y: {text}")
        wanted = [f(int(x), int(y)) for x, y in zip(X, Y, strict=True)]
        np.testing.assert_array_equal(elementwise(text)(X, Y), wanted)
    for n in (200, 128, 1, -3):
        np.testing.assert_array_equal(fusec.evaluate("x < 2*n", {"x": X, "n": n}), X.astype(int) < 2 * n)
        np.testing.assert_array_equal(fusec.elementwise("def f(x, n): return 2*n == x")(X, n), 2 * n == X)
        big = np.array([0, 2**63, 2**64 - 1], np.uint64)
        np.testing.assert_array_equal(fusec.evaluate("big > -n", {"big": big, "n": n}), [int(b) > -n for b in big])


def test_the_branch_that_a_constant_chooses_alone_must_fit():
    assert elementwise("x + (1 if True else 300)")(X, Y).tolist() == [2, 3, 4]
    assert fusec.elementwise("def f(x): return x + max(2**70, 2)")(np.zeros(1)).tolist() == [2.0**70]
