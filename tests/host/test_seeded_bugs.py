"""The executors of block programs accept right ones, with the right bits in every order, and find every seeded bug."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import cuda_on_host
import fibers_cuda_texts as cuda_texts
import fibers_metal_texts as metal_texts
import metal_on_host
import numpy as np
import pytest
import test_cuda_on_host
import test_metal_on_host
from fibers import Buffer, Launch, Output, Programs, Workspace
from guarded import KernelFault
from metal_on_host import MetalError
from same_bits import assert_same_bits

needs_gxx = pytest.mark.skipif(cuda_on_host.GXX is None, reason="g++ compiles block programs for the CPU")
needs_clang = pytest.mark.skipif(
    metal_on_host.CLANG is None or cuda_on_host.GXX is None, reason="clang compiles Metal for the CPU; set FUSEC_CLANG"
)


@dataclass(frozen=True)
class Call:
    """How a program is launched, the launches after it, and what must come out."""

    launch: Launch
    buffers: Mapping[str, Buffer]
    expected: Mapping[str, np.ndarray]
    then: tuple[Launch, ...] = ()


def cuda_calls() -> dict[str, Call]:
    rng = np.random.default_rng(5)
    whole = rng.integers(-9, 9, 1000).astype("f4")  # sums of these are exact in any order
    words = rng.integers(-1000, 1000, 500).astype("i4")
    table = rng.integers(-99, 99, (37, 21)).astype("i2")
    few = np.arange(100, dtype="f4")
    strided = np.array([whole[np.arange(1000) // 128 % 4 == b].sum() for b in range(4)], "f4")
    by_warp = np.pad(words, (0, 12)).reshape(4, 4, 32).sum(axis=2)
    votes = [
        sum(int(w & 1) << at for at, w in enumerate(row)) | int(all(row)) << 4 | int(min(row) < 0) << 5
        | int((words[128 * b :][:128] < 0).sum()) << 8
        for b, row in enumerate(by_warp)
    ]  # fmt: skip
    n = np.int32
    return {
        "tree": Call(
            Launch("tree", 4, 128, ("x", "out", n(1000))), {"x": whole, "out": Output(4, "f4")}, {"out": strided}
        ),
        "shuffles": Call(
            Launch("shuffles", 4, 128, ("x", "out", "votes", n(500)), 16),
            {"x": words, "out": Output(4, "i4"), "votes": Output(4, "u4")},
            {"out": by_warp.sum(axis=1), "votes": np.array(votes)},
        ),
        "last": Call(
            Launch("last", 5, 128, ("x", "partial", "counter", "out", n(1000)), 16),
            {"x": whole, "partial": Workspace(5, "f4"), "counter": np.zeros(1, "u4"), "out": Output((), "f4")},
            {"out": whole.sum(), "counter": np.zeros(1, "u4")},
        ),
        "transpose": Call(
            Launch("transpose", (2, 3), (16, 16), ("x", "out", n(37), n(21))),
            {"x": table, "out": Output((21, 37), "i2")},
            {"out": table.T},
        ),
        "scan": Call(
            Launch("scan", 1, 128, ("x", "out", n(300))),
            {"x": words[:300], "out": Output(300, "i4")},
            {"out": np.cumsum(words[:300])},
        ),
        "vectors": Call(
            Launch("vectors", 1, 32, ("x", "out", n(96))),
            {"x": few[:96], "out": Output(96, "f4")},
            {"out": few[:96].reshape(-1, 2, 4)[:, ::-1].reshape(-1)},
        ),
        "forms": Call(
            Launch("forms", 1, 32, ("x", "out", n(7)), 128),
            {"x": few[:32], "out": Output(32, "f4")},
            {"out": np.arange(32) + np.arange(32) % 4 + 40 + 2 * np.arange(32)[::-1] + 7},
        ),
        "histogram": Call(
            Launch("histogram", 4, 128, ("x", "counts", "largest", n(1000))),
            {"x": whole, "counts": np.zeros(8, "u4"), "largest": Output(4, "f4")},
            {
                "counts": np.bincount(whole.astype(int) & 7, minlength=8),
                "largest": np.array([whole[np.arange(1000) // 128 % 4 == b].max() for b in range(4)]),
            },
        ),
    }


def assert_right(programs: Programs, call: Call) -> None:
    got = programs.run([call.launch, *call.then], call.buffers)
    for name, expected in call.expected.items():
        np.testing.assert_array_equal(got[name], expected)


@pytest.fixture(scope="module")
def cuda(tmp_path_factory) -> Programs:
    spoilt = [bug.text(cuda_texts.PROGRAMS, f"bug{at}") for at, bug in enumerate(cuda_texts.BUGS)]
    return cuda_on_host.BlockPrograms([*cuda_texts.PROGRAMS.values(), *spoilt], tmp_path_factory.mktemp("blocks"))


@needs_gxx
@pytest.mark.parametrize("name", cuda_texts.PROGRAMS)
@pytest.mark.sampled(3)
def test_right_cuda_programs_give_the_same_right_bits_in_every_order(cuda, name):
    assert_right(cuda, cuda_calls()[name])


@pytest.mark.parametrize("name", cuda_texts.PROGRAMS)
def test_nvrtc_accepts_the_cuda_programs(name):
    """So that the executor is proved on the language itself, not on one of its own."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="the extra fusec[cuda] brings NVRTC")
    from test_nvrtc import compile_cubin

    image, _ = compile_cubin(cuda_texts.PROGRAMS[name], "sm_90")
    assert name.encode() in image


def assert_found(programs: Programs, call: Call, bug: cuda_texts.Bug, entry: str) -> None:
    launch = replace(call.launch, entry=entry)
    with pytest.raises(KernelFault, match=bug.report):
        programs.run(launch, call.buffers)


@needs_gxx
@pytest.mark.parametrize("at", range(len(cuda_texts.BUGS)), ids=[bug.name for bug in cuda_texts.BUGS])
@pytest.mark.sampled(5)
def test_bugs_in_cuda_programs_are_found(cuda, at):
    bug = cuda_texts.BUGS[at]
    assert_found(cuda, cuda_calls()[bug.program], bug, f"bug{at}")


@needs_gxx
def test_launches_that_no_device_runs_are_found(cuda):
    call = cuda_calls()["tree"]
    with pytest.raises(KernelFault, match=r"a block of 160 threads exceeds __launch_bounds__\(128\)"):
        cuda.run(replace(call.launch, block=160), call.buffers)
    call = cuda_calls()["last"]
    with pytest.raises(KernelFault, match="cannot launch 5 blocks of 1056 threads"):
        cuda.run(replace(call.launch, block=1056), call.buffers)
    with pytest.raises(
        KernelFault, match=r"too much shared memory: s ends at byte 491\d\d, and a block may have 49152"
    ):
        cuda.run(replace(call.launch, shared=49152), call.buffers)


@needs_gxx
def test_a_launch_that_does_not_end_is_found(tmp_path):
    waiting = cuda_texts.TREE.replace(
        "    s[t] = sum;", "    while (*(volatile const float*)x == 0.0f);\n    s[t] = sum;"
    )
    programs = cuda_on_host.BlockPrograms([waiting], tmp_path)
    programs.seconds = 1
    with pytest.raises(KernelFault, match=r"a launch does not end: thread \d+ of block 0"):
        programs.run(
            Launch("tree", 1, 128, ("x", "out", np.int32(0))), {"x": np.zeros(1, "f4"), "out": Output(1, "f4")}
        )


@needs_gxx
@pytest.mark.parametrize("name", ["expf", "sin", "malloc", "rsqrtf"])
def test_functions_with_bits_of_their_own_are_refused(tmp_path, name):
    text = cuda_texts.TREE.replace("s[t] = sum;", f"s[t] = (float)(long){name}(sum);")
    text = text.replace("\n", f'\nextern "C" float {name}(float);\n' if name == "rsqrtf" else "\n", 1)
    with pytest.raises(KernelFault, match=rf"forbidden function: the text calls {name} at .*tree.cu:\d+"):
        cuda_on_host.BlockPrograms([text], tmp_path)


def metal_calls() -> dict[str, Call]:
    calls = cuda_calls()
    whole = calls["tree"].buffers["x"]
    assert isinstance(whole, np.ndarray)
    pairs = Workspace(3, [("value", "f4"), ("at", "i4")])
    largest = Call(
        Launch("largest", 3, 64, ("x", "found", np.int32(1000))),
        {"x": whole, "found": pairs, "out": Output(1, "i4")},
        {"out": np.array([whole.argmax()])},
        (Launch("finish", 1, 1, ("found", "out", np.int32(3))),),
    )
    scan = calls["scan"]
    return {name: calls[name] for name in ("tree", "shuffles", "transpose", "vectors")} | {
        "scan": scan,
        "largest": largest,
    }


@pytest.fixture(scope="module")
def metal(tmp_path_factory) -> Programs:
    spoilt = [bug.text(metal_texts.PROGRAMS, f"bug{at}") for at, bug in enumerate(metal_texts.BUGS)]
    return metal_on_host.BlockPrograms([*metal_texts.PROGRAMS.values(), *spoilt], tmp_path_factory.mktemp("blocks"))


@needs_clang
@pytest.mark.parametrize("name", metal_texts.PROGRAMS)
def test_right_metal_programs_give_the_same_right_bits_in_every_order(metal, name):
    assert_right(metal, metal_calls()[name])


@needs_clang
@pytest.mark.parametrize("at", range(len(metal_texts.BUGS)), ids=[bug.name for bug in metal_texts.BUGS])
def test_bugs_in_metal_programs_are_found(metal, at):
    bug = metal_texts.BUGS[at]
    assert_found(metal, metal_calls()[bug.program], bug, f"bug{at}")


@needs_clang
@pytest.mark.parametrize("what", metal_texts.REFUSED)
def test_what_metal_lacks_is_refused(tmp_path, what):
    text, said = metal_texts.REFUSED[what]
    with pytest.raises(MetalError, match=said):
        metal_on_host.BlockPrograms([metal_texts.TREE.replace("s[t] = sum;", f"{text}\n    s[t] = sum;")], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("target", [pytest.param("cuda", marks=needs_gxx), pytest.param("metal", marks=needs_clang)])
def test_emitted_element_wise_kernels_are_right_under_watch(tmp_path, target):
    """They pass for block programs too: no byte outside of their arrays, no two threads at one element."""
    host, tests = {"cuda": (cuda_on_host, test_cuda_on_host), "metal": (metal_on_host, test_metal_on_host)}[target]
    kernels = [tests.kernel_of(case) for case in tests.CASES]
    programs = host.BlockPrograms([kernel.source for kernel in kernels], tmp_path)
    for number, (kernel, case) in enumerate(zip(kernels, tests.CASES, strict=True)):
        size = int(np.prod(case.shape, dtype=np.int64))
        rows = ((1, (size + 13) // 7), (7, 1)) if case.wide else ((size + 34) // 32, 32)
        grid, block = (3, 32) if target == "cuda" else rows
        args = host.block_args(kernel, case.program, case.arrays, case.scalars, case.shape)
        order = 0 if case.name.startswith("atomic") else number % 4  # old values depend on the order
        got = programs.run(Launch(kernel.name, grid, block, args, 0, number), case.copies(), [order])
        for name, expected in test_cuda_on_host.expected_of(case).items():
            assert_same_bits(got[name], expected, f"{case.name}, {name}")
