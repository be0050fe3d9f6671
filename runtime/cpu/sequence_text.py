"""Kernels in order as LLVM IR text, each run by the pool if there is one: no Python runs between them.

The area of a call, see Note [Areas] in `fusec.runtime.cpu.area_text`, begins with a line that is not used; then come
`STEP` for each kernel. Kernels that run together or strip by strip are one step, whose slots are a table: their number,
and `PART` for each.
"""

from __future__ import annotations

from functools import cache

from fusec.runtime.cpu.area_text import HEAD, LINE, area_text, filled_in

STEP = ("function", "slots", "positions", "grain")
"""Address of the kernel, or `TOGETHER` or `STRIPED` for several; of its slots and of its grain; its positions."""
PART = ("function", "slots", "begin", "end")
"""Address of a kernel that runs beside others, and of its slots; its positions among theirs. Of one that runs strip by
strip, the positions of a strip are in place of the first one."""
TOGETHER, STRIPED = 0, 1

_TEXT = """
declare i64 @llvm.smax.i64(i64, i64)

; what runs a function where there is no pool
define internal void @alone(ptr %pool, ptr %function, ptr %slots, i64 %size, ptr %grain) nounwind {
  call void %function(i64 0, i64 %size, ptr %slots)
  ret void
}

; some positions of several kernels, which lie one behind the other, or some strips: of each kernel in order
define internal void @parts(i64 %lo, i64 %hi, ptr %table, i1 %in.strips) nounwind alwaysinline {
entry:
  %count = load i64, ptr %table
  %first = getelementptr i64, ptr %table, i64 1
  br label %next
next:
  %number = phi i64 [ 0, %entry ], [ %following, %done ]
  %offset = mul i64 %number, PART_BYTES
  %part = getelementptr i8, ptr %first, i64 %offset
  %begin.or.span = call i64 @word(ptr %part, i64 2)
  %end = call i64 @word(ptr %part, i64 3)
  %before = select i1 %in.strips, i64 0, i64 %begin.or.span
  %scale = select i1 %in.strips, i64 %begin.or.span, i64 1
  %lo.scaled = mul i64 %lo, %scale
  %hi.scaled = mul i64 %hi, %scale
  %from = call i64 @llvm.smax.i64(i64 %lo.scaled, i64 %before)
  %to = call i64 @llvm.smin.i64(i64 %hi.scaled, i64 %end)
  %some = icmp slt i64 %from, %to
  br i1 %some, label %run, label %done
run:
  %function = load ptr, ptr %part
  %slots.at = getelementptr ptr, ptr %part, i64 1
  %slots = load ptr, ptr %slots.at
  %from.own = sub i64 %from, %before
  %to.own = sub i64 %to, %before
  call void %function(i64 %from.own, i64 %to.own, ptr %slots)
  br label %done
done:
  %following = add i64 %number, 1
  %more = icmp slt i64 %following, %count
  br i1 %more, label %next, label %out
out:
  ret void
}

define internal void @together(i64 %lo, i64 %hi, ptr %table) nounwind {
  call void @parts(i64 %lo, i64 %hi, ptr %table, i1 false)
  ret void
}

; strip by strip: each kernel runs the positions of a strip, and then the next kernel does
define internal void @striped(i64 %lo, i64 %hi, ptr %table) nounwind {
entry:
  %any = icmp slt i64 %lo, %hi
  br i1 %any, label %next, label %out
next:
  %strip = phi i64 [ %lo, %entry ], [ %following, %next ]
  %following = add i64 %strip, 1
  call void @parts(i64 %strip, i64 %following, ptr %table, i1 true)
  %more = icmp slt i64 %following, %hi
  br i1 %more, label %next, label %out
out:
  ret void
}

; all steps in order; slot 0 is the address of the description
define void @sequence(ptr %pool, ptr %unused, ptr %slots, i64 %one, ptr %grain.unused) nounwind {
entry:
  %area = call ptr @take(ptr %slots)
  %description = load ptr, ptr %slots
  %run = call i64 @word(ptr %description, i64 RUN)
  %steps = call i64 @word(ptr %description, i64 SIZE)
  %pooled = icmp ne i64 %run, 0
  %pool.run = inttoptr i64 %run to ptr
  %run.at = select i1 %pooled, ptr %pool.run, ptr @alone
  %first = getelementptr i8, ptr %area, i64 LINE
  br label %next
next:
  %number = phi i64 [ 0, %entry ], [ %following, %next ]
  %offset = mul i64 %number, STEP_BYTES
  %step = getelementptr i8, ptr %first, i64 %offset
  %its.own = load ptr, ptr %step
  %its.word = ptrtoint ptr %its.own to i64
  %is.striped = icmp eq i64 %its.word, STRIPED
  %several = select i1 %is.striped, ptr @striped, ptr @together
  %is.several = icmp ule i64 %its.word, STRIPED
  %function = select i1 %is.several, ptr %several, ptr %its.own
  %slots.at = getelementptr ptr, ptr %step, i64 1
  %its.slots = load ptr, ptr %slots.at
  %positions = call i64 @word(ptr %step, i64 2)
  %grain.at = getelementptr ptr, ptr %step, i64 3
  %grain = load ptr, ptr %grain.at
  call void %run.at(ptr %pool, ptr %function, ptr %its.slots, i64 %positions, ptr %grain)
  %following = add i64 %number, 1
  %more = icmp slt i64 %following, %steps
  br i1 %more, label %next, label %out
out:
  call void @give(ptr %slots, ptr %area)
  ret void
}
"""


@cache
def sequence_text(architecture: str) -> str:
    """The module; its entry is ``void @sequence(pool, ignored, slots, ignored, ignored)``, as that of the pool."""
    values = {
        "RUN": HEAD.index("run"), "SIZE": HEAD.index("size"), "LINE": LINE, "STEP_BYTES": 8 * len(STEP),
        "PART_BYTES": 8 * len(PART), "STRIPED": STRIPED,
    }  # fmt: skip
    return area_text(architecture) + filled_in(_TEXT, {name: str(value) for name, value in values.items()})
