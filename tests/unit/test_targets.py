"""The table of targets: nothing else names one, and a row with one module makes another."""

import ast
import shutil
import subprocess
from pathlib import Path

import pytest

import fusec
from fusec.cli import main
from fusec.codegen import TARGETS, Target

PACKAGE = Path(fusec.__file__).parent
WORDS_OF_OTHERS = {"errors/alternatives.py": "cuda", "frontends/c/classify.py": "asm"}  # numba's, and C's
SAXPY = ("float32 a, float32 x, float32 y", "float32 z", "z = a * x + y", "saxpy")
ON_HOST = """
#define __kernel
#define __global
#define __constant static const
typedef unsigned short ushort; typedef unsigned uint; typedef unsigned long ulong;
long get_global_id(int); float sub_group_shuffle(float, int); float sub_group_shuffle_down(float, int);
int as_int(float); uint as_uint(float); float as_float(uint); long as_long(double); double as_double(ulong);
float fma(float, float, float); float floor(float); float rint(float); float trunc(float); float fabs(float);
"""


def test_only_the_table_and_code_generators_name_targets() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.split("/")[0] in ("codegen", "runtime", "grammar"):
            continue  # the runtimes, which see no generators, assert that they got what they run
        text = path.read_text()
        if any(f'"{target}"' in text for target in TARGETS):
            words = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Constant)]
            named = [each for each in words if each.value in TARGETS and WORDS_OF_OTHERS.get(name) != each.value]
            found += [f"{name}, line {each.lineno}: {each.value!r}" for each in named]
    assert not found, "\n".join(found)


@pytest.fixture
def opencl(monkeypatch: pytest.MonkeyPatch) -> str:
    row = Target("opencl", "OpenCL C++", "//", ".clcpp", "tests.support.opencl", threads=True, joins=True)
    monkeypatch.setitem(TARGETS, row.name, row)
    return row.name


def test_one_row_and_one_module_make_a_target(opencl: str) -> None:
    saxpy = fusec.ElementwiseKernel(*SAXPY).source(opencl, scalars=["a"])
    assert "__kernel void saxpy(" in saxpy
    assert "__global const float* x_data" in saxpy
    assert "const uint i = get_global_id(0);" in saxpy
    total = fusec.ReductionKernel("float32 x", "float32 y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    assert total.source(opencl).count("__kernel void norm_") > 1  # all phases in one file
    assert "sub_group_shuffle_down(" in total.source(opencl, shape=(3, 200), axis=1)
    running = fusec.ScanKernel("float32 x", "float32 y", "x", "a + b", "y = a", "0", "running")
    assert "__kernel void running" in running.source(opencl)
    with pytest.raises(ValueError, match="'ir' and 'opencl'"):
        fusec.ElementwiseKernel(*SAXPY).source("opengl")


def test_the_command_line_knows_a_new_target(opencl: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kernels.toml"
    parts = ('in_params = "T x"', 'out_params = "T z"', 'types = { T = "float32" }')
    path.write_text("\n".join(f"[kernel.k{n}]\noperation = 'z = x + {n}'\n" + "\n".join(parts) for n in (1, 2)))
    assert main.main(["compile", str(path), "--target", opencl]) == 0
    assert capsys.readouterr().out.count("__kernel void k") == 2


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_what_a_new_target_prints_is_a_program(opencl: str) -> None:
    mean = fusec.ReductionKernel("float32 x, float16 w", "float32 y", "x * w", "a + b", "y = exp(a)", "0", "mean")
    text = ON_HOST + mean.source(opencl, shape=(3, 200), axis=1)
    subprocess.run(["g++", "-fsyntax-only", "-w", "-xc++", "-"], input=text, text=True, check=True)
