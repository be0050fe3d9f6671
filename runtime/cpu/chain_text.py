"""Chained scans as LLVM IR text: rows are read from memory once, by all threads.

Note [Chains]. A row is cut into blocks of chunks that fit a second cache. A thread takes the next block and makes the
totals of its chunks; it waits until the block before has handed its state on, scans its own totals from there, hands
the state on, and makes the results of its block, which is still in its cache. Blocks are taken in order, so that the
one waited for is always in the hands of a running thread. Only the scan of the totals of a block, a vector or two of
values, happens one block after the other: 0.2 us, where a block takes 25.

A thread that sees no block handed on for much longer than one takes sleeps: whoever has the turn has lost its
processor, and gets the one that sleeping leaves idle. All that sleep soon see that blocks are handed on again, and stay
awake then; were they to sleep after any long wait, each block would find the next thread asleep, and calls would take
20 times as long from then on.

The area of a call, see Note [Areas], begins with the number of blocks that have handed on; then comes a job: `WORDS`,
and `ENTRY` for each pointer that moves from block to block.
"""

from __future__ import annotations

from fusec.runtime.cpu.area_text import HEAD, LINE, area_text, filled_in, paused, words_of

SPINS = 10_000  # pauses without a block handed on before a thread that waits sleeps, 0.1 to 0.5 ms
NAP = 30  # us
WORDS = (
    "blocks",  # of a row
    "span",  # positions of a block
    "sums",  # positions of a row for the kernel of totals, which leaves the last chunk out
    "results",  # the same for that of results
    "sum_function", "sum_slots", "advance_function", "advance_slots", "result_function", "result_slots",
    "group", "number", "count",  # positions of the kernel that advances; bytes to its slots of block and count
    "entries",  # how many pointers of it move
)  # fmt: skip
"""The words of a job."""
ENTRY = ("slot", "base", "block", "row")
"""Bytes to the pointer's slot, its address for the first block, bytes from block to block, from row to row."""

_TEXT = """\
declare i32 @usleep(i32)

define internal void @wait(ptr %turn, i64 %block) nounwind {
entry:
  br label %look
look:
  %spins = phi i64 [ 0, %entry ], [ %more, %spin ], [ %more, %sleep ]
  %before = phi i64 [ -1, %entry ], [ %now, %spin ], [ %now, %sleep ]
  %now = load atomic i64, ptr %turn acquire, align 8
  %ours = icmp eq i64 %now, %block
  br i1 %ours, label %out, label %patient
patient:
  %stands = icmp eq i64 %now, %before
  %passed = select i1 %stands, i64 %spins, i64 0
  %more = add i64 %passed, 1
  %soon = icmp slt i64 %more, SPINS
  br i1 %soon, label %spin, label %sleep
spin:
  PAUSE_CALL
  br label %look
sleep:
  %slept = call i32 @usleep(i32 NAP)
  br label %look
out:
  ret void
}

; blocks lo to hi of an area
define internal void @blocks(i64 %lo, i64 %hi, ptr %turn) nounwind {
entry:
  %job = getelementptr i8, ptr %turn, i64 LINE
LOADS
  %sum = inttoptr i64 %sum_function to ptr
  %sum.slots = inttoptr i64 %sum_slots to ptr
  %advance = inttoptr i64 %advance_function to ptr
  %advance.slots = inttoptr i64 %advance_slots to ptr
  %result = inttoptr i64 %result_function to ptr
  %result.slots = inttoptr i64 %result_slots to ptr
  %number.at = getelementptr i8, ptr %advance.slots, i64 %number
  %count.at = getelementptr i8, ptr %advance.slots, i64 %count
  br label %next
next:
  %block = phi i64 [ %lo, %entry ], [ %following, %hand ]
  %row = sdiv i64 %block, %blocks
  %passed = mul i64 %row, %blocks
  %place = sub i64 %block, %passed
  %begin = mul i64 %place, %span
  %end = add i64 %begin, %span
  %sum.end = call i64 @llvm.smin.i64(i64 %end, i64 %sums)
  %result.end = call i64 @llvm.smin.i64(i64 %end, i64 %results)
  %some = icmp slt i64 %begin, %sum.end
  br i1 %some, label %totals, label %turns
totals:
  %sum.row = mul i64 %row, %sums
  %sum.from = add i64 %sum.row, %begin
  %sum.to = add i64 %sum.row, %sum.end
  call void %sum(i64 %sum.from, i64 %sum.to, ptr %sum.slots)
  br label %turns
turns:
  call void @wait(ptr %turn, i64 %block)
  br i1 %some, label %point, label %hand
point:
  ; whoever has the turn has the slots of the kernel that advances, too
  store i64 %place, ptr %number.at
  %positions = sub i64 %sum.end, %begin
  %chunks = sdiv i64 %positions, %group
  store i64 %chunks, ptr %count.at
  br label %pointer
pointer:
  %entry.number = phi i64 [ 0, %point ], [ %entry.next, %pointer ]
  %entry.offset = mul i64 %entry.number, 4
  %entry.0 = add i64 %entry.offset, FIRST_ENTRY
  %slot = call i64 @word(ptr %job, i64 %entry.0)
  %entry.1 = add i64 %entry.0, 1
  %base = call i64 @word(ptr %job, i64 %entry.1)
  %entry.2 = add i64 %entry.0, 2
  %by.block = call i64 @word(ptr %job, i64 %entry.2)
  %entry.3 = add i64 %entry.0, 3
  %by.row = call i64 @word(ptr %job, i64 %entry.3)
  %for.block = mul i64 %by.block, %place
  %for.row = mul i64 %by.row, %row
  %in.row = add i64 %base, %for.row
  %address = add i64 %in.row, %for.block
  %slot.at = getelementptr i8, ptr %advance.slots, i64 %slot
  store i64 %address, ptr %slot.at
  %entry.next = add i64 %entry.number, 1
  %entry.more = icmp slt i64 %entry.next, %entries
  br i1 %entry.more, label %pointer, label %go
go:
  call void %advance(i64 0, i64 %group, ptr %advance.slots)
  br label %hand
hand:
  %following = add i64 %block, 1
  store atomic i64 %following, ptr %turn release, align 8
  %result.row = mul i64 %row, %results
  %result.from = add i64 %result.row, %begin
  %result.to = add i64 %result.row, %result.end
  call void %result(i64 %result.from, i64 %result.to, ptr %result.slots)
  %again = icmp slt i64 %following, %hi
  br i1 %again, label %next, label %out
out:
  ret void
}

; all blocks by the pool; slot 0 is the address of the description
define void @chain(ptr %pool, ptr %unused, ptr %slots, i64 %one, ptr %grain) nounwind {
  %area = call ptr @take(ptr %slots)
  %description = load ptr, ptr %slots
  %run = call i64 @word(ptr %description, i64 RUN)
  %size = call i64 @word(ptr %description, i64 SIZE)
  %run.at = inttoptr i64 %run to ptr
  call void %run.at(ptr %pool, ptr @blocks, ptr %area, i64 %size, ptr %grain)
  call void @give(ptr %slots, ptr %area)
  ret void
}
"""


def chain_text(architecture: str) -> str:
    """The module; its entry is ``void @chain(pool, ignored, slots, ignored, grain)``, as that of the pool."""
    values = {"LOADS": words_of("job", WORDS), "FIRST_ENTRY": len(WORDS), "SPINS": SPINS, "NAP": NAP, "LINE": LINE}
    values |= {"RUN": HEAD.index("run"), "SIZE": HEAD.index("size")}
    text = filled_in(_TEXT, {name: str(value) for name, value in values.items()})
    return area_text(architecture) + paused(text, architecture)
