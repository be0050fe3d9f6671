"""The error bound of sums that docs/reductions.md derives."""

from __future__ import annotations

import math

from fusec.ir.reductions import ROUNDS


def additions(n: int, lanes: int) -> int:
    """Most additions that one element goes through along the last axis, see Note [Order]; lanes 1: along another."""
    total = 0
    while n > 1:
        chunk = min(n, ROUNDS * lanes)
        total += -(-chunk // lanes) - 1 + math.ceil(math.log2(min(chunk, lanes)))
        n = -(-n // (ROUNDS * lanes))
    return total


def bound(n: int, lanes: int, unit: float) -> float:
    """The error relative to the sum of absolute values. unit: half the distance from 1 to the next number."""
    h = additions(n, lanes) * unit
    return h / (1 - h)
