"""What docs/kernels.md shows runs, and says what it says."""

import re
import runpy
import traceback
from pathlib import Path

import numpy as np
import pytest

import fusec
from fusec import FusecError

PAGE = (Path(__file__).parents[2] / "docs" / "kernels.md").read_text()
CODE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_programs_run(tmp_path):
    """In order, as one file: later ones use the imports of the first."""
    right = [text for text in CODE if "k >= 0" not in text]
    assert len(right) == 3
    (tmp_path / "page.py").write_text("\n".join(right))
    bins = runpy.run_path(str(tmp_path / "page.py"))["bins"]
    assert bins.sum() == 10_000_000


def test_the_violation_is_reported_as_shown(tmp_path, monkeypatch):
    (wrong,) = (text for text in CODE if "k >= 0" in text)
    monkeypatch.chdir(tmp_path)
    Path("example.py").write_text(wrong)
    with pytest.raises(FusecError) as caught:
        runpy.run_path("example.py", {"np": np, "fusec": fusec})
    said = "".join(traceback.format_exception_only(caught.value)).splitlines()
    shown = re.search(r"```\n\n    (fusec\.FusecIndexError: .*?)\n\n", PAGE, re.DOTALL)[1].splitlines()
    assert [line.strip() for line in shown] == [line.strip() for line in said[: len(shown)]]
