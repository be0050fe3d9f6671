"""The pure built-in functions: the ops behind each C and CUDA name."""

from __future__ import annotations

import re
from collections.abc import Callable

from fusec.base import dtypes, ops
from fusec.base.dtypes import DType, c_common, c_promote, complex_type, real_type
from fusec.base.records import dataclass
from fusec.frontends.c.arithmetic import dtype_of, to
from fusec.frontends.c.c_types import SCALARS
from fusec.frontends.lowering import CallSite
from fusec.ir.expr import Expr, apply, const, scalar_type

Make = Callable[[CallSite, list[Expr]], Expr]


@dataclass(frozen=True)
class BuiltinFunction:
    """A built-in function of `arity` arguments."""

    arity: int
    make: Make


def floating(site: CallSite, args: list[Expr], complex_too: bool = False, single: bool = False) -> list[Expr]:
    """The arguments in their common floating type: C++'s double for integers, float32 for narrow floats."""
    given = [dtype_of(arg, site.span, site.name) for arg in args]
    if any(each.is_complex for each in given) and not complex_too:
        raise site.refuse("complex values", "take x.real(), x.imag() or abs(x)")
    parts = [real_type(each) for each in given]
    wide = any(part == dtypes.FLOAT64 or not part.is_float for part in parts) and not single
    part = dtypes.FLOAT64 if wide else dtypes.FLOAT32
    common = complex_type(part) if any(each.is_complex for each in given) else part
    return [to(arg, common) for arg in args]


def _math(op: str, single: bool = False, complex_op: str = "") -> BuiltinFunction:
    row = ops.TABLE[op]
    complex_too = bool(complex_op) or "complex" in row.accepts

    def make(site: CallSite, args: list[Expr]) -> Expr:
        values = floating(site, args, complex_too, single)
        return apply(complex_op if complex_op and scalar_type(values[0]).is_complex else op, *values)

    return BuiltinFunction(row.arity, make)


def _real(site: CallSite, value: Expr) -> Expr:
    if dtype_of(value, site.span, site.name).is_complex:
        raise site.refuse("complex values", "take x.real(), x.imag() or abs(x)")
    return value


def _absolute(site: CallSite, args: list[Expr]) -> Expr:
    given = dtype_of(args[0], site.span, site.name)
    if given.is_complex:
        return apply("abs_complex", args[0])
    return apply("absolute", to(args[0], c_promote(given)))


def _extreme(integer: str, float_: str) -> BuiltinFunction:
    def make(site: CallSite, args: list[Expr]) -> Expr:
        a, b = (_real(site, arg) for arg in args)
        common = c_common(scalar_type(a), scalar_type(b))
        return apply(float_ if common.is_float else integer, to(a, common), to(b, common))

    return BuiltinFunction(2, make)


def _part(which: str) -> BuiltinFunction:
    def make(site: CallSite, args: list[Expr]) -> Expr:
        given = dtype_of(args[0], site.span, site.name)
        if given.is_complex:
            return apply(which, args[0])
        value = to(args[0], c_promote(given))
        return value if which in ("real", "conj") else const(0, scalar_type(value))

    return BuiltinFunction(1, make)


def _complex_only(op: str) -> BuiltinFunction:
    def make(site: CallSite, args: list[Expr]) -> Expr:
        given = dtype_of(args[0], site.span, site.name)
        return apply(op, to(args[0], complex_type(given if given.is_float or given.is_complex else dtypes.FLOAT64)))

    return BuiltinFunction(1, make)


def _polar(site: CallSite, args: list[Expr]) -> Expr:
    radius, angle = floating(site, args)
    return apply(
        "complex", apply("multiply", radius, apply("cos", angle)), apply("multiply", radius, apply("sin", angle))
    )


def _rounded(op: str, target: DType, source: DType | None = None) -> BuiltinFunction:
    """A float rounded by `op` ("" for none) and converted to an integer or another float."""

    def make(site: CallSite, args: list[Expr]) -> Expr:
        value = to(_real(site, args[0]), source) if source else floating(site, args)[0]
        return to(apply(op, value) if op else value, target)

    return BuiltinFunction(1, make)


def _scale(site: CallSite, args: list[Expr]) -> Expr:
    (value,) = floating(site, args[:1])
    if scalar_type(_real(site, args[1])).is_float:
        raise site.refuse("a float as the exponent", "the second argument is an int")
    return apply("ldexp", value, to(args[1], dtypes.INT32))


def _first_set(dtype: DType) -> BuiltinFunction:
    def make(site: CallSite, args: list[Expr]) -> Expr:
        value = to(_real(site, args[0]), dtype)
        lowest = apply("bitwise_and", value, apply("negative", value))
        return apply("subtract", const(dtype.bits, dtypes.INT32), apply("count_leading_zeros", lowest))

    return BuiltinFunction(1, make)


def _reverse(dtype: DType) -> BuiltinFunction:
    def make(site: CallSite, args: list[Expr]) -> Expr:
        value = to(_real(site, args[0]), dtype)
        step = 1
        while step < dtype.bits:  # exchange neighbours of 1, 2, 4, ... bits
            mask = const(sum(1 << bit for bit in range(dtype.bits) if bit // step % 2 == 0), dtype)
            up = apply("left_shift", apply("bitwise_and", value, mask), const(step, dtype))
            down = apply("bitwise_and", apply("right_shift", value, const(step, dtype)), mask)
            value = apply("bitwise_or", up, down)
            step *= 2
        return value

    return BuiltinFunction(1, make)


def _bits(source: DType, target: DType) -> BuiltinFunction:
    return BuiltinFunction(1, lambda site, args: apply("bitcast", to(_real(site, args[0]), source), target=target))


def _converted(source: DType, target: DType) -> BuiltinFunction:
    return BuiltinFunction(1, lambda site, args: to(to(_real(site, args[0]), source), target))


def _fixed(op: str, dtype: DType) -> BuiltinFunction:
    """An op on arguments of one given dtype."""
    arity = ops.TABLE[op].arity
    return BuiltinFunction(arity, lambda site, args: apply(op, *(to(_real(site, arg), dtype) for arg in args)))


def _reciprocal(op: str, dtype: DType | None = None) -> BuiltinFunction:
    def make(site: CallSite, args: list[Expr]) -> Expr:
        value = to(_real(site, args[0]), dtype) if dtype else floating(site, args, complex_too=not op)[0]
        return apply("divide", const(1, scalar_type(value)), apply(op, value) if op else value)

    return BuiltinFunction(1, make)


def _positive_difference(site: CallSite, args: list[Expr]) -> Expr:
    x, y = floating(site, args)
    return apply("where", apply("less_equal", x, y), const(0, scalar_type(x)), apply("subtract", x, y))


def _saturate(site: CallSite, args: list[Expr]) -> Expr:
    value = to(_real(site, args[0]), dtypes.FLOAT32)
    zero, one = const(0, dtypes.FLOAT32), const(1, dtypes.FLOAT32)
    return apply("fmin", apply("fmax", value, zero), one)


def _common(op: str) -> BuiltinFunction:
    """An op of the Array API on arguments in their common type; integers alone where the op takes nothing else."""
    accepted = ops.TABLE[op].accepts
    reals = "complex" not in accepted

    def make(site: CallSite, args: list[Expr]) -> Expr:
        kinds = [dtype_of(_real(site, arg) if reals else arg, site.span, site.name) for arg in args]
        common = c_promote(kinds[0])
        for kind in kinds[1:]:
            common = c_common(common, kind)
        if common.kind not in accepted:
            raise site.refuse(f"{common} values", "pass integers")
        return apply(op, *(to(arg, common) for arg in args))

    return BuiltinFunction(ops.TABLE[op].arity, make)


def _neighbour(op: str) -> BuiltinFunction:
    """An op that asks for neighbours: those of a narrow float are narrow floats."""
    plain = _math(op)

    def make(site: CallSite, args: list[Expr]) -> Expr:
        given = {dtype_of(arg, site.span, site.name) for arg in args}
        return apply(op, *args) if len(given) == 1 and given <= {*dtypes.STORAGE_FLOATS} else plain.make(site, args)

    return BuiltinFunction(plain.arity, make)


MAKERS: dict[ops.Typing, Callable[[str], BuiltinFunction]] = {
    "floats": _math, "neighbours": _neighbour, "common": _common,
}  # fmt: skip


def _bit_count(op: str) -> BuiltinFunction:
    """An op on the bits of an integer of any width, which is not promoted."""

    def make(site: CallSite, args: list[Expr]) -> Expr:
        given = dtype_of(_real(site, args[0]), site.span, site.name)
        if given.is_float:
            raise site.refuse(f"{given} values", "pass an integer")
        return apply(op, args[0] if given.is_integer else to(args[0], dtypes.INT32))

    return BuiltinFunction(1, make)


def _mathematics() -> dict[str, BuiltinFunction]:
    table: dict[str, BuiltinFunction] = {}
    for row in ops.TABLE.values():
        for name, single in row.c_names.items():
            table[name] = _math(row.name, single) if single else MAKERS[row.typing](row.name)
    table["sqrt"], table["sqrtf"] = _math("sqrt", complex_op="sqrt_complex"), _math("sqrt", single=True)
    table["absolute"] = BuiltinFunction(1, _absolute)
    for name, op in (("lrint", "rint"), ("lround", "round")):
        for spelled in (name, f"l{name}", f"{name}f", f"l{name}f"):
            table[spelled] = _rounded(op, dtypes.INT64)
    for name in ("ldexp", "scalbn", "scalbln"):
        table[name] = table[f"{name}f"] = BuiltinFunction(2, _scale)
    table["fdim"] = table["fdimf"] = BuiltinFunction(2, _positive_difference)
    table["rcbrt"], table["rcbrtf"] = _reciprocal("cbrt"), _reciprocal("cbrt", dtypes.FLOAT32)
    return table


def _intrinsics() -> dict[str, BuiltinFunction]:
    table: dict[str, BuiltinFunction] = {}
    for letter, dtype in (("f", dtypes.FLOAT32), ("d", dtypes.FLOAT64)):
        for name, op in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("div", "divide"), ("sqrt", "sqrt")):
            table[f"__{letter}{name}_rn"] = _fixed(op, dtype)
        table[f"__{letter}rcp_rn"] = _reciprocal("", dtype)
    table["__fmaf_rn"], table["__fma_rn"] = _fixed("fma", dtypes.FLOAT32), _fixed("fma", dtypes.FLOAT64)
    table["__fdividef"], table["fdividef"] = _fixed("divide", dtypes.FLOAT32), _fixed("divide", dtypes.FLOAT32)
    table["__saturatef"] = table["saturatef"] = BuiltinFunction(1, _saturate)
    integers = {"int": dtypes.INT32, "uint": dtypes.UINT32, "ll": dtypes.INT64, "ull": dtypes.UINT64}
    roundings = {"rn": "rint", "rz": "", "rd": "floor", "ru": "ceil"}
    for source, dtype in (("float", dtypes.FLOAT32), ("double", dtypes.FLOAT64)):
        for name, integer in integers.items():
            for mode, op in roundings.items():
                table[f"__{source}2{name}_{mode}"] = _rounded(op, integer, dtype)
            table[f"__{name}2{source}_rn"] = _converted(integer, dtype)
    table["__double2float_rn"] = _converted(dtypes.FLOAT64, dtypes.FLOAT32)
    table["__half2float"] = _converted(dtypes.FLOAT16, dtypes.FLOAT32)
    table["__float2half"] = table["__float2half_rn"] = _converted(dtypes.FLOAT32, dtypes.FLOAT16)
    for first, second in (
        ("float", "int"), ("float", "uint"), ("double", "longlong"), ("half", "short"), ("half", "ushort")
    ):  # fmt: skip
        a, b = SCALARS[first], SCALARS[second]
        table[f"__{first}_as_{second}"], table[f"__{second}_as_{first}"] = _bits(a, b), _bits(b, a)
    return table


def _integers() -> dict[str, BuiltinFunction]:
    table: dict[str, BuiltinFunction] = {}
    for suffix, unsigned in (("", dtypes.UINT32), ("ll", dtypes.UINT64)):
        table[f"__popc{suffix}"] = _fixed("count_ones", unsigned)
        table[f"__clz{suffix}"] = _fixed("count_leading_zeros", unsigned)
        table[f"__ffs{suffix}"] = _first_set(unsigned)
        table[f"__brev{suffix}"] = _reverse(unsigned)
    table["__mulhi"], table["__umulhi"] = _fixed("multiply_high", dtypes.INT32), _fixed("multiply_high", dtypes.UINT32)
    table["__mul64hi"], table["__umul64hi"] = (
        _fixed("multiply_high", dtypes.INT64),
        _fixed("multiply_high", dtypes.UINT64),
    )
    table["popcount"], table["clz"] = _bit_count("count_ones"), _bit_count("count_leading_zeros")
    table["_floor_divide"] = table["floor_divide"] = _common("floor_divide")
    return table


BUILTINS: dict[str, BuiltinFunction] = {
    **_mathematics(), **_intrinsics(), **_integers(),
    **dict.fromkeys(("abs", "labs", "llabs"), BuiltinFunction(1, _absolute)),
    "min": _extreme("minimum", "fmin"), "max": _extreme("maximum", "fmax"),
    "real": _part("real"), "imag": _part("imag"), "conj": _part("conj"),
    "arg": _complex_only("arg"), "norm": _complex_only("norm"), "proj": _complex_only("proj"),
    "polar": BuiltinFunction(2, _polar),
}  # fmt: skip

_THREADS = "a kernel computes one element; elements share nothing but atomics on raw arguments"
_NOT_ELEMENTWISE = (
    (
        r"__syncthreads\w*|__syncwarp|__threadfence\w*|__(shfl|any|all|ballot|match|reduce|activemask)\w*|cooperative_groups",
        _THREADS,
    ),
    (r"threadIdx|blockIdx|blockDim|gridDim|warpSize", "use i, the flat index, _ind.size() and _ind.get()[axis]"),
    (
        r"tex[123]D\w*|tex2DLayered|texCubemap|surf[123]D\w*",
        "textures exist only on GPUs; pass the array and interpolate",
    ),
    (r"printf|puts|assert|__trap|__nanosleep|clock(64)?", "portable kernels cannot print, stop or tell the time"),
    (r"curand\w*|malloc|free|memcpy|memset", "portable kernels have no library calls; pass arrays instead"),
    (r"atomic(Inc|Dec)\w*", "use atomicAdd, or a loop over atomicCAS"),
)


def refusal(name: str) -> str | None:
    """Why a CUDA name cannot be used in an elementwise kernel; None if it is not one of those."""
    for pattern, cure in _NOT_ELEMENTWISE:
        if re.fullmatch(pattern, name):
            return cure
    return None
