"""The definition of every op that is not primitive, as functions of the loops IR."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from fusec.base.dtypes import BOOL, COMPLEX, DType, real_type
from fusec.base.ops import TABLE
from fusec.ir.loops import Function
from fusec.math.body import Formula, write
from fusec.math.value import Term, make_complex


@cache
def define(op: str, types: tuple[DType, ...]) -> Function:
    """The function that computes `op` of operands of these dtypes, e.g. fusec_exp_float32.

    Complex operands: also the arithmetic that is primitive for real ones. A conversion from complex is named by
    ("convert", (source, target)). Functions that it calls: `callees`.
    """
    if op == "convert":
        return _conversion(*types)
    formula = _formula(op, types[0])
    others = "".join(f"_{dtype}" for dtype in types[1:] if dtype != types[0])
    return write(f"fusec_{op}_{types[0]}{others}", types, formula)


def cube(dtype: DType) -> Function:
    """The function that computes x**3: a tenth of the work of `pow`, and nearer to the exact value."""
    return write(f"fusec_cube_{dtype}", (dtype,), _formula("pow", dtype, "cube"))


def _formula(op: str, first: DType, instead: str = "") -> Formula:
    """The one that the op's row names, or another one beside it; its module is imported when it is first needed."""
    row = TABLE[op]
    integer = row.integer_math if first.is_integer else ""
    module, _, name = (row.complex_math if first in COMPLEX else integer or row.math).partition(".")
    found: Formula = getattr(import_module(f"fusec.math.{module}"), instead or name)
    return found


def _conversion(source: DType, target: DType) -> Function:
    part = real_type(target)

    def formula(x: Term) -> Term:
        if target == BOOL:
            return x.real.ne(0.0) | x.imag.ne(0.0)
        return make_complex(x.real.to(part), x.imag.to(part))

    return write(f"fusec_convert_{source}_{target}", (source,), formula)
