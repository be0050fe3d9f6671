"""fp=: the mode is checked, travels with a kernel everywhere, and means what it says on this machine."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import fusec
from fusec.cli import main
from fusec.compiler import pipeline
from fusec.errors.arguments import UnknownFp

MODES = pipeline.MODES
SQUARE = ("float32 x, float32 y", "float32 z", "z = x * x - y", "residue")
EXACT = ("float32 x, float32 y", "float32 z", "z = fma(x, x, -y)")


def numbers(count: int = 4096) -> NDArray[np.float32]:
    """Numbers whose squares are not exact."""
    return np.random.default_rng(0).random(count, np.float32) + np.float32(1)


# --- the keyword ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [("contrat", "did you mean 'contract'?"), ("Fast", "did you mean 'fast'?"), (None, "modes are"), (1, "modes are")],
)
def test_another_mode_is_an_error_that_lists_them(given: object, said: str) -> None:
    with pytest.raises(fusec.FusecError, match=re.escape(f"fp={given!r} is not a floating-point mode")) as caught:
        fusec.ElementwiseKernel(*SQUARE, fp=given)  # type: ignore[arg-type]
    assert isinstance(caught.value.error, UnknownFp)
    assert said in str(caught.value)
    assert "'strict', 'contract' and 'fast'" in str(caught.value)


def test_strict_is_the_default() -> None:
    kernel = fusec.ElementwiseKernel(*SQUARE)
    assert kernel.fp == "strict"
    for target in ("llvm", "cuda", "metal"):
        assert kernel.source(target) == fusec.ElementwiseKernel(*SQUARE, fp="strict").source(target)


def test_a_pickled_kernel_keeps_its_mode() -> None:
    for fp in MODES:
        assert pickle.loads(pickle.dumps(fusec.ElementwiseKernel(*SQUARE, fp=fp))).fp == fp


def test_the_mode_stands_in_every_text_but_strict_ones(capsys: pytest.CaptureFixture[str]) -> None:
    for fp in MODES:
        kernel = fusec.ElementwiseKernel(*SQUARE, fp=fp)
        for target in ("llvm", "cuda", "metal"):
            head = kernel.source(target)[:600]
            assert (f"fp {fp}" in head) == (fp != "strict"), (fp, target)
        assert f"fp                 {fp}" in re.sub(r" {2,}", " " * 17, str(kernel.explain(numbers(), numbers())))


def test_modes_have_entries_of_their_own_in_the_disk_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FUSEC_CACHE", raising=False)
    monkeypatch.setenv("FUSEC_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("FUSEC_DEBUG", "1")
    x = numbers()
    found: dict[str, list[bytes]] = {fp: [] for fp in MODES}
    for _ in range(2):
        for fp in MODES:
            found[fp].append(fusec.ElementwiseKernel(*SQUARE, fp=fp)(x, x * x).tobytes())
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("fusec: residue ")]
    assert ["compiled" in line for line in lines] == [True] * 3 + [False] * 3
    for fp, line in zip(MODES * 2, lines, strict=True):
        assert (f" fp={fp} " in line) == (fp != "strict")
        assert ("fp=" in line) == (fp != "strict")
    assert all(first == again for first, again in found.values())
    assert found["strict"] != found["contract"]


def test_a_kernel_restored_from_the_cache_says_its_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FUSEC_CACHE", raising=False)
    monkeypatch.setenv("FUSEC_CACHE_DIR", str(tmp_path))
    reports = [str(fusec.ElementwiseKernel(*SQUARE, fp="contract").explain(numbers(), numbers())) for _ in range(2)]
    assert reports[0] == reports[1]
    assert "contract: a product and a sum are one fma" in reports[1]


# --- the command line and kernel files -----------------------------------------------------------------------------

COMPILE = ["compile", "-e", "z = x * x + y", "-i", "float32 x, float32 y", "-o", "float32 z", "--target"]
FILE = """
[kernel.{name}]
in_params = "float32 x, float32 y"
out_params = "float32 z"
operation = "z = x * x + y"
fp = "{fp}"
"""


@pytest.mark.parametrize(("target", "spelling"), [("cuda", "__fmaf_rn(x, x, y)"), ("metal", "fma(x, x, y)")])
def test_the_command_line_chooses_a_mode(target: str, spelling: str, capsys: pytest.CaptureFixture[str]) -> None:
    for fp in (None, *MODES):
        assert main.main([*COMPILE, target, *(["--fp", fp] if fp else [])]) == 0
        assert (spelling in capsys.readouterr().out) == (fp in ("contract", "fast"))


def test_a_kernel_file_chooses_a_mode_that_the_command_line_overrides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kernels.toml"
    path.write_text(FILE.format(name="first", fp="contract") + FILE.format(name="second", fp="strict"))
    for options, count in ([], 1), (["--fp", "contract"], 2), (["--fp", "strict"], 0):
        assert main.main(["compile", str(path), *options]) == 0
        assert capsys.readouterr().out.count("__fmaf_rn(") == count


def test_a_mode_that_is_none_is_shown_in_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kernels.toml"
    path.write_text(FILE.format(name="only", fp="fsat"))
    assert main.main(["compile", str(path)]) == 1
    said = capsys.readouterr().err
    assert f"{path}:6:1: error: fp='fsat' is not a floating-point mode [F237]" in said
    path.write_text(FILE.format(name="only", fp="fast").replace('"fast"', "2"))
    assert main.main(["compile", str(path)]) == 1
    assert "'fp' is not a string" in capsys.readouterr().err


# --- what the modes compute ----------------------------------------------------------------------------------------


def test_contract_rounds_once_and_fast_too() -> None:
    x = numbers()
    exact = fusec.ElementwiseKernel(*EXACT)(x, x * x)
    assert not fusec.ElementwiseKernel(*SQUARE)(x, x * x).any()
    for fp in ("contract", "fast"):
        assert np.array_equal(fusec.ElementwiseKernel(*SQUARE, fp=fp)(x, x * x), exact)


APPROXIMATIONS = {
    "x / 3": 1, "x / y": 1, "x / sqrt(y)": 3, "rsqrt(x)": 3, "1 / (1 + exp(-x))": 3, "sigmoid(x)": 4,
    "pow(x, T(5))": 4, "pow(x, T(-3))": 4, "pow(x, T(0.5))": 1, "pow(x, T(-0.5))": 3, "pow(x, y)": 0,
    "x * T(0.1) * T(7) * y": 4, "tanh(x) * log(y + 1) + x": 3, "sqrt(x * x + y * y)": 2, "pow(x, T(0))": 0,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fast_is_a_few_roundings_away(dtype: str) -> None:
    """In units of the dtype's epsilon, relative to the strict result; all kernels of a dtype in one."""
    x = np.random.default_rng(3).uniform(0.1, 9, 5000).astype(dtype)
    y = np.random.default_rng(4).uniform(0.1, 4, 5000).astype(dtype)
    outputs = ", ".join(f"T z{n}" for n in range(len(APPROXIMATIONS)))
    body = "; ".join(f"z{n} = {each}" for n, each in enumerate(APPROXIMATIONS))
    strict, fast = (fusec.ElementwiseKernel("T x, T y", outputs, body, fp=fp)(x, y) for fp in ("strict", "fast"))
    for expression, exact, found in zip(APPROXIMATIONS, strict, fast, strict=True):
        error = np.max(np.abs(found.astype("f8") - exact) / np.abs(exact)) / np.finfo(dtype).eps
        assert error <= APPROXIMATIONS[expression], f"{expression} is {error:.1f} roundings away"


SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, np.inf, -np.inf, np.nan, 1e-45, 1e-39, -1e-39, 1e-38, 1e30]


def test_fast_makes_nan_only_where_strict_does() -> None:
    """A division by 0, the root of 0, infinities (but for pow) and subnormal numbers; nothing overflows on the way."""
    bodies = ["x / y", "1 / sqrt(y)", "x / sqrt(y)", "rsqrt(x)", "sigmoid(x)", "x / 3", "sqrt(x)", "x * T(2) * T(3)"]
    bodies += ["pow(x, T(3))", "pow(x, T(0.5))", "pow(abs(x), y)", "x + T(1) - T(2)"]
    x, y = (each.ravel().astype("f4") for each in np.meshgrid(SPECIAL, SPECIAL))
    outputs = ", ".join(f"T z{n}" for n in range(len(bodies)))
    body = "; ".join(f"z{n} = {each}" for n, each in enumerate(bodies))
    strict, fast = (fusec.ElementwiseKernel("T x, T y", outputs, body, fp=fp)(x, y) for fp in ("strict", "fast"))
    for expression, exact, found in zip(bodies, strict, fast, strict=True):
        unlike = np.isnan(found) & ~np.isnan(exact)
        if expression.startswith("pow"):
            unlike &= np.isfinite(x) & np.isfinite(y)
        assert not unlike.any(), f"{expression} at x = {x[unlike][0]}, y = {y[unlike][0]}"
        finite = np.isfinite(exact) & (np.abs(exact) > 1e-37) & np.isfinite(x) & np.isfinite(y)
        close = np.abs(found[finite].astype("f8") - exact[finite]) <= 1e-5 * np.abs(exact[finite])
        assert close.all(), expression


def test_negative_bases_of_powers_keep_their_sign() -> None:
    x = np.float32([-2, -2, -2, 2, -0.5, 0, -8])
    y = np.float32([3, 2, 0.5, 0.5, -1, 2, 1])
    arguments = ("float32 x, float32 y", "float32 z", "z = pow(x, y)")
    strict, fast = (fusec.ElementwiseKernel(*arguments, fp=fp)(x, y) for fp in ("strict", "fast"))
    np.testing.assert_allclose(fast, strict, rtol=1e-6)
