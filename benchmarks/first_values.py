"""How long the first value of an unknown function of 1000 elements takes, by a compiler of array code and its peers.

    python benchmarks/first_values.py --peers fusec,fusec-waits,jax,numpy --runs 7

Each run is a process of its own with empty caches: it times the import, the first value of a function of two operations
("cold"), that of one of ten right after it ("ten"), a second call of that, the first value of another 50 ms later
("later"), and for a third one, called over and over, when its calls have become fast ("settled"), and how fast.
Milliseconds; the best of all runs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from processes import environment

PEERS = ("numpy", "fusec", "fusec-waits", "jax")
TOPICS = ("import", "cold", "ten", "later", "second", "settled", "repeated", "shared")


def load(name: str) -> tuple[Any, Callable[[Any], Any]]:
    """The module of array functions, and what compiles a function."""
    if name == "numpy":
        return np, lambda function: function
    if name == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
        return jax.numpy, lambda function: _finished(jax.jit(function))
    import fusec

    return np, fusec.fuse


def _finished(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which returns when its result is there."""
    import jax

    return lambda *args: jax.block_until_ready(function(*args))


def child(name: str) -> dict[str, float]:
    """The times of one process, in seconds."""
    clock = time.perf_counter
    begin = clock()
    xp, compiles = load(name)
    found = {"import": clock() - begin}
    x, y = xp.asarray(np.random.default_rng(1).random((2, 1000)))

    def ten(x: Any, y: Any) -> Any:
        a = x * y + 1.5
        b = xp.sqrt(abs(a)) - x
        c = xp.where(b > 0.5, b * a, y / 3)
        return a * 0.25 - c

    def other(x: Any, y: Any) -> Any:
        a = x / y - 2.5
        b = xp.sqrt(abs(a)) + y
        c = xp.where(b < 0.5, b + a, y * 3)
        return a * 0.75 + c

    def shared(x: Any) -> Any:
        values = [x]
        for _ in range(500):
            values.append(xp.exp(-values[-1]))
        return [each.sum(axis=0) for each in values[1:]], [each.sum(axis=1) for each in values[1:]]

    def timed(topic: str, function: Any, *args: Any) -> None:
        begin = clock()
        function(*args)
        found[topic] = clock() - begin

    timed("cold", compiles(lambda x: x * 2 + 1), x)
    unknown = compiles(ten)
    timed("ten", unknown, x, y)
    timed("second", unknown, x, y)
    time.sleep(0.05)
    timed("later", compiles(other), x, y)
    third = compiles(lambda x, y: other(y, x) * 2)
    begin = clock()
    times = []
    while clock() < begin + 0.3:
        at = clock()
        third(x, y)
        times.append((clock() - at, at - begin))
    found["repeated"] = median(each for each, _ in times[len(times) // 2 :])
    late = [at for (_, at), *few in zip(times, *(times[shift:] for shift in range(9)), strict=False)
            if median(each for each, _ in few) > 5 * found["repeated"]]  # fmt: skip
    found["settled"] = max(late, default=0.0)
    timed("shared", compiles(shared), x.reshape(40, 25))
    return found


def run(name: str) -> dict[str, float]:
    """The times of a peer in a new process with empty caches."""
    with tempfile.TemporaryDirectory() as home:
        variables = environment(name, os.cpu_count() or 1, home) | {"FUSEC_TIERS": str(int(name != "fusec-waits"))}
        command = [sys.executable, __file__, "--child", name]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300, check=True)
    times: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return times


def main() -> int:
    """Print a table, or the times of one process."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--child")
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(options.child)))
        return 0
    print("peer".ljust(14), *(each.rjust(9) for each in TOPICS))
    for name in options.peers.split(","):
        run(name)  # writes Python's bytecode
        runs = [run(name) for _ in range(options.runs)]
        print(name.ljust(14), *(f"{min(each[topic] for each in runs) * 1e3:9.3f}" for topic in TOPICS), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
