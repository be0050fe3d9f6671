"""Floats times powers of two by one instruction: the bits of two products, for any number of lanes."""

import numpy as np
import pytest

from fusec import passes
from fusec.base.dtypes import FLOAT32, FLOAT64
from fusec.codegen.llvm import LlvmOptions, generate
from fusec.ir.expr import Pointer, apply
from fusec.ir.loops import ArrayParam, Element, Load, Program, Store
from fusec.runtime.cpu.processor import processor
from tests.support.llvm_check import same_bits
from tests.support.llvm_runner import fresh_symbol, layout_of, run

OPS = ("exp", "exp2", "exp10", "sinh")


def program_of(dtype):
    """One output for each function of x."""
    x = Load(Element("x", Pointer(dtype, "global", const=True)), dtype)
    stores = tuple(Store(Element(op, Pointer(dtype, "global")), apply(op, x)) for op in OPS)
    params = [ArrayParam(op, dtype, written=True, read=False) for op in OPS]
    return passes.run(Program("scaled", (ArrayParam("x", dtype), *params), stores, ()))


@pytest.mark.skipif(processor().permutes < 512, reason="needs AVX-512")
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
def test_one_instruction_gives_the_bits_of_two_products(dtype):
    rng, kind = np.random.default_rng(0), dtype.numpy
    most = 110 if dtype == FLOAT32 else 760
    x = np.concatenate([rng.uniform(-most, most, 3000), [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, most]]).astype(kind)
    program, found = program_of(dtype), {}
    for permutes, lanes in ((0, 16), (512, 4), (512, 16), (512, 32), (512, 1)):
        arrays = {"x": x, **{op: np.zeros_like(x) for op in OPS}}
        layout = layout_of(program, arrays, x.shape)
        kernel = generate(program, layout, LlvmOptions(symbol=fresh_symbol(), lanes=lanes, permutes=permutes))
        assert ("avx512.mask.scalef" in kernel.source) == (permutes == 512 and lanes > 1)
        run(kernel, program, arrays, {}, x.shape)
        for op in OPS:
            assert same_bits(arrays[op], found.setdefault(op, arrays[op])), f"{op}, {lanes} lanes"
