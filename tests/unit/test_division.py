"""Remainders and floored quotients are NumPy's for the hardest pairs, after few steps, interpreted and compiled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fusec.base.dtypes import COMPUTE_FLOATS, FLOAT32, DType
from fusec.base.kernel_abi import Kernel
from fusec.codegen.llvm import LlvmOptions, generate
from fusec.ir import interpret
from fusec.ir.expr import apply
from fusec.ir.loops import Assign, Program
from fusec.math import callees, define
from fusec.passes.expand import expand
from tests.support.llvm_check import elementwise
from tests.support.llvm_runner import fresh_symbol, layout_of, run

Array = NDArray[Any]

OPS = ("fmod", "remainder", "floor_divide")
UNSIGNED = {32: np.dtype(np.uint32), 64: np.dtype(np.uint64)}
MOST_TURNS = 64  # a turn takes off 21 binary digits of at most 277 (float32), or 50 of at most 2098 (float64)


def hard_values(dtype: DType) -> Array:
    """Subnormals, powers of two and their neighbours, the ends of the range, inf and nan, with both signs."""
    mantissa, least, most = (23, -149, 127) if dtype == FLOAT32 else (52, -1074, 1023)
    exponents = [*range(least, least + 4), -3, -1, 0, 1, 5, mantissa - 2, mantissa, mantissa + 2, most // 2, most]
    exponents += range(least + mantissa - 2, least + mantissa + 3)  # around the least normal number
    powers = np.ldexp(np.ones(len(exponents), dtype.numpy), exponents)
    bits = powers.view(UNSIGNED[dtype.bits])
    near = np.concatenate([bits - 1, bits, bits + 1, 3 * bits[:4], 5 * bits[:4]]).view(dtype.numpy)
    more = np.array([0, 3, 7, 0.1, np.pi, 1e5, 1e-39, np.finfo(dtype.numpy).max, np.inf, np.nan], dtype.numpy)
    sizes = np.concatenate([near, more])
    return np.concatenate([sizes, -sizes])


def assert_numpys(found: Array, op: str, x: Array, y: Array) -> None:
    with np.errstate(all="ignore"):
        wanted: Array = getattr(np, op)(x, y)
    unsigned = UNSIGNED[8 * wanted.itemsize]
    same = (found.view(unsigned) == wanted.view(unsigned)) | (np.isnan(found) & np.isnan(wanted))
    wrong = np.flatnonzero(~same)[:4]
    assert not len(wrong), f"{op} of {x[wrong]} and {y[wrong]}: {found[wrong]} instead of {wanted[wrong]}"


@pytest.fixture(autouse=True)
def _turns_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """End an interpreted loop that takes more turns than its bound; each turn truncates once."""

    def counting(op: str, args: Sequence[Array], target: DType) -> Array:
        nonlocal turns
        turns += op == "trunc"
        assert turns <= MOST_TURNS, "the loop does not end"
        return evaluate(op, args, target)

    def call(*args: Any) -> Array:
        nonlocal turns
        turns = 0
        return interpreted(*args)

    turns, evaluate, interpreted = 0, interpret.evaluate, interpret.call
    monkeypatch.setattr(interpret, "evaluate", counting)
    monkeypatch.setattr(interpret, "call", call)


@cache
def compiled(op: str, dtype: DType) -> tuple[Program, Kernel]:
    """The op over contiguous arrays x and y."""
    program = elementwise({"x": dtype, "y": dtype}, {"z": dtype}, lambda x, y, z: [Assign(z.name, apply(op, x, y))])
    program = expand(program)
    arrays = dict.fromkeys("xyz", np.zeros(8, dtype.numpy))
    return program, generate(program, layout_of(program, arrays, (8,)), LlvmOptions(symbol=fresh_symbol(op)))


def check(op: str, dtype: DType, x: Array, y: Array) -> None:
    function = define(op, (dtype, dtype))
    assert_numpys(interpret.call(function, [x, y], callees(function)), op, x, y)
    program, kernel = compiled(op, dtype)  # endless loops have been found out by now
    z = np.empty_like(x)
    run(kernel, program, {"x": x, "y": y, "z": z}, {}, x.shape)
    assert_numpys(z, op, x, y)


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
@pytest.mark.parametrize("op", OPS)
def test_hard_pairs_are_numpys(op: str, dtype: DType) -> None:
    values = hard_values(dtype)
    x, y = (np.ascontiguousarray(part.ravel()) for part in np.meshgrid(values, values))
    check(op, dtype, x, y)


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
@pytest.mark.parametrize("op", OPS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
@pytest.mark.sampled(3)
def test_any_pairs_are_numpys(op: str, dtype: DType, data: st.DataObject) -> None:
    number = st.floats(width=64 if dtype.bits == 64 else 32, allow_subnormal=True)
    least = st.integers(0, 40).map(lambda count: count * float(np.finfo(dtype.numpy).smallest_subnormal))
    pairs = data.draw(st.lists(st.tuples(number | least, number | least), min_size=1, max_size=20))
    x, y = (np.array(column, dtype.numpy) for column in zip(*pairs, strict=True))
    check(op, dtype, x, y)
