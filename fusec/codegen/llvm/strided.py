"""Vectors of elements a stride apart: small strides by whole vectors and shuffles, others one by one.

A stride that the layout tells is written where it is wanted, any other in a function that tests for the small ones.
Gathers take as long as the loads they are made of, and longer on some processors, so none is used: a step of two on
float32 runs five times as fast, a large one no slower. Stores likewise, with masks for what lies between the elements.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from fusec.arguments.layouts import SMALL_STEPS
from fusec.codegen.llvm.values import Builder, LinearAddress, Value, bit_width, integer, joined, lane_numbers

_REGISTER = 512  # bits loaded by one call


def is_shuffled(stride: int, nbytes: int) -> bool:
    """Whether elements a known stride apart, of so many bytes, are loaded by whole vectors and shuffles."""
    return stride in [step * nbytes for step in SMALL_STEPS]


def load(b: Builder, walk: LinearAddress, kind: str) -> str:
    """The vector of elements of LLVM type `kind` along a walk, all lanes; touches no other memory than between them."""
    nbytes = bit_width(kind) // 8
    lanes = min(b.lanes, _REGISTER // bit_width(kind))
    vector, name = f"<{lanes} x {kind}>", f"strided.{kind}.{lanes}"
    is_known = walk.stride.isdigit() and is_shuffled(int(walk.stride), nbytes)
    if not is_known:
        b.declare(_function(name, kind, lanes))
    distance, base, parts = b.binary("mul", Value("i64", walk.stride), integer(lanes)).text, walk.base, []
    for at in range(b.lanes // lanes):
        if at:
            base = b.at(base, distance)
        if is_known:
            parts.append(_every(b.let, int(walk.stride) // nbytes, kind, lanes, base))
        else:
            parts.append(b.let(f"call {vector} @{name}(ptr {base}, i64 {walk.stride})"))
    return joined(b, parts, kind, lanes)


def store(b: Builder, walk: LinearAddress, kind: str, text: str) -> None:
    """Store a vector of elements of LLVM type `kind` along a walk, lane after lane where they share memory."""
    nbytes = bit_width(kind) // 8
    if walk.stride.isdigit() and b.options.permutes < 512:
        held = b.let(f"freeze {b.vector_type(kind)} {text}")  # or LLVM would load one by one what was only loaded
        for lane in range(b.lanes):
            element = b.let(f"extractelement {b.vector_type(kind)} {held}, i64 {lane}")
            b.line(f"store {kind} {element}, ptr {b.at(walk.base, lane * int(walk.stride))}, align {nbytes}")
        return
    lanes = min(b.lanes, _REGISTER // bit_width(kind))
    vector, name = f"<{lanes} x {kind}>", f"strided.store.{kind}.{lanes}"
    b.declare(_storing(b, name, kind, lanes))
    distance, base = b.binary("mul", Value("i64", walk.stride), integer(lanes)).text, walk.base
    for at in range(0, b.lanes, lanes):
        if at:
            base = b.at(base, distance)
        part = b.shuffle(f"{b.vector_type(kind)} {text}", range(at, at + lanes)) if lanes < b.lanes else text
        b.line(f"call void @{name}({vector} {part}, ptr {base}, i64 {walk.stride})")


def _storing(b: Builder, name: str, kind: str, lanes: int) -> str:
    """The function ``void (vector, ptr base, i64 stride)``."""
    nbytes = bit_width(kind) // 8
    vector, masks = f"<{lanes} x {kind}>", f"llvm.masked.store.v{lanes}{b.scalar_suffix(kind)}.p0"
    steps = SMALL_STEPS if b.options.permutes >= 512 else ()  # elsewhere masks are branches
    if steps:
        b.declare(f"declare void @{masks}({vector}, ptr, i32, <{lanes} x i1>)")
    cases = " ".join(f"i64 {step * nbytes}, label %by{step}" for step in steps)
    lines = [
        f"define internal void @{name}({vector} %value, ptr %base, i64 %stride) noinline nounwind {{",
        f"  switch i64 %stride, label %any [i64 {-nbytes}, label %back {cases}]",
        "back:",
        f"  %start = getelementptr i8, ptr %base, i64 {-(lanes - 1) * nbytes}",
        f"  %backwards = shufflevector {vector} %value, {vector} poison, {lane_numbers(range(lanes - 1, -1, -1))}",
        f"  store {vector} %backwards, ptr %start, align {nbytes}",
        "  ret void",
    ]
    for step in steps:
        lines.append(f"by{step}:")
        for part in range(step):
            places = [divmod(part * lanes + at, step) for at in range(lanes)]
            mask = f"<{lanes} x i1> <{', '.join(f'i1 {str(not rest).lower()}' for _, rest in places)}>"
            order = lane_numbers([lane for lane, _ in places])
            lines += [
                f"  %v{step}.{part} = shufflevector {vector} %value, {vector} poison, {order}",
                f"  %a{step}.{part} = getelementptr i8, ptr %base, i64 {part * lanes * nbytes}",
                f"  call void @{masks}({vector} %v{step}.{part}, ptr %a{step}.{part}, i32 {nbytes}, {mask})",
            ]
        lines.append("  ret void")
    lines.append("any:")
    for lane in range(lanes):
        lines += [
            f"  %d{lane} = mul i64 %stride, {lane}",
            f"  %p{lane} = getelementptr i8, ptr %base, i64 %d{lane}",
            f"  %e{lane} = extractelement {vector} %value, i64 {lane}",
            f"  store {kind} %e{lane}, ptr %p{lane}, align {nbytes}",
        ]
    return "\n".join([*lines, "  ret void", "}"])


@lru_cache
def _function(name: str, kind: str, lanes: int) -> str:
    """The function ``vector (ptr base, i64 stride)``; one for all operands, as inlining doubles the compile time."""
    nbytes = bit_width(kind) // 8
    vector = f"<{lanes} x {kind}>"
    cases = " ".join(
        f"i64 {step * nbytes}, label %by{step} i64 {-step * nbytes}, label %back{step}" for step in SMALL_STEPS
    )
    lines = [
        f"define internal {vector} @{name}(ptr %base, i64 %stride) noinline nounwind {{",
        f"  switch i64 %stride, label %any [i64 {-nbytes}, label %back {cases}]",
        "back:",
        f"  %start = getelementptr i8, ptr %base, i64 {-(lanes - 1) * nbytes}",
        f"  %forwards = load {vector}, ptr %start, align {nbytes}",
        *_backwards("%backwards", vector, lanes, "%forwards"),
    ]
    for step in SMALL_STEPS:
        for way, base in (("by", "%base"), ("back", f"%start{step}")):
            let = _Lines(f"{way}{step}")
            found = _every(let, step, kind, lanes, base)
            lines.append(f"{way}{step}:")
            if way == "back":
                lines.append(f"  {base} = getelementptr i8, ptr %base, i64 {-(lanes - 1) * step * nbytes}")
            lines += let.lines
            lines += [f"  ret {vector} {found}"] if way == "by" else _backwards(f"%b{step}", vector, lanes, found)
    return "\n".join([*lines, "any:", *_one_by_one(kind, lanes), f"  ret {vector} %v{lanes - 1}", "}"])


class _Lines:
    """Instructions with names of their own."""

    def __init__(self, stem: str) -> None:
        self.stem = stem
        self.lines: list[str] = []

    def __call__(self, text: str) -> str:
        """Add an instruction; the name of its result."""
        name = f"%{self.stem}.{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name


def _backwards(name: str, vector: str, lanes: int, text: str) -> list[str]:
    """Instructions that return a vector in reverse."""
    order = lane_numbers(range(lanes - 1, -1, -1))
    return [f"  {name} = shufflevector {vector} {text}, {vector} poison, {order}", f"  ret {vector} {name}"]


def _one_by_one(kind: str, lanes: int) -> list[str]:
    """Instructions that leave the elements at any stride in ``%vLAST``."""
    nbytes = bit_width(kind) // 8
    lines = []
    for lane in range(lanes):
        before = f"%v{lane - 1}" if lane else "poison"
        lines += [
            f"  %d{lane} = mul i64 %stride, {lane}",
            f"  %p{lane} = getelementptr i8, ptr %base, i64 %d{lane}",
            f"  %e{lane} = load {kind}, ptr %p{lane}, align {nbytes}",
            f"  %v{lane} = insertelement <{lanes} x {kind}> {before}, {kind} %e{lane}, i64 {lane}",
        ]
    return lines


def _every(let: Callable[[str], str], step: int, kind: str, lanes: int, base: str) -> str:
    """Load every `step`-th element from an address on. let: adds an instruction.

    The last vector loaded ends with the last element wanted, since memory may end there.
    """
    vector, nbytes = f"<{lanes} x {kind}>", bit_width(kind) // 8
    starts = [min(part * lanes, (lanes - 1) * step + 1 - lanes) for part in range(step)]
    places = [let(f"getelementptr i8, ptr {base}, i64 {start * nbytes}") for start in starts]
    wide = [let(f"load {vector}, ptr {place}, align {nbytes}") for place in places]
    held = wide[0]
    for part in range(1, step):
        order = []
        for lane in range(lanes):
            at = lane * step
            if at >= part * lanes and at < (part + 1) * lanes:
                order.append(lanes + at - starts[part])  # new in this vector
            elif part == 1:
                order.append(min(at, lanes - 1))  # of the first vector, or any
            else:
                order.append(lane)
        held = let(f"shufflevector {vector} {held}, {vector} {wide[part]}, {lane_numbers(order)}")
    return held
