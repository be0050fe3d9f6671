"""blosc2's lazy expressions over NumPy arrays."""

from __future__ import annotations

import blosc2
import numpy as np
from workloads import Arrays, Workload

from peers import Prepared
from peers.expression import texts

FUNCTIONS = frozenset({"exp", "log", "sqrt", "tanh", "sin"})


class Library:
    """python-blosc2."""

    def __init__(self, threads: int) -> None:
        self.version = blosc2.__version__
        blosc2.set_nthreads(threads)

    def prepare(self, work: Workload, operands: Arrays) -> Prepared | None:
        """See peers.Peer."""
        if work.group in ("reduction", "stencil") or work.name == "call_sum":
            return None
        found = texts(work, len(operands), FUNCTIONS, repr)
        if found is None:
            return None
        names = {f"x{at}": operand for at, operand in enumerate(operands)}
        last: list[np.ndarray] = []

        def call() -> None:
            last[:] = [blosc2.lazyexpr(text, operands=names)[:] for text in found]

        return call, lambda: tuple(last)
