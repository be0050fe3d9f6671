"""The running total of a reduction in Python: as many parts as its map returns, with their common types.

The types are those of what the map returns, widened by NumPy's promotion until what `combine` returns fits them. A part
whose identity is a number of NumPy's has the dtype of that, and one that `combine` is annotated for has that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fusec.base.dtypes import DType
from fusec.base.records import dataclass
from fusec.base.source import Span
from fusec.errors.base import FusecError
from fusec.errors.python import PartsDiffer
from fusec.frontends.python.kernel_context import Other, value_of
from fusec.frontends.python.types import Kind, PythonType, promote, storage
from fusec.frontends.python.values import Absent, Items, Scalar, adapt, items_of

MAX_WIDENINGS = 16  # each makes some part wider, and there are few types to widen to


@dataclass(frozen=True)
class Parts:
    """What a function returns, or an element if there is no map.

    whose: of which function, for messages. span: where it says so, or where a message is to point. has_line: it does.
    """

    whose: str
    kinds: tuple[Kind, ...]
    is_tuple: bool
    span: Span
    has_line: bool = True

    def __str__(self) -> str:
        return f"{self.whose} {self.counted}{self.place}"

    @property
    def place(self) -> str:
        """Where, in messages."""
        return f" on line {self.span.line}" if self.has_line else ""

    @property
    def counted(self) -> str:
        """How many numbers."""
        return _counted(len(self.kinds), self.is_tuple)

    def part(self, at: int) -> str:
        """One of them in messages."""
        which = f" as value {at + 1}" if self.is_tuple else ""
        return f"{self.whose} {self.kinds[at]}{which}{self.place}"


def identity_of(capture: object) -> tuple[tuple[Scalar, ...], bool] | None:
    """The numbers of an identity, and whether they come as a tuple; None if there is none, or it is no such thing."""
    found = value_of(capture, "identity") if isinstance(capture, tuple) else Absent()
    if isinstance(found, (Absent, Other)):
        return None
    items = items_of(found)
    numbers = tuple(item for item in items if isinstance(item, Scalar))
    if len(numbers) != len(items) or not items:
        return None
    return numbers, isinstance(found, Items)


def settled(
    first: Parts,
    identity: tuple[tuple[Scalar, ...], bool] | None,
    annotated: DType | None,
    combine: Callable[[tuple[Kind, ...]], Parts],
) -> tuple[Kind, ...]:
    """The types of all parts. first: what the map returns. combine: from types held to what is returned for them.

    Raises PartsDiffer for different numbers of parts, and for types that do not go together.
    """
    fixed: tuple[DType | None, ...] = tuple(annotated for _ in first.kinds)
    kinds = first.kinds
    if identity is not None:
        numbers, is_tuple = identity
        if len(numbers) != len(kinds) or is_tuple != first.is_tuple:
            given = f"identity= is {_counted(len(numbers), is_tuple)}"
            raise PartsDiffer(str(first), given, _example(first)).at(first.span)
        fixed = fixed if annotated else tuple(each.type if isinstance(each.type, DType) else None for each in numbers)
        pairs = zip(kinds, [each.type for each in numbers], strict=True)
        kinds = tuple((promote(kind, each) if isinstance(each, PythonType) else None) or kind for kind, each in pairs)
    held = "identity= makes it" if annotated is None else "combine is annotated for"
    kinds = tuple(
        _fits(first, at, dtype, held) if dtype is not None else kind
        for at, (kind, dtype) in enumerate(zip(kinds, fixed, strict=True))
    )
    for _ in range(MAX_WIDENINGS):
        found = combine(kinds)
        if len(found.kinds) != len(kinds) or found.is_tuple != first.is_tuple:
            cure = "both must return the same parts, because results of combine are combined again"
            raise PartsDiffer(str(first), str(found), cure).at(found.span)
        wider = tuple(
            _wider(first, kinds, found, at) if dtype is None else _fits(found, at, dtype, held)
            for at, dtype in enumerate(fixed)
        )
        if wider == kinds:
            _check_numbers(first, kinds, identity)
            return kinds
        kinds = wider
    raise AssertionError("the types of an accumulator settle")


def _wider(first: Parts, kinds: tuple[Kind, ...], found: Parts, at: int) -> Kind:
    """A type for what is held and for what is returned. Raises PartsDiffer if NumPy has none."""
    kind = promote(kinds[at], found.kinds[at])
    if kind is None:
        cure = f"NumPy has no dtype for both: convert one, e.g. np.{storage(kinds[at])}(...)"
        raise PartsDiffer(first.part(at), found.part(at), cure).at(found.span)
    return kind


def _fits(found: Parts, at: int, dtype: DType, held: str) -> DType:
    """The dtype that a part has to have. Raises PartsDiffer if it cannot hold what is returned."""
    given = found.kinds[at]
    fits = isinstance(given, PythonType) and promote(given, dtype) == dtype
    if not fits and not np.can_cast(storage(given).numpy, dtype.numpy, "same_kind"):
        cure = f"convert it, np.{dtype}(...), or let the accumulator be {storage(given)}"
        raise PartsDiffer(found.part(at), f"{held} {dtype}", cure).at(found.span)
    return dtype


def _check_numbers(first: Parts, kinds: tuple[Kind, ...], identity: tuple[tuple[Scalar, ...], bool] | None) -> None:
    """Raise PartsDiffer for Python integers in the identity that the accumulator cannot hold."""
    for kind, each in zip(kinds, identity[0] if identity is not None else (), strict=False):
        try:
            adapt(each, kind, first.span)
        except FusecError:
            cure = "convert what is combined first, e.g. map=lambda x: np.int64(x)"
            held = f"what is combined is {storage(kind)}"
            raise PartsDiffer(held, f"identity= is {each.literal}", cure).at(first.span) from None


def _counted(count: int, is_tuple: bool) -> str:
    return f"a tuple of {count}" if is_tuple else "one number"


def _example(first: Parts) -> str:
    """What an identity could be."""
    zeros = ", ".join("0" for _ in first.kinds)
    return f"write identity=({zeros}{',' if len(first.kinds) == 1 else ''})" if first.is_tuple else "write one number"
