"""Matrices as libraries for products read them: these count down columns."""

from __future__ import annotations

from typing import NamedTuple


class Matrix(NamedTuple):
    """How a library reads an operand: as it lies or transposed. leading: elements from one column to the next; step:
    from one matrix of several to the next.
    """

    is_transposed: bool
    leading: int
    step: int


class ProductSizes(NamedTuple):
    """The rows and columns of a result, how many products each element adds up, and how many pairs of matrices."""

    rows: int
    columns: int
    inner: int
    pairs: int
