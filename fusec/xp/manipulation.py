"""Shapes and places: arrays joined, taken apart, repeated and turned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fusec.xp.array import Array
from fusec.xp.calls import Axis, Operand, array_of, call, into, operand_of, sequence_of, several
from fusec.xp.documentation import documented

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]
Axes = int | Sequence[int]


@documented
def broadcast_arrays(*arrays: Operand) -> tuple[Array, ...]:
    """The arrays, broadcast against each other.

    >>> [each.shape for each in xp.broadcast_arrays(xp.ones((3, 1)), xp.ones(2))]
    [(3, 2), (3, 2)]
    """
    return several(np.broadcast_arrays, *map(array_of, arrays))


@documented
def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that shapes broadcast to.

    shapes: tuples of extents. Raises ValueError if two extents differ and neither is 1.

    >>> xp.broadcast_shapes((3, 1), (2,))
    (3, 2)
    """
    return np.broadcast_shapes(*shapes)


@documented
def broadcast_to(x: Operand, /, shape: Any) -> Array:
    """The array repeated to a shape, as a view that cannot be written.

    >>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]])
    """
    return array_of(x)._viewed(np.broadcast_to, shape)


@documented
def concat(arrays: Iterable[Operand], /, axis: int | None = 0, **options: Any) -> Array:
    """Arrays one behind the other, along an axis that they have.

    axis: an integer; None for all elements in C order, as one axis. The other axes have equal extents.

    >>> xp.concat([xp.asarray([1, 2]), xp.asarray([3])])
    Array([1, 2, 3])
    """
    return _joined(np.concat, sequence_of(arrays, "concat"), axis, options)


@documented
def stack(arrays: Iterable[Operand], /, axis: int = 0, **options: Any) -> Array:
    """Arrays of one shape, along a new axis.

    >>> xp.stack([xp.asarray([1, 2]), xp.asarray([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]])
    """
    return _joined(np.stack, sequence_of(arrays, "stack"), axis, options)


def _joined(function: Any, arrays: list[Array], axis: int | None, options: dict[str, Any]) -> Array:
    out = options.pop("out", None)
    return into(function, out, (arrays,), {"axis": axis, **options})  # type: ignore[no-any-return]


@documented
def expand_dims(x: Operand, /, axis: Axes = 0) -> Array:
    """A view with new axes of one element.

    axis: where they are in the result, an integer or several.

    >>> xp.expand_dims(xp.asarray([1, 2]), axis=1).shape
    (2, 1)
    """
    return array_of(x)._viewed(np.expand_dims, axis)


@documented
def flip(x: Operand, /, axis: Axis = None) -> Array:
    """A view with elements in reverse order.

    axis: along which, an integer or several; None for all.

    >>> xp.flip(xp.asarray([1, 2, 3]))
    Array([3, 2, 1])
    """
    return array_of(x)._viewed(np.flip, axis)


@documented
def moveaxis(x: Operand, source: Axes, destination: Axes, /) -> Array:
    """A view with some axes at other places.

    source: where the axes are, an integer or several. destination: where they go.

    >>> xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    return array_of(x)._viewed(np.moveaxis, source, destination)


@documented
def permute_dims(x: Operand, /, axes: tuple[int, ...]) -> Array:
    """A view with the axes in another order.

    axes: all axes, in the order of the result.

    >>> xp.permute_dims(xp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return array_of(x)._viewed(np.permute_dims, axes)


@documented
def repeat(x: Operand, repeats: Operand, /, axis: int | None = None) -> Array:
    """Each element several times.

    repeats: how often, an integer, or one for each element of the axis.
    axis: along which; None for all elements in C order, as one axis.

    >>> xp.repeat(xp.asarray([1, 2]), 2)
    Array([1, 1, 2, 2])
    """
    return call(np.repeat, x, operand_of(repeats), axis=axis)


@documented
def reshape(x: Operand, /, shape: Any, *, copy: bool | None = None, order: str = "C") -> Array:
    """The elements in another shape, a view where there can be one.

    shape: one extent may be -1, for all that is left. order: of the elements, 'C' or 'F'.

    >>> xp.reshape(xp.asarray([1, 2, 3, 4]), (2, -1))
    Array([[1, 2],
           [3, 4]])
    """
    options: dict[str, Any] = {} if order == "C" else {"order": order}
    if copy:
        return call(np.reshape, x, shape, copy=True, **options)
    return array_of(x)._viewed(np.reshape, shape, **({} if copy is None else {"copy": copy}), **options)


@documented
def roll(x: Operand, /, shift: Axes, axis: Axis = None) -> Array:
    """The elements moved along axes; those that leave at one end come in at the other.

    shift: how far, an integer, or one for each axis. axis: along which; None for all elements in C order.

    >>> xp.roll(xp.asarray([1, 2, 3]), 1)
    Array([3, 1, 2])
    """
    return call(np.roll, x, shift, axis=axis)


@documented
def squeeze(x: Operand, /, axis: Axis = None) -> Array:
    """A view without axes of one element.

    axis: which, an integer or several; None for all that there are.

    >>> xp.squeeze(xp.ones((2, 1, 3)), axis=1).shape
    (2, 3)
    """
    return array_of(x)._viewed(np.squeeze, axis)


@documented
def tile(x: Operand, repetitions: Axes, /) -> Array:
    """The whole array, several times along each axis.

    repetitions: how often, for the last axes; new axes come in front if there are more.

    >>> xp.tile(xp.asarray([1, 2]), 2)
    Array([1, 2, 1, 2])
    """
    return call(np.tile, x, repetitions)


@documented
def unstack(x: Operand, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Views without an axis, one for each of its elements.

    >>> xp.unstack(xp.asarray([[1, 2], [3, 4]]))[1]
    Array([3, 4])
    """
    return tuple(moveaxis(x, axis, 0))
