"""Emitted CUDA, run on the CPU in three thread orders, computes the interpreter's bits without undefined behaviour."""

import numpy as np
import pytest
from arguments import layout_of
from cuda_on_host import GXX, ORDERS, CudaOnHost
from programs import Case, all_cases
from same_bits import assert_same_bits

from fusec.codegen import cuda
from fusec.ir.interpret import interpret
from fusec.kernel import Kernel

pytestmark = pytest.mark.skipif(GXX is None, reason="g++ compiles emitted CUDA for the CPU")

CASES = all_cases()


def kernel_of(case: Case) -> Kernel:
    return cuda.generate(case.program, layout_of(case.program, case.arrays, case.shape, case.wide, case.aligned))


def expected_of(case: Case) -> dict[str, np.ndarray]:
    arrays = case.copies()
    interpret(case.program, arrays, case.scalars, case.shape)
    return arrays


def check(host: CudaOnHost, number: int, case: Case, order: int) -> None:
    got = host.run(number, case.program, case.arrays, case.scalars, case.shape, order)
    for name, expected in expected_of(case).items():
        assert_same_bits(got[name], expected, f"{case.name}, {name}")


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory) -> CudaOnHost:
    return CudaOnHost([kernel_of(case) for case in CASES], tmp_path_factory.mktemp("cuda"), sanitized=True)


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
def test_emitted_cuda_computes_the_bits_of_the_interpreter(sanitized, number):
    check(sanitized, number, CASES[number], ORDERS[number % len(ORDERS)])
