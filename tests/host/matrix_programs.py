"""Every op of the table on every dtype it takes, with hard values: the programs of the bit matrix."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from programs import Case, inputs, results

from fusec.base.dtypes import (
    ALL,
    BFLOAT16,
    BOOL,
    COMPLEX,
    COMPUTE_FLOATS,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    INTEGERS,
    STORAGE_FLOATS,
    UINT64,
    DType,
    real_type,
)
from fusec.base.ops import TABLE, Op
from fusec.ir.expr import Expr, apply, convert
from fusec.ir.loops import Local, Program
from fusec.ir.verify import NEIGHBOURS

OUTPUTS = 10  # of one kernel; Metal has 31 buffers
COMPUTED = (BOOL, *INTEGERS, *COMPUTE_FLOATS, *COMPLEX)
COUNTS = (INT8, INT32, INT64, UINT64)  # dtypes of ldexp's second operand

_FLOATS = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, 3.0, -7.0, 10.0, 1e-8, -1e-8, np.pi, -np.pi / 2, 100.25, -100.25,
    16777216.0, 16777217.0, 2147483648.0, -2147483649.0, 9223372036854775808.0, 18446744073709551616.0, 1e30, -1e30,
    88.8, -104.5, 709.8, -746.0, np.inf, -np.inf, np.nan,
]  # fmt: skip
_PARTS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-20, 1e20, -3e38, np.pi / 2, np.inf, -np.inf, np.nan]


def hard(dtype: DType) -> np.ndarray:
    """Some forty values: specials, subnormals, the ends of ranges, what lies beside powers of two."""
    if dtype == BOOL:
        return np.array([False, True])
    if dtype.is_complex:
        part = np.array(_PARTS, real_type(dtype).numpy)
        grid = np.empty((len(part), len(part)), dtype.numpy)
        grid.real, grid.imag = part[:, None], part
        return grid.ravel()
    if dtype.is_integer:
        bits, low = dtype.bits, -(1 << dtype.bits - 1) if dtype.kind == "signed" else 0
        high = low + (1 << bits) - 1
        near = [
            sign * ((1 << k) + d) for k in (3, 7, 8, 15, 16, 24, 31, 32, 53, 63) for d in (-1, 0, 1) for sign in (1, -1)
        ]
        values = [
            0,
            1,
            2,
            3,
            5,
            10,
            -1,
            -2,
            -3,
            low,
            low + 1,
            high,
            high - 1,
            high // 3,
            bits,
            bits - 1,
            bits + 1,
            -bits,
        ]
        chosen = dict.fromkeys(value for value in (*values, *near) if low <= value <= high)
        return np.array(list(chosen), dtype.numpy)
    with np.errstate(all="ignore"):
        kind = np.finfo(dtype.numpy) if dtype in COMPUTE_FLOATS else None
        values = np.array(_FLOATS).astype(dtype.numpy)
        if kind is None:
            return values
        ends = [kind.tiny, kind.max, kind.smallest_subnormal, kind.tiny - kind.smallest_subnormal]
        ends += [1 + kind.eps, 1 - kind.epsneg]
        return np.concatenate([values, np.array([*ends, *(-end for end in ends[:4])], dtype.numpy)])


def drawn(dtype: DType, count: int, seed: int) -> np.ndarray:
    """Random bits, and for floats as many numbers of ordinary size."""
    rng = np.random.default_rng(seed)
    if dtype == BOOL:
        return rng.integers(0, 2, count).astype(bool)
    if dtype.is_complex:
        pairs = np.stack([drawn(real_type(dtype), count, seed), drawn(real_type(dtype), count, seed + 99)[::-1]], -1)
        return np.ascontiguousarray(pairs).view(dtype.numpy)[:, 0]
    values = np.frombuffer(rng.bytes(count * dtype.nbytes), dtype.numpy).copy()
    if dtype.is_float:
        ordinary = rng.standard_normal(count) * np.exp(rng.uniform(-12, 6, count))
        values = np.where(np.arange(count) % 2 == 0, values, ordinary.astype(dtype.numpy))
    return values


def grid(types: tuple[DType, ...], count: int) -> list[np.ndarray]:
    """Operands: the cross product of hard values, thinned where it would be huge, and `count` random ones."""
    most = {1: 10_000, 2: 42, 3: 14}[len(types)]
    rng = np.random.default_rng(17)
    columns = []
    for dtype in types:
        values = hard(dtype)
        columns.append(values if len(values) <= most else values[np.sort(rng.permutation(len(values))[:most])])
    crossed = np.meshgrid(*columns, indexing="ij")
    return [
        np.concatenate([part.ravel(), drawn(dtype, count, 3 * seed)])
        for seed, (part, dtype) in enumerate(zip(crossed, types, strict=True))
    ]


def operand_types(row: Op) -> Iterator[tuple[DType, ...]]:
    """The dtypes that an op is tried with."""
    for dtype in COMPUTED:
        if dtype.kind not in row.accepts:
            continue
        if row.name == "where":
            yield (BOOL, dtype, dtype)
        elif row.second is not None:
            yield from ((dtype, count) for count in COUNTS)
        else:
            yield (dtype,) * row.arity


def op_cases(count: int, everything: bool) -> list[Case]:
    """Every op; those of the same operands share kernels. Unless `everything`, elementary functions, whose kernels take
    longest to compile, take every second of their dtypes, so that each function and each dtype still occurs.
    """
    groups: dict[tuple[DType, ...], list[Op]] = {}
    for at, row in enumerate(TABLE.values()):
        if row.result == "target":
            continue
        cheap = everything or row.primitive or row.reference
        for nth, types in enumerate(operand_types(row)):
            if cheap or (at + nth) % 2 == 0:
                groups.setdefault(types, []).append(row)
    return [
        _op_case(types, rows[start : start + OUTPUTS], count, start)
        for types, rows in groups.items()
        for start in range(0, len(rows), OUTPUTS)
    ]


def _op_case(types: tuple[DType, ...], rows: list[Op], count: int, start: int) -> Case:
    named = dict(zip("xyw", types, strict=False))
    params, reads = inputs(**named)
    operands = [Local(name, dtype) for name, dtype in named.items()]
    values: dict[str, Expr] = {f"z_{row.name}": apply(row.name, *operands) for row in rows}
    title = "_".join(dtype.name for dtype in types) + f"_{start}"
    program = results(f"matrix_{title}", params, reads, values)
    arrays = dict(zip(named, grid(types, count), strict=True))
    return finished(f"{' '.join(row.name for row in rows)} of {title}", program, arrays)


def narrow_cases(count: int, everything: bool) -> list[Case]:
    """Every op on narrow floats as front ends write it, in float32 and rounded once; all values of one operand.

    Unless `everything`, only the ops that NumPy has too: the others compute what they compute for float32.
    """
    cases = []
    for dtype in (FLOAT16, BFLOAT16):
        rows = [row for row in TABLE.values() if "float" in row.accepts and row.result not in ("target", "complex")]
        rows = [row for row in rows if row.second is None and row.name != "where" and (everything or row.reference)]
        for arity in (1, 2, 3):
            chosen = [row for row in rows if row.arity == arity]
            for start in range(0, len(chosen), OUTPUTS):
                cases += [_narrow_case(dtype, arity, chosen[start : start + OUTPUTS], count, start)]
    return cases


def _narrow_case(dtype: DType, arity: int, rows: list[Op], count: int, start: int) -> Case:
    named = dict.fromkeys("xyw"[:arity], dtype)
    params, reads = inputs(**named)
    narrow = [Local(name, dtype) for name in named]
    wide = [convert(operand, FLOAT32) for operand in narrow]
    values: dict[str, Expr] = {}
    for row in rows:
        value = apply(row.name, *(narrow if row.name in NEIGHBOURS else wide))
        values[f"z_{row.name}"] = convert(value, dtype) if value.type == FLOAT32 else value
    title = f"{dtype}_{arity}_{start}"
    program = results(f"matrix_{title}", params, reads, values)
    columns = [sources(dtype, count)] if arity == 1 else grid((dtype,) * arity, count)
    return finished(f"{' '.join(row.name for row in rows)} of {title}", program, dict(zip(named, columns, strict=True)))


def conversion_cases(count: int) -> list[Case]:
    """From every dtype to every other, all values of those with 16 bits or less; and every bit cast."""
    cases = []
    for source in ALL:
        params, reads = inputs(x=source)
        x = Local("x", source)
        values: dict[str, Expr] = {f"to_{target}": convert(x, target) for target in ALL if target != source}
        if not source.is_complex:
            alike = [t for t in ALL if t.bits == source.bits and not t.is_complex]
            values |= {f"as_{target}": apply("bitcast", x, target=target) for target in alike}
        program = results(f"matrix_conversions_{source}", params, reads, values)
        cases.append(finished(f"conversions from {source}", program, {"x": sources(source, count)}))
    return cases


def beyond_narrow_cases() -> list[Case]:
    """Nan, infinities, and what is too large, from every float of two bytes or more to every narrower one."""
    cases = []
    for source in (FLOAT16, BFLOAT16, FLOAT32, FLOAT64):
        values = np.array([np.nan, np.inf, -np.inf, 6e4, -6e4, 449.0, 1e30, -1e30], np.float32)
        with np.errstate(all="ignore"):
            x = np.tile(values, 3).astype(source.numpy)
        params, reads = inputs(x=source)
        taken = {f"to_{each}": convert(Local("x", source), each) for each in STORAGE_FLOATS if each.bits < source.bits}
        program = results(f"matrix_beyond_{source}", params, reads, taken)
        cases.append(finished(f"too large or nan from {source}", program, {"x": x}))
    return cases


def sources(source: DType, count: int) -> np.ndarray:
    """What is converted: all values of narrow types; of wider ones what lies at and beside the limits of the others."""
    if source == BOOL:
        return np.array([False, True] * 9)
    if source.bits <= 16:
        return np.arange(1 << source.bits, dtype=f"u{source.nbytes}").view(source.numpy)
    plain = np.concatenate([hard(source), drawn(source, count, 5)])
    if not source.is_float:
        return plain
    edges = [
        sign * (2.0**k + half) for k in (7, 8, 15, 16, 31, 32, 63, 64) for half in (-0.5, 0, 0.5) for sign in (1, -1)
    ]
    edges += [65504.0, 65519.99, 65520.0, 65536.0, 448.0, 464.0, 480.0, 57344.0, 61440.0, 3.39e38]
    edges += [2.0**-k * f for k in (9, 10, 14, 16, 17, 24, 25, 126, 133, 134, 149, 150) for f in (1, 1.5)]
    with np.errstate(all="ignore"):
        at = np.array(edges).astype(source.numpy)
        beside = [np.nextafter(at, source.numpy.type(limit)) for limit in (-np.inf, np.inf)]
    every = np.concatenate([at, *beside])
    return np.concatenate([plain, every, -every])


def finished(name: str, program: Program, arrays: dict[str, np.ndarray]) -> Case:
    """The case, with an output of a pattern for every array that has none."""
    size = next(iter(arrays.values())).shape
    for param in program.arrays:
        if param.name not in arrays:
            arrays[param.name] = np.full(size, 1, param.dtype.numpy)
    return Case(name, program, arrays, size)


def ops_of(case: Case) -> dict[str, str]:
    """The op that each output of an op case holds."""
    return {param.name: param.name.removeprefix("z_") for param in case.program.arrays if param.name.startswith("z_")}


def needs_double(case: Case) -> bool:
    """The program has parameters of 64-bit floats, which Metal lacks."""
    wide = (FLOAT64, COMPLEX[1])
    return any(param.dtype in wide for param in case.program.arrays)
