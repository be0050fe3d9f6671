"""The op table: every pure scalar operation of the IR, with its arity, operand kinds, result rule and NumPy reference.

An op is either *primitive* - every backend spells it and the interpreter evaluates it - or *defined*: `fusec.math`
holds its one definition in terms of primitive ops, which all targets share, so that all compute the same bits.

All operands of an op have the same dtype, except the condition of `where` (bool) and where a row names the kinds of
its second operand. Every op is total: for integers, overflow
wraps, `x / 0` and `x % 0` are 0, INT_MIN / -1 is INT_MIN, shifts by a negative or over-wide count give what an
infinitely wide shift would; conversion of a float out of range saturates and nan converts to 0.
"""

from __future__ import annotations

from typing import Literal

from fusec.base.dtypes import BOOL, DType, complex_type, real_type, signed_of
from fusec.base.records import dataclass

Result = Literal["same", "bool", "tail", "target", "real", "complex", "int32", "signed"]
Typing = Literal["floats", "neighbours", "common"]
"""Arguments become floats of one type, as C and NumPy have it; likewise, but narrow floats remain; or they become the
type that they have in common."""
Kinds = frozenset[str]

BOOLEAN: Kinds = frozenset({"bool"})
INTEGER: Kinds = frozenset({"signed", "unsigned"})
FLOAT: Kinds = frozenset({"float"})
COMPLEX: Kinds = frozenset({"complex"})
FLOATING: Kinds = FLOAT | COMPLEX
REAL: Kinds = INTEGER | FLOAT
NUMERIC: Kinds = REAL | COMPLEX
BITS: Kinds = BOOLEAN | INTEGER
ORDERED: Kinds = BOOLEAN | REAL
ANY: Kinds = BOOLEAN | NUMERIC


@dataclass(frozen=True, slots=True)
class Op:
    """One row: what an op takes and gives, where it is defined, and what languages call it."""

    name: str
    arity: int
    accepts: Kinds  # the dtype kinds of the operands
    # "same" as the operands; "bool"; "tail": as the second operand (where); "target": given by the node (convert,
    # bitcast); "real": the part type of a complex operand; "complex": its complex type; "int32"; "signed": the signed
    # integer of the same width
    result: Result = "same"
    primitive: bool = True  # backends spell it; else `fusec.math` defines it
    reference: str = ""  # the NumPy function that defines the exact result; "" where the definition is the only one
    commutes: bool = False  # operands may be exchanged without changing a bit (nan payloads aside)
    second: Kinds | None = None  # kinds of the second operand where it need not have the dtype of the first
    # Where in `fusec.math` it is defined, as "module.function":
    math: str = ""
    integer_math: str = ""  # of integers, where that differs
    complex_math: str = ""  # of complex operands, for which some primitive ops are defined too
    # What calls it, as names parted by blanks. Functions whose arguments follow rules of their own (abs, where, lrint)
    # stand in the front ends.
    c: str = ""  # in kernel strings, by C, CUDA or the Array API; "exp[f]" is exp, and expf of float32
    python: str = ""  # in Python functions and expressions, by NumPy, SciPy or Python's math
    cuda: str = ""  # CUDA's approximation of it for float32
    llvm: str = ""  # LLVM's intrinsic
    symbol: str = ""  # the infix operator of C; "//" is the `/` of integers
    typing: Typing = "floats"  # how these functions find the type of their arguments

    @property
    def c_names(self) -> dict[str, bool]:
        """The names in kernel strings, each with whether it is for float32 alone."""
        names: dict[str, bool] = {}
        for name in self.c.split():
            plain = name.removesuffix("[f]")
            names |= {plain: False} | ({f"{plain}f": True} if plain != name else {})
        return names | ({self.cuda: True} if self.cuda else {})


def _table(*rows: Op) -> dict[str, Op]:
    table = {row.name: row for row in rows}
    assert len(table) == len(rows), "two rows of the op table share a name"
    return table


def _function(
    name: str, math: str, c: str = "", python: str = "", *, complex_math: str = "", cuda: str = "", arity: int = 1
) -> Op:
    """An elementary function of floats, and of complex numbers where these have a definition."""
    accepts = FLOATING if complex_math else FLOAT
    return Op(
        name, arity, accepts, primitive=False, math=math, complex_math=complex_math, c=c, python=python, cuda=cuda
    )


def _exact(
    name: str, arity: int, accepts: Kinds, math: str, result: Result = "same", *, complex_math: str = "", c: str = "",
    python: str = "", typing: Typing = "floats",
) -> Op:  # fmt: skip
    """A function whose results are NumPy's, who has it under the same name."""
    integers = accepts == INTEGER
    return Op(
        name, arity, accepts, result, primitive=False, reference=name, math="" if integers else math,
        integer_math=math if integers else "", complex_math=complex_math, c=c, python=python, typing=typing,
    )  # fmt: skip


def _complex(name: str, math: str, result: Result = "same") -> Op:
    """A function of complex numbers alone."""
    return Op(name, 1, COMPLEX, result, primitive=False, complex_math=math)


TABLE = _table(
    # --- primitive: arithmetic -------------------------------------------------------------------------------
    Op("add", 2, NUMERIC, reference="add", commutes=True, complex_math="complex_basic.add", symbol="+"),
    Op("subtract", 2, NUMERIC, reference="subtract", complex_math="complex_basic.subtract", symbol="-"),
    Op("multiply", 2, NUMERIC, reference="multiply", commutes=True, complex_math="complex_basic.multiply", symbol="*"),
    Op("divide", 2, FLOATING, reference="divide", complex_math="complex_basic.divide", symbol="/"),
    Op("quotient", 2, INTEGER, symbol="//"),  # C's integer `/`: toward zero, made total
    Op("modulo", 2, INTEGER, reference="fmod", symbol="%"),  # C's integer `%`: sign of the dividend, made total
    Op("negative", 1, NUMERIC, reference="negative", complex_math="complex_basic.negative"),
    Op("absolute", 1, REAL, reference="absolute", c="fabs[f]", python="fabs"),
    Op("fma", 3, FLOAT, c="fma[f]", python="fma", llvm="fma"),  # one rounding
    Op("sqrt", 1, FLOAT, reference="sqrt", llvm="sqrt"),
    Op("floor", 1, FLOAT, reference="floor", c="floor[f]", llvm="floor"),
    Op("ceil", 1, FLOAT, reference="ceil", c="ceil[f]", llvm="ceil"),
    Op("trunc", 1, FLOAT, reference="trunc", c="trunc[f]", llvm="trunc"),
    Op("rint", 1, FLOAT, reference="rint", c="rint[f] nearbyint[f]", llvm="roundeven"),  # half to even
    Op("multiply_high", 2, INTEGER, commutes=True),  # upper half of the double-width product
    # --- primitive: bits -------------------------------------------------------------------------------------
    Op("bitwise_and", 2, BITS, reference="bitwise_and", commutes=True, symbol="&"),
    Op("bitwise_or", 2, BITS, reference="bitwise_or", commutes=True, symbol="|"),
    Op("bitwise_xor", 2, BITS, reference="bitwise_xor", commutes=True, symbol="^"),
    Op("bitwise_invert", 1, INTEGER, reference="invert"),
    Op("left_shift", 2, INTEGER, reference="left_shift", symbol="<<"),
    Op("right_shift", 2, INTEGER, reference="right_shift", symbol=">>"),
    Op("count_ones", 1, INTEGER, "int32"),
    Op("count_leading_zeros", 1, INTEGER, "int32"),
    # --- primitive: comparison and choice --------------------------------------------------------------------
    Op("equal", 2, ANY, "bool", reference="equal", commutes=True, complex_math="complex_basic.equal", symbol="=="),
    Op(
        "not_equal", 2, ANY, "bool", reference="not_equal", commutes=True, complex_math="complex_basic.not_equal",
        symbol="!=",
    ),
    Op("less", 2, ORDERED, "bool", reference="less", symbol="<"),
    Op("less_equal", 2, ORDERED, "bool", reference="less_equal", symbol="<="),
    Op("greater", 2, ORDERED, "bool", reference="greater", symbol=">"),
    Op("greater_equal", 2, ORDERED, "bool", reference="greater_equal", symbol=">="),
    Op("logical_and", 2, BOOLEAN, "bool", reference="logical_and", symbol="&&"),  # the second operand on demand
    Op("logical_or", 2, BOOLEAN, "bool", reference="logical_or", symbol="||"),  # likewise
    Op("logical_not", 1, BOOLEAN, "bool", reference="logical_not"),
    Op("where", 3, ANY, "tail", reference="where"),  # the chosen operand alone is evaluated
    # --- primitive: change of type ---------------------------------------------------------------------------
    Op("convert", 1, ANY, "target"),  # to bool: x != 0; complex to real: the real part
    Op("bitcast", 1, BITS | FLOAT, "target"),  # same width
    # --- primitive: complex ----------------------------------------------------------------------------------
    Op("complex", 2, FLOAT, "complex"),  # real and imaginary part to a complex value
    Op("real", 1, COMPLEX, "real", reference="real"),
    Op("imag", 1, COMPLEX, "real", reference="imag"),
    # --- defined in fusec.math -------------------------------------------------------------------------------
    _function("exp", "exponential.exp", "exp[f]", "exp", complex_math="complex_elementary.exp", cuda="__expf"),
    _function("expm1", "exponential.expm1", "expm1[f]", "expm1", complex_math="complex_elementary.expm1"),
    _function("log", "logarithm.log", "log[f]", "log", complex_math="complex_elementary.log", cuda="__logf"),
    _function("log1p", "logarithm.log1p", "log1p[f]", "log1p", complex_math="complex_elementary.log1p"),
    _function("log2", "logarithm.log2", "log2[f]", "log2", complex_math="complex_elementary.log2", cuda="__log2f"),
    _function(
        "log10", "logarithm.log10", "log10[f]", "log10", complex_math="complex_elementary.log10", cuda="__log10f"
    ),
    _function("sin", "trigonometric.sin", "sin[f]", "sin", complex_math="complex_elementary.sin", cuda="__sinf"),
    _function("cos", "trigonometric.cos", "cos[f]", "cos", complex_math="complex_elementary.cos", cuda="__cosf"),
    _function("tan", "trigonometric.tan", "tan[f]", "tan", complex_math="complex_elementary.tan", cuda="__tanf"),
    _function("sinh", "hyperbolic.sinh", "sinh[f]", "sinh", complex_math="complex_elementary.sinh"),
    _function("cosh", "hyperbolic.cosh", "cosh[f]", "cosh", complex_math="complex_elementary.cosh"),
    _function("tanh", "hyperbolic.tanh", "tanh[f]", "tanh", complex_math="complex_elementary.tanh"),
    _function("asin", "trigonometric_inverse.asin", "asin[f]", "asin arcsin", complex_math="complex_elementary.asin"),
    _function("acos", "trigonometric_inverse.acos", "acos[f]", "acos arccos", complex_math="complex_elementary.acos"),
    _function("atan", "trigonometric_inverse.atan", "atan[f]", "atan arctan", complex_math="complex_elementary.atan"),
    _function("asinh", "hyperbolic.asinh", "asinh[f]", "asinh arcsinh", complex_math="complex_elementary.asinh"),
    _function("acosh", "hyperbolic.acosh", "acosh[f]", "acosh arccosh", complex_math="complex_elementary.acosh"),
    _function("atanh", "hyperbolic.atanh", "atanh[f]", "atanh arctanh", complex_math="complex_elementary.atanh"),
    _function("exp2", "exponential.exp2", "exp2[f]", "exp2"),
    _function("exp10", "exponential.exp10", "exp10[f]", "exp10", cuda="__exp10f"),
    _function("sinpi", "trigonometric.sinpi", "sinpi[f]", "sinpi"),
    _function("cospi", "trigonometric.cospi", "cospi[f]", "cospi"),
    _function("sinc", "trigonometric.sinc", "sinc", "sinc"),
    _function("deg2rad", "angles.deg2rad", "deg2rad", "deg2rad radians"),
    _function("rad2deg", "angles.rad2deg", "rad2deg", "rad2deg degrees"),
    _function("cbrt", "power.cbrt", "cbrt[f]", "cbrt"),
    _function("rsqrt", "power.rsqrt", "rsqrt[f]", "rsqrt"),
    _function("erf", "error.erf", "erf[f]", "erf"),
    _function("erfc", "error.erfc", "erfc[f]", "erfc"),
    _function("erfcx", "error.erfcx", "erfcx[f]", "erfcx"),
    _function("erfinv", "error_inverse.erfinv", "erfinv[f]", "erfinv"),
    _function("erfcinv", "error_inverse.erfcinv", "erfcinv[f]", "erfcinv"),
    _function("lgamma", "gamma.lgamma", "lgamma[f]", "lgamma gammaln loggamma"),
    _function("gamma", "gamma.gamma", "tgamma[f] gamma", "gamma"),
    _function("sigmoid", "exponential.sigmoid", "sigmoid", "sigmoid expit"),
    _function("softplus", "logarithm.softplus", "softplus", "softplus"),
    _function("i0", "bessel.i0", "cyl_bessel_i0[f] i0", "i0"),
    _function("i1", "bessel.i1", "cyl_bessel_i1[f] i1", "i1"),
    _function("j0", "bessel.j0", "j0[f]", "j0"),
    _function("j1", "bessel.j1", "j1[f]", "j1"),
    _function("y0", "bessel.y0", "y0[f]", "y0"),
    _function("y1", "bessel.y1", "y1[f]", "y1"),
    _function("normcdf", "error.normcdf", "normcdf[f]", "normcdf ndtr"),
    _function("normcdfinv", "error_inverse.normcdfinv", "normcdfinv[f]", "normcdfinv ndtri"),
    _function("atan2", "trigonometric_inverse.atan2", "atan2[f]", "atan2 arctan2", arity=2),
    _function("hypot", "power.hypot", "hypot[f]", "hypot", arity=2),
    _function("logaddexp", "logarithm.logaddexp", "logaddexp", "logaddexp", arity=2),
    _function("logaddexp2", "logarithm.logaddexp2", "logaddexp2", "logaddexp2", arity=2),
    _exact("copysign", 2, FLOAT, "basic.copysign", c="copysign[f]", python="copysign"),
    _exact("nextafter", 2, FLOAT, "basic.nextafter", c="nextafter[f]", python="nextafter", typing="neighbours"),
    _exact("heaviside", 2, FLOAT, "basic.heaviside", c="heaviside", python="heaviside"),
    _exact("fmod", 2, FLOAT, "division.fmod", c="fmod[f]"),
    Op("ldexp", 2, FLOAT, primitive=False, second=INTEGER, math="basic.ldexp"),
    Op(
        "pow", 2, NUMERIC, primitive=False, math="power.pow_", integer_math="integers.pow_",
        complex_math="complex_elementary.pow_", c="pow[f]", cuda="__powf",
    ),
    _exact("gcd", 2, INTEGER, "integers.gcd", c="gcd", python="gcd", typing="common"),
    _exact("lcm", 2, INTEGER, "integers.lcm", c="lcm", python="lcm", typing="common"),
    Op("position", 2, INTEGER, primitive=False, integer_math="integers.position"),  # of an item, if there are so many
    Op("comb", 2, INTEGER, primitive=False, integer_math="integers.comb"),  # binomial coefficients
    _function("ieee_remainder", "division.ieee_remainder", "remainder[f]", arity=2),
    _exact("floor_divide", 2, REAL, "division.floor_divide"),
    _exact("remainder", 2, REAL, "division.remainder"),
    _exact("minimum", 2, REAL, "basic.minimum", c="minimum", typing="common"),
    _exact("maximum", 2, REAL, "basic.maximum", c="maximum", typing="common"),
    _exact("fmin", 2, REAL, "basic.fmin", c="fmin[f]"),
    _exact("fmax", 2, REAL, "basic.fmax", c="fmax[f]"),
    _exact("clip", 3, REAL, "basic.clip", c="clip", typing="common"),
    _exact("square", 1, NUMERIC, "basic.square", complex_math="complex_basic.square", c="square", typing="common"),
    _exact("sign", 1, NUMERIC, "basic.sign", complex_math="complex_basic.sign", c="sign", typing="common"),
    _exact("reciprocal", 1, FLOATING, "basic.reciprocal", complex_math="complex_basic.reciprocal", c="reciprocal"),
    _function("round", "basic.round_", "round[f]"),  # C's: half away from zero
    _exact("signbit", 1, FLOAT, "basic.signbit", "bool", c="signbit", python="signbit"),
    _exact("isnan", 1, FLOATING, "basic.isnan", "bool", complex_math="complex_basic.isnan", c="isnan"),
    _exact("isinf", 1, FLOATING, "basic.isinf", "bool", complex_math="complex_basic.isinf", c="isinf"),
    _exact("isfinite", 1, FLOATING, "basic.isfinite", "bool", complex_math="complex_basic.isfinite", c="isfinite"),
    _exact("spacing", 1, FLOAT, "pieces.spacing", c="spacing", python="spacing", typing="neighbours"),
    _function("frexp_mantissa", "pieces.frexp_mantissa"),
    _function("modf_fraction", "pieces.modf_fraction"),  # modf's other result is trunc
    _function("logb", "pieces.logb", "logb[f]"),
    Op("frexp_exponent", 1, FLOAT, "int32", primitive=False, math="pieces.frexp_exponent"),
    Op("ilogb", 1, FLOAT, "int32", primitive=False, math="pieces.ilogb", c="ilogb[f]"),
    Op("conj", 1, COMPLEX, primitive=False, reference="conj", complex_math="complex_basic.conj"),
    _complex("proj", "complex_basic.proj"),
    _complex("abs_complex", "complex_elementary.abs_complex", "real"),
    _complex("arg", "complex_elementary.arg", "real"),
    _complex("norm", "complex_basic.norm", "real"),
    _complex("sqrt_complex", "complex_elementary.sqrt_complex"),
    _complex("rint_complex", "complex_basic.rint_complex"),
)  # fmt: skip
SYMBOLS = {row.symbol: row.name for row in TABLE.values() if row.symbol}
COMPARISONS = {
    row.symbol: row.name for row in TABLE.values() if row.symbol and row.result == "bool" and row.accepts != BOOLEAN
}


def result_type(op: Op, operands: tuple[DType, ...], target: DType | None = None) -> DType:
    """The dtype of an application; `target` is required exactly for ops whose rule is "target"."""
    match op.result:
        case "same":
            return operands[0]
        case "bool":
            return BOOL
        case "tail":
            return operands[1]
        case "target":
            assert target is not None, f"{op.name} needs a target dtype"
            return target
        case "real":
            return real_type(operands[0])
        case "complex":
            return complex_type(operands[0])
        case "int32":
            return signed_of(32)
        case "signed":
            return signed_of(operands[0].bits)
