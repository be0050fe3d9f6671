"""Random kernels whose time should change as little as they do: a search for cliffs.

    python benchmarks/cliffs.py --kernels 300 --seed 0 --json benchmarks/results/cliffs_NAME.json

Laws, for each kernel on one thread, arrays in the caches:

- its code for this processor takes at most 1.1 times as long as its code for lesser ones, avx2 and sse2;
- it takes at most 1.3 times as long as its parts take apart, which are the operands of its last operation, and that;
- one more cheap operation, with an input it has or a new one, takes at most twice as long.

All codes of a kernel take turns in one process, and minima are compared. What breaks a law is measured again with more
rounds, and a third time when no other worker runs; only what breaks it three times is reported. The same seed makes the
same kernels. `--only 17,23` takes some of them, and shows all their times.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import random
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ |= {"FUSEC_NUM_THREADS": "1", "FUSEC_CACHE": "0"}
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import fusec

Arrays = dict[str, np.ndarray]
LEVELS = ("native", "avx2", "sse2")
LESSER, PARTS, ONE_MORE = 1.1, 1.3, 2.0  # the most that each law allows
SLACK = 1e-6  # seconds that break no law
ELEMENTS, ROW = 20_011, 37  # in all, so that a second cache has room for all arrays; in each row of two axes
ROUNDS, BATCH = 5, 200e-6  # turns of each code; seconds of one turn at least
INPUTS = "abcd"

FLOAT_OPS = {
    1: ["-{}", "fabs({})", "({} * {})", "sqrt({})", "floor({})", "exp({})", "log({})", "tanh({})", "sin({})", "cos({})",
        "tan({})", "erf({})", "cbrt({})", "atan({})", "asin({})", "sinh({})", "log1p({})", "expm1({})", "exp2({})",
        "lgamma({})", "rsqrt({})"],
    2: ["({} + {})", "({} - {})", "({} * {})", "({} / {})", "min({}, {})", "max({}, {})", "pow({}, {})",
        "hypot({}, {})", "atan2({}, {})", "fmod({}, {})", "copysign({}, {})"],
    3: ["({} < {} ? {} : (T)1)", "fma({}, {}, {})", "({} + {} * {})"],
}  # fmt: skip
INTEGER_OPS = {
    1: ["(T)(-{})", "(T)(~{})", "(T)({} << 3)", "(T)({} >> 2)", "(T)({} * 3)", "(T)({} / 7)", "(T)({} % 11)"],
    2: ["(T)({} + {})", "(T)({} - {})", "(T)({} * {})", "(T)({} & {})", "(T)({} | {})", "(T)({} ^ {})",
        "min({}, {})", "max({}, {})", "(T)({} / ({} | 1))", "(T)({} % ({} | 1))"],
    3: ["({} < {} ? {} : (T)5)", "(T)({} * {} + {})"],
}  # fmt: skip
CHEAP = {True: ["({} + {})", "({} * {})", "({} - {})", "max({}, {})"],
         False: ["(T)({} + {})", "(T)({} ^ {})", "(T)({} - {})", "max({}, {})"]}  # fmt: skip
DTYPES = ["float32"] * 8 + ["float64"] * 5 + ["int32"] * 3 + ["uint8", "int16", "int64"]
LAYOUTS = ["contiguous"] * 7 + ["strided", "rows", "rows"]
BODIES = ["{}"] * 7 + ["loop", "branch", "raw"]


@dataclass(frozen=True)
class Tree:
    """An operation, as a pattern, and its operands; an input has its name and no operands."""

    pattern: str
    operands: tuple[Tree, ...] = ()

    def __str__(self) -> str:
        return self.pattern.format(*self._given(map(str, self.operands)))

    def _given(self, texts: Iterable[str]) -> list[str]:
        given = list(texts)
        return given * self.pattern.count("{}") if len(given) == 1 else given

    @property
    def inputs(self) -> set[str]:
        """The names of inputs it reads."""
        return {self.pattern} if not self.operands else {name for each in self.operands for name in each.inputs}


@dataclass(frozen=True)
class Case:
    """One kernel: a value of its inputs, statements before it, and how the arrays lie."""

    number: int
    dtype: str
    layout: str
    tree: Tree
    before: str = ""  # statements, after which `s` may stand for the value
    raw: bool = False

    def body(self, tree: Tree) -> str:
        """The text of a kernel that computes a value as this one does."""
        if not self.before:
            return f"z = {tree}"
        return self.before.format(tree) + "; z = s"


def draw(number: int, seed: int) -> Case:
    """The kernel of a number."""
    rng = random.Random(f"{seed}/{number}")
    dtype, layout, kind = rng.choice(DTYPES), rng.choice(LAYOUTS), rng.choice(BODIES)
    names = INPUTS[: rng.randint(1, len(INPUTS))]
    ops = FLOAT_OPS if dtype.startswith("float") else INTEGER_OPS
    tree = grown(rng, ops, names, rng.choice([1, 1, 2, 2, 3, 4, 5, 6, 8, 10, 14]))
    before = {
        "loop": "T s = 0; for (int k = 0; k < 6; ++k) {{ s = s / (T)3 + {}; }}",
        "branch": "T s = a; if (a > (T)1) {{ s = {}; }}",
        "raw": "T s = {}; s = s + w[i]",
    }.get(kind, "")
    return Case(number, dtype, layout, tree, before, raw=kind == "raw")


def grown(rng: random.Random, ops: dict[int, list[str]], names: str, operations: int) -> Tree:
    """A tree of so many operations."""
    if operations == 0:
        return Tree(rng.choice(names))
    arity = rng.choice([1, 1, 2, 2, 2, 3])
    shares = [0] * arity
    for _ in range(operations - 1):
        shares[rng.randrange(arity)] += 1
    return Tree(rng.choice(ops[arity]), tuple(grown(rng, ops, names, share) for share in shares))


def extended(case: Case, seed: int) -> Tree:
    """The kernel's value with one more cheap operation."""
    rng = random.Random(f"{seed}/{case.number}/more")
    pattern = rng.choice(CHEAP[case.dtype.startswith("float")])
    return Tree(pattern, (case.tree, Tree(rng.choice([*sorted(case.tree.inputs), "e", "e"]))))


def parts_of(case: Case) -> tuple[list[tuple[str, Tree]], Tree] | None:
    """Operands of the last operation that are operations themselves, under new names, and the rest; None if less than
    two or if there are statements.
    """
    if case.before or not any(each.operands for each in case.tree.operands):
        return None
    apart = [(f"t{k}", each) for k, each in enumerate(case.tree.operands) if each.operands]
    names = {each: name for name, each in apart}
    rest = Tree(case.tree.pattern, tuple(Tree(names[each]) if each.operands else each for each in case.tree.operands))
    return list({tree: (name, tree) for name, tree in apart}.values()), rest


# --- running ------------------------------------------------------------------------------------------------------


def memory_of(case: Case, name: str) -> np.ndarray:
    """Values of an input, laid out as the case says."""
    random = np.random.default_rng(sum(map(ord, name)))
    rows = ELEMENTS // ROW

    def some(shape: tuple[int, ...]) -> np.ndarray:
        if case.dtype.startswith("float"):
            return random.uniform(0.05, 0.95, shape).astype(case.dtype)
        return random.integers(1, 100, shape).astype(case.dtype)

    if case.layout == "strided":
        return some((2 * ELEMENTS,))[::2]
    if case.layout == "rows":
        return np.broadcast_to(some((rows, 1)), (rows, ROW)) if name == "b" else some((rows, ROW + 3))[:, :ROW]
    return some((ELEMENTS,))


def some_memory(case: Case, shape: tuple[int, ...]) -> np.ndarray:
    """Room for a result; parts of kernels with rows leave rows."""
    if case.layout == "rows":
        return np.empty((shape[0], ROW + 3), case.dtype)[:, :ROW]
    return np.empty(shape, case.dtype)


class Code:
    """A kernel for one level of processor, and its arguments; called again and again it keeps the least time."""

    def __init__(self, case: Case, body: str, arrays: Arrays, level: str, title: str) -> None:
        names = [name for name in arrays if name != "w"]
        params = ", ".join([f"T {name}" for name in names] + ["raw T w"] * case.raw)
        self.kernel = fusec.ElementwiseKernel(params, "T z", body, f"k{case.number}_{title}_{level}")
        self.out = some_memory(case, arrays[names[0]].shape)
        self.given = [*(arrays[name] for name in names), *([arrays["w"]] if case.raw else []), self.out]
        os.environ["FUSEC_CPU"] = level
        self.kernel(*self.given)
        self.least = min(self._once(1) for _ in range(4))
        os.environ["FUSEC_CPU"] = "native"

    def _once(self, times: int) -> float:
        clock, kernel, given = time.perf_counter, self.kernel, self.given
        start = clock()
        for _ in range(times):
            kernel(*given)
        return (clock() - start) / times

    def turn(self) -> None:
        """One batch of calls, after one that fills the caches."""
        self.kernel(*self.given)
        self.least = min(self.least, self._once(max(1, int(BATCH / self.least))))


def codes_of(case: Case, seed: int) -> dict[str, Code]:
    """All that is timed for a case, by what it is."""
    names = sorted(case.tree.inputs | ({"a"} if case.before else set()))
    arrays = {name: memory_of(case, name) for name in names}
    if case.raw:
        arrays["w"] = np.ones(ELEMENTS, case.dtype)
    codes = {level: Code(case, case.body(case.tree), arrays, level, "whole") for level in levels()}
    more = extended(case, seed)
    arrays_more = {
        name: arrays[name] if name in arrays else memory_of(case, name) for name in sorted({*arrays, *more.inputs})
    }
    codes["one more"] = Code(case, case.body(more), arrays_more, "native", "more")
    apart = parts_of(case)
    if apart is not None:
        known = dict(arrays)
        for name, tree in apart[0]:
            codes[f"part {name}"] = Code(
                case, f"z = {tree}", {k: known[k] for k in sorted(tree.inputs)}, "native", name
            )
            known[name] = codes[f"part {name}"].out
        codes["part last"] = Code(
            case, f"z = {apart[1]}", {k: known[k] for k in sorted(apart[1].inputs)}, "native", "last"
        )
    return codes


def levels() -> list[str]:
    """The levels that this machine has; a level that is this machine's own is still compiled for apart."""
    from fusec.runtime.cpu.processor import processor

    found = []
    for level in LEVELS:
        os.environ["FUSEC_CPU"] = level
        try:
            processor()
            found.append(level)
        except fusec.FusecError:
            pass
    os.environ["FUSEC_CPU"] = "native"
    return found


def broken(times: dict[str, float]) -> Iterator[tuple[str, float]]:
    """The laws that times break, and by what ratio."""
    native = times["native"]
    apart = sum(value for name, value in times.items() if name.startswith("part "))
    laws = [(f"slower than {level}", native, times[level], LESSER) for level in LEVELS[1:] if level in times]
    laws += [("slower than its parts", native, apart, PARTS)] * (apart > 0)
    laws.append(("one more operation", times["one more"], native, ONE_MORE))
    for law, found, other, most in laws:
        if found > most * other + SLACK:
            yield law, found / other


def measured(number: int, seed: int, rounds: int = ROUNDS) -> dict[str, Any]:
    """The times of one kernel in seconds, measured again with more rounds if they break a law."""
    case = draw(number, seed)
    try:
        codes = codes_of(case, seed)
    except fusec.FusecError as error:  # a kernel that fusec refuses is no kernel
        return {"number": number, "refused": str(error)}
    times: dict[str, float] = {}
    for count in (rounds, 4 * rounds):
        for _ in range(count):
            for code in codes.values():
                code.turn()
        times = {name: float(f"{code.least:.4g}") for name, code in codes.items()}
        if not list(broken(times)):
            break
    return {"number": number, "dtype": case.dtype, "layout": case.layout, "body": case.body(case.tree),
            "one more": case.body(extended(case, seed)), "seconds": times}  # fmt: skip


# --- many kernels -------------------------------------------------------------------------------------------------


def pinned(places: Any) -> None:
    """Give this worker a core of its own."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {places.get()})


def all_measured(numbers: list[int], seed: int, workers: int) -> list[dict[str, Any]]:
    """The rows of kernels, measured by workers on a core each."""
    context = multiprocessing.get_context("spawn")
    places = context.SimpleQueue()
    for core in sorted(os.sched_getaffinity(0))[:workers]:
        places.put(core)
    with ProcessPoolExecutor(workers, context, pinned, (places,)) as pool:
        return list(pool.map(measured, numbers, [seed] * len(numbers)))


def machine() -> dict[str, Any]:
    """What the numbers were taken on."""
    import llvmlite
    import llvmlite.binding as llvm

    model = ""
    if os.path.exists("/proc/cpuinfo"):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    versions = {"python": platform.python_version(), "numpy": np.__version__, "llvmlite": llvmlite.__version__}
    return {"processor": llvm.get_host_cpu_name(), "model": model, "cores": os.cpu_count(),
            "levels": levels(), "versions": {**versions, "fusec": fusec.__version__}}  # fmt: skip


def show(row: dict[str, Any], found: list[tuple[str, float]]) -> None:
    """One kernel as lines of a table."""
    times = ", ".join(f"{name} {seconds * 1e6:.1f}" for name, seconds in row["seconds"].items())
    for law, ratio in found:
        print(f"{row['number']:5}  {ratio:6.2f}  {law:22} {row['dtype']:8} {row['layout']:10} {row['body']}")
        if law == "one more operation":
            print(f"{'':38} {row['one more']}")
    print(f"{'':15} us: {times}")


def main() -> int:
    """Measure, report, and exit with 1 if a law is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="numbers of kernels, with commas between them")
    parser.add_argument("--workers", type=int, default=max(1, len(os.sched_getaffinity(0)) // 2))
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    numbers = [int(each) for each in options.only.split(",") if each] or list(range(options.kernels))
    started = time.perf_counter()
    rows = all_measured(numbers, options.seed, options.workers)
    for row in rows:
        if "refused" not in row and list(broken(row["seconds"])):  # now alone, and longer
            again = measured(row["number"], options.seed, 4 * ROUNDS)
            row["seconds"] = {name: min(seconds, row["seconds"][name]) for name, seconds in again["seconds"].items()}
    good = [row for row in rows if "refused" not in row]
    violations = []
    for row in good:
        found = list(broken(row["seconds"]))
        violations += [{"number": row["number"], "law": law, "ratio": round(ratio, 3)} for law, ratio in found]
        if found or options.only:
            show(row, found)
    took = time.perf_counter() - started
    refused = [row["number"] for row in rows if "refused" in row]
    print(
        f"{len(good)} kernels in {took:.0f} s, {len(violations)} laws broken"
        + (f"; refused: {refused}" if refused else "")
    )
    if options.json:
        record = {
            "machine": machine(),
            "seed": options.seed,
            "elements": ELEMENTS,
            "violations": violations,
            "kernels": rows,
        }
        options.json.write_text(json.dumps(record) + "\n")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
