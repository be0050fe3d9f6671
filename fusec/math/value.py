"""Expressions that read like numbers: operators on `Value` build IR nodes, so definitions are formulas.

Python numbers among the operands become constants of the other operand's dtype, rounded to it.
"""

from __future__ import annotations

from fusec.base.dtypes import BOOL, DType, signed_of, unsigned_of
from fusec.base.records import dataclass
from fusec.ir.expr import Expr, Lookup, apply, const, convert, scalar_type


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A scalar expression with arithmetic operators; comparisons for equality are `eq` and `ne`."""

    expr: Expr

    @property
    def dtype(self) -> DType:
        """The dtype of the expression."""
        return scalar_type(self.expr)

    def like(self, number: Value | int | float) -> Value:
        """`number` itself, or the constant of this value's dtype."""
        return number if isinstance(number, Value) else Value(const(number, self.dtype))

    def _apply(self, op: str, other: Value | int | float) -> Value:
        return Value(apply(op, self.expr, self.like(other).expr))

    def _reflected(self, op: str, other: int | float) -> Value:
        return Value(apply(op, self.like(other).expr, self.expr))

    def __add__(self, other: Value | int | float) -> Value:
        return self._apply("add", other)

    def __radd__(self, other: int | float) -> Value:
        return self._reflected("add", other)

    def __sub__(self, other: Value | int | float) -> Value:
        return self._apply("subtract", other)

    def __rsub__(self, other: int | float) -> Value:
        return self._reflected("subtract", other)

    def __mul__(self, other: Value | int | float) -> Value:
        return self._apply("multiply", other)

    def __rmul__(self, other: int | float) -> Value:
        return self._reflected("multiply", other)

    def __truediv__(self, other: Value | int | float) -> Value:
        return self._apply("divide", other)

    def __rtruediv__(self, other: int | float) -> Value:
        return self._reflected("divide", other)

    def __neg__(self) -> Value:
        return Value(apply("negative", self.expr))

    def __abs__(self) -> Value:
        return Value(apply("absolute", self.expr))

    def __lt__(self, other: Value | int | float) -> Value:
        return self._apply("less", other)

    def __le__(self, other: Value | int | float) -> Value:
        return self._apply("less_equal", other)

    def __gt__(self, other: Value | int | float) -> Value:
        return self._apply("greater", other)

    def __ge__(self, other: Value | int | float) -> Value:
        return self._apply("greater_equal", other)

    def eq(self, other: Value | int | float) -> Value:
        """Whether the two are equal, a bool."""
        return self._apply("equal", other)

    def ne(self, other: Value | int | float) -> Value:
        """Whether the two differ, a bool."""
        return self._apply("not_equal", other)

    def __and__(self, other: Value | int) -> Value:
        return self._apply("bitwise_and", other)

    def __or__(self, other: Value | int) -> Value:
        return self._apply("bitwise_or", other)

    def __xor__(self, other: Value | int) -> Value:
        return self._apply("bitwise_xor", other)

    def __invert__(self) -> Value:
        return Value(apply("logical_not" if self.dtype == BOOL else "bitwise_invert", self.expr))

    def __lshift__(self, other: Value | int) -> Value:
        return self._apply("left_shift", other)

    def __rshift__(self, other: Value | int) -> Value:
        return self._apply("right_shift", other)

    def to(self, dtype: DType) -> Value:
        """The value converted to `dtype`."""
        return Value(convert(self.expr, dtype))

    def bitcast(self, dtype: DType) -> Value:
        """The same bits read as `dtype`."""
        return Value(apply("bitcast", self.expr, target=dtype))

    @property
    def bits(self) -> Value:
        """The bits as an unsigned integer of the same width."""
        return self.bitcast(unsigned_of(self.dtype.bits))

    @property
    def signed_bits(self) -> Value:
        """The bits as a signed integer of the same width."""
        return self.bitcast(signed_of(self.dtype.bits))

    @property
    def real(self) -> Value:
        """The real part of a complex value."""
        return Value(apply("real", self.expr))

    @property
    def imag(self) -> Value:
        """The imaginary part of a complex value."""
        return Value(apply("imag", self.expr))


def unary(op: str, x: Value) -> Value:
    """Any op of one operand."""
    return Value(apply(op, x.expr))


def fma(x: Value, y: Value | float, z: Value | float) -> Value:
    """X * y + z with one rounding."""
    return Value(apply("fma", x.expr, x.like(y).expr, x.like(z).expr))


def where(condition: Value, then: Value | int | float, otherwise: Value | int | float) -> Value:
    """`then` if the condition holds, else `otherwise`; at least one of them is a Value."""
    kind = then if isinstance(then, Value) else otherwise
    assert isinstance(kind, Value), "where needs one operand that has a dtype"
    return Value(apply("where", condition.expr, kind.like(then).expr, kind.like(otherwise).expr))


def entry(values: tuple[float, ...], index: Value, dtype: DType) -> Value:
    """The entry of a constant table that the low bits of an integer choose."""
    return Value(Lookup(tuple(const(value, dtype) for value in values), index.expr, dtype))


def sqrt(x: Value) -> Value:
    """The correctly rounded square root."""
    return unary("sqrt", x)


def rint(x: Value) -> Value:
    """The nearest integer, halves to even."""
    return unary("rint", x)


def trunc(x: Value) -> Value:
    """The integer part."""
    return unary("trunc", x)


def floor(x: Value) -> Value:
    """The greatest integer not above x."""
    return unary("floor", x)


def multiply_high(x: Value, y: Value | int) -> Value:
    """The upper half of the double-width product."""
    return Value(apply("multiply_high", x.expr, x.like(y).expr))


def make_complex(re: Value, im: Value | float) -> Value:
    """The complex number of two parts."""
    return Value(apply("complex", re.expr, re.like(im).expr))
