"""The report of a call, for kernels of every kind: `explain`."""

from __future__ import annotations

from typing import Any

from fusec.base.records import replace
from fusec.compiler import pipeline
from fusec.dispatch.explain import Explanation
from fusec.dispatch.planned import hide_internal_frames
from fusec.errors.arguments import CannotExplain

REFUSED = "no native entry"  # the topic of reports that say why


@hide_internal_frames
def explain(kernel: Any, /, *args: Any, **options: Any) -> Explanation:
    """Report how a call runs, as a printable value: types, merged axes, launched kernels, bytes moved.

    kernel: a kernel of any kind, a decorated, fused or built-in function, or a NumExpr. args, options: all those of the
    call, such as axis=, out= and block_size=; arrays of any shape and dtype. The call does not run, but its code is
    compiled and kept, as by a call. docs/speed.md explains the lines.
    The report shows where the code came from (memory, the disk cache, the compiler) and in how many milliseconds, how
    many kernels the call launches, which of the kernel's plans it takes, and whether calls of this kind get a native
    entry, or why they stay in Python.
    Raises FusecTypeError for other objects, and the errors of the call itself.

    >>> from fusec import *
    >>> saxpy = ElementwiseKernel("T a, T x, T y", "T z", "z = a * x + y", "saxpy")
    >>> report = explain(saxpy, 2.0, np.ones((4, 5)), np.ones(5))
    >>> report.launches, report.bytes_moved
    (1, 360)
    """
    made = getattr(kernel, "explain", None)
    if made is None or isinstance(kernel, type):
        raise CannotExplain(getattr(kernel, "__name__", type(kernel).__name__)).at()
    with pipeline.watched() as found:
        report: Explanation = made(*args, **options)
    topics = dict(report.lines)
    lines = [line for line in report.lines if line[0] != REFUSED]
    if "kernels" not in topics:
        lines.insert(0, ("kernels", str(report.launches)))
    if getattr(kernel, "checks", ""):
        lines.append(("path", f"Python: the kernel checks calls ({kernel.checks})"))
    else:
        lines.append(("path", report.path))
    lines.append(("plan", report.plan))
    lines += [("machine code", f"{each.title} {each.how} in {each.milliseconds:.1f} ms") for each in found]
    if not found and report.launches:
        lines.append(("machine code", "in memory, from an earlier call of this kind"))
    return replace(report, lines=tuple(lines))


__all__ = ["explain"]
