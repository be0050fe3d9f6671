"""What the C printer holds to be known of locals is true of every run."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

sys.path.insert(0, str(Path(__file__).parents[1] / "host"))

from arguments import layout_of
from statement_programs import statement_cases

from fusec import passes
from fusec.base.dtypes import BOOL, DType
from fusec.codegen import cuda
from fusec.codegen.c_family.ranges import State
from fusec.codegen.c_family.statements import StmtPrinter
from fusec.errors import FusecError
from fusec.ir.expr import Expr, Pointer, apply, const
from fusec.ir.interpret import interpret
from fusec.ir.loops import ArrayParam, Break, Continue, Declare, Element, If, Local, Program, ScalarParam, Store, While
from fusec.ir.reductions import AXIS
from fusec.ir.walk import Body, blocks, operands, statements
from tests.property.programs import runs
from tests.support.random_arguments import Arguments

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
NONE: frozenset[str] = frozenset()
FLAG = Element("violated", Pointer(BOOL, "global"))


def fresh(body: Body) -> Body:
    """The statements, none of them used twice, so that each has a state of its own."""
    return tuple(stmt.rebuild(operands(stmt), tuple(map(fresh, blocks(stmt)))) for stmt in body)


def states_of(program: Program, arrays: dict[str, np.ndarray], shape: tuple[int, ...]) -> dict[int, State]:
    """What is known before every statement of the body, by the identity of the statement."""
    found: dict[int, State] = {}
    original = StmtPrinter._statement
    takes_axis = any(param.name == AXIS for param in program.params)  # its bounds are given to every program

    def noted(self: StmtPrinter, stmt, depth: int) -> None:
        if not isinstance(stmt, Break | Continue):  # which `fresh` leaves as they are
            bounds = self.expressions.bounds.locals
            found[id(stmt)] = {name: bound for name, bound in bounds.items() if name != AXIS or takes_axis}
        original(self, stmt, depth)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StmtPrinter, "_statement", noted)
        cuda.generate(program, layout_of(program, arrays, shape))
    return found


def watched(body: Body, states: dict[int, State], dtypes: dict[str, DType], unseen: frozenset[str] = NONE) -> Body:
    """The statements, each after a check that sets the flag if a bound does not hold.

    unseen: locals that are out of scope; a loop's step does not see those of its body, which `continue` leaves unset.
    """
    result = []
    for stmt in body:
        for name, (low, high) in states.get(id(stmt), {}).items():
            value: Expr = Local(name, dtypes[name])
            if dtypes[name] != BOOL and name not in unseen:
                beyond = [
                    apply("less", value, const(low, dtypes[name])),
                    apply("greater", value, const(high, dtypes[name])),
                ]
                result.append(If(apply("logical_or", *beyond), (Store(FLAG, const(True, BOOL)),)))
        inner = [watched(block, states, dtypes, unseen) for block in blocks(stmt)]
        if isinstance(stmt, While):
            declared = {each.name for each in statements(stmt.body) if isinstance(each, Declare)}
            inner[1] = watched(stmt.step, states, dtypes, unseen | declared)
        result.append(stmt.rebuild(operands(stmt), tuple(inner)))
    return tuple(result)


def check(program: Program, arrays: dict[str, np.ndarray], scalars, shape: tuple[int, ...]) -> int:
    """The number of bounds that were checked; AssertionError if one does not hold."""
    program = Program(program.name, program.params, fresh(program.body), program.functions)
    states = states_of(program, arrays, shape)
    dtypes = {stmt.name: stmt.type for stmt in statements(program.body) if isinstance(stmt, Declare)}
    dtypes |= {param.name: param.dtype for param in program.params if isinstance(param, ScalarParam)}
    params = (*program.params, ArrayParam("violated", BOOL, written=True))
    body = watched(program.body, states, dtypes)
    flags = np.zeros(shape, bool)
    interpret(Program("watched", params, body, program.functions), arrays | {"violated": flags}, scalars, shape)
    assert not flags.any()
    return sum(map(len, states.values()))


@QUICK
@given(runs())
def test_bounds_hold_in_random_programs(arguments: Arguments) -> None:
    assume(arguments.shape)
    arrays, scalars = arguments.fresh()
    try:
        check(passes.run(arguments.program), arrays, scalars, arguments.shape)
    except FusecError:
        assume(False)  # an atomic that CUDA has not


@pytest.mark.parametrize("case", statement_cases(), ids=lambda case: case.name)
def test_bounds_hold_in_loops(case) -> None:
    check(case.program, case.copies(), case.scalars, case.shape)


def test_the_check_can_fail(monkeypatch) -> None:
    case = next(case for case in statement_cases() if case.name == "counted loop")
    assert check(case.program, case.copies(), case.scalars, case.shape) > 5
    monkeypatch.setattr("fusec.codegen.c_family.ranges.ROUNDS", 1)
    monkeypatch.setattr("fusec.codegen.c_family.ranges.changed_names", lambda body: set())
    with pytest.raises(AssertionError):
        check(case.program, case.copies(), case.scalars, case.shape)
