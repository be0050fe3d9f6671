"""The kernels of a Python file are compiled from its text: nothing of it is imported or run."""

from pathlib import Path

import pytest

from fusec.cli import main, python_files
from fusec.errors import FusecError

FILE = '''
import math
import os
import numpy as np
import nowhere
import fusec
from fusec import kernel, atomic_add as add
from fusec.random import uniform32
from scipy.special import erf
import scipy.special as sp

raise SystemExit("it was run")
SCALE = 1 / math.sqrt(2)
HALF: float = np.float32(0.5)
LIMITS = (1, -2.5, 2 * SCALE ** 2)
HOME = os.environ["HOME"]
TABLE = nowhere.table


def cdf(x, shift=0):
    return HALF * (1 + erf(x * SCALE)) + LIMITS[2] + shift


@fusec.elementwise
def gelu(x):
    """Not SCALE."""
    return x * cdf(x) + sp.erfc(x) * 0


@fusec.stencil(boundary=("reflect", "wrap"), name="edges")
def laplacian(a: fusec.float32 if 0 else "int32"):
    return a[-1, 0] + a[1, 0] + a[0, -1] + a[0, 1] - 4 * a[0, 0]


@kernel(bounds="check")
def histogram(data: np.int64, bins: "uint32", step: int = 1):
    for i in fusec.grid(data.size):
        add(bins, data[i], step)


@kernel
def noise(out: "float32", key: "uint64"):
    for i, j in fusec.grid(out.shape):
        out[i, j] = uniform32(key, i * out.shape[1] + j) + math.pi


text = fusec.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = x + y", "add")
'''.replace('fusec.float32 if 0 else "int32"', '"int32"')
TYPES = ["--types", "x=float32"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(FILE)
    return path


def test_every_kernel_is_printed_for_every_target(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [kernel.name for kernel in python_files.read(file)[1]] == ["gelu", "edges", "histogram", "noise", "add"]
    for target, mark in (
        ("cuda", "__global__ void"),
        ("metal", "kernel void"),
        ("llvm", "define void"),
        ("ir", "kernel "),
    ):
        assert main.main(["compile", str(file), *TYPES, "--target", target]) == 0
        assert capsys.readouterr().out.count(mark) >= 5
    assert main.main(["compile", str(file), "--target", "ir", "--name", "gelu", *TYPES]) == 0
    ir = capsys.readouterr().out
    assert "0.70710677" in ir
    assert "histogram" not in ir


def test_options_of_decorators_count(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["compile", str(file), "--name", "histogram"]) == 0
    text = capsys.readouterr().out
    assert "fusec_fault" in text
    assert "atomicAdd" in text
    assert main.main(["compile", str(file), "--name", "noise", "--target", "metal"]) == 0
    assert "ulong key" in capsys.readouterr().out


def test_what_only_running_tells_is_an_error_where_it_is_used(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, what in (
        ("HOME", "computed when the file runs"),
        ("TABLE", "computed when the file runs"),
        ("nowhere", "the module"),
    ):
        file.write_text(FILE.replace("LIMITS[2]", name))
        assert main.main(["compile", str(file), "--name", "gelu", *TYPES]) == 1
        said = capsys.readouterr().err
        assert f"'{name}' is {what}" in said
        assert f"{file}:21:" in said
        assert main.main(["compile", str(file), "--name", "edges"]) == 0
        capsys.readouterr()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name="edges"', "name=HOME", "known only when the file runs"),
        ('name="edges"', "size=3", "no option 'size'"),
        ('("reflect", "wrap")', '"around"', "unknown boundary 'around'"),
        ("return x * cdf(x) + sp.erfc(x) * 0", "return [x]", "a list is not part"),
        ("return x * cdf(x) + sp.erfc(x) * 0", "return x *", "invalid syntax"),
        (FILE, "import fusec\nx = 1\n", "defines no kernel"),
    ],
)
def test_mistakes_are_placed_in_the_file(
    old: str, new: str, message: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(FILE.replace(old, new))
    assert main.main(["compile", str(file), *TYPES]) == 1
    said = capsys.readouterr().err
    assert message in said
    assert str(file) in said or "boundary" in message


def test_types_that_are_missing_are_asked_for(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["compile", str(file)]) == 1
    assert "hint: --types x=float32" in capsys.readouterr().err
    assert main.main(["compile", str(file), "--types", "q=int8"]) == 2
    assert " no q; known: " in capsys.readouterr().err
    assert main.main(["compile", str(file), "--name", "gelu", "--types", "q=int8"]) == 2
    assert "--types: kernel 'gelu' has no q; known: x" in capsys.readouterr().err
    assert main.main(["compile", str(file), "--name", "gelux"]) == 2
    assert "did you mean 'gelu'" in capsys.readouterr().err


def test_harmless_arithmetic_is_done_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(
        "import fusec, math\nN = 9 ** 9 ** 9\nM = math.factorial(10 ** 9)\n"
        "@fusec.elementwise\ndef f(x): return x + N\n@fusec.elementwise\ndef g(x): return x + M\n"
    )
    for kernel, said in zip(
        python_files.read(path)[1], ("line 2: an integer of more", "computed when the file runs"), strict=True
    ):
        with pytest.raises(FusecError, match=said):
            kernel.source("ir", {"x": "float32"})


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["A0 = 3", *(f"A{i + 1} = A{i} * A{i} + A{i}" for i in range(60)), "N = A60"], "(line 14: an integer of more"),
        (["A0 = 1", *(f"A{i + 1} = (A{i}, A{i})" for i in range(40)), "N = A40"], "(line 18: a tuple of more"),
        (["A0 = ()", *(f"A{i + 1} = (A{i},)" for i in range(5000)), "N = A5000"], "a tuple of more than 32 levels"),
        (["A = (1,) * 60000", *(f"B{i} = A + A[0]\nB{i} = A + (1,)" for i in range(99)), "N = B98"], "steps of arith"),
        (["N = (0,) * 10 ** 12"], "(line 2: a tuple of more"),
        (["N = 'a' * 10 ** 11"], "(line 2: a text of more"),
        (["N = '%1000000000d' % 1"], "(line 2: a text of more"),
        (["N = 0x" + "f" * 9999], "(line 2: an integer of more"),
        (["N = np.int64(3) ** 2 ** 70"], "computed when the file runs"),
        (["N = np.power(2 ** 70, 10 ** 9)"], "computed when the file runs"),
        (["N = np.void(10 ** 11)"], "computed when the file runs"),
        (["N = np.int64(10 ** 11) * 'a'"], "computed when the file runs"),
    ],
)
def test_constants_without_bound_are_not_computed(lines: list[str], said: str, tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text("\n".join(["import fusec, numpy as np", *lines, "@fusec.elementwise", "def f(x): return x + N"]))
    (kernel,) = python_files.read(path)[1]
    with pytest.raises(FusecError, match="'N' is ") as caught:
        kernel.source("ir", {"x": "float32"})
    assert said in str(caught.value)


def test_texts_of_kernels_are_bounded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.py"
    path.write_text("import fusec\nk = fusec.ElementwiseKernel('T x', 'T y', 'y = x' + '+x' * 10**9)\n")
    assert main.main(["compile", str(path)]) == 1
    assert f"{path}:2:1: error: this kernel cannot be made" in (said := capsys.readouterr().err)
    assert "(line 2: a text of more than 1048576 characters)" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"C = " + b"-" * 50000 + b"1", "nested too deeply"),
        (b"C = " + b"+".join([b"1"] * 100_000), "nested too deeply"),
        (b"# coding: nope", "unknown encoding"),
        (b"# coding: rot13", "not a text encoding"),
        (b"x = '\xff'", "invalid or missing encoding"),
    ],
)
def test_files_that_cannot_be_read_are_named(
    text: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "k.py"
    path.write_bytes(text)
    assert main.main(["compile", str(path)]) == 2
    assert f"cannot read {path}: " in (shown := capsys.readouterr().err)
    assert said in shown


@pytest.mark.parametrize(("start", "encoding"), [("\ufeff", "utf-8"), ("# coding: latin-1\n", "latin-1")])
def test_files_are_in_the_encoding_that_they_name(start: str, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(f"{start}import fusec\n\u00e9 = 2\n@fusec.elementwise\ndef f(x): return x\n", encoding)
    file, (kernel,) = python_files.read(path)
    assert "\u00e9 = 2" in file.text
    assert kernel.name == "f"


REDUCTIONS = """
import operator
import fusec
from fusec import reduction
raise SystemExit("it was run")
SCALE = 0.25
square = lambda v: v * v


@fusec.reduction(identity=0)
def total(a, b): return a + b


@reduction(map=lambda x, y: square(x - y) * SCALE, finish=lambda held, count: held / count)
def error(a, b):
    return a + b


@reduction
class moments:
    identity = (0.0, -SCALE)
    def map(x): return x, square(x)
    def combine(a, b): return a[0] + b[0], a[1] + b[1]


peak = fusec.reduction(map=lambda x, index: (x, index),
                       combine="def later(a, b):\\n  if b[0] > a[0]: return b\\n  return a")
"""


def test_reductions_are_printed_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "reductions.py"
    path.write_text(REDUCTIONS)
    for target, mark in (("cuda", "__global__ void"), ("metal", "kernel void"), ("llvm", "define void")):
        assert main.main(["compile", str(path), "--types", "x=float32,y=float32", "--target", target]) == 0
        assert capsys.readouterr().out.count(mark) == 8  # two for each: a million elements are many chunks
    assert main.main(["compile", str(path), "--name", "error"]) == 1
    assert "is missing the argument 'x'" in capsys.readouterr().err
    path.write_text(REDUCTIONS.replace("square(x - y)", "squaer(x - y)"))
    assert main.main(["compile", str(path), "--name", "error", "--types", "x=float32,y=float32"]) == 1
    assert "reductions.py:14:29: error: unknown name 'squaer'" in capsys.readouterr().err


def test_fused_functions_of_a_file_need_its_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "models.py"
    path.write_text("import fusec\n@fusec.fuse\ndef step(x):\n    return 2 * x\nhalf = fusec.fuse(lambda x: x / 2)\n")
    assert main.main(["compile", str(path)]) == 1
    assert "fusec compile models:step --types" in capsys.readouterr().err
    path.write_text(path.read_text() + "@fusec.elementwise\ndef twice(x):\n    return 2 * x\n")
    assert main.main(["compile", str(path), "--name", "half"]) == 2
    assert "half is a fused function" in capsys.readouterr().err
    told = "step and half are fused functions, which must run to be traced; fusec compile models:step --types"
    assert main.main(["compile", str(path), "--types", "x=float32"]) == 0
    printed = capsys.readouterr()
    assert "twice" in printed.out
    assert printed.err.startswith(f"fusec: note: left out of {path}: {told} PARAMETER=float32 imports")
    assert main.main(["compile", str(path), "--name", "twice", "--types", "x=float32"]) == 0
    assert capsys.readouterr().err == ""
    assert main.main(["compile", f"{path}:step"]) == 2
    assert "step is a fused function" in capsys.readouterr().err
    assert main.main(["compile", f"{path}:twice"]) == 2
    assert f"fusec compile {path} --name twice" in capsys.readouterr().err


def test_a_null_byte_is_shown_where_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.py"
    path.write_text("import fusec\n\n@fusec.elementwise\ndef f(x):\n    return x\0\n")
    assert main.main(["compile", str(path), "--types", "x=float32"]) == 1
    assert "broken.py:5:13: error: not Python: source code string cannot contain null bytes" in capsys.readouterr().err
