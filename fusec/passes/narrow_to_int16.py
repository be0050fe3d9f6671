"""Narrow to int16: compute integers in fewer bits where every intermediate value is known to fit.

NumPy's typing wants int32 or int64 for a sum of differences of pixels that must not wrap, and 16 bits hold them all: a
vector takes two to four times as many. Values are bounded by the types that they were converted from, by constants, and
by the operations between.
"""

from __future__ import annotations

from fusec.base.dtypes import BOOL, INT16, INT32, UINT16, DType
from fusec.base.ops import COMPARISONS
from fusec.ir.expr import Apply, Const, Expr, const, convert, scalar_type
from fusec.ir.loops import Declare, Local, Program, Stmt
from fusec.ir.walk import Body, blocks, fixed_names, map_statements, operands, rewriter, with_bodies
from fusec.passes.simplify import simplify_expression

Range = tuple[int, int]

SMALL = (INT16, UINT16, INT32)  # the first of these that holds all values is taken
_COMPARISONS = frozenset(COMPARISONS.values())
_BITS = frozenset({"bitwise_and", "bitwise_or", "bitwise_xor"})
_MOST_SHIFT = 15  # of the narrowest type; wider shifts mean something else there


def narrow_to_int16(program: Program) -> Program:
    """Replace integer operations by the same ones on fewer bits, for targets that hold more of those in a vector.

    Requires: a verified, simplified program whose operations are not expanded yet.
    Ensures: the same bits.
    """
    return with_bodies(program, lambda body: map_statements(body, _Fitter(body).statement))


class _Fitter:
    """One function.

    ranges: what values of few bits lie between, if their types do not tell. names: locals that have fewer bits now.
    """

    def __init__(self, body: Body) -> None:
        self.fixed = fixed_names(body)
        self.ranges: dict[Expr, Range] = {}
        self.names: dict[str, Local] = {}
        self.rewrite = rewriter(self.node)

    def statement(self, stmt: Stmt) -> tuple[Stmt]:
        """One statement on fewer bits; a declaration of what never changes declares fewer bits."""
        roots = operands(stmt)
        found = tuple(map(self.rewrite, roots))
        new = stmt if found == roots else stmt.rebuild(found, blocks(stmt))
        match new:
            case Declare(name, DType() as kind, Apply("convert", (inner,))) if name in self.fixed:
                source = scalar_type(inner)
                if kind.is_integer and source in SMALL and source.bits < kind.bits and inner in self.ranges:
                    self.names[name] = Local(name, source)
                    self.ranges[self.names[name]] = self.ranges[inner]
                    return (Declare(name, source, inner, line=stmt.line),)
        return (new,)

    def node(self, expr: Expr) -> Expr:
        """One node whose operands fit already: those that do are conversions of something of few bits."""
        match expr:
            case Local(name) if name in self.names:
                assert isinstance(expr.type, DType), "an integer"
                return convert(self.names[name], expr.type)
            case Apply("convert", (Apply("convert"),)):
                return simplify_expression(expr)
            case Apply(op, args, kind) if op in _COMPARISONS:
                return self.fitted(op, args, kind, args, None) or expr
            case Apply("where", (_, *args), kind):
                return self.fitted("where", expr.args, kind, tuple(args), kind) or expr
            case Apply(op, args, kind):
                return self.fitted(op, args, kind, args, kind) or expr
        return expr

    def fitted(
        self, op: str, args: tuple[Expr, ...], kind: DType, values: tuple[Expr, ...], wide: DType | None
    ) -> Expr | None:
        """An operation on fewer bits, converted to `wide` if that is given; None if it needs all it has.

        values: those of the operands that are of the operation's type.
        """
        source = scalar_type(values[0])
        if not source.is_integer or all(isinstance(value, Const) for value in values):
            return None
        bounds = [self.bounds(value) for value in values]
        known = [bound for bound in bounds if bound is not None]
        if len(known) < len(bounds):
            return None
        result = (0, 1) if wide is None else result_range(op, known, values)
        if result is None or not _holds(source, result):
            return None
        for small in SMALL:
            if small.bits < source.bits and all(_holds(small, bound) for bound in (*known, result)):
                new = tuple(_in(arg, small) if arg in values else arg for arg in args)
                if wide is None:
                    return Apply(op, new, kind)
                found = Apply(op, new, small)
                self.ranges[found] = result
                return convert(found, wide)
        return None

    def bounds(self, value: Expr) -> Range | None:
        """What a constant or a value converted from fewer bits lies between."""
        match value:
            case Const():
                return int(value.value), int(value.value)
            case Apply("convert", (inner,), target):
                source = scalar_type(inner)
                if source == BOOL:
                    return 0, 1
                if not source.is_integer or source.bits >= target.bits:
                    return None
                found = self.ranges.get(inner, source.limits)
                return found if _holds(target, found) else None
        return None


def result_range(op: str, bounds: list[Range], values: tuple[Expr, ...]) -> Range | None:
    """Between which values an operation's exact result lies, or None for operations that are not known here."""
    (low, high), *others = bounds
    other = others[0] if others else (0, 0)
    divisor = int(values[1].value) if len(values) == 2 and isinstance(values[1], Const) else -1
    match op:
        case "add":
            return low + other[0], high + other[1]
        case "subtract":
            return low - other[1], high - other[0]
        case "multiply":
            products = [a * b for a in (low, high) for b in other]
            return min(products), max(products)
        case "negative":
            return -high, -low
        case "absolute":
            return max(low, -high, 0), max(-low, high)
        case "minimum":
            return min(low, other[0]), min(high, other[1])
        case "maximum":
            return max(low, other[0]), max(high, other[1])
        case "clip":
            (first, last) = others
            return min(max(low, first[0]), last[0]), min(max(high, first[1]), last[1])
        case "where":
            return min(low, other[0]), max(high, other[1])
        case "floor_divide" if divisor > 0:
            return low // divisor, high // divisor
        case "remainder" if divisor > 0:
            return 0, divisor - 1
        case "quotient" | "modulo" if divisor > 0 and low >= 0:
            return (low // divisor, high // divisor) if op == "quotient" else (0, divisor - 1)
        case "left_shift" if 0 <= divisor < _MOST_SHIFT:
            return low << divisor, high << divisor
        case "right_shift" if 0 <= divisor < _MOST_SHIFT:
            return low >> divisor, high >> divisor
        case _ if op in _BITS:
            bits = max(abs(end).bit_length() for end in (low, high, *other))
            return (0 if low >= 0 and other[0] >= 0 else -(1 << bits)), (1 << bits) - 1
    return None


def _in(value: Expr, small: DType) -> Expr:
    """A constant or converted value, of fewer bits."""
    if isinstance(value, Const):
        return const(int(value.value), small)
    return convert(value.children[0], small)


def _holds(kind: DType, bounds: Range) -> bool:
    least, most = kind.limits
    return least <= bounds[0] and bounds[1] <= most
