"""Threads that run one instruction together, and the registers of a function for all of its threads."""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ptx.faults import Uninitialised
from ptx.shared import Places

if TYPE_CHECKING:
    from ptx.machine import Activation, Machine

Array = np.ndarray


class Partial:
    """A register that not every thread of the group has written: any use but a copy is a fault."""

    __array_ufunc__ = None

    def __init__(self, content: Array, is_defined: Array) -> None:
        self.content = content
        self.is_defined = is_defined

    def __array__(self, *_: object, **__: object) -> Array:
        raise Uninitialised("a register is read before it is written")

    def __getattr__(self, name: str) -> object:
        raise Uninitialised("a register is read before it is written")


class RegisterFile:
    """The registers of one activation. A group takes what it reads and gives back what it wrote."""

    def __init__(self, threads: int, dtypes: list[np.dtype]) -> None:
        self.threads = threads
        self._dtypes = dtypes
        self._contents: list[Array | None] = [None] * len(dtypes)
        self._defined: list[Array | bool] = [False] * len(dtypes)
        self._is_own = [False] * len(dtypes)  # no one else refers to the array, so it may be changed

    def set(self, number: int, content: Array) -> None:
        """Give all threads a value."""
        self._contents[number], self._defined[number], self._is_own[number] = content, True, False

    def take(self, number: int, index: Array | None) -> Array | Partial:
        """The values of the threads at `index`; None means all."""
        content, defined = self._contents[number], self._defined[number]
        if content is None:
            count = self.threads if index is None else len(index)
            return Partial(np.zeros(count, self._dtypes[number]), np.zeros(count, bool))
        if index is None:
            self._is_own[number] = False
        else:
            content = content[index]
        if defined is True:
            return content
        assert not isinstance(defined, bool), "an array without defined values"
        mask = defined if index is None else defined[index]
        return content if mask.all() else Partial(content, mask)

    def give(self, number: int, values: "Array | Partial", index: Array | None) -> None:
        """Take over what the threads at `index` wrote; None means all."""
        is_partial = isinstance(values, Partial)
        content = values.content if is_partial else values
        mask = values.is_defined if is_partial else True
        if index is None:
            self._contents[number], self._defined[number], self._is_own[number] = content, mask, False
            return
        self._own(number)
        self._contents[number][index] = content
        defined = self._defined[number]
        if mask is True and defined is True:
            return
        known = np.full(self.threads, defined) if isinstance(defined, bool) else defined.copy()
        known[index] = mask
        self._defined[number] = True if known.all() else known

    def _own(self, number: int) -> None:
        if not self._is_own[number]:
            old = self._contents[number]
            self._contents[number] = np.zeros(self.threads, self._dtypes[number]) if old is None else old.copy()
            self._is_own[number] = True


class Group:
    """Threads at one instruction. index: their positions in the activation, increasing; None means all of them.

    registers: the values that were taken or written, by number; None where not yet taken.
    """

    def __init__(self, activation: "Activation", index: Array | None) -> None:
        self.activation = activation
        self.machine: Machine = activation.machine
        self.index = index
        self.n = activation.threads_count if index is None else len(index)
        self.registers: list[Array | Partial | None] = [None] * activation.code.register_count
        self.written: set[int] = set()

    def positions(self) -> Array:
        """The positions in the activation, spelled out."""
        return np.arange(self.n) if self.index is None else self.index

    @cached_property
    def threads(self) -> Array:
        """Their numbers in the machine."""
        threads = self.activation.threads
        return threads if self.index is None else threads[self.index]

    @cached_property
    def places(self) -> Places:
        """Their numbers, and those of their warps and blocks."""
        return self.machine.places_of(self.threads)

    def take(self, numbers: tuple[int, ...]) -> None:
        """Bring registers that are read next."""
        own, file = self.registers, self.activation.file
        for number in numbers:
            if own[number] is None:
                own[number] = file.take(number, self.index)

    def give_back(self) -> None:
        """Write what changed to the register file."""
        file = self.activation.file
        for number in self.written:
            values = self.registers[number]
            assert values is not None, "a written register has values"
            file.give(number, values, self.index)
        self.written = set()
