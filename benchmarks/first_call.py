"""Run in a fresh process: what it costs to import a library and to call its first kernel (GELU on 1000 float32)."""

from __future__ import annotations

import json
import os
import sys
import time

import numpy as np
import peers
import workloads

LIBRARY = {
    "fusec-out": "fusec",
    "fusec-before": "fusec",
    "numba-fast": "numba",
    "torch.compile": "torch",
}


def main(name: str, threads: int) -> None:
    """Print seconds as JSON: import (beyond NumPy), first call with its compilation, second call."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    operands = workloads.WORKLOADS["call_gelu"].inputs(1000)
    start = time.perf_counter()
    library = __import__(LIBRARY.get(name, name))
    getattr(library, "ElementwiseKernel", None)  # fusec imports what its users name
    imported = time.perf_counter()
    peer = peers.load(name, threads)
    begin = time.perf_counter()
    ready = peer.prepare(workloads.WORKLOADS["call_gelu"], operands)
    assert ready is not None, "every peer can do GELU"
    ready[0]()
    first = time.perf_counter()
    ready[0]()
    second = time.perf_counter()
    report = {"import": imported - start, "first": first - begin, "second": second - first, "numpy": np.__version__}
    print(json.dumps(report), file=channel, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
