"""A compiled kernel leaves the bits that the interpreter leaves, whatever the program, the layout and the lanes."""

import pytest
from hypothesis import HealthCheck, assume, given, settings

from fusec import passes
from tests.property.programs import formulas, runs
from tests.support.llvm_check import check
from tests.support.random_arguments import Arguments

QUICK = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
LONG = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def compare_with_interpreter(arguments: Arguments) -> None:
    """Lanes of 1, 4, 16 and 64; the range of positions in two parts, as two threads would take it."""
    assume(arguments.shape)  # a layout has an axis at least; adding it is the caller's part
    arrays, scalars = arguments.fresh()
    size = 1
    for extent in arguments.shape:
        size *= extent
    check(passes.run(arguments.program), arrays, arguments.shape, scalars, cuts=(size // 2,))


@QUICK
@given(runs())
def test_cpu_result_is_the_interpreters(arguments: Arguments) -> None:
    compare_with_interpreter(arguments)


@QUICK
@given(formulas())
def test_cpu_expressions_are_the_interpreters(arguments: Arguments) -> None:
    compare_with_interpreter(arguments)


@pytest.mark.slow
@LONG
@given(formulas())
def test_cpu_expressions_are_the_interpreters_for_many_programs(arguments: Arguments) -> None:
    compare_with_interpreter(arguments)


@pytest.mark.slow
@LONG
@given(runs())
def test_cpu_result_is_the_interpreters_for_many_programs(arguments: Arguments) -> None:
    compare_with_interpreter(arguments)
