"""Cases for the code generators, and what programs are built of."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fusec.base.dtypes import BOOL, COMPLEX64, FLOAT32, FLOAT64, INT32, INT64, DType
from fusec.ir.expr import Const, Expr, Pointer, const
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


@dataclass(frozen=True)
class Case:
    """A program and the arguments of one call."""

    name: str
    program: Program
    arrays: Mapping[str, np.ndarray]
    shape: tuple[int, ...]
    scalars: Mapping[str, object] = field(default_factory=dict)
    wide: bool = False
    aligned: int = 16
    ragged: bool = False

    def copies(self) -> dict[str, np.ndarray]:
        """The arrays, safe to write to; strides are kept."""
        copied = {}
        for name, array in self.arrays.items():
            low, high = np.lib.array_utils.byte_bounds(array) if array.size else (0, 0)
            block = np.zeros(max(high - low, 1), np.uint8)
            offset = array.__array_interface__["data"][0] - low if array.size else 0
            copy = np.ndarray(array.shape, array.dtype, block, offset, array.strides)
            copy[...] = array
            copied[name] = copy
        return copied


def hard_values(dtype: DType, count: int, seed: int) -> np.ndarray:
    """Special values first, then random bits; for floats also numbers near 1."""
    rng = np.random.default_rng(seed)
    numpy = dtype.numpy
    if dtype == BOOL:
        return rng.integers(0, 2, count).astype(bool)
    if dtype.is_complex:
        part = FLOAT32 if dtype == COMPLEX64 else FLOAT64
        pairs = np.stack([hard_values(part, count, seed), hard_values(part, count, seed + 1)[::-1]], axis=-1)
        return np.ascontiguousarray(pairs).view(numpy)[:, 0]
    values = np.frombuffer(rng.bytes(count * numpy.itemsize), numpy).copy()
    with np.errstate(all="ignore"):
        if dtype.is_integer:
            info = np.iinfo(numpy)
            special = [0, 1, 2, 3, info.max, info.min, info.max - 1, info.min + 1, info.bits, info.bits - 1, 7]
            special += [-1, -2, -info.bits] if info.min else [info.max // 2, info.max // 2 + 1, 100]
            small = rng.integers(-(info.min < 0) * 40, 40, count).astype(numpy)
            values = np.where(rng.integers(0, 2, count) == 0, values, small)
        else:
            special = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-45, 3e38, -3e-39, 2.0**31]
            special += [
                -(2.0**31),
                2.0**32,
                2.0**63,
                -(2.0**63),
                2.0**64,
                127.5,
                -128.9,
                255.5,
                65504.0,
                65519.9,
                65520.0,
            ]
            special += [448.0, 464.0, 465.0, 57344.0, 61440.0, 2.0**-9, 2.0**-10, 2.0**-24, 2.0**-25, 1.5 * 2.0**-25]
            near = rng.standard_normal(count).astype(numpy)
            values = np.where(rng.integers(0, 2, count) == 0, values, near)
        values[: len(special)] = np.array(special).astype(numpy)
    return values


# --- building blocks -------------------------------------------------------------------------------------------


def element(name: str, dtype: DType) -> Element:
    return Element(name, Pointer(dtype, "global"))


def inputs(**dtypes: DType) -> tuple[list[ArrayParam], list[Stmt]]:
    """Input arrays with the declarations that read their elements."""
    params = [ArrayParam(name, dtype) for name, dtype in dtypes.items()]
    reads: list[Stmt] = [Declare(name, dtype, Load(element(name, dtype), dtype)) for name, dtype in dtypes.items()]
    return params, reads


def output(name: str, dtype: DType) -> ArrayParam:
    return ArrayParam(name, dtype, written=True, read=False)


def raw(name: str, dtype: DType, ndim: int, written: bool = False) -> ArrayParam:
    return ArrayParam(name, dtype, raw=True, written=written, ndim=ndim)


def at(name: str, dtype: DType, *index: Expr) -> At:
    return At(name, index, Pointer(dtype, "global"))


def number(value: int) -> Const:
    return const(value, INT64)


def local(name: str, dtype: DType = INT32) -> Local:
    return Local(name, dtype)


INDEX = Query("", "index", None, INT64)


def results(name: str, params: list[ArrayParam], reads: list[Stmt], values: dict[str, Expr]) -> Program:
    """A program that stores every value in an output of its own."""
    outputs, body = list(params), list(reads)
    for z, value in values.items():
        dtype = value.type  # type: ignore[attr-defined]
        outputs.append(output(z, dtype))
        body.append(Store(element(z, dtype), value))
    return Program(name, tuple(outputs), tuple(body))


def spread(count: int = 400, **dtypes: DType) -> dict[str, np.ndarray]:
    """Hard values for every input, shifted against each other so that special values meet."""
    arrays = {}
    for seed, (name, dtype) in enumerate(dtypes.items()):
        values = hard_values(dtype, 40, seed) if dtype != BOOL else np.array([True, False] * 20)
        many = np.concatenate([np.repeat(values, 40) if seed == 0 else np.tile(np.roll(values, seed - 1), 40)])
        arrays[name] = np.concatenate([many, hard_values(dtype, count, seed + 7)])
    return arrays


def with_outputs(program: Program, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Add an output filled with a pattern for every array that has none yet."""
    size = next(iter(arrays.values())).shape
    for param in program.arrays:
        if param.name not in arrays:
            arrays[param.name] = np.full(size, 1, param.dtype.numpy)
    return arrays
