"""Updates that go to copies in shared memory leave what the interpreter's leave, in any order of threads.

The fibers of the host executor see threads that meet without a barrier or an atomic instruction.
"""

import re

import numpy as np
import pytest
from arguments import layout_of
from cuda_in_ptx import CudaInPtx
from cuda_on_host import GXX, CudaOnHost
from programs import INDEX, Case, at, element, hard_values, inputs, local, number, output, raw
from same_bits import assert_same_bits
from statement_programs import count_to
from test_nvrtc import assert_compiles

from fusec.base.dtypes import BY_NAME, FLOAT32, INT16, INT32, INT64, INTEGERS, UINT8, UINT32, DType
from fusec.base.kernel_abi import COPYING_BLOCK, Kernel
from fusec.base.records import replace
from fusec.codegen import cuda
from fusec.ir.expr import Expr, apply, const, convert
from fusec.ir.interpret import interpret
from fusec.ir.loops import Atomic, Declare, If, Load, Program, Query, Return, Stmt, Store

pytestmark = pytest.mark.skipif(GXX is None, reason="g++ compiles emitted CUDA for the CPU")

OPS = ("add", "subtract", "minimum", "maximum", "and", "or", "xor")
SIZE = 7001  # whole rounds of three blocks of 32 threads with 16 elements four times, and some more


def bin_of(count: int, factor: int = 7) -> Expr:
    return apply("modulo", apply("multiply", INDEX, number(factor)), number(count))


def case_of(
    name: str, body: list[Stmt], arrays: dict[str, np.ndarray], shape: tuple[int, ...], **walked: DType
) -> Case:
    """The walked arrays are inputs, the others raw arrays that are updated."""
    params, reads = inputs(**walked)
    held = [
        raw(each, BY_NAME[array.dtype.name], array.ndim, written=True)
        for each, array in arrays.items()
        if each not in walked
    ]
    return Case(name, Program("update", (*params, *held), (*reads, *body)), arrays, shape)


def every_op(dtype: DType, count: int) -> Case:
    """Each operation updates an array of its own, two the first; the last elements are never reached."""
    body = [Atomic(op, at(op, dtype, bin_of(count - 2)), (local("x", dtype),)) for op in OPS]
    body.append(Atomic("subtract", at("add", dtype, number(0)), (const(3, dtype),)))
    held = {op: hard_values(dtype, 40, seed)[-count:] for seed, op in enumerate(OPS)}
    arrays = {"x": hard_values(dtype, SIZE, 11), **held}
    return case_of(f"every operation on {dtype}", body, arrays, (SIZE,), x=dtype)


def histogram(dtype: DType, size: int, bins: DType = INT32) -> Case:
    x = np.random.default_rng(size).integers(0, 50, size).astype(dtype.numpy)
    place = at("bins", bins, convert(local("x", dtype), INT64))
    arrays = {"x": x, "bins": np.arange(50, dtype=bins.numpy)}
    return case_of(
        f"{size} {dtype} in bins of {bins}", [Atomic("add", place, (const(1, bins),))], arrays, (size,), x=dtype
    )


def rows() -> Case:
    """Rows that lie apart, at coordinates, in bins of two axes."""
    x = hard_values(INT16, 40 * 64, 3).reshape(40, 64)[:, :51]
    place = [Query("", "coordinate", number(axis), INT64) for axis in (0, 1)]
    index = [apply("modulo", each, number(count)) for each, count in zip(place, (4, 6), strict=True)]
    body: list[Stmt] = [Atomic("maximum", at("most", INT16, *index), (local("x", INT16),))]
    return case_of("rows", body, {"x": x, "most": np.zeros((4, 6), np.int16)}, x.shape, x=INT16)


def loops() -> Case:
    """Some elements leave early, others update several elements."""
    counted = count_to("k", convert(local("x", UINT8), INT32), (
        Atomic("add", at("bins", UINT32, convert(local("k"), INT64)), (const(1, UINT32),)),
        If(apply("greater", local("k"), const(8, INT32)), (Return(),)),
    ))  # fmt: skip
    leave = If(apply("equal", local("x", UINT8), const(3, UINT8)), (Return(),))
    x = np.random.default_rng(5).integers(0, 20, 500).astype(np.uint8)
    return case_of("loops", [leave, *counted], {"x": x, "bins": np.zeros(20, np.uint32)}, x.shape, x=UINT8)


def stored_too() -> Case:
    """Elements are stored beside the updates."""
    case = histogram(UINT8, SIZE)
    params = (*case.program.params, output("z", UINT8))
    store = Store(element("z", UINT8), apply("add", local("x", UINT8), const(1, UINT8)))
    program = replace(case.program, params=params, body=(*case.program.body, store))
    return Case("stored too", program, {**case.arrays, "z": np.zeros(SIZE, np.uint8)}, case.shape)


COUNTS = (32, 8, 1)
CASES = [
    *((every_op(dtype, 20), COUNTS[number % 3]) for number, dtype in enumerate(INTEGERS)),
    *((histogram(UINT8, size), count) for size in (1, 15, 1535, SIZE) for count in COUNTS),
    *((histogram(dtype, SIZE, INT64), 32) for dtype in (UINT8, INT16, UINT32, INT64)),
    *((case, count) for case in (rows(), loops(), stored_too()) for count in (32, 1)),
]
NAMES = [f"{count} copies, {case.name}" for case, count in CASES]


def kernel_of(case: Case, count: int) -> Kernel:
    layout = layout_of(case.program, case.arrays, case.shape, case.wide, case.aligned)
    copies = tuple((param.name, count) for param in case.program.arrays if param.raw)
    return cuda.generate(case.program, replace(layout, copies=copies))


KERNELS = [kernel_of(*each) for each in CASES]


def expected_of(case: Case) -> dict[str, np.ndarray]:
    arrays = case.copies()
    interpret(case.program, arrays, case.scalars, case.shape)
    return arrays


def check(got: dict[str, np.ndarray], case: Case) -> None:
    for name, expected in expected_of(case).items():
        assert_same_bits(got[name], expected, f"{case.name}, {name}")


@pytest.fixture(scope="module")
def on_host(tmp_path_factory) -> CudaOnHost:
    return CudaOnHost(KERNELS, tmp_path_factory.mktemp("copies"))


@pytest.mark.parametrize("number", range(len(CASES)), ids=NAMES)
def test_copies_leave_what_updates_leave(on_host, number):
    case, _ = CASES[number]
    assert "__shared__" in KERNELS[number].source
    got = on_host.run(number, case.program, case.arrays, case.scalars, case.shape, order=number % 3)
    check(got, case)


@pytest.mark.parametrize("arch", ["compute_75", "compute_120"])
def test_ptx_of_copies_leaves_what_updates_leave(arch):
    pytest.importorskip("cuda.bindings.nvrtc", reason="the extra fusec[cuda] brings NVRTC")
    chosen = range(arch == "compute_75", len(CASES), 2)
    host = CudaInPtx([KERNELS[number] for number in chosen], arch=arch)
    for position, (case, _) in enumerate(CASES[chosen.start :: 2]):
        got = host.run(position, case.program, case.arrays, case.scalars, case.shape, order=position % 3, threads=96)
        check(got, case)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
def test_updates_of_few_arrays_need_no_memory_for_registers(arch):
    pytest.importorskip("cuda.bindings.nvrtc", reason="the extra fusec[cuda] brings NVRTC")
    assert all(f"__launch_bounds__({COPYING_BLOCK})" in each.source for each in KERNELS)
    assert_compiles([each for each, (case, _) in zip(KERNELS, CASES, strict=True) if len(case.arrays) < 4], arch)


# --- where there are none ------------------------------------------------------------------------------------------


def other_cases() -> list[Case]:
    """Programs whose arrays are used in another way, too, or whose sums depend on the order."""
    x, place = local("x", INT32), at("bins", INT32, bin_of(5))
    add = Atomic("add", place, (x,))
    asks = Atomic("add", place, (x,), "old")
    reads = Store(at("bins", INT32, bin_of(5)), Load(at("bins", INT32, number(6)), INT32))
    exchanges = Atomic("exchange", place, (const(3, INT32),))
    bodies = {
        "old value": [Declare("old", INT32), asks],
        "read, too": [add, Declare("seen", INT32, Load(at("bins", INT32, number(7)), INT32))],
        "stored, too": [add, reads],
        "of two operations": [add, Atomic("maximum", place, (x,))],
        "exchanged": [exchanges],
        "index from the array": [
            Atomic("add", at("bins", INT32, convert(Load(place, INT32), INT64)), (const(0, INT32),))
        ],
    }
    arrays = {"x": np.full(40, 2, np.int32), "bins": np.zeros(8, np.int32)}
    cases = [case_of(name, body, arrays, (40,), x=INT32) for name, body in bodies.items()]
    floats = {"x": np.zeros(40, np.float32), "bins": np.zeros(8, np.float32)}
    sums: list[Stmt] = [Atomic("add", at("bins", FLOAT32, bin_of(5)), (local("x", FLOAT32),))]
    return [*cases, case_of("floats", sums, floats, (40,), x=FLOAT32)]


@pytest.mark.parametrize("case", other_cases(), ids=lambda case: case.name)
def test_arrays_that_are_used_in_another_way_have_no_copies(case):
    with_copies = kernel_of(case, 8)
    plain = cuda.generate(case.program, layout_of(case.program, case.arrays, case.shape))
    assert re.sub("// layout.*", "", with_copies.source) == re.sub("// layout.*", "", plain.source)
    assert with_copies.share == 0


def test_one_of_two_arrays_may_have_copies():
    x = local("x", INT32)
    body: list[Stmt] = [
        Atomic("add", at("bins", INT32, bin_of(5)), (x,)),
        Declare("old", INT32),
        Atomic("add", at("last", INT32, number(0)), (x,), "old"),
    ]
    arrays = {"x": np.arange(40, dtype=np.int32), "bins": np.zeros(8, np.int32), "last": np.zeros(1, np.int32)}
    text = kernel_of(case_of("two", body, arrays, (40,), x=INT32), 8).source
    assert "bins_copies" in text
    assert "last_copies" not in text
