"""Loads and stores of scalars and vectors: consecutive elements as plain or masked vectors, others lane by lane.

No lane touches memory it must not: an inactive lane is masked, or its address is replaced by that of a scratch slot
where the target would take masked accesses apart into branches.
"""

from __future__ import annotations

from fusec.base.dtypes import BOOL, DType, real_type
from fusec.base.records import dataclass
from fusec.codegen.llvm import strided
from fusec.codegen.llvm.values import (
    Builder,
    Linear,
    LinearAddress,
    Operand,
    Value,
    bit_width,
    integer,
    memory_type,
    zero_of,
)


@dataclass(frozen=True, slots=True)
class Hint:
    """How a contiguous store is made: around the caches, at a known alignment in bytes, where `when` holds.

    tests: where the address is found to be aligned, so far as that allows.
    """

    align: int = 0
    when: Value | None = None
    tests: bool = False


PLAIN = Hint()


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes that may touch memory."""

    mask: Value | None = None  # None for all
    occupied: bool = True  # there is at least one
    hint: Hint = PLAIN  # how all of them store


AROUND = (64, 16)  # alignments that are tested for: of a cache line, and of the least vector that goes around caches


def load(b: Builder, pointer: Value, dtype: DType, lanes: Lanes) -> Operand:
    """The elements at an address; lanes that may not touch memory get anything."""
    if not pointer.varying:
        return _load_uniform(b, pointer, dtype, lanes)
    if pointer.linear and abs(pointer.linear.step) == dtype.nbytes:
        return _load_consecutive(b, pointer.linear, dtype, lanes)
    part = real_type(dtype)
    walk = pointer.walk
    if pointer.linear is not None and strided.is_shuffled(pointer.linear.step, part.nbytes):
        walk = LinearAddress(pointer.linear.base, str(pointer.linear.step))
    if walk is not None and lanes.mask is None:
        return _load_walk(b, walk, dtype, part)
    addresses = [_beside(b, pointer, at) for at in range(0, dtype.nbytes, part.nbytes)]
    return tuple(_from_memory(b, _gather(b, address, part, lanes), part) for address in addresses)


def store(b: Builder, pointer: Value, value: Operand, dtype: DType, lanes: Lanes) -> None:
    """Write elements to an address; of lanes that share one, the last wins."""
    part = real_type(dtype)
    stored = tuple(b.cast("zext", item, "i8") if part == BOOL else item for item in value)
    if not pointer.varying and not any(item.varying for item in stored):
        _store_uniform(b, pointer, stored, part, lanes)
        return
    if pointer.linear and abs(pointer.linear.step) == dtype.nbytes:
        _store_consecutive(b, pointer.linear, stored, dtype, lanes)
        return
    if pointer.walk is not None and lanes.mask is None:
        for number, item in enumerate(stored):
            base = b.at(pointer.walk.base, number * part.nbytes) if number else pointer.walk.base
            walk = LinearAddress(base, pointer.walk.stride)
            strided.store(b, walk, memory_type(part), b.spread(item).text)
        return
    pointer = b.spread(pointer)
    for number, item in enumerate(stored):
        _scatter(b, _beside(b, pointer, number * part.nbytes), b.spread(item), part, lanes)


def fetch(b: Builder, address: str, *, to_write: bool = False) -> None:
    """Ask for a line of memory that is soon to be read or written; it goes to the second cache. Any address will do."""
    b.call("void", "llvm.prefetch.p0", f"ptr {address}", f"i32 {int(to_write)}", "i32 2", "i32 1")


def _load_walk(b: Builder, walk: LinearAddress, dtype: DType, part: DType) -> Operand:
    parts, kind = [], memory_type(part)
    for at in range(0, dtype.nbytes, part.nbytes):
        text = strided.load(b, LinearAddress(b.at(walk.base, at) if at else walk.base, walk.stride), kind)
        parts.append(_from_memory(b, Value(kind, text, varying=True), part))
    return tuple(parts)


def _from_memory(b: Builder, value: Value, part: DType) -> Value:
    """A byte becomes a bool: any value but 0 is true."""
    return b.compare("icmp ne", value, integer(0, "i8")) if part == BOOL else value


def _beside(b: Builder, pointer: Value, nbytes: int) -> Value:
    """The address some bytes further."""
    if nbytes == 0:
        return pointer
    text = b.let(f"getelementptr i8, {b.typed(pointer)}, i64 {nbytes}")
    return Value("ptr", text, pointer.varying)


# --- one address -----------------------------------------------------------------------------------------------


def guarded(b: Builder, pointer: Value, lanes: Lanes) -> Value:
    """A uniform address that may be read: the scratch slot if no lane wants it."""
    if lanes.mask is None or lanes.occupied:
        return pointer
    return b.select(b.any_lane(lanes.mask), pointer, Value("ptr", b.scratch()))


def _load_uniform(b: Builder, pointer: Value, dtype: DType, lanes: Lanes) -> Operand:
    pointer = guarded(b, pointer, lanes)
    part = real_type(dtype)
    kind = memory_type(part)
    parts = []
    for at in range(0, dtype.nbytes, part.nbytes):
        address = _beside(b, pointer, at)
        loaded = Value(kind, b.let(f"load {kind}, ptr {address.text}, align {part.nbytes}"))
        parts.append(_from_memory(b, loaded, part))
    return tuple(parts)


def _store_uniform(b: Builder, pointer: Value, value: Operand, part: DType, lanes: Lanes) -> None:
    pointer = guarded(b, pointer, lanes)
    for number, item in enumerate(value):
        address = _beside(b, pointer, number * part.nbytes)
        b.line(f"store {b.typed(item)}, ptr {address.text}, align {part.nbytes}")


# --- consecutive elements --------------------------------------------------------------------------------------


def _reversed(b: Builder, kind: str, text: str) -> str:
    return b.shuffle(f"<{b.lanes} x {kind}> {text}", range(b.lanes)[::-1])


def _mask_of_parts(b: Builder, mask: Value, dtype: DType, backwards: bool) -> str:
    """A mask in the order of memory, with every lane twice for the parts of complex elements."""
    text, vector = _reversed(b, "i1", mask.text) if backwards else mask.text, b.vector_type("i1")
    return b.shuffle(f"{vector} {text}", [lane // 2 for lane in range(2 * b.lanes)]) if dtype.is_complex else text


def _first_address(b: Builder, linear: Linear) -> str:
    """Where consecutive elements begin in memory."""
    return linear.base if linear.step > 0 else b.at(linear.base, (b.lanes - 1) * linear.step)


def _load_consecutive(b: Builder, linear: Linear, dtype: DType, lanes: Lanes) -> Operand:
    part, backwards = real_type(dtype), linear.step < 0
    kind = memory_type(part)
    count = b.lanes * (2 if dtype.is_complex else 1)
    vector = f"<{count} x {kind}>"
    base = _first_address(b, linear)
    if lanes.mask is None:
        text = b.let(f"load {vector}, ptr {base}, align {part.nbytes}")
    else:
        text = _masked_load(b, base, part, count, _mask_of_parts(b, lanes.mask, dtype, backwards))
    texts = [text]
    if dtype.is_complex:
        texts = [b.shuffle(f"{vector} {text}", range(at, count, 2)) for at in (0, 1)]
    if backwards:
        texts = [_reversed(b, kind, item) for item in texts]
    return tuple(_from_memory(b, Value(kind, item, varying=True), part) for item in texts)


def _masked_load(b: Builder, base: str, part: DType, count: int, mask: str) -> str:
    """The elements that a mask wants, zeros beside them."""
    kind = memory_type(part)
    vector, suffix = f"<{count} x {kind}>", f"v{count}{b.scalar_suffix(kind)}"
    if b.options.permutes >= 512 or (b.options.permutes and part.nbytes >= 4):  # an instruction does it
        given = f"ptr {base}", f"i32 {part.nbytes}", f"<{count} x i1> {mask}", f"{vector} zeroinitializer"
        return b.call(vector, f"llvm.masked.load.{suffix}.p0", *given)
    b.declare(f"declare i1 @llvm.vector.reduce.or.v{count}i1(<{count} x i1>)")
    b.declare(MASKED_LOAD.format(vector=vector, suffix=suffix, kind=kind, count=count, nbytes=part.nbytes,
                                 last=PAGE - count * part.nbytes))  # fmt: skip
    wanted = b.let(f"sext <{count} x i1> {mask} to <{count} x i8>")
    return b.let(f"call {vector} @fusec.load.{suffix}(ptr {base}, <{count} x i8> {wanted})")


PAGE = 4096  # bytes of the smallest piece of memory that is readable as a whole or not at all

MASKED_LOAD = """\
define internal {vector} @fusec.load.{suffix}(ptr %base, <{count} x i8> %wanted) noinline nounwind {{
  %mask = icmp ne <{count} x i8> %wanted, zeroinitializer
  %some = call i1 @llvm.vector.reduce.or.v{count}i1(<{count} x i1> %mask)
  br i1 %some, label %near, label %none
near:
  %address = ptrtoint ptr %base to i64
  %within = and i64 %address, 4095
  %fits = icmp ule i64 %within, {last}
  br i1 %fits, label %whole, label %apart
whole:
  %all = load {vector}, ptr %base, align {nbytes}
  %chosen = select <{count} x i1> %mask, {vector} %all, {vector} zeroinitializer
  ret {vector} %chosen
apart:
  %flags = alloca <{count} x i8>
  %found = alloca {vector}
  store <{count} x i8> %wanted, ptr %flags
  store {vector} zeroinitializer, ptr %found
  br label %lane
lane:
  %at = phi i64 [ 0, %apart ], [ %next, %skipped ]
  %flag_at = getelementptr i8, ptr %flags, i64 %at
  %flag = load i8, ptr %flag_at
  %is_wanted = icmp ne i8 %flag, 0
  br i1 %is_wanted, label %take, label %skipped
take:
  %from = getelementptr {kind}, ptr %base, i64 %at
  %to = getelementptr {kind}, ptr %found, i64 %at
  %element = load {kind}, ptr %from, align {nbytes}
  store {kind} %element, ptr %to, align {nbytes}
  br label %skipped
skipped:
  %next = add i64 %at, 1
  %more = icmp ult i64 %next, {count}
  br i1 %more, label %lane, label %finished
finished:
  %result = load {vector}, ptr %found
  ret {vector} %result
none:
  ret {vector} zeroinitializer
}}"""
"""A masked load where no instruction is one; LLVM writes out a branch for every lane of each.

The whole vector is read if it lies in one page: a page with an element that is wanted is readable.
"""


def _store_consecutive(b: Builder, linear: Linear, value: Operand, dtype: DType, lanes: Lanes) -> None:
    part, backwards = real_type(dtype), linear.step < 0
    kind = memory_type(part)
    base = _first_address(b, linear)
    texts = [b.spread(item).text for item in value]
    if backwards:
        texts = [_reversed(b, kind, text) for text in texts]
    count = b.lanes * len(texts)
    vector, text = f"<{count} x {kind}>", texts[0]
    if dtype.is_complex:
        order = [at // 2 + (at % 2) * b.lanes for at in range(count)]
        text = b.shuffle(f"{b.vector_type(kind)} {texts[0]}", order, texts[1])
    if lanes.mask is None:
        if lanes.hint.tests:
            _store_tested(b, f"{vector} {text}, ptr {base}", base, part)
        else:
            _store_vector(b, f"{vector} {text}, ptr {base}", part, lanes.hint)
        return
    mask = f"<{count} x i1> {_mask_of_parts(b, lanes.mask, dtype, backwards)}"
    name = f"llvm.masked.store.v{count}{b.scalar_suffix(kind)}.p0"
    b.call("void", name, f"{vector} {text}", f"ptr {base}", f"i32 {part.nbytes}", mask)


def _store_vector(b: Builder, given: str, part: DType, hint: Hint) -> None:
    """A plain store, or either kind by a decision made at run time."""
    if hint.when is None:
        b.line(f"store {given}, align {part.nbytes}")
        return
    around, plain, done = b.label("around"), b.label("plain"), b.label("stored")
    b.fork(hint.when, around, plain)
    b.place(around)
    b.line(f"store {given}, align {hint.align}, !nontemporal !0")
    b.jump(done)
    b.place(plain)
    b.line(f"store {given}, align {part.nbytes}")
    b.jump(done)
    b.place(done)


def _store_tested(b: Builder, given: str, base: str, part: DType) -> None:
    """A store around the caches as far as the address allows, found at run time."""
    address, done = Value("i64", b.let(f"ptrtoint ptr {base} to i64")), b.label("stored")
    for align in AROUND:
        around, other = b.label("around"), b.label("other")
        low = b.binary("and", address, integer(align - 1))
        b.fork(b.compare("icmp eq", low, integer(0)), around, other)
        b.place(around)
        b.line(f"store {given}, align {align}, !nontemporal !0")
        b.jump(done)
        b.place(other)
    b.line(f"store {given}, align {part.nbytes}")
    b.jump(done)
    b.place(done)


# --- scattered elements ----------------------------------------------------------------------------------------


ALL_LANES = "splat (i1 true)"


def _gather(b: Builder, pointer: Value, part: DType, lanes: Lanes) -> Value:
    if lanes.mask is None and pointer.made is not None and (part.bits < 32 or b.options.permutes < 512):
        return _gather_one_by_one(b, *pointer.made, part)
    pointer, mask = _redirected(b, b.materialised(pointer), part, lanes)
    return gather(b, pointer, mask, memory_type(part), part.nbytes)


def _gather_one_by_one(b: Builder, address: str, index: Value, part: DType) -> Value:
    """Load each element at an index, where no instruction loads all of them, or one that takes longer."""
    kind, held = memory_type(part), "poison"
    for lane, at in enumerate(_taken_out(b, index)):
        element = b.let(f"load {kind}, ptr {b.let(f'{address}, i64 {at}')}, align {part.nbytes}")
        held = b.let(f"insertelement {b.vector_type(kind)} {held}, {kind} {element}, i64 {lane}")
    return Value(kind, held, varying=True)


def _taken_out(b: Builder, index: Value) -> list[str]:
    """The lanes of a vector of 64-bit indices. Those of 8 or 16 bits are shifted out of the words that they fill."""
    extended, index = index.made or ("", b.materialised(index))
    bits = bit_width(index.type)
    if extended and bits < 32 and b.lanes * bits % 64 == 0:
        words = f"<{b.lanes * bits // 64} x i64>"
        text = b.let(f"bitcast {b.typed(index)} to {words}")
        each = [b.let(f"extractelement {words} {text}, i64 {at}") for at in range(b.lanes * bits // 64)]
        places = [divmod(lane * bits, 64) for lane in range(b.lanes)]
        if extended == "zext":
            shifted = [b.let(f"lshr i64 {each[word]}, {start}") for word, start in places]
            return [b.let(f"and i64 {text}, {(1 << bits) - 1}") for text in shifted]
        shifted = [b.let(f"shl i64 {each[word]}, {64 - bits - start}") for word, start in places]
        return [b.let(f"ashr i64 {text}, {64 - bits}") for text in shifted]
    each = [b.let(f"extractelement {b.typed(index)}, i64 {lane}") for lane in range(b.lanes)]
    return [b.let(f"{extended} {index.type} {text} to i64") for text in each] if extended else each


def gather(b: Builder, pointer: Value, mask: str, kind: str, nbytes: int) -> Value:
    """The elements of an LLVM type at the addresses of a vector; zeros beside a mask."""
    vector, name = b.vector_type(kind), f"llvm.masked.gather.v{b.lanes}{b.scalar_suffix(kind)}.v{b.lanes}p0"
    filler = "poison" if mask == ALL_LANES else f"splat ({kind} {zero_of(kind)})"
    given = f"{b.vector_type('i1')} {mask}", f"{vector} {filler}"
    return Value(kind, b.call(vector, name, b.typed(pointer), f"i32 {nbytes}", *given), varying=True)


def _scatter(b: Builder, pointer: Value, value: Value, part: DType, lanes: Lanes) -> None:
    pointer, mask = _redirected(b, b.materialised(pointer), part, lanes)
    name = f"llvm.masked.scatter.v{b.lanes}{b.scalar_suffix(memory_type(part))}.v{b.lanes}p0"
    mask = f"{b.vector_type('i1')} {mask}"
    b.call("void", name, b.typed(value), b.typed(pointer), f"i32 {part.nbytes}", mask)


def _redirected(b: Builder, pointer: Value, part: DType, lanes: Lanes) -> tuple[Value, str]:
    """Addresses and mask of a scattered access; small elements, which no instruction masks, use scratch."""
    if lanes.mask is None:
        return pointer, ALL_LANES
    if part.bits >= 32:
        return pointer, lanes.mask.text
    return b.select(lanes.mask, pointer, Value("ptr", b.scratch())), ALL_LANES
