"""fusec.evaluate beside numexpr.evaluate: the same texts and arrays, in turns, in one process.

``python benchmarks/evaluate.py [--sizes 1e3,1e4] [--rounds 21]`` writes results/evaluate.md. Both take the names from a
dictionary, allocate their results unless an output is given, and use as many threads. The best round is shown, as in
run.py; a round is as many calls as take 1 ms. Results are compared with each other.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numexpr
import numpy as np

import fusec

TEXTS = [
    ("2*a + 3*b", "float64", ""),
    ("(a + 2*b) / (1 + a + 4*b*b)", "float64", ""),
    ("where(a > 0.5, exp(-a*b), c)", "float64", ""),
    ("sin(a)**2 + cos(b)**2", "float64", ""),
    ("((.25*a + .75)*a - 1.5)*a - 2", "float64", ""),
    ("(a > 0.2) & (b < 0.7) | (c > a)", "float64", ""),
    ("a*b + c*d - e*f + g/h", "float64", ""),
    ("a*x + b*y", "float64", ""),
    ("a*b + c", "float32", ""),
    ("sqrt(a*a + b*b + c*c)", "float32", ""),
    ("i*3 + j % 7", "int64", ""),
    ("a*i + b*j", "int64", ""),
    ("a*b + c", "complex128", ""),
    ("2*a + 3*b", "float64", "every other element"),
    ("2*a + 3*b", "float64", "out="),
    ("2*a + 3*b", "float64", "out= of float32"),
    ("2*a + 3*b", "float64", "order='F'"),
    ("sum(a)", "float64", ""),
    ("sum(a*b)", "float64", ""),
    ("prod(1 + a/1e9)", "float64", ""),
    ("sum((a - b)**2, axis=0)", "float64", ""),
]
ROUND = 1e-3  # seconds
Row = tuple[str, str, str, int, float, float]


def operands(dtype: str, how: str, size: int) -> dict[str, object]:
    """The arrays of a text, by name: i and j are int64, x and y Python's numbers, the others of the dtype."""
    rng = np.random.default_rng(size)
    count = 2 * size if how == "every other element" else size
    found: dict[str, object] = {name: rng.integers(0, 1000, size) for name in "ij"} | {"x": 2.5, "y": 3}
    for name in "abcdefgh":
        values = rng.random(count).astype("float64" if dtype == "int64" else dtype)
        found[name] = values[:: count // size]
    return found


def options(how: str, size: int) -> dict[str, object]:
    """What a call is given besides."""
    if how.startswith("out="):
        return {"out": np.empty(size, "float32" if "float32" in how else "float64")}
    return {"order": "F"} if how.startswith("order") else {}


def calls_in(call: Callable[[], object]) -> int:
    """How many calls take a round, after some that prepare kernels and memory."""
    for _ in range(4):
        call()
    start = time.perf_counter()
    call()
    return max(1, min(2000, int(ROUND / (time.perf_counter() - start))))


def measured(call: Callable[[], object], count: int) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def compare(text: str, dtype: str, how: str, size: int, rounds: int) -> Row:
    """One row of the table."""
    names, given = operands(dtype, how, size), options(how, size)
    peers = [
        lambda: fusec.evaluate(text, names, {}, **given),
        lambda: numexpr.evaluate(text, names, {}, **given),
    ]
    results = [np.array(peer()) for peer in peers]
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4 if "float32" in (dtype, *how.split()) else 1e-9)
    counts = [calls_in(peer) for peer in peers]
    times: list[list[float]] = [[], []]
    for number in range(rounds):
        for at in (0, 1) if number % 2 else (1, 0):
            times[at].append(measured(peers[at], counts[at]))
    return text, dtype, how, size, min(times[0]), min(times[1])


def shown(seconds: float) -> str:
    """A time with its unit."""
    return f"{seconds * 1e6:.2f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def table(rows: list[Row], rounds: int, load: float) -> str:
    """The page."""
    versions = f"fusec {fusec.__version__}, numexpr {numexpr.__version__}, NumPy {np.__version__}"
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    lines = [
        "# fusec.evaluate beside numexpr.evaluate",
        "",
        f"`python benchmarks/evaluate.py --rounds {rounds}` on {machine}; {versions}. Minima; both",
        f"allocate unless `out=` is given. Load by other processes before: {load:.1f}.",
        "",
        "| expression | dtype | | elements | fusec | numexpr | times faster |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for text, dtype, how, size, ours, theirs in rows:
        cells = (f"`{text.replace('|', chr(92) + '|')}`", dtype, how, f"{size:,}", shown(ours), shown(theirs))
        lines.append(f"| {' | '.join(cells)} | {theirs / ours:.1f} |")
    slower = sum(theirs < ours for *_, ours, theirs in rows)
    return "\n".join([*lines, "", f"Rows in which numexpr is faster: {slower} of {len(rows)}.", ""])


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1e3,1e4,1e5,1e6,1e7")
    parser.add_argument("--rounds", type=int, default=21)
    asked = parser.parse_args()
    sizes = [int(float(each)) for each in asked.sizes.split(",")]
    numexpr.set_num_threads(len(os.sched_getaffinity(0)))
    load = os.getloadavg()[0]
    rows = [compare(*each, size, asked.rounds) for each in TEXTS for size in sizes]
    page = table(rows, asked.rounds, load)
    print(page)
    (Path(__file__).parent / "results" / "evaluate.md").write_text(page)


if __name__ == "__main__":
    main()
