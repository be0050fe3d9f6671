"""PyTorch on the CPU, eager and compiled."""

from __future__ import annotations

import numpy as np
import torch
from reductions import EPSILON
from workloads import Arrays, Workload

from peers import Prepared


class Library:
    """PyTorch."""

    def __init__(self, threads: int, compiled: bool) -> None:
        self.version = torch.__version__
        self.compiled = compiled
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)

    def prepare(self, work: Workload, operands: Arrays) -> Prepared | None:
        """See peers.Peer."""
        if work.name in ("reversed", "unaligned"):
            return None  # from_numpy takes neither
        inputs = [torch.from_numpy(operand) for operand in operands]

        def run(*tensors):
            if work.name == "softmax":
                return torch.softmax(*tensors, dim=1)
            if work.name == "layer_norm":
                return torch.nn.functional.layer_norm(*tensors, tensors[0].shape[1:], eps=EPSILON)
            return work.compute(torch, *tensors)

        if self.compiled:
            torch._dynamo.reset()
            run = torch.compile(run, dynamic=False)
        last = [None]

        def call() -> None:
            last[0] = run(*inputs)

        return call, lambda: tuple(np.asarray(t) for t in (last[0] if isinstance(last[0], tuple) else (last[0],)))
