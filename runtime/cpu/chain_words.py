"""Functions of LLVM IR text, written in structured form, and the words of a job that those of chained scans read."""

from __future__ import annotations

from collections.abc import Callable

LINE = 64  # bytes of a cache line, the distance between words that threads wait for
GROUP = 32  # totals that are scanned together along rows, which is how many chunks a block has
GROUPS = 64  # such groups whose totals are the next level

WORDS = (
    "turns",  # distance of the words that say whose turn it is: one for rows, one for each span of columns
    "locks",  # distance of one word for each buffer
    "buffers", "buffer_bytes", "buffer_count",  # memory of the threads
    "blocks",  # of a row, or chunks of a column
    "spans", "columns", "span",  # of columns: how many, all columns, and columns of one
    "extent", "chunk", "chunks",  # of the axis, and chunks of a block
    "shift",  # 1 for exclusive scans
    "parts", "sizes",  # of a value: how many, and the distance of their sizes in bytes
    "local_stride",  # bytes from part to part of the chunks scanned by themselves, which begin a buffer
    "stride",  # the same of other arrays of values
    "given", "scanned", "prefixes",  # where these are in a buffer
    "pitch",  # of columns: bytes from row to row of a buffer
    "state", "span_bytes", "level_bytes",  # what blocks hand on
    "local", "gather", "join", "finish", "first",  # distances of the kernels
)  # fmt: skip
"""The words that a job begins with."""
PIECE = ("function", "template", "slots", "table", "entries", "axis", "special", "place")
"""The words of a kernel: address; its slots as they are for all calls, and how many; distance of entries, and how many;
the slot of the axis's extent; distance of the numbers of slots for parts; where in a buffer its slots are put."""
ENTRY = ("slot", "relative", "base", "outer", "chunk", "span", "inner", "edge")
"""The words of a pointer: its slot; whether `base` counts from the buffer; bytes for each row of the outer axis, chunk,
span, and chunk or row within a block; whether it is written around the cache."""


class Text:
    """The text of one function: values are names or numbers of i64."""

    def __init__(self, name: str, params: str, linkage: str = "internal ") -> None:
        given = ", ".join(f"i64 %{param}" for param in params.split())
        self.lines = [f"define {linkage}void @{name}({given}) nounwind {{", "entry:"]
        self._names = 0

    def done(self) -> str:
        """The whole function."""
        return "\n".join([*self.lines, "  ret void", "}", ""])

    def let(self, text: str) -> str:
        """The name of a new value."""
        self._names += 1
        self.lines.append(f"  %v{self._names} = {text}")
        return f"%v{self._names}"

    def line(self, text: str) -> None:
        """An instruction without a value."""
        self.lines.append(f"  {text}")

    def op(self, name: str, left: str | int, right: str | int) -> str:
        """Arithmetic."""
        return self.let(f"{name} i64 {left}, {right}")

    def add(self, first: str | int, *more: str | int) -> str:
        """A sum."""
        found = str(first)
        for each in more:
            found = self.op("add", found, each)
        return found

    def mul(self, left: str | int, right: str | int) -> str:
        """A product."""
        return self.op("mul", left, right)

    def least(self, left: str | int, right: str | int) -> str:
        """The smaller of two."""
        return self.let(f"call i64 @llvm.smin.i64(i64 {left}, i64 {right})")

    def test(self, how: str, left: str | int, right: str | int) -> str:
        """A comparison."""
        return self.let(f"icmp {how} i64 {left}, {right}")

    def pointer(self, address: str) -> str:
        """The address as a pointer."""
        return self.let(f"inttoptr i64 {address} to ptr")

    def at(self, address: str, word: int = 0) -> str:
        """The word at an address."""
        return self.let(f"load i64, ptr {self.pointer(self.add(address, 8 * word))}, align 8")

    def put(self, address: str, value: str | int) -> None:
        """Store a word."""
        self.line(f"store i64 {value}, ptr {self.pointer(address)}, align 8")

    def word(self, name: str) -> str:
        """A word of the job."""
        return self.at("%job", WORDS.index(name))

    def piece(self, kernel: str, name: str) -> str:
        """A word of a kernel."""
        return self.at(kernel, PIECE.index(name))

    def copy(self, target: str, source: str, nbytes: str | int) -> None:
        """Bytes from one place to another."""
        to, of = self.pointer(target), self.pointer(source)
        self.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {of}, i64 {nbytes}, i1 false)")

    def call(self, name: str, *args: str | int) -> None:
        """Call one of the functions here."""
        self.line(f"call void @{name}({', '.join(f'i64 {arg}' for arg in args)})")

    def label(self, stem: str) -> str:
        """A new label."""
        self._names += 1
        return f"{stem}{self._names}"

    def place(self, label: str) -> None:
        """Begin a block, to which the one before goes on."""
        self.lines += [f"  br label %{label}", f"{label}:"]

    def loop(self, count: str | int, body: Callable[[str], None], first: str | int = 0) -> None:
        """Repeat for numbers from the first up to the count."""
        before, head, inside, again, after = map(self.label, ("before", "head", "inside", "again", "after"))
        self.place(before)
        self.line(f"br label %{head}")
        self.lines.append(f"{head}:")
        number, following = f"%{self.label('i')}", f"%{self.label('n')}"
        self.line(f"{number} = phi i64 [ {first}, %{before} ], [ {following}, %{again} ]")
        self.line(f"br i1 {self.test('slt', number, count)}, label %{inside}, label %{after}")
        self.lines.append(f"{inside}:")
        body(number)
        self.place(again)
        self.line(f"{following} = add i64 {number}, 1")
        self.line(f"br label %{head}")
        self.lines.append(f"{after}:")

    def when(self, condition: str, then: Callable[[], None], other: Callable[[], None] = lambda: None) -> None:
        """Either of two."""
        yes, no, done = map(self.label, ("yes", "no", "done"))
        self.line(f"br i1 {condition}, label %{yes}, label %{no}")
        for label, body in ((yes, then), (no, other)):
            self.lines.append(f"{label}:")
            body()
            self.line(f"br label %{done}")
        self.lines.append(f"{done}:")
