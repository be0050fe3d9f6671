"""The thread pool as LLVM IR text: POSIX threads that share chunks of an iteration space by an atomic ticket.

Note [Pool protocol]
The ticket is ``generation << 32 | next chunk``. A thread takes a chunk by a compare-and-swap that adds one, which
fails if the generation has moved on; so what it read of the job before is right whenever it succeeds, provided the
job is only rewritten while the ticket is closed (next chunk 2^32-1, and a new generation). The caller works too, then
waits until all chunks are done. A worker that finds nothing spins, then sleeps on the condition; the caller wakes
sleepers after it has opened the ticket, and a worker looks at the ticket once more after it has counted itself as a
sleeper, both in sequentially consistent order, so that no wake-up is lost. A caller that finds the pool busy with
another caller's job does its own alone. Workers are started by the first job and live until the process ends.
"""

from __future__ import annotations

STATE_BYTES = 576
# Offsets into the state, shared with the text below; every group has cache lines of its own.
WORKERS, SPIN = 272, 280
RESET_BYTES = WORKERS  # what a child process clears after a fork: all that speaks of the parent's threads

PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
    "arm64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}

_TEXT = """\
%Job = type { ptr, ptr, i64, i64, i64, [3 x i64] }        ; function, slots, size, chunk, number of chunks
%State = type { i64, [7 x i64], %Job, i64, [7 x i64], i64, [7 x i64], i64, i64, i64, i64, [4 x i64],
                [16 x i64], [16 x i64] }
; ticket at 0, job 2, done 3, sleepers 5, busy 7, started 8, workers 9, spins 10, mutex 12, condition 13

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sched_yield()
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
PAUSE_DECLARATION

; take chunks of one generation until none is left
define internal void @work(ptr %s, i64 %generation) nounwind {
entry:
  %function.at = getelementptr %State, ptr %s, i32 0, i32 2, i32 0
  %slots.at = getelementptr %State, ptr %s, i32 0, i32 2, i32 1
  %size.at = getelementptr %State, ptr %s, i32 0, i32 2, i32 2
  %chunk.at = getelementptr %State, ptr %s, i32 0, i32 2, i32 3
  %count.at = getelementptr %State, ptr %s, i32 0, i32 2, i32 4
  %done.at = getelementptr %State, ptr %s, i32 0, i32 3
  br label %look
look:
  %ticket = load atomic i64, ptr %s acquire, align 8
  %now = lshr i64 %ticket, 32
  %mine = icmp eq i64 %now, %generation
  br i1 %mine, label %read, label %out
read:
  %function = load atomic ptr, ptr %function.at monotonic, align 8
  %slots = load atomic ptr, ptr %slots.at monotonic, align 8
  %size = load atomic i64, ptr %size.at monotonic, align 8
  %chunk = load atomic i64, ptr %chunk.at monotonic, align 8
  %count = load atomic i64, ptr %count.at monotonic, align 8
  %next = and i64 %ticket, 4294967295
  %more = icmp ult i64 %next, %count
  br i1 %more, label %take, label %out
take:
  %ticket.after = add i64 %ticket, 1
  %swap = cmpxchg ptr %s, i64 %ticket, i64 %ticket.after acq_rel monotonic, align 8
  %taken = extractvalue { i64, i1 } %swap, 1
  br i1 %taken, label %go, label %look
go:
  %lo = mul i64 %next, %chunk
  %end = add i64 %lo, %chunk
  %hi = call i64 @llvm.smin.i64(i64 %end, i64 %size)
  call void %function(i64 %lo, i64 %hi, ptr %slots)
  %before = atomicrmw add ptr %done.at, i64 1 release
  br label %look
out:
  ret void
}

define internal ptr @worker(ptr %s) nounwind {
entry:
  %sleepers.at = getelementptr %State, ptr %s, i32 0, i32 5
  %spin.at = getelementptr %State, ptr %s, i32 0, i32 10
  %mutex = getelementptr %State, ptr %s, i32 0, i32 12
  %condition = getelementptr %State, ptr %s, i32 0, i32 13
  br label %idle
idle:
  %seen = phi i64 [ 0, %entry ], [ %generation, %serve ]
  %spins = load i64, ptr %spin.at
  br label %spin
spin:
  %turn = phi i64 [ 0, %idle ], [ %turn.next, %pause ]
  %ticket = load atomic i64, ptr %s acquire, align 8
  %current = lshr i64 %ticket, 32
  %fresh = icmp ne i64 %current, %seen
  br i1 %fresh, label %serve, label %patient
patient:
  %turn.next = add i64 %turn, 1
  %again = icmp slt i64 %turn.next, %spins
  br i1 %again, label %pause, label %sleep
pause:
  PAUSE_CALL
  br label %spin
sleep:
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  %one.more = atomicrmw add ptr %sleepers.at, i64 1 seq_cst
  br label %check
check:
  %ticket.late = load atomic i64, ptr %s seq_cst, align 8
  %late = lshr i64 %ticket.late, 32
  %fresh.late = icmp ne i64 %late, %seen
  br i1 %fresh.late, label %wake, label %wait
wait:
  %waited = call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %check
wake:
  %one.less = atomicrmw sub ptr %sleepers.at, i64 1 seq_cst
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %serve
serve:
  %generation = phi i64 [ %current, %spin ], [ %late, %wake ]
  call void @work(ptr %s, i64 %generation)
  br label %idle
}

; start the workers; a thread that cannot be had is done without
define internal void @start(ptr %s) nounwind noinline {
entry:
  %thread = alloca i64
  %started.at = getelementptr %State, ptr %s, i32 0, i32 8
  %workers.at = getelementptr %State, ptr %s, i32 0, i32 9
  %mutex = getelementptr %State, ptr %s, i32 0, i32 12
  %condition = getelementptr %State, ptr %s, i32 0, i32 13
  store i64 1, ptr %started.at
  %a = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %b = call i32 @pthread_cond_init(ptr %condition, ptr null)
  %workers = load i64, ptr %workers.at
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %more = icmp slt i64 %i, %workers
  br i1 %more, label %create, label %out
create:
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %s)
  %good = icmp eq i32 %failed, 0
  br i1 %good, label %detach, label %out
detach:
  %id = load i64, ptr %thread
  %c = call i32 @pthread_detach(i64 %id)
  br label %next
next:
  %i.next = add i64 %i, 1
  br label %loop
out:
  ret void
}

; run function(lo, hi, slots) over 0..size; grain is { serial_below, least, most, share, unit }
define void @run(ptr %s, ptr %function, ptr %slots, i64 %size, ptr %grain) nounwind {
entry:
  %serial.below = load i64, ptr %grain
  %large = icmp sgt i64 %size, %serial.below
  br i1 %large, label %lock, label %alone
lock:
  %busy.at = getelementptr %State, ptr %s, i32 0, i32 7
  %lock.swap = cmpxchg ptr %busy.at, i64 0, i64 1 acquire monotonic, align 8
  %free = extractvalue { i64, i1 } %lock.swap, 1
  br i1 %free, label %ready, label %alone
alone:
  call void %function(i64 0, i64 %size, ptr %slots)
  ret void
ready:
  %started.at = getelementptr %State, ptr %s, i32 0, i32 8
  %started = load i64, ptr %started.at
  %first = icmp eq i64 %started, 0
  br i1 %first, label %begin, label %divide
begin:
  call void @start(ptr %s)
  br label %divide
divide:
  %workers.at = getelementptr %State, ptr %s, i32 0, i32 9
  %workers = load i64, ptr %workers.at
  %threads = add i64 %workers, 1
  %least.at = getelementptr i64, ptr %grain, i64 1
  %least = load i64, ptr %least.at
  %most.at = getelementptr i64, ptr %grain, i64 2
  %most = load i64, ptr %most.at
  %share.at = getelementptr i64, ptr %grain, i64 3
  %share = load i64, ptr %share.at
  %parts = mul i64 %threads, %share
  %even = udiv i64 %size, %parts
  %unit.at = getelementptr i64, ptr %grain, i64 4
  %unit = load i64, ptr %unit.at
  %units = udiv i64 %even, %unit
  %units.up = add i64 %units, 1
  %whole = mul i64 %units.up, %unit
  %not.over = call i64 @llvm.smin.i64(i64 %whole, i64 %most)
  %not.under = call i64 @llvm.smax.i64(i64 %not.over, i64 %least)
  ; the count of chunks must stay below 2^32-1: sizes beyond 2^36 get larger ones
  %floor = lshr i64 %size, 30
  %floor.whole = shl i64 %floor, 6
  %chunk = call i64 @llvm.smax.i64(i64 %not.under, i64 %floor.whole)
  %size.up = add i64 %size, %chunk
  %size.last = sub i64 %size.up, 1
  %count = udiv i64 %size.last, %chunk

  ; see Note [Pool protocol]: close, write the job, open
  %ticket = load atomic i64, ptr %s monotonic, align 8
  %generation = lshr i64 %ticket, 32
  %between = add i64 %generation, 1
  %between.high = shl i64 %between, 32
  %closed = or i64 %between.high, 4294967295
  store atomic i64 %closed, ptr %s seq_cst, align 8
  %function.at = getelementptr %State, ptr %s, i32 0, i32 2, i32 0
  store atomic ptr %function, ptr %function.at release, align 8
  %slots.at = getelementptr %State, ptr %s, i32 0, i32 2, i32 1
  store atomic ptr %slots, ptr %slots.at release, align 8
  %size.at = getelementptr %State, ptr %s, i32 0, i32 2, i32 2
  store atomic i64 %size, ptr %size.at release, align 8
  %chunk.at = getelementptr %State, ptr %s, i32 0, i32 2, i32 3
  store atomic i64 %chunk, ptr %chunk.at release, align 8
  %count.at = getelementptr %State, ptr %s, i32 0, i32 2, i32 4
  store atomic i64 %count, ptr %count.at release, align 8
  %done.at = getelementptr %State, ptr %s, i32 0, i32 3
  store atomic i64 0, ptr %done.at release, align 8
  %open.high = add i64 %between, 1
  %mine = and i64 %open.high, 4294967295
  %open = shl i64 %mine, 32
  store atomic i64 %open, ptr %s seq_cst, align 8

  %sleepers.at = getelementptr %State, ptr %s, i32 0, i32 5
  %sleepers = load atomic i64, ptr %sleepers.at seq_cst, align 8
  %asleep = icmp sgt i64 %sleepers, 0
  br i1 %asleep, label %rouse, label %join
rouse:
  ; whoever was about to wait has begun to once the mutex is ours
  %mutex = getelementptr %State, ptr %s, i32 0, i32 12
  %condition = getelementptr %State, ptr %s, i32 0, i32 13
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  %b = call i32 @pthread_cond_broadcast(ptr %condition)
  br label %join
join:
  call void @work(ptr %s, i64 %mine)
  br label %wait
wait:
  %turn = phi i64 [ 0, %join ], [ %turn.next, %relax ]
  %done = load atomic i64, ptr %done.at acquire, align 8
  %all = icmp eq i64 %done, %count
  br i1 %all, label %finish, label %pause
pause:
  PAUSE_CALL
  %turn.next = add i64 %turn, 1
  %low = and i64 %turn.next, 63
  %give = icmp eq i64 %low, 0
  br i1 %give, label %yield, label %relax
yield:
  %y = call i32 @sched_yield()
  br label %relax
relax:
  br label %wait
finish:
  store atomic i64 0, ptr %busy.at release, align 8
  ret void
}
"""


def pool_text(architecture: str) -> str:
    """The module; its entry is ``void @run(state, function, slots, size, grain)``."""
    declaration, call = PAUSES.get(architecture, ("", ""))
    return _TEXT.replace("PAUSE_DECLARATION", declaration).replace("PAUSE_CALL", call)
