"""Hands the CUDA texts of CuPy's kernels to NVRTC and the Metal texts to clang, several kernels at once."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1] / "host"))

if TYPE_CHECKING:
    from cupy_kernels import Outcome

    from fusec.base.kernel_abi import Kernel

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")


def run(outcomes: Sequence[Outcome], nvrtc: bool, clang: bool) -> int:
    """Compile what was asked for and print every refusal and spill; returns their number."""
    complaints = 0
    for outcome in outcomes if nvrtc else ():
        if "cuda" in outcome.kernels:
            complaints += sum(_refused_by_nvrtc(outcome, arch) for arch in ARCHITECTURES)
    if clang:
        complaints += _refused_by_clang([each.kernels["metal"] for each in outcomes if "metal" in each.kernels])
    return complaints


def _refused_by_nvrtc(outcome: Outcome, arch: str) -> bool:
    from fusec.errors import FusecError
    from fusec.runtime.cuda import nvrtc

    try:
        image = nvrtc.compile_text(outcome.kernels["cuda"].source, outcome.kernels["cuda"].name, nvrtc.goal(arch))
    except FusecError as error:
        print(f"--- NVRTC refuses {outcome.site.place} {outcome.types} for {arch}\n{error}")
        return True
    spilled = [line for line in image.log.splitlines() if re.search(r"\b[1-9]\d* bytes spill", line)]
    for line in spilled:
        print(f"--- spills in {outcome.site.place} {outcome.types} for {arch}: {line}")
    return bool(spilled)


def _refused_by_clang(kernels: Sequence[Kernel]) -> int:
    from metal_on_host import MetalError, MetalOnHost

    with tempfile.TemporaryDirectory() as folder:
        try:
            MetalOnHost(kernels, Path(folder))
        except MetalError as error:
            print(f"--- clang refuses\n{error}")
            return 1
    return 0
