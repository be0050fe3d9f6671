"""Programs of users under type checkers: nothing to say of a right one, and of a wrong one every mistake."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

RIGHT = Path(__file__).parents[1] / "support" / "typed_program.py"
MISTAKES = {
    "summ = fusec.summ(photo)": "no such name",
    "smooth(grey, 0.2)": "an argument is missing",
    "normalised(photo, epsilon=1e-3)": "no such option",
    "wide: str = smooth(grey, 0.2, 0.8)": "the result is an array",
    "fusec.sum(photo, axes=1)": "no such option",
}


def checked(folder: Path, *further: str) -> list[str]:
    """The lines in which mypy --strict finds mistakes, of the right program with further lines."""
    program = folder / "program.py"
    program.write_text(RIGHT.read_text() + "\n".join(further) + "\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=RIGHT.parents[2])
    lines = program.read_text().splitlines()
    return [lines[int(line.split(":")[1]) - 1] for line in done.stdout.splitlines() if ": error:" in line]


def test_the_right_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(RIGHT))
    assert "(8, 8)" in capsys.readouterr().out


@pytest.mark.slow
def test_mypy_finds_the_mistakes_and_no_others(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="the checker is of the lint extra")
    assert checked(tmp_path) == []
    assert checked(tmp_path, *MISTAKES) == list(MISTAKES)
