"""What NVRTC makes of emitted CUDA, run on NumPy in three orders, computes the interpreter's bits."""

import numpy as np
import ptx
import pytest
from arguments import layout_of
from cuda_in_ptx import ORDERS, CudaInPtx, ptx_of
from programs import Case, hard_values, inputs, results, with_outputs
from same_bits import assert_same_bits
from test_cuda_on_host import ATOMICS, CASES, expected_of, kernel_of

from fusec import passes
from fusec.base.dtypes import FLOAT32, FLOAT64, INT32, INT64, UINT64, DType
from fusec.base.ops import TABLE
from fusec.codegen import cuda
from fusec.ir.expr import Expr, apply
from fusec.ir.interpret import interpret
from fusec.ir.loops import Local

pytest.importorskip("cuda.bindings.nvrtc", reason="the extra fusec[cuda] brings NVRTC")

ARCHS = ("compute_75", "compute_90", "compute_100", "compute_120")
OLD, NEW = "compute_75", "compute_120"  # NVRTC has one code generator up to sm_90 and another one from sm_100 on


def check(host: CudaInPtx, number: int, case: Case, order: int) -> None:
    """Old values of atomics depend on the order of threads, so these run in the interpreter's."""
    order = 0 if case.name.startswith("atomic") else order
    got = host.run(number, case.program, case.arrays, case.scalars, case.shape, order)
    for name, expected in expected_of(case).items():
        assert_same_bits(got[name], expected, f"{case.name}, {name}")


@pytest.fixture(scope="module")
def hosts() -> dict[int, tuple[CudaInPtx, int]]:
    """Every second case compiled for an old and the others for a new architecture."""
    found = {}
    for first, arch in enumerate((OLD, NEW)):
        numbers = range(first, len(CASES), 2)
        host = CudaInPtx([kernel_of(CASES[number]) for number in numbers], arch=arch)
        found |= {number: (host, at) for at, number in enumerate(numbers)}
    return found


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
@pytest.mark.sampled(5)
def test_ptx_of_emitted_cuda_computes_the_bits_of_the_interpreter(hosts, number):
    host, at = hosts[number]
    check(host, at, CASES[number], number // 2 % len(ORDERS))


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_everything_computes_the_same_for_every_architecture_in_every_order(arch):
    cases = [*CASES, *ATOMICS]
    host = CudaInPtx([kernel_of(case) for case in cases], arch=arch)
    for number, case in enumerate(cases):
        for order in range(len(ORDERS)):
            check(host, number, case, order)


# --- elementary functions --------------------------------------------------------------------------------------------


def function_cases(dtype: DType, count: int, chosen: slice = slice(None)) -> list[Case]:
    """A program for every function of fusec.math on one dtype, over hard values of each argument."""
    cases = []
    for name in sorted(name for name, row in TABLE.items() if row.math)[chosen]:
        op = TABLE[name]
        if op.primitive or dtype.kind not in op.accepts:
            continue
        dtypes = {"x": dtype, "y": INT32 if name == "ldexp" else dtype, "w": dtype}
        dtypes = dict(list(dtypes.items())[: op.arity])
        params, reads = inputs(**dtypes)
        value: Expr = apply(name, *(Local(each, kind) for each, kind in dtypes.items()))
        program = passes.run(results(name, params, reads, {"z": value}))
        arrays = {each: hard_values(kind, count, seed) for seed, (each, kind) in enumerate(dtypes.items())}
        arrays = {each: np.roll(values, 3 * at) for at, (each, values) in enumerate(arrays.items())}
        arrays = with_outputs(program, arrays)
        cases.append(Case(f"{name} of {dtype}", program, arrays, (count,)))
    return cases


def check_functions(cases: list[Case], arch: str) -> None:
    kernels = [cuda.generate(case.program, layout_of(case.program, case.arrays, case.shape)) for case in cases]
    host = CudaInPtx(kernels, arch=arch)
    for number, case in enumerate(cases):
        arrays = case.copies()
        interpret(case.program, arrays, case.scalars, case.shape)
        got = host.run(number, case.program, case.arrays, case.scalars, case.shape, number % len(ORDERS))
        assert_same_bits(got["z"], arrays["z"], case.name)


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
def test_elementary_functions_have_the_bits_of_the_interpreter(dtype):
    cases = function_cases(dtype, 120)
    check_functions(cases[::8], OLD)
    check_functions(cases[4::8], NEW)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
def test_all_elementary_functions_have_the_bits_of_the_interpreter(dtype, arch):
    check_functions(function_cases(dtype, 2000), arch)


# --- what was found --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [INT64, UINT64], ids=str)
def test_counts_beyond_32_bits_shift_everything_out(dtype):
    """NVRTC 13.4 for sm_100 and later reads only the low half of such counts where a choice guards the shift."""
    params, reads = inputs(x=dtype, y=dtype)
    shifts = {f"z_{op}": apply(op, Local("x", dtype), Local("y", dtype)) for op in ("left_shift", "right_shift")}
    program = results("shifts", params, reads, shifts)
    counts = np.array([0, 1, 63, 64, 65, 2**32, 2**32 + 1, 2**33 + 63, 2**62 + 5, 2**63 - 1], dtype.numpy)
    arrays = with_outputs(program, {"x": hard_values(dtype, 100, 5), "y": np.tile(counts, 10)})
    case = Case("shifts", program, arrays, (100,))
    for arch in (OLD, NEW):
        check(CudaInPtx([kernel_of(case)], arch=arch), 0, case, 0)


def test_strict_code_has_no_approximate_instructions():
    text = ptx_of('extern "C" __global__ void k(float* z) { z[0] = __expf(z[0]) + __frcp_rn(z[1]); }')
    with pytest.raises(ptx.Unsupported, match=r"strict code has no \.approx; in k, line \d+: ex2\.approx"):
        ptx.load(text)
    z = np.array([1.0, 3.0], np.float32)
    ptx.launch(ptx.load(text, approximate=True), "k", 1, 1, [z])
    assert abs(z[0] - (np.e + 1 / 3)) < 1e-6
