"""The benchmark runs, and fusec's kernels in it compute what they should."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

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


def loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, RUN.with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def test_calls_are_measured_again_and_at_new_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = loaded("calls", monkeypatch)
    monkeypatch.setattr(calls, "SHAPES", 2)
    monkeypatch.setattr(calls, "CALLS", 2)
    monkeypatch.setattr(calls, "PAUSE", 0)
    monkeypatch.setitem(sys.modules, "jax", None)
    for times in calls.measured("views", 1):
        assert set(times) == {"fusec", "NumPy"}
        assert min(times.values()) > 0


@pytest.fixture
def cliffs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(sys, "path", list(sys.path))
    return loaded("cliffs", monkeypatch)


def test_a_seed_of_cliffs_makes_the_same_kernels(cliffs: ModuleType) -> None:
    bodies = [cliffs.draw(number, 3).body(cliffs.draw(number, 3).tree) for number in range(60)]
    assert bodies == [cliffs.draw(number, 3).body(cliffs.draw(number, 3).tree) for number in range(60)]
    assert len(set(bodies)) > 50
    assert bodies != [cliffs.draw(number, 4).body(cliffs.draw(number, 4).tree) for number in range(60)]


def test_cliffs_finds_broken_laws(cliffs: ModuleType) -> None:
    smooth = {"native": 1.0, "avx2": 1.0, "sse2": 2.0, "one more": 1.5, "part t0": 0.5, "part last": 0.4}
    assert not list(cliffs.broken(smooth))
    found = {law for law, _ in cliffs.broken({**smooth, "avx2": 0.8, "one more": 2.5, "part t0": 0.3})}
    assert found == {"slower than avx2", "one more operation", "slower than its parts"}


@pytest.mark.slow
def test_cliffs_measures_kernels_and_writes_a_record(tmp_path: Path) -> None:
    out = tmp_path / "cliffs.json"
    command = [sys.executable, RUN.with_name("cliffs.py"), "--kernels", "4", "--workers", "1", "--json", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, 1), done.stderr
    record = json.loads(out.read_text())
    assert record["machine"]["versions"]["fusec"]
    assert [row["number"] for row in record["kernels"]] == [0, 1, 2, 3]
    assert all(0 < seconds < 1 for row in record["kernels"] for seconds in row["seconds"].values())
