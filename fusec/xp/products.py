"""Products of vectors and matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.xp.array import Array
from fusec.xp.calls import Operand, array_of, joint
from fusec.xp.documentation import documented

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


@documented
def matmul(x1: Operand, x2: Operand, /, **options: Any) -> Array:
    """The product of matrices in the last two axes; the others broadcast. One axis alone is a vector.

    x2: as many rows as x1 has columns.

    >>> xp.matmul(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 1]))
    Array([3, 7])
    """
    return joint(np.matmul, x1, array_of(x2), **options)


@documented
def matrix_transpose(x: Operand, /) -> Array:
    """A view of matrices with rows and columns exchanged.

    >>> xp.matrix_transpose(xp.asarray([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]])
    """
    return array_of(x).mT


@documented
def tensordot(x1: Operand, x2: Operand, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Array:
    """The sums of products over axes of both arrays.

    axes: how many last ones of x1 meet the first ones of x2; or two sequences of them. Their extents are equal.
    x2: the axes that are not summed up come behind those of x1.

    >>> xp.tensordot(xp.ones((2, 3)), xp.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    return joint(np.tensordot, x1, array_of(x2), axes=axes)


@documented
def vecdot(x1: Operand, x2: Operand, /, *, axis: int = -1, **options: Any) -> Array:
    """The dot product along an axis; complex x1 is conjugated. The other axes broadcast.

    >>> xp.vecdot(xp.asarray([[1.0, 2.0], [0.0, 1.0]]), xp.asarray([3.0, 4.0]))
    Array([11.,  4.])
    """
    return joint(np.vecdot, x1, array_of(x2), axis=axis, **options)
