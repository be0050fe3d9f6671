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
    """One row: `accepts` are the dtype kinds of the operands, `result` how the result dtype follows from them.

    result: "same" as the operands; "bool"; "tail": as the second operand (where); "target": given by the node
    (convert, bitcast); "real": the part type of a complex operand; "complex": its complex type; "int32"; "signed":
    the signed integer of the same width.
    primitive: True where backends spell it, False where `fusec.math` defines it.
    reference: name of the NumPy function that defines the exact result, or "" where the IR definition is the only one.
    commutes: operands may be exchanged without changing a bit (nan payloads aside).
    second: kinds of the second operand where it need not have the dtype of the first.
    """

    name: str
    arity: int
    accepts: Kinds
    result: Result = "same"
    primitive: bool = True
    reference: str = ""
    commutes: bool = False
    second: Kinds | None = None


def _table(*rows: Op) -> dict[str, Op]:
    table = {row.name: row for row in rows}
    assert len(table) == len(rows), "two rows of the op table share a name"
    return table


def _defined(names: str, arity: int, accepts: Kinds = FLOAT, result: Result = "same") -> list[Op]:
    return [Op(name, arity, accepts, result, primitive=False) for name in names.split()]


def _exact(names: str, arity: int, accepts: Kinds, result: Result = "same") -> list[Op]:
    """Defined ops whose results are NumPy's, who has them under the same name."""
    return [Op(name, arity, accepts, result, primitive=False, reference=name) for name in names.split()]


TABLE = _table(
    # --- primitive: arithmetic -------------------------------------------------------------------------------
    Op("add", 2, NUMERIC, reference="add", commutes=True),
    Op("subtract", 2, NUMERIC, reference="subtract"),
    Op("multiply", 2, NUMERIC, reference="multiply", commutes=True),
    Op("divide", 2, FLOATING, reference="divide"),
    Op("quotient", 2, INTEGER),  # C's integer `/`: toward zero, made total
    Op("modulo", 2, INTEGER, reference="fmod"),  # C's integer `%`: sign of the dividend, made total
    Op("negative", 1, NUMERIC, reference="negative"),
    Op("absolute", 1, REAL, reference="absolute"),
    Op("fma", 3, FLOAT),  # one rounding
    Op("sqrt", 1, FLOAT, reference="sqrt"),
    Op("floor", 1, FLOAT, reference="floor"),
    Op("ceil", 1, FLOAT, reference="ceil"),
    Op("trunc", 1, FLOAT, reference="trunc"),
    Op("rint", 1, FLOAT, reference="rint"),  # half to even
    Op("multiply_high", 2, INTEGER, commutes=True),  # upper half of the double-width product
    # --- primitive: bits -------------------------------------------------------------------------------------
    Op("bitwise_and", 2, BITS, reference="bitwise_and", commutes=True),
    Op("bitwise_or", 2, BITS, reference="bitwise_or", commutes=True),
    Op("bitwise_xor", 2, BITS, reference="bitwise_xor", commutes=True),
    Op("bitwise_invert", 1, INTEGER, reference="invert"),
    Op("left_shift", 2, INTEGER, reference="left_shift"),
    Op("right_shift", 2, INTEGER, reference="right_shift"),
    Op("count_ones", 1, INTEGER, "int32"),
    Op("count_leading_zeros", 1, INTEGER, "int32"),
    # --- primitive: comparison and choice --------------------------------------------------------------------
    Op("equal", 2, ANY, "bool", reference="equal", commutes=True),
    Op("not_equal", 2, ANY, "bool", reference="not_equal", commutes=True),
    Op("less", 2, ORDERED, "bool", reference="less"),
    Op("less_equal", 2, ORDERED, "bool", reference="less_equal"),
    Op("greater", 2, ORDERED, "bool", reference="greater"),
    Op("greater_equal", 2, ORDERED, "bool", reference="greater_equal"),
    Op("logical_and", 2, BOOLEAN, "bool", reference="logical_and"),  # the second operand is evaluated on demand
    Op("logical_or", 2, BOOLEAN, "bool", reference="logical_or"),  # likewise
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
    *_defined("exp expm1 log log1p log2 log10", 1, FLOATING),
    *_defined("sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh", 1, FLOATING),
    *_defined("exp2 exp10 sinpi cospi sinc deg2rad rad2deg cbrt rsqrt erf erfc erfcx erfinv erfcinv", 1),
    *_defined("lgamma gamma sigmoid softplus i0 i1 j0 j1 y0 y1 normcdf normcdfinv", 1),
    *_defined("atan2 hypot logaddexp logaddexp2", 2),
    *_exact("copysign nextafter heaviside fmod", 2, FLOAT),
    Op("ldexp", 2, FLOAT, primitive=False, second=INTEGER),
    *_defined("pow", 2, NUMERIC),
    *_exact("gcd lcm", 2, INTEGER),
    *_defined("position comb", 2, INTEGER),  # of an item in a sequence of a length; binomial coefficients
    *_defined("ieee_remainder", 2),
    *_exact("floor_divide remainder minimum maximum fmin fmax", 2, REAL),
    *_exact("clip", 3, REAL),
    *_exact("square sign", 1, NUMERIC),
    *_exact("reciprocal", 1, FLOATING),
    *_defined("round", 1),  # C's round: half away from zero
    *_exact("signbit", 1, FLOAT, "bool"),
    *_exact("isnan isinf isfinite", 1, FLOATING, "bool"),
    *_exact("spacing", 1, FLOAT),
    *_defined("frexp_mantissa modf_fraction logb", 1),  # modf's other result is trunc
    *_defined("frexp_exponent ilogb", 1, FLOAT, "int32"),
    *_exact("conj", 1, COMPLEX),
    *_defined("proj", 1, COMPLEX),
    *_defined("abs_complex arg norm", 1, COMPLEX, "real"),
    *_defined("sqrt_complex rint_complex", 1, COMPLEX),
)


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
