"""Bounds of integer expressions, which let the printer write `i + 1` where C forbids overflow but fusec wraps.

Every bound is closed and holds for every run; an expression about which nothing is known has the bounds of its dtype.
"""

from __future__ import annotations

from collections.abc import Mapping

from fusec.base.dtypes import BOOL, DType
from fusec.base.kernel_abi import MAX_BLOCK
from fusec.ir.expr import Apply, Const, Expr, Type, scalar_type, type_of
from fusec.ir.loops import Local, Query

Bounds = tuple[int, int]

POSITIONS = 1 << 48  # no device holds or visits this many elements
STRIDES = 1 << 56  # nor addresses this many bytes


def dtype_bounds(dtype: DType) -> Bounds:
    """The values of an integer dtype or bool."""
    return (0, 1) if dtype == BOOL else dtype.limits


def exact_bounds(op: str, operands: list[Bounds]) -> Bounds | None:
    """Bounds of the mathematical result, before it wraps; None for an op that cannot overflow this way."""
    match op, operands:
        case "add", [(a, b), (c, d)]:
            return a + c, b + d
        case "subtract", [(a, b), (c, d)]:
            return a - d, b - c
        case "multiply", [(a, b), (c, d)]:
            products = (a * c, a * d, b * c, b * d)
            return min(products), max(products)
        case "left_shift", [(a, b), (c, d)] if c == d and 0 <= c < 64:
            return a << c, b << c
        case "negative", [(a, b)]:
            return -b, -a
        case _:
            return None


class BoundsOf:
    """Bounds of expressions; `locals` holds the known bounds of variables at the printer's position."""

    def __init__(self) -> None:
        self.locals: dict[str, Bounds] = {}
        self._known: dict[Expr, Bounds] = {}

    def learn(self, name: str, bounds: Bounds) -> None:
        """From here on, a local is between these bounds."""
        if self.locals.get(name) != bounds:
            self.restore({**self.locals, name: bounds})

    def forget(self, name: str) -> None:
        """From here on, a local may have any value."""
        if name in self.locals:
            self.restore({each: bounds for each, bounds in self.locals.items() if each != name})

    def restore(self, known: Mapping[str, Bounds]) -> None:
        """From here on, exactly these bounds of locals hold."""
        if known != self.locals:
            self.locals = dict(known)
            self._known.clear()

    def __call__(self, value: Expr) -> Bounds:
        """The bounds of an integer or bool expression."""
        if value not in self._known:
            full = dtype_bounds(scalar_type(value))
            low, high = self._find(value) or full
            self._known[value] = (low, high) if full[0] <= low and high <= full[1] else full
        return self._known[value]

    def overflows(self, value: Apply) -> bool:
        """True unless the exact result of an integer op is certain to fit its dtype."""
        exact = exact_bounds(value.op, [self(arg) for arg in value.args])
        full = dtype_bounds(value.type)
        return exact is None or exact[0] < full[0] or exact[1] > full[1]

    def _find(self, value: Expr) -> Bounds | None:
        match value:
            case Const():
                number = int(value.value)
                return number, number
            case Local():
                return self.locals.get(value.name)
            case Query():
                return _quantity(value)
            case Apply():
                return self._apply(value)
            case _:
                return None

    def _apply(self, value: Apply) -> Bounds | None:
        integers = [arg for arg in value.args if is_whole(type_of(arg))]
        if len(integers) < len(value.args):
            return None
        operands = [self(arg) for arg in integers]
        exact = exact_bounds(value.op, operands)
        if exact is not None:
            return exact
        match value.op, operands:
            case "convert", [bounds]:
                return bounds
            case "where", [_, (a, b), (c, d)]:
                return min(a, c), max(b, d)
            case "bitwise_and", [(a, b), (c, d)] if a >= 0 or c >= 0:
                return 0, min(high for low, high in ((a, b), (c, d)) if low >= 0)
            case "modulo", [(a, b), (c, d)] if c > 0:
                return (0 if a >= 0 else max(a, 1 - d)), (0 if b <= 0 else min(b, d - 1))
            case "quotient", [(a, b), (c, d)] if c > 0:
                return min(a, 0), max(b, 0)
            case "right_shift", [(a, b), (c, d)] if c == d and 0 <= c < 64:
                return a >> c, b >> c
            case "absolute", [(a, b)]:
                return (0 if a <= 0 <= b else min(abs(a), abs(b))), max(abs(a), abs(b))
            case (("count_ones" | "count_leading_zeros"), _):
                return 0, 64
            case _:
                return None


def is_whole(found: Type) -> bool:
    """The type has bounds: an integer or bool."""
    return isinstance(found, DType) and (found.is_integer or found == BOOL)


def _quantity(value: Query) -> Bounds:
    match value.what:
        case "size" | "shape":
            return 0, POSITIONS
        case "index" | "coordinate":
            return 0, POSITIONS - 1
        case "thread":
            return 0, MAX_BLOCK - 1
        case "ndim":
            return 0, 64
        case "stride":
            return -STRIDES, STRIDES
