"""NVRTC compiles every emitted kernel for every architecture, without spilling a register."""

import re

import numpy as np
import pytest
from all_programs import all_cases
from arguments import layout_of
from layout_programs import saxpy
from programs import Case
from reduction_runs import called
from test_cuda_on_host import ATOMICS

from fusec.base.dtypes import BY_NAME, FLOAT32
from fusec.base.kernel_abi import Kernel, Layout, Step
from fusec.codegen import cuda
from fusec.compiler.reduction_pipeline import generate
from fusec.dispatch.engine import read_call
from fusec.dispatch.reductions import bind
from fusec.dispatch.spec import CallOptions
from fusec.kinds.launch import CLUSTERS, MANY_THREADS
from fusec.library.normalisation import softmax_kernel

nvrtc = pytest.importorskip("cuda.bindings.nvrtc", reason="the extra fusec[cuda] brings NVRTC")

ARCHS = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
OPTIONS = ("--fmad=false", "--std=c++17", "-Xptxas", "-v")


def kernel_of(case: Case) -> Kernel:
    layout = layout_of(case.program, case.arrays, case.shape, case.wide, case.aligned, case.ragged)
    return cuda.generate(case.program, layout)


def translation_unit(kernels: list[Kernel]) -> str:
    """Many kernels in one text, each in a namespace of its own and under a name of its own."""
    parts = []
    for number, kernel in enumerate(kernels):
        text = re.sub(rf"(__launch_bounds__\([\d, ]+\)) {kernel.name}\(", rf"\1 kernel_{number}(", kernel.source)
        parts.append(f"namespace emitted_{number} {{\n{text}}}\n")
    return "".join(parts)


def compile_cubin(source: str, arch: str) -> tuple[bytes, str]:
    """The machine code and the log; AssertionError with the log if NVRTC refuses."""
    error, program = nvrtc.nvrtcCreateProgram(source.encode(), b"emitted.cu", 0, [], [])
    assert int(error) == 0, error
    options = [option.encode() for option in (f"--gpu-architecture={arch}", *OPTIONS)]
    (failed,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    log = bytes(nvrtc.nvrtcGetProgramLogSize(program)[1] + 1)  # never the shared bytes of length 1
    nvrtc.nvrtcGetProgramLog(program, log)
    said = log.decode(errors="replace").rstrip("\0 ")
    assert int(failed) == 0, said[:4000]
    image = bytes(nvrtc.nvrtcGetCUBINSize(program)[1] + 1)  # never the shared bytes of length 1
    nvrtc.nvrtcGetCUBIN(program, image)
    nvrtc.nvrtcDestroyProgram(program)
    return image, said


def ptx_of(source: str, arch: str) -> str:
    """The text that NVRTC makes for ptxas."""
    error, program = nvrtc.nvrtcCreateProgram(source.encode(), b"emitted.cu", 0, [], [])
    assert int(error) == 0
    options = [f"--gpu-architecture={arch}".encode(), b"--fmad=false"]
    assert int(nvrtc.nvrtcCompileProgram(program, len(options), options)[0]) == 0
    text = bytes(nvrtc.nvrtcGetPTXSize(program)[1] + 1)  # never the shared bytes of length 1
    nvrtc.nvrtcGetPTX(program, text)
    return text.decode()


def assert_compiles(kernels: list[Kernel], arch: str) -> None:
    image, log = compile_cubin(translation_unit(kernels), arch)
    assert image.startswith(b"\x7fELF")
    spilled = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
    assert len(spilled) >= len(kernels)
    assert all(pair == ("0", "0") for pair in spilled)


SAMPLE = [
    "ops on int32", "ops on float64", "conversions from float16", "conversions from float64", "complex of float32",
    "saxpy on 1000", "saxpy strided", "early return", "functions and structs", "local array", "raw deep view",
    "coordinates 3", "coordinate in groups", "wide division", "names",
    "atomic add on int8 with the old value", "atomic minimum on float32",
    "turned uint8 (68, 132)", "turned bfloat16 (68, 132)", "two turned, two results (40, 64)",
    "python five float32 (13, 32)", "python five uint8 (10, 36)", "python seven float32 (4, 6, 20)",
]  # fmt: skip


@pytest.mark.parametrize("arch", ARCHS)
def test_nvrtc_compiles_a_sample_for_every_architecture(arch):
    chosen = [case for case in [*all_cases(), *ATOMICS] if case.name in SAMPLE]
    assert len(chosen) == len(SAMPLE)
    assert_compiles([kernel_of(case) for case in chosen], arch)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_nvrtc_compiles_all_kernels_for_every_architecture(arch):
    assert_compiles([kernel_of(case) for case in [*all_cases(), *ATOMICS]], arch)


def test_contiguous_operands_are_loaded_16_bytes_at_once():
    """Seen in PTX, where the width of an access is written out."""
    unit = (Step.UNIT,)
    layout = Layout(1, (("x", unit), ("y", unit), ("z", unit)), aligned=16)
    ptx = ptx_of(cuda.generate(saxpy(FLOAT32), layout).source, "compute_80")
    assert len(re.findall(r"ld\.global(\.nc)?\.v4\.(f32|b32|u32)|ld\.global(\.nc)?\.v2\.(f64|b64|u64)", ptx)) == 2
    assert len(re.findall(r"st\.global\.v4\.(f32|b32|u32)|st\.global\.v2\.(f64|b64|u64)", ptx)) == 1
    assert "fma" not in ptx


def test_words_of_turned_arrays_are_loaded_whole_and_nothing_waits_between_the_loads():
    """16 elements a thread: 8 words of the turned array, which two lines have, and 8 of the other."""
    case = next(each for each in all_cases() if each.name == "turned bfloat16 (68, 132)")
    before = ptx_of(kernel_of(case).source, "compute_80").partition("bar.sync")[0].splitlines()
    loads = [at for at, line in enumerate(before) if re.search(r"ld\.global(\.nc)?\.[bu]32", line)]
    assert len(loads) == 16
    loaded = [re.findall(r"%r\d+", before[at])[0] for at in loads]
    between = [line for line in before[loads[0] : loads[-1]] if "mov." not in line]  # zeros, past the ends
    assert not [line for line in between for name in loaded if re.search(rf",.*{name}\b", line)]


def test_a_strip_loads_each_neighbour_once_and_all_before_it_computes():
    """2 rows of 4 results of a 5x5 stencil need 6 rows of 8: words of 16 bytes, and of 8 on both sides."""
    case = next(each for each in all_cases() if each.name == "python five float32 (13, 32)")
    lines = ptx_of(kernel_of(case).source, "compute_80").splitlines()
    whole = [at for at, line in enumerate(lines) if re.search(r"ld\.global(\.nc)?\.v4\.", line)]
    halves = [at for at, line in enumerate(lines) if re.search(r"ld\.global(\.nc)?\.v2\.", line)]
    assert (len(whole), len(halves)) == (6, 12)
    between = lines[min(whole + halves) : max(whole + halves)]
    assert not [line for line in between if re.search(r"\b(add|mul|sub|div)\.rn\.f32", line)]


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
@pytest.mark.parametrize("count", [1000, 1024])
def test_narrow_rows_are_loaded_and_stored_several_elements_at_once(name, count):
    x = np.zeros((5000, count), BY_NAME[name].numpy)
    run = called(softmax_kernel(x.dtype).whole(frozenset()), x, axis=1)
    ptx = ptx_of(cuda.generate(run.programs[0], run.layouts[0]).source, "compute_80")
    assert len(re.findall(r"ld\.global(\.nc)?\.v4\.(b16|u16)", ptx)) == 8
    assert len(re.findall(r"st\.global\.v4\.(b16|u16)", ptx)) == 8
    assert not re.findall(r"(ld|st)\.global(\.nc)?\.(b16|u16)", ptx)


def test_rows_of_several_chunks_stay_in_registers():
    """Softmax of rows of two to four chunks spills nothing on sm_90, with as many blocks as fit."""
    kernel = softmax_kernel(np.dtype("f4")).whole(frozenset())
    for count, most in ((16_384, 85), (20_000, 85), (32_768, 128)):
        backend, call = read_call(kernel, (np.zeros((200, count), "f4"),), None, CallOptions(1))
        bound = bind(kernel, call.given(backend), MANY_THREADS, None)
        made = generate(kernel.definition, bound.request, bound.launches[0], "cuda")
        assert made.block * 64 >= count > made.block * 32
        _, log = compile_cubin(made.source, "sm_90")
        assert "0 bytes spill stores, 0 bytes spill loads" in log
        assert max(int(each) for each in re.findall(r"Used (\d+) registers", log)) <= most


@pytest.mark.parametrize(("count", "cluster", "spilt"), [(65_536, 8, 0), (70_001, 5, 80), (262_144, 8, 0)])
def test_rows_of_clusters_stay_in_registers(count, cluster, spilt):
    """Of as many blocks as fit; of rows that are no whole chunks, a few values that are not elements may be spilt."""
    kernel = softmax_kernel(np.dtype("f4")).whole(frozenset())
    backend, call = read_call(kernel, (np.zeros((20, count), "f4"),), None, CallOptions(1))
    bound = bind(kernel, call.given(backend), CLUSTERS, None)
    made = generate(kernel.definition, bound.request, bound.launches[0], "cuda")
    assert made.cluster == cluster
    assert made.cluster * made.block * 64 >= count
    _, log = compile_cubin(made.source, "sm_90")
    assert max(int(each) for each in re.findall(r"(\d+) bytes spill", log)) <= spilt
    assert max(int(each) for each in re.findall(r"Used (\d+) registers", log)) <= (85 if count < 100_000 else 128)


def test_an_empty_log_does_not_end_up_in_the_interpreters_shared_bytes() -> None:
    from fusec.runtime.cuda import nvrtc as compiler

    compiler.compile_text('extern "C" __global__ void empty() {}', "empty", compiler.Goal("compute_90", "ptx"))
    space = " "
    assert space.encode()[0] == 32  # bytes of length 1 are shared, and NVRTC writes into the buffer it is given
