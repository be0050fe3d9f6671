"""What a thread does with one block of a chained scan, as LLVM IR text: of a row, or of some columns."""

from __future__ import annotations

from fusec.runtime.cpu.chain_words import GROUP, GROUPS, LINE, Text


def rows_text() -> str:
    """A block of a row: its chunks, the prefixes of these, the results."""
    return _handing() + _rows()


def _rows() -> str:
    t = Text("block", "job buffer number")
    blocks, extent, chunk, most = t.word("blocks"), t.word("extent"), t.word("chunk"), t.word("chunks")
    outer, block = t.op("sdiv", "%number", blocks), t.op("srem", "%number", blocks)
    begin = t.mul(block, most)
    left = t.op("sub", extent, t.mul(begin, chunk))
    count = t.least(most, t.op("sdiv", t.add(left, chunk, -1), chunk))
    local, finish, first = (t.add("%job", t.word(name)) for name in ("local", "finish", "first"))
    given, stride = t.add("%buffer", t.word("given")), t.word("stride")

    def size_of(number: str) -> str:
        return t.least(chunk, t.op("sub", left, t.mul(number, chunk)))

    def scan(number: str) -> None:
        t.call("ask", "%job", outer, t.add(begin, number), 0, number)
        t.call("point", "%job", local, "%buffer", outer, t.add(begin, number), 0, number)
        size = size_of(number)
        t.call("run", local, "%buffer", size, GROUP)
        end = t.add(t.mul(number, chunk), size, -1)
        t.call("one", "%job", "%buffer", t.word("local_stride"), end, given, stride, number)

    t.loop(count, scan)
    t.call("hand_on", "%job", "%buffer", "%number", block, count)

    def results(number: str) -> None:
        start = t.mul(t.add(begin, number), chunk)
        end = t.op("sub", t.op("sub", extent, start), t.word("shift"))
        t.call("point", "%job", finish, "%buffer", outer, t.add(begin, number), 0, number)
        t.call("run", finish, "%buffer", t.add(begin, number), t.least(size_of(number), end))

    t.loop(count, results)
    is_first = t.op("and", t.word("shift"), t.let(f"zext i1 {t.test('eq', block, 0)} to i64"))

    def identity() -> None:
        t.call("point", "%job", first, "%buffer", outer, 0, 0, 0)
        t.call("run", first, "%buffer", 0, 1)

    t.when(t.test("ne", is_first, 0), identity)
    return t.done()


def _handing() -> str:
    """The prefixes of a block's chunks, and what the next block needs of them.

    The state is the prefix of the next block, the carry of 64 groups, the prefix of these, and two more of `_level`.
    """
    t = Text("hand_on", "job buffer number block count")
    stride = t.word("stride")
    given, scanned, prefixes = (t.add("%buffer", t.word(name)) for name in ("given", "scanned", "prefixes"))
    state, level = t.word("state"), t.word("level_bytes")
    before, carry, prefix, held, far = (t.add(state, t.mul(level, at)) for at in range(5))
    t.call("gather", "%job", "%buffer", given, "%count")
    turn = t.add("%job", t.word("turns"))
    t.call("wait", turn, "%number")
    place, up = t.op("and", "%block", GROUPS - 1), t.op("lshr", "%block", GROUPS.bit_length() - 1)

    def is_positive(number: str, name: str, *args: str | int) -> None:
        t.when(t.test("sgt", number, 0), lambda: t.call(name, "%job", *args))

    def scanned_on(source: str) -> None:
        t.loop("%count", lambda at: t.call("one", "%job", source, stride, at, prefixes, stride, t.add(at, 1)))

    def joined() -> None:
        t.call("join", "%job", "%buffer", prefix, scanned, stride, given, "%count")
        scanned_on(given)

    is_positive("%block", "one", before, stride, 0, prefixes, stride, 0)
    is_positive(place, "join", "%buffer", carry, scanned, stride, scanned, "%count")
    t.call("one", "%job", scanned, stride, t.add("%count", -1), carry, stride, 0)
    t.when(t.test("sgt", up, 0), joined, lambda: scanned_on(scanned))
    t.call("one", "%job", prefixes, stride, "%count", before, stride, 0)
    t.when(t.test("eq", place, GROUPS - 1), lambda: _level(t, up, carry, prefix, held, far))
    t.line(f"store atomic i64 {t.add('%number', 1)}, ptr {t.pointer(turn)} release, align 8")
    return t.done()


def _level(t: Text, number: str, total: str, prefix: str, held: str, far: str) -> None:
    """The total of 64 groups becomes the next of at most 2048, whose scan is the prefix from here on.

    held: the totals of the current group of these. far: the carry of the groups before.
    """
    stride, scanned = t.word("stride"), t.add("%buffer", t.word("scanned"))
    place, group = t.op("and", number, GROUP - 1), t.op("lshr", number, GROUP.bit_length() - 1)
    t.call("one", "%job", total, stride, 0, held, stride, place)
    t.call("gather", "%job", "%buffer", held, t.add(place, 1))
    t.call("one", "%job", scanned, stride, place, prefix, stride, 0)
    joined = ("%job", "%buffer", far, prefix, stride, prefix, 1)
    t.when(t.test("sgt", group, 0), lambda: t.call("join", *joined))
    t.when(t.test("eq", place, GROUP - 1), lambda: t.call("one", "%job", prefix, stride, 0, far, stride, 0))


def columns_text() -> str:
    """A chunk of some columns: its rows, the prefixes of the columns, the results row by row."""
    t = Text("block", "job buffer number")
    spans, blocks, extent, chunk = (t.word(name) for name in ("spans", "blocks", "extent", "chunk"))
    span, order = t.op("srem", "%number", spans), t.op("sdiv", "%number", spans)
    outer, block = t.op("sdiv", order, blocks), t.op("srem", order, blocks)
    left = t.op("sub", extent, t.mul(block, chunk))
    rows = t.least(left, chunk)
    width = t.least(t.word("span"), t.op("sub", t.word("columns"), t.mul(span, t.word("span"))))
    stride, local_stride, level_bytes = t.word("stride"), t.word("local_stride"), t.word("level_bytes")
    local, finish, first = (t.add("%job", t.word(name)) for name in ("local", "finish", "first"))
    state = t.add(t.word("state"), t.mul(span, t.word("span_bytes")))
    half = t.mul(stride, t.word("parts"))
    t.call("point", "%job", local, "%buffer", outer, block, span, 0)
    t.call("run", local, "%buffer", rows, width)
    turn = t.add("%job", t.word("turns"), t.mul(span, LINE))
    t.call("wait", turn, order)
    prefixes = t.add("%buffer", t.word("prefixes"))
    known = ("%job", t.add(state, half), stride, prefixes, stride, width)
    t.when(t.test("sgt", block, 0), lambda: t.call("copy", *known))
    total = t.add("%buffer", t.mul(t.add(rows, -1), t.word("pitch")))
    _levels(t, block, total, local_stride, state, half, level_bytes, width)
    t.line(f"store atomic i64 {t.add(order, 1)}, ptr {t.pointer(turn)} release, align 8")

    def result(row: str) -> None:
        t.call("point", "%job", finish, "%buffer", outer, block, span, row)
        t.call("run", finish, "%buffer", block, width)

    t.loop(t.least(rows, t.op("sub", left, t.word("shift"))), result)
    is_first = t.op("and", t.word("shift"), t.let(f"zext i1 {t.test('eq', block, 0)} to i64"))

    def identity() -> None:
        t.call("point", "%job", first, "%buffer", outer, 0, span, 0)
        t.call("run", first, "%buffer", 0, width)

    t.when(t.test("ne", is_first, 0), identity)
    return t.done()


def _levels(
    t: Text, block: str, total: str, total_stride: str, state: str, half: str, level_bytes: str, width: str
) -> None:
    """Totals of chunks, of chunks of totals, and so on: each level has a carry, then a prefix."""
    head, after, entry, further = map(t.label, ("level", "after", "first", "further"))
    stride, chunk = t.word("stride"), t.word("chunk")
    names = {name: f"%{t.label(name)}" for name in ("number", "right", "apart", "carry")}
    news = {name: f"%{t.label('next')}" for name in names}
    starts = {"number": block, "right": total, "apart": total_stride, "carry": state}
    t.place(entry)
    t.line(f"br label %{head}")
    t.lines.append(f"{head}:")
    for name in names:
        t.line(f"{names[name]} = phi i64 [ {starts[name]}, %{entry} ], [ {news[name]}, %{further} ]")
    number, right, apart, carry = names.values()
    place, up = t.op("srem", number, chunk), t.op("sdiv", number, chunk)
    prefix = t.add(carry, half)
    joined = ("%job", "%buffer", carry, right, apart, carry, width)
    t.when(
        t.test("sgt", place, 0),
        lambda: t.call("join", *joined),
        lambda: t.call("copy", "%job", right, apart, carry, stride, width),
    )
    above = t.add(prefix, level_bytes)
    t.when(
        t.test("sgt", up, 0),
        lambda: t.call("join", "%job", "%buffer", above, carry, stride, prefix, width),
        lambda: t.call("copy", "%job", carry, stride, prefix, stride, width),
    )
    t.line(f"br i1 {t.test('eq', place, t.add(chunk, -1))}, label %{further}, label %{after}")
    t.lines.append(f"{further}:")
    for name, value in (("number", up), ("right", carry), ("apart", stride), ("carry", t.add(carry, level_bytes))):
        t.line(f"{news[name]} = add i64 {value}, 0")
    t.line(f"br label %{head}")
    t.lines.append(f"{after}:")
