"""The definition of every op that is not primitive, as functions of the loops IR."""

from __future__ import annotations

from functools import cache, partial
from importlib import import_module
from math import frexp

from fusec.base.dtypes import BOOL, COMPLEX, COMPUTE_FLOATS, DType, real_type
from fusec.base.ops import TABLE
from fusec.ir.loops import Function
from fusec.math.body import Formula, write
from fusec.math.formats import FORMATS
from fusec.math.quotient import by_constant
from fusec.math.value import Term, make_complex

PRODUCTS = 100  # the least exponent of complex numbers that is too great to be computed by products, as in NumPy


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


def integral_power(dtype: DType, exponent: complex) -> Function | None:
    """The function that computes x**exponent by products; None where `pow` does it.

    A cube of floats is a tenth of the work of `pow`, and nearer to the exact value.
    """
    if dtype in COMPUTE_FLOATS and exponent == 3:
        return write(f"fusec_cube_{dtype}", (dtype,), _formula("pow", dtype, "cube"))
    if dtype in COMPLEX and exponent.imag == 0 and exponent.real.is_integer() and abs(exponent) < PRODUCTS:
        return _products(dtype, int(exponent.real))
    return None


@cache
def quotient_by(dtype: DType, number: float) -> Function | None:
    """The function that computes x / number as IEEE's division does, by products; None where only a division does."""
    if not 0 < number < float("inf") or frexp(number)[0] == 0.5:
        return None
    formula = by_constant(FORMATS[dtype], number)
    name = str(dtype.numpy.type(number)).removesuffix(".0").replace(".", "_").replace("-", "minus_")
    return formula and write(f"fusec_over_{name}_{dtype}", (dtype,), formula)


@cache
def _products(dtype: DType, exponent: int) -> Function:
    name = f"fusec_power_{'minus_' if exponent < 0 else ''}{abs(exponent)}_{dtype}"
    return write(name, (dtype,), partial(_formula("pow", dtype, "by_products"), exponent))


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
