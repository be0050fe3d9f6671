"""The printed CUDA and Metal of a few kernels, as a reader sees them; FUSEC_UPDATE_GOLDEN=1 writes the files anew."""

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "host"))

import numpy as np  # noqa: E402
from all_programs import all_cases  # noqa: E402
from arguments import layout_of  # noqa: E402
from reduction_runs import reduced  # noqa: E402
from statement_programs import atomic_case  # noqa: E402

from fusec.base.dtypes import FLOAT32, INT32  # noqa: E402
from fusec.codegen import TARGETS, cuda, metal  # noqa: E402
from tests.support import reduction_examples  # noqa: E402

NAMES = {
    "saxpy on 1000": "saxpy",
    "saxpy transposed": "saxpy_strided",
    "saxpy three axes wide": "saxpy_wide",
    "saxpy turned in squares": "saxpy_turned",
    "python nearest (21, 19)": "stencil",
    "counted loop": "counted_loop",
    "two steps": "two_steps",
    "else chain": "else_chain",
    "early return": "early_return",
    "local array": "local_array",
    "functions and structs": "functions",
    "guarded load": "guarded_load",
    "raw deep view": "raw_view",
    "copy of 17 float16": "copy_float16",
    "complex of float32": "complex",
    "atomic add on int32": "atomic_add",
    "atomic minimum on float32": "atomic_minimum",
}
ATOMICS = [case for dtype in (INT32, FLOAT32) for op in ("add", "minimum") if (case := atomic_case(op, dtype, False))]
CASES = {NAMES[case.name]: case for case in [*all_cases(), *ATOMICS] if case.name in NAMES}
GENERATORS = {"cuda": cuda.generate, "metal": metal.generate}


@pytest.mark.parametrize("target", GENERATORS)
@pytest.mark.parametrize("name", NAMES.values())
def test_the_printed_kernel_is_the_one_on_file(name, target):
    case = CASES[name]
    generate, suffix = GENERATORS[target], TARGETS[target].suffix
    check(
        generate(case.program, layout_of(case.program, case.arrays, case.shape, case.wide, case.aligned)).source,
        HERE / target / f"{name}{suffix}",
    )


@pytest.mark.parametrize("target", GENERATORS)
@pytest.mark.parametrize(("name", "shape", "axis"), [("sum_of_rows", (3, 200), 1), ("sum_of_columns", (100, 3), 0)])
def test_the_printed_reduction_is_the_one_on_file(name, shape, axis, target):
    generate, suffix = GENERATORS[target], TARGETS[target].suffix
    reduction = reduction_examples.simple("add", FLOAT32)
    run = reduced(name, reduction, {"x": np.ones(shape, "f4")}, shape, (axis,))
    check(generate(run.programs[0], run.layouts[0]).source, HERE / target / f"{name}{suffix}")


def check(text, file):
    if os.environ.get("FUSEC_UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert file.exists(), f"{file.name} is missing; FUSEC_UPDATE_GOLDEN=1 writes it"
    assert text == file.read_text()
