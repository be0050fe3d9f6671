"""Passes never change a result, and leave verified programs behind."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from fusec import passes
from fusec.ir.interpret import interpret
from fusec.ir.verify import verify
from tests.property.programs import Arguments, programs, runs, same_bits

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def run(program, arguments: Arguments) -> dict[str, np.ndarray]:
    arrays, scalars = arguments.fresh()
    interpret(program, arrays, scalars, arguments.shape)
    return arrays


@QUICK
@given(programs())
def test_drawn_programs_are_verified(program) -> None:
    verify(program)


@pytest.mark.parametrize("step", passes.PASSES, ids=lambda step: step.__name__)
@QUICK
@given(arguments=runs())
def test_no_pass_changes_a_result(step, arguments: Arguments) -> None:
    changed = step(arguments.program)
    verify(changed)
    before, after = run(arguments.program, arguments), run(changed, arguments)
    for name in before:
        assert same_bits(before[name], after[name]), name


@QUICK
@given(runs())
def test_all_passes_together_change_no_result(arguments: Arguments) -> None:
    changed = passes.run(arguments.program, check=True)
    verify(changed, primitive=True)
    before, after = run(arguments.program, arguments), run(changed, arguments)
    for name in before:
        assert same_bits(before[name], after[name]), name
