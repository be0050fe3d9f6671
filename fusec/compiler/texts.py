"""The texts that are shown for kernels on any target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fusec.base.kernel_abi import Kernel
from fusec.codegen import Target, target_of

if TYPE_CHECKING:
    from fusec.ir.loops import Program


def joined(target: str, kernels: Callable[[], Sequence[Kernel]], programs: Callable[[], Sequence[Program]]) -> str:
    """The kernels of a call: one file where the target joins them, else the distinct texts in order.

    Raises UnknownTarget.
    """
    row = target_of(target)
    if row.shows == "program":
        from fusec.ir.text import print_program

        found = [print_program(each) for each in programs()]
    elif row.joins:
        return one_file(kernels())
    else:
        found = [_text(each, row) for each in kernels()]
    distinct = list(dict.fromkeys(found))
    if len(distinct) == 1:
        return distinct[0]
    headed = [f"{row.comment} kernel {at} of {len(distinct)}\n{text}" for at, text in enumerate(distinct, 1)]
    return "\n".join(headed)


def one_file(kernels: Sequence[Kernel]) -> str:
    """Kernels of different names, in a language that holds several in one file."""
    from fusec.codegen.c_family.file import join_kernels

    return join_kernels(kernels)


def _text(kernel: Kernel, row: Target) -> str:
    if row.shows == "source":
        return kernel.source
    from fusec.runtime.cpu import engine

    return engine.assembly(kernel)
