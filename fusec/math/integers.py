"""Functions of integers: divisors and powers, all wrapping."""

from __future__ import annotations

from fusec.dtypes import unsigned_of
from fusec.ir.expr import apply
from fusec.ir.walk import Body
from fusec.math.body import Block, call, write
from fusec.math.value import Value, where


def _size(x: Value) -> Value:
    """The magnitude as an unsigned number, which holds that of INT_MIN."""
    size = x if x.dtype.kind == "unsigned" else abs(x)
    return size.to(unsigned_of(x.dtype.bits))


def gcd(x: Value, y: Value) -> Body:
    """The greatest common divisor of the magnitudes, by Euclid; that of 0 and 0 is 0, and INT_MIN may stay itself."""
    block = Block()
    larger, smaller = block.let(_size(x)), block.let(_size(y))

    def turn(inner: Block) -> None:
        rest = inner.let(Value(apply("modulo", larger.expr, smaller.expr)))
        inner.assign(larger, smaller)
        inner.assign(smaller, rest)

    block.loop(smaller.ne(0), turn)
    return block.finish(larger.to(x.dtype))


def lcm(x: Value, y: Value) -> Value:
    """The least common multiple of the magnitudes, wrapping; 0 if either is 0."""
    divisor = _size(call(write(f"fusec_gcd_{x.dtype}", (x.dtype, y.dtype), gcd), x, y))
    quotient = Value(apply("quotient", _size(x).expr, divisor.expr))  # x / 0 is 0
    return (quotient * _size(y)).to(x.dtype)


def pow_(x: Value, y: Value) -> Body:
    """x^y by squaring, wrapping; a negative exponent gives the truncated quotient 1 / x^-y, which is 0 for 0."""
    block = Block()
    signed = x.dtype.kind == "signed"
    base, result = block.let(x), block.let(x.like(1))
    left = block.let(where(y < 0, 0, y) if signed else y)

    def turn(inner: Block) -> None:
        inner.assign(result, where((left & 1).ne(0), result * base, result))
        inner.assign(base, base * base)
        inner.assign(left, left >> 1)

    block.loop(left.ne(0), turn)
    if not signed:
        return block.finish(result + 0)
    inverse = where(x.eq(1), x.like(1), where(x.eq(-1), where((y & 1).ne(0), x, 1), 0))
    return block.finish(where(y < 0, inverse, result))
