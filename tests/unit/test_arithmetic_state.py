"""Kernels give their bits whatever state of arithmetic the calling thread is in."""

import ctypes
import platform
import re
import subprocess
import sys

import llvmlite.binding as llvm
import pytest

from fusec import pipeline
from fusec.codegen import llvm as codegen
from fusec.dtypes import FLOAT32
from fusec.generated import Layout, Step
from fusec.runtime.cpu import engine

X86 = platform.machine() in ("x86_64", "AMD64")
SCRIPT = """
import ctypes, numpy as np, fusec
libm = ctypes.CDLL("libm.so.6")
k = fusec.ElementwiseKernel("T x, T y", "T z", "z = x / y + exp(x)", "k")
x = np.linspace(0.1, 3, 300_000).astype("f4")
tiny = np.arange(1, 300_001, dtype="u4").view("f4")
add = fusec.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")
before = [k(x, x[::-1]).tobytes(), add(tiny, tiny).tobytes(), fusec.sum(x).tobytes()]
for mode in (0x400, 0x800, 0xC00):  # down, up, to zero
    assert libm.fesetround(mode) == 0
    for _ in range(3):
        assert [k(x, x[::-1]).tobytes(), add(tiny, tiny).tobytes(), fusec.sum(x).tobytes()] == before, mode
    assert libm.fegetround() == mode
"""


@pytest.mark.skipif(not X86 or sys.platform != "linux", reason="sets the rounding mode by glibc on x86-64")
@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_rounding_mode_of_the_caller_does_not_matter(threads, tmp_path):
    try:
        ctypes.CDLL("libm.so.6")
    except OSError:
        pytest.skip("no glibc here")
    settings = {"FUSEC_NUM_THREADS": threads, "FUSEC_CACHE_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_on_aarch64_the_modes_are_read_set_and_restored() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    definition = pipeline.Definition("float32 x", "float32 z", "z = x + 1", "add")
    layout = Layout(1, (("x", (Step.UNIT,)), ("z", (Step.UNIT,))), (), aligned=16)
    spec = pipeline.Specialisation((("x", FLOAT32), ("z", FLOAT32)), frozenset(), layout)
    kernel = codegen.generate(pipeline.program_of(definition, spec), layout, vector_bits=128)
    module = llvm.parse_assembly(engine.guarded(kernel, engine.ENTRIES["aarch64"]), llvm.create_context())
    module.verify()
    target = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(opt=3)
    text = target.emit_assembly(module)
    entry = text[text.rindex("fusec.add:") :]
    assert re.findall(r"\b(mrs|msr|bl|b)\s", entry) == ["mrs", "msr", "bl", "msr", "b"]
    assert re.search(r"msr\s+FPCR, xzr\s+bl", entry), "the usual modes are 0"
