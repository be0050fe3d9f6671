"""Emitted CUDA, run on the CPU in three thread orders, computes the interpreter's bits without undefined behaviour."""

import numpy as np
import pytest
from all_programs import all_cases
from arguments import layout_of
from cuda_on_host import GXX, ORDERS, CudaOnHost
from programs import Case
from same_bits import assert_same_bits
from statement_programs import ATOMIC_OPS, atomic_case

from fusec.base.dtypes import ALL, COMPLEX64
from fusec.base.kernel_abi import Kernel
from fusec.codegen import cuda
from fusec.errors import FusecError
from fusec.ir.interpret import interpret

pytestmark = pytest.mark.skipif(GXX is None, reason="g++ compiles emitted CUDA for the CPU")

ATOMICS = [
    case
    for op in ATOMIC_OPS
    for dtype in ALL
    for wanted in (True, False)
    if not dtype.is_complex and (case := atomic_case(op, dtype, wanted))
]
CASES = [*all_cases(), *ATOMICS[::5]]
EVERYTHING = [*all_cases(), *ATOMICS]


def kernel_of(case: Case) -> Kernel:
    layout = layout_of(case.program, case.arrays, case.shape, case.wide, case.aligned, case.ragged)
    return cuda.generate(case.program, layout)


def expected_of(case: Case) -> dict[str, np.ndarray]:
    arrays = case.copies()
    interpret(case.program, arrays, case.scalars, case.shape)
    return arrays


def check(host: CudaOnHost, number: int, case: Case, order: int) -> None:
    """Old values of atomics depend on the order of threads, so these run in the interpreter's."""
    order = 0 if case.name.startswith("atomic") else order
    got = host.run(number, case.program, case.arrays, case.scalars, case.shape, order)
    for name, expected in expected_of(case).items():
        assert_same_bits(got[name], expected, f"{case.name}, {name}")


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory) -> CudaOnHost:
    return CudaOnHost([kernel_of(case) for case in CASES], tmp_path_factory.mktemp("cuda"), sanitized=True)


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
@pytest.mark.sampled(5)
def test_emitted_cuda_computes_the_bits_of_the_interpreter(sanitized, number):
    check(sanitized, number, CASES[number], ORDERS[number % len(ORDERS)])


@pytest.mark.slow
@pytest.mark.parametrize("is_sanitized", [False, True])
def test_everything_computes_the_same_in_every_order(tmp_path, is_sanitized):
    host = CudaOnHost([kernel_of(case) for case in EVERYTHING], tmp_path, is_sanitized)
    for number, case in enumerate(EVERYTHING):
        for order in ORDERS:
            check(host, number, case, order)


def test_atomics_on_complex_numbers_are_refused():
    case = atomic_case("add", COMPLEX64, True)
    assert case is not None
    with pytest.raises(FusecError, match="cuda has no atomic add on complex64"):
        kernel_of(case)
