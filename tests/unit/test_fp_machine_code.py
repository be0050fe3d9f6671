"""What becomes of products and sums in machine code: strict never forms an fma, the other modes do."""

from __future__ import annotations

import platform
import re

import pytest

import fusec
from fusec.base.kernel_abi import Kernel, Layout, Step
from fusec.codegen import llvm
from fusec.compiler import pipeline
from fusec.runtime.cpu import engine
from fusec.runtime.cpu.processor import processor
from tests.support.specialised import specialisation

X86 = platform.machine() in ("x86_64", "AMD64")
LEVELS = ["native", "avx2"] if X86 else ["native"]
FMA = re.compile(
    r"\b(vf(?:n?madd|n?msub|maddsub|msubadd)\d+[ps][sdh]|fn?m(?:add|sub)|fml[as]|(?:call\w*|jmp\w*|bl)\s.*\bfmaf?)\b"
)

STRAIGHT = """
z = x*x + y*y + x*y + r[0]*r[1] + r[2]*r[3] - f(y, x) * x; w = (x*y + r[0]) * (y*x - r[1]) - 2 * w_in + abs(x) * y;
if (x > y) { z += x * y + 1; } else { z -= y * y; } w += x > 0 ? x * y + y : y - x * x;
"""
LOOPS = """
T s = 0; for (int k = 0; k < 7; ++k) { s += r[k] * x; s = s * y - r[k]; } z = s;
T t[4]; for (int k = 0; k < 4; ++k) t[k] = x * k + y; w = t[0] * t[1] + t[2]; w = t[3] - x * w;
int n = 0; while (s * s + y < 4 && n < 9) { s = s * s + x; ++n; } z += s * n;
"""
BODIES = {"straight": STRAIGHT, "loops": LOOPS}
PREAMBLE = "template<typename T> __device__ T f(T a, T b) { return a * b + b; }"
INPUTS = "T x, T y, T w_in, raw T r"


def definition(body: str) -> fusec.ElementwiseKernel:
    return fusec.ElementwiseKernel(INPUTS, "T z, T w", body, preamble=PREAMBLE)


def kernels(body: str, dtype: str, fp: str) -> list[Kernel]:
    """Vectors with tails; strided; one lane, which goes through all of LLVM's passes; a scalar beside arrays."""
    kernel = definition(body)
    spec = specialisation(kernel, {"T": dtype})
    host = processor()
    made = []
    for step in (Step.UNIT, Step.ANY):
        layout = Layout(1, tuple((name, (step,)) for name, _ in spec.layout.steps), spec.layout.raw, aligned=16)
        program = pipeline.program_of(kernel.definition, pipeline.Specialisation(spec.types, spec.scalars, layout, fp))
        for lanes in (None, 1):
            bits, casts = host.vector_bits, host.converts_halves
            made.append(
                llvm.generate(program, layout, llvm.LlvmOptions(vector_bits=bits, lanes=lanes, half_casts=casts, fp=fp))
            )
    return made


def fused(kernel: Kernel) -> list[str]:
    """The instructions, or calls of a library's fma, in the machine code."""
    return [found[0] for found in FMA.finditer(engine.assembly(kernel))]


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FUSEC_CPU", request.param)
    try:
        processor()
    except fusec.FusecError:
        pytest.skip(f"this processor is less than {request.param}")
    return str(request.param)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", BODIES)
def test_strict_forms_no_fma(name: str, dtype: str, level: str) -> None:
    for kernel in kernels(BODIES[name], dtype, "strict"):
        assert "fma" not in kernel.source
        assert fused(kernel) == []


@pytest.mark.parametrize("fp", ["contract", "fast"])
@pytest.mark.parametrize("name", BODIES)
def test_the_other_modes_do(name: str, fp: str, level: str) -> None:
    if level == "native" and X86 and processor().vector_bits == 128:
        pytest.skip("a processor without FMA calls a function for it")
    assert all(fused(kernel) for kernel in kernels(BODIES[name], "float32", fp))


def test_strict_keeps_the_fma_that_is_written(level: str) -> None:
    assert all(fused(kernel) for kernel in kernels("z = fma(x, y, w_in); w = 0", "float64", "strict"))


def test_only_fast_carries_flags_and_never_those_that_make_results_undefined() -> None:
    flags = re.compile(r"= (?:f\w+|call) ((?:\b(?:fast|reassoc|nnan|ninf|nsz|arcp|contract|afn)\b ?)+)")
    body = "z = x * y / (1 + exp(x)) - sqrt(y); w = rsqrt(x) * w_in - 1.0f / x"
    said = {fp: [flags.findall(each.source) for each in kernels(body, "float32", fp)] for fp in pipeline.MODES}
    assert not any(said["strict"] + said["contract"])
    words = {word for each in said["fast"] for found in each for word in found.split()}
    assert all(said["fast"])
    assert words <= {"reassoc", "nsz", "arcp", "contract", "afn"}


def test_elementary_functions_carry_no_flags() -> None:
    """Their error terms would cancel if LLVM could reassociate."""
    (kernel, *_) = kernels("z = expm1(x); w = 0", "float64", "fast")
    assert "fsub" in kernel.source
    assert "reassoc" not in kernel.source
