"""What is measured: one row for each function, with the arguments that are tried and the bound that it must keep."""

from __future__ import annotations

from dataclasses import dataclass

from fusec.base import ops

AMPLITUDE = "fmin(1.0, sqrt(0.6366197723675814 / fabs(x)))"  # of the Bessel functions: sqrt(2 / (pi x))


@dataclass(frozen=True)
class Row:
    """A function of real arguments.

    text: how kernels spell it. ranges: (low, high) of uniform draws. exponents: (low, high) of draws with uniform
    exponents of two, in both signs unless `positive`. unit: an expression of x, y and `exact` in float64; the error
    counts in last places of it where the exact value is less. bound, reason: the promise if it is not 1 ulp.
    slow: the exact value takes milliseconds, so fewer are computed.
    """

    op: str
    ranges: tuple[tuple[float, float], ...] = ()
    exponents: tuple[tuple[int, int], ...] = ()
    positive: bool = False
    text: str = ""
    unit: str = ""
    bound: float = 1.0
    reason: str = ""
    slow: bool = False

    @property
    def name(self) -> str:
        """The name in kernels."""
        return self.text or self.op

    @property
    def arity(self) -> int:
        """Number of operands."""
        return ops.TABLE[self.op].arity

    def call(self, *arguments: str) -> str:
        """The text of a call."""
        return f"{self.name}({', '.join(arguments)})"


_NEAR_A_ZERO = (
    "relative to the amplitude sqrt(2 / (pi x)) where that is greater than the value: near a zero, the argument's"
    " digits do not determine those of the value"
)
_CANCELS = "where the greater argument is negative and the result near 0: relative to that argument"
_BESSEL = {"unit": AMPLITUDE, "bound": 4.0, "reason": _NEAR_A_ZERO, "slow": True}

UNARY = (
    Row("exp", ((-746, 710), (-104, 89), (-1, 1)), ((-60, 9),)),
    Row("exp2", ((-1075, 1025), (-150, 129), (-1, 1)), ((-60, 10),)),
    Row("exp10", ((-324, 309), (-46, 39), (-1, 1)), ((-60, 8),)),
    Row("expm1", ((-40, 710), (-1, 1)), ((-1022, 9), (-30, 2))),
    Row("log", ((0.5, 2), (0.99, 1.01), (0, 1000)), ((-1074, 1023), (-149, 127)), positive=True),
    Row("log2", ((0.5, 2), (0.99, 1.01), (0, 1000)), ((-1074, 1023), (-149, 127)), positive=True),
    Row("log10", ((0.5, 2), (0.99, 1.01), (0, 1000)), ((-1074, 1023), (-149, 127)), positive=True),
    Row("log1p", ((-1, 2), (-0.5, 0.5)), ((-1022, -1), (-60, 1023))),
    Row("sin", ((-4, 4), (-1e5, 1e5)), ((-1022, 1023), (-30, 60))),
    Row("cos", ((-4, 4), (-1e5, 1e5)), ((-30, 1023), (-30, 60))),
    Row("tan", ((-4, 4), (-1e5, 1e5)), ((-1022, 1023), (-30, 60))),
    Row("sinpi", ((-4, 4), (-1e3, 1e3)), ((-1022, 54), (-30, 20))),
    Row("cospi", ((-4, 4), (-1e3, 1e3)), ((-30, 54), (-30, 20))),
    Row("sinc", ((-4, 4), (-100, 100)), ((-30, 54),)),
    Row("asin", ((-1, 1),), ((-1022, -1), (-30, -1))),
    Row("acos", ((-1, 1),), ((-60, -1),)),
    Row("atan", ((-3, 3),), ((-1022, 1023), (-30, 30))),
    Row("sinh", ((-711, 711), (-2, 2)), ((-1022, 9), (-30, 2))),
    Row("cosh", ((-711, 711), (-2, 2)), ((-30, 9),)),
    Row("tanh", ((-20, 20), (-1, 1)), ((-1022, 4), (-30, 2))),
    Row("asinh", ((-4, 4),), ((-1022, 1023), (-30, 60))),
    Row("acosh", ((1, 4), (1, 1.001)), ((0, 1023), (0, 60)), positive=True),
    Row("atanh", ((-1, 1),), ((-1022, -1), (-30, -1))),
    Row("cbrt", ((-30, 30),), ((-1074, 1023),)),
    Row("deg2rad", ((-400, 400),), ((-1074, 1023), (-149, 127))),
    Row("rad2deg", ((-7, 7),), ((-1074, 1023), (-149, 127))),
    Row("rsqrt", ((0, 30),), ((-1074, 1023),), positive=True),
    Row("sigmoid", ((-746, 40), (-80, 80), (-2, 2)), ((-60, 9),)),
    Row("softplus", ((-746, 700), (-80, 80), (-2, 2)), ((-60, 9),)),
    Row("erf", ((-6, 6), (-1, 1)), ((-1022, 2), (-30, 2))),
    Row("erfc", ((-6, 27.3), (-3, 9), (-1, 1)), ((-60, 4),)),
    Row("erfcx", ((-27, 27), (-1, 1), (0, 1000)), ((-60, 1023), (-30, 4))),
    Row("erfinv", ((-1, 1),), ((-1022, -1), (-30, -1)), slow=True),
    Row("erfcinv", ((0.01, 1.99),), ((-1022, -1), (-30, -1)), positive=True, slow=True),
    Row("normcdf", ((-38.6, 9), (-12, 5), (-1, 1)), ((-60, 5),)),
    Row("normcdfinv", ((0.01, 0.99),), ((-1022, -1), (-30, -1)), positive=True, slow=True),
    Row("gamma", ((-180, 172), (-36, 36), (0, 4)), ((-60, 7), (-1022, 0)), text="tgamma"),
    Row(
        "lgamma",
        ((-40, 40), (-8, 0), (0, 40), (0.9, 2.1)),
        ((-1022, 1010), (-30, 30)),
        unit="x < 0.0 ? 1.0 : 0.0",
        reason="for negative arguments near a zero: relative to 1 where 1 is greater than the value",
    ),
    Row("i0", ((-714, 714), (-80, 80), (0, 9)), ((-30, 9),), slow=True, text="i0"),
    Row("i1", ((-714, 714), (-80, 80), (0, 9)), ((-1022, 9), (-30, 9)), slow=True, text="i1"),
    Row("j0", ((-8, 8), (8, 1000)), ((-30, 60),), **_BESSEL),  # type: ignore[arg-type]
    Row("j1", ((-8, 8), (8, 1000)), ((-1022, 60), (-30, 30)), **_BESSEL),  # type: ignore[arg-type]
    Row("y0", ((0, 8), (8, 1000)), ((-1022, 60), (-30, 30)), positive=True, **_BESSEL),  # type: ignore[arg-type]
    Row("y1", ((0, 8), (8, 1000)), ((-1022, 60), (-30, 30)), positive=True, **_BESSEL),  # type: ignore[arg-type]
)

BINARY = (
    Row("pow"),
    Row("atan2"),
    Row("hypot"),
    Row("logaddexp", unit="fabs(fmax(x, y))", reason=_CANCELS),
    Row("logaddexp2", unit="fabs(fmax(x, y))", reason=_CANCELS),
)

ROWS = {row.op: row for row in (*UNARY, *BINARY)}

COMPLEX = tuple(
    """
    exp expm1 log log1p log2 log10 sqrt_complex sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh
    multiply divide square reciprocal sign pow abs_complex arg norm
    """.split()
)

# These give the correctly rounded or the one possible result, which tests compare by bits with NumPy's.
EXACT = frozenset(
    """
    add subtract multiply divide negative absolute fma sqrt floor ceil trunc rint round fmod remainder floor_divide
    ieee_remainder nextafter spacing copysign ldexp minimum maximum fmin fmax clip heaviside sign signbit
    square reciprocal isnan isinf isfinite ilogb logb frexp_mantissa frexp_exponent modf_fraction conj proj rint_complex
    """.split()
)
