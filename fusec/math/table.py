"""The definition of every op that is not primitive, as functions of the loops IR."""

from __future__ import annotations

from functools import cache

from fusec.base.dtypes import BOOL, COMPLEX, DType, real_type
from fusec.ir.loops import Function
from fusec.math import (
    angles,
    basic,
    bessel,
    complex_basic,
    complex_elementary,
    division,
    error,
    error_inverse,
    exponential,
    gamma,
    hyperbolic,
    integers,
    logarithm,
    pieces,
    power,
)
from fusec.math import trigonometric as circular
from fusec.math import trigonometric_inverse as arcs
from fusec.math.body import Formula, write
from fusec.math.value import Value, make_complex

REAL: dict[str, Formula] = {
    # exact
    "minimum": basic.minimum,
    "maximum": basic.maximum,
    "fmin": basic.fmin,
    "fmax": basic.fmax,
    "sign": basic.sign,
    "signbit": basic.signbit,
    "isnan": basic.isnan,
    "isinf": basic.isinf,
    "isfinite": basic.isfinite,
    "copysign": basic.copysign,
    "round": basic.round_,
    "nextafter": basic.nextafter,
    "ldexp": basic.ldexp,
    "clip": basic.clip,
    "square": basic.square,
    "reciprocal": basic.reciprocal,
    "heaviside": basic.heaviside,
    "frexp_mantissa": pieces.frexp_mantissa,
    "frexp_exponent": pieces.frexp_exponent,
    "modf_fraction": pieces.modf_fraction,
    "ilogb": pieces.ilogb,
    "logb": pieces.logb,
    "spacing": pieces.spacing,
    "fmod": division.fmod,
    "remainder": division.remainder,
    "floor_divide": division.floor_divide,
    "ieee_remainder": division.ieee_remainder,
    # exponentials and logarithms
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "exp10": exponential.exp10,
    "expm1": exponential.expm1,
    "sigmoid": exponential.sigmoid,
    "log": logarithm.log,
    "log1p": logarithm.log1p,
    "log2": logarithm.log2,
    "log10": logarithm.log10,
    "logaddexp": logarithm.logaddexp,
    "logaddexp2": logarithm.logaddexp2,
    "softplus": logarithm.softplus,
    # powers
    "pow": power.pow_,
    "rsqrt": power.rsqrt,
    "cbrt": power.cbrt,
    "hypot": power.hypot,
    # circular and hyperbolic
    "sin": circular.sin,
    "cos": circular.cos,
    "tan": circular.tan,
    "deg2rad": angles.deg2rad,
    "rad2deg": angles.rad2deg,
    "sinpi": circular.sinpi,
    "cospi": circular.cospi,
    "sinc": circular.sinc,
    "asin": arcs.asin,
    "acos": arcs.acos,
    "atan": arcs.atan,
    "atan2": arcs.atan2,
    "sinh": hyperbolic.sinh,
    "cosh": hyperbolic.cosh,
    "tanh": hyperbolic.tanh,
    "asinh": hyperbolic.asinh,
    "acosh": hyperbolic.acosh,
    "atanh": hyperbolic.atanh,
    # error function
    "erf": error.erf,
    "erfc": error.erfc,
    "erfcx": error.erfcx,
    "normcdf": error.normcdf,
    "erfinv": error_inverse.erfinv,
    "erfcinv": error_inverse.erfcinv,
    "normcdfinv": error_inverse.normcdfinv,
    # Bessel functions
    "i0": bessel.i0,
    "i1": bessel.i1,
    "j0": bessel.j0,
    "j1": bessel.j1,
    "y0": bessel.y0,
    "y1": bessel.y1,
    # gamma function
    "gamma": gamma.gamma,
    "lgamma": gamma.lgamma,
}

INTEGER_FORMULAS: dict[str, Formula] = {
    "gcd": integers.gcd,
    "lcm": integers.lcm,
    "comb": integers.comb,
    "position": integers.position,
    "pow": integers.pow_,
}

COMPLEX_FORMULAS: dict[str, Formula] = {
    "add": complex_basic.add,
    "subtract": complex_basic.subtract,
    "multiply": complex_basic.multiply,
    "divide": complex_basic.divide,
    "negative": complex_basic.negative,
    "equal": complex_basic.equal,
    "not_equal": complex_basic.not_equal,
    "conj": complex_basic.conj,
    "norm": complex_basic.norm,
    "square": complex_basic.square,
    "reciprocal": complex_basic.reciprocal,
    "rint_complex": complex_basic.rint_complex,
    "sign": complex_basic.sign,
    "proj": complex_basic.proj,
    "isnan": complex_basic.isnan,
    "isinf": complex_basic.isinf,
    "isfinite": complex_basic.isfinite,
    "arg": complex_elementary.arg,
    "abs_complex": complex_elementary.abs_complex,
    "sqrt_complex": complex_elementary.sqrt_complex,
    "exp": complex_elementary.exp,
    "expm1": complex_elementary.expm1,
    "log": complex_elementary.log,
    "log1p": complex_elementary.log1p,
    "log2": complex_elementary.log2,
    "log10": complex_elementary.log10,
    "pow": complex_elementary.pow_,
    "sin": complex_elementary.sin,
    "cos": complex_elementary.cos,
    "tan": complex_elementary.tan,
    "sinh": complex_elementary.sinh,
    "cosh": complex_elementary.cosh,
    "tanh": complex_elementary.tanh,
    "asin": complex_elementary.asin,
    "acos": complex_elementary.acos,
    "atan": complex_elementary.atan,
    "asinh": complex_elementary.asinh,
    "acosh": complex_elementary.acosh,
    "atanh": complex_elementary.atanh,
}


@cache
def define(op: str, types: tuple[DType, ...]) -> Function:
    """The function that computes `op` of operands of these dtypes, e.g. fusec_exp_float32.

    Complex operands: also the arithmetic that is primitive for real ones. A conversion from complex is named by
    ("convert", (source, target)). Functions that it calls: `callees`.
    """
    if op == "convert":
        return _conversion(*types)
    formula = _formulas(op, types[0])[op]
    others = "".join(f"_{dtype}" for dtype in types[1:] if dtype != types[0])
    return write(f"fusec_{op}_{types[0]}{others}", types, formula)


def _formulas(op: str, first: DType) -> dict[str, Formula]:
    if first in COMPLEX:
        return COMPLEX_FORMULAS
    return INTEGER_FORMULAS if first.is_integer and op in INTEGER_FORMULAS else REAL


def _conversion(source: DType, target: DType) -> Function:
    part = real_type(target)

    def formula(x: Value) -> Value:
        if target == BOOL:
            return x.real.ne(0.0) | x.imag.ne(0.0)
        return make_complex(x.real.to(part), x.imag.to(part))

    return write(f"fusec_convert_{source}_{target}", (source,), formula)
