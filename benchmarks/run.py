"""Times fusec beside its peers on the same work in one run, and writes results/NAME.json and results/README.md.

    python benchmarks/run.py                                  every workload, every installed peer
    python benchmarks/run.py --only saxpy,gelu --peers fusec,numpy,numba --sizes 100000
    python benchmarks/run.py --peers fusec,fusec-before --before ../old    this version beside another
    python benchmarks/run.py --table                          only write the table again

Every peer lives in a process of its own. All peers take a turn in every round of a cell, with a measurement of the
memory bandwidth before each round, so that a change of the machine's speed meets all of them.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import table
from bandwidth import Bandwidth
from peers import PEERS
from processes import BEFORE, Worker, first_call
from workloads import WORKLOADS, Workload

RESULTS = Path(__file__).parent / "results"


def cpu_name() -> str:
    """The processor as its maker calls it, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def machine(threads: int, bandwidth: str) -> dict[str, Any]:
    """What a reader needs to judge the numbers."""
    return {
        "date": dt.date.today().isoformat(),
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "threads": threads,
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "bandwidth_by": bandwidth,
    }


def combine(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Several rounds as one: the least of the minima, the median of the medians, the calmest round's foreign load."""
    foreign = [row["foreign"] for row in rounds if row["foreign"] is not None]
    return {
        "min": min(row["min"] for row in rounds),
        "median": statistics.median(row["median"] for row in rounds),
        "calls": sum(row["calls"] for row in rounds),
        "foreign": round(min(foreign), 3) if foreign else None,
    }


def time_cell(work: Workload, n: int, workers: dict[str, Worker], bandwidth: Bandwidth, options: Any) -> dict[str, Any]:
    """One workload at one size: prepare all peers, let them take turns, drop them."""
    operands = work.inputs(n)
    least = work.least_bytes(operands)
    floats = max(operand.nbytes for operand in operands) // 4
    kind = "copy" if len(operands) == 1 else "triad"
    del operands
    found = {name: worker.ask(do="prepare", work=work.name, n=n) for name, worker in workers.items()}
    able = [name for name, answer in found.items() if "first" in answer]
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in able}
    speed = 0.0
    for turn in range(options.rounds):
        speed = max(speed, bandwidth.measure(floats, kind, options.seconds / 4))
        for name in able[turn % len(able) :] + able[: turn % len(able)]:  # nobody always comes first
            answer = workers[name].ask(do="run", seconds=options.seconds)
            if "min" in answer:
                rounds[name].append(answer)
            else:
                found[name] = answer
    for name in able:
        workers[name].ask(do="drop")
        if rounds[name]:
            found[name] |= combine(rounds[name])
    return {"work": work.name, "n": n, "bytes": least, "bandwidth": speed, "limit": least / speed, "peers": found}


def time_first_calls(names: list[str], threads: int, repeats: int) -> dict[str, Any]:
    """For every peer the least import time, first call with an empty cache, and first call with a filled one."""
    result: dict[str, Any] = {}
    for name in names:
        cold, warm = [], []
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as home:
                cold.append(first_call(name, threads, home))
                warm.append(first_call(name, threads, home))
        failed = [row["failed"] for row in cold + warm if "failed" in row]
        if failed:
            result[name] = {"failed": failed[0]}
            continue
        result[name] = {
            "import": min(row["import"] for row in cold + warm),
            "cold": min(row["first"] for row in cold),
            "warm": min(row["first"] for row in warm),
        }
        print(f"first call  {name:<14}" + "".join(f"{key} {1e3 * v:9.1f} ms  " for key, v in result[name].items()))
    return result


def cells(options: Any) -> Iterator[tuple[Workload, int]]:
    """The workloads and sizes asked for."""
    for name in options.only or WORKLOADS:
        work = WORKLOADS[name]
        for n in work.sizes if work.group == "call" or not options.sizes else options.sizes:
            yield work, n


def show(cell: dict[str, Any]) -> None:
    """One line of progress."""
    parts = [f"{cell['work']:<13} n={cell['n']:<9} limit {1e6 * cell['limit']:9.1f} us "]
    for name, row in cell["peers"].items():
        if "min" in row:
            parts.append(f"{name} {1e6 * row['min']:.2f}{'' if row['right'] else ' WRONG'}")
        elif "failed" in row:
            parts.append(f"{name} FAILED {row['failed'][:60]}")
    print("  ".join(parts), flush=True)


def parse() -> Any:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)

    def names(text: str) -> list[str]:
        return text.split(",")

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser.add_argument("--peers", type=names, help="of " + ", ".join(PEERS))
    parser.add_argument("--before", type=Path, help="a checkout of another version, as a peer beside this one")
    parser.add_argument("--only", type=names, help="of first_calls, " + ", ".join(WORKLOADS))
    parser.add_argument("--sizes", type=lambda text: [int(float(part)) for part in text.split(",")], default=[])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.4, help="per peer and round")
    parser.add_argument("--threads", type=int, default=cores)
    parser.add_argument("--out", type=Path, default=RESULTS / "cpu.json")
    parser.add_argument("--table", action="store_true", help="only write the table of --out again")
    options = parser.parse_args()
    if options.before:
        os.environ[BEFORE] = str(options.before.resolve())
    options.peers = options.peers or [name for name in PEERS if options.before or name != "fusec-before"]
    unknown = {*options.peers, *(options.only or [])} - {*PEERS, *WORKLOADS, "first_calls"}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    return options


def main() -> None:
    """Run what was asked for; the JSON is written after every cell, so that an interrupted run keeps its results."""
    options = parse()
    if options.table:
        table.write(options.out)
        return
    bandwidth = Bandwidth(options.threads)
    run: dict[str, Any] = {"machine": machine(options.threads, bandwidth.source), "versions": {}, "cells": []}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        workers = {}
        for name in options.peers:
            worker = Worker(name, options.threads, home)
            if "version" in worker.hello:
                workers[name] = worker
                run["versions"][name] = worker.hello["version"]
            else:
                print(f"without {name}: {worker.hello['failed']}")
                worker.close()
        if options.only is None or "first_calls" in options.only:
            run["first_calls"] = time_first_calls(list(workers), options.threads, min(3, options.rounds))
        if options.only is not None:
            options.only = [name for name in options.only if name != "first_calls"]
        for work, n in cells(options) if options.only is None or options.only else ():
            run["cells"].append(time_cell(work, n, workers, bandwidth, options))
            show(run["cells"][-1])
            options.out.write_text(json.dumps(run, indent=1) + "\n")
        for worker in workers.values():
            worker.close()
    options.out.write_text(json.dumps(run, indent=1) + "\n")
    table.write(options.out)


if __name__ == "__main__":
    main()
