"""What is printed parses to what it was."""

from hypothesis import HealthCheck, given, settings

from fusec import passes
from fusec.ir.text import parse_program, print_program
from tests.property.programs import programs

QUICK = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


@QUICK
@given(programs())
def test_printed_program_parses_to_itself(program) -> None:
    for each in (program, passes.run(program)):
        text = print_program(each)
        parsed = parse_program(text)
        assert parsed == each
        assert print_program(parsed) == text  # lines of the user's text included
