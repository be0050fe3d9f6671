"""What is printed parses to what it was."""

from hypothesis import HealthCheck, given, settings

from fusec import passes
from fusec.ir.text import print_graph, print_program
from fusec.ir.verify import verify_graph
from tests.property.programs import formulas, programs
from tests.support.parse_ir import parse_graph, parse_program
from tests.support.raise_to_graph import raise_to_graph
from tests.support.random_arguments import Arguments

QUICK = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


@QUICK
@given(programs())
def test_printed_program_parses_to_itself(program) -> None:
    for each in (program, passes.run(program)):
        text = print_program(each)
        parsed = parse_program(text)
        assert parsed == each
        assert print_program(parsed) == text  # lines of the user's text included


@QUICK
@given(formulas())
def test_printed_graph_parses_to_itself(arguments: Arguments) -> None:
    graph = raise_to_graph(arguments.program)
    assert graph is not None
    verify_graph(graph)
    text = print_graph(graph)
    parsed = parse_graph(text)
    assert parsed == graph
    assert (parsed.names, parsed.lines) == (graph.names, graph.lines)
