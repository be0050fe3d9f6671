"""Floating-point modes in the emitted texts: contract has the same bits on every target, strict forms no fma anywhere,
fast uses the target's approximate instructions and stays close.
"""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from arguments import layout_of
from cuda_on_host import GXX, CudaOnHost
from metal_on_host import CLANG, MetalOnHost
from same_bits import assert_same_bits

from fusec.base.kernel_abi import Fp, Kernel
from fusec.base.records import replace
from fusec.codegen import cuda, metal
from fusec.compiler import pipeline
from fusec.ir.interpret import interpret
from fusec.ir.loops import Program
from fusec.kernels.elementwise_kernel import ElementwiseKernel
from fusec.passes import expand
from tests.support.specialised import specialisation

SIZE = 515
BODIES = {
    "sums": "z = x * y + w - x * w; v = w - (x * y) * w",
    "both": "z = x * y + y * w; v = x * x - y * y",
    "kept": "T p = x * y; z = p + w; v = x * y + x * y / w",
    "functions": "z = f(x, y) + exp(x) * y; v = f(y, w) * w - tanh(y)",
    "loop": "T s = 0; for (int k = 0; k < 5; ++k) s += x * y - s * w; z = s; v = s * s + x",
    "choice": "z = x > y ? x * y + w : w - x * x; if (w > 1) { v = x * w + y; } else { v = -(x * w) - y; }",
    "constants": "z = x * T(0.1) + 1; v = 1 - 3 * y",
}
PREAMBLE = "template<typename T> __device__ T f(T a, T b) { return a * b + b; }"


def definition(body: str) -> ElementwiseKernel:
    return ElementwiseKernel("T x, T y, T w", "T z, T v", body, preamble=PREAMBLE)


def arrays_of(dtype: str) -> dict[str, np.ndarray]:
    """Numbers with full mantissas, so that a product rounds, and products near the third operand, so that it shows."""
    rng = np.random.default_rng(8)
    x, y = (rng.uniform(0.5, 2, SIZE).astype(dtype) for _ in range(2))
    arrays = {"x": x, "y": y, "w": (x * y * rng.choice([1, -1, 0.5], SIZE)).astype(dtype)}
    return arrays | {"z": np.zeros(SIZE, dtype), "v": np.zeros(SIZE, dtype)}


def program_of(body: str, dtype: str, fp: Fp, native: frozenset = frozenset()) -> Program:
    kernel = definition(body)
    spec = replace(specialisation(kernel, {"T": dtype}), fp=fp)
    return pipeline.program_of(kernel.definition, spec, native)


def interpreted(body: str, dtype: str, fp: Fp) -> dict[str, np.ndarray]:
    arrays = arrays_of(dtype)
    interpret(program_of(body, dtype, fp), arrays, {}, (SIZE,))
    return arrays


CASES = [(name, dtype, fp) for name in BODIES for dtype in ("float32", "float64") for fp in ("strict", "contract")]
IN_METAL = [case for case in CASES if case[1] == "float32"]


def made(case: tuple[str, str, Fp], generate: Callable[..., Kernel]) -> tuple[Program, Kernel]:
    name, dtype, fp = case
    program = program_of(BODIES[name], dtype, fp)
    return program, generate(program, layout_of(program, arrays_of(dtype), (SIZE,)), fp=fp)


@pytest.mark.skipif(GXX is None, reason="g++ compiles emitted CUDA for the CPU")
def test_cuda_has_the_interpreters_bits_in_strict_and_contract(tmp_path: Path) -> None:
    both = [made(case, cuda.generate) for case in CASES]
    compare(CASES, both, CudaOnHost([kernel for _, kernel in both], tmp_path))


@pytest.mark.skipif(CLANG is None, reason="clang compiles emitted Metal for the CPU")
def test_metal_has_the_interpreters_bits_in_strict_and_contract(tmp_path: Path) -> None:
    both = [made(case, metal.generate) for case in IN_METAL]
    compare(IN_METAL, both, MetalOnHost([kernel for _, kernel in both], tmp_path))


def compare(cases: list, both: list[tuple[Program, Kernel]], host: CudaOnHost | MetalOnHost) -> None:
    for number, ((name, dtype, fp), (program, _)) in enumerate(zip(cases, both, strict=True)):
        got = host.run(number, program, arrays_of(dtype), {}, (SIZE,))
        for output, expected in interpreted(BODIES[name], dtype, fp).items():
            assert_same_bits(got[output], expected, f"{name} in {dtype}, {fp}, {output}")


@pytest.mark.parametrize(("name", "dtype", "fp"), [case for case in CASES if case[2] == "contract"])
@pytest.mark.sampled(3)
def test_the_cpu_has_the_interpreters_bits_in_contract(name: str, dtype: str, fp: Fp) -> None:
    arrays = arrays_of(dtype)
    kernel = ElementwiseKernel("T x, T y, T w", "T z, T v", BODIES[name], preamble=PREAMBLE, fp=fp)
    kernel(*arrays.values())
    for output, expected in interpreted(BODIES[name], dtype, fp).items():
        assert_same_bits(arrays[output], expected, f"{name}, {output}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", BODIES)
def test_contraction_shows_in_these_cases(name: str, dtype: str) -> None:
    """Were it not so, the comparisons above would say nothing."""
    strict, contracted = (interpreted(BODIES[name], dtype, fp) for fp in ("strict", "contract"))
    assert any((strict[output] != contracted[output]).any() for output in "zv") == (name != "kept")


# --- what NVRTC makes of it ------------------------------------------------------------------------------------------


def ptx_of(bodies: str, dtype: str, fp: Fp) -> str:
    nvrtc = compiler()
    native = frozenset(cuda.APPROXIMATE) if fp == "fast" else frozenset()
    program = program_of(bodies, dtype, fp, native)
    kernel = cuda.generate(program, layout_of(program, arrays_of(dtype), (SIZE,)), fp=fp)
    return nvrtc.compile_text(kernel.source, kernel.name, nvrtc.Goal("compute_90", "ptx")).code.decode()


def compiler():
    pytest.importorskip("cuda.bindings.nvrtc", reason="the extra fusec[cuda] brings NVRTC")
    from fusec.runtime.cuda import nvrtc

    return nvrtc


PLAIN = "z = x * y + w - x * w + f(x, y); T s = 0; for (int k = 0; k < n; ++k) s += x * y - s * w; v = s * s + x"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_strict_ptx_has_no_fma_and_contracted_ptx_has(dtype: str) -> None:
    assert not re.search(r"\bfma\b|\bmad\.(rn\.)?f|\.approx|\.ftz", ptx_of(PLAIN, dtype, "strict"))
    contracted = ptx_of(PLAIN, dtype, "contract")
    assert "fma.rn.f" in contracted
    assert not re.search(r"\bmul(\.rn)?\.f(32|64)\s.*\n\s*add(\.rn)?\.f(32|64)", contracted)


NVDISASM = shutil.which("nvdisasm")


@pytest.mark.skipif(NVDISASM is None, reason="nvdisasm shows machine code (the package nvidia-cuda-nvdisasm)")
@pytest.mark.parametrize(("dtype", "fused"), [("float32", "FFMA"), ("float64", "DFMA")])
def test_strict_machine_code_has_no_fma(dtype: str, fused: str, tmp_path: Path) -> None:
    nvrtc = compiler()
    for fp in ("strict", "contract"):
        program = program_of(PLAIN, dtype, fp)
        kernel = cuda.generate(program, layout_of(program, arrays_of(dtype), (SIZE,)), fp=fp)
        cubin = tmp_path / f"{fp}.cubin"
        cubin.write_bytes(nvrtc.compile_text(kernel.source, kernel.name, nvrtc.Goal("sm_90", "cubin")).code)
        done = subprocess.run([str(NVDISASM), "-c", str(cubin)], capture_output=True, text=True, check=True)
        assert "EXIT" in done.stdout
        assert (fused in done.stdout) == (fp == "contract")


APPROXIMATE = {
    "x / y": ["div.approx"], "sqrt(x)": ["sqrt.approx"], "rsqrt(x)": ["rsqrt.approx"], "x / sqrt(y)": ["rsqrt.approx"],
    "exp(x)": ["ex2.approx"], "exp2(x)": ["ex2.approx"], "exp10(x)": ["ex2.approx"], "log(x)": ["lg2.approx"],
    "log2(x)": ["lg2.approx"], "log10(x)": ["lg2.approx"], "sin(x)": ["sin.approx"], "cos(x)": ["cos.approx"],
    "tan(x)": ["sin.approx", "cos.approx"], "tanh(x)": ["tanh.approx"], "pow(x, y)": ["lg2.approx", "ex2.approx"],
    "sigmoid(x)": ["ex2.approx", "div.approx"],
}  # fmt: skip


@pytest.mark.parametrize("expression", APPROXIMATE)
def test_fast_ptx_has_the_approximate_instructions(expression: str) -> None:
    ptx = ptx_of(f"z = {expression}; v = w", "float32", "fast")
    for instruction in APPROXIMATE[expression]:
        assert re.search(rf"\b{re.escape(instruction)}\.(ftz\.)?f32", ptx), instruction
    assert "fusec_exp" not in ptx


def test_fast_leaves_float64_and_other_functions_exact() -> None:
    strict, fast = (ptx_of("z = exp(x) / y; v = lgamma(x)", "float64", fp) for fp in ("strict", "fast"))
    assert ".approx" not in strict
    assert ".approx" not in fast.replace("rcp.approx.ftz.f64", "")
    lgamma, loose = (ptx_of("z = lgamma(x); v = w", "float32", fp) for fp in ("strict", "fast"))
    assert re.sub(r"//.*", "", lgamma) == re.sub(r"//.*", "", loose)


def test_powers_by_logarithms_are_nan_where_strict_ones_are() -> None:
    """A negative number to a power that is not whole; half of the least subnormal number is 0, and so looks even."""
    x, y = np.repeat(np.float32([-2, -0.5, -1, 3]), 6), np.tile(np.float32([1e-45, -1e-45, 0.5, 2, 3, -1]), 4)
    found = []
    for fp, native in (("strict", frozenset()), ("fast", frozenset(cuda.APPROXIMATE))):
        arrays = {"x": x, "y": y, "w": x, "z": np.zeros_like(x), "v": np.zeros_like(x)}
        program = program_of("z = pow(x, y); v = w", "float32", fp, native)
        interpret(expand.expand(program), arrays, {}, x.shape)
        found.append(arrays["z"])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)


# --- fast on a host ---------------------------------------------------------------------------------------------------

SMOOTH = " + ".join(["x / y", "sqrt(x)", "rsqrt(y)", "exp(x)", "log2(x)", "cos(y)", "tanh(w)", "x / sqrt(y)"])
IN_CUDA = """
static inline float __fdividef(float x, float y) { return x / y; }
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline float __expf(float x) { return expf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __cosf(float x) { return cosf(x); }
"""
IN_MSL = """
namespace fast {
inline float divide(float x, float y) { return x / y; }
inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline float rsqrt(float x) { return 1 / __builtin_sqrtf(x); }
inline float exp(float x) { return __builtin_expf(x); }
inline float log2(float x) { return __builtin_log2f(x); }
inline float cos(float x) { return __builtin_cosf(x); }
inline float tanh(float x) { return __builtin_tanhf(x); }
}
"""
_ASM = re.compile(r'asm\("(\w+)\.approx\.f32 %0, %1;" : "=f"\(value\) : "f"\(x\)\);')


def fast_kernel(generate: Callable[..., Kernel], native: frozenset) -> tuple[Program, Kernel]:
    program = program_of(f"z = {SMOOTH}; v = w", "float32", "fast", native)
    return program, generate(program, layout_of(program, arrays_of("float32"), (SIZE,)), fp="fast")


def assert_close(got: dict[str, np.ndarray]) -> None:
    expected = interpreted(f"z = {SMOOTH}; v = w", "float32", "strict")
    np.testing.assert_allclose(got["z"], expected["z"], rtol=4e-6)


@pytest.mark.skipif(GXX is None, reason="g++ compiles emitted CUDA for the CPU")
def test_fast_cuda_means_what_strict_means(tmp_path: Path) -> None:
    program, kernel = fast_kernel(cuda.generate, frozenset(cuda.APPROXIMATE))
    text = IN_CUDA + _ASM.sub(r"value = \1f(x);", kernel.source)
    host = CudaOnHost([replace(kernel, source=text)], tmp_path)
    assert_close(host.run(0, program, arrays_of("float32"), {}, (SIZE,)))


@pytest.mark.skipif(CLANG is None, reason="clang compiles emitted Metal for the CPU")
def test_fast_metal_means_what_strict_means(tmp_path: Path) -> None:
    program, kernel = fast_kernel(metal.generate, frozenset(metal.APPROXIMATE))
    assert len(set(re.findall(r"fast::\w+", kernel.source))) == 7
    text = kernel.source.replace("using namespace metal;\n", f"using namespace metal;\n{IN_MSL}")
    host = MetalOnHost([replace(kernel, source=text)], tmp_path)
    assert_close(host.run(0, program, arrays_of("float32"), {}, (SIZE,)))


@pytest.mark.parametrize("fp", pipeline.MODES)
def test_metal_is_never_free_to_contract(fp: Fp) -> None:
    _, kernel = made(("sums", "float32", fp), metal.generate)
    lines = kernel.source.splitlines()
    assert "#pragma METAL fp math_mode(safe)" in lines
    assert "#pragma METAL fp contract(off)" in lines
