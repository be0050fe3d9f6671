"""The report of a call: a value that prints as a short text."""

from __future__ import annotations

from collections.abc import Sequence

from fusec.base.diagnostics import counted
from fusec.base.kernel_abi import Kernel
from fusec.base.records import dataclass
from fusec.dispatch.drawing import drawn
from fusec.dispatch.spec import Bound, KernelSpec


@dataclass(frozen=True)
class Explanation:
    """The report of one call: (topic, text) lines in order; `bytes_moved` counts every element read or written once.

    least_bytes: what one kernel for all would move, which reads what is given and writes what is asked for; None if
    the call has one kernel.
    """

    kernel: str
    lines: tuple[tuple[str, str], ...]
    bytes_moved: int
    path: str = ""  # what answers calls of this kind: a native entry, or Python and the reason
    plan: str = ""  # which plan of how many the kernel has
    least_bytes: int | None = None

    @property
    def kernels(self) -> int:
        """How many kernels a call launches; several that share a launch are one."""
        said = dict(self.lines).get("kernels")
        if said is not None:
            return int(said) if said.isdigit() else 0
        return len({topic for topic, _ in self.lines if topic.startswith("kernel ")}) or 1

    @property
    def launches(self) -> int:
        """The same as `kernels`."""
        return self.kernels

    def __str__(self) -> str:
        width = max(len(topic) for topic, _ in self.lines)
        return "\n".join([self.kernel, *(f"  {topic.ljust(width)}  {text}" for topic, text in self.lines)])

    __repr__ = __str__

    def svg(self) -> str:
        """The same as the text of an SVG picture: a box for each kernel, and why it is not part of the one before."""
        return drawn(self.kernel, self.lines)

    _repr_svg_ = svg

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(f"<tr><th>{escape(topic)}</th><td>{escape(text)}</td></tr>" for topic, text in self.lines)
        return f"<b>{escape(self.kernel)}</b><table>{rows}</table>"


def explain(kernel: KernelSpec, bound: Bound, compiled: Sequence[Kernel]) -> Explanation:
    """Describe a call. compiled: its kernels, in order."""
    scalars = [param.name for param in kernel.in_params if param.name in bound.request.scalars]
    moved, lines = kernel.kind.describe(kernel, bound, compiled)
    types = ", ".join(f"{name}: {dtype}" for name, dtype in bound.types.items())
    head = ("types", types), ("by value", ", ".join(scalars) or "none")
    return Explanation(str(kernel.signature), (*head, *lines), moved)


NATIVE = "Python for the first two calls of a kind, then a native entry"
ON_DEVICE = "Python for the first two calls of a kind, then its launches again with other addresses"
RUNS_ALL = "Python runs the kernels in order, each by its native entry after two calls"


def path_of(reason: str) -> str:
    """What answers calls. reason: for which there is no native entry, "" if there may be one."""
    return f"Python: {reason}" if reason else NATIVE


def place_of(plan: object, plans: Sequence[object]) -> str:
    """Which plan of how many."""
    places = [at for at, each in enumerate(plans, 1) if each is plan]
    return f"{places[0] if places else len(plans)} of {len(plans)}"


def block_text(threads: int, asked: int | None) -> str:
    """How many threads a block has, and why they are not as many as the call asks for, if it does."""
    shown = counted(threads, "thread")
    if asked is None or threads == asked:
        return shown
    why = (
        "the most that the kernel can run, see docs/kernels.md"
        if threads < asked
        else "whole groups that work together"
    )
    return f"{shown}: {why} (block_size={asked})"
