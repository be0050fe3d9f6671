"""Expressions of the loops IR as C text, with the meaning fusec gives them.

Note [Overflow]: signed overflow is undefined in C and wraps here. Sums, products and left shifts of signed integers
print as plain operators where their bounds show that they fit; elsewhere the whole chain is computed in the unsigned
type of the same width, where C wraps, and cast back once: ``(int)((unsigned)x * 1664525 + 1013904223)``. Division,
remainder and shifts by something that is not a suitable constant go through small helper functions.

Note [Index arithmetic]: sums, differences and products of int64 that stand directly in an index print as plain
operators even where nothing bounds them. No array has 2**63 elements, so an index whose computation overflows counts
as out of bounds, which an access must not be; the text computes it only where the address is asked for. A value that
has a name, or that anything else sees, wraps as always; so do narrower integers, which may wrap to a valid index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusec.base.dtypes import BOOL, COMPUTE_FLOATS, INT64, DType, c_common, unsigned_of
from fusec.codegen.c_family import conversions
from fusec.codegen.c_family.bounds import BoundsOf, is_whole
from fusec.codegen.c_family.literals import literal
from fusec.codegen.c_family.pieces import (
    BIT_AND,
    OPERATORS,
    POSTFIX,
    PRIMARY,
    SHIFT,
    Piece,
    cast,
    infix,
    prefix,
    ternary,
)
from fusec.codegen.c_family.places import AddressPrinter, AddressText
from fusec.codegen.c_family.spelling import COMPLEX_STRUCTS, Spelling
from fusec.codegen.c_family.tables import table_name
from fusec.ir.expr import Apply, Const, Expr, Lookup, Pointer, Space, Struct, scalar_type, type_of
from fusec.ir.loops import At, Call, Element, Field, Load, Local, LocalArray, Make, Moved, Offset, Query
from fusec.ir.walk import inner_first

_SHALLOW = 16  # levels of an expression that are printed by plain recursion
_WRAPPING = frozenset({"add", "subtract", "multiply", "negative"})


class ExprPrinter:
    """Prints expressions of one function.

    names: C names of locals, by their names in the IR. places: None in a function that is not the kernel. named: values
    that a statement gave a name of their own.
    """

    def __init__(self, spelling: Spelling, names: dict[str, str], places: AddressPrinter | None = None) -> None:
        self.spelling, self.names, self.places = spelling, names, places
        self.bounds = BoundsOf()
        self.named: dict[Expr, str] = {}
        self._ready: dict[Expr, Piece] = {}

    # --- one statement at a time -----------------------------------------------------------------------------

    def prepare(self, roots: Sequence[Expr]) -> None:
        """Print deep expressions from the bottom up, so that recursion stays shallow however deep they are."""
        depth: dict[Expr, int] = {}
        for node in inner_first(roots):
            depth[node] = 1 + max((depth[child] for child in node.children), default=0)
            if is_whole(type_of(node)):
                self.bounds(node)
            if depth[node] > _SHALLOW and isinstance(node, Apply | Load | Call | Lookup):
                self._ready[node] = self.piece(node)

    def forget(self) -> None:
        """Start a new statement: names from the last one no longer hold."""
        self.named.clear()
        self._ready.clear()

    # --- entry points ----------------------------------------------------------------------------------------

    def text(self, value: Expr) -> str:
        """A value where C converts it to its own type: an initialiser, an argument, the right side of `=`."""
        return self.loose(value).text

    def loose(self, value: Expr) -> Piece:
        """A value whose context converts it to its dtype."""
        return literal(value, self.spelling, loose=True) if isinstance(value, Const) else self.piece(value)

    def index(self, value: Expr) -> Piece:
        """An int64 value as a subscript: C widens narrower integers by itself."""
        match value:
            case Apply("convert", (source,)) if _widens_to_int64(source):
                return self.piece(source)
            case Apply():
                return self._term(value)
            case _:
                return self.loose(value)

    def _term(self, value: Expr) -> Piece:
        """Part of an index; see Note [Index arithmetic]."""
        match value:
            case Apply("add" | "subtract" | "multiply", (left, right), dtype) if (
                dtype == INT64 and value not in self.named and value not in self._ready
            ):
                symbol, level = OPERATORS[value.op]
                first = self._operand(left, right, self._term)
                return infix(symbol, level, first, self._operand(right, left, self._term))
            case _:
                return self.piece(value)

    def piece(self, value: Expr) -> Piece:
        """A value, as a text of its own type (narrow integers: of a type that C promotes to the same value)."""
        if value in self.named:
            return Piece(self.named[value], PRIMARY)
        if value in self._ready:
            return self._ready[value]
        match value:
            case Const():
                return literal(value, self.spelling)
            case Local():
                return Piece(self.names[value.name], PRIMARY)
            case Load():
                return self._loaded(value)
            case Query():
                assert self.places is not None, "a function asks for a fact about the kernel's arrays"
                return self.places.query(value, self.index)
            case Call():
                arguments = ", ".join(self.text(arg) for arg in value.args)
                return Piece(f"{self.spelling.called[value.function]}({arguments})", POSTFIX)
            case Field():
                field = self.field(value.value, value.name)
                return Piece(f"{self.piece(value.value).at(POSTFIX)}.{field}", POSTFIX)
            case Lookup():
                last = Piece(str(len(value.values) - 1), PRIMARY)
                index = infix("&", BIT_AND, self.piece(value.index), last)
                return Piece(f"{table_name(value)}[{index.text}]", POSTFIX)
            case Make():
                parts = ", ".join(self.text(each) for each in value.fields)
                return Piece(f"{self.spelling.type(value.type)}{{{parts}}}", POSTFIX)
            case Apply():
                return self._apply(value)
            case Element() | At() | LocalArray() | Offset() | Moved():
                return self.place(value).address
            case _:
                raise AssertionError(f"cannot print {type(value).__name__}")

    def _loaded(self, load: Load) -> Piece:
        """The element at an address; 0 for threads that must leave the memory of others alone."""
        element, pointer, only = self.place(load.pointer).value, type_of(load.pointer), self.places and self.places.only
        if not only or not isinstance(pointer, Pointer) or pointer.space != "global":
            return element
        return ternary(Piece(only, PRIMARY), element, literal(Const(0, load.type), self.spelling))

    def place(self, pointer: Expr) -> AddressText:
        """The place an address denotes."""
        match pointer:
            case Element() | At() | Moved():
                assert self.places is not None, "a function addresses an array of the kernel"
                return self.places.place(pointer, self.index)
            case LocalArray(name):
                return AddressText(Piece(self.names[name], PRIMARY), Piece("0", PRIMARY))
            case Offset(base, distance):
                return self._offset(base, distance)
            case _:
                assert isinstance(type_of(pointer), Pointer), f"expected an address, got {type_of(pointer)}"
                return AddressText(self.piece(pointer))

    def updated_as(self, pointer: Expr) -> tuple[DType, Space]:
        """The type of what atomic updates at an address change, and the memory it is in."""
        if isinstance(pointer, At) and self.places is not None and pointer.param in self.places.copies:
            return self.places.copies[pointer.param].word, "shared"
        found = type_of(pointer)
        assert isinstance(found, Pointer), "an atomic needs an address"
        return found.element, found.space

    def _offset(self, base: Expr, distance: Expr) -> AddressText:
        inner = self.place(base)
        index = self.index(distance)
        if inner.distance is None or inner.distance.text == "0":
            return AddressText(inner.pointer, index)
        return AddressText(inner.address, index)

    def field(self, value: Expr, name: str) -> str:
        """The C name of a field of a struct."""
        struct = type_of(value)
        assert isinstance(struct, Struct), f"{struct} has no fields"
        return self.spelling.structs[struct].fields[name]

    # --- ops -------------------------------------------------------------------------------------------------

    def _apply(self, value: Apply) -> Piece:
        source = type_of(value.args[0])
        assert isinstance(source, DType), f"{value.op} of {source}"
        template = self.spelling.ops.get((value.op, source))
        if template is not None:
            return Piece(template.format(*(self.text(arg) for arg in value.args)), POSTFIX)
        if source.is_complex:
            return self._complex(value, source)
        if source.is_integer and value.op in _INTEGER_OPS:
            return self._integer(value)
        if source == BOOL and value.op in _BOOL_OPS:
            return self._binary(Apply(_BOOL_OPS[value.op], value.args, BOOL))
        match value.op:
            case "convert":
                return conversions.convert(self.piece(value.args[0]), source, value.type, self.spelling)
            case "bitcast":
                return conversions.bitcast(self.piece(value.args[0]), source, value.type, self.spelling)
            case "where":
                return self._where(value)
            case "logical_not":
                return prefix("!", self.piece(value.args[0]))
            case "bitwise_invert":
                inverted = prefix("~", self.piece(value.args[0]))
                return cast(self.spelling.type(source), inverted) if source.bits < 32 else inverted
            case "negative":
                return prefix("-", self.piece(value.args[0]))
            case "complex":
                parts = ", ".join(self.text(arg) for arg in value.args)
                return Piece(f"{COMPLEX_STRUCTS[value.type]}{{{parts}}}", POSTFIX)
            case _:
                return self._binary(value)

    def _binary(self, value: Apply) -> Piece:
        """An op that is an operator of C, on operands of one type."""
        assert value.op in OPERATORS, f"op {value.op} on {type_of(value.args[0])} is not primitive on any C target"
        symbol, level = OPERATORS[value.op]
        left, right = value.args
        return infix(symbol, level, self._operand(left, right), self._operand(right, left))

    def _operand(self, value: Expr, other: Expr, show: Callable[[Expr], Piece] | None = None) -> Piece:
        """One operand beside the other, whose C type converts it: casts and suffixes that C implies are left out."""
        show = show or self.piece
        if isinstance(other, Const):
            return show(value)
        if isinstance(value, Const):
            return self.loose(value)
        match value, other:
            case Apply("convert"), Apply("convert"):
                return self.piece(value)
            case Apply("convert", (source,), target), _ if value not in self.named and _is_implied(source, target):
                return self.piece(source)
            case _:
                return show(value)

    def _where(self, value: Apply) -> Piece:
        condition, chosen, other = value.args
        return ternary(self.piece(condition), self._branch(chosen, other), self._branch(other, chosen))

    def _branch(self, value: Expr, other: Expr) -> Piece:
        return self.piece(value) if isinstance(other, Const) else self.loose(value)

    def _complex(self, value: Apply, source: DType) -> Piece:
        operands = [self.piece(arg) for arg in value.args]
        match value.op:
            case "real" | "imag":
                return Piece(f"{operands[0].at(POSTFIX)}.{value.op[:2]}", POSTFIX)
            case "convert":
                return conversions.convert(operands[0], source, value.type, self.spelling)
            case "equal" | "not_equal":
                equal = Piece(f"fusec_equal_{source}({operands[0].text}, {operands[1].text})", POSTFIX)
                return equal if value.op == "equal" else prefix("!", equal)
            case _:
                raise AssertionError(f"op {value.op} on {source} should have been expanded by fusec.math")

    # --- integers --------------------------------------------------------------------------------------------

    def _integer(self, value: Apply) -> Piece:
        dtype = value.type
        match value.op:
            case "add" | "subtract" | "multiply" | "negative":
                return self._wrapping(value)
            case "left_shift":
                return self._wrapping(value) if self._is_shift(value.args[1], dtype) else self._helper(value)
            case "right_shift":
                if not self._is_shift(value.args[1], dtype):
                    return self._helper(value)
                return infix(">>", SHIFT, self.piece(value.args[0]), self.loose(value.args[1]))
            case "quotient" | "modulo":
                plain = self._divides(value) and (value.op == "quotient" or self._has_remainder(value))
                return self._division(value) if plain else self._helper(value)
            case "absolute":
                return self.piece(value.args[0]) if dtype.kind == "unsigned" else self._helper(value)
            case _:
                raise AssertionError(f"{value.op} is not an integer op")

    def _helper(self, value: Apply) -> Piece:
        arguments = ", ".join(self.text(arg) for arg in value.args)
        return Piece(f"fusec_{value.op}_{value.type}({arguments})", POSTFIX)

    def _wrapping(self, value: Apply) -> Piece:
        """See Note [Overflow]."""
        dtype = value.type
        if dtype.bits < 32:  # promoted to int, in which only a shift or the product of two uint16 can overflow
            wide = value.op == "left_shift" or (dtype.bits == 16 and value.op == "multiply")
            return cast(self.spelling.type(dtype), self._ring(value) if wide else self._plain(value))
        if dtype.kind == "unsigned" or not self._wraps(value):
            return self._plain(value)
        return cast(self.spelling.type(dtype), self._ring(value))

    def _plain(self, value: Apply) -> Piece:
        match value:
            case Apply("negative", (operand,)):
                return prefix("-", self.piece(operand))
            case Apply("left_shift", (operand, count)):
                return infix("<<", SHIFT, self.piece(operand), self.loose(count))
            case _:
                return self._binary(value)

    def _ring(self, value: Expr) -> Piece:
        """A signed value in the unsigned type of the same width (at least 32 bits)."""
        dtype = scalar_type(value)
        unsigned = self.spelling.integer_type(max(dtype.bits, 32), signed=False)
        match value:
            case Const():
                return literal(Const(value.bits, unsigned_of(dtype.bits)), self.spelling)
            case Apply("negative", (operand,)) if self._wraps(value):
                return prefix("-", self._ring(operand))
            case Apply("left_shift", (operand, count)) if self._wraps(value) and self._is_shift(count, dtype):
                return infix("<<", SHIFT, self._ring(operand), self.loose(count))
            case Apply("add" | "subtract" | "multiply", (left, right)) if self._wraps(value):
                symbol, level = OPERATORS[value.op]
                return infix(symbol, level, self._ring(left), self._ring_right(right))
            case Apply("convert", (source,)) if value not in self.named and _is_small_integer(source, dtype):
                return cast(unsigned, self.piece(source))
            case _:
                return cast(unsigned, self.piece(value))

    def _ring_right(self, value: Expr) -> Piece:
        """The right operand beside an unsigned left one, which converts it."""
        match value:
            case Const() if int(value.value) >= 0:
                return literal(value, self.spelling, loose=True)
            case Apply("convert", (source,)) if value not in self.named and _is_small_integer(
                source, scalar_type(value)
            ):
                return self.piece(source)
            case Apply(op) if op in ("add", "subtract", "multiply", "negative", "left_shift") and self._wraps(value):
                return self._ring(value)
            case Const():
                return self._ring(value)
            case _:
                return self.piece(value)

    def _wraps(self, value: Apply) -> bool:
        """The op may overflow, and is not the value of a variable already."""
        if value in self.named or not value.type.is_integer:
            return False
        if value.op == "left_shift" and self.bounds(value.args[0])[0] < 0:
            return True  # undefined for negative numbers before C++20
        return value.type.bits < 32 or self.bounds.overflows(value)

    def _is_shift(self, count: Expr, dtype: DType) -> bool:
        """The count is certainly inside the width."""
        low, high = self.bounds(count)
        return low >= 0 and high < dtype.bits

    def _divides(self, value: Apply) -> bool:
        """Neither division by zero nor the least number by -1 can happen."""
        low, high = self.bounds(value.args[1])
        least = self.bounds(value.args[0])[0]
        overflows = value.type.kind == "signed" and least == -(1 << (value.type.bits - 1)) and low <= -1 <= high
        return (low > 0 or high < 0) and not overflows

    def _has_remainder(self, value: Apply) -> bool:
        """`%` of C gives what fusec means, on every target."""
        return self.spelling.signed_remainder or all(self.bounds(arg)[0] >= 0 for arg in value.args)

    def _division(self, value: Apply) -> Piece:
        quotient = self._binary(value)
        return quotient if value.type.bits >= 32 else cast(self.spelling.type(value.type), quotient)


_INTEGER_OPS = _WRAPPING | {"left_shift", "right_shift", "quotient", "modulo", "absolute"}
_BOOL_OPS = {"bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "not_equal"}


def _is_small_integer(source: Expr, target: DType) -> bool:
    """C converts the source to the unsigned type of the target's width as the IR's conversion would."""
    found = type_of(source)
    return isinstance(found, DType) and (found == BOOL or (found.is_integer and found.bits < target.bits))


def _widens_to_int64(source: Expr) -> bool:
    found = type_of(source)
    return isinstance(found, DType) and found != INT64 and (found == BOOL or (found.is_integer and found.bits < 64))


def _is_implied(source: Expr, target: DType) -> bool:
    """C's usual conversions would turn the source into the target beside an operand of that type."""
    found = type_of(source)
    if not isinstance(found, DType) or found.is_complex or (found.is_float and found not in COMPUTE_FLOATS):
        return False
    return target.bits >= 32 and c_common(found, target) == target
