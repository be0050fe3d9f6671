"""All cases together."""

from functools import cache

from layout_programs import layout_cases
from name_programs import name_case
from op_programs import complex_cases, constant_cases, constants_of, conversion_cases, op_cases, table_cases, tree_cases
from programs import Case
from python_programs import python_cases
from statement_programs import statement_cases
from text_programs import text_cases
from turned_programs import turned_cases

from fusec.base.dtypes import ALL, FLOAT64
from fusec.codegen.c_family.facts import parts, types_of


@cache
def all_cases() -> tuple[Case, ...]:
    """Everything but atomics; the same for all that asks for it, since it takes a second to lower."""
    literals = [constants_of(dtype) for dtype in ALL]
    return (
        *op_cases(),
        *constant_cases(),
        *tree_cases(),
        *conversion_cases(),
        *literals,
        *complex_cases(),
        *table_cases(),
        *layout_cases(),
        *statement_cases(),
        *python_cases(),
        *text_cases(),
        *turned_cases(),
        name_case(),
    )


def uses_double(case: Case) -> bool:
    """The program needs float64, which Metal lacks."""
    wide = {dtype for found, _, _ in types_of(case.program) for dtype in parts(found)}
    return any(dtype == FLOAT64 or dtype.name == "complex128" for dtype in wide)
