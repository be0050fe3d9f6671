"""Types of the kernel language as fuzzers know them, and what can be written of each kind."""

from __future__ import annotations

from typing import Literal

Kind = Literal["int", "float", "complex"]

INTS = (
    "int", "int", "unsigned", "long long", "unsigned long long", "short", "unsigned short", "signed char", "bool",
    "unsigned char", "int8", "uint16", "int64", "size_t", "char", "long", "uint32_t",
)  # fmt: skip
FLOATS = ("float", "float", "float", "double", "double", "float16", "bfloat16")
COMPLEX = ("complex<float>", "complex<double>")
TYPES: dict[Kind, tuple[str, ...]] = {"int": INTS, "float": FLOATS, "complex": COMPLEX}

INT_LITERALS = (
    "0", "1", "2", "3", "7", "8", "-1", "255", "1u", "3u", "31", "32", "63", "64", "100", "0x7f", "0xffffffffu", "1ll",
    "5ull", "2147483647", "-2147483648", "4294967296", "9223372036854775807", "true", "false", "'a'", "010", "0b101",
)  # fmt: skip
FLOAT_LITERALS = (
    "0.0f", "-0.0f", "1.0f", "0.5f", "-2.5f", "3.0", "0.1", "0.1f", "1e10f", "1e-40f", "1e300", "1e-310", "2.5e-3",
    "7.f",
    "16777216.0f", "1e39", "0x1p-3f",
)  # fmt: skip

# The sign of nan is not promised, so that what asks for a sign asks for that of a number.
INT_FUNCTIONS = (
    "abs({i})", "min({i}, {i})", "max({i}, {i})", "__popc({i})", "__clz({i})", "__ffs({i})", "__brev({i})",
    "__popcll({i})", "gcd({i}, {i})", "floor_divide({i}, {i})", "popcount({i})", "clz({i})", "square({i})", "sign({i})",
    "clip({i}, {i}, {i})", "minimum({i}, {i})", "__mulhi({i}, {i})", "__umulhi({i}, {i})", "__mul64hi({i}, {i})",
    "__float2int_rn({f})", "__float2uint_rz({f})", "__double2ll_rd({f})", "isnan({f})", "isinf({f})",
    "signbit(fmin({f}, 4.0f))",
    "isfinite({f})", "lround({f})", "llrint({f})", "lcm({i}, {i})", "(int)sizeof({t})", "ilogb({f})",
)  # fmt: skip
CHEAP = (
    "fabs({f})", "sqrt({f})", "sqrtf({f})", "floor({f})", "ceil({f})", "trunc({f})", "rint({f})", "round({f})",
    "fmin({f}, {f})",
    "fmax({f}, {f})", "min({f}, {f})", "max({f}, {f})", "copysign({f}, fmin({f}, 4.0f))", "fma({f}, {f}, {f})",
    "fmaf({f}, {f}, {f})",
    "fabsf({f})", "fdim({f}, {f})", "square({f})", "sign({f})", "minimum({f}, {f})", "maximum({f}, {f})",
    "clip({f}, {f}, {f})", "reciprocal({f})", "heaviside({f}, {f})", "deg2rad({f})", "floor_divide({f}, {f})",
    "ldexp({f}, {i})", "nextafter({f}, {f})", "fmod({f}, {f})", "__fmaf_rn({f}, {f}, {f})", "__fdividef({f}, {f})",
    "__int_as_float({i})", "saturatef({f})", "logb({f})", "spacing({f})", "__int2float_rn({i})", "remainder({f}, {f})",
)  # fmt: skip
DEAR = (
    "exp({f})", "expf({f})", "log({f})", "sin({f})", "cosf({f})", "tan({f})", "pow({f}, {f})", "powf({f}, {f})",
    "tanh({f})",
    "atan2({f}, {f})", "hypot({f}, {f})", "erf({f})", "cbrt({f})", "rsqrt({f})", "asin({f})", "sinh({f})", "expm1({f})",
    "log1p({f})", "tgamma({f})", "lgamma({f})", "sigmoid({f})", "softplus({f})", "logaddexp({f}, {f})", "sinpi({f})",
    "j0({f})", "i0({f})", "normcdf({f})", "erfcx({f})", "exp2({f})", "log10({f})", "acosh({f})", "atanh({f})",
    "sinc({f})",
)  # fmt: skip
PARTS = ("real({c})", "imag({c})", "({c}).real()", "({c}).imag()", "norm({c})")
COMPLEX_FUNCTIONS = ("conj({c})", "proj({c})", "{T}({f}, {f})", "{T}({f}, {f})", "{T}({f})")
COMPLEX_DEAR = ("exp({c})", "log({c})", "sqrt({c})", "sin({c})", "tanh({c})", "pow({c}, {c})", "acos({c})")


def kind_of(dtype_kind: str) -> Kind:
    """The kind of what `fusec.base.dtypes` calls bool, signed, unsigned, float or complex."""
    return "int" if dtype_kind in ("bool", "signed", "unsigned") else "complex" if dtype_kind == "complex" else "float"
