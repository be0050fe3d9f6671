"""Expressions that read like numbers: operators on `Term` build IR nodes, so definitions are formulas.

Python numbers among the operands become constants of the other operand's dtype, rounded to it.
"""

from __future__ import annotations

from collections.abc import Callable

from fusec.base.dtypes import BOOL, DType, signed_of, unsigned_of
from fusec.base.records import dataclass
from fusec.ir.expr import Expr, Lookup, apply, const, convert, scalar_type


def _operator(op: str) -> Callable[[Term, Term | int | float], Term]:
    """The method that applies an op to a value and another one or a number."""
    return lambda self, other: Term(apply(op, self.expr, self.like(other).expr))


def _reflected(op: str) -> Callable[[Term, int | float], Term]:
    """The method that applies an op to a number and a value."""
    return lambda self, other: Term(apply(op, self.like(other).expr, self.expr))


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A scalar expression with arithmetic operators; comparisons for equality are `eq` and `ne`."""

    expr: Expr

    @property
    def dtype(self) -> DType:
        """The dtype of the expression."""
        return scalar_type(self.expr)

    def like(self, number: Term | int | float) -> Term:
        """`number` itself, or the constant of this value's dtype."""
        return number if isinstance(number, Term) else Term(const(number, self.dtype))

    __add__ = _operator("add")
    __radd__ = _reflected("add")
    __sub__ = _operator("subtract")
    __rsub__ = _reflected("subtract")
    __mul__ = _operator("multiply")
    __rmul__ = _reflected("multiply")
    __truediv__ = _operator("divide")
    __rtruediv__ = _reflected("divide")

    def __neg__(self) -> Term:
        return Term(apply("negative", self.expr))

    def __abs__(self) -> Term:
        return Term(apply("absolute", self.expr))

    __lt__ = _operator("less")
    __le__ = _operator("less_equal")
    __gt__ = _operator("greater")
    __ge__ = _operator("greater_equal")
    eq = _operator("equal")
    ne = _operator("not_equal")
    __and__ = _operator("bitwise_and")
    __or__ = _operator("bitwise_or")
    __xor__ = _operator("bitwise_xor")

    def __invert__(self) -> Term:
        return Term(apply("logical_not" if self.dtype == BOOL else "bitwise_invert", self.expr))

    __lshift__ = _operator("left_shift")
    __rshift__ = _operator("right_shift")

    def to(self, dtype: DType) -> Term:
        """The value converted to `dtype`."""
        return Term(convert(self.expr, dtype))

    def bitcast(self, dtype: DType) -> Term:
        """The same bits read as `dtype`."""
        return Term(apply("bitcast", self.expr, target=dtype))

    @property
    def bits(self) -> Term:
        """The bits as an unsigned integer of the same width."""
        return self.bitcast(unsigned_of(self.dtype.bits))

    @property
    def signed_bits(self) -> Term:
        """The bits as a signed integer of the same width."""
        return self.bitcast(signed_of(self.dtype.bits))

    @property
    def real(self) -> Term:
        """The real part of a complex value."""
        return Term(apply("real", self.expr))

    @property
    def imag(self) -> Term:
        """The imaginary part of a complex value."""
        return Term(apply("imag", self.expr))


def unary(op: str, x: Term) -> Term:
    """Any op of one operand."""
    return Term(apply(op, x.expr))


def fma(x: Term, y: Term | float, z: Term | float) -> Term:
    """X * y + z with one rounding."""
    return Term(apply("fma", x.expr, x.like(y).expr, x.like(z).expr))


def where(condition: Term, then: Term | int | float, otherwise: Term | int | float) -> Term:
    """`then` if the condition holds, else `otherwise`; at least one of them is a Term."""
    kind = then if isinstance(then, Term) else otherwise
    assert isinstance(kind, Term), "where needs one operand that has a dtype"
    return Term(apply("where", condition.expr, kind.like(then).expr, kind.like(otherwise).expr))


def entry(values: tuple[float, ...], index: Term, dtype: DType) -> Term:
    """The entry of a constant table that the low bits of an integer choose."""
    return Term(Lookup(tuple(const(value, dtype) for value in values), index.expr, dtype))


def sqrt(x: Term) -> Term:
    """The correctly rounded square root."""
    return unary("sqrt", x)


def rint(x: Term) -> Term:
    """The nearest integer, halves to even."""
    return unary("rint", x)


def trunc(x: Term) -> Term:
    """The integer part."""
    return unary("trunc", x)


def floor(x: Term) -> Term:
    """The greatest integer not above x."""
    return unary("floor", x)


def multiply_high(x: Term, y: Term | int) -> Term:
    """The upper half of the double-width product."""
    return Term(apply("multiply_high", x.expr, x.like(y).expr))


def make_complex(re: Term, im: Term | float) -> Term:
    """The complex number of two parts."""
    return Term(apply("complex", re.expr, re.like(im).expr))
