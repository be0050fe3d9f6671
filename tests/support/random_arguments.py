"""Arrays of odd layouts with hard values, for random programs and texts; and when two are equal by bits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from fusec.base.dtypes import BOOL, DType
from fusec.ir.expr import const
from fusec.ir.loops import Program, ScalarParam


def hard_values(dtype: DType) -> list:
    """Extremes, zeros of both signs, subnormals, nan, infinities, and the neighbours of powers of two."""
    if dtype == BOOL:
        return [False, True]
    if dtype.is_integer:
        limits = np.iinfo(dtype.numpy)
        values = [0, 1, 2, 3, 7, dtype.bits - 1, dtype.bits, limits.max, limits.max - 1, limits.min, limits.min + 1]
        return [*values, -1, -2, -7] if dtype.kind == "signed" else values
    if dtype.is_complex:
        return [0, 1, 1j, -2.5 + 0.5j, complex(np.inf, 1), complex(np.nan, 0), complex(-0.0, -0.0), 1e30 + 1e30j]
    return [0.0, -0.0, 1.0, -1.0, 0.1, 2.0, 0.5, -3.75, 100.5, 1e5, -3e9, 1e20, 1e-40, 5e-324, 1e300, *_EXTREMES]


_EXTREMES = [float("inf"), float("-inf"), float("nan"), 2.0**31, 2.0**63, 2.0**-149, 3.4028235677973366e38]


@dataclass(frozen=True)
class Arguments:
    """What a program is run on; `fresh` makes the arrays anew, always the same."""

    program: Program
    shape: tuple[int, ...]
    seed: int

    def fresh(self) -> tuple[dict[str, np.ndarray], dict[str, object]]:
        """(arrays, scalars) by name."""
        rng = np.random.default_rng(self.seed)
        arrays: dict[str, np.ndarray] = {}
        scalars: dict[str, object] = {}
        for param in self.program.params:
            if isinstance(param, ScalarParam):
                scalars[param.name] = numbers(rng, param.dtype, (1,))[0]
            elif param.raw and param.written:
                size = max(int(np.prod(self.shape)), 1) if param.name == "w" else 5
                arrays[param.name] = laid_out(rng, param.dtype, (size,))
            elif param.raw:
                arrays[param.name] = laid_out(rng, param.dtype, tuple(rng.integers(1, 6, param.ndim)))
            elif param.written:
                arrays[param.name] = laid_out(rng, param.dtype, self.shape)
            else:
                arrays[param.name] = broadcast(rng, param.dtype, self.shape)
        return arrays, scalars


@cache
def _hard_array(dtype: DType) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.array([const(value, dtype).value for value in hard_values(dtype)], dtype.numpy)


def numbers(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Half plain numbers, half hard ones."""
    hard = _hard_array(dtype)
    with np.errstate(all="ignore"):
        if dtype.is_integer:
            plain = rng.integers(0, 100, shape).astype(dtype.numpy)
        elif dtype.is_complex:
            plain = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype.numpy)
        else:
            plain = (rng.standard_normal(shape) * 4).astype(dtype.numpy)
    return np.where(rng.random(shape) < 0.5, plain, hard[rng.integers(0, len(hard), shape)])


def laid_out(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """An array of that shape: contiguous, transposed, with gaps, or reversed."""
    form = rng.integers(4)
    if form == 0:
        return numbers(rng, dtype, shape)
    if form == 1:
        return numbers(rng, dtype, shape[::-1]).T
    steps = tuple(int(rng.choice([1, 2, 3] if form == 2 else [-1, 1, -2])) for _ in shape)
    whole = numbers(rng, dtype, tuple(extent * abs(step) for extent, step in zip(shape, steps, strict=True)))
    return whole[(..., *(slice(None, None, step) for step in steps))]


def broadcast(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """An array that broadcasts to the shape: some axes of length 1, some leading ones missing."""
    own = tuple(1 if rng.random() < 0.25 else extent for extent in shape)
    return laid_out(rng, dtype, own[int(rng.integers(len(own) + 1)) if rng.random() < 0.2 else 0 :])


SHAPES = [(), (0,), (1,), (3,), (17,), (64,), (67,), (2, 0), (3, 5), (1, 7), (5, 1), (4, 16), (2, 3, 5), (130,)]


def same_bits(left: np.ndarray, right: np.ndarray) -> bool:
    """Equal bits, where any nan equals any other."""
    if left.dtype.kind == "c":
        return same_bits(left.real, right.real) and same_bits(left.imag, right.imag)
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
    unsigned = np.dtype(f"u{left.dtype.itemsize}")
    equal = np.atleast_1d(left).view(unsigned) == np.atleast_1d(right).view(unsigned)
    both_nan = np.atleast_1d((left != left) & (right != right))
    return bool((equal | both_nan).all())
