"""Runs one PTX instruction over arrays: a kernel of its own that loads the operands and stores the result."""

from functools import cache

import numpy as np
import ptx
from ptx.syntax import WIDTHS
from ptx.types import NUMPY

HEAD = ".version 8.6\n.target sm_90\n.address_size 64\n"


def text_of(opcode: str, kinds: tuple[str, ...], result: str) -> str:
    """A kernel that loads an operand of each type, executes the instruction, and stores the result."""
    params = ", ".join(f".param .u64 p{at}" for at in range(len(kinds) + 1))
    lines = [".reg .b32 %t;", ".reg .pred %p;", "mov.u32 %t, %tid.x;"]
    for at, kind in enumerate((*kinds, result)):
        register = kind if kind[0] == "f" and kind != "f16" else f"b{max(16, 8 * WIDTHS[kind])}"
        lines += [f".reg .{register} %v{at};", f".reg .b64 %a{at};", f"ld.param.u64 %a{at}, [p{at}];"]
        lines.append(f"mad.wide.u32 %a{at}, %t, {WIDTHS[kind]}, %a{at};")
        if at < len(kinds):
            lines.append(f"ld.global.{_moved(kind)} %v{at}, [%a{at}];")
    last = len(kinds)
    operands = ", ".join(f"%v{at}" for at in range(last))
    if result == "pred":
        lines += [f"{opcode} %p, {operands};", f"selp.b16 %v{last}, 1, 0, %p;"]
    else:
        lines.append(f"{opcode} %v{last}, {operands};")
    lines.append(f"st.global.{_moved(result)} [%a{last}], %v{last};")
    return f"{HEAD}.visible .entry k({params})\n{{\n" + "\n".join(lines) + "\nret;\n}\n"


def _moved(kind: str) -> str:
    if kind in ("pred", "f16", "bf16") or "x2" in kind:
        return f"b{8 * WIDTHS[kind]}"
    return kind


@cache
def module_of(opcode: str, kinds: tuple[str, ...], result: str) -> ptx.Module:
    return ptx.load(text_of(opcode, kinds, result), approximate=True)


def evaluate(opcode: str, kinds: tuple[str, ...], result: str, *operands: np.ndarray) -> np.ndarray:
    out = np.zeros(len(operands[0]), bool if result == "pred" else NUMPY[result])
    ptx.launch(module_of(opcode, kinds, result), "k", 1, len(out), [*operands, out])
    return out


def wrap(value: int, kind: str) -> int:
    """An integer as the type keeps it."""
    bits = 8 * WIDTHS[kind]
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind[0] == "s" and value >> (bits - 1) else value
