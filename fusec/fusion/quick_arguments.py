"""The arguments of repeated calls, in a few microseconds: arrays, numbers, constants, and containers of these.

Keys are those of `arguments.CallArguments`, which takes whatever is not as plain as that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import NoneType
from typing import Any

import numpy as np

from fusec.fusion.outside import constants

NUMBERS = frozenset(constants.NUMBERS)
SCALARS = frozenset(np.dtype(code).type for code in "?bhilqpBHILQPefdgFDG")
BY_VALUE = frozenset((bool, str, bytes, NoneType))
DICTS = frozenset(constants.DICTS)


class QuickArguments:
    """The arguments of a call. flat: arrays and numbers; objects: those whose types are among `readable`, and what
    is the user's: functions, modules and classes. known: constants of earlier calls.
    """

    __slots__ = ("flat", "key", "known", "objects", "readable")

    def __init__(self, readable: Collection[type], known: Mapping[int, tuple[Any, Any]]) -> None:
        self.readable, self.known = readable, known
        self.key: list[Any] = []
        self.flat: list[Any] = []
        self.objects: list[Any] = []

    def take(self, args: Iterable[Any], options: Mapping[str, Any]) -> bool:
        """Take all arguments; False if some are not plain."""
        try:
            if not self._take(args):
                return False
            if not options:
                return True
            self.key.append(("options", *options))
            return self._take(options.values())
        except RecursionError:  # a container that holds itself
            return False

    def whole(self, values: Collection[int]) -> tuple[Any, ...]:
        """The key. values: places of numbers that the function needs as Python numbers."""
        for at in values:
            if at < len(self.flat) and type(self.flat[at]) is not np.ndarray:
                self.key.append(("value", at, constants.exact(self.flat[at])))
        return tuple(self.key)

    def _take(self, given: Iterable[Any]) -> bool:
        key, flat, array = self.key, self.flat, np.ndarray
        for each in given:
            kind = type(each)
            if kind is array:
                key += (each.dtype, each.shape, each.strides)
                flat.append(each)
            elif kind in self.readable:
                key.append(kind)
                self.objects.append(each)
            elif kind in NUMBERS:
                key.append(kind)
                flat.append(each)
            elif kind is list or kind is tuple:
                key.append((kind, len(each)))
                if not self._take(each):
                    return False
            elif kind in BY_VALUE:
                key.append((kind, each))
            elif kind in SCALARS:
                key.append(each.dtype)
                flat.append(each)
            elif (found := self.known.get(id(each))) is not None:
                key.append(found[1])
            elif constants.is_read(each):
                key.append(kind)
                self.objects.append(each)
            elif not self._take_container(each, kind):
                return False
        return True

    def _take_container(self, given: Any, kind: type) -> bool:
        """Take a dictionary whose keys are texts, or a named tuple; False for anything else."""
        if kind in DICTS:
            if not all(type(name) is str for name in given):
                return False
            self.key.append((kind, tuple([(str, name) for name in given])))
            return self._take(given.values())
        if not constants.is_named_tuple(given) or constants.is_array(given):
            return False
        self.key.append((kind, len(given)))
        return self._take(given)
