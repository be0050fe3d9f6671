"""Block programs give the bits of the interpreter on every target, in every order of threads; seeded bugs are found."""

import re
from math import prod

import cuda_in_ptx
import cuda_on_host
import metal_on_host
import numpy as np
import pytest
from arguments import layout_of
from block_programs import NOT_ON_METAL, block_cases, in_process, on_cpu
from fibers import ORDERS, Launch
from guarded import KernelFault
from same_bits import assert_same_bits

from fusec.base.records import replace
from fusec.codegen import cuda, metal
from fusec.ir.interpret import interpret
from fusec.ir.loops import Barrier, If, While
from fusec.ir.memory import BlockFault
from fusec.ir.walk import Body, blocks, operands

NEEDS_GXX = pytest.mark.skipif(cuda_on_host.GXX is None, reason="needs g++")
NEEDS_CLANG = pytest.mark.skipif(metal_on_host.CLANG is None, reason="needs clang")
CASES = block_cases()
BY_NAME = {case.name: case for case in CASES}
NARROW = [case.name for case in CASES if case.name not in NOT_ON_METAL]
FEW = ["histogram", "turns n=3", "wide"]
SPOILT = [case for case in CASES if case.name not in ("turns n=0", "turns n=7", "turns n=200")]
ALONE_ANYWAY = {"prefix_sum", "matmul"}  # whose threads touch nothing of each other after the last barrier


@pytest.fixture(scope="module")
def expected():
    """The arrays as the interpreter leaves them."""
    found = {}
    for case in CASES:
        found[case.name] = case.copies()
        interpret(case.program, found[case.name], case.scalars, case.shape)
    return found


def assert_all(got, case, expected):
    for param in case.program.arrays:
        if param.written:
            assert_same_bits(got[param.name], expected[case.name][param.name], f"{case.name}, {param.name}: ")


def test_the_kernels_compute_what_they_say(expected):
    found = expected
    np.testing.assert_array_equal(found["transpose"]["out"], found["transpose"]["a"].T)
    counted = found["prefix_sum"]
    np.testing.assert_array_equal(counted["out"], counted["x"].reshape(3, 16).cumsum(1).ravel())
    np.testing.assert_allclose(found["tree_sum n=21"]["out"].sum(), found["tree_sum n=21"]["x"].sum(), rtol=1e-6)
    product = found["matmul"]
    np.testing.assert_allclose(product["c"], product["a"] @ product["b"], rtol=1e-5)
    counts = found["histogram"]
    np.testing.assert_array_equal(counts["bins"], np.bincount(counts["x"], minlength=5))
    halves = counts["x"].reshape(3, 16) / 2
    np.testing.assert_array_equal(counts["extremes"], np.stack([halves.min(1), halves.max(1)], 1))
    windows = np.lib.stride_tricks.sliding_window_view(found["box"]["a"], (3, 3, 3)).sum((3, 4, 5))
    np.testing.assert_array_equal(found["box"]["out"], windows * np.float32(0.37))


def test_the_cpu_target_gives_the_bits_of_the_interpreter(expected):
    for case in CASES:
        assert_all(on_cpu(case), case, expected)


@pytest.mark.parametrize("names", [FEW, pytest.param([each.name for each in CASES], marks=pytest.mark.slow)])
def test_a_processor_with_few_instructions_gives_the_bits_of_the_interpreter(names, tmp_path, expected):
    for name, got in zip(names, in_process("sse2", names, tmp_path), strict=True):
        assert_all(got, BY_NAME[name], expected)


def cuda_kernel(case):
    """The text, and the arguments of a launch."""
    kernel = cuda.generate(case.program, layout_of(case.program, case.arrays, case.shape))
    return kernel, cuda_on_host.block_args(kernel, case.program, case.arrays, case.scalars, case.shape)


@NEEDS_GXX
@pytest.mark.parametrize(
    ("names", "orders"), [(FEW, (0, 2)), pytest.param([each.name for each in CASES], ORDERS, marks=pytest.mark.slow)]
)
def test_cuda_text_gives_the_bits_of_the_interpreter_in_every_order(names, orders, tmp_path, expected):
    made = [cuda_kernel(BY_NAME[name]) for name in names]
    programs = cuda_on_host.BlockPrograms([kernel.source for kernel, _ in made], tmp_path)
    for number, (name, (kernel, args)) in enumerate(zip(names, made, strict=True)):
        case = BY_NAME[name]
        for grid in (prod(case.shape), 2):  # fewer blocks than elements: each takes several
            launch = Launch(kernel.name, grid, kernel.block, args, unit=number)
            assert_all(programs.run(launch, case.arrays, orders), case, expected)


@NEEDS_CLANG
@pytest.mark.parametrize("names", [FEW[:2], pytest.param(NARROW, marks=pytest.mark.slow)])
def test_metal_text_gives_the_bits_of_the_interpreter_in_every_order(names, tmp_path, expected):
    cases = [BY_NAME[name] for name in names]
    kernels = [metal.generate(case.program, layout_of(case.program, case.arrays, case.shape)) for case in cases]
    programs = metal_on_host.BlockPrograms([kernel.source for kernel in kernels], tmp_path)
    for number, (case, kernel) in enumerate(zip(cases, kernels, strict=True)):
        args = metal_on_host.block_args(kernel, case.program, case.arrays, case.scalars, case.shape)
        launch = Launch(kernel.name, prod(case.shape), kernel.block, args, unit=number)
        assert_all(programs.run(launch, case.arrays), case, expected)


@pytest.mark.parametrize("arch", ["compute_75", pytest.param("compute_120", marks=pytest.mark.slow)])
def test_ptx_gives_the_bits_of_the_interpreter(arch, expected):
    pytest.importorskip("cuda.bindings.nvrtc", reason="the extra fusec[cuda] brings NVRTC")
    kernels = [cuda.generate(case.program, layout_of(case.program, case.arrays, case.shape)) for case in CASES]
    programs = cuda_in_ptx.CudaInPtx(kernels, arch=arch)
    for number, (case, kernel) in enumerate(zip(CASES, kernels, strict=True)):
        for order, grid in ((0, prod(case.shape)), (2, 2)):
            got = programs.run(number, case.program, case.arrays, case.scalars, case.shape, order, grid, kernel.block)
            assert_all(got, case, expected)


# --- seeded bugs ------------------------------------------------------------------------------------------------------


def without_barrier(source: str, number: int) -> str:
    """A text that lacks one of its barriers."""
    places = [found.span() for found in re.finditer(r"(?<!blockIdx\.x\) )__syncthreads\(\);", source)]
    start, end = places[number]
    return source[:start] + ";" + source[end:]


@NEEDS_GXX
@pytest.mark.parametrize("cases", [SPOILT[:1], pytest.param(SPOILT, marks=pytest.mark.slow)])
def test_every_barrier_of_the_cuda_texts_is_missed(cases, tmp_path):
    texts, calls = [], []
    for case in cases:
        kernel, args = cuda_kernel(case)
        for number in range(kernel.source.count("__syncthreads") - 1):
            texts.append(without_barrier(kernel.source, number))
            calls.append((case, Launch(kernel.name, prod(case.shape), kernel.block, args, unit=len(calls))))
        if case.name not in ALONE_ANYWAY:  # of a block that takes several elements
            texts.append(kernel.source.replace("if (block != blockIdx.x) __syncthreads();", ""))
            calls.append((case, Launch(kernel.name, 1, kernel.block, args, unit=len(calls))))
    programs = cuda_on_host.BlockPrograms(texts, tmp_path)
    for case, launch in calls:
        with pytest.raises(KernelFault, match=r"race|uninitialised memory|order"):
            programs.run(launch, case.arrays)
    assert len(calls) >= 2 * len(cases)


def test_every_barrier_of_the_programs_is_missed():
    for case in SPOILT:
        count = _barriers(case.program.body)
        for number in range(count):
            spoilt = replace(case.program, body=_without(case.program.body, [number]))
            with pytest.raises(BlockFault):
                interpret(spoilt, case.copies(), case.scalars, case.shape)


def _barriers(body: Body) -> int:
    return sum(isinstance(stmt, Barrier) + sum(map(_barriers, blocks(stmt))) for stmt in body)


def _without(body: Body, left: list[int]) -> Body:
    """The statements without a barrier. left: how many come before it, counted down."""
    found = []
    for stmt in body:
        if isinstance(stmt, Barrier):
            left[0] -= 1
            if left[0] == -1:
                continue
        if isinstance(stmt, If | While):
            stmt = stmt.rebuild(operands(stmt), tuple(_without(block, left) for block in blocks(stmt)))
        found.append(stmt)
    return tuple(found)
