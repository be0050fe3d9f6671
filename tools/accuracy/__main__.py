"""Measures the errors of the elementary functions and writes docs/accuracy.json and docs/accuracy.md.

    python -m tools.accuracy                        all functions on the CPU: a sample of float32, all of float16
    python -m tools.accuracy --exhaustive           all 2^32 float32 arguments of functions of one operand
    python -m tools.accuracy --target cuda --exhaustive     the same on an NVIDIA device, and its bits against the CPU's
    python -m tools.accuracy --target peers         the other libraries that are installed here, at a sample
    python -m tools.accuracy --only exp,log --dtypes float32
    python -m tools.accuracy --page                 only write the page again
    python -m tools.accuracy --stale                findings of definitions that have changed since; exits 1 if any

Findings are kept after every function, and those of other targets stay, so that runs on several machines fill one file;
--resume leaves out what was measured as thoroughly before and has the same definition.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fusec.base.dtypes import BFLOAT16, BY_NAME, FLOAT32, FLOAT64, DType
from tools.accuracy import complexes, measure, page, peers, points, results
from tools.accuracy.functions import COMPLEX, ROWS, Row
from tools.accuracy.measure import Found, joined
from tools.accuracy.targets import Cpu, Cuda, target_named

DTYPES = ("float32", "float64", "float16", "bfloat16", "complex64", "complex128")
OPS = tuple(dict.fromkeys((*ROWS, *COMPLEX, "complex")))


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser("python -m tools.accuracy", description=__doc__, allow_abbrev=False)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--target", choices=("cpu", "cuda", "peers"), default="cpu", help="what is measured; cpu")
    add("--exhaustive", action="store_true", help="every float32 argument; else every STEP-th")
    add("--step", type=_odd, default=61, help="for float32, every STEP-th bit pattern; odd; 61")
    add("--pairs", type=_positive, default=1 << 26, help="float32 pairs for functions of two operands; 2^26")
    add("--count", type=_positive, default=100_000, help="float64 arguments for each range of a function; 100000")
    add("--peer-step", type=_odd, default=1021, help="as --step, for peers; 1021")
    add(
        "--only", type=_names(OPS), default=OPS, metavar="NAME,...", help="functions; all, and complex for complex ones"
    )
    add("--dtypes", type=_names(DTYPES), default=DTYPES, metavar="NAME,...", help=f"of {', '.join(DTYPES)}; all")
    add("--resume", action="store_true", help="leave out what was measured as thoroughly and is of the same definition")
    add("--page", action="store_true", help="measure nothing, write the page of the findings there are")
    add("--stale", action="store_true", help="list findings of definitions that have changed since; exit code 1 if any")
    add("--out", type=Path, default=results.FILE, help="the file of findings; the page is written beside it")
    return parser.parse_args(arguments)


def _names(known: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """Reads names separated by commas; others are errors."""

    def read(text: str) -> tuple[str, ...]:
        names = tuple(each.strip() for each in text.split(","))
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"unknown name '{name}'; known: {', '.join(known)}")
        return names

    return read


def _positive(text: str) -> int:
    """A count."""
    value = int(text)  # argparse reports the ValueError
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return value


def _odd(text: str) -> int:
    """A step that meets every last bit of a pattern."""
    value = _positive(text)
    if value % 2 == 0:
        raise argparse.ArgumentTypeError(f"{text} is even: such a step meets only even, or only odd, bit patterns")
    return value


class Run:
    """One run of the command: what is asked for, and what has been found so far."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked
        self.step = 1 if asked.exhaustive else asked.step
        self.data = results.read(asked.out)
        self.target: Cpu | Cuda | None = None if asked.target == "peers" else target_named(asked.target)
        self.only = set(asked.only)
        about: dict[str, Any] = {"cpu": results.about_this_cpu, "cuda": results.about_this_device}
        results.update(asked.out, ("about", asked.target), about.get(asked.target, peers.installed)())

    def rows(self, dtype: str) -> list[Row]:
        """Rows asked for; functions of two operands have no narrow table."""
        most = 2 if dtype in ("float32", "float64") else 1
        return [row for row in ROWS.values() if row.op in self.only and row.arity <= most]

    def known(self, dtype: str, op: str, name: str, how: str, of: str) -> bool:
        """Whether this was measured before."""
        entry = self.data["errors"].get(dtype, {}).get(op, {}).get(name)
        return bool(self.asked.resume and entry and entry["how"] == how and entry["of"] == of)

    def keep(self, dtype: str, op: str, name: str, found: Found, how: str, of: str = "", digest: str = "") -> None:
        """Write a finding to the file and the page, and a line to the terminal."""
        results.update(self.asked.out, ("errors", dtype, op, name), results.entry(found, how, of, digest))
        page.write(self.asked.out)
        at = ", ".join(f"{each:.17g}" for each in found.at)
        say(
            f"{dtype} {op}, {name}: {found.most:.4f} ulp at ({at}), mean {found.mean:.4f}, {found.count} arguments",
            True,
        )

    def compare(self, row: Row, dtype: DType, sample: tuple[np.ndarray, ...]) -> None:
        """Keep how many results of a device differ from the CPU's."""
        assert self.target is not None, "peers need not agree"
        left, right = self.target.evaluate(row, *sample), Cpu().evaluate(row, *sample)
        unsigned = f"u{left.dtype.itemsize}"
        nan = np.isnan(left.astype(np.float64)) & np.isnan(right.astype(np.float64))
        differ = int(np.sum((left.view(unsigned) != right.view(unsigned)) & ~nan))
        results.update(self.asked.out, ("same", self.target.name, str(dtype), row.op), [int(left.size), differ])
        if differ:
            say(f"{dtype} {row.op}: {differ} of {left.size} results are not the CPU's", True)


def say(text: str, whole: bool = False) -> None:
    """A line for the terminal; one that is not whole gives way to the next."""
    if whole or sys.stderr.isatty():
        print(
            f"\r{text}\033[K" if sys.stderr.isatty() else text, end="\n" if whole else "", file=sys.stderr, flush=True
        )


def single(run: Run, target: Cpu | Cuda) -> None:
    """float32."""
    for row in run.rows("float32"):
        of = results.fingerprint(row, FLOAT32)
        how = f"{run.asked.pairs} pairs" if row.arity == 2 else "all" if run.step == 1 else f"1/{run.step}"
        if not run.known("float32", row.op, target.name, how, of):
            swept = measure.swept_single(row, target, run.step, run.asked.pairs, say)
            hard = measure.hard_single(row, target.evaluate, swept.at)
            found = Found(swept.worst, swept.at, swept.worst, swept.mean, swept.measured)
            run.keep("float32", row.op, target.name, joined([found, hard]), how, of, swept.digest)
        if target.name != "cpu":
            run.compare(row, FLOAT32, points.drawn(row, FLOAT32, 1 << 18))


def double(run: Run, target: Cpu | Cuda) -> None:
    """float64."""
    for row in run.rows("float64"):
        of = results.fingerprint(row, FLOAT64)
        if not run.known("float64", row.op, target.name, "sample", of):
            found = measure.measure_double(row, {target.name: target.evaluate}, run.asked.count)[target.name]
            run.keep("float64", row.op, target.name, found, "sample", of)
        if target.name != "cpu":
            run.compare(row, FLOAT64, points.drawn(row, FLOAT64, 1 << 16))


def narrow(run: Run, target: Cpu | Cuda, dtype: DType) -> None:
    """float16 or bfloat16, all of it."""
    for row in run.rows(str(dtype)):
        of = results.fingerprint(row, dtype)
        if not run.known(str(dtype), row.op, target.name, "all", of):
            found = measure.measure_narrow(row, dtype, {target.name: target.evaluate})[target.name]
            run.keep(str(dtype), row.op, target.name, found, "all", of)
        if target.name != "cpu":
            run.compare(row, dtype, (np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy),))


def others(run: Run, dtype: DType) -> None:
    """The peers, at points where fusec is measured too."""
    for row in run.rows(str(dtype)):
        evaluators = peers.evaluators(row, str(dtype))
        if not evaluators:
            continue
        if dtype == FLOAT32:
            found = measure.peers_single(row, evaluators, run.asked.peer_step)
        elif dtype == FLOAT64:
            found = measure.measure_double(row, evaluators, run.asked.count)
        else:
            found = measure.measure_narrow(row, dtype, evaluators)
        for name, each in found.items():
            run.keep(str(dtype), row.op, name, each, f"1/{run.asked.peer_step}" if dtype == FLOAT32 else "sample")


def measure_one(run: Run, dtype: DType) -> None:
    """All that is asked for in one dtype."""
    target = run.target
    if target is None:
        if not dtype.is_complex and dtype != BFLOAT16:
            others(run, dtype)
    elif dtype.is_complex:
        complex_parts(run, dtype)
    elif dtype == FLOAT32:
        single(run, target)
    elif dtype == FLOAT64:
        double(run, target)
    else:
        narrow(run, target, dtype)


def complex_parts(run: Run, dtype: DType) -> None:
    """complex64 or complex128, on the CPU: other targets run the same code, and the real functions show it."""
    if isinstance(run.target, Cpu):
        for op, found in complexes.all_of(dtype, max(run.asked.count // 400, 20), run.only).items():
            run.keep(str(dtype), op, "cpu", found, "sample")


def stale(data: dict[str, Any]) -> list[str]:
    """Findings on fusec's targets whose definition is another by now."""
    found = []
    for dtype, table in data["errors"].items():
        rows = [] if dtype.startswith("complex") else [ROWS[op] for op in table if op in ROWS]
        for row in rows:
            of = results.fingerprint(row, BY_NAME[dtype])
            names = [name for name in ("cpu", "cuda") if name in table[row.op] and table[row.op][name]["of"] != of]
            found += [f"{dtype} {row.op}, {name}" for name in names]
    return found


def main() -> int:
    """Measure what is asked for and write the page; the exit code is 1 if findings are stale and that was asked."""
    asked = options()
    if asked.stale:
        found = stale(results.read(asked.out))
        print("\n".join(found) or "nothing")
        return int(bool(found))
    if not asked.page:
        begun = time.perf_counter()
        run = Run(asked)
        for name in asked.dtypes:
            measure_one(run, BY_NAME[name])
        say(f"{time.perf_counter() - begun:.0f} s", True)
    page.write(asked.out)
    return 0


os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("FUSEC_TIERS", "0")  # compiled code is measured
if __name__ == "__main__":
    sys.exit(main())
