"""A bool compared with a number that makes the answer known is an error at its place; fused functions warn."""

import operator
import warnings

import numpy as np
import pytest

import fusec

BOOLS = np.array([True, False, True])
OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
LIFE = """def step(a):
    n = a[-1, -1] + a[-1, 0] + a[-1, 1] + a[0, -1] + a[0, 1] + a[1, -1] + a[1, 0] + a[1, 1]
    return n == 3 or (a and n == 2)
"""


def doors(text):
    """The same comparison as a function, an expression, and a kernel string."""
    yield lambda x: fusec.elementwise(f"def f(x): return {text}")(x)
    yield lambda x: fusec.evaluate(text, {"x": x})
    yield lambda x: fusec.ElementwiseKernel("T x", "bool y", f"y = {text}")(x)


@pytest.mark.parametrize("number", ["2", "-1", "0.5", "1.5", "-0.5", "1e300", "0", "1"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.sampled(5)
def test_what_is_constant_is_refused_and_what_is_not_is_computed(number, turned):
    value = float(number)
    for op, compare in OPERATORS.items():
        text = f"{number} {op} x" if turned else f"x {op} {number}"
        answers = [compare(value, each) if turned else compare(each, value) for each in (False, True)]
        for at, door in enumerate(doors(text)):
            if value not in (0, 1) and answers[0] == answers[1]:
                shown = "true" if answers[0] else "false"
                with pytest.raises(
                    fusec.FusecError, match=rf"a bool is 0 or 1, so .* is always {shown} \[F720\]"
                ) as caught:
                    door(BOOLS)
                assert caught.value.span is not None
            elif not at:  # the others compile the same
                np.testing.assert_array_equal(door(BOOLS), np.where(BOOLS, answers[1], answers[0]))


def test_a_bool_board_does_not_die_without_a_word():
    board = np.random.default_rng(1).random((8, 8)) < 0.4
    with pytest.raises(fusec.FusecError, match="'== 3' is always false") as caught:
        fusec.stencil(LIFE, boundary="wrap")(board)
    assert caught.value.span.line == 3
    counted = LIFE.replace("a[-1, -1] +", "int(a[-1, -1]) +")
    stepped = fusec.stencil(counted, boundary="wrap")(board)
    near = sum(np.roll(board.astype(int), each, (0, 1)) for each in np.ndindex(3, 3) if each != (1, 1))
    near = np.roll(near, (-1, -1), (0, 1))
    np.testing.assert_array_equal(stepped, (near == 3) | (board & (near == 2)))


@pytest.mark.parametrize("text", ["1 < x < 3", "(x > 0) == 2", "x == 2 ? 1 : 0"])
def test_c_counts_comparisons_among_bools(text):
    kernel = fusec.ElementwiseKernel("T x", "int32 y", f"y = {text}")
    with pytest.raises(fusec.FusecError, match="F720"):
        kernel(BOOLS)
    if "?" in text:
        assert kernel(np.array([2, 3])).tolist() == [1, 0]


def test_numbers_from_outside_count_and_arguments_do_not():
    for three in (3, 3.0, np.int8(3), np.float32(3)):
        with pytest.raises(fusec.FusecError, match="F720"):
            fusec.elementwise("def f(x): return x == N", names={"N": three})(BOOLS)
    assert not fusec.elementwise("def f(x, k): return x == k")(BOOLS, 3).any()


def test_fused_functions_warn_at_their_line_and_are_numpys():
    def count(a, b):
        return (a + b) == 2

    with pytest.warns(fusec.FusecWarning, match="'== 2' is always false") as caught:
        found = fusec.fuse(count)(BOOLS, BOOLS)
    assert caught[0].filename == __file__
    assert caught[0].lineno == count.__code__.co_firstlineno + 1
    np.testing.assert_array_equal(found, count(BOOLS, BOOLS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fusec.fuse(lambda a, b: (a + b) == 1)(BOOLS, BOOLS)
