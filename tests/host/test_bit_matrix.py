"""Every op on every dtype leaves the same bits wherever it runs, and NumPy's where NumPy defines them.

Interpreter = CPU on one thread, on two, in parts, for three levels of processors = CUDA = its PTX = Metal.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from matrix_cpu import FEW, VARIANTS, in_process
from matrix_programs import beyond_narrow_cases, conversion_cases, narrow_cases, op_cases, ops_of
from matrix_targets import TARGETS, Outputs, Target, interpreted, run
from programs import Case
from same_bits import assert_same_bits

from fusec.base.dtypes import STORAGE_FLOATS
from fusec.base.ops import TABLE
from fusec.runtime.cpu.processor import AVX2_LEVEL

DRAWN = {"few": 150, "all": 20_000}  # random operands beside the hard ones
SIZES = ["few", pytest.param("all", marks=pytest.mark.slow)]
LEVELS = ("native", "avx2", "sse2")


@dataclass(frozen=True)
class Matrix:
    """The cases with what the interpreter leaves of each."""

    cases: list[Case]
    expected: list[Outputs]
    everything: bool

    def part(self, turn: int, turns: int) -> list[int]:
        """The numbers of the cases that a slow target takes: every `turns`-th, or each."""
        return [at for at in range(len(self.cases)) if self.everything or at % turns == turn]


@pytest.fixture(scope="module")
def matrix(request: pytest.FixtureRequest) -> Matrix:
    everything = request.param == "all"
    count = DRAWN[request.param]
    cases = [*op_cases(count, everything), *narrow_cases(count, everything), *conversion_cases(count)]
    return Matrix(cases, [interpreted(case) for case in cases], everything)


def compare(found: Outputs, expected: Outputs, what: str) -> list[str]:
    """What differs, a line for every output."""
    wrong = []
    for name, wanted in expected.items():
        try:
            assert_same_bits(found[name], wanted, f"{what}, {name}: ")
        except AssertionError as error:
            wrong.append(str(error))
    return wrong


def has(level: str) -> bool:
    """Whether this machine can run kernels for a level of processors."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    x86 = llvm.get_process_triple().startswith("x86_64")
    return level == "native" or (x86 and (level == "sse2" or all(features.get(name, False) for name in AVX2_LEVEL)))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("matrix", SIZES, indirect=True)
def test_the_cpu_leaves_the_interpreters_bits(matrix: Matrix, level: str, tmp_path: Path) -> None:
    """However the range is divided, on processors with and without wide vectors and fused instructions."""
    if not has(level):
        pytest.skip(f"this machine cannot run kernels for {level}")
    chosen = matrix.part(LEVELS.index(level), 1 if level == "native" else 8)
    variants = tuple(VARIANTS) if matrix.everything else FEW
    found = in_process(level, [matrix.cases[at] for at in chosen], variants, tmp_path)
    wrong = [
        line
        for at, by_variant in zip(chosen, found, strict=True)
        for variant, outputs in by_variant.items()
        for line in compare(outputs, matrix.expected[at], f"{level}, {variant}, {matrix.cases[at].name}")
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("matrix", SIZES, indirect=True)
def test_other_targets_leave_the_interpreters_bits(matrix: Matrix, target: Target, tmp_path: Path) -> None:
    if not target.available:
        pytest.skip("no compiler for this target's text")
    chosen = [at for at in matrix.part(target.turns - 1, target.turns) if target.accepts(matrix.cases[at])]
    found = run(target, [matrix.cases[at] for at in chosen], tmp_path)
    wrong = [
        line
        for at, outputs in zip(chosen, found, strict=True)
        for line in compare(outputs, matrix.expected[at], matrix.cases[at].name)
    ]
    assert not wrong, "\n".join(wrong)


# where NumPy's bits are not the contract, and why: by op and dtype
OPEN = {
    **dict.fromkeys(
        [(op, kind) for op in ("multiply", "square") for kind in ("complex64", "complex128")], "may be fused"
    ),
    **dict.fromkeys([("sign", "complex64"), ("sign", "complex128")], "the standard wants nan where a part is nan"),
    ("sign", "bfloat16"): "the standard wants 0 for -0.0; ml_dtypes keeps its sign",
    ("spacing", "bfloat16"): "ml_dtypes' is negative at -0.0, NumPy's for all other floats positive",
    ("spacing", "float16"): "NumPy's is positive for negative halves, negative for all other floats",
}
ZEROS = {"minimum", "maximum", "fmin", "fmax", "clip"}  # of which NumPy leaves the sign open


def is_open(op: str, dtype: np.dtype) -> bool:
    """Whether the signs of zeros may differ; for halves NumPy's nextafter(0.0, -0.0) is the first, not the second."""
    return op in ZEROS or (op == "nextafter" and dtype == np.float16)


@pytest.mark.parametrize("matrix", SIZES, indirect=True)
def test_the_interpreter_leaves_numpys_bits(matrix: Matrix) -> None:
    """Wherever a row of the op table names NumPy's function."""
    wrong, seen = [], set()
    for case, expected in zip(matrix.cases, matrix.expected, strict=True):
        for name, op in ops_of(case).items():
            row = TABLE[op]
            operands = [case.arrays[each] for each in "xyw"[: row.arity]]
            if not row.reference or (op, operands[0].dtype.name) in OPEN:
                continue
            found = expected[name]
            with np.errstate(all="ignore"):
                wanted = numpys(row.reference, operands).astype(found.dtype)
                if is_open(op, found.dtype):
                    found, wanted = (np.where(each == 0, np.abs(each), each) for each in (found, wanted))
            seen.add(op)
            wrong += compare({op: found}, {op: wanted}, case.name)
    assert not wrong, "\n".join(wrong)
    assert {row.name for row in TABLE.values() if row.reference} <= seen | {"convert"}


def numpys(name: str, operands: list[np.ndarray]) -> np.ndarray:
    """What NumPy computes."""
    if name == "ldexp":
        return np.ldexp(operands[0], np.clip(operands[1].astype(object), -9999, 9999).astype(np.int32))
    return np.asarray(getattr(np, name)(*operands))


@pytest.mark.parametrize("matrix", SIZES, indirect=True)
def test_conversions_are_numpys_where_numpy_defines_them(matrix: Matrix) -> None:
    """Not from floats to integers out of range, nor to float8 where a rounding through float32 could happen twice."""
    wrong = []
    for case, expected in zip(matrix.cases, matrix.expected, strict=True):
        x = case.arrays["x"]
        for name, found in expected.items():
            if not name.startswith("to_") or not numpy_defines(x.dtype, found.dtype):
                continue
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted = x.astype(found.dtype)
            inside = representable(x, found.dtype)
            wrong += compare({name: found[inside]}, {name: wanted[inside]}, case.name)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("target", ["interpreter", "native", "sse2", *TARGETS])
@pytest.mark.sampled(3)
def test_nan_and_overflow_have_the_codes_of_ml_dtypes_in_narrow_floats(target: str, tmp_path: Path) -> None:
    """The sign and the payload of nan are not promised, but a positive nan has one code in each of these dtypes."""
    cases = beyond_narrow_cases()
    if target == "interpreter":
        found = [interpreted(case) for case in cases]
    elif target in TARGETS:
        if not TARGETS[target].available:
            pytest.skip("no compiler for this target's text")
        cases = [case for case in cases if TARGETS[target].accepts(case)]
        found = run(TARGETS[target], cases, tmp_path)
    else:
        if not has(target):
            pytest.skip(f"this machine cannot run kernels for {target}")
        found = [outputs[FEW[0]] for outputs in in_process(target, cases, FEW[:1], tmp_path)]
    for case, outputs in zip(cases, found, strict=True):
        for name, codes in outputs.items():
            with np.errstate(all="ignore"):
                wanted = case.arrays["x"].astype(codes.dtype)
            assert codes.tobytes() == wanted.tobytes(), f"{case.name}, {name}: {codes.view(f'u{codes.itemsize}')}"


def numpy_defines(source: np.dtype, target: np.dtype) -> bool:
    """ml_dtypes converts through float32, so that doubles and wide integers may be rounded twice."""
    narrow = [dtype.numpy for dtype in STORAGE_FLOATS if dtype.name != "float16"]
    if target in narrow:
        return source == np.float32 or source == np.float16 or source.itemsize == 1
    return True


def representable(x: np.ndarray, target: np.dtype) -> np.ndarray:
    """Where a float fits an integer; anything fits a float."""
    if target.kind not in "iu" or x.dtype.kind in "iub":
        return np.ones(x.shape, bool)
    limits = np.iinfo(target)
    with np.errstate(invalid="ignore"):
        value = (x.real if x.dtype.kind == "c" else x).astype(np.float64)
        return ((value > limits.min - 1.0) | (value == limits.min)) & (value < limits.max + 1.0)
