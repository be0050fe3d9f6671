"""The programs of tests/programs, as NumPy runs them and as fusec, JAX and PyTorch compile them: python programs.py.

Each peer is a process of its own, and they take turns, starting with another one each round. `--device cuda` runs
CuPy and JAX instead, and fusec on CuPy's arrays.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT)]

import numpy as np  # noqa: E402
from processes import Worker  # noqa: E402
from run import machine  # noqa: E402
from timing import measure  # noqa: E402

from tests.programs import images, neural, simulations, statistics  # noqa: E402
from tests.programs.program import PROGRAMS  # noqa: E402

LOADED = (images, neural, simulations, statistics)  # these fill the table
PEERS = {"cpu": ("numpy", "fusec", "jax", "torch"), "cuda": ("cupy", "fusec", "jax")}


def with_namespace(function: Callable[..., Any], namespace: Any) -> Callable[..., Any]:
    """A copy of a program whose `np` is another module."""
    assert isinstance(function, FunctionType)
    return FunctionType(
        function.__code__, {**function.__globals__, "np": namespace}, function.__name__, function.__defaults__
    )


def leaves(given: Any) -> list[np.ndarray[Any, Any]]:
    """All arrays in some arguments."""
    if isinstance(given, (tuple, list)):
        return [leaf for each in given for leaf in leaves(each)]
    return [given] if isinstance(given, np.ndarray) else []


def mapped(given: Any, change: Callable[[Any], Any]) -> Any:
    """The arguments with other arrays."""
    if isinstance(given, (tuple, list)):
        return type(given)(mapped(each, change) for each in given)
    return change(given) if isinstance(given, np.ndarray) else given


def arguments(program: Any, elements: int) -> tuple[Any, ...]:
    """Arguments of about so many elements."""
    size, larger = 4, 5
    while larger <= elements and sum(each.size for each in leaves(program.given(0, larger))) <= elements:
        size, larger = larger, 1 + larger * 4 // 3
    return tuple(program.given(0, size))


class Session:
    """One peer."""

    def __init__(self, name: str, device: str) -> None:
        self.programs, self.name, self.device = PROGRAMS, name, device
        self.call: Callable[[], Any] = lambda: None
        self.module = __import__("fusec" if name == "fusec" else name)
        if name == "jax":
            self.module.config.update("jax_enable_x64", True)

    def prepare(self, name: str, elements: int) -> dict[str, Any]:
        """Make the arguments, and call once."""
        program = self.programs[name]
        given = arguments(program, elements)
        count = sum(each.size for each in leaves(given))
        start = time.perf_counter()
        self.call = self.made(program.function, given)
        self.call()
        return {"first": time.perf_counter() - start, "elements": count}

    def made(self, function: Callable[..., Any], given: tuple[Any, ...]) -> Callable[[], Any]:
        """A call that ends when its results are there."""
        if self.device == "cuda" and self.name in ("cupy", "fusec"):
            import cupy

            given = mapped(given, cupy.asarray)
            run = with_namespace(function, cupy) if self.name == "cupy" else self.module.fuse(function)

            def timed() -> None:
                run(*given)
                cupy.cuda.get_current_stream().synchronize()

            return timed
        if self.name == "jax":
            run = self.module.jit(with_namespace(function, self.module.numpy))
            given = mapped(given, self.module.numpy.asarray)
            return lambda: self.module.block_until_ready(run(*given))
        if self.name == "torch":
            self.module.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
            run = self.module.compile(function)
        else:
            run = self.module.fuse(function) if self.name == "fusec" else function
        return lambda: run(*given)


def serve(name: str, device: str) -> None:
    """Answer requests until standard input closes."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    session: Session | None = None

    def answered(request: dict[str, Any]) -> dict[str, Any]:
        nonlocal session
        if session is None:
            session = Session(name, device)
            return {"version": session.module.__version__}
        if request["do"] == "prepare":
            return session.prepare(request["work"], request["n"])
        return dict(measure(session.call, request["seconds"]))

    for line in itertools.chain(["{}"], sys.stdin):
        try:
            print(json.dumps(answered(json.loads(line))), file=channel, flush=True)
        except Exception as problem:  # whatever a peer raises is its result
            print(json.dumps({"failed": f"{type(problem).__name__}: {problem}"[:200]}), file=channel, flush=True)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """All cells: for each program and size what each peer takes."""
    names = [each for each in PROGRAMS if not options.only or each in options.only.split(",")]
    peers = options.peers.split(",") if options.peers else list(PEERS[options.device])
    cells = []
    home = os.path.expanduser("~")
    os.environ |= {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "JAX_PLATFORMS": options.device}
    workers = {
        each: Worker(each, options.threads, home, [str(Path(__file__)), "--serve", each, "--device", options.device])
        for each in peers
    }
    versions = {each: worker.hello for each, worker in workers.items()}
    end = time.monotonic() + options.limit
    for elements in map(int, map(float, options.sizes.split(","))):
        for work in names:
            if time.monotonic() > end:
                break
            rows: dict[str, dict[str, Any]] = {}
            for each, worker in workers.items():
                rows[each] = worker.ask(do="prepare", work=work, n=elements, timeout=60)
            for number in range(options.rounds):
                order = [*workers][number % len(workers) :] + [*workers][: number % len(workers)]
                for each in order:
                    if "failed" in rows[each]:
                        continue
                    found = workers[each].ask(do="run", seconds=options.seconds, timeout=60)
                    least = min(found.get("min", math.inf), rows[each].get("min", math.inf))
                    rows[each] |= {**found, "min": least}
            cells.append({"work": work, "n": elements, "peers": rows})
            shown = {each: f"{row['min'] * 1e6:.1f}" if "min" in row else "-" for each, row in rows.items()}
            print(work, elements, shown, flush=True)
    for worker in workers.values():
        worker.close()
    return {"machine": machine(options.threads, "none"), "device": options.device, "versions": versions, "cells": cells}


def render(found: dict[str, Any]) -> str:
    """The results as a table: microseconds, and fusec's time as a multiple of that of the best peer."""
    peers = list(found["versions"])
    lines = [
        "# Programs",
        "",
        f"{found['machine']}",
        "",
        "Microseconds a call, the least of all rounds; – is refused.",
        "",
    ]
    lines += [
        "| program | n | " + " | ".join(peers) + " | fusec / best peer |",
        "|---|---:|" + "---:|" * (len(peers) + 1),
    ]
    ratios = []
    for cell in found["cells"]:
        rows = cell["peers"]
        others = [row["min"] for each, row in rows.items() if each != "fusec" and "min" in row]
        own = rows.get("fusec", {}).get("min")
        ratio = own / min(others) if own and others else None
        ratios += [ratio] if ratio else []
        shown = [f"{rows[each]['min'] * 1e6:.1f}" if "min" in rows[each] else "–" for each in peers]
        lines.append(f"| {cell['work']} | {cell['n']:,} | {' | '.join(shown)} | {f'{ratio:.2f}' if ratio else '–'} |")
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        lines += ["", f"{len(ratios)} rows, geometric mean of fusec / best peer {mean:.2f}, worst {max(ratios):.2f}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run, and write the JSON and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", default="")
    parser.add_argument("--device", default="cpu", choices=list(PEERS))
    parser.add_argument("--peers", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--sizes", default="1e4,1e6,1e7")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--limit", type=float, default=3600, help="seconds after which no further program starts")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "programs.json")
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.device)
        return
    found = run(options)
    options.out.write_text(json.dumps(found, indent=1))
    options.out.with_suffix(".md").write_text(render(found))


if __name__ == "__main__":
    main()
