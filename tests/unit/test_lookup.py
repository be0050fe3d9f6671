"""Constant tables: every way to read an entry gives the interpreter's bits, and the text of one reads back."""

import numpy as np
import pytest

from fusec.base.dtypes import FLOAT32, FLOAT64, INT32, INT64, UINT32, UINT64, DType
from fusec.codegen.llvm import LlvmOptions, generate
from fusec.ir.expr import Const, Expr, Lookup, const
from fusec.ir.interpret import interpret
from fusec.ir.loops import Assign, Local, Program
from fusec.ir.text import print_program
from fusec.ir.verify import verify
from fusec.passes.fold import fold_expression
from fusec.runtime.cpu.processor import processor
from tests.support.llvm_check import elementwise, same_bits
from tests.support.llvm_runner import fresh_symbol, layout_of, run
from tests.support.parse_ir import parse_program

COUNT = 300
SIZES = (2, 4, 8, 16, 32, 64, 128)
INDICES = (INT32, UINT32, INT64, UINT64)


def table(count: int, dtype: DType) -> tuple[Const, ...]:
    rng = np.random.default_rng(count)
    if dtype.is_integer:
        return tuple(Const(int(bits) >> 64 - dtype.bits, dtype) for bits in rng.integers(0, 2**64, count, np.uint64))
    return tuple(const(number, dtype) for number in rng.normal(size=count))


def program_of(dtype: DType, index: DType) -> Program:
    """An entry of a table of every size; and of one by an index that is the same for all elements."""

    def body(i: Expr, **_: Expr) -> list[Assign]:
        varying = [Assign(f"z{count}", Lookup(table(count, dtype), i, dtype)) for count in SIZES]
        return [*varying, Assign("fixed", Lookup(table(16, dtype), Local("zero", index), dtype))]

    outputs = {f"z{count}": dtype for count in SIZES} | {"fixed": dtype, "zero": index}
    return elementwise({"i": index}, outputs, body)


def arrays_of(program: Program, index: DType) -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(3).integers(0, 256, COUNT * index.nbytes, dtype=np.uint8).view(index.numpy)
    arrays = {param.name: np.zeros(COUNT, param.dtype.numpy) for param in program.arrays}
    return arrays | {"i": numbers}


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64, *INDICES], ids=str)
@pytest.mark.sampled(5)
def test_entries_have_the_interpreters_bits_by_permutation_and_from_memory(dtype: DType, index: DType) -> None:
    program = program_of(dtype, index)
    expected = arrays_of(program, index)
    interpret(program, expected, {}, (COUNT,))
    for lanes, permutes in ((1, 512), (4, 256), (16, 0), (16, 256), (4, 512), (8, 512), (16, 512), (64, 512)):
        if permutes > processor().permutes:
            continue
        arrays = arrays_of(program, index)
        layout = layout_of(program, arrays, (COUNT,))
        kernel = generate(program, layout, LlvmOptions(symbol=fresh_symbol(), lanes=lanes, permutes=permutes))
        run(kernel, program, arrays, {}, (COUNT,))
        for name, wanted in expected.items():
            assert same_bits(arrays[name], wanted), f"{name}, {lanes} lanes, permutations of {permutes} bits"


def test_a_table_reads_back_from_its_text() -> None:
    program = program_of(FLOAT64, INT32)
    verify(program)
    assert parse_program(print_program(program)) == program


def test_an_entry_of_a_known_index_is_a_constant() -> None:
    entries = table(16, FLOAT32)
    assert fold_expression(Lookup(entries, const(-3, INT32), FLOAT32)) is entries[13]


@pytest.mark.parametrize(
    ("values", "index", "reason"),
    [
        (table(2, FLOAT32)[:1], INT32, "a table of 1 entries"),
        (table(4, FLOAT32)[:3], INT32, "a table of 3 entries"),
        (table(4, FLOAT32), FLOAT32, "a table indexed by float32"),
        ((*table(2, FLOAT32)[:1], const(1e-40, FLOAT32)), INT32, "e-41|1e-40 in a table"),
        ((*table(2, FLOAT32)[:1], const(np.inf, FLOAT32)), INT32, "inf in a table"),
        ((*table(2, FLOAT32)[:1], const(1.0, FLOAT64)), INT32, "in a table of float32"),
    ],
)
def test_a_table_that_some_target_could_not_hold_is_refused(values, index: DType, reason: str) -> None:
    broken = elementwise({"i": index}, {"z": FLOAT32}, lambda i, z: [Assign("z", Lookup(values, i, FLOAT32))])
    with pytest.raises(AssertionError, match=reason):
        verify(broken)
