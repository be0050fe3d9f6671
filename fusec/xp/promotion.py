"""Type promotion: NumPy's, or no more than the standard defines.

Note [Standard promotion]: recording looks nothing up but the step, so that a check of kinds would cost as much again.
While some context asks for the standard's promotion, the operators of `Array` are replaced by ones that check, and
`CHECKED` is not empty; functions look at that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import combinations
from typing import Any

import numpy as np

from fusec.base import locks
from fusec.base.contexts import holding
from fusec.errors.lazy import KindsDoNotMix, NoArray, NotAFlag
from fusec.xp.array import Array
from fusec.xp.signatures import CHECKED

PROMOTIONS = ("numpy", "standard")
_promotion: ContextVar[str] = ContextVar("promotion", default="numpy")
_KINDS = {"b": "bool", "i": "integer", "u": "integer", "f": "floating", "c": "floating"}
_NUMBERS: dict[type, tuple[str, ...]] = {
    bool: ("bool",), int: ("integer", "floating"), float: ("floating",), complex: ("floating",)
}  # fmt: skip
_OPERATORS = "add sub mul truediv floordiv mod pow matmul lshift rshift and or xor".split()
_NAMES = [f"__{mark}{name}__" for name in _OPERATORS for mark in ("", "r", "i")]
_NAMES += [f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge")]


@contextmanager
def flags(*, promotion: str = "numpy") -> Iterator[None]:
    """How dtypes promote while a block runs, in this thread.

    promotion: "numpy" for all that NumPy promotes; "standard" refuses what the array API leaves undefined: operands of
    different kinds, such as integers and floats, uint64 with signed integers, and numbers of a higher kind.
    Raises FusecValueError for another promotion.

    >>> with xp.flags(promotion="standard"):
    ...     xp.asarray([1, 2]) + xp.asarray([0.5, 1.5])
    Traceback (most recent call last):
        ...
    fusec.FusecTypeError: add: int64 and float64 have no common dtype in the standard [F771]
    hint: convert one of them with astype, or leave the block of flags(promotion='standard')
    """
    if promotion not in PROMOTIONS:
        raise NotAFlag(f"promotion={promotion!r}", f"write one of {', '.join(map(repr, PROMOTIONS))}").at()
    with holding(_promotion, promotion):
        if promotion == "standard":
            _began()
        try:
            yield
        finally:
            if promotion == "standard":
                _ended()


def check(name: str, operands: Iterable[Any]) -> None:
    """Raise KindsDoNotMix if the standard leaves undefined what the dtypes of operands promote to."""
    if _promotion.get() == "numpy":
        return
    operands = [*operands]
    dtypes = [_dtype(each) for each in operands if type(each) not in _NUMBERS]
    if not dtypes:
        raise NoArray(name).at()
    for left, right in combinations(dtypes, 2):
        if not promotes(left, right):
            raise KindsDoNotMix(name, str(left), str(right)).at()
    wide = np.result_type(*dtypes)
    for each in operands:
        if _KINDS.get(wide.kind) not in _NUMBERS.get(type(each), (_KINDS.get(wide.kind),)):
            raise KindsDoNotMix(name, str(wide), f"Python's {type(each).__name__}").at()


def promotes(left: np.dtype[Any], right: np.dtype[Any]) -> bool:
    """Whether the standard says what two dtypes promote to."""
    if left == right:
        return True
    kinds = _KINDS.get(left.kind), _KINDS.get(right.kind)
    return kinds[0] == kinds[1] and kinds[0] is not None and np.result_type(left, right).kind in (left.kind, right.kind)


def _dtype(given: Any) -> np.dtype[Any]:
    if isinstance(given, (np.dtype, type, str)):
        return np.dtype(given)
    return given.dtype if hasattr(given, "dtype") else np.asarray(given).dtype


_plain = {name: getattr(Array, name) for name in _NAMES}


def _checking(name: str, plain: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def operate(self: Any, other: Any) -> Any:
        if type(other) in _NUMBERS or isinstance(other, (Array, np.ndarray, np.generic)):
            check(name.strip("_"), (self, other))
        return plain(self, other)

    return operate


def _began() -> None:
    with locks.lock:
        CHECKED.append(None)
        if len(CHECKED) == 1:
            for name, plain in _plain.items():
                setattr(Array, name, _checking(name, plain))


def _ended() -> None:
    with locks.lock:
        CHECKED.pop()
        if not CHECKED:
            for name, plain in _plain.items():
                setattr(Array, name, plain)
