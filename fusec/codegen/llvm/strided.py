"""Vectors of elements a run-time stride apart: small strides by whole vectors and shuffles, others one by one.

Gathers take as long as the loads they are made of, and longer on some processors, so none is used: a step of two on
float32 runs five times as fast, a large one no slower. Stores likewise, with masks for what lies between the elements.
"""

from __future__ import annotations

from functools import lru_cache

from fusec.codegen.llvm.values import Builder, LinearAddress, bit_width, joined, lane_numbers

_REGISTER = 512  # bits loaded by one call
_STEPS = (2, 3, 4)  # in elements; from there on most of what whole vectors hold would be thrown away


def load(b: Builder, walk: LinearAddress, kind: str) -> str:
    """The vector of elements of LLVM type `kind` along a walk, all lanes; touches no other memory than between them."""
    lanes = min(b.lanes, _REGISTER // bit_width(kind))
    vector, name = f"<{lanes} x {kind}>", f"strided.{kind}.{lanes}"
    b.declare(_function(name, kind, lanes))
    distance, base, parts = b.let(f"mul i64 {walk.stride}, {lanes}"), walk.base, []
    for at in range(b.lanes // lanes):
        if at:
            base = b.at(base, distance)
        parts.append(b.let(f"call {vector} @{name}(ptr {base}, i64 {walk.stride})"))
    return joined(b, parts, kind, lanes)


def store(b: Builder, walk: LinearAddress, kind: str, text: str) -> None:
    """Store a vector of elements of LLVM type `kind` along a walk, lane after lane where they share memory."""
    lanes = min(b.lanes, _REGISTER // bit_width(kind))
    vector, name = f"<{lanes} x {kind}>", f"strided.store.{kind}.{lanes}"
    b.declare(_storing(b, name, kind, lanes))
    distance, base = b.let(f"mul i64 {walk.stride}, {lanes}"), walk.base
    for at in range(0, b.lanes, lanes):
        if at:
            base = b.at(base, distance)
        part = b.shuffle(f"{b.vector_type(kind)} {text}", range(at, at + lanes)) if lanes < b.lanes else text
        b.line(f"call void @{name}({vector} {part}, ptr {base}, i64 {walk.stride})")


def _storing(b: Builder, name: str, kind: str, lanes: int) -> str:
    """The function ``void (vector, ptr base, i64 stride)``."""
    nbytes = bit_width(kind) // 8
    vector, masks = f"<{lanes} x {kind}>", f"llvm.masked.store.v{lanes}{b.scalar_suffix(kind)}.p0"
    steps = _STEPS if b.options.permutes >= 512 else ()  # elsewhere masks are branches
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
    cases = " ".join(f"i64 {step * nbytes}, label %by{step} i64 {-step * nbytes}, label %back{step}" for step in _STEPS)
    lines = [
        f"define internal {vector} @{name}(ptr %base, i64 %stride) noinline nounwind {{",
        f"  switch i64 %stride, label %any [i64 {-nbytes}, label %back {cases}]",
        "back:",
        f"  %start = getelementptr i8, ptr %base, i64 {-(lanes - 1) * nbytes}",
        f"  %forwards = load {vector}, ptr %start, align {nbytes}",
        *_backwards("%backwards", vector, lanes, "%forwards"),
    ]
    for step in _STEPS:
        lines += [f"by{step}:", *_by(step, vector, lanes, nbytes, "base"), f"  ret {vector} %vbase{step}.{step - 1}"]
        lines += [f"back{step}:", f"  %start{step} = getelementptr i8, ptr %base, i64 {-(lanes - 1) * step * nbytes}"]
        lines += _by(step, vector, lanes, nbytes, "start")
        lines += _backwards(f"%b{step}", vector, lanes, f"%vstart{step}.{step - 1}")
    return "\n".join([*lines, "any:", *_one_by_one(kind, lanes), f"  ret {vector} %v{lanes - 1}", "}"])


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


def _by(step: int, vector: str, lanes: int, nbytes: int, name: str) -> list[str]:
    """Instructions that load every `step`-th element from an address on, and leave them in ``%vNAMESTEP.LAST``.

    The last vector loaded ends with the last element wanted, since memory may end there.
    """
    lines, base = [], "%base" if name == "base" else f"%{name}{step}"
    starts = [min(part * lanes, (lanes - 1) * step + 1 - lanes) for part in range(step)]
    for part, start in enumerate(starts):
        lines += [
            f"  %a{name}{step}.{part} = getelementptr i8, ptr {base}, i64 {start * nbytes}",
            f"  %w{name}{step}.{part} = load {vector}, ptr %a{name}{step}.{part}, align {nbytes}",
        ]
    held = f"%w{name}{step}.0"
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
        pair = f"{vector} {held}, {vector} %w{name}{step}.{part}"
        lines.append(f"  %v{name}{step}.{part} = shufflevector {pair}, {lane_numbers(order)}")
        held = f"%v{name}{step}.{part}"
    return lines
