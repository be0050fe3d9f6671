"""Times two checkouts of fusec on an NVIDIA device, in the work of the CUDA benchmarks, and writes a JSON file.

    python benchmarks/versions_on_cuda.py ../old --rounds 15 --out benchmarks/results/cuda_versions.json

Each checkout has a process of its own. Both take a turn in every round of a row, the first one rotating; of all rounds
the least time counts. Times are by events around 20 calls or more, and include what Python takes where that is longer:
both processes run on the same core. Needs cupy and torch.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SMALL = 32  # elements of the rows that time calls
PROMISED = 4e-3  # seconds of a measurement, at least


def rows() -> dict[str, Callable[[], Callable[[], object]]]:
    """What to time by name: a function that makes the inputs and gives the call."""
    import cupy
    import numpy as np
    import reductions_on_cuda
    import scans_on_cuda
    import stencils_on_cuda
    import torch
    from cuda_work import WORK, with_fusec

    import fusec
    from fusec.runtime import cuda

    def work(each: Any, n: int) -> Callable[[], object]:
        return with_fusec(each, each.inputs(n, each.dtype))

    def reduction(shape: tuple[int, ...], axis: int | None) -> Callable[[], object]:
        return partial(
            fusec.ReductionKernel(*reductions_on_cuda.TEXTS), cupy.random.rand(*shape, dtype="f4"), axis=axis
        )

    def scan(name: str, shape: tuple[int, ...], axis: int) -> Callable[[], object]:
        return partial(scans_on_cuda.ours_of(name, axis), cupy.random.rand(*shape, dtype="f4"))

    def stencil(border: str) -> Callable[[], object]:
        kernel = fusec.stencil(stencils_on_cuda.TEXTS["laplacian"], boundary=border, names={"np": np})
        return partial(kernel, cupy.random.rand(16384, 16384, dtype="f4"))

    def add(array: Callable[[np.ndarray], object], given: bool) -> Callable[[], object]:
        arrays = [array(np.ones(SMALL, "f4")) for _ in range(3)]
        return partial(fusec.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add"), *arrays[: 3 if given else 2])

    def along(array: Callable[[np.ndarray], object], name: str) -> Callable[[], object]:
        return partial(getattr(fusec, name), array(np.ones(SMALL, "f4")))

    found: dict[str, Callable[[], Callable[[], object]]] = {}
    for each in WORK:
        found |= {f"{each.label} {each.note} n={n}": partial(work, each, n) for n in each.sizes}
    found |= {f"sum {shape} axis={axis}": partial(reduction, shape, axis) for shape, axis in reductions_on_cuda.CASES}
    found |= {
        f"{name} {shape} axis={axis}": partial(scan, name, shape, axis) for name, shape, axis in scans_on_cuda.CASES
    }
    found |= {f"laplacian {border}": partial(stencil, border) for border in stencils_on_cuda.BORDERS}
    kinds = {"fusec": cuda.from_numpy, "cupy": cupy.asarray, "torch": lambda x: torch.from_numpy(x).cuda()}
    for kind, array in kinds.items():
        found |= {f"a call, {kind}, add, out={given}": partial(add, array, given) for given in (False, True)}
        found |= {f"a call, {kind}, {name}": partial(along, array, name) for name in ("sum", "cumsum", "argmax")}
    return found


def measure(call: Callable[[], object], repeats: int) -> float:
    """Seconds a call on the legacy default stream."""
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(repeats):
        call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / repeats * 1e-3


def serve() -> None:
    """Answer lines on standard input: the name of a row makes it ready, an empty line times it once."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries that print must not disturb the protocol
    known = rows()
    print(json.dumps(list(known)), file=channel, flush=True)
    call: Callable[[], object] | None = None
    repeats = 20
    for line in sys.stdin:
        if line.strip():
            call = None  # frees its arrays
            call = known[line.strip()]()
            measure(call, 5)
            repeats = max(20, int(PROMISED / measure(call, 20)))
        assert call is not None, "a row comes first"
        print(json.dumps(measure(call, repeats)), file=channel, flush=True)


def start(checkout: Path, home: str) -> subprocess.Popen[str]:
    """The process of a checkout."""
    path = os.pathsep.join([str(HERE), str(checkout), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "FUSEC_CACHE_DIR": home}
    program = [sys.executable, str(HERE / "versions_on_cuda.py"), "--serve", "."]
    return subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=home
    )


def ask(process: subprocess.Popen[str], line: str) -> Any:
    """Send a line, wait for the answer."""
    assert process.stdin is not None, "a pipe"
    assert process.stdout is not None, "a pipe"
    if line:
        print(line.strip(), file=process.stdin, flush=True)
    return json.loads(process.stdout.readline() or '"died"')


def main() -> None:
    """Read the command line, and be the driver or the process of one checkout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="the other checkout")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "cuda_versions.json")
    options = parser.parse_args()
    if options.serve:
        serve()
    else:
        compare(options)


def compare(options: argparse.Namespace) -> None:
    """Measure both checkouts in turns, print the quotients and write the JSON."""
    with tempfile.TemporaryDirectory() as home:
        processes = []
        for name, checkout in (("now", HERE.parent), ("before", options.before.resolve())):
            (Path(home) / name).mkdir(mode=0o700)
            processes.append(start(checkout, f"{home}/{name}"))
        names = [ask(each, "") for each in processes]
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        device = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
        table: dict[str, dict[str, float]] = {}
        for row in names[0]:
            for each in processes:
                ask(each, row)
            times: list[list[float]] = [[], []]
            for turn in range(options.rounds):
                for at in ((0, 1), (1, 0))[turn % 2]:
                    times[at].append(ask(processes[at], "\n"))
            now, before = map(min, times)
            table[row] = {"now": now, "before": before, "now / before": now / before}
            print(f"{now / before:6.3f}  {1e6 * now:10.2f} us  {row}", flush=True)
            mean = math.exp(statistics.mean(math.log(each["now / before"]) for each in table.values()))
            report = {"device": device, "rounds": options.rounds, "geometric mean": mean, "seconds": table}
            options.out.write_text(json.dumps(report, indent=1) + "\n")
        print(f"{mean:6.3f}  geometric mean of {len(table)} rows")
        for each in processes:
            each.kill()
            each.wait()


if __name__ == "__main__":
    main()
