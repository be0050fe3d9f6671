"""A file of several kernels compiles: what they share stands there once, what only shares a name is told apart."""

import re
import subprocess
from pathlib import Path

import pytest
from metal_on_host import CLANG, FLAGS, HERE, STRICT

from fusec import ElementwiseKernel
from fusec.codegen.c_family.file import join_kernels
from fusec.compiler import pipeline
from tests.support.specialised import specialisation

PREAMBLE = """
struct P { float f; %s };
__device__ float g(float x) { return x * %s; }
__device__ float f(float x) { P p; p.f = g(x); return p.f * 2.0f; }
"""
SAME = "__device__ float halved(float x) { return 0.5f * x; }"
BODY = "z = f(x) + tanh(x) + h + halved(x)"


def kernels() -> list[ElementwiseKernel]:
    """Two of one text but for what their functions mean, and one with a function called like the first."""
    later = "\n\n" + SAME  # on another line, which only a comment tells
    return [
        ElementwiseKernel("float32 x, float16 h", "float32 z", BODY, "one", preamble=later + PREAMBLE % ("", "3")),
        ElementwiseKernel("float32 x, float16 h", "float32 z", BODY, "two", preamble=SAME + PREAMBLE % ("int b;", "4")),
        ElementwiseKernel(
            "complex64 x, int32 h", "float16 z, raw int32 q", "q[0] = one(h / (h - 1)); z = x.real() * h", "three",
            preamble="__device__ int one(int x) { return x << 3; }",
        ),
        ElementwiseKernel("complex64 x", "float32 z", "z = (x * x).imag()", "four"),
    ]  # fmt: skip


def text_for(target: str) -> str:
    return join_kernels([pipeline.generate(each.definition, specialisation(each), target) for each in kernels()])


def entry(text: str, name: str, target: str) -> str:
    head = {"cuda": rf"__launch_bounds__\([\d, ]+\) {name}\(", "metal": rf"kernel void {name}\("}[target]
    found = re.search(rf"{head}.*?\n}}\n", text, re.S)
    assert found is not None, f"{name} is not an entry of the file"
    return found[0]


@pytest.mark.parametrize("target", ["cuda", "metal"])
def test_what_differs_under_one_name_gets_the_name_of_its_kernel(target: str) -> None:
    text = re.sub("// [^e].*", "", text_for(target))
    assert re.search(r"\bf\(x\)", entry(text, "one", target))
    assert "f_two(x)" in entry(text, "two", target)
    assert "one_three(" in entry(text, "three", target)
    assert {f"struct {name} {{" in text for name in ("P", "P_two", "complex64")} == {True}
    assert len(re.findall(r"^static .*float halved\(", text, re.MULTILINE)) == 1
    assert len(re.findall(r"float fusec_tanh_float32\(", text)) == 1
    assert len(re.findall("exact bits", text)) == 1
    assert "return x * 3.0f;" in text
    assert "return x * 4.0f;" in text  # and a suffix of a number is no word


@pytest.mark.parametrize("target", ["cuda", "metal"])
def test_a_file_of_one_kernel_is_its_source(target: str) -> None:
    for each in kernels():
        kernel = pipeline.generate(each.definition, specialisation(each), target)
        assert join_kernels([kernel]) == kernel.source == each.source(target)


def test_nvrtc_compiles_the_file() -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="the extra fusec[cuda] brings NVRTC")
    from test_nvrtc import compile_cubin

    image, _ = compile_cubin(text_for("cuda"), "sm_90")
    assert all(name in image for name in (b"one", b"two", b"three", b"four"))


@pytest.mark.skipif(CLANG is None, reason="clang is missing")
def test_clang_compiles_the_file(tmp_path: Path) -> None:
    text = text_for("metal").replace("#include <metal_stdlib>\n", "")
    text = text.replace("struct complex64 { float re, im; };\n", "")  # the header has one that counts its stores
    source = tmp_path / "file.cpp"
    source.write_text(f'#include "{HERE / "metal_on_host.hpp"}"\n' + re.sub(r" \[\[\w+(\(\d+\))?\]\]", "", text))
    options = [flag for flag in (*FLAGS, *STRICT) if flag != "-shared"]
    done = subprocess.run([CLANG, *options, "-fsyntax-only", source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
