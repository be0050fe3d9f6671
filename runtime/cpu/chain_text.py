"""The driver of chained scans as LLVM IR text: blocks of chunks in order, each read from memory once.

Note [Chains]. A thread takes the next block, scans its chunks by themselves into memory of its own, which stays in its
second cache, waits until the block before has handed on its prefix, hands on its own, and writes the results. Blocks
are taken in order, so that the one waited for is always in the hands of a running thread.

All is said by one array of 64-bit words, the job: see `WORDS`, `PIECE` and `ENTRY` of `chain_words`. Values of several
parts lie in arrays a fixed distance apart. Addresses inside the job are distances in bytes from its start.
"""

from __future__ import annotations

from fusec.runtime.cpu.chain_blocks import columns_text, rows_text
from fusec.runtime.cpu.chain_words import ENTRY, GROUP, LINE, Text
from fusec.runtime.cpu.pool_text import PAUSES

PATIENCE = 1 << 13
"""Pauses between two offers to let another process run, some 0.2 ms: a block takes a tenth of that, and whoever yields
on a busy machine is away for milliseconds."""

_DECLARATIONS = """\
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare i32 @sched_yield()
declare i64 @llvm.smin.i64(i64, i64)
PAUSE_DECLARATION
"""


def chain_text(architecture: str, *, of_rows: bool) -> str:
    """The module; its entry is ``void @chain(i64 lo, i64 hi, ptr job)`` over blocks."""
    declaration, pause = PAUSES.get(architecture, ("", ""))
    parts = [
        _DECLARATIONS.replace("PAUSE_DECLARATION", declaration),
        _point(), _ask(), _run(), _join(), _copy(), _acquire(pause), _wait(pause),
        *([_gather(), rows_text()] if of_rows else [columns_text()]),
        _entry(),
    ]  # fmt: skip
    return "\n".join(parts)


# --- kernels -------------------------------------------------------------------------------------------------------


def _point() -> str:
    """Fill in the slots of a kernel: what no call changes, then its pointers."""
    t = Text("point", "job kernel buffer outer chunk span inner")
    slots = t.add("%buffer", t.piece("%kernel", "place"))
    t.copy(slots, t.add("%job", t.piece("%kernel", "template")), t.mul(t.piece("%kernel", "slots"), 8))
    table = t.add("%job", t.piece("%kernel", "table"))

    def entry(number: str) -> None:
        row = t.add(table, t.mul(number, 8 * len(ENTRY)))
        slot, relative, base, *steps = (t.at(row, at) for at in range(len(ENTRY) - 1))
        places = ("%outer", "%chunk", "%span", "%inner")
        moves = [t.mul(step, place) for step, place in zip(steps, places, strict=True)]
        t.put(t.add(slots, t.mul(slot, 8)), t.add(base, t.mul(relative, "%buffer"), *moves))

    t.loop(t.piece("%kernel", "entries"), entry)
    return t.done()


def _ask() -> str:
    """Ask for the cache lines where results begin that are written around the cache.

    These lines are written in two parts, through the cache; all that follows would wait for each of them to arrive.
    """
    t = Text("ask", "job outer chunk span inner")
    kernel = t.add("%job", t.word("finish"))
    table = t.add("%job", t.piece(kernel, "table"))

    def entry(number: str) -> None:
        row = t.add(table, t.mul(number, 8 * len(ENTRY)))
        _, _, base, *steps, edge = (t.at(row, at) for at in range(len(ENTRY)))

        def ask() -> None:
            places = ("%outer", "%chunk", "%span", "%inner")
            moves = [t.mul(step, place) for step, place in zip(steps, places, strict=True)]
            t.line(f"call void @llvm.prefetch.p0(ptr {t.pointer(t.add(base, *moves))}, i32 1, i32 3, i32 1)")

        t.when(t.test("ne", edge, 0), ask)

    t.loop(t.piece(kernel, "entries"), entry)
    return t.done()


def _run() -> str:
    """Run a kernel over positions 0 to `count`."""
    t = Text("run", "kernel buffer axis count")
    slots = t.add("%buffer", t.piece("%kernel", "place"))
    t.put(t.add(slots, t.mul(t.piece("%kernel", "axis"), 8)), "%axis")
    function = t.pointer(t.piece("%kernel", "function"))
    t.line(f"call void {function}(i64 0, i64 %count, ptr {t.pointer(slots)})")
    return t.done()


def _join() -> str:
    """Values combined with those on their left: one for all along rows, one for each along columns."""
    t = Text("join", "job buffer left right right_stride out count")
    kernel = t.add("%job", t.word("join"))
    t.call("point", "%job", kernel, "%buffer", 0, 0, 0, 0)
    slots = t.add("%buffer", t.piece(kernel, "place"))
    special, stride = t.add("%job", t.piece(kernel, "special")), t.word("stride")

    def part(number: str) -> None:
        row = t.add(special, t.mul(number, 24))
        for at, (start, step) in enumerate((("%left", stride), ("%right", "%right_stride"), ("%out", stride))):
            t.put(t.add(slots, t.mul(t.at(row, at), 8)), t.add(start, t.mul(number, step)))

    t.loop(t.word("parts"), part)
    t.call("run", kernel, "%buffer", 1, "%count")
    return t.done()


def _copy() -> str:
    """Values from one place to another."""
    t = Text("copy", "job source source_stride target target_stride count")
    sizes = t.add("%job", t.word("sizes"))

    def part(number: str) -> None:
        size = t.at(t.add(sizes, t.mul(number, 8)))
        source = t.add("%source", t.mul(number, "%source_stride"))
        t.copy(t.add("%target", t.mul(number, "%target_stride")), source, t.mul(size, "%count"))

    t.loop(t.word("parts"), part)
    return t.done()


def _one() -> str:
    """One value, from its number in an array to its number in another."""
    t = Text("one", "job source source_stride from target target_stride to")
    sizes = t.add("%job", t.word("sizes"))

    def part(number: str) -> None:
        size = t.at(t.add(sizes, t.mul(number, 8)))
        source = t.add("%source", t.mul(number, "%source_stride"), t.mul("%from", size))
        t.copy(t.add("%target", t.mul(number, "%target_stride"), t.mul("%to", size)), source, size)

    t.loop(t.word("parts"), part)
    return t.done()


def _gather() -> str:
    """The totals of a block scanned by doubling distances."""
    t = Text("gather", "job buffer source count")
    kernel = t.add("%job", t.word("gather"))
    t.call("point", "%job", kernel, "%buffer", 0, 0, 0, 0)
    slots = t.add("%buffer", t.piece(kernel, "place"))
    special, stride = t.add("%job", t.piece(kernel, "special")), t.word("stride")
    out = t.add("%buffer", t.word("scanned"))

    def part(number: str) -> None:
        row = t.add(special, t.mul(number, 16))
        for at, start in enumerate(("%source", out)):
            t.put(t.add(slots, t.mul(t.at(row, at), 8)), t.add(start, t.mul(number, stride)))

    t.loop(t.word("parts"), part)
    t.call("run", kernel, "%buffer", "%count", GROUP)
    return _one() + t.done()


# --- threads -------------------------------------------------------------------------------------------------------


def _acquire(pause: str) -> str:
    """A buffer that no other thread has: its number is stored at `found`. There are as many as threads."""
    t = Text("acquire", "job found")
    locks, count = t.add("%job", t.word("locks")), t.word("buffer_count")
    look, taken = t.label("look"), t.label("taken")
    t.line(f"br label %{look}")
    t.lines.append(f"{look}:")

    def attempt(number: str) -> None:
        word = t.pointer(t.add(locks, t.mul(number, LINE)))
        swap = t.let(f"cmpxchg ptr {word}, i64 0, i64 1 acquire monotonic, align 8")
        good, following = t.let(f"extractvalue {{ i64, i1 }} {swap}, 1"), t.label("next")
        t.put("%found", number)
        t.line(f"br i1 {good}, label %{taken}, label %{following}")
        t.lines.append(f"{following}:")

    t.loop(count, attempt)
    if pause:
        t.line(pause)
    t.line(f"br label %{look}")
    t.lines.append(f"{taken}:")
    return t.done()


def _wait(pause: str) -> str:
    """Until a word has a value."""
    t = Text("wait", "place value")
    word, look, again, rest, after = t.pointer("%place"), *map(t.label, ("look", "again", "rest", "after"))
    t.line(f"br label %{look}")
    t.lines.append(f"{look}:")
    turn, following = f"%{t.label('turn')}", f"%{t.label('n')}"
    t.line(f"{turn} = phi i64 [ 0, %entry ], [ {following}, %{again} ]")
    now = t.let(f"load atomic i64, ptr {word} acquire, align 8")
    pausing, yielding = t.label("pausing"), t.label("yielding")
    t.line(f"br i1 {t.test('eq', now, '%value')}, label %{after}, label %{pausing}")
    t.lines.append(f"{pausing}:")
    if pause:
        t.line(pause)
    t.line(f"{following} = add i64 {turn}, 1")
    low = t.op("and", following, PATIENCE - 1)
    t.line(f"br i1 {t.test('eq', low, 0)}, label %{yielding}, label %{rest}")
    t.lines.append(f"{yielding}:")
    t.let("call i32 @sched_yield()")
    t.line(f"br label %{rest}")
    t.lines.append(f"{rest}:")
    t.line(f"br label %{again}")
    t.lines.append(f"{again}:")
    t.line(f"br label %{look}")
    t.lines.append(f"{after}:")
    return t.done()


def _entry() -> str:
    """Blocks one after the other, each with a buffer."""
    lines = ["define void @chain(i64 %lo, i64 %hi, ptr %words) nounwind {", "entry:", "  %found = alloca i64"]
    t = Text("chain", "")
    t.lines = lines
    t.line("%job = ptrtoint ptr %words to i64")
    t.line("%place = ptrtoint ptr %found to i64")
    t.call("acquire", "%job", "%place")
    number = t.at("%place")
    buffer = t.add(t.word("buffers"), t.mul(number, t.word("buffer_bytes")))
    t.loop("%hi", lambda block: t.call("block", "%job", buffer, block), "%lo")
    t.line("fence seq_cst")  # results that were written around the caches are there when the pool is told
    lock = t.pointer(t.add("%job", t.word("locks"), t.mul(number, LINE)))
    t.line(f"store atomic i64 0, ptr {lock} release, align 8")
    return t.done()
