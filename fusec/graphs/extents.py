"""Extents of arrays: integers, or polynomials with integer coefficients over named sizes that calls decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from math import prod
from typing import Union

from fusec.base.records import dataclass
from fusec.errors.graphs import GraphShapes

Size = Union[int, "Extent"]
Shape = tuple[Size, ...]


@dataclass(frozen=True)
class Quotient:
    """The quotient of an extent and a positive integer, rounded down: part of a product in another extent."""

    dividend: Extent
    divisor: int

    def __str__(self) -> str:
        text = str(self.dividend)
        return f"({text if text.isidentifier() else f'({text})'} // {self.divisor})"


Factor = str | Quotient
Terms = dict[tuple[Factor, ...], int]


@dataclass(frozen=True)
class Extent:
    """A sum of products of sizes. Two extents that are equal for all sizes are equal objects, quotients aside.

    >>> from fusec import graph
    >>> n = graph.size("n")
    >>> 2 * (n + 1) == n + n + 2
    True
    """

    terms: tuple[tuple[tuple[Factor, ...], int], ...]  # products of factors in order, each with its coefficient

    def __add__(self, other: Size) -> Size:
        return _sum((self, other))

    __radd__ = __add__

    def __neg__(self) -> Size:
        return self * -1

    def __sub__(self, other: Size) -> Size:
        return _sum((self, other * -1))

    def __rsub__(self, other: Size) -> Size:
        return _sum((other, self * -1))

    def __mul__(self, other: Size) -> Size:
        found: Counter[tuple[Factor, ...]] = Counter()
        for one, count in self.terms:
            for more, times in _terms(other).items():
                found[tuple(sorted((*one, *more), key=str))] += count * times
        return _extent(found)

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Size:
        if isinstance(divisor, bool) or not isinstance(divisor, int) or divisor < 1:
            return NotImplemented
        terms = dict(self.terms)
        if all(count % divisor == 0 for count in terms.values()):
            return _extent({factors: count // divisor for factors, count in terms.items()})
        return Extent((((Quotient(self, divisor),), 1),))

    @property
    def names(self) -> frozenset[str]:
        """The sizes that it depends on."""
        factors = [factor for product, _ in self.terms for factor in product]
        return frozenset(
            name for each in factors for name in ([each] if isinstance(each, str) else each.dividend.names)
        )

    def at(self, sizes: Mapping[str, int]) -> int:
        """The integer that it is for these sizes.

        >>> from fusec import graph
        >>> (2 * graph.size("n") + 1).at({"n": 3})
        7
        """
        return sum(count * prod(_value(each, sizes) for each in product) for product, count in self.terms)

    def __str__(self) -> str:
        found = ""
        for product, count in self.terms:
            text = " * ".join([*([str(abs(count))] if abs(count) != 1 or not product else []), *map(str, product)])
            sign = "-" if count < 0 else "+"
            found += f" {sign} {text}" if found else f"{'-' * (count < 0)}{text}"
        return found

    def __repr__(self) -> str:
        return f"Extent({str(self)!r})"


def size(name: str) -> Extent:
    """The extent that a name stands for.

    >>> from fusec import graph
    >>> graph.Graph("example").input("x", "float32", (graph.size("n") * 2, 4)).shape
    (Extent('2 * n'), 4)
    """
    return Extent((((name,), 1),))


def at(given: Size, sizes: Mapping[str, int]) -> int:
    """The integer that an extent is for these sizes."""
    return given if isinstance(given, int) else given.at(sizes)


def shape_at(shape: Shape, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The extents of an array for these sizes. Raises GraphShapes if there are none."""
    found = tuple([at(each, sizes) for each in shape])
    for extent, each in zip(shape, found, strict=True):
        if each < 0:
            raise GraphShapes(f"the extent {extent} is {each}", f"sizes are {dict(sizes)}").at()
    return found


def unknown_in(given: Size, known: Container[str]) -> str:
    """The only size that is not known in an extent that tells it, since it is of degree one; "" if there is none."""
    names = [name for name in names_of(given) if name not in known]
    if len(names) != 1 or isinstance(given, int):
        return ""
    factors = [factors for factors, _ in given.terms if any(each not in known for each in _names(factors))]
    return names[0] if all(each.count(names[0]) == 1 for each in factors) else ""


def _names(factors: Iterable[Factor]) -> list[str]:
    return [name for each in factors for name in ([each] if isinstance(each, str) else each.dividend.names)]


def solved(given: Size, value: int, known: Mapping[str, int]) -> dict[str, int]:
    """The size that makes an extent this integer, if the extent tells it."""
    name = unknown_in(given, known)
    if not name:
        return {}
    rest = at(given, {**known, name: 0})
    by = at(given, {**known, name: 1}) - rest
    return {name: (value - rest) // by} if by and (value - rest) % by == 0 and (value - rest) // by >= 0 else {}


def decided(extents: Iterable[Size]) -> set[str]:
    """The sizes that arrays of these extents tell."""
    known: set[str] = set()
    pending = [each for each in extents if names_of(each)]
    for _ in range(len(pending)):
        known.update(filter(None, [unknown_in(each, known) for each in pending]))
    return known


def names_of(given: Size) -> frozenset[str]:
    """The sizes that an extent depends on."""
    return frozenset() if isinstance(given, int) else given.names


def product(extents: Iterable[Size]) -> Size:
    """The number of elements of a shape."""
    found: Size = 1
    for each in extents:
        found = found * each
    return found


def divided(whole: Size, part: Size) -> Size | None:
    """The extent that times `part` is `whole`, if it is found: `part` is an integer or one product of sizes."""
    if isinstance(whole, int) and isinstance(part, int):
        return whole // part if part and whole % part == 0 else None
    terms = _terms(part)
    if len(terms) != 1:
        return 1 if whole == part else None
    ((factors, count),) = terms.items()
    found: Terms = {}
    for product_of, times in _terms(whole).items():
        rest = list(product_of)
        if times % count:
            return None
        for each in factors:
            if each not in rest:
                return None
            rest.remove(each)
        found[tuple(rest)] = times // count
    return _extent(found)


def _terms(given: Size) -> Terms:
    return ({(): given} if given else {}) if isinstance(given, int) else dict(given.terms)


def _sum(parts: Iterable[Size]) -> Size:
    found: Counter[tuple[Factor, ...]] = Counter()
    for each in parts:
        for product_of, count in _terms(each).items():
            found[product_of] += count
    return _extent(found)


def _extent(terms: Mapping[tuple[Factor, ...], int]) -> Size:
    kept = {factors: count for factors, count in terms.items() if count}
    if not kept.keys() - {()}:
        return kept.get((), 0)
    # The longest products first, constants last, as one writes polynomials.
    ordered = sorted(kept.items(), key=lambda term: (-len(term[0]), tuple(map(str, term[0]))))
    return Extent(tuple(ordered))


def _value(factor: Factor, sizes: Mapping[str, int]) -> int:
    return sizes[factor] if isinstance(factor, str) else factor.dividend.at(sizes) // factor.divisor
