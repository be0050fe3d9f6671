"""What docs/reductions.md says is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

import fusec
from fusec.reductions.normalise import softmax_kernel
from tests.support.reduction_bounds import additions

PAGE = (Path(__file__).parents[2] / "docs" / "reductions.md").read_text()


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)


def test_the_sum_by_hand_has_the_bits_of_sum() -> None:
    names: dict[str, Any] = {"np": np}
    exec(next(block for block in blocks() if "def sum_by_hand" in block), names)
    for n in (1, 2, 3, 31, 64, 65, 127, 128, 129, 200, 8191, 8192, 8193, 8192 * 128 + 1):
        x = (np.random.default_rng(n).normal(size=n) * 1000).astype("f4")
        assert names["sum_by_hand"](x).tobytes() == np.asarray(fusec.sum(x)).tobytes()


def test_examples_run_and_the_report_is_as_shown() -> None:
    names: dict[str, Any] = {}
    exec(next(block for block in blocks() if "distance" in block), names)
    assert names["p"].shape == (4096, 1024)
    x = names["x"]
    shown = re.search(r"^```\n(softmax\(.*?)\n```$", PAGE, re.M | re.S)
    assert shown is not None
    assert str(softmax_kernel(x.dtype).explain(x, axis=-1)) == shown[1]
    exec(next(block for block in blocks() if "moments =" in block), names)
    assert names["total"].tolist() == names["squares"].tolist() == [5, 5, 5]


def test_the_table_of_additions() -> None:
    rows = re.findall(r"^\| ([\d,]+) \| (\d+) \| (\d+) \| (\d+) \|", PAGE, re.M)
    assert len(rows) == 4
    for n, *counts in rows:
        number = int(n.replace(",", ""))
        assert [additions(number, lanes) for lanes in (128, 64, 1)] == [int(count) for count in counts]


def test_every_function_is_named() -> None:
    for names in fusec.REDUCTIONS.values():
        for name in names.split():
            assert re.search(rf"`[^`]*\b{name}\b[^`]*`", PAGE), name
