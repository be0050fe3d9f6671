"""Keys that select parts of arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.xp.forms import CPU
from fusec.xp.recording import Recorded, beside


def plain(key: Any, array: Recorded) -> Any:
    """A key of an array without lists, and with numbers instead of integer arrays without axes, in slices too."""
    if isinstance(key, tuple):
        return tuple(plain(each, array) for each in key)
    if isinstance(key, Recorded) and not key._form.shape and key._form.dtype.kind in "iu":
        return int(key)  # type: ignore[call-overload]
    if isinstance(key, slice):
        parts = key.start, key.stop, key.step
        return (
            slice(*(each if each is None else operator.index(each) for each in parts))
            if any_of(is_array, parts)
            else key
        )
    if not isinstance(key, list):
        return key
    found = np.asarray(key) if key else np.zeros(0, np.intp)
    return found if array._form.device == CPU else beside(found, array)


def any_of(law: Callable[[Any], bool], key: Any) -> bool:
    """Whether a law holds for a key or one of its items."""
    return any(any_of(law, each) for each in key) if isinstance(key, tuple) else law(key)


def is_array(key: Any) -> bool:
    """Whether a key is an array."""
    return isinstance(key, (Recorded, np.ndarray))


def is_mask(key: Any) -> bool:
    """Whether a key is a mask."""
    return isinstance(key, (bool, np.bool_)) or (is_array(key) and key.dtype == bool)
