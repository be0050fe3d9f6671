"""Random programs of array operations whose results NumPy defines to the bit."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any

import numpy as np

DTYPES = ("bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64", "complex64")
SHAPES = ((), (1,), (0,), (3,), (4,), (3, 4), (1, 4), (3, 1), (2, 3, 4), (2, 0, 3), (4, 3), (3, 3), (2, 3, 3))
BINARY = (
    np.add, np.subtract, np.multiply, np.minimum, np.maximum, np.less, np.equal, np.bitwise_xor, np.logical_and,
    np.floor_divide, np.divide, np.greater_equal,
)  # fmt: skip
UNARY = (np.negative, np.absolute, np.logical_not, np.square, np.sqrt, np.isnan, np.conjugate, np.sign, np.invert)
REDUCTIONS = ("max", "min", "any", "all", "sum", "prod")
NUMBERS = (0, 1, -2, 3, 0.5, True, -1.25, np.float32(1.5), np.int8(2), np.float64(0.25), np.uint8(200))

LAYOUTS = ("C", "C", "F", "sliced", "flipped")
PLACES = range(21)
ITEMS = (slice(None), slice(1, None), slice(None, None, -1), slice(None, -1), 0, -1, None, ...)
INDICES = tuple(
    index for count in range(4) for index in product(ITEMS, repeat=count) if sum(each is ... for each in index) <= 1
)
STEPS: tuple[tuple[Any, ...], ...] = (
    ("binary", BINARY, PLACES, PLACES),
    ("binary", BINARY, PLACES, PLACES),
    ("number", BINARY, PLACES, NUMBERS, (False, True)),
    ("unary", UNARY, PLACES),
    ("index", INDICES, PLACES),
    ("transpose", PLACES),
    ("reshape", PLACES),
    ("in place", BINARY[:5], PLACES, PLACES),
    ("assign", INDICES, PLACES, PLACES),
    ("reduce", REDUCTIONS, PLACES, range(-1, 3), (False, True)),
    ("where", PLACES, PLACES, PLACES),
    ("astype", DTYPES, PLACES),
)  # what a step does, and what each of its choices may be
SHIFTS = (1, -2, 7, (1, -1), 0)
WIDTHS, BORDERS = (0, 2, (1, 0), (0, 3)), ("constant", "edge", "reflect", "symmetric", "wrap")
FURTHER: tuple[tuple[Any, ...], ...] = (
    ("roll", SHIFTS, (None, 0, -1), PLACES),
    ("pad", WIDTHS, BORDERS, PLACES),
    ("clip", NUMBERS, NUMBERS, PLACES),
    ("join", (np.concatenate, np.stack), (0, -1), PLACES, PLACES),
    ("diff", (1, 2), (0, -1), PLACES),
    ("flip", (None, 0, -1), PLACES),
    ("full", NUMBERS, PLACES),
    ("fill", NUMBERS, PLACES),
    ("copyto", PLACES, PLACES),
    ("part", ("real", "imag"), PLACES),
    ("ordered", (np.copy, np.add, np.astype, np.zeros_like), "CFAK", PLACES),
    ("method", ("ravel", "copy", "squeeze", "any", "round"), PLACES),
)

ELSEWHERE: tuple[tuple[Any, ...], ...] = (
    ("take", (0, -1), PLACES, PLACES),
    ("product", PLACES, PLACES),
    ("scan", (np.cumsum, np.cumprod), (0, -1), PLACES),
    ("place", (np.argmax, np.argmin), (0, -1, None), PLACES),
    ("scatter", PLACES, (0, 1)),
    ("windows", (1, 2), PLACES),
    ("diagonal", (0, 1), PLACES),
    ("triangle", (np.tril, np.triu), PLACES),
    ("repeat", (2, 3), PLACES),
)

EXTREMES = (np.maximum, np.minimum, "max", "min")
ROUGH = (np.sqrt, np.absolute, np.divide)  # of complex numbers, they are NumPy's but for rounding

Program = list[tuple[Any, ...]]


def array(random: Random) -> np.ndarray[Any, Any]:
    """An array of some dtype and shape, now and then a view of a larger one."""
    return array_of(random.choice(SHAPES), random.choice(DTYPES), random.choice(LAYOUTS), random.randrange(100))


def array_of(shape: tuple[int, ...], dtype: str, layout: str, seed: int) -> np.ndarray[Any, Any]:
    """The array that these choices make."""
    rng = np.random.default_rng(seed)
    big = tuple(2 * extent for extent in shape) if layout == "sliced" else shape
    made = rng.integers(-4, 5, big) * (rng.integers(1, 4, big) / 2 if np.dtype(dtype).kind in "fc" else 1)
    if np.dtype(dtype).kind in "fc" and made.size > 2:
        made = np.array(made)
        made.flat[1], made.flat[2] = np.nan, -0.0
    found = np.asarray(made).astype(dtype, order="F" if layout == "F" else "C")
    if layout == "sliced":
        found = found[tuple(slice(None, None, 2) for _ in shape)] if shape else found
    return found[..., ::-1] if layout == "flipped" and shape else found


def program(random: Random, most: int = 8, steps: tuple[tuple[Any, ...], ...] = STEPS) -> Program:
    """A list of steps, each with its choices made."""
    drawn = (random.choice(steps) for _ in range(random.randint(1, most)))
    return [(what, *(random.choice(each) for each in choices)) for what, *choices in drawn]


def run(program: Program, given: list[Any]) -> list[Any]:
    """All values of a program; steps that NumPy refuses are left out."""
    found = list(given)
    for what, *rest in program:
        try:
            made = _step(what, rest, found)
        except (TypeError, ValueError, IndexError, OverflowError):
            continue
        if made is not None:
            found.append(made)
    return found


def _step(what: str, rest: list[Any], found: list[Any]) -> Any:
    def at(place: int) -> Any:
        return found[place % len(found)]

    match what, *rest:
        case "binary", op, a, b if not _is_rough(op, at(a), at(b)):
            return op(at(a), at(b))
        case "number", op, a, number, swapped if not _is_rough(op, at(a)):
            return op(number, at(a)) if swapped else op(at(a), number)
        case "unary", op, a if not _is_rough(op, at(a)):
            return op(at(a))
        case "index", index, a:
            return at(a)[tuple(index)]
        case "transpose", a:
            return np.transpose(at(a))
        case "reshape", a:
            return np.reshape(at(a), -1)
        case "in place", op, a, b:
            if at(a).ndim and at(a).dtype.kind != "b":
                op(at(a), at(b), out=at(a))
        case "assign", index, a, b:
            if at(a).ndim and (np.can_cast(at(b).dtype, at(a).dtype) or at(a).dtype.kind in "fc"):
                at(a)[tuple(index)] = at(b)
        case "reduce", name, a, axis, keepdims:
            is_exact = at(a).dtype.kind in "biu" or (at(a).dtype.kind == "f" and name in ("any", "all", "max", "min"))
            if is_exact:
                return getattr(np, name)(at(a), axis=axis if axis < 2 else None, keepdims=keepdims)
        case "where", c, a, b:
            return np.where(at(c), at(a), at(b))
        case "astype", dtype, a:
            if at(a).dtype.kind in "biu" or np.dtype(dtype).kind in "fc":
                return np.astype(at(a), dtype)
    return _further(what, rest, at)


def _further(what: str, rest: list[Any], at: Callable[[int], Any]) -> Any:
    match what, *rest:
        case "roll", shift, axis, a:
            return np.roll(at(a), shift, axis)
        case "pad", width, mode, a if at(a).ndim:
            return np.pad(at(a), width, mode=mode)
        case "clip", low, high, a if at(a).dtype.kind != "c":
            return np.clip(at(a), low, high)
        case "join", joins, axis, a, b:
            return joins((at(a), at(b)), axis=axis)
        case "diff", n, axis, a if at(a).dtype.kind != "b":
            return np.diff(at(a), n, axis)
        case "flip", axis, a:
            return np.flip(at(a), axis)
        case "full", number, a if np.can_cast(np.min_scalar_type(number), at(a).dtype):
            return np.full_like(at(a), number)
        case "fill", number, a if at(a).ndim and np.can_cast(np.min_scalar_type(number), at(a).dtype):
            at(a).fill(number)
        case "copyto", a, b if at(a).ndim:
            np.copyto(at(a), at(b))
        case "part", name, a:
            return getattr(at(a), name)
        case "ordered", function, order, a:
            if function is np.add:
                return np.add(at(a), at(a), order=order)
            return at(a).astype(np.complex64, order) if function is np.astype else function(at(a), order=order)
        case "method", name, a if at(a).ndim:
            return getattr(at(a), name)()
    return _elsewhere(what, rest, at)


def _elsewhere(what: str, rest: list[Any], at: Callable[[int], Any]) -> Any:
    match what, *rest:
        case "take", axis, a, b if at(a).ndim and at(a).shape[axis] and at(b).dtype.kind in "biu":
            return np.take(at(a), at(b).astype(np.int64) % at(a).shape[axis] - (at(b).dtype.kind == "i"), axis)
        case "product", a, b if at(a).dtype.kind in "iu" and at(a).dtype == at(b).dtype:
            return at(a) @ at(b)
        case "scan", function, axis, a if at(a).ndim and at(a).dtype.kind in "biu":
            return function(at(a), axis)
        case "place", function, axis, a if at(a).ndim and at(a).dtype.kind != "c":
            return function(at(a), axis)
        case "scatter", a, number if at(a).ndim and at(a).shape[0]:
            at(a)[[0, -1]] = number
        case "windows", size, a if at(a).ndim:
            return np.lib.stride_tricks.sliding_window_view(at(a), size, axis=-1)
        case "diagonal", offset, a if at(a).ndim > 1:
            return np.diagonal(at(a), offset)
        case "triangle", function, a if at(a).ndim > 1:
            return function(at(a))
        case "repeat", times, a if at(a).ndim:
            return np.repeat(at(a), times, axis=0)
    return None


def leaves_signs_open(steps: Program) -> bool:
    """Whether a program has an extreme: NumPy leaves open which of 0.0 and -0.0 is the greater, and machines differ."""
    return any(what == "clip" or (isinstance(op, (np.ufunc, str)) and op in EXTREMES) for what, op, *_ in steps)


def _is_rough(op: np.ufunc, *values: Any) -> bool:
    """Whether NumPy leaves the last bits open."""
    return op in ROUGH and any(each.dtype.kind == "c" for each in values)


def copies(given: list[Any]) -> list[Any]:
    """Arrays of the same content that lie as the given ones do."""
    found = []
    for each in given:
        whole = each if each.base is None else each.base
        if not each.size or not each.ndim or not (whole.flags.c_contiguous or whole.flags.f_contiguous):
            found.append(each.copy(order="K"))
            continue
        memory = whole.copy(order="K")
        offset = each.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
        flat = memory if memory.flags.c_contiguous else memory.T
        found.append(np.ndarray(each.shape, each.dtype, flat.data, offset, each.strides))
    return found
