"""Operands to closures that read and write a group's registers."""

from collections.abc import Callable

import numpy as np

from ptx.blocks import Code
from ptx.faults import Unsupported
from ptx.group import Group
from ptx.parse import literal_bits
from ptx.syntax import WIDTHS, Address, Instruction, Literal, Operand, Register, Symbol
from ptx.types import NUMPY, UNSIGNED, narrowed, widened

Array = np.ndarray
Read = Callable[[list[Array], Group], Array]
Write = Callable[[list[Array], Group, Array], None]


class Operands:
    """Makes the readers and writers of one instruction, and notes the registers they touch."""

    def __init__(self, code: Code, instruction: Instruction, after: int) -> None:
        """after: the block behind the instruction's."""
        self.code = code
        self.instruction = instruction
        self.after = after
        self.reads: set[int] = set()
        self.writes: set[int] = set()

    def number(self, operand: Operand) -> int:
        """The number of a register."""
        if not isinstance(operand, Register):
            raise Unsupported(f"{operand} where a register must stand")
        return self.code.numbers[operand.name]

    def read(self, operand: Operand, kind: str) -> Read:
        """A reader of the operand as a type; numbers give arrays of length 1."""
        to = NUMPY[kind]
        if isinstance(operand, Literal):
            if kind == "pred":
                constant = np.array([int(operand.text) != 0])
            else:
                bits = np.array([literal_bits(operand.text, kind)], UNSIGNED[WIDTHS[kind]])
                constant = bits.view(to)
            return lambda r, g: constant
        if isinstance(operand, Symbol):
            name = operand.name
            return lambda r, g: np.array([g.activation.address_of(name)], np.uint64).astype(to)
        number = self.number(operand)
        assert isinstance(operand, Register)
        self.reads.add(number)
        own = self.code.dtypes[number]
        if own.itemsize < to.itemsize or (kind == "pred") != (own.kind == "b"):
            raise Unsupported(f"{operand.name} of {own} as {kind}")
        if operand.negated:
            return lambda r, g: ~r[number]
        if own == to:
            return lambda r, g: r[number]
        if own.itemsize == to.itemsize:
            return lambda r, g: r[number].view(to)
        return lambda r, g: narrowed(r[number], to)

    def write(self, operand: Operand) -> tuple[int | None, np.dtype]:
        """The number and type of a register that is written; None for the sink."""
        if isinstance(operand, Register) and operand.name == "_":
            return None, np.dtype(np.uint64)
        number = self.number(operand)
        self.writes.add(number)
        return number, self.code.dtypes[number]

    def writer(self, operand: Operand) -> Write:
        """A writer that also spreads values of length 1 over the group."""
        number, dtype = self.write(operand)
        if number is None:
            return lambda r, g, values: None

        def write(r: list[Array], g: Group, values: Array) -> None:
            kept = widened(values, dtype) if values.dtype.itemsize <= dtype.itemsize else narrowed(values, dtype)
            r[number] = kept if len(kept) == g.n else np.repeat(kept, g.n)

        return write

    def address(self, operand: Operand) -> Read:
        """A reader of an address with its offset, as uint64."""
        if not isinstance(operand, Address):
            raise Unsupported(f"{operand} where an address must stand")
        offset = np.uint64(operand.offset & (1 << 64) - 1)
        if isinstance(operand.base, Register):
            number = self.number(operand.base)
            self.reads.add(number)
            if self.code.dtypes[number].itemsize == 8:
                return lambda r, g: r[number] + offset
            narrow = np.uint32(operand.offset & (1 << 32) - 1)  # sums of 32-bit addresses have 32 bits
            return lambda r, g: (r[number].astype(np.uint32) + narrow).astype(np.uint64)
        if isinstance(operand.base, Literal):
            fixed = np.uint64(int(operand.base.text, 0)) + offset
            return lambda r, g: np.full(g.n, fixed)
        name = operand.base.name
        return lambda r, g: np.full(g.n, np.uint64(g.activation.address_of(name)) + offset)
