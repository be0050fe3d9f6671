"""Atomic updates: lane by lane in lane order, or one update for all lanes where the order is not observable.

Ordering is monotonic: an update is indivisible, and orders nothing else.
"""

from __future__ import annotations

from fusec.base.dtypes import BOOL, FLOAT32, STORAGE_FLOATS, DType
from fusec.codegen.llvm import arith
from fusec.codegen.llvm.memory import Lanes, guarded
from fusec.codegen.llvm.values import Builder, Operand, Value, integer, memory_type, zero_of
from fusec.ir.loops import AtomicOp

_INSTRUCTIONS: dict[str, str] = {
    "add": "add", "subtract": "sub", "and": "and", "or": "or", "xor": "xor", "exchange": "xchg",
}  # fmt: skip
_REDUCTIONS = {"add": "add", "subtract": "add", "and": "and", "or": "or", "xor": "xor"}


def atomic_update(
    b: Builder, op: AtomicOp, pointer: Value, values: list[Operand], dtype: DType, lanes: Lanes, wanted: bool
) -> Operand:
    """Update the elements that active lanes point at; returns their old values, zero in other lanes."""
    assert not dtype.is_complex, "atomics work on real scalars"
    operands = [_to_memory(b, value[0], dtype) for value in values]
    if b.lanes == 1:
        return (_from_memory(b, _one(b, op, pointer, operands, dtype), dtype),)
    if not pointer.varying and not wanted and dtype.is_integer and op not in ("exchange", "compare_exchange"):
        _all_at_once(b, op, pointer, operands[0], dtype, lanes)
        return (Value(memory_type(dtype), zero_of(memory_type(dtype))),)
    return (_from_memory(b, _lane_by_lane(b, op, pointer, operands, dtype, lanes), dtype),)


def _to_memory(b: Builder, value: Value, dtype: DType) -> Value:
    return b.cast("zext", value, "i8") if dtype == BOOL else value


def _from_memory(b: Builder, value: Value, dtype: DType) -> Value:
    return b.compare("icmp ne", value, integer(0, "i8")) if dtype == BOOL else value


# --- all lanes at once -----------------------------------------------------------------------------------------


def _all_at_once(b: Builder, op: AtomicOp, pointer: Value, value: Value, dtype: DType, lanes: Lanes) -> None:
    """One element for all lanes, an integer whose old values nobody asks for: reduce over lanes, then update once."""
    llvm, sign = memory_type(dtype), "s" if dtype.kind == "signed" else "u"
    reduction = _REDUCTIONS.get(op) or sign + op[:3]
    value = b.spread(value)
    if lanes.mask is not None:
        value = b.select(lanes.mask, value, integer(_neutral(reduction, dtype.bits), llvm))
    name = f"llvm.vector.reduce.{reduction}.v{b.lanes}{llvm}"
    b.declare(f"declare {llvm} @{name}({b.type_of(value)})")
    total = Value(llvm, b.let(f"call {llvm} @{name}({b.typed(value)})"))
    _one(b, op, guarded(b, pointer, lanes), [total], dtype)


def _neutral(reduction: str, bits: int) -> int:
    """The operand that changes nothing."""
    return {
        "and": -1, "umin": -1, "smin": (1 << bits - 1) - 1, "smax": -(1 << bits - 1),
    }.get(reduction, 0)  # fmt: skip


# --- one lane after the other ----------------------------------------------------------------------------------


def _lane_by_lane(b: Builder, op: AtomicOp, pointer: Value, operands: list[Value], dtype: DType, lanes: Lanes) -> Value:
    """A loop over the set bits of the mask; operands and results pass through the stack."""
    llvm = memory_type(dtype)
    kept = [_spilled(b, value) for value in (pointer, *operands)]
    old = b.alloca(b.vector_type(llvm), 64)
    b.line(f"store {b.vector_type(llvm)} zeroinitializer, ptr {old}, align 64")
    bits_type, bits = f"i{b.lanes}", b.alloca(f"i{b.lanes}")
    mask = "-1" if lanes.mask is None else b.let(f"bitcast {b.typed(lanes.mask)} to {bits_type}")
    b.line(f"store {bits_type} {mask}, ptr {bits}")
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
    result = _one(b, op, place, given, dtype)
    at = b.let(f"getelementptr {llvm}, ptr {old}, i64 {lane.text}")
    b.line(f"store {b.typed(result)}, ptr {at}")
    b.jump(test)
    b.place(done)
    return b.read_slot(old, llvm, varying=True)


def _spilled(b: Builder, value: Value) -> tuple[str, str]:
    """A stack copy of a vector, and its scalar type."""
    value = b.spread(value)
    slot = b.alloca(b.type_of(value), 64)
    b.line(f"store {b.typed(value)}, ptr {slot}, align 64")
    return slot, value.type


def _picked(b: Builder, slot: str, llvm: str, lane: Value) -> Value:
    at = b.let(f"getelementptr {llvm}, ptr {slot}, i64 {lane.text}")
    return Value(llvm, b.let(f"load {llvm}, ptr {at}"))


# --- one update ------------------------------------------------------------------------------------------------


def _one(b: Builder, op: AtomicOp, pointer: Value, operands: list[Value], dtype: DType) -> Value:
    """One update of one element; returns its old value."""
    align = f"align {dtype.nbytes}"
    value = operands[0]
    if op in _INSTRUCTIONS and (not dtype.is_float or op == "exchange"):
        return _instruction(b, f"{_INSTRUCTIONS[op]}", pointer, value, align)
    if dtype.is_integer and op in ("minimum", "maximum"):
        name = ("" if dtype.kind == "signed" else "u") + op[:3]
        return _instruction(b, name, pointer, value, align)
    if dtype not in STORAGE_FLOATS and op in ("add", "subtract"):
        return _instruction(b, f"f{_INSTRUCTIONS[op]}", pointer, value, align)
    return _by_exchange(b, op, pointer, operands, dtype, align)


def _instruction(b: Builder, name: str, pointer: Value, value: Value, align: str) -> Value:
    text = b.let(f"atomicrmw {name} ptr {pointer.text}, {b.typed(value)} monotonic, {align}")
    return Value(value.type, text)


def _by_exchange(b: Builder, op: AtomicOp, pointer: Value, operands: list[Value], dtype: DType, align: str) -> Value:
    """Compute the new value and exchange it, again and again until nothing came in between."""
    llvm, bits = memory_type(dtype), f"i{dtype.bits}"
    seen = b.alloca(bits)
    first = b.let(f"load atomic {bits}, ptr {pointer.text} monotonic, {align}")
    b.line(f"store {bits} {first}, ptr {seen}")
    again, done = b.label("again"), b.label("done")
    b.jump(again)
    b.place(again)
    old_bits = b.let(f"load {bits}, ptr {seen}")
    old = b.cast("bitcast", Value(bits, old_bits), llvm)
    new = b.cast("bitcast", _combined(b, op, old, operands, dtype), bits)
    pair = b.let(f"cmpxchg ptr {pointer.text}, {bits} {old_bits}, {bits} {new.text} monotonic monotonic, {align}")
    b.line(f"store {bits} {b.let(f'extractvalue {{ {bits}, i1 }} {pair}, 0')}, ptr {seen}")
    b.fork(Value("i1", b.let(f"extractvalue {{ {bits}, i1 }} {pair}, 1")), done, again)
    b.place(done)
    return old


def _combined(b: Builder, op: AtomicOp, old: Value, operands: list[Value], dtype: DType) -> Value:
    """The new value; minimum and maximum keep the old one unless the operand beats it or the old one is nan."""
    value = operands[0]
    if op == "exchange":
        return value
    wide = FLOAT32 if dtype in STORAGE_FLOATS else dtype
    old_wide, value_wide = (
        (arith.apply_op(b, "convert", [(item,)], dtype, wide)[0] for item in (old, value))
        if dtype != BOOL
        else (old, value)
    )
    if op == "compare_exchange":
        kind = "fcmp oeq" if dtype.is_float else "icmp eq"
        return b.select(b.compare(kind, old_wide, value_wide), operands[1], old)
    if op in ("add", "subtract"):
        total = arith.apply_op(b, op, [(old_wide,), (value_wide,)], wide, wide)
        return arith.apply_op(b, "convert", [total], wide, dtype)[0]
    assert dtype.is_float, f"atomic {op} on {dtype}"
    beats = b.compare("fcmp olt" if op == "minimum" else "fcmp ogt", value_wide, old_wide)
    return b.select(b.binary("or", beats, b.compare("fcmp uno", old_wide, old_wide)), value, old)
