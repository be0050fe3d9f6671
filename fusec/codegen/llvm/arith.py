"""Primitive ops of the op table as LLVM instructions, on scalars and vectors alike.

Every op is total, so operands are guarded where LLVM's instruction would be undefined. Floating-point instructions
carry the builder's fast-math flags, none but in the mode "fast".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fusec.base.dtypes import DType, real_type
from fusec.base.ops import MIRRORED, TABLE
from fusec.codegen.llvm import convert
from fusec.codegen.llvm.divide import divide, modulo
from fusec.codegen.llvm.flooring import FLOORED, REST, floor_divide, remainder
from fusec.codegen.llvm.high_products import multiply_high
from fusec.codegen.llvm.scaling import SCALE, scale
from fusec.codegen.llvm.values import Builder, Linear, Operand, Value, integer

Rule = Callable[[Builder, list[Value], DType], Value]

_FLOAT_COMPARE = {
    "equal": "oeq", "not_equal": "une", "less": "olt", "less_equal": "ole", "greater": "ogt", "greater_equal": "oge",
}  # fmt: skip
_INTEGER_COMPARE = {
    "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
}  # fmt: skip
_ESTIMATED = "reassoc nsz arcp contract afn"


def apply_op(b: Builder, op: str, args: list[Operand], source: DType, target: DType) -> Operand:
    """One op on evaluated operands. source: dtype of the first operand; target: of the result."""
    match op:
        case "convert":
            return convert.convert(b, args[0], source, target)
        case "bitcast":
            return (convert.bitcast(b, args[0][0], source, target),)
        case "where":
            return b.select_parts(args[0][0], args[1], args[2])
        case "complex":
            return args[0] + args[1]
        case "real":
            return (args[0][0],)
        case "imag":
            return (args[0][1],)
    if source.is_complex:
        return _complex_op(b, op, args, real_type(source))
    rule = _RULES.get(op)
    assert rule is not None, f"op {op} is no primitive of this target"
    return (rule(b, [arg[0] for arg in args], source),)


def _complex_op(b: Builder, op: str, args: list[Operand], part: DType) -> Operand:
    """The ops on complex values that work part by part."""
    columns = list(zip(*args, strict=True))
    if op in ("add", "subtract", "negative"):
        return tuple(_RULES[op](b, list(column), part) for column in columns)
    assert op in ("equal", "not_equal"), f"op {op} on complex values must be expanded before code is generated"
    first, second = (_RULES[op](b, list(column), part) for column in columns)
    return (b.binary("and" if op == "equal" else "or", first, second),)


# --- arithmetic ------------------------------------------------------------------------------------------------


def _sum(b: Builder, args: list[Value], dtype: DType) -> Value:
    if dtype.is_float:
        return b.arithmetic("fadd", args[0], args[1])
    return _moved(b, "add", args[0], args[1]) or _moved(b, "add", args[1], args[0]) or b.binary("add", *args)


def _difference(b: Builder, args: list[Value], dtype: DType) -> Value:
    if dtype.is_float:
        return b.arithmetic("fsub", args[0], args[1])
    return _moved(b, "sub", args[0], args[1]) or _mirrored(b, args[0], args[1]) or b.binary("sub", *args)


def _moved(b: Builder, op: str, value: Value, distance: Value) -> Value | None:
    """A symbolic position moved by a uniform distance."""
    linear = value.linear
    if linear is None or distance.varying or value.type == "ptr":
        return None
    shift = distance.literal
    bounds: tuple[int | None, int | None] = (None, None)
    if shift is not None and linear.low is not None and linear.high is not None:
        shift = -shift if op == "sub" else shift
        bounds = _in_range(linear.low + shift, linear.high + shift, value.type)
    base = b.let(f"{op} {value.type} {linear.base}, {distance.text}")
    # What wrapped once stays far from any position only if it moves little.
    near = shift is not None and abs(shift) < 1 << 30
    if linear.hint and not near:
        return None
    text = b.binary(op, Value(value.type, value.text, varying=True), distance).text if linear.hint else ""
    return Value(value.type, text, varying=True, linear=Linear(base, linear.step, *bounds, hint=linear.hint))


def _in_range(low: int, high: int, llvm: str) -> tuple[int | None, int | None]:
    """The bounds if they fit the type as a signed number."""
    limit = 1 << int(llvm[1:]) - 1
    return (low, high) if -limit <= low and high < limit else (None, None)


def _mirrored(b: Builder, start: Value, value: Value) -> Value | None:
    """A symbolic position taken from a uniform number: it runs backwards."""
    linear = value.linear
    if linear is None or linear.hint or start.varying:
        return None
    base = b.let(f"sub {value.type} {start.text}, {linear.base}")
    return Value(value.type, "", varying=True, linear=Linear(base, -linear.step))


def _product(b: Builder, args: list[Value], dtype: DType) -> Value:
    if dtype.is_float:
        return b.arithmetic("fmul", args[0], args[1])
    for value, factor in (args, reversed(args)):
        linear, by = value.linear, factor.literal
        if linear is not None and not linear.hint and by is not None and by and abs(by * linear.step) < 1 << 16:
            bounds: tuple[int | None, int | None] = (None, None)
            if linear.low is not None and linear.high is not None:
                ends = sorted((linear.low * by, linear.high * by))
                bounds = _in_range(ends[0], ends[1], value.type)
            base = b.let(f"mul {value.type} {linear.base}, {factor.text}")
            return Value(value.type, "", varying=True, linear=Linear(base, linear.step * by, *bounds))
    return b.binary("mul", *args)


def _reciprocal_root(b: Builder, args: list[Value], _: DType) -> Value:
    """1 / sqrt(x) of float32, only in the mode "fast": LLVM makes an estimate and a step of Newton's of it.

    The step makes nan of the estimates for 0 and infinity, which are good as they are.
    """
    x, one, zero = args[0], Value("float", "1.0"), Value("float", "0.0")
    if not b.options.estimates:
        return b.binary("fdiv", one, b.intrinsic("sqrt", x))
    infinity = Value("float", "0x7FF0000000000000")
    near = b.binary(f"fdiv {_ESTIMATED}", one, b.intrinsic("sqrt", x, flags=_ESTIMATED))
    near = b.select(b.compare("fcmp oeq", x, zero), infinity, near)
    return b.select(b.compare("fcmp oeq", x, infinity), zero, near)


def _negative(b: Builder, args: list[Value], dtype: DType) -> Value:
    value = b.materialised(args[0]) if args[0].varying else args[0]
    if dtype.is_float:
        return Value(value.type, b.let(f"fneg {b.typed(value)}"), value.varying)
    return b.binary("sub", integer(0, value.type), value)


def _absolute(b: Builder, args: list[Value], dtype: DType) -> Value:
    if dtype.is_float:
        return b.intrinsic("fabs", args[0])
    return args[0] if dtype.kind == "unsigned" else b.intrinsic("abs", args[0], extra="i1 false")


def _plain(name: str) -> Rule:
    return lambda b, args, _: b.binary(name, args[0], args[1])


def _intrinsic(name: str) -> Rule:
    return lambda b, args, _: b.intrinsic(name, *args)


# --- bits ------------------------------------------------------------------------------------------------------


def _right_shift(b: Builder, args: list[Value], dtype: DType) -> Value:
    if dtype.kind == "unsigned":
        return _shift_or_zero("lshr", b, args, dtype)
    value, count = args
    if count.literal is None or not 0 <= count.literal < dtype.bits:
        limit = integer(dtype.bits - 1, value.type)
        count = b.select(b.compare("icmp ult", count, limit), count, limit)
    return b.binary("ashr", value, count)


def _shift_or_zero(op: str, b: Builder, args: list[Value], dtype: DType) -> Value:
    value, count = args
    if count.literal is not None and 0 <= count.literal < dtype.bits:
        return b.binary(op, value, count)
    zero = integer(0, value.type)
    inside = b.compare("icmp ult", count, integer(dtype.bits, value.type))
    return b.select(inside, b.binary(op, value, b.select(inside, count, zero)), zero)


def _counted(name: str, extra: str = "") -> Rule:
    return lambda b, args, _: b.cast_integer(b.intrinsic(name, args[0], extra=extra), "i32")


# --- comparisons -----------------------------------------------------------------------------------------------


def _comparison(name: str) -> Rule:
    def rule(b: Builder, args: list[Value], dtype: DType) -> Value:
        if dtype.is_float:
            return b.compare(f"fcmp {_FLOAT_COMPARE[name]}", args[0], args[1])
        if dtype.kind == "signed":
            swapped = MIRRORED.get(name, "")
            found = _lanes_below(b, name, args[0], args[1]) or _lanes_below(b, swapped, args[1], args[0])
            if found is not None:
                return found
        sign = "" if name in ("equal", "not_equal") else ("s" if dtype.kind == "signed" else "u")
        return b.compare(f"icmp {sign}{_INTEGER_COMPARE[name]}", args[0], args[1])

    return rule


def _lanes_below(b: Builder, name: str, value: Value, limit: Value) -> Value | None:
    """An ordering of symbolic positions and a uniform limit: the lanes on one side of a point, by 32-bit numbers."""
    linear = value.linear
    if linear is None or limit.varying or linear.step != 1 or linear.low is None or name not in MIRRORED:
        return None
    llvm = value.type
    # less: lane < limit - base; less_equal: lane < limit - base + 1; the other two are their complements.
    count = b.intrinsic("ssub.sat", limit, Value(llvm, linear.base))
    count = b.intrinsic("smax", count, integer(-1, llvm))
    count = b.intrinsic("smin", count, integer(b.lanes, llvm))
    if name in ("less_equal", "greater"):
        count = b.binary("add", count, integer(1, llvm))
    lanes = Value("i32", b.iota("i32"), varying=True)
    point = b.cast("trunc" if llvm == "i64" else "sext", count, "i32")
    return b.compare("icmp slt" if name in ("less", "less_equal") else "icmp sge", lanes, point)


def _not(b: Builder, args: list[Value], _: DType) -> Value:
    return b.invert(args[0])


_RULES: dict[str, Rule] = {
    "add": _sum, "subtract": _difference, "multiply": _product, "rsqrt": _reciprocal_root,
    "divide": lambda b, args, _: b.arithmetic("fdiv", args[0], args[1]),
    "quotient": divide, "modulo": modulo, FLOORED: floor_divide, REST: remainder,
    "negative": _negative, "absolute": _absolute,
    **{row.name: _intrinsic(row.llvm) for row in TABLE.values() if row.llvm}, "multiply_high": multiply_high,
    "bitwise_and": _plain("and"), "bitwise_or": _plain("or"), "bitwise_xor": _plain("xor"), "bitwise_invert": _not,
    "left_shift": partial(_shift_or_zero, "shl"), "right_shift": _right_shift, SCALE: scale,
    "count_ones": _counted("ctpop"), "count_leading_zeros": _counted("ctlz", "i1 false"),
    "logical_and": _plain("and"), "logical_or": _plain("or"), "logical_not": _not,
    **{name: _comparison(name) for name in _INTEGER_COMPARE},
}  # fmt: skip
