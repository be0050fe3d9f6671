"""Kernels in order as LLVM IR text, each run by the pool if there is one: no Python runs between them.

The area of a call, see Note [Areas] in `fusec.runtime.cpu.area_text`, begins with a line that is not used; then come
`STEP` for each kernel.
"""

from __future__ import annotations

from fusec.runtime.cpu.area_text import HEAD, LINE, area_text, filled_in

STEP = ("function", "slots", "positions", "grain")
"""Address of the kernel, of its slots and of its grain; its positions."""

_TEXT = """
; what runs a function where there is no pool
define internal void @alone(ptr %pool, ptr %function, ptr %slots, i64 %size, ptr %grain) nounwind {
  call void %function(i64 0, i64 %size, ptr %slots)
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
  %function = load ptr, ptr %step
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


def sequence_text(architecture: str) -> str:
    """The module; its entry is ``void @sequence(pool, ignored, slots, ignored, ignored)``, as that of the pool."""
    values = {"RUN": HEAD.index("run"), "SIZE": HEAD.index("size"), "LINE": LINE, "STEP_BYTES": 8 * len(STEP)}
    return area_text(architecture) + filled_in(_TEXT, {name: str(value) for name, value in values.items()})
