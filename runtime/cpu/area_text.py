"""Memory that several kernels of one call share, as LLVM IR text: the start of every composite executable's module.

Note [Areas]. A call of a composite has an *area* of its own: a first line for its driver, the driver's words, the slots
of its kernels, and arrays that lie between kernels. Slot 0 of a composite is the address of its description: `HEAD`, an
image of the area up to the arrays, and patches (`PATCH`) of words that calls differ in. A description keeps one area
that nobody uses, so that calls one after the other find their pages as they left them.
"""

from __future__ import annotations

from collections.abc import Mapping

from fusec.runtime.cpu.pool_text import PAUSES

LINE = 64  # bytes of a cache line
HEAD = ("spare", "bytes", "words", "patches", "run", "size")
"""An area that is free, 0 for none; bytes of an area; words of the image; patches; address of what runs a function by
the pool; positions of the driver."""
PATCH = ("word", "source", "added")
"""A word of the area; the slot that it is a copy of, -1 for the address of the area; what is added."""

_TEXT = """\
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.trap()
declare i64 @llvm.smin.i64(i64, i64)
PAUSE_DECLARATION

define internal i64 @word(ptr %from, i64 %number) nounwind alwaysinline {
  %at = getelementptr i64, ptr %from, i64 %number
  %value = load i64, ptr %at
  ret i64 %value
}

; memory for an area, whose address goes into a word of the line before it
define internal ptr @take(ptr %slots) nounwind {
entry:
  %description = load ptr, ptr %slots
HEADS
  %spare.now = atomicrmw xchg ptr %description, i64 0 acquire
  %none = icmp eq i64 %spare.now, 0
  br i1 %none, label %allocate, label %fill
allocate:
  %room = add i64 %bytes, TWO_LINES
  %held = call ptr @malloc(i64 %room)
  %failed = icmp eq ptr %held, null
  br i1 %failed, label %fail, label %align
fail:
  call void @llvm.trap()
  unreachable
align:
  %held.at = ptrtoint ptr %held to i64
  %up = add i64 %held.at, 127
  %aligned = and i64 %up, -64
  %aligned.at = inttoptr i64 %aligned to ptr
  %note = getelementptr i64, ptr %aligned.at, i64 -1
  store i64 %held.at, ptr %note
  br label %fill
fill:
  %start = phi i64 [ %spare.now, %entry ], [ %aligned, %align ]
  %area = inttoptr i64 %start to ptr
  %image = getelementptr i64, ptr %description, i64 HEAD_WORDS
  %image.bytes = mul i64 %words, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %area, ptr %image, i64 %image.bytes, i1 false)
  %first = getelementptr i64, ptr %image, i64 %words
  br label %patch
patch:
  %p = phi i64 [ 0, %fill ], [ %p.next, %patched ]
  %p.offset = mul i64 %p, PATCH_WORDS
  %patch.at = getelementptr i64, ptr %first, i64 %p.offset
  %word = load i64, ptr %patch.at
  %source = call i64 @word(ptr %patch.at, i64 1)
  %added = call i64 @word(ptr %patch.at, i64 2)
  %is.area = icmp slt i64 %source, 0
  br i1 %is.area, label %patched, label %copy
copy:
  %given = call i64 @word(ptr %slots, i64 %source)
  br label %patched
patched:
  %from = phi i64 [ %start, %patch ], [ %given, %copy ]
  %value = add i64 %from, %added
  %word.at = getelementptr i64, ptr %area, i64 %word
  store i64 %value, ptr %word.at
  %p.next = add i64 %p, 1
  %p.more = icmp slt i64 %p.next, %patches
  br i1 %p.more, label %patch, label %out
out:
  ret ptr %area
}

; keep the area for the next call, or free it if another one is kept
define internal void @give(ptr %slots, ptr %area) nounwind {
entry:
  %description = load ptr, ptr %slots
  %start = ptrtoint ptr %area to i64
  %kept = cmpxchg ptr %description, i64 0, i64 %start release monotonic, align 8
  %done = extractvalue { i64, i1 } %kept, 1
  br i1 %done, label %out, label %drop
drop:
  %note = getelementptr i64, ptr %area, i64 -1
  %held = load ptr, ptr %note
  call void @free(ptr %held)
  br label %out
out:
  ret void
}
"""


def area_text(architecture: str) -> str:
    """Functions that allocate an area for slots and free it; `word` reads a word of an array."""
    text = filled_in(_TEXT, {"HEADS": words_of("description", HEAD)})
    numbers = {"HEAD_WORDS": len(HEAD), "PATCH_WORDS": len(PATCH), "TWO_LINES": 2 * LINE}
    return paused(filled_in(text, {name: str(number) for name, number in numbers.items()}), architecture)


def words_of(array: str, names: tuple[str, ...]) -> str:
    """Instructions that load words of an array into variables of these names."""
    return "\n".join(f"  %{name} = call i64 @word(ptr %{array}, i64 {at})" for at, name in enumerate(names))


def filled_in(text: str, values: Mapping[str, str]) -> str:
    """A text with words replaced."""
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def paused(text: str, architecture: str) -> str:
    """A text with the processor's instruction for waiting."""
    declaration, call = PAUSES.get(architecture, ("", ""))
    return filled_in(text, {"PAUSE_DECLARATION": declaration, "PAUSE_CALL": call})
