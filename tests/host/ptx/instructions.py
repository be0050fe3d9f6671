"""The table of instructions that only compute: what types they read, what type they give, and the function."""

import operator
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ptx import conversions, floats, integers
from ptx.faults import Unsupported
from ptx.syntax import WIDTHS
from ptx.types import NUMPY

Array = np.ndarray


@dataclass(frozen=True)
class Computation:
    """sources: a type for each operand; result: the type of the value; apply: on arrays of those types."""

    sources: tuple[str, ...]
    result: str
    apply: Callable[..., Array]


def computation(opcode: tuple[str, ...]) -> Computation | None:
    """The meaning of an opcode that touches neither memory nor other threads; None for those that do.

    Raises Unsupported for a form that is unknown.
    """
    maker = _MAKERS.get(opcode[0])
    return None if maker is None else maker(opcode[0], opcode[1:-1], opcode[-1])


Maker = Callable[[str, tuple[str, ...], str], Computation]


def _is_float(kind: str) -> bool:
    return kind in ("f16", "f32", "f64", "bf16", "f16x2", "f32x2")


# --- arithmetic ----------------------------------------------------------------------------------------------------

_INTEGER: dict[str, tuple[int, Callable[..., Array]]] = {
    "add": (2, operator.add),
    "sub": (2, operator.sub),
    "div": (2, integers.divide),
    "rem": (2, integers.remainder),
    "abs": (1, integers.absolute),
    "neg": (1, integers.negate),
    "min": (2, np.minimum),
    "max": (2, np.maximum),
    "sad": (3, integers.absolute_difference),
}
_CLAMPED = {"add": integers.clamped_add, "sub": integers.clamped_subtract}


def _arithmetic(name: str, modifiers: tuple[str, ...], kind: str) -> Computation:
    if _is_float(kind):
        return _float(name, modifiers, kind)
    count, function = _INTEGER[name]
    if "sat" in modifiers:
        function = _CLAMPED[name]
    elif modifiers:
        raise Unsupported(f"integer {name} with {modifiers}")
    return Computation((kind,) * count, kind, function)


def _product(name: str, modifiers: tuple[str, ...], kind: str) -> Computation:
    """mul, mad and mul24, mad24 of integers; fma, and mul of floats."""
    if _is_float(kind):
        return _float(name, modifiers, kind)
    half = modifiers[0] if modifiers else "lo"
    if name.endswith("24"):
        multiply = integers.multiply_24
    else:
        multiply = {"lo": operator.mul, "hi": integers.multiply_high_half, "wide": integers.multiply_wide}[half]
    result = f"{kind[0]}{16 * WIDTHS[kind]}" if half == "wide" else kind
    if not name.startswith("mad"):
        return Computation((kind, kind), result, multiply)
    if "sat" in modifiers:
        raise Unsupported("mad.sat")
    return Computation((kind, kind, result), result, lambda a, b, c: multiply(a, b) + c)


_UNARY_FLOATS: dict[str, Callable[..., Array]] = {"abs": np.abs, "neg": operator.neg}
_COUNTS = {"add": 2, "sub": 2, "mul": 2, "div": 2, "fma": 3, "mad": 3, "min": 2, "max": 2}


def _float(name: str, modifiers: tuple[str, ...], kind: str) -> Computation:
    """Floating-point arithmetic, with rounding, saturation, flushing; on pairs, each half by itself."""
    if kind.endswith("x2"):
        half = _float(name, modifiers, kind[:-2])
        raw = f"b{8 * WIDTHS[kind]}"
        return Computation((raw,) * len(half.sources), raw, _on_halves(half.apply, NUMPY[kind[:-2]]))
    unknown = set(modifiers) - {"rn", "rz", "rm", "rp", "sat", "ftz", "NaN", "approx", "full"}
    if unknown or kind == "bf16":
        raise Unsupported(f"{name} on {kind} with {sorted(unknown)}")
    function = _float_function(name, modifiers)
    if "sat" in modifiers:
        inner = function
        function = lambda *operands: floats.saturated(inner(*operands))  # noqa: E731
    if "ftz" in modifiers:
        kept = function
        function = lambda *operands: floats.flushed(kept(*map(floats.flushed, operands)))  # noqa: E731
    return Computation((kind,) * _COUNTS.get(name, 1), kind, function)


def _on_halves(apply: Callable[..., Array], half: np.dtype) -> Callable[..., Array]:
    """An operation on each half of packed operands."""

    def packed(*operands: Array) -> Array:
        halves = [np.ascontiguousarray(each).view(half) for each in np.broadcast_arrays(*operands)]
        return apply(*halves).view(operands[0].dtype)

    return packed


def serialise_blocks(found: Computation) -> Computation:
    """min and max of three operands."""
    (kind, _), apply = found.sources, found.apply
    return Computation((kind,) * 3, found.result, lambda a, b, c: apply(apply(a, b), c))


def _float_function(name: str, modifiers: tuple[str, ...]) -> Callable[..., Array]:
    if name in _UNARY_FLOATS:
        return _UNARY_FLOATS[name]
    if name in ("min", "max"):
        order = floats.minimum if name == "min" else floats.maximum
        return floats.or_nan(order) if "NaN" in modifiers else order
    if "approx" in modifiers or "full" in modifiers:
        return floats.approximate(name)
    mode = next((each for each in modifiers if each in floats.DIRECTED), None)
    if mode is None:
        if name in ("div", "sqrt", "rcp", "fma", "mad") and "rn" not in modifiers:
            raise Unsupported(f"{name} without a rounding")
        return floats.NEAREST[name]
    if name not in floats.EXACT:
        raise Unsupported(f"{name}.{mode}")
    return floats.directed(floats.EXACT[name], floats.NEAREST[name], mode)


# --- bits ----------------------------------------------------------------------------------------------------------


def _logic(name: str, modifiers: tuple[str, ...], kind: str) -> Computation:
    """and, or, xor, not on bits and predicates."""
    if name == "not":
        return Computation((kind,), kind, np.invert)
    if name == "cnot":
        return Computation((kind,), kind, lambda a: (a == 0).astype(a.dtype))
    function = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}[name]
    return Computation((kind, kind), kind, function)


def _shift(name: str, modifiers: tuple[str, ...], kind: str) -> Computation:
    function = integers.shift_left if name == "shl" else integers.shift_right
    return Computation((kind, "u32"), kind, function)


def _funnel(name: str, modifiers: tuple[str, ...], kind: str) -> Computation:
    function = integers.funnel_left if modifiers[0] == "l" else integers.funnel_right
    is_clamped = "clamp" in modifiers
    return Computation(("u32",) * 3, "u32", lambda a, b, count: function(a, b, count, is_clamped))


def _logic3(name: str, modifiers: tuple[str, ...], kind: str) -> Computation:
    if modifiers:
        raise Unsupported(f"lop3 with {modifiers}")
    return Computation((*(kind,) * 3, "u32"), kind, lambda a, b, c, table: integers.logic3(a, b, c, int(table[0])))


def _permute(name: str, modifiers: tuple[str, ...], kind: str) -> Computation:
    mode = "" if kind == "b32" else kind  # the mode stands behind the type
    return Computation(("b32",) * 3, "b32", lambda a, b, selector: integers.permute(a, b, selector, mode))


def _field(name: str, modifiers: tuple[str, ...], kind: str) -> Computation:
    if name == "bfe":
        return Computation((kind, "u32", "u32"), kind, integers.extract)
    return Computation((kind, kind, "u32", "u32"), kind, integers.insert)


def _count(name: str, modifiers: tuple[str, ...], kind: str) -> Computation:
    if name == "bfind":
        width = np.uint32(8 * WIDTHS[kind] - 1)
        if "shiftamt" not in modifiers:
            return Computation((kind,), "u32", integers.highest_bit)

        def amount(a: Array) -> Array:
            found = integers.highest_bit(a)
            return np.where(found == np.uint32(0xFFFFFFFF), found, width - found)

        return Computation((kind,), "u32", amount)
    if name == "brev":
        return Computation((kind,), kind, integers.reverse)
    return Computation((kind,), "u32", integers.count_ones if name == "popc" else integers.leading_zeros)


def _mask(name: str, modifiers: tuple[str, ...], kind: str) -> Computation:
    is_clamped = "clamp" in modifiers
    return Computation(("u32", "u32"), "u32", lambda a, b: integers.bit_mask(a, b, is_clamped))


def _dot(name: str, modifiers: tuple[str, ...], kind: str) -> Computation:
    first = modifiers[-1]
    result = "s32" if "s32" in (first, kind) else "u32"
    return Computation((first, kind, result), result, integers.dot)


# --- choice and comparison -----------------------------------------------------------------------------------------


def _select(name: str, modifiers: tuple[str, ...], kind: str) -> Computation:
    if name == "selp":
        return Computation((kind, kind, "pred"), kind, lambda a, b, p: np.where(p, a, b))
    result = modifiers[-1]  # slct.type.control: the first where the control is not negative
    return Computation((result, result, kind), result, lambda a, b, c: np.where(c >= 0, a, b))


_ORDERS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip


def comparison(order: str, is_float: bool) -> Callable[[Array, Array], Array]:
    """setp's comparison; with nan the plain ones of floats are false, those that end in u are true."""
    if not is_float:
        return _ORDERS[order]
    if order == "num":
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if order == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if order == "ne":
        return lambda a, b: (a < b) | (a > b)
    if order in _ORDERS:
        return _ORDERS[order]
    ordered = _ORDERS[order[:-1]]
    return lambda a, b: ordered(a, b) | np.isnan(a) | np.isnan(b)


JOINS: dict[str, Callable[[Array, Array], Array]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def _set(name: str, modifiers: tuple[str, ...], kind: str) -> Computation:
    """set.compare.result.source: all ones, or 1.0, where the comparison holds."""
    result = modifiers[-1]
    compare = comparison(modifiers[0], _is_float(kind))
    if len(modifiers) > 2 or result not in ("u32", "s32", "f32"):
        raise Unsupported(f"set with {modifiers}")
    if result == "f32":
        return Computation((kind, kind), result, lambda a, b: compare(a, b).astype(np.float32))
    return Computation((kind, kind), "s32", lambda a, b: 0 - compare(a, b).astype(np.int32))


def _test(name: str, modifiers: tuple[str, ...], kind: str) -> Computation:
    return Computation((kind,), "pred", floats.TESTS[modifiers[0]])


def _copysign(name: str, modifiers: tuple[str, ...], kind: str) -> Computation:
    return Computation((kind, kind), kind, floats.copy_sign)


def _convert(name: str, modifiers: tuple[str, ...], kind: str) -> Computation:
    target = modifiers[-1]
    count = 2 if "x2" in target and kind == "f32" else 1
    result = {"f16x2": "b32", "bf16x2": "b32", "e4m3x2": "b16", "e5m2x2": "b16"}.get(target, target)
    source = {"e4m3x2": "b16", "e5m2x2": "b16", "f16x2": "b32"}.get(kind, kind)
    return Computation((source,) * count, result, conversions.converter((name, *modifiers, kind)))


_MAKERS: dict[str, Maker] = {
    **dict.fromkeys(("add", "sub", "div", "rem", "abs", "neg", "min", "max", "sad"), _arithmetic),
    **dict.fromkeys(("mul", "mad", "fma", "mul24", "mad24"), _product),
    **dict.fromkeys(("sqrt", "rcp", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh"), _float),
    **dict.fromkeys(("and", "or", "xor", "not", "cnot"), _logic),
    **dict.fromkeys(("shl", "shr"), _shift),
    **dict.fromkeys(("bfe", "bfi"), _field),
    **dict.fromkeys(("popc", "clz", "bfind", "brev"), _count),
    **dict.fromkeys(("selp", "slct"), _select),
    "shf": _funnel,
    "lop3": _logic3,
    "prmt": _permute,
    "bmsk": _mask,
    "dp4a": _dot,
    "set": _set,
    "testp": _test,
    "copysign": _copysign,
    "cvt": _convert,
}
