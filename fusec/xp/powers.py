"""Exponents with which powers are products, quotients or roots, as in NumPy. Kernels have them as constants."""

from __future__ import annotations

from typing import Any

ALONE: dict[type, tuple[float, ...]] = {int: (2, 3, -1), float: (2.0, 3.0, 0.5, -1.0)}
"""Exponents of all dtypes, by their type."""


def is_by_products(exponent: Any, dtype: Any) -> bool:
    """Whether a power of elements of a dtype is made of products, since its exponent is this number."""
    kind = exponent.__class__
    if kind is not int and kind is not float:
        return False
    if exponent in ALONE[kind]:
        return True
    if dtype.kind != "c":
        return False
    from fusec.math.table import PRODUCTS

    return bool(abs(exponent) < PRODUCTS and exponent == int(exponent))
