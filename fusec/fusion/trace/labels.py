"""Labels of other libraries' arrays, such as the index of a Series: calls compare them, and kernels ignore them."""

from __future__ import annotations

from typing import Any, NamedTuple

from fusec.errors.base import FusecError
from fusec.errors.fusing import NotTraceable

CURE = "align them before, as a, b = a.align(b) does, or pass plain arrays, as a.to_numpy() gives"


class Labelled(NamedTuple):
    """The name of an array with labels, and the labels of each axis."""

    name: str
    labels: tuple[Any, ...]


def labels_of(value: Any) -> tuple[Any, ...]:
    """The labels of each axis as pandas and xarray have them; () for an object without labels."""
    kind = type(value)
    if not hasattr(kind, "reindex"):
        return ()
    if hasattr(kind, "axes"):
        return tuple(value.axes)
    return tuple((each, value.indexes.get(each)) for each in value.dims) if hasattr(kind, "dims") else ()


def aligned(known: tuple[Labelled, ...], name: str, value: Any) -> tuple[Labelled, ...]:
    """The known labels and new ones. Raises NotTraceable if the labels differ along a shared axis."""
    labels = labels_of(value)
    if not labels:
        return known
    if known and not all(map(_is_same, reversed(known[0].labels), reversed(labels))):
        raise _different(known[0].name, name)
    return (*known, Labelled(name, labels))


def _different(one: str, other: str) -> FusecError:
    what = f"'{one}' and '{other}' have different labels, by which they would be aligned without fuse"
    return NotTraceable(what, CURE).at()


def _is_same(one: Any, other: Any) -> bool:
    """Whether labels of two axes are the same; each may have the name of the axis with it."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return bool(one[0] == other[0]) and _is_same(one[1], other[1])
    return one is other or (one is not None and other is not None and bool(one.equals(other)))
