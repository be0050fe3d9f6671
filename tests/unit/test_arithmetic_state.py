"""Kernels give their bits whatever state of arithmetic the calling thread is in."""

import ctypes
import platform
import re
import subprocess
import sys

import llvmlite.binding as llvm
import pytest

from fusec.base.dtypes import FLOAT32
from fusec.base.kernel_abi import Layout, Step
from fusec.codegen import llvm as codegen
from fusec.compiler import pipeline
from fusec.frontends.c.definition import Definition
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


FIRST_CALLS = """
import ctypes, hashlib, sys, numpy as np, fusec
libm = ctypes.CDLL("libm.so.6")
x, y = np.linspace(0.1, 30, 1000).astype("f4"), np.linspace(-3, 3, 1000)
x[:9] = y[:9] = 0  # to which the least constants are added
state = ctypes.create_string_buffer(64)
if sys.argv[1] == "flush":
    assert libm.fegetenv(state) == 0
    modes = ctypes.c_uint32.from_buffer(state, 28)  # MXCSR in the environments of glibc and musl
    modes.value |= 0x8040
    assert libm.fesetenv(state) == 0
else:
    assert libm.fesetround(int(sys.argv[1])) == 0
found = []
for body in "x * 0.1f", "x * (1.0/3.0*0.7)", "x + 4e-310", "sin(x)", "tanh(x)", "pow(x, 1.7)":
    k = fusec.ElementwiseKernel("T x", "T z", "z = " + body, "k")
    found += [k(x), k(y), k.source("cuda", types={"T": "float64"}).encode()]
found += [fusec.ReductionKernel("T x", "T z", "x * 0.1 / 3.0", "a + b", "z = a * (1.0 / 7.0)", "0.7", "r")(y)]
found += [fusec.softmax(y), fusec.logsumexp(x), fusec.cumsum(x), fusec.fuse(lambda v: np.exp(v * 0.1))(x)]
found += [fusec.evaluate("x * 0.1 + 1.0 / 3.0 * 0.7", {"x": x})]
try:
    fusec.ElementwiseKernel("T x", "T z", "z = x +", "wrong")
except fusec.FusecError:
    pass
if sys.argv[1] == "flush":
    assert libm.fegetenv(state) == 0 and modes.value & 0x8040 == 0x8040
else:
    assert libm.fegetround() == int(sys.argv[1])
print(*[hashlib.sha256(np.asarray(each).tobytes()).hexdigest()[:8] for each in found])
"""


@pytest.mark.skipif(not X86 or sys.platform != "linux", reason="sets the modes by glibc on x86-64")
@pytest.mark.slow
def test_kernels_are_made_alike_in_every_mode(tmp_path):
    try:
        ctypes.CDLL("libm.so.6")
    except OSError:
        pytest.skip("no glibc here")
    found = {}
    for mode in ("0", str(0x400), str(0x800), str(0xC00), "flush"):  # to nearest, down, up, to zero
        settings = {"FUSEC_CACHE_DIR": str(tmp_path / mode), "PATH": "/usr/bin:/bin"}
        command = [sys.executable, "-c", FIRST_CALLS, mode]
        done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found[mode] = done.stdout.split()
    assert all(each == found["0"] for each in found.values()), found


def test_on_aarch64_the_modes_are_read_set_and_restored() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    definition = Definition("float32 x", "float32 z", "z = x + 1", "add")
    layout = Layout(1, (("x", (Step.UNIT,)), ("z", (Step.UNIT,))), (), aligned=16)
    spec = pipeline.Specialisation((("x", FLOAT32), ("z", FLOAT32)), frozenset(), layout)
    kernel = codegen.generate(pipeline.program_of(definition, spec), layout, codegen.LlvmOptions(vector_bits=128))
    module = llvm.parse_assembly(engine.guarded(kernel, engine.ENTRIES["aarch64"]), llvm.create_context())
    module.verify()
    target = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(opt=3)
    text = target.emit_assembly(module)
    entry = text[text.rindex("fusec.add:") :]
    assert re.findall(r"\b(mrs|msr|bl|b)\s", entry) == ["mrs", "msr", "bl", "msr", "b"]
    assert re.search(r"msr\s+FPCR, xzr\s+bl", entry), "the usual modes are 0"
