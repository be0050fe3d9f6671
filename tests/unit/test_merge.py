"""A declaration moves down to the first assignment, unless something sees the value in between."""

import pytest

from fusec.base.dtypes import BOOL, INT32
from fusec.ir.expr import apply, const
from fusec.ir.loops import Assign, Break, Declare, If, Local, Program, ScalarParam, Stmt, While
from fusec.passes.merge import merge_declarations

X, A = Local("x", INT32), Local("a", INT32)
P = Local("p", BOOL)
DECLARED = Declare("x", INT32, line=1)
SET = Assign("x", A, line=5)
ONE = const(1, INT32)
PARAMS = (ScalarParam("a", INT32), ScalarParam("p", BOOL))


def merged(*body: Stmt) -> tuple[Stmt, ...]:
    return merge_declarations(Program("merged", PARAMS, body)).body


def test_the_declaration_takes_the_place_the_value_and_the_line_of_the_assignment():
    other = Declare("y", INT32, A, line=2)
    assert merged(DECLARED, other, SET) == (other, Declare("x", INT32, A))
    assert [stmt.line for stmt in merged(DECLARED, other, SET)] == [2, 5]


def test_the_last_of_several_assignments_that_nothing_reads_remains():
    assert merged(DECLARED, Assign("x", ONE), SET) == (Declare("x", INT32, A),)


def test_lists_of_statements_inside_others_are_merged_too():
    inside = If(P, (DECLARED, SET), ())
    assert merged(While(P, (inside, Break()))) == (While(P, (If(P, (Declare("x", INT32, A),)), Break())),)


@pytest.mark.parametrize(
    "body",
    [
        (DECLARED, Assign("x", apply("add", X, A))),
        (DECLARED, Declare("y", INT32, X), SET),
        (DECLARED, If(P, (SET,)), SET),
        (DECLARED, If(P, (SET,))),
        (DECLARED, While(P, (SET,))),
        (DECLARED, While(P, (), (SET,)), SET),
        (DECLARED, If(apply("less", X, A), ()), SET),
    ],
)
def test_what_something_may_see_stays(body):
    program = Program("seen", PARAMS, body)
    assert merge_declarations(program) is program
