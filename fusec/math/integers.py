"""Functions of integers: divisors and powers, which wrap; binomial coefficients; positions in a sequence."""

from __future__ import annotations

from fusec.base.dtypes import unsigned_of
from fusec.ir.expr import apply
from fusec.ir.walk import Body
from fusec.math.body import Block, call, write
from fusec.math.value import Term, multiply_high, where


def _size(x: Term) -> Term:
    """The magnitude as an unsigned number, which holds that of INT_MIN."""
    size = x if x.dtype.kind == "unsigned" else abs(x)
    return size.to(unsigned_of(x.dtype.bits))


def gcd(x: Term, y: Term) -> Body:
    """The greatest common divisor of the magnitudes, by Euclid; that of 0 and 0 is 0, and INT_MIN may stay itself."""
    block = Block()
    larger, smaller = block.let(_size(x)), block.let(_size(y))

    def turn(inner: Block) -> None:
        rest = inner.let(Term(apply("modulo", larger.expr, smaller.expr)))
        inner.assign(larger, smaller)
        inner.assign(smaller, rest)

    block.loop(smaller.ne(0), turn)
    return block.finish(larger.to(x.dtype))


def lcm(x: Term, y: Term) -> Term:
    """The least common multiple of the magnitudes, wrapping; 0 if either is 0."""
    divisor = _size(call(write(f"fusec_gcd_{x.dtype}", (x.dtype, y.dtype), gcd), x, y))
    quotient = Term(apply("quotient", _size(x).expr, divisor.expr))  # x / 0 is 0
    return (quotient * _size(y)).to(x.dtype)


def pow_(x: Term, y: Term) -> Body:
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


def comb(x: Term, y: Term) -> Body:
    """How many ways there are to choose y of x; 0 for negative numbers, the largest integer for what is larger.

    After round i the result is the coefficient of (x - k + i, i), which is exact: with the quotients and rests of both
    factors by i no product is larger than the new result. It at least doubles in every round, so that there are few.
    """
    block, bits = Block(), x.dtype.bits
    whole = unsigned_of(bits)
    possible = block.let((y >= 0) & (y <= x))
    size = where(possible, x, 0).to(whole)
    least = where(possible, where(y > x - y, x - y, y), 0).to(whole)
    count, result, at = block.let(least), block.let(size.like(1)), block.let(size.like(1))
    limit = size.like((1 << bits - (x.dtype.kind == "signed")) - 1)

    def turn(inner: Block) -> None:
        factor = inner.let(size - count + at)
        parts, rests = _divided(result, at), _divided(factor, at)
        product = inner.let(parts[0] * factor)
        found = inner.let(product + parts[1] * rests[0] + Term(apply("quotient", (parts[1] * rests[1]).expr, at.expr)))
        beyond = inner.let(multiply_high(parts[0], factor).ne(0) | (found < product) | (found > limit))
        inner.assign(result, where(beyond, limit, found))
        inner.assign(at, where(beyond, count + 1, at + 1))

    block.loop(at <= count, turn)
    return block.finish(where(possible, result.to(x.dtype), 0))


def _divided(x: Term, y: Term) -> tuple[Term, Term]:
    quotient = Term(apply("quotient", x.expr, y.expr))
    return quotient, x - quotient * y


def position(x: Term, y: Term) -> Term:
    """Where the item x of a sequence of y lies: a negative index counts from the end, one outside is the nearest."""
    counted = x if x.dtype.kind == "unsigned" else where(x < 0, x + y, x)
    counted = counted if x.dtype.kind == "unsigned" else where(counted < 0, 0, counted)
    return where(counted >= y, y - 1, counted)
