"""The argument list of a kernel, which grows as its text needs arguments, and the loads that fetch them."""

from __future__ import annotations

from collections.abc import Mapping

from fusec.base.dtypes import BOOL, INT64, DType, real_type
from fusec.base.kernel_abi import Slot, SlotKind
from fusec.codegen.llvm.values import Operand, Value, integer, register_type


class KernelSlots:
    """Slots in the order of their first use; every slot is read once, at the top of the function."""

    def __init__(self, known: Mapping[tuple[SlotKind, str, int], int] | None = None) -> None:
        """known: numbers that the text contains."""
        self.known = known or {}
        self.slots: list[Slot] = []
        self.prologue: list[str] = []
        self._known: dict[Slot, Operand] = {}

    def within(self) -> KernelSlots:
        """The same slots, read at the top of another function."""
        other = KernelSlots(self.known)
        other.slots = self.slots
        return other

    def number(self, kind: SlotKind, param: str = "", axis: int = 0) -> Value:
        """An extent, size or stride: int64."""
        if (kind, param, axis) in self.known:
            return integer(self.known[kind, param, axis])
        return self._fetch(Slot(kind, param, axis, INT64), "i64")

    def pointer(self, param: str, dtype: DType) -> Value:
        """The address of the first element of an array."""
        return self._fetch(Slot("pointer", param, 0, dtype), "ptr")

    def scalar(self, param: str, dtype: DType) -> Operand:
        """A scalar argument; complex128 takes two slots, complex64 the two halves of one."""
        part = register_type(real_type(dtype))
        if dtype.bits == 128:
            return tuple(self._fetch(Slot("scalar", param, axis, dtype), part) for axis in (0, 1))
        if dtype.is_complex:
            slot = Slot("scalar", param, 0, dtype)
            return (self._fetch(slot, part), self._fetch(slot, part, offset=4))
        if dtype == BOOL:
            return (self._fetch_bool(Slot("scalar", param, 0, dtype)),)
        return (self._fetch(Slot("scalar", param, 0, dtype), part),)

    def _fetch_bool(self, slot: Slot) -> Value:
        byte = self._fetch(slot, "i8")
        name = byte.text + ".bool"
        line = f"  {name} = icmp ne i8 {byte.text}, 0"
        if line not in self.prologue:
            self.prologue.append(line)
        return Value("i1", name)

    def _fetch(self, slot: Slot, llvm: str, offset: int = 0) -> Value:
        if slot not in self._known:
            self._known[slot] = ()
        if slot not in self.slots:
            self.slots.append(slot)
        number = self.slots.index(slot)
        name = f"%a{number}" + (f".{offset}" if offset else "")
        value = Value(llvm, name)
        if value not in self._known[slot]:
            self._known[slot] += (value,)
            self.prologue.append(f"  {name}.at = getelementptr i8, ptr %args, i64 {8 * number + offset}")
            self.prologue.append(f"  {name} = load {llvm}, ptr {name}.at, align 4")
        return value
