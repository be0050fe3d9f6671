"""Quotients and remainders by a literal, an argument or an array are the same, and those of exact arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fusec import passes
from fusec.base.dtypes import INTEGERS, DType
from fusec.codegen.llvm import LlvmOptions, generate
from fusec.ir.expr import Expr, Pointer, apply, const
from fusec.ir.loops import ArrayParam, Element, Load, Local, Program, ScalarParam, Store
from fusec.runtime.cpu.processor import processor
from tests.support.llvm_runner import fresh_symbol, layout_of, run

Array = NDArray[Any]

OPS = ("quotient", "modulo", "floor_divide", "remainder")


def dividends(dtype: DType) -> Array:
    """The ends of the range, multiples of small numbers and their neighbours, and numbers of any length."""
    limits = np.iinfo(dtype.numpy)
    rng = np.random.default_rng(dtype.bits)
    drawn = rng.integers(limits.min, limits.max, 400, dtype.numpy, endpoint=True)
    drawn >>= rng.integers(0, dtype.bits, 400).astype(dtype.numpy)
    ends = [limits.min, limits.min + 1, limits.min // 2, limits.max, limits.max - 1, limits.max // 2, *range(22)]
    return np.concatenate([np.array(ends, dtype.numpy), drawn])


def divisors(dtype: DType) -> list[int]:
    """Zero, small numbers, powers of two and their neighbours, and large ones, with both signs."""
    limits = np.iinfo(dtype.numpy)
    half = 1 << dtype.bits // 2
    sizes = [
        0,
        1,
        2,
        3,
        5,
        7,
        10,
        64,
        100,
        half - 1,
        half,
        half + 1,
        limits.max // 3,
        *range(limits.max - 2, limits.max),
    ]
    sizes += [limits.max // 2 + 1, limits.max // 2 + 2, limits.min, *dividends(dtype)[-12:].tolist()]
    return sorted({each for size in sizes for each in (size, -size) if limits.min <= each <= limits.max})


def exact(op: str, x: int, y: int) -> int:
    if y == 0:
        return 0
    floor, rest = divmod(x, y)
    if op in ("quotient", "modulo") and rest and (x < 0) != (y < 0):
        floor, rest = floor + 1, rest - y
    return floor if op in ("quotient", "floor_divide") else rest


def wrapped(numbers: list[int], dtype: DType) -> Array:
    """Numbers modulo the width of their type."""
    return np.array([each % (1 << dtype.bits) for each in numbers], f"u{dtype.bits // 8}").view(dtype.numpy)


def program_of(dtype: DType, divisor: Expr, params: tuple[Any, ...]) -> Program:
    """One output for each op."""
    x = Load(Element("x", Pointer(dtype, "global", const=True)), dtype)
    stores = tuple(Store(Element(op, Pointer(dtype, "global")), apply(op, x, divisor)) for op in OPS)
    outputs = [ArrayParam(op, dtype, written=True, read=False) for op in OPS]
    return passes.run(Program("divides", (ArrayParam("x", dtype), *params, *outputs), stores, ()))


def results(program: Program, given: dict[str, Array], scalars: dict[str, Any]) -> dict[str, Array]:
    arrays = {**given, **{op: np.zeros_like(given["x"]) for op in OPS}}
    layout = layout_of(program, arrays, given["x"].shape)
    kernel = generate(program, layout, LlvmOptions(processor().vector_bits, symbol=fresh_symbol(), lanes=16))
    run(kernel, program, arrays, scalars, given["x"].shape)
    return arrays


@pytest.mark.parametrize("dtype", INTEGERS)
def test_the_divisor_may_be_a_literal_an_argument_or_an_array(dtype: DType) -> None:
    x = dividends(dtype)
    scalar = program_of(dtype, Local("k", dtype), (ScalarParam("k", dtype),))
    loaded = Load(Element("y", Pointer(dtype, "global", const=True)), dtype)
    array = program_of(dtype, loaded, (ArrayParam("y", dtype),))
    for number, k in enumerate(divisors(dtype)):
        wanted = {op: wrapped([exact(op, each, k) for each in x.tolist()], dtype) for op in OPS}
        cases = {
            "argument": results(scalar, {"x": x}, {"k": dtype.numpy.type(k)}),
            "array": results(array, {"x": x, "y": np.full_like(x, k)}, {}),
        }
        if number % 3 == 0:
            cases["literal"] = results(program_of(dtype, const(k, dtype), ()), {"x": x}, {})
        for kind, found in cases.items():
            for op in OPS:
                wrong = np.flatnonzero(found[op] != wanted[op])[:4]
                assert not len(wrong), f"{op} of {x[wrong]} by {kind} {k}: {found[op][wrong]}, not {wanted[op][wrong]}"
