"""Emitted Metal, run on the CPU in three thread orders, computes the interpreter's bits; what it lacks is refused."""

import pytest
from all_programs import all_cases, uses_double
from arguments import layout_of
from metal_on_host import CLANG, ORDERS, MetalError, MetalOnHost
from programs import Case
from same_bits import assert_same_bits
from statement_programs import ATOMIC_OPS, atomic_case

from fusec.base.dtypes import ALL, COMPLEX, FLOAT32, INT32, UINT32, UINT64
from fusec.base.kernel_abi import Kernel
from fusec.codegen import metal
from fusec.errors import FusecError
from fusec.ir.interpret import interpret

pytestmark = pytest.mark.skipif(CLANG is None, reason="clang compiles emitted Metal for the CPU; set FUSEC_CLANG")

CASES = [case for case in all_cases() if not uses_double(case)]
CASES += [
    case
    for op in ATOMIC_OPS
    for dtype in (INT32, UINT32, FLOAT32)
    for wanted in (False, True)
    if (case := atomic_case(op, dtype, wanted)) and (dtype != FLOAT32 or op != "compare_exchange")
]
CASES += [case for op in ("minimum", "maximum") if (case := atomic_case(op, UINT64, False))]


def kernel_of(case: Case) -> Kernel:
    return metal.generate(case.program, layout_of(case.program, case.arrays, case.shape, case.wide, case.aligned))


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory) -> MetalOnHost:
    return MetalOnHost([kernel_of(case) for case in CASES], tmp_path_factory.mktemp("metal"), sanitized=True)


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
def test_emitted_metal_computes_the_bits_of_the_interpreter(sanitized, number):
    case = CASES[number]
    order = 0 if case.name.startswith("atomic") else ORDERS[number % len(ORDERS)]
    got = sanitized.run(number, case.program, case.arrays, case.scalars, case.shape, order)
    arrays = case.copies()
    interpret(case.program, arrays, case.scalars, case.shape)
    for name, expected in arrays.items():
        assert_same_bits(got[name], expected, f"{case.name}, {name}")


def test_what_metal_lacks_is_refused_by_name():
    wide = next(case for case in all_cases() if case.name == "ops on float64")
    with pytest.raises(FusecError, match="parameter 'x' has dtype float64, which metal does not have"):
        kernel_of(wide)


@pytest.mark.parametrize("op", ATOMIC_OPS)
def test_an_atomic_works_or_is_an_error_on_every_dtype(op):
    for dtype in ALL:
        if dtype in COMPLEX or dtype.name == "float64" or (case := atomic_case(op, dtype, True)) is None:
            continue
        supported = dtype in (INT32, UINT32) or (dtype == FLOAT32 and op != "compare_exchange")
        if supported:
            assert "explicit(" in kernel_of(case).source
        else:
            with pytest.raises(FusecError, match=f"metal has no atomic {op} on {dtype}"):
                kernel_of(case)


@pytest.mark.parametrize(
    "text", ["double x = 1;", "float* p = nullptr; device float* q = p;", "float x = erff(1.0f);", "goto out; out:;"]
)
def test_the_executor_refuses_what_metal_refuses(tmp_path, text):
    case = next(case for case in CASES if case.name == "counted loop")
    kernel = kernel_of(case)
    spoilt = Kernel(
        kernel.name, "metal", kernel.slots, kernel.source.replace("return;", f"return;\n    {text}", 1), kernel.layout
    )
    with pytest.raises(MetalError):
        MetalOnHost([spoilt], tmp_path)
