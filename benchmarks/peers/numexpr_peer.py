"""numexpr, with constants of the dtype as operands (a literal would make everything float64)."""

from __future__ import annotations

import numexpr
import numpy as np
from workloads import Arrays, Workload

from peers import Prepared
from peers.expression import texts

FUNCTIONS = frozenset({"exp", "log", "sqrt", "tanh", "sin"})


class Library:
    """numexpr."""

    def __init__(self, threads: int) -> None:
        self.version = numexpr.__version__
        numexpr.set_num_threads(threads)

    def prepare(self, work: Workload, operands: Arrays) -> Prepared | None:
        """See peers.Peer."""
        if work.group == "stencil":
            return None
        if work.group == "reduction" or work.name == "call_sum":
            return self._reduced(work, operands)
        names: dict[str, object] = {f"x{at}": operand for at, operand in enumerate(operands)}

        def constant(value: float) -> str:
            name = f"c{len(names)}"
            names[name] = work.result_dtype.type(value)
            return name

        found = texts(work, len(operands), FUNCTIONS, constant)
        if found is None:
            return None
        shape = np.broadcast_shapes(*(operand.shape for operand in operands))
        jobs = [(text, np.empty(shape, work.result_dtype)) for text in found]

        def call() -> None:
            for text, out in jobs:
                numexpr.evaluate(text, local_dict=names, global_dict={}, out=out)

        return call, lambda: tuple(out for _, out in jobs)

    def _reduced(self, work: Workload, operands: Arrays) -> Prepared | None:
        """Sums are all that it reduces; a mean is one divided by the count."""
        kind, _, axis = work.name.removeprefix("call_").partition("_")
        inside = {"sum": "x0", "mean": "x0", "squares": "(x0 - x1) * (x0 - x1)"}.get(kind)
        if inside is None:
            return None
        text = f"sum({inside}, axis={axis})" if axis else f"sum({inside})"
        names = {f"x{at}": operand for at, operand in enumerate(operands)}
        count = (operands[0].shape[int(axis)] if axis else operands[0].size) if kind == "mean" else 1
        last: list[np.ndarray] = []

        def call() -> None:
            found = numexpr.evaluate(text, local_dict=names, global_dict={})
            last[:] = [found / np.float32(count) if count > 1 else found]

        return call, lambda: tuple(last)
