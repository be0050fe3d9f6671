"""Several CUDA kernels as one: beside each other, for different blocks, or one at the end of the other.

All arguments are one structure with a record for each part, so that equal kernels are one piece of code whatever number
of arrays they work on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fusec.base.dtypes import INT64
from fusec.base.kernel_abi import Kernel, Slot
from fusec.base.records import replace
from fusec.codegen.c_family.file import Part, indented, join_parts, parts_of, renamed
from fusec.codegen.c_family.names import ScopeNames

_HEAD = re.compile(r'extern "C" __global__ void __launch_bounds__\(([^)]*)\) (\w+)\(\n(.*?)\)\n\{\n', re.DOTALL)
_WORDS = re.compile(r"[A-Za-z_]\w*")
BLOCKS = (Slot("extent", "", 0, INT64), Slot("extent", "", 0, INT64))
"""Behind the slots of each part: the number of its first block, and that of the first one behind its last."""
DONE = Slot("pointer", "done", 0, INT64)
"""Behind all slots of a kernel with an end: a number in memory that is 0 before and after, of blocks that are done."""
WIDTH = 100  # of lines of arguments


def beside(kernels: Sequence[Kernel], title: str) -> Kernel | None:
    """The kernels as one, which has all their blocks; None if these are not of the usual size, or share memory.

    Requires: equal kernels are neighbours. The size of a launch is the number of all blocks.
    """
    if any(each.block or each.share or each.group > 1 or each.layout.rows or not each.parts for each in kernels):
        return None
    distinct = list({each.source: each for each in kernels}.values())
    counts = [sum(each.source == other.source for other in kernels) for each in distinct]
    text = _Text(distinct, title, True)
    fields, lines = [], []
    for function, count in zip(text.functions, counts, strict=True):
        own, k, records = text.own, text.k, f"{text.given}.{function.entry}"
        last, its = (f"{records}[{count - 1}]", f"{records}[{k}]") if count > 1 else (records, records)
        fields.append(f"{function.record} {function.entry}{f'[{count}]' if count > 1 else ''};")
        search = [f"int {k} = 0;", f"while (blockIdx.x >= {its}.{function.end}) ++{k};"] if count > 1 else []
        numbers = (f"blockIdx.x - {own}.{function.begin}", f"{own}.{function.end} - {own}.{function.begin}")
        body = [*search, f"const {function.record}& {own} = {its};", *function.called(own, numbers), "return;"]
        lines += [f"if (blockIdx.x < {last}.{function.end}) {{", *indented(body, 1), "}"]
    slots = tuple(slot for each in kernels for slot in (*each.slots, *BLOCKS))
    return text.kernel(distinct[0], slots, fields, lines)


def ended(first: Kernel, last: Kernel, title: str) -> Kernel | None:
    """A kernel whose last block does the work of another kernel at its end; None if the blocks of the two do not fit
    each other.

    The size of a launch is the number of blocks of the first one.
    """
    if last.block or first.block % last.group or not all(each.parts for each in (first, last)):
        return None
    text = _Text([first, last], title, False)
    one, other = text.functions
    done, is_last, start, end = map(text.names.fresh, ("done", "is_last", "start", "end"))
    fields = [f"{each.record} {each.entry};" for each in (one, other)]
    fields.append(f"alignas(8) unsigned* {done};  // how many blocks are done, 0 at the start")
    count, given = f"{text.given}.{done}", text.given
    lines = [
        f"const {one.record}& {start} = {given}.{one.entry};",
        *one.called(start, ("blockIdx.x", "gridDim.x")),
        f"__shared__ bool {is_last};",
        "__syncthreads();",
        "if (threadIdx.x == 0) {",
        "    __threadfence();  // what this block has stored is seen by others before it counts as done",
        f"    {is_last} = atomicAdd({count}, 1u) + 1 == gridDim.x;",
        "    __threadfence();",
        "}",
        "__syncthreads();",
        f"if (!{is_last}) return;",
        f"const {other.record}& {end} = {given}.{other.entry};",
        *other.called(end, ("0", "1")),
        f"if (threadIdx.x == 0) *{count} = 0;",
    ]
    return text.kernel(first, (*first.slots, *last.slots, DONE), fields, lines)


class _Text:
    """The text of several kernels as functions, and of what calls them."""

    def __init__(self, kernels: Sequence[Kernel], title: str, has_blocks: bool) -> None:
        """has_blocks: the records of arguments say which blocks of the grid a part has."""
        if len({each.name for each in kernels}) < len(kernels):
            kernels = [renamed(each, f"{each.title}_{at}") for at, each in enumerate(kernels, 1)]
        parts, entries = parts_of(kernels), {each.name for each in kernels}
        self.names = ScopeNames({each for each, _ in parts} - entries)
        self.name, self.given, self.own, self.k = map(self.names.fresh, (title, "given", "own", "k"))
        self.above: list[Part] = []
        self.functions: list[_Function] = []
        for part, text in parts:
            if part in entries:
                self.functions.append(_Function(part, text, self.names))
                self.above += self.functions[-1].texts(has_blocks)
            else:
                self.above.append((part, text))

    def kernel(self, like: Kernel, slots: tuple[Slot, ...], fields: list[str], lines: list[str]) -> Kernel:
        """The whole, whose blocks are like those of a kernel. fields: of its arguments. lines: its statements."""
        record = self.names.fresh(f"{self.name}_arguments")
        bounds = self.functions[0].bounds
        head = f'extern "C" __global__ void __launch_bounds__({bounds}) {self.name}(\n    const __grid_constant__ '
        struct = "\n".join([f"struct {record} {{", *indented(fields, 1), "};"])
        entry = "\n".join([f"{head}{record} {self.given})", "{", *indented(lines, 1), "}"])
        parts = (*self.above, (record, struct), (self.name, entry))
        return replace(
            like, name=self.name, slots=slots, source=join_parts(parts), parts=parts, lanes=1, rows=1, is_record=True
        )


class _Function:
    """A kernel as a function that is told its block, and how many there are."""

    def __init__(self, name: str, text: str, names: ScopeNames) -> None:
        found = _HEAD.match(text)
        assert found is not None, "a kernel begins as the frame of CUDA has it"
        self.entry, self.bounds = name, found[1]
        self.params = [param.strip() for param in found[3].split(",\n")]
        self.name, self.record = names.fresh(f"{name}_part"), names.fresh(f"{name}_arguments")
        own = ScopeNames({*_WORDS.findall(text)})
        self.block, self.blocks, self.begin, self.end = map(own.fresh, ("block", "blocks", "begin", "end"))
        self.body = re.sub(r"\bgridDim\.x\b", self.blocks, re.sub(r"\bblockIdx\.x\b", self.block, text[found.end() :]))

    def texts(self, has_blocks: bool) -> list[Part]:
        """The structure of its arguments, each of 8 bytes, and itself."""
        fields = [f"alignas(8) {param.replace('__restrict__ ', '')};" for param in self.params]
        if has_blocks:
            fields += [f"alignas(8) unsigned {self.begin};  // blocks of the grid", f"alignas(8) unsigned {self.end};"]
        record = "\n".join([f"struct {self.record} {{", *indented(fields, 1), "};"])
        params = ",\n    ".join([*self.params, f"unsigned {self.block}", f"unsigned {self.blocks}"])
        function = f"static __device__ void {self.name}(\n    {params})\n{{\n{self.body}"
        return [(self.record, record), (self.name, function)]

    def called(self, record: str, numbers: tuple[str, str]) -> list[str]:
        """The lines of a call. record: of its arguments. numbers: of its block, and of all blocks."""
        values = [*(f"{record}.{_WORDS.findall(param)[-1]}" for param in self.params), *numbers]
        lines = [f"{self.name}({values[0]}"]
        for value in values[1:]:
            if len(lines[-1]) + len(value) > WIDTH:
                lines[-1] += ","
                lines.append(f"    {value}")
            else:
                lines[-1] += f", {value}"
        return [*lines[:-1], f"{lines[-1]});"]
