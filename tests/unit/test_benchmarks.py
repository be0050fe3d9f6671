"""The benchmark runs, and fusec's kernels in it compute what they should."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[2] / "benchmarks" / "run.py"


@pytest.mark.slow
def test_every_workload_gives_right_results_and_a_row_of_the_table(tmp_path: Path) -> None:
    out = tmp_path / "small.json"
    settings = ["--sizes", "2500", "--rounds", "1", "--seconds", "0.01", "--threads", "1", "--out", str(out)]
    command = [sys.executable, RUN, "--peers", "fusec,fusec-out,numpy", *settings]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    run = json.loads(out.read_text())
    table = out.with_suffix(".md").read_text()
    assert len(run["cells"]) == 58
    for cell in run["cells"]:
        assert f"| {cell['work']}" in table
        for peer, row in cell["peers"].items():
            assert row.get("right"), f"{peer}, {cell['work']}: {row}"
            assert 0 < row["min"] <= row["median"]
    assert run["first_calls"]["fusec"]["cold"] > 0
