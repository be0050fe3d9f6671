"""The programs of tests/programs as NumPy runs them, and as fusec and its peers compile them: python programs.py.

The functions are the same for everyone: JAX and CuPy get their own namespace in place of `np`, PyTorch and Numba
compile what is written for NumPy, and numexpr gets texts. What a peer refuses is left out. Each peer is a process of
its own, and they take turns, starting with another one each round. `--warm 4` fills the peers' caches first, in so many
processes for each. `--device cuda` runs on a GPU: fusec and CuPy on CuPy's arrays, JAX and PyTorch on their own.
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
from concurrent.futures import ThreadPoolExecutor
from functools import partial
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
from tests.programs.program import PROGRAMS, Program  # noqa: E402

LOADED = (images, neural, simulations, statistics)  # these fill the table
PEERS = {
    "cpu": ("numpy", "fusec", "jax", "torch", "numba", "numexpr"),
    "cuda": ("cupy", "fusec", "jax", "torch"),
}
WORK = {
    "gravity": (3, 2),
    "pairwise_distances": (3, 2),
    "attention_of_small_heads": (8, 2),
    "attention_by_products": (2, 2),
    "squared_distances": (3200, 1),
}
"""Programs whose largest array, of factor * size ** power elements, is none of the arguments."""
EXPRESSIONS = {
    "cube": "x ** 3",
    "gelu": "0.5 * x * (1 + tanh(c * (x + d * x ** 3)))",
    "huber_loss": "sum(where(abs(x - y) < 1, 0.5 * (x - y) ** 2, abs(x - y) - 0.5))",
}
"""Programs that numexpr can run, of the arguments x and y."""
SLOW = 0.1  # seconds of a call that is not repeated after two rounds, the first of which may still compile


def rewritten(
    function: Callable[..., Any], namespace: Any, compiled: Callable[..., Any] = lambda function: function
) -> Callable[..., Any]:
    """A compiled copy of a program, and of the functions of its module, whose `np` is another module."""
    assert isinstance(function, FunctionType)
    around: dict[str, Any] = {**function.__globals__, "np": namespace}

    def copy(each: FunctionType) -> Callable[..., Any]:
        return compiled(FunctionType(each.__code__, around, each.__name__, each.__defaults__))

    for name, each in function.__globals__.items():
        if isinstance(each, FunctionType) and name in function.__code__.co_names:
            around[name] = copy(each)
    return copy(function)


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


def arguments(program: Program, elements: int) -> tuple[Any, ...]:
    """Arguments of about so many elements, or those of a program that works on so many."""
    less, more = (sum(each.size for each in leaves(program.given(0, size))) for size in (100, 200))
    power = 2 if more > 3 * less else 1
    factor, power = WORK.get(program.function.__name__, (less / 100**power, power))
    return program.given(0, max(4, int((elements / factor) ** (1 / power))))


class Session:
    """One peer."""

    def __init__(self, name: str, device: str) -> None:
        self.name, self.device = name, device
        self.call: Callable[[], Any] = lambda: None
        self.module = __import__(name)
        if name == "jax":
            self.module.config.update("jax_enable_x64", True)
        if name == "torch":
            self.module.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

    def prepare(self, name: str, elements: int) -> dict[str, Any]:
        """Make the arguments, and call once."""
        self.call = lambda: None
        if self.name == "numexpr" and name not in EXPRESSIONS:
            return {"failed": "no expression"}
        program = PROGRAMS[name]
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

            here = mapped(given, cupy.asarray)
            run = rewritten(function, cupy) if self.name == "cupy" else self.module.fuse(function)
            return lambda: (run(*here), cupy.cuda.get_current_stream().synchronize())
        return getattr(self, f"_{self.name}", self._numpy)(function, given)  # type: ignore[no-any-return]

    def _numpy(self, function: Callable[..., Any], given: tuple[Any, ...]) -> Callable[[], Any]:
        return partial(self.module.fuse(function) if self.name == "fusec" else function, *given)

    def _jax(self, function: Callable[..., Any], given: tuple[Any, ...]) -> Callable[[], Any]:
        run = self.module.jit(rewritten(function, self.module.numpy))
        here = mapped(given, self.module.numpy.asarray)
        if run(*here) is None:
            raise TypeError("JAX writes no arguments")
        return lambda: self.module.block_until_ready(run(*here))

    def _torch(self, function: Callable[..., Any], given: tuple[Any, ...]) -> Callable[[], Any]:
        self.module.compiler.reset()  # every size is compiled for itself
        run = self.module.compile(self.module.compiler.wrap_numpy(function), fullgraph=True)
        here = mapped(given, partial(self.module.asarray, device=self.device))
        if self.device == "cpu":
            return partial(run, *here)
        return lambda: (run(*here), self.module.cuda.synchronize())

    def _numba(self, function: Callable[..., Any], given: tuple[Any, ...]) -> Callable[[], Any]:
        return partial(rewritten(function, np, self.module.njit(parallel=True, cache=True)), *given)

    def _numexpr(self, function: Callable[..., Any], given: tuple[Any, ...]) -> Callable[[], Any]:
        names = {"c": np.float32(0.7978846), "d": np.float32(0.044715), **dict(zip("xy", given, strict=False))}
        return partial(self.module.evaluate, EXPRESSIONS[function.__name__], names)


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
        return dict(measure(session.call, request["seconds"], is_ready=True))

    for line in itertools.chain(["{}"], sys.stdin):
        try:
            print(json.dumps(answered(json.loads(line))), file=channel, flush=True)
        except Exception as problem:  # whatever a peer raises is its result
            said = f"{type(problem).__name__}: {problem}"
            for folder in (ROOT, Path(np.__path__[0]).parent):  # names of this machine's folders stay here
                said = said.replace(f"{folder}/", "")
            print(json.dumps({"failed": said[:200]}), file=channel, flush=True)


class Peers:
    """The processes of all peers. One that dies or hangs starts again."""

    def __init__(self, names: list[str], options: argparse.Namespace) -> None:
        self.options = options
        self.workers = {each: self.started(each) for each in names}

    def started(self, name: str) -> Worker:
        """A new process of a peer."""
        command = [str(Path(__file__)), "--serve", name, "--device", self.options.device]
        return Worker(name, self.options.threads, os.path.expanduser("~"), command)

    def ask(self, name: str, **request: Any) -> dict[str, Any]:
        """What a peer answers within a minute."""
        answer = self.workers[name].ask(timeout=60, **request)
        if self.workers[name].process.poll() is not None:
            self.workers[name] = self.started(name)
        return answer

    def prepare(self, work: str, elements: int) -> dict[str, dict[str, Any]]:
        """Have all peers prepare a program at once."""
        with ThreadPoolExecutor(len(self.workers)) as pool:
            answers = {each: pool.submit(self.ask, each, do="prepare", work=work, n=elements) for each in self.workers}
        return {each: answer.result() for each, answer in answers.items()}

    def times(self, work: str, elements: int) -> dict[str, dict[str, Any]]:
        """What all peers take for a program, in some rounds."""
        rows = self.prepare(work, elements)
        for number in range(self.options.rounds):
            order = [*rows][number % len(rows) :] + [*rows][: number % len(rows)]
            for each in order:
                if "failed" in rows[each] or (number > 1 and rows[each].get("min", 0) > SLOW):
                    continue
                found = self.ask(each, do="run", seconds=self.options.seconds)
                least = min(found.get("min", math.inf), rows[each].get("min", math.inf))
                rows[each] |= {**found, "min": least}
        return rows

    def close(self) -> None:
        """End all processes."""
        for worker in self.workers.values():
            worker.close()


def warm(peers: list[str], cells: list[tuple[int, str]], options: argparse.Namespace) -> None:
    """Fill the compilers' caches, in some processes for each peer."""

    def prepare(part: list[tuple[int, str]]) -> None:
        session = Peers([each for each in peers if each not in ("numpy", "cupy", "numexpr")], options)
        for elements, work in part:
            if time.monotonic() < options.end:
                session.prepare(work, elements)
        session.close()

    with ThreadPoolExecutor(max(1, options.warm)) as pool:
        list(pool.map(prepare, [cells[first :: options.warm] for first in range(options.warm)]))


def run(options: argparse.Namespace) -> dict[str, Any]:
    """All cells: for each program and size what each peer takes."""
    names = [each for each in PROGRAMS if not options.only or each in options.only.split(",")]
    peers = options.peers.split(",") if options.peers else list(PEERS[options.device])
    os.environ |= {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "JAX_PLATFORMS": options.device, "FUSEC_TIERS": "0"}
    todo = list(itertools.product(map(int, map(float, options.sizes.split(","))), names))
    options.end = time.monotonic() + options.limit
    warm(peers, todo, options)
    session = Peers(peers, options)
    versions, cells = {each: worker.hello for each, worker in session.workers.items()}, []
    for elements, work in todo:
        if time.monotonic() > options.end:
            break
        rows = session.times(work, elements)
        cells.append({"work": work, "n": elements, "peers": rows})
        shown = {each: f"{row['min'] * 1e6:.1f}" if "min" in row else "-" for each, row in rows.items()}
        print(work, elements, shown, flush=True)
    session.close()
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
        times = [rows.get(each, {}).get("min") for each in peers]
        shown = [f"{each * 1e6:.1f}" if each else "–" for each in times]
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
    parser.add_argument("--warm", type=int, default=0, help="processes for each peer that fill its caches first")
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
