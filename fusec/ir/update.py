"""The value that an atomic update writes, for memory that no other thread touches in between."""

from __future__ import annotations

from collections.abc import Sequence

from fusec.base.dtypes import FLOAT32, STORAGE_FLOATS
from fusec.ir.expr import Expr, apply, convert, scalar_type


def updated(op: str, old: Expr, values: Sequence[Expr]) -> Expr:
    """The value that an atomic update writes; narrow floats compute in float32, as everywhere."""
    dtype = scalar_type(old)
    if dtype not in STORAGE_FLOATS:
        return _updated(op, old, values)
    match op:
        case "exchange":
            return values[0]
        case "compare_exchange":
            return apply("where", apply("equal", *_wide(old, values[0])), values[1], old)
        case "minimum" | "maximum":
            wide, value = _wide(old, values[0])
            return apply("where", _beats(op, value, wide), values[0], old)
        case _:
            return convert(_updated(op, convert(old, FLOAT32), _wide(*values)), dtype)


def _wide(*values: Expr) -> tuple[Expr, ...]:
    return tuple(convert(value, FLOAT32) for value in values)


def _updated(op: str, old: Expr, values: Sequence[Expr]) -> Expr:
    match op:
        case "add" | "subtract":
            return apply(op, old, values[0])
        case "and" | "or" | "xor":
            return apply(f"bitwise_{op}", old, values[0])
        case "minimum" | "maximum":
            return apply("where", _beats(op, values[0], old), values[0], old)
        case "exchange":
            return values[0]
        case "compare_exchange":
            return apply("where", apply("equal", old, values[0]), values[1], old)
        case _:
            raise AssertionError(f"no atomic op {op}")


def _beats(op: str, value: Expr, old: Expr) -> Expr:
    """Anything beats nan."""
    better = apply("less" if op == "minimum" else "greater", value, old)
    return apply("logical_or", better, apply("not_equal", old, old))
