"""The report of a call: a value that prints as a short text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from fusec.base.diagnostics import counted
from fusec.base.kernel_abi import Fp, Kernel, Step
from fusec.base.records import dataclass
from fusec.compiler.pipeline import Specialisation
from fusec.kinds.elementwise import Space

if TYPE_CHECKING:
    from fusec.dispatch.spec import KernelSpec

_STEPS = {Step.ZERO: "repeated", Step.UNIT: "contiguous", Step.ANY: "strided"}


FP: dict[Fp, str] = {
    "strict": "strict: every operation rounds once",
    "contract": "contract: a product and a sum are one fma",
    "fast": "fast: approximate, and a product and a sum are one fma",
}


@dataclass(frozen=True)
class Explanation:
    """The report of one call: (topic, text) lines in order; `bytes_moved` counts every element read or written once."""

    kernel: str
    lines: tuple[tuple[str, str], ...]
    bytes_moved: int
    path: str = ""  # what answers calls of this kind: a native entry, or Python and the reason
    plan: str = ""  # which plan of how many the kernel has

    @property
    def launches(self) -> int:
        """The number of kernels that a call launches."""
        said = dict(self.lines).get("kernels")
        if said is not None:
            return int(said) if said.isdigit() else 0
        return len({topic for topic, _ in self.lines if topic.startswith("kernel ")}) or 1

    def __str__(self) -> str:
        width = max(len(topic) for topic, _ in self.lines)
        return "\n".join([self.kernel, *(f"  {topic.ljust(width)}  {text}" for topic, text in self.lines)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{escape(topic)}</th><td>{escape(text)}</td></tr>" for topic, text in self.lines)
        return f"<b>{escape(self.kernel)}</b><table>{rows}</table>"


def explain(kernel: KernelSpec, compiled: Kernel, space: Space, spec: Specialisation) -> Explanation:
    """Describe a call by what its plan has on any device."""
    moved = _bytes(kernel, compiled, space)
    lines = (
        ("types", ", ".join(f"{name}: {dtype}" for name, dtype in spec.types)),
        ("by value", ", ".join(param.name for param in kernel.in_params if param.name in spec.scalars) or "none"),
        ("iteration space", _space(space, compiled.block)),
        *((f"'{name}'", _walk(space, name)) for name, *_ in space.operands),
        *((f"'{name}'", _raw(space, name)) for name in space.raw),
        ("bytes moved", f"{moved:,} ({_per_element(moved, space.size)})"),
        ("code", _code(compiled)),
        ("fp", FP[compiled.fp]),
        *(("note", note) for note in compiled.notes),
    )
    return Explanation(str(kernel.signature), lines, moved)


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
    why = "the most that the kernel can run" if threads < asked else "whole groups that work together"
    return f"{shown}: {why} (block_size={asked})"


def _space(space: Space, block: int) -> str:
    """block: positions of a block if each element is one, else 0."""
    shape, merged = space.shape, space.extents
    if block:
        return f"{shape}, {counted(space.size, 'block')} of {counted(block, 'position')}"
    if shape == merged:
        return f"{shape}, {counted(space.size, 'element')}"
    return f"{shape} walked as {merged}, {counted(space.size, 'element')}"


def _walk(space: Space, name: str) -> str:
    inner = space.layout.step(name)[-1]
    return f"{_STEPS[inner]} along the innermost axis"


def _raw(space: Space, name: str) -> str:
    ndim, contiguous = dict(space.layout.raw)[name]
    return f"raw, {counted(ndim, 'axis', 'axes')}, {'C-contiguous' if contiguous else 'strided'}"


def _bytes(kernel: KernelSpec, compiled: Kernel, space: Space) -> int:
    """Bytes of every array, once; an output whose former content matters counts twice."""
    twice = {param.name for param in kernel.out_params}.intersection(compiled.fills)
    return sum(view.size * view.dtype.nbytes * (2 if name in twice else 1) for name, view in space.views.items())


def _per_element(moved: int, size: int) -> str:
    return f"{moved / size:.3g} an element" if size else "no elements"


def _code(kernel: Kernel) -> str:
    streaming = ", outputs written around the cache" if kernel.layout.streaming else ""
    return f"{counted(kernel.lanes, 'element')} a step, about {counted(kernel.cost, 'operation')} each{streaming}"
