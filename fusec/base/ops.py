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
    """One row: an op's operands and result, its definition, and its name in each language."""

    name: str
    arity: int
    accepts: Kinds  # the dtype kinds of the operands
    # "same" as the operands; "bool"; "tail": as the second operand (where); "target": given by the node (convert,
    # bitcast); "real": the part type of a complex operand; "complex": its complex type; "int32"; "signed": the signed
    # integer of the same width
    result: Result = "same"
    # The NumPy function that gives the exact result, as tests compare, and with which a primitive op is interpreted
    # unless `fusec.ir.arithmetic` has a rule of its own for operands that NumPy leaves open; "" where there is none.
    reference: str = ""
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
    def primitive(self) -> bool:
        """Whether backends spell it and the interpreter evaluates it, for operands other than complex ones."""
        return not (self.math or self.integer_math or (self.complex_math and self.accepts == COMPLEX))

    @property
    def c_names(self) -> dict[str, bool]:
        """The names in kernel strings, each with a flag for names that are for float32 only."""
        names: dict[str, bool] = {}
        for name in self.c.split():
            plain = name.removesuffix("[f]")
            names |= {plain: False} | ({f"{plain}f": True} if plain != name else {})
        return names | ({self.cuda: True} if self.cuda else {})


def _function(name: str, module: str, *, also: str = "", is_complex: bool = False, cuda: str = "") -> Op:
    """A function of one float that has its own name in `fusec.math`, C and Python. also: further names in Python."""
    return Op(
        name, 1, FLOATING if is_complex else FLOAT, math=f"{module}.{name}",
        complex_math=f"complex_elementary.{name}" if is_complex else "",
        c=f"{name}[f]", python=f"{name} {also}".strip(), cuda=cuda,
    )  # fmt: skip


def _table(*rows: Op) -> dict[str, Op]:
    table = {row.name: row for row in rows}
    assert len(table) == len(rows), "two rows of the op table share a name"
    return table


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
    _function("exp", "exponential", is_complex=True, cuda="__expf"),
    _function("expm1", "exponential", is_complex=True),
    _function("log", "logarithm", is_complex=True, cuda="__logf"),
    _function("log1p", "logarithm", is_complex=True),
    _function("log2", "logarithm", is_complex=True, cuda="__log2f"),
    _function("log10", "logarithm", is_complex=True, cuda="__log10f"),
    _function("sin", "trigonometric", is_complex=True, cuda="__sinf"),
    _function("cos", "trigonometric", is_complex=True, cuda="__cosf"),
    _function("tan", "trigonometric", is_complex=True, cuda="__tanf"),
    _function("sinh", "hyperbolic", is_complex=True),
    _function("cosh", "hyperbolic", is_complex=True),
    _function("tanh", "hyperbolic", is_complex=True),
    _function("asin", "trigonometric_inverse", also="arcsin", is_complex=True),
    _function("acos", "trigonometric_inverse", also="arccos", is_complex=True),
    _function("atan", "trigonometric_inverse", also="arctan", is_complex=True),
    _function("asinh", "hyperbolic", also="arcsinh", is_complex=True),
    _function("acosh", "hyperbolic", also="arccosh", is_complex=True),
    _function("atanh", "hyperbolic", also="arctanh", is_complex=True),
    _function("exp2", "exponential"),
    _function("exp10", "exponential", cuda="__exp10f"),
    _function("sinpi", "trigonometric"),
    _function("cospi", "trigonometric"),
    Op("sinc", 1, FLOAT, math="trigonometric.sinc", c="sinc", python="sinc"),
    Op("deg2rad", 1, FLOAT, math="angles.deg2rad", c="deg2rad", python="deg2rad radians"),
    Op("rad2deg", 1, FLOAT, math="angles.rad2deg", c="rad2deg", python="rad2deg degrees"),
    _function("cbrt", "power"),
    _function("rsqrt", "power"),
    _function("erf", "error"),
    _function("erfc", "error"),
    _function("erfcx", "error"),
    _function("erfinv", "error_inverse"),
    _function("erfcinv", "error_inverse"),
    _function("lgamma", "gamma", also="gammaln loggamma"),
    Op("gamma", 1, FLOAT, math="gamma.gamma", c="tgamma[f] gamma", python="gamma"),
    Op("sigmoid", 1, FLOAT, math="exponential.sigmoid", c="sigmoid", python="sigmoid expit"),
    Op("softplus", 1, FLOAT, math="logarithm.softplus", c="softplus", python="softplus"),
    Op("i0", 1, FLOAT, math="bessel.i0", c="cyl_bessel_i0[f] i0", python="i0"),
    Op("i1", 1, FLOAT, math="bessel.i1", c="cyl_bessel_i1[f] i1", python="i1"),
    _function("j0", "bessel"),
    _function("j1", "bessel"),
    _function("y0", "bessel"),
    _function("y1", "bessel"),
    _function("normcdf", "error", also="ndtr"),
    _function("normcdfinv", "error_inverse", also="ndtri"),
    Op("atan2", 2, FLOAT, math="trigonometric_inverse.atan2", c="atan2[f]", python="atan2 arctan2"),
    Op("hypot", 2, FLOAT, math="power.hypot", c="hypot[f]", python="hypot"),
    Op("logaddexp", 2, FLOAT, math="logarithm.logaddexp", c="logaddexp", python="logaddexp"),
    Op("logaddexp2", 2, FLOAT, math="logarithm.logaddexp2", c="logaddexp2", python="logaddexp2"),
    Op("copysign", 2, FLOAT, reference="copysign", math="basic.copysign", c="copysign[f]", python="copysign"),
    Op(
        "nextafter", 2, FLOAT, reference="nextafter", math="basic.nextafter", c="nextafter[f]", python="nextafter",
        typing="neighbours",
    ),
    Op("heaviside", 2, FLOAT, reference="heaviside", math="basic.heaviside", c="heaviside", python="heaviside"),
    Op("fmod", 2, FLOAT, reference="fmod", math="division.fmod", c="fmod[f]"),
    Op("ldexp", 2, FLOAT, second=INTEGER, math="basic.ldexp"),
    Op(
        "pow", 2, NUMERIC, math="power.pow_", integer_math="integers.pow_", complex_math="complex_elementary.pow_",
        c="pow[f]", cuda="__powf",
    ),
    Op("gcd", 2, INTEGER, reference="gcd", integer_math="integers.gcd", c="gcd", python="gcd", typing="common"),
    Op("lcm", 2, INTEGER, reference="lcm", integer_math="integers.lcm", c="lcm", python="lcm", typing="common"),
    Op("position", 2, INTEGER, integer_math="integers.position"),  # of an item, if there are so many
    Op("comb", 2, INTEGER, integer_math="integers.comb"),  # binomial coefficients
    Op("ieee_remainder", 2, FLOAT, math="division.ieee_remainder", c="remainder[f]"),
    Op("floor_divide", 2, REAL, reference="floor_divide", math="division.floor_divide"),
    Op("remainder", 2, REAL, reference="remainder", math="division.remainder"),
    Op("minimum", 2, REAL, reference="minimum", math="basic.minimum", c="minimum", typing="common"),
    Op("maximum", 2, REAL, reference="maximum", math="basic.maximum", c="maximum", typing="common"),
    Op("fmin", 2, REAL, reference="fmin", math="basic.fmin", c="fmin[f]"),
    Op("fmax", 2, REAL, reference="fmax", math="basic.fmax", c="fmax[f]"),
    Op("clip", 3, REAL, reference="clip", math="basic.clip", c="clip", typing="common"),
    Op(
        "square", 1, NUMERIC, reference="square", math="basic.square", complex_math="complex_basic.square",
        c="square", typing="common",
    ),
    Op(
        "sign", 1, NUMERIC, reference="sign", math="basic.sign", complex_math="complex_basic.sign", c="sign",
        typing="common",
    ),
    Op(
        "reciprocal", 1, FLOATING, reference="reciprocal", math="basic.reciprocal",
        complex_math="complex_basic.reciprocal", c="reciprocal",
    ),
    Op("round", 1, FLOAT, math="basic.round_", c="round[f]"),  # C's: half away from zero
    Op("signbit", 1, FLOAT, "bool", reference="signbit", math="basic.signbit", c="signbit", python="signbit"),
    Op(
        "isnan", 1, FLOATING, "bool", reference="isnan", math="basic.isnan", complex_math="complex_basic.isnan",
        c="isnan",
    ),
    Op(
        "isinf", 1, FLOATING, "bool", reference="isinf", math="basic.isinf", complex_math="complex_basic.isinf",
        c="isinf",
    ),
    Op(
        "isfinite", 1, FLOATING, "bool", reference="isfinite", math="basic.isfinite",
        complex_math="complex_basic.isfinite", c="isfinite",
    ),
    Op(
        "spacing", 1, FLOAT, reference="spacing", math="pieces.spacing", c="spacing", python="spacing",
        typing="neighbours",
    ),
    Op("frexp_mantissa", 1, FLOAT, math="pieces.frexp_mantissa"),
    Op("modf_fraction", 1, FLOAT, math="pieces.modf_fraction"),  # modf's other result is trunc
    Op("logb", 1, FLOAT, math="pieces.logb", c="logb[f]"),
    Op("frexp_exponent", 1, FLOAT, "int32", math="pieces.frexp_exponent"),
    Op("ilogb", 1, FLOAT, "int32", math="pieces.ilogb", c="ilogb[f]"),
    Op("conj", 1, COMPLEX, reference="conj", complex_math="complex_basic.conj"),
    Op("proj", 1, COMPLEX, complex_math="complex_basic.proj"),
    Op("abs_complex", 1, COMPLEX, "real", complex_math="complex_elementary.abs_complex"),
    Op("arg", 1, COMPLEX, "real", complex_math="complex_elementary.arg"),
    Op("norm", 1, COMPLEX, "real", complex_math="complex_basic.norm"),
    Op("sqrt_complex", 1, COMPLEX, complex_math="complex_elementary.sqrt_complex"),
    Op("rint_complex", 1, COMPLEX, complex_math="complex_basic.rint_complex"),
)  # fmt: skip
SYMBOLS = {row.symbol: row.name for row in TABLE.values() if row.symbol}
COMPARISONS = {
    row.symbol: row.name for row in TABLE.values() if row.symbol and row.result == "bool" and row.accepts != BOOLEAN
}
NEGATED = {
    "less": "greater_equal",
    "less_equal": "greater",
    "greater": "less_equal",
    "greater_equal": "less",
    "equal": "not_equal",
    "not_equal": "equal",
}
"""What holds where a comparison does not, unless an operand is nan."""
MIRRORED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
"""The order of the same operands the other way round."""


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
