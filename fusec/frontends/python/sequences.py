"""Tuples and arrays from outside as sequences: items at computed indices, and the values of loops."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from fusec.base.diagnostics import counted
from fusec.base.dtypes import BOOL, FLOAT32, FLOAT64, INT32, INT64, UINT64, real_type, unsigned_of
from fusec.base.records import dataclass, replace
from fusec.base.source import Span
from fusec.errors.language import BadIndex, UnknownMember
from fusec.frontends.python import syntax as s
from fusec.frontends.python.types import PY_INT, Kind, is_bool, is_integer, join
from fusec.frontends.python.values import Items, Scalar, Table, Type, Value, adapt, converted, literal, show, truth
from fusec.ir.expr import Const, Expr, Lookup, apply, const, scalar_type

Place = int | Expr
"""Where an item lies: a number, or int64 that is at least 0 and below the length."""

KNOWN = "write a number, or a name that stands for one"


@dataclass(frozen=True)
class Sequence:
    """The values of a loop: their number; item: the one at a place."""

    length: int
    item: Callable[[Place], Value]


def sequence_of(value: Value, span: Span) -> Sequence | None:
    """A tuple, or an array along its first axis; None for other values."""
    match value:
        case Items(items=items):
            return Sequence(len(items), lambda place: _of_items(items, place, span))
        case Table(shape=(length, *_)):
            return Sequence(length, lambda place: _of_table(value, (place,)))
    return None


def parts_of(value: Value, span: Span) -> tuple[Value, ...] | None:
    """The items of a tuple, and the rows of an array; None for what has neither."""
    found = sequence_of(value, span)
    return None if found is None else tuple(map(found.item, range(found.length)))


def numbered(place: Place) -> Scalar:
    """A place as a Python number."""
    return literal(place) if isinstance(place, int) else Scalar(PY_INT, place)


def item(owner: Items | Table, indices: list[Scalar], span: Span) -> Value:
    """``t[i]``, and ``t[i, j]`` of an array; negative indices count from the end.

    As the kernel runs, an index outside is that of the nearest item. Raises BadIndex.
    """
    if isinstance(owner, Items):
        if len(indices) != 1:
            raise BadIndex(f"{len(indices)} indices into a tuple", "write t[i][j] for an item of an item").at(span)
        return _of_items(owner.items, place_of(indices[0], len(owner.items), show(owner), span), span)
    if len(indices) > len(owner.shape):
        axes = counted(len(owner.shape), "axis", "axes")
        raise BadIndex(f"{len(indices)} indices into an array of {axes}", "write one for each axis").at(span)
    extents = zip(indices, owner.shape, strict=False)
    return _of_table(owner, tuple(place_of(index, length, f"an axis of {length}", span) for index, length in extents))


def place_of(index: Scalar, length: int, owner: str, span: Span) -> Place:
    """The position of an index in a sequence of a length. Raises BadIndex for a known one that is outside."""
    number = known_number(index)
    if number is None and (is_bool(index.type) or not is_integer(index.type)):
        raise BadIndex(f"{index.type} as an index", "indices are integers: convert with int(x)").at(span)
    if number is not None and not isinstance(number, int):
        raise BadIndex(f"{number} as an index", "indices are integers: convert with int(x)").at(span)
    if number is not None and not -length <= number < length:
        raise BadIndex(f"index {number} of {owner}", "count from 0").at(span)
    if length == 0:
        raise BadIndex(f"an index of {owner}, which is empty,", "test for that before the kernel is called").at(span)
    if number is not None:
        return number % length
    place = index.read()
    if scalar_type(place) == UINT64:
        place = apply("minimum", place, const(2**63 - 1, UINT64))
    return apply("position", converted(place, INT64), const(length, INT64))


def known_number(value: Scalar) -> bool | int | float | complex | None:
    """The number of a value, if it is known when the kernel is compiled."""
    if value.literal is None and isinstance(value.expr, Const) and value.expr.type != BOOL:
        return value.expr.value.item()  # type: ignore[no-any-return]
    return value.literal


def fact_of(table: Table, node: s.Attribute) -> Value:
    """``t.shape``, ``t.size``, ``t.ndim`` and ``t.dtype``. Raises UnknownMember."""
    match node.name:
        case "shape":
            return Items(tuple(map(literal, table.shape)))
        case "size":
            return literal(prod(table.shape))
        case "ndim":
            return literal(len(table.shape))
        case "dtype":
            return Type(table.kind)
    cure = "arrays have .shape, .size, .ndim and .dtype here; compute others before, and use the result"
    raise UnknownMember(show(table), node.name, cure).at(node.span)


# --- arrays -------------------------------------------------------------------------------------------------------


def _of_table(table: Table, places: tuple[Place, ...]) -> Value:
    """The element at as many places as there are axes, or the part at fewer."""
    rest = table.shape[len(places) :]
    start: Place = table.start if table.start is not None else 0
    offset: Place = 0
    for place, length in zip(places, table.shape, strict=False):
        offset = _sum(_product(offset, length), place)
    start = _sum(start, _product(offset, prod(rest)))
    if isinstance(start, int):
        part = table.values[start : start + prod(rest)]
        return Table(table.kind, part, rest) if rest else Scalar(table.kind, part[0])
    return replace(table, shape=rest, start=start) if rest else Scalar(table.kind, lookup(table.values, start))


def _product(place: Place, count: int) -> Place:
    if isinstance(place, int):
        return place * count
    return place if count == 1 else apply("multiply", place, const(count, INT64))


def _sum(left: Place, right: Place) -> Place:
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    if 0 in (left, right):
        return right if left == 0 else left
    return apply("add", *(const(each, INT64) if isinstance(each, int) else each for each in (left, right)))


def lookup(values: tuple[Const, ...], place: Expr) -> Expr:
    """One of several constants of a dtype, by a place among them."""
    dtype = values[0].type
    if dtype.is_complex:
        part, mask = real_type(dtype), (1 << dtype.bits // 2) - 1
        real = lookup(tuple(Const(each.bits & mask, part) for each in values), place)
        return apply("complex", real, lookup(tuple(Const(each.bits >> part.bits, part) for each in values), place))
    if dtype == BOOL or (dtype.is_integer and dtype.bits < INT32.bits):
        wide = lookup(tuple(const(int(each.value), INT32) for each in values), place)
        return truth(wide) if dtype == BOOL else converted(wide, dtype)
    if dtype in (FLOAT32, FLOAT64) and not all(map(_is_plain, values)):
        whole = unsigned_of(dtype.bits)
        return apply("bitcast", lookup(tuple(Const(each.bits, whole) for each in values), place), target=dtype)
    count = max(2, 1 << (len(values) - 1).bit_length())
    return Lookup((*values, *values[-1:] * (count - len(values))), place, dtype)


def _is_plain(value: Const) -> bool:
    """Whether every target has a literal for it that may stand in a constant table: finite, normal, and no -0.0."""
    exponents = (1 << value.type.bits - 1 - value.type.mantissa) - 1
    return value.bits == 0 or 0 < value.bits >> value.type.mantissa & exponents < exponents


# --- tuples -------------------------------------------------------------------------------------------------------


def _of_items(items: tuple[Value, ...], place: Place, span: Span) -> Value:
    """The item at a place: numbers of one type, or tuples of as many of them. Raises BadIndex."""
    if isinstance(place, int):
        return items[place]
    numbers = [each for each in items if isinstance(each, Scalar)]
    if len(numbers) == len(items):
        return _of_numbers(numbers, place, span)
    rows = [parts_of(each, span) for each in items]
    known = [row for row in rows if row is not None]
    if len(known) != len(rows) or len({len(row) for row in known}) != 1:
        what = "the index of a tuple whose items differ in type must be known"
        raise BadIndex(what, KNOWN).at(span)
    return Items(tuple(_of_items(column, place, span) for column in zip(*known, strict=True)))


def _of_numbers(items: list[Scalar], place: Expr, span: Span) -> Scalar:
    kind: Kind = items[0].type
    for each in items[1:]:
        found = join(kind, each.type)
        if found is None:
            what = f"the index of a tuple of {kind} and {each.type} must be known"
            raise BadIndex(what, f"{KNOWN}; or convert the items to one dtype").at(span)
        kind = found
    return Scalar(kind, chosen([adapt(each, kind, span).read(span) for each in items], place))


def chosen(values: list[Expr], place: Expr) -> Expr:
    """The value at a place."""
    constants = tuple(each for each in values if isinstance(each, Const))
    return lookup(constants, place) if len(constants) == len(values) else _halved(values, 0, place)


def _halved(exprs: list[Expr], first: int, place: Expr) -> Expr:
    """One of several values by halving: as deep as the number of them has digits."""
    if len(exprs) == 1:
        return exprs[0]
    middle = len(exprs) // 2
    low, high = _halved(exprs[:middle], first, place), _halved(exprs[middle:], first + middle, place)
    return apply("where", apply("less", place, const(first + middle, INT64)), low, high)
