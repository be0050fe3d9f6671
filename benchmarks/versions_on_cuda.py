"""Times two checkouts of fusec on an NVIDIA device with the CUDA benchmarks of each, and writes results/NAME.json.

    python benchmarks/versions_on_cuda.py ../old --rounds 3 --out benchmarks/results/cuda_versions.json

The checkouts take turns, the first one rotating. A row keeps the least time of each over the rounds. Needs cupy and
torch.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[1]
SCRIPTS = {
    "on_cuda.py": ("--peers", "fusec", "--skip", "first"),
    "reductions_on_cuda.py": (),
    "scans_on_cuda.py": (),
    "stencils_on_cuda.py": (),
}


def rows(script: str, report: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """The name and the seconds of everything that fusec did in a report of a benchmark."""
    for cell in report["cells"]:
        where = [cell.get(key) for key in ("work", "what", "shape", "axis", "n") if cell.get(key) is not None]
        took = cell["seconds"]["fusec"] if "seconds" in cell else cell["peers"]["fusec"]["median"]
        yield " ".join(map(str, (script, *where))), took
    for name, call in report.get("calls", {}).items():
        if name.startswith("fusec") and "min" in call:
            yield f"call: {name}", call["min"]


def measured(checkout: Path) -> Iterator[tuple[str, float]]:
    """All rows of a checkout, and its first calls, from fresh processes with an empty cache."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "FUSEC_CACHE_DIR": f"{home}/cache"}
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(checkout), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        )
        for script, options in SCRIPTS.items():
            program, report = checkout / "benchmarks" / script, Path(home) / "report.json"
            subprocess.run(
                [sys.executable, program, *options, "--out", report],
                env=environment, check=True, capture_output=True, cwd=home,
            )  # fmt: skip
            yield from rows(script, json.loads(report.read_text()))
        for kind in ("empty cache", "filled cache"):
            program = checkout / "benchmarks" / "cuda_first_call.py"
            done = subprocess.run(
                [sys.executable, program, "fusec", f"{home}/first"],
                env=environment, check=True, capture_output=True, cwd=home,
            )  # fmt: skip
            found = json.loads(done.stdout.splitlines()[-1])
            yield "import", found["import"]
            yield f"first call, {kind}", found["first"]


def main() -> None:
    """Measure both checkouts in turns, print the quotients and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="the other checkout")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "benchmarks" / "results" / "cuda_versions.json")
    options = parser.parse_args()
    checkouts = {"now": HERE, "before": options.before.resolve()}
    least: dict[str, dict[str, float]] = {name: {} for name in checkouts}
    for turn in range(options.rounds):
        for name in list(checkouts)[:: -1 if turn % 2 else 1]:
            for row, seconds in measured(checkouts[name]):
                least[name][row] = min(seconds, least[name].get(row, math.inf))
        table = {row: {name: least[name].get(row) for name in least} for row in least["now"]}
        both = {row: each["now"] / each["before"] for row, each in table.items() if each["now"] and each["before"]}
        mean = math.exp(sum(map(math.log, both.values())) / len(both))
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        device = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
        about = {"device": device, "rounds": turn + 1, "geometric_mean": mean, "seconds": table}
        options.out.write_text(json.dumps(about, indent=1) + "\n")
    for row, quotient in sorted(both.items(), key=lambda each: each[1]):
        print(f"{quotient:6.3f}  {1e6 * (table[row]['now'] or 0):10.2f} us  {row}")
    print(f"{mean:6.3f}  geometric mean of {len(both)} rows")


if __name__ == "__main__":
    main()
