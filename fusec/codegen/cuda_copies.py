"""What the blocks of a CUDA kernel do before and after their elements: make copies of arrays, and store what they hold.

The threads of a warp have copies of their own, in banks of their own, if there are 32. Where copies become one, each
thread begins with another of them, for the same reason.
"""

from __future__ import annotations

from fusec.base.dtypes import DType
from fusec.codegen.c_family.copies import CopiedArray
from fusec.codegen.c_family.file import indented
from fusec.codegen.c_family.frame import Frame
from fusec.codegen.c_family.literals import literal

BARRIER = "__syncthreads();"
AT_ONCE = 4  # copies of an element that a thread reads before it combines them
_COMBINED = {
    "add": "{total} += {other};",
    "and": "{total} &= {other};",
    "or": "{total} |= {other};",
    "xor": "{total} ^= {other};",
    "minimum": "if ({other} < {total}) {total} = {other};",
    "maximum": "if ({other} > {total}) {total} = {other};",
}


def copies_made(frame: Frame) -> list[str]:
    """Declarations of the copies, which hold what changes nothing."""
    lines, k = list[str](), frame.names.fresh("word")
    for each in frame.copies:
        size = frame.places.use("raw_size", each.array.name).text
        words = size if each.count == 1 else f"{each.count} * {size}"
        lines.append(f"__shared__ {frame.spelling.type(each.word)} {each.block}[{each.length}];")
        lines.append(f"for (unsigned {k} = threadIdx.x; {k} < {words}; {k} += blockDim.x) {{")
        lines += [f"    {each.block}[{k}] = {_start(frame, each)};", "}"]
    own = [
        f"{frame.spelling.type(each.word)}* const {each.own} = {each.block}"
        f"{f' + threadIdx.x % {each.count}' if each.count > 1 else ''};"
        for each in frame.copies
    ]
    return [*lines, BARRIER, *own]


def copies_stored(frame: Frame) -> list[str]:
    """The loops by which a block updates the arrays with what its copies hold."""
    lines = [BARRIER]
    k, copy, total, other = (frame.names.fresh(name) for name in ("element", "copy", "total", "other"))
    for each in frame.copies:
        c_type, size = frame.spelling.type(each.word), frame.places.use("raw_size", each.array.name).text
        start = _start(frame, each)
        body = [f"const {c_type} {total} = {each.block}[{k}];"]
        if each.count > 1:
            at = f"{each.count} * {k} + ({copy} + {k}) % {each.count}"
            inside = [
                f"const {c_type} {other} = {each.block}[{at}];",
                _COMBINED[each.op].format(total=total, other=other),
            ]
            body = [f"{c_type} {total} = {start};"]
            body.append(f"#pragma unroll {AT_ONCE}")
            body += [f"for (unsigned {copy} = 0; {copy} < {each.count}; ++{copy}) {{", *indented(inside, 1), "}"]
        body.append(f"if ({total} != {start}) {_update(frame, each, k, total)};")
        head = f"for (unsigned {k} = threadIdx.x; {k} < {size}; {k} += blockDim.x) {{"
        lines += [head, *indented(body, 1), "}"]
    return lines


def _start(frame: Frame, each: CopiedArray) -> str:
    return literal(each.start, frame.spelling).text


def _update(frame: Frame, each: CopiedArray, k: str, total: str) -> str:
    """The update of an element in global memory."""
    dtype: DType = each.array.dtype
    template = frame.spelling.atomic(each.op, dtype, False, "global")
    assert template is not None, "integers have atomic updates"
    value = total if dtype == each.word else f"({frame.spelling.type(dtype)}){total}"
    return template.format(value, p=f"{frame.places.use('pointer', each.array.name).text} + {k}")
