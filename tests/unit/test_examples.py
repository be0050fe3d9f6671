"""The examples run, and print and write what they promise."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, folder: Path, *arguments: str) -> str:
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # OpenBLAS's threads wait for each other if tests share the cores
    command = [sys.executable, EXAMPLES / name, *arguments]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_example_is_left_out() -> None:
    named = {name for name in globals() if name.startswith("test_") and name[5:7].isdigit()}
    assert {name[5:] for name in named} == {path.stem for path in EXAMPLES.glob("*.py")}


def test_01_edges(tmp_path: Path) -> None:
    pytest.importorskip("skimage", reason="the photograph is scikit-image's")
    image = pytest.importorskip("PIL.Image")
    printed = run("01_edges.py", tmp_path)
    assert "__global__" in printed
    assert re.search(r"fusec [\d.]+ ms   NumPy [\d.]+ ms   SciPy [\d.]+ ms", printed)
    shown = EXAMPLES.parent / "docs" / "edges.png"
    assert np.array_equal(image.open(tmp_path / "edges.png"), image.open(shown)), "the README shows another picture"


def test_02_black_scholes(tmp_path: Path) -> None:
    printed = run("02_black_scholes.py", tmp_path)
    assert "1,001,000 options" in printed
    at_the_money = re.search(r"^ +100 call +([\d.]+)", printed, re.MULTILINE)
    assert at_the_money is not None
    assert float(at_the_money[1]) == pytest.approx(3.5349, abs=1e-4)  # by the formula in 50 digits


def test_03_mandelbrot(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    printed = run("03_mandelbrot.py", tmp_path)
    assert re.search(r"\d+ points do not escape", printed)
    picture = np.asarray(image.open(tmp_path / "mandelbrot.png"))
    assert picture.shape == (1024, 1024)
    assert len(np.unique(picture)) > 50


def test_04_faces(tmp_path: Path) -> None:
    pytest.importorskip("skimage", reason="the photographs are scikit-image's")
    printed = run("04_faces.py", tmp_path)
    assert re.search(r"kernels +1\n", printed)
    near = re.search(r"(\d+) of the 100 faces are among the nearer half", printed)
    assert near is not None
    assert int(near[1]) > 90


def test_05_statistics(tmp_path: Path) -> None:
    pytest.importorskip("skimage", reason="the photograph is scikit-image's")
    printed = run("05_statistics.py", tmp_path)
    assert re.search(r"^\d kernels ran", printed, re.MULTILINE)
    assert re.search(r"1,990,921 rows", printed)
    assert re.search(r"^green +1,573,585 +0 +236 +63.5450 +38.9049$", printed, re.MULTILINE)


def test_06_option_price(tmp_path: Path) -> None:
    printed = run("06_option_price.py", tmp_path)
    assert "400,000 paths of 252 days" in printed
    arithmetic = re.search(r"arithmetic average: ([\d.]+) \+- ([\d.]+)", printed)
    assert arithmetic is not None
    assert float(arithmetic[1]) == pytest.approx(5.78, abs=0.01)
    assert float(arithmetic[2]) < 0.001


def test_07_ising(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    printed = run("07_ising.py", tmp_path)
    rows = re.findall(r"^ +([\d.]+) +([\d.]+) +([\d.]+)$", printed, re.MULTILINE)
    assert [float(row[0]) for row in rows] == [1.8, 2.2, 3.5]
    assert all(abs(float(found) - float(exact)) < 0.06 for _, found, exact in rows)
    assert set(np.unique(np.asarray(image.open(tmp_path / "ising.png")))) == {0, 254}


TIMES = r"fusec [\d.]+ ms   NumPy [\d.]+ ms"


def test_08_mvn_sampling(tmp_path: Path) -> None:
    printed = run("08_mvn_sampling.py", tmp_path, "2")
    assert re.search(r"kernels +2\n", printed)
    distance = re.search(r"Mahalanobis distance of 2,000 draws: ([\d.]+), known 1000 \+- 1.00", printed)
    assert distance is not None
    assert float(distance[1]) == pytest.approx(1000, abs=5)
    assert re.search(rf"1000 draws: {TIMES}", printed)


def test_09_mlp(tmp_path: Path) -> None:
    printed = run("09_mlp.py", tmp_path)
    kernels = re.search(r"a step is (\d+) kernels and 8 products", printed)
    assert kernels is not None
    assert int(kernels[1]) <= 16
    curve = re.findall(r"^ +\d+  ([\d.]+) +([\d.]+)$", printed, re.MULTILINE)
    assert len(curve) == 11
    assert float(curve[-1][0]) < float(curve[0][0]) / 10
    assert float(curve[-1][1]) > 0.955
    assert re.search(rf"a step of 1024: {TIMES}", printed)


def test_10_kmeans(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    printed = run("10_kmeans.py", tmp_path)
    found = re.findall(r"(\d+) steps, mean squared distance ([\d.]+), \d+ ms", printed)
    assert len(found) == 2
    assert found[0] == found[1]
    picture = np.asarray(image.open(tmp_path / "kmeans.png"))
    assert picture.shape == (512, 512, 3)
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 12


def test_11_dask_chunks(tmp_path: Path) -> None:
    pytest.importorskip("dask.array", reason="the chunks are dask's")
    printed = run("11_dask_chunks.py", tmp_path)
    assert re.search(rf"8 chunks: {TIMES}", printed)
