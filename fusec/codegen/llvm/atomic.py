"""Atomic updates: lane by lane in lane order, or one update for all lanes where the order is not observable.

Ordering is monotonic: an update is indivisible, and orders nothing else.
"""

from __future__ import annotations

from fusec.base.dtypes import BOOL, FLOAT32, STORAGE_FLOATS, DType
from fusec.base.records import dataclass
from fusec.codegen.llvm import arith
from fusec.codegen.llvm.memory import Lanes, guarded
from fusec.codegen.llvm.values import Builder, Operand, Value, integer, memory_type, zero_of
from fusec.ir.loops import AtomicOp

_INSTRUCTIONS: dict[str, str] = {
    "add": "add", "subtract": "sub", "and": "and", "or": "or", "xor": "xor", "exchange": "xchg",
}  # fmt: skip
_REDUCTIONS = {"add": "add", "subtract": "add", "and": "and", "or": "or", "xor": "xor"}


@dataclass(frozen=True)
class AtomicUpdate:
    """Updates of elements of a dtype by the active lanes."""

    b: Builder
    op: AtomicOp
    dtype: DType
    lanes: Lanes

    def write(self, pointer: Value, values: list[Operand], wanted: bool) -> Operand:
        """Update the elements that active lanes point at; returns their old values, zero in other lanes."""
        b, dtype = self.b, self.dtype
        assert not dtype.is_complex, "atomics work on real scalars"
        operands = [b.cast("zext", value[0], "i8") if dtype == BOOL else value[0] for value in values]
        if b.lanes == 1:
            old = self._one(pointer, operands)
        elif pointer.varying or wanted or not dtype.is_integer or self.op in ("exchange", "compare_exchange"):
            old = self._lane_by_lane(pointer, operands)
        else:
            self._all_at_once(pointer, operands[0])
            return (Value(memory_type(dtype), zero_of(memory_type(dtype))),)
        return (b.compare("icmp ne", old, integer(0, "i8")) if dtype == BOOL else old,)

    def _all_at_once(self, pointer: Value, value: Value) -> None:
        """One element for all lanes, an integer whose old values nobody asks for: reduce over lanes, update once."""
        b, lanes, kind = self.b, self.lanes, memory_type(self.dtype)
        reduction = _REDUCTIONS.get(self.op) or ("s" if self.dtype.kind == "signed" else "u") + self.op[:3]
        value = b.spread(value)
        if lanes.mask is not None:
            value = b.select(lanes.mask, value, integer(_neutral(reduction, self.dtype.bits), kind))
        total = Value(kind, b.call(kind, f"llvm.vector.reduce.{reduction}.v{b.lanes}{kind}", b.typed(value)))
        self._one(guarded(b, pointer, lanes), [total])

    def _lane_by_lane(self, pointer: Value, operands: list[Value]) -> Value:
        """A loop over the set bits of the mask; operands and results pass through the stack."""
        b, mask, llvm = self.b, self.lanes.mask, memory_type(self.dtype)
        kept = [_spilled(b, value) for value in (pointer, *operands)]
        old = b.alloca(b.vector_type(llvm), 64)
        b.line(f"store {b.vector_type(llvm)} zeroinitializer, ptr {old}, align 64")
        bits_type, bits = f"i{b.lanes}", b.alloca(f"i{b.lanes}")
        wanted = "-1" if mask is None else b.let(f"bitcast {b.typed(mask)} to {bits_type}")
        b.line(f"store {bits_type} {wanted}, ptr {bits}")
        test, body, done = b.label("test"), b.label("lane"), b.label("done")
        b.jump(test)
        b.place(test)
        left = Value(bits_type, b.let(f"load {bits_type}, ptr {bits}"))
        b.fork(b.compare("icmp ne", left, integer(0, bits_type)), body, done)
        b.place(body)
        lane = b.cast("trunc" if b.lanes > 64 else "zext", b.intrinsic("cttz", left, extra="i1 true"), "i64")
        rest = b.binary("and", left, b.binary("sub", left, integer(1, bits_type)))
        b.line(f"store {bits_type} {rest.text}, ptr {bits}")
        place, *given = (_picked(b, slot, kind, lane) for slot, kind in kept)
        result = self._one(place, given)
        at = b.let(f"getelementptr {llvm}, ptr {old}, i64 {lane.text}")
        b.line(f"store {b.typed(result)}, ptr {at}")
        b.jump(test)
        b.place(done)
        return b.read_slot(old, llvm, varying=True)

    # --- one update ----------------------------------------------------------------------------------------------

    def _one(self, pointer: Value, operands: list[Value]) -> Value:
        """One update of one element; returns its old value."""
        name = self._instruction()
        if not name:
            return self._by_exchange(pointer, operands)
        text = f"atomicrmw {name} ptr {pointer.text}, {self.b.typed(operands[0])} monotonic, align {self.dtype.nbytes}"
        return Value(operands[0].type, self.b.let(text))

    def _instruction(self) -> str:
        """What the processor does by itself; nothing if there is no such thing."""
        op, dtype = self.op, self.dtype
        if op in _INSTRUCTIONS and (not dtype.is_float or op == "exchange"):
            return _INSTRUCTIONS[op]
        if dtype.is_integer and op in ("minimum", "maximum"):
            return ("" if dtype.kind == "signed" else "u") + op[:3]
        return f"f{_INSTRUCTIONS[op]}" if dtype not in STORAGE_FLOATS and op in ("add", "subtract") else ""

    def _by_exchange(self, pointer: Value, operands: list[Value]) -> Value:
        """Compute the new value and exchange it, again and again until nothing came in between."""
        b, llvm, bits, align = self.b, memory_type(self.dtype), f"i{self.dtype.bits}", f"align {self.dtype.nbytes}"
        seen = b.alloca(bits)
        first = b.let(f"load atomic {bits}, ptr {pointer.text} monotonic, {align}")
        b.line(f"store {bits} {first}, ptr {seen}")
        again, done = b.label("again"), b.label("done")
        b.jump(again)
        b.place(again)
        old_bits = b.let(f"load {bits}, ptr {seen}")
        old = b.cast("bitcast", Value(bits, old_bits), llvm)
        new = b.cast("bitcast", self._combined(old, operands), bits)
        pair = b.let(f"cmpxchg ptr {pointer.text}, {bits} {old_bits}, {bits} {new.text} monotonic monotonic, {align}")
        b.line(f"store {bits} {b.let(f'extractvalue {{ {bits}, i1 }} {pair}, 0')}, ptr {seen}")
        b.fork(Value("i1", b.let(f"extractvalue {{ {bits}, i1 }} {pair}, 1")), done, again)
        b.place(done)
        return old

    def _combined(self, old: Value, operands: list[Value]) -> Value:
        """The new value; minimum and maximum keep the old one unless the operand beats it or the old one is nan."""
        b, op, dtype, value = self.b, self.op, self.dtype, operands[0]
        if op == "exchange":
            return value
        wide = FLOAT32 if dtype in STORAGE_FLOATS else dtype
        (old_wide,), (value_wide,) = (arith.apply_op(b, "convert", [(each,)], dtype, wide) for each in (old, value))
        if op == "compare_exchange":
            kind = "fcmp oeq" if dtype.is_float else "icmp eq"
            return b.select(b.compare(kind, old_wide, value_wide), operands[1], old)
        if op in ("add", "subtract"):
            total = arith.apply_op(b, op, [(old_wide,), (value_wide,)], wide, wide)
            return arith.apply_op(b, "convert", [total], wide, dtype)[0]
        assert dtype.is_float, f"atomic {op} on {dtype}"
        beats = b.compare("fcmp olt" if op == "minimum" else "fcmp ogt", value_wide, old_wide)
        return b.select(b.binary("or", beats, b.compare("fcmp uno", old_wide, old_wide)), value, old)


def _neutral(reduction: str, bits: int) -> int:
    """The operand that changes nothing."""
    return {
        "and": -1, "umin": -1, "smin": (1 << bits - 1) - 1, "smax": -(1 << bits - 1),
    }.get(reduction, 0)  # fmt: skip


def _spilled(b: Builder, value: Value) -> tuple[str, str]:
    """A stack copy of a vector, and its scalar type."""
    value = b.spread(value)
    slot = b.alloca(b.type_of(value), 64)
    b.line(f"store {b.typed(value)}, ptr {slot}, align 64")
    return slot, value.type


def _picked(b: Builder, slot: str, llvm: str, lane: Value) -> Value:
    at = b.let(f"getelementptr {llvm}, ptr {slot}, i64 {lane.text}")
    return Value(llvm, b.let(f"load {llvm}, ptr {at}"))
