"""Passes never change a result, and leave verified programs behind."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from fusec import passes
from fusec.ir.interpret import interpret
from fusec.ir.verify import verify
from fusec.passes.lower_graph import lower_graph
from tests.property.programs import formulas, programs, runs
from tests.support.raise_to_graph import raise_to_graph
from tests.support.random_arguments import Arguments, same_bits

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

STRICT = [step.load() for step in passes.SCALAR if step.runs(passes.ANY)]


def compare(program, changed, arguments: Arguments) -> None:
    before, after = run(program, arguments), run(changed, arguments)
    for name in before:
        assert same_bits(before[name], after[name]), name


def run(program, arguments: Arguments) -> dict[str, np.ndarray]:
    arrays, scalars = arguments.fresh()
    interpret(program, arrays, scalars, arguments.shape)
    return arrays


@QUICK
@given(programs())
def test_drawn_programs_are_verified(program) -> None:
    verify(program)


@pytest.mark.parametrize("step", STRICT, ids=lambda step: step.__name__)
@QUICK
@given(arguments=runs())
@pytest.mark.sampled(3)
def test_no_pass_changes_a_result(step, arguments: Arguments) -> None:
    changed = step(arguments.program)
    verify(changed)
    compare(arguments.program, changed, arguments)


@pytest.mark.parametrize("step", STRICT, ids=lambda step: step.__name__)
@QUICK
@given(arguments=formulas())
@pytest.mark.sampled(3)
def test_no_pass_changes_the_value_of_an_expression(step, arguments: Arguments) -> None:
    changed = step(arguments.program)
    verify(changed)
    compare(arguments.program, changed, arguments)


@QUICK
@given(runs())
def test_all_passes_together_change_no_result(arguments: Arguments) -> None:
    changed = passes.run(arguments.program, check=True)
    verify(changed, primitive=True)
    compare(arguments.program, changed, arguments)


@QUICK
@given(formulas())
def test_a_program_lifted_and_lowered_computes_the_same(arguments: Arguments) -> None:
    graph = raise_to_graph(arguments.program)
    assert graph is not None
    lowered = lower_graph(graph)
    verify(lowered)
    compare(arguments.program, lowered, arguments)
