"""Several CUDA kernels as one: a block finds the part of the launch that it belongs to, and runs that kernel's code.

All arguments are one structure with a record for each part, so that equal kernels are one piece of code whatever number
of arrays they work on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fusec.base.dtypes import INT64
from fusec.base.kernel_abi import USUAL_BLOCK, Kernel, Slot
from fusec.base.records import replace
from fusec.codegen.c_family.file import Part, indented, join_parts, parts_of, renamed
from fusec.codegen.c_family.names import ScopeNames

_HEAD = re.compile(r'extern "C" __global__ void __launch_bounds__\((\d+)[^)]*\) (\w+)\(\n(.*?)\)\n\{\n', re.DOTALL)
_WORDS = re.compile(r"[A-Za-z_]\w*")
BLOCKS = (Slot("extent", "", 0, INT64), Slot("extent", "", 0, INT64))
"""Behind the slots of each part: the number of its first block, and that of the first one behind its last."""
WIDTH = 100  # of lines of arguments


def joined(kernels: Sequence[Kernel], title: str) -> Kernel | None:
    """The kernels as one, which has all their blocks; None if these are not of the usual size.

    Requires: equal kernels are neighbours. The size of a launch is the number of all blocks.
    """
    if any(each.block or each.group > 1 or not each.parts for each in kernels):
        return None
    distinct = list({each.source: each for each in kernels}.values())
    counts = [sum(each.source == other.source for other in kernels) for each in distinct]
    if len({each.name for each in distinct}) < len(distinct):
        distinct = [renamed(each, f"{each.title}_{at}") for at, each in enumerate(distinct, 1)]
    parts = parts_of(distinct)
    entries = {each.name for each in distinct}
    names = ScopeNames({each for each, _ in parts} - entries)
    name, given, own, k = map(names.fresh, (title, "given", "own", "k"))
    above: list[Part] = []
    fields: list[str] = []
    lines: list[str] = []
    for part, text in parts:
        if part not in entries:
            above.append((part, text))
            continue
        function, count = _Function(part, text, names, (own, k)), counts[len(fields)]
        above += function.texts()
        fields.append(f"{function.record} {part}{f'[{count}]' if count > 1 else ''};")
        lines += function.called(f"{given}.{part}", count)
    record = names.fresh(f"{name}_arguments")
    above.append((record, "\n".join([f"struct {record} {{", *indented(fields, 1), "};"])))
    head = (
        f'extern "C" __global__ void __launch_bounds__({USUAL_BLOCK}) {name}(const __grid_constant__ {record} {given})'
    )
    entry = (name, "\n".join([head, "{", *indented(lines, 1), "}"]))
    slots = tuple(slot for each in kernels for slot in (*each.slots, *BLOCKS))
    found = (*above, entry)
    return replace(
        distinct[0], name=name, slots=slots, source=join_parts(found), parts=found, lanes=1, rows=1, block=USUAL_BLOCK,
        is_record=True,
    )  # fmt: skip


class _Function:
    """A kernel as a function of one of the parts of a launch."""

    def __init__(self, name: str, text: str, names: ScopeNames, inside: tuple[str, str]) -> None:
        """inside: names of variables of the kernel, one for a record, one for its number."""
        found = _HEAD.match(text)
        assert found is not None, "a kernel begins as the frame of CUDA has it"
        self.params = [param.strip() for param in found[3].split(",\n")]
        self.names = inside
        self.name, self.record = names.fresh(f"{name}_part"), names.fresh(f"{name}_arguments")
        own = ScopeNames({*_WORDS.findall(text)})
        self.block, self.blocks, self.begin, self.end = map(own.fresh, ("block", "blocks", "begin", "end"))
        self.body = re.sub(r"\bgridDim\.x\b", self.blocks, re.sub(r"\bblockIdx\.x\b", self.block, text[found.end() :]))

    def texts(self) -> list[Part]:
        """The structure of its arguments, each of 8 bytes, and itself."""
        ends = [f"alignas(8) unsigned {self.begin};  // blocks of the grid", f"alignas(8) unsigned {self.end};"]
        fields = [f"alignas(8) {param.replace('__restrict__ ', '')};" for param in self.params]
        record = "\n".join([f"struct {self.record} {{", *indented([*fields, *ends], 1), "};"])
        params = ",\n    ".join([*self.params, f"unsigned {self.block}", f"unsigned {self.blocks}"])
        return [
            (self.record, record), (self.name, f"static __device__ void {self.name}(\n    {params})\n{{\n{self.body}"),
        ]  # fmt: skip

    def called(self, records: str, count: int) -> list[str]:
        """What the blocks of its parts do, of whose records there are several in an array, or one."""
        last = f"{records}[{count - 1}]" if count > 1 else records
        own, k = self.names
        lines = [f"const {self.record}& {own} = {f'{records}[{k}]' if count > 1 else records};"]
        if count > 1:
            search = [f"int {k} = 0;", f"while (blockIdx.x >= {records}[{k}].{self.end}) ++{k};"]
            lines = [*search, *lines]
        names = [_WORDS.findall(param)[-1] for param in self.params]
        values = [f"{own}.{each}" for each in names]
        values += [f"blockIdx.x - {own}.{self.begin}", f"{own}.{self.end} - {own}.{self.begin}"]
        line = f"{self.name}({values[0]}"
        for value in values[1:]:
            if len(line) + len(value) > WIDTH:
                lines.append(f"{line},")
                line = f"    {value}"
            else:
                line += f", {value}"
        lines += [f"{line});", "return;"]
        return [f"if (blockIdx.x < {last}.{self.end}) {{", *indented(lines, 1), "}"]
