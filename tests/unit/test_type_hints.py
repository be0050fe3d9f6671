"""Programs of users under type checkers: nothing to say of a right one, and of a wrong one every mistake."""

import importlib.util
import re
import runpy
import shutil
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
    "fusec.fuse(3)": "it cannot be called",
    "normalised.explian(photo)": "no such verb",
    "fusec.sum.sources('cuda')": "no such verb",
    "affine.inputs('y', 'float32', (3,))": "no such method",
    "model.step('text')": "a text is no array",
    "running(photo, were=photo > 0)": "no such option",
}


CHECKERS = {
    "mypy": [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary"],
    "pyright": ["pyright", "--pythonpath", sys.executable],
}


def checked(checker: str, folder: Path, *further: str) -> list[str]:
    """The lines in which a checker finds mistakes, of the right program with further lines."""
    program = folder / "program.py"
    program.write_text(RIGHT.read_text() + "\n".join(further) + "\n")
    command = [*CHECKERS[checker], str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=RIGHT.parents[2])
    lines = program.read_text().splitlines()
    wrong = dict.fromkeys(re.findall(r"program\.py:(\d+):.*\berror\b", done.stdout))  # overloads have several errors
    return [lines[int(at) - 1] for at in wrong]


def test_the_right_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(RIGHT))
    assert "(8, 8)" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_a_checker_finds_the_mistakes_and_no_others(checker: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("mypy") is None if checker == "mypy" else shutil.which("pyright") is None:
        pytest.skip(f"{checker} is not installed")
    assert checked(checker, tmp_path) == []
    assert checked(checker, tmp_path, *MISTAKES) == list(MISTAKES)
