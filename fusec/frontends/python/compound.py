"""Functions that take more than positional numbers, or return several values: tuples, tables, arguments by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np

from fusec.base.dtypes import BOOL, FLOAT64, INT64, UINT64, DType
from fusec.base.records import dataclass
from fusec.frontends.lowering import CallSite
from fusec.frontends.python import arithmetic, sequences
from fusec.frontends.python import types as t
from fusec.frontends.python.functions import FUNCTIONS, MATH, PLAIN, part
from fusec.frontends.python.sequences import chosen
from fusec.frontends.python.values import Absent, Items, Scalar, Value, adapt, converted, literal, show
from fusec.ir.expr import Apply, Const, Expr, apply, const

MAX_DIGITS = 22  # powers of ten up to this one are exact in float64
TUPLES = frozenset(("iterable", "p", "q", "xp", "fp"))  # parameters that are no numbers
OPTIONAL = frozenset(("decimals", "ndigits", "copy", "nan", "posinf", "neginf"))  # parameters that may be None
NONE, FALSE, ZERO, ONE = Absent(), literal(False), literal(0.0), literal(1)
RTOL, ATOL, REL_TOL = literal(1e-05), literal(1e-08), literal(1e-09)


@dataclass(frozen=True)
class Compound:
    """A function by its parameters; least: how many of them must be given, first: how many may be by position.

    make: takes the place of the call, then the arguments by position or name; those that are numbers are Scalar.
    """

    params: tuple[str, ...]
    least: int
    first: int
    make: Callable[..., Value]


def _call(name: str, site: CallSite, *args: Scalar) -> Scalar:
    """The value of another function."""
    return FUNCTIONS[name].call(site, list(args))


def _parts(site: CallSite, name: str, given: Value) -> list[Scalar]:
    """The numbers of an argument that is a tuple or a table of one axis. Raises BadArgument."""
    found = sequences.parts_of(given, site.span)
    kept = [each for each in found or () if isinstance(each, Scalar)]
    if found is None or len(kept) != len(found):
        raise site.refuse(f"{show(given)} as '{name}'", "pass a tuple of numbers, or an array from outside")
    return kept


# --- quotients, products, distances -------------------------------------------------------------------------------


def _divmod(site: CallSite, x: Scalar, y: Scalar) -> Value:
    return Items((arithmetic.binary("//", x, y, site.span), arithmetic.binary("%", x, y, site.span)))


def _prod(site: CallSite, iterable: Value, start: Scalar = ONE) -> Value:
    for each in _parts(site, "iterable", iterable):
        start = arithmetic.binary("*", start, each, site.span)
    return start


def _dist(site: CallSite, p: Value, q: Value) -> Value:
    left, right = _parts(site, "p", p), _parts(site, "q", q)
    if len(left) != len(right):
        raise site.refuse(f"points of {len(left)} and {len(right)} coordinates", "pass two of the same length")
    found = ZERO
    for at, (a, b) in enumerate(zip(left, right, strict=True)):
        a, b = (adapt(each, t.floating(each.type), site.span) for each in (a, b))
        apart = arithmetic.binary("-", a, b, site.span)
        found = _call("hypot", site, found, apart) if at else _call("abs", site, apart)
    return found


def _comb(site: CallSite, n: Scalar, k: Scalar) -> Value:
    for each in (n, k):
        if not t.is_integer(each.type):
            raise site.refuse(str(each.type), "it is for integers")
    return Scalar(t.PY_INT, apply("comb", *(adapt(each, t.PY_INT, site.span).read(site.span) for each in (n, k))))


# --- closeness ------------------------------------------------------------------------------------------------------


def _isclose(site: CallSite, a: Scalar, b: Scalar, **given: Scalar) -> Value:
    """NumPy's: |a - b| <= atol + rtol * |b|."""
    rtol, atol, equal_nan = given.get("rtol", RTOL), given.get("atol", ATOL), given.get("equal_nan", FALSE)
    if t.is_integer(b.type) or t.is_bool(b.type):
        b = adapt(b, FLOAT64 if isinstance(b.type, DType) else t.PY_FLOAT, site.span)
    apart = _call("abs", site, arithmetic.binary("-", a, b, site.span))
    scaled = arithmetic.binary("*", rtol, _call("abs", site, b), site.span)
    bound = arithmetic.binary("+", atol, scaled, site.span)
    near = _test(site, "<=", apart, bound)
    near = apply("logical_and", near, arithmetic.condition(_call("isfinite", site, b)))
    found = apply("logical_or", near, _test(site, "==", a, b))
    both = [arithmetic.condition(_call("isnan", site, each)) for each in (a, b)]
    with_nan = apply("logical_and", arithmetic.condition(equal_nan), apply("logical_and", *both))
    return Scalar(BOOL, found if equal_nan.literal is False else apply("logical_or", found, with_nan))


def _isclose_in_python(
    site: CallSite, a: Scalar, b: Scalar, *, rel_tol: Scalar = REL_TOL, abs_tol: Scalar = ZERO
) -> Value:
    """Python's: |a - b| <= max(rel_tol * |a|, rel_tol * |b|, abs_tol), in float64."""
    if t.is_complex(a.type) or t.is_complex(b.type):
        raise site.refuse("complex numbers", "compare abs(a - b) with a number")
    a, b, rel_tol, abs_tol = (adapt(each, FLOAT64, site.span) for each in (a, b, rel_tol, abs_tol))
    apart = _call("abs", site, arithmetic.binary("-", b, a, site.span))
    sizes = [_call("abs", site, arithmetic.binary("*", rel_tol, each, site.span)) for each in (b, a)]
    found = _test(site, "<=", apart, sizes[0])
    for bound in (sizes[1], abs_tol):
        found = apply("logical_or", found, _test(site, "<=", apart, bound))
    for each in (a, b):
        found = apply("logical_and", found, arithmetic.condition(_call("isfinite", site, each)))
    return Scalar(t.PY_BOOL, apply("logical_or", _test(site, "==", a, b), found))


def _test(site: CallSite, op: str, a: Scalar, b: Scalar) -> Expr:
    return arithmetic.condition(arithmetic.binary(op, a, b, site.span))


def _nan_to_num(site: CallSite, x: Scalar, **instead: Value) -> Value:
    kind = t.storage(x.type)
    x = adapt(x, kind, site.span)
    if kind.is_complex:
        real, imag = (_finite(site, part(which, x), instead).read() for which in ("real", "imag"))
        return Scalar(kind, apply("complex", real, imag))
    return _finite(site, x, instead) if kind.is_float else x


def _finite(site: CallSite, x: Scalar, given: Mapping[str, Value]) -> Scalar:
    import ml_dtypes

    kind = t.storage(x.type)
    most = float(ml_dtypes.finfo(kind.numpy).max)  # type: ignore[no-untyped-call]
    value = x.read()
    for name, default in (("posinf", most), ("neginf", -most), ("nan", 0.0)):
        wanted = given.get(name)
        instead = adapt(wanted if isinstance(wanted, Scalar) else literal(default), kind, site.span).read(site.span)
        if name == "nan":
            test = apply("isnan", x.read())
        else:
            test = apply("equal", x.read(), const(float(name.replace("neg", "-").replace("pos", "")), t.carrier(kind)))
        value = apply("where", test, instead, value)
    return Scalar(kind, value)


# --- rounding to digits -------------------------------------------------------------------------------------------


def _round(site: CallSite, a: Scalar, decimals: Value = NONE) -> Value:
    """NumPy's: x * 10**n to the next integer, by 10**n; integers to powers of ten likewise, in float64."""
    digits = _digits(site, "decimals", decimals)
    if digits is None:
        return _call("round", site, a)
    kind = t.storage(a.type)
    x = adapt(a, kind, site.span)
    if kind.is_integer:
        if digits >= 0:
            return x
        near = _scaled(Scalar(FLOAT64, converted(x.read(), FLOAT64)), digits)
        whole = converted(near.read(), UINT64 if kind == UINT64 else INT64)
        return Scalar(kind, converted(whole, kind))
    if t.is_bool(kind):
        raise site.refuse("bools", "convert to an integer first")
    if t.is_complex(kind):
        return Scalar(kind, apply("complex", *(_scaled(part(each, x), digits).read() for each in ("real", "imag"))))
    return _scaled(x, digits)


def _scaled(x: Scalar, digits: int) -> Scalar:
    dtype = t.carrier(x.type)
    power = const(_power(abs(digits)), dtype)
    there, back = ("multiply", "divide") if digits >= 0 else ("divide", "multiply")
    return Scalar(x.type, apply(back, apply("rint", apply(there, x.read(), power)), power))


def _power(digits: int) -> float:
    return float("inf") if digits > 308 else 10.0**digits


def _round_in_python(site: CallSite, number: Scalar, ndigits: Value = NONE) -> Value:
    """Python's own: NumPy's numbers as NumPy does, Python's exactly."""
    digits = _digits(site, "ndigits", ndigits)
    if digits is None:
        return PLAIN["round"].call(site, [number])
    if isinstance(number.type, DType):
        return _round(site, number, literal(digits))
    return _round_exactly(site, number, digits)


def _digits(site: CallSite, name: str, given: Value) -> int | None:
    """How many digits to keep; None if that is not said. Raises BadArgument for what is not known."""
    if isinstance(given, Absent):
        return None
    known = sequences.known_number(given) if isinstance(given, Scalar) else None
    if not isinstance(known, int):
        raise site.refuse(f"{show(given)} as '{name}'", "write the number of digits, or a name that stands for one")
    return int(known)


def _round_exactly(site: CallSite, x: Scalar, digits: int) -> Scalar:
    """Python's round of its own numbers: the nearest decimal, of two the one whose last digit is even."""
    if x.literal is not None and not isinstance(x.literal, complex):
        return literal(round(x.literal, digits))
    if t.is_complex(x.type):
        raise site.refuse("complex numbers", "round the parts, x.real and x.imag")
    if x.type != t.PY_FLOAT:
        whole = adapt(x, t.PY_INT, site.span)
        return whole if digits >= 0 else _tens(whole, -digits)
    if abs(digits) > MAX_DIGITS:
        raise site.refuse(f"{digits} digits", f"a Python float is rounded to at most {MAX_DIGITS} digits")
    power, value = const(10.0 ** abs(digits), FLOAT64), x.read(site.span)
    if digits >= 0:  # the product is exactly `scaled` + `lost`
        scaled = apply("multiply", value, power)
        lost = apply("fma", value, power, apply("negative", scaled))
    else:  # the quotient is on the side of `scaled` that the rest says
        scaled = apply("divide", value, power)
        lost = apply("fma", apply("negative", scaled), power, value)
    near = _nearest(scaled, lost)
    found = apply("divide" if digits >= 0 else "multiply", near, power)
    changes = apply(
        "less", apply("absolute", scaled), const(2.0**53, FLOAT64)
    )  # others are farther apart than decimals
    return Scalar(t.PY_FLOAT, apply("where", changes, apply("copysign", found, value), value))


def _nearest(scaled: Expr, lost: Expr) -> Expr:
    """The integer nearest to scaled + lost, of two the even one; scaled is below 2**53, and nearest to the sum."""
    near = apply("rint", scaled)
    rest = apply("subtract", scaled, near)
    zero, half, one = (const(each, FLOAT64) for each in (0.0, 0.5, 1.0))
    up = apply("logical_and", apply("equal", rest, half), apply("greater", lost, zero))
    down = apply("logical_and", apply("equal", rest, apply("negative", half)), apply("less", lost, zero))
    found = apply("where", down, apply("subtract", near, one), near)
    return apply("where", up, apply("add", near, one), found)


def _tens(x: Scalar, digits: int) -> Scalar:
    """A Python integer to a multiple of a power of ten."""
    if digits > 18:  # all are nearer to 0, or to what int64 does not hold
        return Scalar(t.PY_INT, const(0, INT64))
    power = const(10**digits, INT64)
    low, rest = apply("floor_divide", x.read(), power), apply("remainder", x.read(), power)
    left = apply("subtract", power, rest)
    odd = apply("not_equal", apply("bitwise_and", low, const(1, INT64)), const(0, INT64))
    up = apply("logical_or", apply("less", left, rest), apply("logical_and", apply("equal", left, rest), odd))
    return Scalar(t.PY_INT, apply("multiply", apply("add", low, converted(up, INT64)), power))


# --- interpolation --------------------------------------------------------------------------------------------------


def _interp(site: CallSite, x: Scalar, xp: Value, fp: Value, **ends: Scalar) -> Value:
    """NumPy's: the straight line between two points, found by halving; float64."""
    xs, ys = (_floats(site, _parts(site, name, given)) for name, given in (("xp", xp), ("fp", fp)))
    if len(xs) != len(ys) or not xs:
        raise site.refuse(f"{len(xs)} and {len(ys)} points", "pass as many values as positions, at least one")
    known = [float(each.value) for each in xs if isinstance(each, Const)]
    if any(b < a for a, b in pairwise(known)):
        raise site.refuse("positions that do not ascend", "sort them: np.interp looks between neighbours")
    place, before, beyond = (
        adapt(each, FLOAT64, site.span).read(site.span)
        for each in (x, ends.get("left", Scalar(FLOAT64, ys[0])), ends.get("right", Scalar(FLOAT64, ys[-1])))
    )
    found = ys[0] if len(xs) == 1 else _between(place, xs, ys)
    found = apply("where", apply("greater", place, xs[-1]), beyond, found)
    found = apply("where", apply("less", place, xs[0]), before, found)
    return Scalar(FLOAT64, found if len(xs) == 1 else apply("where", apply("isnan", place), place, found))


def _floats(site: CallSite, parts: list[Scalar]) -> list[Expr]:
    for each in parts:
        if t.is_complex(each.type):
            raise site.refuse("complex numbers", "interpolate the parts, x.real and x.imag")
    return [_as_float(adapt(each, FLOAT64, site.span).read(site.span)) for each in parts]


def _as_float(value: Expr) -> Expr:
    """A constant of another dtype as one of float64."""
    match value:
        case Apply("convert", (Const() as known,)):
            return const(float(known.value), FLOAT64)
    return value


def _between(x: Expr, xs: list[Expr], ys: list[Expr]) -> Expr:
    """The value at x, which lies from the first place on, and not beyond the last."""
    place: Expr = const(0, INT64)
    for digit in reversed(range((len(xs) - 1).bit_length())):
        onward = apply("bitwise_or", place, const(1 << digit, INT64))
        place = apply("where", apply("less_equal", chosen(xs, onward), x), onward, place)
    place = apply("minimum", place, const(len(xs) - 2, INT64))
    x0, y0, slopes = chosen(xs, place), chosen(ys, place), _slopes(xs, ys)
    if slopes:
        found: Expr = apply("add", apply("multiply", chosen(slopes, place), apply("subtract", x, x0)), y0)
    else:
        after = apply("add", place, const(1, INT64))
        x1, y1 = chosen(xs, after), chosen(ys, after)
        slope = apply("divide", apply("subtract", y1, y0), apply("subtract", x1, x0))
        lines = [apply("add", apply("multiply", slope, apply("subtract", x, a)), b) for a, b in ((x0, y0), (x1, y1))]
        level = apply("where", apply("equal", y0, y1), y0, lines[1])
        second = apply("where", apply("isnan", lines[1]), level, lines[1])
        found = apply("where", apply("isnan", lines[0]), second, lines[0])
    found = apply("where", apply("equal", x, x0), y0, found)
    return apply("where", apply("greater_equal", x, xs[-1]), ys[-1], found)


def _slopes(xs: list[Expr], ys: list[Expr]) -> list[Expr]:
    """Those between neighbours, where all is known and finite; else none."""
    places, values = ([float(each.value) for each in found if isinstance(each, Const)] for found in (xs, ys))
    if len(places) != len(xs) or len(values) != len(ys):
        return []
    with np.errstate(all="ignore"):
        found = np.diff(values) / np.diff(places)
    return [const(each, FLOAT64) for each in found.tolist()] if np.isfinite([*places, *values, *found]).all() else []


COMPOUND: dict[str, Compound] = {  # by NumPy's names
    "divmod": Compound(("x", "y"), 2, 2, _divmod),
    "round": Compound(("a", "decimals"), 1, 2, _round),
    "around": Compound(("a", "decimals"), 1, 2, _round),
    "isclose": Compound(("a", "b", "rtol", "atol", "equal_nan"), 2, 5, _isclose),
    "interp": Compound(("x", "xp", "fp", "left", "right"), 3, 5, _interp),
    "nan_to_num": Compound(("x", "copy", "nan", "posinf", "neginf"), 1, 5, _nan_to_num),
    "dist": Compound(("p", "q"), 2, 2, _dist),
    "comb": Compound(("n", "k"), 2, 2, _comb),
}
COMPOUND_MATH: dict[str, Compound] = {  # what Python's module math has otherwise, or alone
    "isclose": Compound(("a", "b", "rel_tol", "abs_tol"), 2, 2, _isclose_in_python),
    "prod": Compound(("iterable", "start"), 1, 1, _prod),
}
COMPOUND_PLAIN = {"round": Compound(("number", "ndigits"), 1, 2, _round_in_python)}  # Python's own
KNOWN = frozenset((*FUNCTIONS, *COMPOUND))  # what NumPy, the Array API and SciPy call by these names
PYTHONS_OWN = {"math": frozenset((*MATH, *COMPOUND_MATH)), "builtins": frozenset((*PLAIN, *COMPOUND_PLAIN))}


def compound(name: str, python: bool) -> Compound | None:
    """The function of that name, if it is one of these; python: as Python has it rather than NumPy."""
    own = {**COMPOUND_MATH, **COMPOUND_PLAIN}.get(name) if python else None
    return own or COMPOUND.get(name)
