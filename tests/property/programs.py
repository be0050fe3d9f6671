"""Hypothesis draws random programs and arguments; seeds of a generator decide what they are.

Choices within a program are uniform, from the seeded generator: hypothesis's own draws favour small values, which here
means programs that compute nothing. It still shrinks the budget.
"""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from fusec.base.dtypes import ALL, DType
from fusec.ir.loops import Program
from tests.support.random_arguments import SHAPES, Arguments
from tests.support.random_programs import Writer, writer


@st.composite
def programs(draw, dtypes: tuple[DType, ...] = ALL) -> Program:
    """A verified program over a few of the dtypes, so that its values meet."""
    return _writer(draw, dtypes).program()


def _writer(draw, dtypes: tuple[DType, ...]) -> Writer:
    return writer(Random(draw(st.integers(0, 2**32 - 1))), dtypes, draw(st.integers(5, 150)))


@st.composite
def runs(draw, dtypes: tuple[DType, ...] = ALL) -> Arguments:
    """A program with arguments."""
    program = draw(programs(dtypes))
    return Arguments(program, draw(st.sampled_from(SHAPES)), draw(st.integers(0, 2**32 - 1)))


@st.composite
def formulas(draw, dtypes: tuple[DType, ...] = ALL) -> Arguments:
    """A program of expressions alone, on arrays long enough for every pair of hard values to meet."""
    return Arguments(_writer(draw, dtypes).formulas(), (300,), draw(st.integers(0, 2**32 - 1)))
