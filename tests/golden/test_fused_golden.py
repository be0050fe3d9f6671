"""The texts of fused functions, with the comments that list their launches; FUSEC_UPDATE_GOLDEN=1 writes them anew."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen import TARGETS
from tests.golden.test_c_family_golden import check

HERE = Path(__file__).parent


@fusec.fuse
def heat_step(u: Any, rate: float) -> None:
    u[1:-1] += rate * (u[2:] - 2 * u[1:-1] + u[:-2])


@fusec.fuse
def steps_from_zero(x: Any) -> Any:
    twice = 2 * x
    twice[0] = 0
    return twice[1:] - twice[:-1]


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "heat_step": (heat_step, (np.zeros(100, np.float32), 0.25)),
    "steps_from_zero": (steps_from_zero, (np.zeros(20, np.int32)[::2],)),
}


@pytest.mark.parametrize("target", ["cuda", "metal", "llvm"])
@pytest.mark.parametrize("name", CASES)
def test_the_text_of_a_fused_function_is_the_one_on_file(
    name: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSEC_CPU", "generic")
    function, args = CASES[name]
    check(function.source(target, *args), HERE / target / f"fused_{name}{TARGETS[target].suffix}")  # type: ignore[attr-defined]
