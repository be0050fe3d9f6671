"""Every op that is not primitive has one definition, which expansion puts in its place."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from fusec.base.dtypes import (
    ALL,
    BOOL,
    COMPLEX,
    COMPLEX64,
    COMPLEX128,
    FLOAT32,
    FLOAT64,
    INT32,
    STORAGE_FLOATS,
    DType,
)
from fusec.base.ops import TABLE, Op
from fusec.ir.expr import Apply, Expr, Pointer, apply, convert, scalar_type
from fusec.ir.interpret import interpret
from fusec.ir.loops import ArrayParam, Element, Function, Load, Program, Store
from fusec.ir.verify import verify
from fusec.ir.walk import expressions, operands, statements
from fusec.math import callees, define
from fusec.passes.expand import expand

ROWS = [row for row in TABLE.values() if row.result != "target"]


def operand_types(row: Op) -> Iterator[tuple[DType, ...]]:
    for dtype in ALL:
        if dtype.kind in row.accepts and dtype not in STORAGE_FLOATS:
            if row.name == "where":
                yield (BOOL, dtype, dtype)
            elif row.second is not None:
                yield (dtype, INT32)
            else:
                yield (dtype,) * row.arity


def program(value: Expr, types: tuple[DType, ...]) -> Program:
    params = tuple(ArrayParam(name, dtype) for name, dtype in zip("xyz", types, strict=False))
    result = scalar_type(value)
    out = ArrayParam("out", result, written=True, read=False)
    return Program("kernel", (*params, out), (Store(Element("out", Pointer(result, "global")), value),))


def operand(name: str, dtype: DType) -> Expr:
    return Load(Element(name, Pointer(dtype, "global", const=True)), dtype)


def applied(row: Op, types: tuple[DType, ...]) -> Program:
    args = [operand(name, dtype) for name, dtype in zip("xyz", types, strict=False)]
    return program(apply(row.name, *args), types)


def all_expressions(function: Function) -> Iterator[Expr]:
    return expressions(part for stmt in statements(function.body) for part in operands(stmt))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_expansion_leaves_primitive_ops_alone(row: Op) -> None:
    for types in operand_types(row):
        before = applied(row, types)
        verify(before)
        after = expand(before)
        verify(after, primitive=True)
        assert expand(after) == after
        simple = row.primitive and not any(dtype in COMPLEX for dtype in types)
        assert (after is before) == (simple or row.name in ("complex", "real", "imag", "where"))


@pytest.mark.parametrize("row", [row for row in ROWS if not row.primitive], ids=lambda row: row.name)
def test_float32_functions_need_no_float64(row: Op) -> None:
    for types in operand_types(row):
        if types[0] in (FLOAT32, COMPLEX64):
            function = define(row.name, types)
            for each in (*callees(function), function):
                used = {expr.type for expr in all_expressions(each) if isinstance(expr, Apply)}
                assert FLOAT64 not in used, each.name


def test_callees_come_first_and_once() -> None:
    x = operand("x", COMPLEX64)
    both = apply("multiply", apply("sin", x), apply("exp", apply("sin", x)))
    names = [function.name for function in expand(program(both, (COMPLEX64,))).functions]
    assert len(names) == len(set(names))
    order = [
        "fusec_sin_huge_float32", "fusec_sin_float32", "fusec_sin_complex64", "fusec_exp_complex64",
        "fusec_multiply_complex64",
    ]  # fmt: skip
    assert [name for name in names if name in order] == order


def test_shared_values_are_computed_once() -> None:
    """A body grows with the formula's graph, not with its tree."""
    for op in ("pow", "lgamma", "erfinv"):
        types = (FLOAT64,) * TABLE[op].arity
        function = define(op, types)
        tree = 0
        for stmt in statements(function.body):
            pending = list(operands(stmt))
            while pending:
                tree += 1
                pending += pending.pop().children
        distinct = sum(1 for _ in all_expressions(function))
        assert tree < 4 * distinct


CONVERSIONS = [
    (source, target)
    for source in (*COMPLEX, FLOAT32, FLOAT64, INT32, BOOL)
    for target in (*COMPLEX, FLOAT32, INT32, BOOL)
    if source != target and (source in COMPLEX or target in COMPLEX)
]


@pytest.mark.parametrize(("source", "target"), CONVERSIONS, ids=repr)
def test_conversions_from_and_to_complex_are_numpys(source: DType, target: DType) -> None:
    after = expand(program(convert(operand("x", source), target), (source,)))
    verify(after, primitive=True)
    x = np.array([0, 1, 2.5 - 3j, 1j, -7], COMPLEX128.numpy)
    x = (x if source in COMPLEX else x.real).astype(source.numpy)
    out = np.empty(x.shape, target.numpy)
    interpret(after, {"x": x, "out": out}, {}, x.shape)
    values = x.real if source in COMPLEX and target not in (*COMPLEX, BOOL) else x
    np.testing.assert_array_equal(out, values.astype(target.numpy))


@pytest.mark.parametrize("dtype", COMPLEX, ids=repr)
@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "divide", "equal", "not_equal"])
def test_complex_arithmetic_is_numpys(op: str, dtype: DType) -> None:
    random = np.random.default_rng(2)
    x, y = (random.normal(size=200) + 1j * random.normal(size=200) for _ in range(2))
    x, y = x.astype(dtype.numpy), np.where(np.arange(200) % 9, y, x).astype(dtype.numpy)
    after = expand(applied(TABLE[op], (dtype, dtype)))
    out = np.empty(x.shape, getattr(np, op)(x, y).dtype)
    interpret(after, {"x": x, "y": y, "out": out}, {}, x.shape)
    if op == "multiply":  # NumPy's vector code may fuse one of the products
        np.testing.assert_allclose(out, x * y, rtol=8 * np.finfo(dtype.numpy).eps)
    else:
        np.testing.assert_array_equal(out, getattr(np, op)(x, y))
