"""Floored quotients and remainders of signed integers: what `fusec.math` makes of a quotient and a remainder of C's.

Here both come of one division; by a divisor that all lanes share, the floored quotient is found without the remainder.
"""

from __future__ import annotations

from fusec.base.dtypes import INT8, INT16, INT32, INT64, DType
from fusec.codegen.llvm.divide import quotient_and_rest
from fusec.codegen.llvm.invariant import Reciprocal, quotient_by, reciprocal_of
from fusec.codegen.llvm.values import Builder, Value, integer
from fusec.ir.expr import Apply
from fusec.ir.loops import Function, Local, Return
from fusec.ir.walk import with_body
from fusec.math import define

FLOORED, REST = "floor_divide", "remainder"
"""The ops that only `floored` leaves for this target."""

_FUNCTIONS = {
    define(op, (dtype, dtype)).name: (op, dtype) for op in (FLOORED, REST) for dtype in (INT8, INT16, INT32, INT64)
}


def floored(functions: tuple[Function, ...]) -> tuple[Function, ...]:
    """The functions, with the ops in place of what `fusec.math` writes for them."""
    return tuple(_with_op(each) if each.name in _FUNCTIONS else each for each in functions)


def _with_op(function: Function) -> Function:
    op, dtype = _FUNCTIONS[function.name]
    params = tuple(Local(name, dtype) for name, _ in function.params)
    return with_body(function, (Return(Apply(op, params, dtype)),))


def floor_divide(b: Builder, args: list[Value], dtype: DType) -> Value:
    """Python's //: the quotient rounded down; x // 0 is 0."""
    by = reciprocal_of(b, args[0], args[1], dtype)
    if by is not None:
        return _floored(b, args[0], by)
    quotient, _, is_moved = _both(b, args, dtype)
    return b.select(is_moved, b.binary("sub", quotient, integer(1, quotient.type)), quotient)


def remainder(b: Builder, args: list[Value], dtype: DType) -> Value:
    """Python's %: the remainder of the floored quotient; x % 0 is 0."""
    by = reciprocal_of(b, args[0], args[1], dtype)
    if by is not None:
        rest = b.binary("sub", args[0], b.binary("mul", _floored(b, args[0], by), args[1]))
        return b.select(by.is_zero, integer(0, rest.type), rest)
    _, rest, is_moved = _both(b, args, dtype)
    return b.select(is_moved, b.binary("add", rest, args[1]), rest)


def _both(b: Builder, args: list[Value], dtype: DType) -> tuple[Value, Value, Value]:
    """C's quotient and remainder, and whether the floored ones are others."""
    quotient, rest = quotient_and_rest(b, args, dtype)
    zero = integer(0, rest.type)
    differs = b.compare("icmp slt", b.binary("xor", rest, args[1]), zero)
    return quotient, rest, b.binary("and", b.compare("icmp ne", rest, zero), differs)


def _floored(b: Builder, value: Value, by: Reciprocal) -> Value:
    """Of x below 0 the magnitude is that of ~x: floor(x / d) is ~(~x / d). Of d below 0 it is that of -x and -d.

    -x is ~(x - 1); x is at most 0 if the sign of x or that of x - 1 is set.
    """
    above = b.binary("add", value, by.sign)
    bits = integer(int(value.type[1:]) - 1, value.type)
    signs = b.binary("ashr", b.binary("or", above, value), bits)
    found = quotient_by(b, b.binary("xor", above, signs), by)
    found = b.binary("xor", found, b.binary("xor", signs, by.sign))
    return b.select(by.is_zero, integer(0, value.type), found)
