"""The readable form of a reduction or a scan: the texts of its kernels, and a report of a call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod

import numpy as np

from fusec.arguments.signature import types_named
from fusec.base.kernel_abi import Fp, Kernel
from fusec.base.records import dataclass, replace
from fusec.codegen import target_of
from fusec.compiler import pipeline, texts
from fusec.dispatch.axis_spec import Along, AxisSpec, Bound, Given
from fusec.dispatch.explain import FP, Explanation
from fusec.dispatch.shown import Showing
from fusec.errors.arguments import UnknownScalar
from fusec.errors.reductions import AxisOutOfBounds
from fusec.ir.loops import Program
from fusec.kinds.launch import Launch
from fusec.kinds.reduction import dense
from fusec.kinds.scan import MANY_THREADS, Machine

SHOWN = (1_000_000,)  # the shape of the arrays if nobody says
ALONE = Machine(1, 1, 1)  # the shortest texts: one kernel whatever comes


def canonical(kernel: AxisSpec, asked: Showing) -> Bound:
    """The plan of a call with contiguous arrays of a shape; raw ones have one axis.

    A scan for a CPU is one kernel, whatever its threads. Raises TypesIncomplete, UnknownScalar, and what a call raises
    for its axes.
    """
    names = [param.name for param in kernel.in_params]
    for name in asked.scalars:
        if name not in names:
            raise UnknownScalar(kernel.name, name, ", ".join(names)).at()
    bound = kernel.signature.bind_names(types_named(asked.types))
    shape = SHOWN if asked.shape is None else asked.shape
    axis = -1 if asked.axis is None and kernel.kind.keeps_shape else asked.axis

    def shown(taken: tuple[str, ...]) -> Bound:
        inputs = {
            param.name: dense((prod(shape),) if param.raw else shape, bound[param.name])
            for param in kernel.in_params
            if param.name not in taken
        }
        given = Given(inputs, frozenset(taken), None, None, Along(axis, reverse=asked.reverse))
        return kernel.kind.bind(kernel, given, machine_of(asked.target), bound)

    with axes_within(asked):
        return pipeline.by_value(names, asked.scalars, shown)


@contextmanager
def axes_within(asked: Showing) -> Iterator[None]:
    """Let the error for an axis that the arrays shown do not have name what gives them more."""
    try:
        yield
    except np.exceptions.AxisError as problem:
        if problem.axis is None or problem.ndim is None:
            raise
        shape = SHOWN if asked.shape is None else asked.shape
        cure = f"kernels are shown for arrays of shape {shape}: pass shape= with more axes"
        raise AxisOutOfBounds(problem.axis, problem.ndim, cure).at() from None


def machine_of(target: str) -> Machine:
    """What the kernels that are shown for a target keep busy."""
    return MANY_THREADS if target_of(target).threads else ALONE


@dataclass(frozen=True)
class AlongAxes:
    """The kernels of a call of a kernel along axes."""

    kernel: AxisSpec
    bound: Bound

    def kernels(self, target: str) -> list[Kernel]:
        """Those of all launches in order, equal ones once, each with its own name."""
        kind, bound, threads = self.kernel.kind, self.bound, target_of(target).threads
        counts: dict[str, int] = {}
        found = []
        for launch in _distinct(bound.launches if threads else bound.chain or bound.launches, threads):
            made = kind.generate(self.kernel.definition, bound.request, launch, target, 1)
            counts[made.name] = counts.get(made.name, 0) + 1
            if (number := counts[made.name]) > 1:
                made = kind.generate(self.kernel.definition, bound.request, launch, target, number)
            found.append(made)
        return found

    def text(self, target: str) -> str:
        """The text of all of them; those for many threads, whatever the call ran on."""
        kernel, bound, threads = self.kernel, self.bound, target_of(target).threads
        if threads:
            bound = kernel.kind.on_device(kernel, bound)

        def programs() -> list[Program]:
            distinct = _distinct(bound.launches, threads)
            return [kernel.kind.program(kernel.definition, bound.request, each) for each in distinct]

        return texts.joined(target, lambda: AlongAxes(kernel, bound).kernels(target), programs)

    def in_mode(self, fp: Fp | None) -> AlongAxes:
        """The same in another floating-point mode; None for its own."""
        if fp is None:
            return self
        return replace(self, bound=replace(self.bound, request=replace(self.bound.request, fp=fp)))


def _distinct(launches: Sequence[Launch], threads: bool) -> list[Launch]:
    """Launches with different code, in order. threads: code for targets with many threads."""
    found: dict[str, Launch] = {}
    for launch in launches:
        found.setdefault(launch.code(threads), launch)
    return list(found.values())


# --- reports -------------------------------------------------------------------------------------------------------


def explain(kernel: AxisSpec, bound: Bound, compiled: Sequence[Kernel]) -> Explanation:
    """Describe a call. compiled: its kernels, in order."""
    lines = [
        ("types", ", ".join(f"{name}: {dtype}" for name, dtype in bound.types.items())),
        ("by value", ", ".join(each.name for each in kernel.in_params if each.name in bound.request.scalars) or "none"),
    ]
    moved, more = kernel.kind.describe(bound, compiled)
    lines += [*more, ("fp", FP[kernel.fp])]
    if not bound.launches and not kernel.kind.keeps_shape:
        lines.append(("kernels", "none: there is nothing to combine"))
    return Explanation(str(kernel.signature), tuple(lines), moved)
