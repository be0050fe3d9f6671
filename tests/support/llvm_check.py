"""Compares LLVM kernels with the interpreter bit by bit, for several numbers of lanes and partitions of the range."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fusec.base.dtypes import INT64, DType
from fusec.codegen.llvm import LlvmOptions, generate
from fusec.ir.expr import Expr, Pointer, const
from fusec.ir.interpret import interpret
from fusec.ir.loops import (
    ArrayParam,
    At,
    Declare,
    Element,
    Load,
    Local,
    Program,
    Query,
    Stmt,
    Store,
)
from tests.support.llvm_runner import fresh_symbol, layout_of, run

LANES = (1, 4, 16, 64)
POSITION = Query("", "index", None, INT64)


def element(name: str, dtype: DType) -> Element:
    return Element(name, Pointer(dtype, "global"))


def at(name: str, dtype: DType, *index: Expr) -> At:
    return At(name, index, Pointer(dtype, "global"))


def int64(value: int) -> Expr:
    return const(value, INT64)


def elementwise(
    inputs: Mapping[str, DType],
    outputs: Mapping[str, DType],
    body: Callable[..., Sequence[Stmt]],
    functions: tuple = (),
) -> Program:
    """A program that loads its inputs into locals, runs the body, and stores the locals named as outputs."""
    params = [ArrayParam(name, dtype) for name, dtype in inputs.items()]
    params += [ArrayParam(name, dtype, written=True, read=False) for name, dtype in outputs.items()]
    loads = [Declare(name, dtype, Load(element(name, dtype), dtype)) for name, dtype in inputs.items()]
    declared = [Declare(name, dtype) for name, dtype in outputs.items()]
    locals_ = {name: Local(name, dtype) for name, dtype in {**inputs, **outputs}.items()}
    stores = [Store(element(name, dtype), locals_[name]) for name, dtype in outputs.items()]
    return Program("k", tuple(params), (*loads, *declared, *body(**locals_), *stores), functions)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal bit by bit, except that any nan equals any nan."""
    if a.dtype.kind == "c":
        return same_bits(a.real, b.real) and same_bits(a.imag, b.imag)
    bits = np.dtype(f"u{a.dtype.itemsize}")
    equal = np.ascontiguousarray(a).view(bits) == np.ascontiguousarray(b).view(bits)
    if a.dtype.kind not in "biu":
        equal |= (a != a) & (b != b)
    return bool(np.all(equal))


def twin(array: np.ndarray) -> np.ndarray:
    """A copy with the same strides."""
    low = sum(min(0, s * (n - 1)) for s, n in zip(array.strides, array.shape, strict=True))
    high = sum(max(0, s * (n - 1)) for s, n in zip(array.strides, array.shape, strict=True))
    if array.size == 0:
        return array.copy()
    memory = np.zeros(high - low + array.itemsize + 64, np.uint8)
    shift = -memory.ctypes.data % 64
    result = np.ndarray(array.shape, array.dtype, memory, shift - low, array.strides)
    if result.size and all(array.strides):
        result[...] = array
    else:  # broadcast axes: write each element once
        result[tuple(slice(None) if s else slice(0, 1) for s in array.strides)] = array[
            tuple(slice(None) if s else slice(0, 1) for s in array.strides)
        ]
    return result


def check(
    program: Program,
    arrays: Mapping[str, np.ndarray],
    shape: Sequence[int],
    scalars: Mapping[str, object] | None = None,
    lanes: Sequence[int | None] = LANES,
    cuts: Sequence[int] = (),
    vector_bits: Sequence[int] = (512,),
    **flags: object,
) -> None:
    """Every kernel of the program must leave the bits that the interpreter leaves."""
    scalars = scalars or {}
    expected = {name: twin(array) for name, array in arrays.items()}
    interpret(program, expected, scalars, tuple(shape))
    for bits in vector_bits:
        for width in lanes:
            found = {name: twin(array) for name, array in arrays.items()}
            layout = layout_of(program, found, shape, **flags)
            kernel = generate(program, layout, LlvmOptions(symbol=fresh_symbol(), lanes=width, vector_bits=bits))
            run(kernel, program, found, scalars, shape, cuts)
            for name, array in found.items():
                assert same_bits(array, expected[name]), explain(name, array, expected[name], kernel.lanes)


def explain(name: str, found: np.ndarray, expected: np.ndarray, lanes: int) -> str:
    """The first element that differs."""
    for index in np.ndindex(found.shape):
        if not same_bits(found[index][None], expected[index][None]):
            return f"{name}{list(index)} is {found[index]!r}, expected {expected[index]!r}, with {lanes} lanes"
    return ""
