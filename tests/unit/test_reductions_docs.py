"""What docs/reductions.md says is so."""

from __future__ import annotations

import inspect
import linecache
import re
from pathlib import Path
from typing import Any

import numpy as np

import fusec
from fusec.library.normalisation import softmax_kernel
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


def test_examples_of_rows_run_and_signatures_are_as_shown() -> None:
    lines = next(block for block in blocks() if "half, weight" in block).splitlines()
    names: dict[str, Any] = {"np": np, "fusec": fusec}
    exec(lines[0], names)
    assert [eval(line, names).dtype for line in lines[2:]] == ["float16", "float64"]
    assert eval(lines[1], names) == "float16"
    for name in ("softmax", "log_softmax", "layer_norm"):
        full = str(inspect.signature(getattr(fusec, name)))
        plain = re.sub(r": '[^']+'| ->.*", "", full).replace(" = ", "=").replace("e-0", "e-")
        assert f"    {name}{plain}\n" in PAGE


def test_examples_of_reductions_in_python_run() -> None:
    page = [block for block in blocks() if "ReductionKernel" not in block and "sum_by_hand" not in block]
    shown = "import numpy as np, fusec\n" + "".join(page[page.index(next(p for p in page if "def total" in p)) :])
    names: dict[str, Any] = {"x": np.random.default_rng(0).normal(size=(40, 30)).astype("f4")}
    linecache.cache["reductions.md"] = (len(shown), None, shown.splitlines(True), "reductions.md")
    exec(compile(shown, "reductions.md", "exec"), names)
    x = names["x"]
    assert np.array_equal(names["place_of_greatest"](x, axis=1), x.argmax(1))
    assert np.allclose(names["mean"], np.mean(x, axis=1, where=x > 0))
    assert np.allclose(names["variance"], np.var(x, axis=1, where=x > 0), rtol=1e-5)
    assert np.allclose(names["p_norm"](x, 3.0, axis=0), np.linalg.norm(x, 3, axis=0))
    assert np.allclose(names["rmse"](x, x[0], axis=1), np.sqrt(((x - x[0]) ** 2).mean(1)))
    small = np.array([200, 100], "uint8")
    assert (int(names["total"](small)), names["total"](small > 0).dtype) == (44, np.int64)


def test_the_table_of_additions() -> None:
    rows = re.findall(r"^\| ([\d,]+) \| (\d+) \| (\d+) \| (\d+) \|", PAGE, re.M)
    assert len(rows) == 4
    for n, *counts in rows:
        number = int(n.replace(",", ""))
        assert [additions(number, lanes) for lanes in (128, 64, 1)] == [int(count) for count in counts]


def test_every_function_is_named() -> None:
    for module, names in fusec.HOMES.items():
        for name in names.split() if module.startswith("reductions.") else ():
            assert re.search(rf"`[^`]*\b{name}\b[^`]*`", PAGE), name


def test_the_range_of_moments_is_as_told() -> None:
    assert np.isinf(fusec.mean(np.array([3e38, 3e38], "f4")))
    assert np.isnan(fusec.mean_var(np.array([3e38, 3e38], "f4"))).all()
    assert np.isfinite(fusec.mean_var(np.array([3e38, 3e38], "f4"), dtype="float64")).all()
    assert np.isinf(fusec.var(np.array([1.7e19, -1.7e19], "f4")))
    assert fusec.mean_var(np.full(100_000, 1e34, "f4"))[0] == np.float32(1e34)
    assert fusec.var(np.array([1e-23, -1e-23], "f4")) == 0


def test_kernels_of_a_long_reduction_are_as_told() -> None:
    kernel = fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
    text = kernel.source("cuda", {"T": "float32"}, shape=(300_000, 300), axis=0)
    order = [text.index(f"{name}(\n") for name in ("total_first", "total_next", "total_last")]
    assert order == sorted(order)
    assert "partial0_data" in text


def test_sums_of_small_integers_are_held_as_told() -> None:
    x = np.full(300, 200, "u1")
    assert fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0")(x) == 300 * 200 % 256
    assert fusec.ReductionKernel("T x", "int64 y", "x", "a + b", "y = a", "0")(x) == 300 * 200
    mean = fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = a / 300", "0", reduce_type="long long")
    assert mean(x) == 200
