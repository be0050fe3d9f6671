"""The process of one peer: takes requests as lines of JSON on standard input, answers likewise."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
from typing import Any

import numpy as np
import peers
import workloads
from timing import measure


class Session:
    """One peer and the work it holds ready, under the key of its cell."""

    def __init__(self, name: str, threads: int) -> None:
        self.peer = peers.load(name, threads)
        self.ready: peers.Prepared | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what a request asks: prepare, run or drop."""
        match request["do"]:
            case "prepare":
                return self.prepare(workloads.WORKLOADS[request["work"]], request["n"])
            case "run":
                assert self.ready is not None, "run before prepare"
                return dict(measure(self.ready[0], request["seconds"]))
            case "drop":
                self.ready = None
                gc.collect()
                return {}
        raise AssertionError(f"unknown request {request}")

    def prepare(self, work: workloads.Workload, n: int) -> dict[str, Any]:
        """Make the inputs, call once and check the result."""
        operands = work.inputs(n)
        start = time.perf_counter()
        self.ready = self.peer.prepare(work, operands)
        if self.ready is None:
            return {"skipped": "not applicable"}
        call, results = self.ready
        call()
        first = time.perf_counter() - start
        error = workloads.error(work, operands, results())
        return {"first": first, "error": error, "right": error <= work.tolerance}


def main(name: str, threads: int) -> None:
    """Serve until standard input closes."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries that print must not disturb the protocol

    def send(answer: dict[str, Any]) -> None:
        print(json.dumps(answer), file=channel, flush=True)

    try:
        session = Session(name, threads)
    except Exception as problem:
        send({"failed": f"{type(problem).__name__}: {problem}"[:300]})
        return
    send({"version": session.peer.version, "numpy": np.__version__})
    for line in sys.stdin:
        try:
            send(session.answer(json.loads(line)))
        except Exception as problem:
            traceback.print_exc()
            send({"failed": f"{type(problem).__name__}: {problem}"[:300]})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
