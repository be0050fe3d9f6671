"""The functions that the Python subset knows, by the names of NumPy, the Array API, math, SciPy and Python itself."""

from __future__ import annotations

import math
from collections.abc import Callable

from fusec.base import ops
from fusec.base.dtypes import BOOL, FLOAT64, INT32, STORAGE_FLOATS, UINT8, DType, complex_type, real_type
from fusec.base.records import dataclass
from fusec.errors.language import ArgumentCount
from fusec.errors.python import NoDtype
from fusec.frontends.lowering import CallSite
from fusec.frontends.python import arithmetic
from fusec.frontends.python import types as t
from fusec.frontends.python.values import Scalar, adapt, converted, literal
from fusec.ir.expr import Expr, apply, const

Make = Callable[[CallSite, list[Scalar]], Scalar]


@dataclass(frozen=True)
class Known:
    """A function of at least `least` and at most `most` arguments."""

    least: int
    most: int
    make: Make

    def call(self, site: CallSite, args: list[Scalar]) -> Scalar:
        """The value of a call. Raises ArgumentCount and the errors of the arguments."""
        if not self.least <= len(args) <= self.most:
            expected = str(self.least) if self.least == self.most else f"{self.least} to {self.most}"
            cure = f"pass {expected}: a kernel computes one element, without axes and outputs"
            raise ArgumentCount(site.name, expected, len(args), cure).at(site.span)
        return self.make(site, args)


def shared(site: CallSite, args: list[Scalar]) -> tuple[t.Kind, list[Scalar]]:
    """The arguments in their common NumPy type. Raises NoDtype."""
    kind = _promoted(site, [arg.type for arg in args])
    return kind, [adapt(arg, kind, site.span) for arg in args]


def _parts(args: list[Scalar]) -> list[Expr]:
    return [arg.read() for arg in args]


def _floats(op: str, complex_op: str = "") -> Known:
    """A function of floats; integers become floats wide enough."""
    row = ops.TABLE[op]
    answer = BOOL if row.result == "bool" else None

    def make(site: CallSite, args: list[Scalar]) -> Scalar:
        kind = _floating(site, args)
        parts = _parts([adapt(arg, kind, site.span) for arg in args])
        if not t.is_complex(kind):
            return Scalar(_answer(kind, answer), apply(op, *parts))
        if not complex_op and "complex" not in row.accepts:
            raise site.refuse("complex numbers", "take a part, x.real or x.imag, or abs(x)")
        return Scalar(_answer(kind, answer), apply(complex_op or op, *parts))

    return Known(row.arity, row.arity, make)


def _neighbour(op: str) -> Known:
    """A function that asks for neighbours: those of a narrow float are narrow floats."""
    plain = _floats(op)

    def make(site: CallSite, args: list[Scalar]) -> Scalar:
        kind = _floating(site, args)
        if kind not in STORAGE_FLOATS:
            return plain.make(site, args)
        parts = _parts([adapt(arg, kind, site.span) for arg in args])
        found = apply(op, *(converted(part, t.storage(kind)) for part in parts))
        return Scalar(kind, converted(found, t.carrier(kind)))

    return Known(plain.least, plain.most, make)


def _floating(site: CallSite, args: list[Scalar]) -> t.Kind:
    """The float that NumPy computes a function in: wide enough for every argument by itself.

    Python's numbers first adapt to the dtype that the others have together.
    """
    met = _promoted(site, [arg.type for arg in args if isinstance(arg.type, DType)] or [args[0].type])
    kinds = [arg.type if isinstance(arg.type, DType) else _promoted(site, [met, arg.type]) for arg in args]
    return _promoted(site, [t.floating(kind) for kind in kinds])


def _promoted(site: CallSite, kinds: list[t.Kind]) -> t.Kind:
    """The type that NumPy gives to several. Raises NoDtype."""
    kind = kinds[0]
    for each in kinds[1:]:
        found = t.promote(kind, each)
        if found is None:
            types = " and ".join(map(str, kinds))
            raise NoDtype(f"'{site.name}'", types, "convert one of them first").at(site.span)
        kind = found
    return kind


def _answer(kind: t.Kind, answer: DType | None) -> t.Kind:
    """The type of a result: that of the arguments, or a bool of their sort."""
    if answer is None:
        return kind
    return t.PY_BOOL if isinstance(kind, t.PythonType) else answer


def _whole(op: str, complex_op: str = "") -> Known:
    """A rounding, which leaves integers as they are."""

    def make(site: CallSite, args: list[Scalar]) -> Scalar:
        kind = args[0].type
        if t.is_integer(kind) or t.is_bool(kind):
            return args[0]
        if t.is_complex(kind) and not complex_op:
            raise site.refuse("complex numbers", "round the parts, x.real and x.imag")
        return Scalar(kind, apply(complex_op if t.is_complex(kind) else op, args[0].read()))

    return Known(1, 1, make)


def _to_int(op: str) -> Known:
    """Python's rounding functions, whose results are Python integers."""

    def make(site: CallSite, args: list[Scalar]) -> Scalar:
        whole = _whole(op).make(site, args)
        return python_int(whole)

    return Known(1, 1, make)


def python_int(value: Scalar) -> Scalar:
    """``int(x)``: truncated, saturated at 64 bits."""
    number = value.literal
    if isinstance(number, int) or (isinstance(number, float) and math.isfinite(number)):
        return literal(int(number))
    return Scalar(t.PY_INT, converted(value.read(), t.PY_INT.dtype))


def _extreme(op: str, bools: str) -> Known:
    """The lesser or greater of two numbers of one type; bools: the op for bools."""

    def make(site: CallSite, args: list[Scalar]) -> Scalar:
        kind, args = shared(site, args)
        if t.is_complex(kind):
            raise site.refuse("complex numbers", "complex numbers have no order; take abs(x) or x.real")
        return Scalar(kind, apply(bools if t.is_bool(kind) else op, *_parts(args)))

    return Known(2, 2, make)


def _integers(op: str) -> Known:
    """A function of integers of one type."""

    def make(site: CallSite, args: list[Scalar]) -> Scalar:
        kind, args = shared(site, args)
        if not t.is_integer(kind):
            raise site.refuse(str(kind), "it is for integers")
        return Scalar(kind, apply(op, *_parts(args)))

    return Known(2, 2, make)


def _operator(op: str) -> Known:
    return Known(2, 2, lambda site, args: arithmetic.binary(op, args[0], args[1], site.span))


def _power(site: CallSite, args: list[Scalar]) -> Scalar:
    """NumPy's function, which does not look at the exponent of a bool as the operator does."""
    if args[0].type == BOOL and isinstance(args[1].type, t.PythonType):
        args = [adapt(args[0], _promoted(site, [BOOL, args[1].type]), site.span), args[1]]
    return arithmetic.binary("**", args[0], args[1], site.span)


def _prefix(op: str) -> Known:
    return Known(1, 1, lambda site, args: arithmetic.prefix(op, args[0], site.span))


def _test(op: str, combine: str = "logical_or") -> Known:
    """Isnan and its relatives: False, or True for isfinite, of what is no float."""

    def make(_: CallSite, args: list[Scalar]) -> Scalar:
        kind = args[0].type
        answer = _answer(kind, BOOL)
        if t.is_integer(kind) or t.is_bool(kind):
            return Scalar(answer, const(op == "isfinite", BOOL))
        value = args[0].read()
        if not t.is_complex(kind):
            return Scalar(answer, apply(op, value))
        return Scalar(answer, apply(combine, apply(op, apply("real", value)), apply(op, apply("imag", value))))

    return Known(1, 1, make)


def _absolute(site: CallSite, args: list[Scalar]) -> Scalar:
    kind = args[0].type
    if args[0].literal is not None:
        return literal(abs(args[0].literal))
    if kind == t.PY_BOOL:
        return adapt(args[0], t.PY_INT, site.span)
    if kind == BOOL:
        return args[0]
    if t.is_complex(kind):
        return Scalar(part_of(kind), apply("abs_complex", args[0].read()))
    return Scalar(kind, apply("absolute", args[0].read()))


def part_of(kind: t.Kind) -> t.Kind:
    """The type of a complex number's parts; other numbers are their own real part."""
    if isinstance(kind, t.PythonType):
        return t.PY_FLOAT if kind == t.PY_COMPLEX else kind
    return real_type(kind)


def part(which: str, value: Scalar) -> Scalar:
    """``x.real``, ``x.imag`` and the conjugate."""
    kind = value.type
    if t.is_complex(kind):
        return Scalar(kind if which == "conj" else part_of(kind), apply(which, value.read()))
    return value if which != "imag" else Scalar(kind, const(0, t.carrier(kind)))


def _angle(site: CallSite, args: list[Scalar]) -> Scalar:
    kind = t.floating(_promoted(site, [args[0].type, t.PY_INT]))  # NumPy's arctan2(imag, real), whose imag may be 0
    value = converted(adapt(args[0], kind, site.span).read(), complex_type(t.carrier(kind)))
    return Scalar(part_of(kind), apply("arg", value))


def _sign(site: CallSite, args: list[Scalar]) -> Scalar:
    if t.is_bool(args[0].type):
        raise site.refuse("bools", "a bool has no sign; convert to an integer first")
    return Scalar(args[0].type, apply("sign", args[0].read()))


def _where(site: CallSite, args: list[Scalar]) -> Scalar:
    return arithmetic.choose(arithmetic.condition(args[0]), args[1], args[2], site.span)


def _clip(site: CallSite, args: list[Scalar]) -> Scalar:
    _, args = shared(site, args)
    return EXTREMES["minimum"].make(site, [EXTREMES["maximum"].make(site, args[:2]), args[2]])


def _least(op: str) -> Known:
    """Python's min and max: the first of those that none goes before."""

    def make(site: CallSite, args: list[Scalar]) -> Scalar:
        found = args[0]
        for arg in args[1:]:
            found = arithmetic.choose(arithmetic.binary(op, arg, found, site.span).read(), arg, found, site.span)
        return found

    return Known(2, 64, make)


def _reciprocal(site: CallSite, args: list[Scalar]) -> Scalar:
    value = arithmetic.counted(args[0], site.span)
    kind = value.type
    one = const(1, t.carrier(kind))
    return Scalar(kind, apply("quotient" if t.is_integer(kind) else "divide", one, value.read()))


def _hypot(site: CallSite, args: list[Scalar]) -> Scalar:
    """Python's: of any number of coordinates."""
    found = FUNCTIONS["fabs"].call(site, args[:1]) if len(args) == 1 else args[0]
    for each in args[1:]:
        found = FUNCTIONS["hypot"].call(site, [found, each])
    return found


def _count_bits(site: CallSite, args: list[Scalar]) -> Scalar:
    """The ones of the magnitude, as uint8."""
    kind, value = t.storage(args[0].type), args[0].read(site.span)
    if t.is_bool(kind):
        return Scalar(UINT8, converted(value, UINT8))
    if not t.is_integer(kind):
        raise site.refuse(str(args[0].type), "it is for integers")
    size = value if kind.kind == "unsigned" else apply("absolute", value)
    return Scalar(UINT8, converted(apply("count_ones", size), UINT8))


def _square(site: CallSite, args: list[Scalar]) -> Scalar:
    value = arithmetic.counted(args[0], site.span)
    return arithmetic.binary("*", value, value, site.span)


def _fmod(site: CallSite, args: list[Scalar]) -> Scalar:
    _, values = shared(site, args)
    values = [arithmetic.counted(value, site.span) for value in values]
    kind = values[0].type
    if t.is_integer(kind):
        return Scalar(kind, apply("modulo", *_parts(values)))
    return _floats("fmod").make(site, args)


def _ldexp(site: CallSite, args: list[Scalar]) -> Scalar:
    if not t.is_integer(args[1].type) and not t.is_bool(args[1].type):
        raise site.refuse(f"{args[1].type} as the exponent", "the second argument is an integer")
    kind = t.floating(args[0].type)
    if t.is_complex(kind):
        raise site.refuse("complex numbers", "scale the parts, x.real and x.imag")
    value = adapt(args[0], kind, site.span).read()
    return Scalar(kind, apply("ldexp", value, adapt(args[1], INT32, site.span).read()))


def _truths(op: str) -> Known:
    """logical_and and its relatives: bools of whether numbers are not zero."""

    def make(_: CallSite, args: list[Scalar]) -> Scalar:
        tests = [arithmetic.condition(arg) for arg in args]
        return Scalar(BOOL, apply({"xor": "not_equal"}.get(op, f"logical_{op}"), *tests))

    arity = 1 if op == "not" else 2
    return Known(arity, arity, make)


def _float_power(site: CallSite, args: list[Scalar]) -> Scalar:
    kind = t.promote(shared(site, args)[0], FLOAT64)
    assert kind is not None, "float64 meets every number"
    return arithmetic.power(adapt(args[0], kind, site.span), adapt(args[1], kind, site.span), site.span)


EXTREMES = {
    **{name: _extreme(name, "bitwise_and") for name in ("minimum", "fmin")},
    **{name: _extreme(name, "bitwise_or") for name in ("maximum", "fmax")},
}
OPERATORS = {op: symbol for symbol, op in ops.SYMBOLS.items() if symbol not in ("//", "%", "&&", "||")} | {
    "true_divide": "/", "floor_divide": "//", "remainder": "%", "mod": "%", "bitwise_left_shift": "<<",
    "bitwise_right_shift": ">>", "power": "**", "pow": "**",
}  # fmt: skip
PREFIXES = {
    "negative": "-", "positive": "+", "invert": "~", "bitwise_invert": "~", "bitwise_not": "~",
}  # fmt: skip
_PARTS = {"real": "real", "imag": "imag", "conj": "conj", "conjugate": "conj"}


def _parts_of(which: str) -> Known:
    prepared = arithmetic.counted if which == "conj" else lambda value, _: value
    return Known(1, 1, lambda site, args: part(which, prepared(args[0], site.span)))


MAKERS: dict[ops.Typing, Callable[[str], Known]] = {"floats": _floats, "neighbours": _neighbour, "common": _integers}
FUNCTIONS: dict[str, Known] = {
    **{name: MAKERS[row.typing](row.name) for row in ops.TABLE.values() for name in row.python.split()},
    **{name: _operator(op) for name, op in OPERATORS.items()},
    **dict.fromkeys(("power", "pow"), Known(2, 2, _power)),
    **{name: _prefix(op) for name, op in PREFIXES.items()},
    **{name: _parts_of(which) for name, which in _PARTS.items()},
    **{f"logical_{op}": _truths(op) for op in ("and", "or", "not", "xor")},
    **EXTREMES,
    "sqrt": _floats("sqrt", "sqrt_complex"),
    "floor": _whole("floor"), "ceil": _whole("ceil"), "trunc": _whole("trunc"), "fix": _whole("trunc"),
    "rint": _floats("rint", "rint_complex"), "round": _whole("rint", "rint_complex"),
    "abs": Known(1, 1, _absolute), "absolute": Known(1, 1, _absolute),
    "sign": Known(1, 1, _sign), "square": Known(1, 1, _square),
    "reciprocal": Known(1, 1, _reciprocal), "clip": Known(3, 3, _clip), "where": Known(3, 3, _where),
    "isnan": _test("isnan"), "isinf": _test("isinf"), "isfinite": _test("isfinite", "logical_and"),
    "fmod": Known(2, 2, _fmod), "ldexp": Known(2, 2, _ldexp),
    "angle": Known(1, 1, _angle), "float_power": Known(2, 2, _float_power),
    "min": _least("<"), "max": _least(">"),
    "bitwise_count": Known(1, 1, _count_bits),
}  # fmt: skip
MATH: dict[str, Known] = {  # what Python's module math has otherwise than NumPy
    "floor": _to_int("floor"), "ceil": _to_int("ceil"), "trunc": _to_int("trunc"), "fmod": _floats("fmod"),
    "pow": _floats("pow"), "remainder": _floats("ieee_remainder"), "hypot": Known(1, 64, _hypot),
}  # fmt: skip
PLAIN: dict[str, Known] = {"round": _to_int("rint"), "pow": _operator("**"), "abs": FUNCTIONS["abs"]}  # Python's own
CONSTANTS: dict[str, float] = {
    "pi": 3.141592653589793, "e": 2.718281828459045, "tau": 6.283185307179586, "inf": float("inf"),
    "nan": float("nan"), "euler_gamma": 0.5772156649015329,
}  # fmt: skip
