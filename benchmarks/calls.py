"""The host's part of calls of fused functions: small arrays, so that kernels take next to nothing; NumPy, jax.jit.

``python benchmarks/calls.py [--rounds 40]`` writes results/calls.md. Each library gets its own arrays before the clock
starts. A repeated call is the best of many rounds; a call at a new shape is the median of calls with one shape each,
after two shapes that are not counted. JAX is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from types import FunctionType
from typing import Any

import numpy as np

import fusec

CALLS = 200  # of a round
PAUSE = 0.2  # seconds for compilers in the background
SHAPES = 40  # new ones
SHAPES_COMPILED = 3  # of JAX, which compiles each


def ten(x: Any, y: Any) -> Any:
    """Ten operations."""
    return np.sqrt(x * x + y * y) * 0.5 + (x - y) * 2.0 - x / (y + 3.0)


def softmax(x: Any, y: Any) -> Any:
    """Two totals, and what is made of them."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) + y


def affine(x: Any, y: Any) -> Any:
    """A product, a bias, a rectifier."""
    return np.maximum(x @ y.T + 1.0, 0.0)


def parts(x: Any, y: Any) -> Any:
    """Views."""
    return x[..., 1:-1] * 2.0 + y[..., 2:] - x[..., :-2]


def adam(x: Any, y: Any) -> Any:
    """One step over lists of arrays."""
    found = []
    for p, g in zip(x, y, strict=True):
        m, v = 0.9 * p + 0.1 * g, 0.999 * p + 0.001 * g * g
        found.append(p - 0.1 * m / (np.sqrt(v) + 1e-8))
    return found


WORK: dict[str, tuple[Callable[..., Any], Callable[[int], Any]]] = {
    "ten operations": (ten, lambda n: np.linspace(1, 2, n)),
    "softmax of 4 rows": (softmax, lambda n: np.linspace(1, 2, 4 * n).reshape(4, n)),
    "product, bias, ReLU": (affine, lambda n: np.linspace(1, 2, 4 * n).reshape(4, n)),
    "views": (parts, lambda n: np.linspace(1, 2, n)),
    "Adam over lists of 6 arrays": (adam, lambda n: [np.linspace(1, 2, n) for _ in range(6)]),
}


def libraries() -> dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], int]]:
    """By name: what prepares a function, what converts arguments, and how many new shapes to take."""
    found: dict[str, Any] = {
        name: (prepare, lambda x: x, SHAPES) for name, prepare in (("fusec", fusec.fuse), ("NumPy", as_is))
    }
    try:
        import jax
    except ImportError:
        return found
    jax.config.update("jax_enable_x64", True)

    def jit(function: Any) -> Any:
        compiled = jax.jit(FunctionType(function.__code__, {"np": jax.numpy, "zip": zip}))
        return lambda *args: jax.block_until_ready(compiled(*args))

    found["jax.jit"] = (jit, lambda x: jax.tree.map(jax.numpy.asarray, x), SHAPES_COMPILED)
    return found


def as_is(function: Any) -> Any:
    """What NumPy's own functions make of it."""
    return function


def once(call: Callable[..., Any], args: Sequence[Any], times: int = 1) -> float:
    """Microseconds of one call."""
    start = time.perf_counter()
    for _ in range(times):
        call(*args)
    return (time.perf_counter() - start) / times * 1e6


def measured(name: str, rounds: int) -> list[dict[str, float]]:
    """Repeated calls, and calls at new shapes, in microseconds by library."""
    function, make = WORK[name]
    again, new = dict[str, float](), dict[str, float]()
    known = libraries()
    calls = {each: prepare(function) for each, (prepare, _, _) in known.items()}
    given = {each: (convert(make(10)), convert(make(10))) for each, (_, convert, _) in known.items()}
    for each, call in calls.items():
        for _ in range(4):
            call(*given[each])
        time.sleep(PAUSE)
    for _ in range(rounds):
        for each, call in calls.items():  # in turns, since the speed of machines changes
            again[each] = min(again.get(each, 1e9), once(call, given[each], CALLS))
    for each, (_, convert, shapes) in known.items():
        arguments = [(convert(make(n)), convert(make(n))) for n in range(100, 102 + shapes)]
        new[each] = median([once(calls[each], args) for args in arguments][2:])
    return [again, new]


def table(rounds: int) -> str:
    """All rows as Markdown."""
    names = list(libraries())
    columns = [f"{name}, {what}" for what in ("again", "new shape") for name in names]
    lines = [f"| work | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    for name in WORK:
        times = measured(name, rounds)
        cells = [
            f"{each[library]:,.2f}" if each[library] < 100 else f"{each[library]:,.0f}"
            for each in times
            for library in names
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    load = os.getloadavg()[0]
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    head = (
        f"# Calls of fused functions\n\n`python benchmarks/calls.py` on {machine}; fusec {fusec.__version__}, NumPy\n"
        f"{np.__version__}. Microseconds, with 10 elements in a row again, and some 100 at a new shape. Load by other\n"
        f"processes before: {load:.1f}.\n\n"
    )
    page = Path(__file__).parent / "results" / "calls.md"
    page.write_text(head + table(rounds) + "\n")


if __name__ == "__main__":
    main()
