"""Random programs of array operations whose results NumPy defines to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

DTYPES = ("bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64", "complex64")
SHAPES = ((), (1,), (0,), (3,), (4,), (3, 4), (1, 4), (3, 1), (2, 3, 4), (2, 0, 3), (4, 3))
BINARY = (
    np.add, np.subtract, np.multiply, np.minimum, np.maximum, np.less, np.equal, np.bitwise_xor, np.logical_and,
    np.floor_divide, np.divide, np.greater_equal,
)  # fmt: skip
UNARY = (np.negative, np.absolute, np.logical_not, np.square, np.sqrt, np.isnan, np.conjugate, np.sign, np.invert)
REDUCTIONS = ("max", "min", "any", "all", "sum", "prod")
NUMBERS = (0, 1, -2, 3, 0.5, True, -1.25, np.float32(1.5), np.int8(2), np.float64(0.25), np.uint8(200))

Program = list[tuple[Any, ...]]


@st.composite
def arrays(draw: Any) -> np.ndarray[Any, Any]:
    """An array of some dtype and shape, now and then a view of a larger one."""
    shape, dtype = draw(st.sampled_from(SHAPES)), np.dtype(draw(st.sampled_from(DTYPES)))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    layout = draw(st.sampled_from(("C", "C", "F", "sliced", "flipped")))
    big = tuple(2 * extent for extent in shape) if layout == "sliced" else shape
    made = rng.integers(-4, 5, big) * (rng.integers(1, 4, big) / 2 if dtype.kind in "fc" else 1)
    if dtype.kind in "fc" and made.size > 2:
        made = np.array(made)
        made.flat[1], made.flat[2] = np.nan, -0.0
    found = np.asarray(made).astype(dtype, order="F" if layout == "F" else "C")
    if layout == "sliced":
        found = found[tuple(slice(None, None, 2) for _ in shape)] if shape else found
    return found[..., ::-1] if layout == "flipped" and shape else found


places = st.integers(0, 20)
indices = st.lists(
    st.sampled_from((slice(None), slice(1, None), slice(None, None, -1), slice(None, -1), 0, -1, None, ...)), max_size=3
).filter(lambda items: sum(each is ... for each in items) <= 1)  # fmt: skip
steps = st.one_of(
    st.tuples(st.just("binary"), st.sampled_from(BINARY), places, places),
    st.tuples(st.just("binary"), st.sampled_from(BINARY), places, places),
    st.tuples(st.just("number"), st.sampled_from(BINARY), places, st.sampled_from(NUMBERS), st.booleans()),
    st.tuples(st.just("unary"), st.sampled_from(UNARY), places),
    st.tuples(st.just("index"), indices, places),
    st.tuples(st.just("transpose"), places),
    st.tuples(st.just("reshape"), places),
    st.tuples(st.just("in place"), st.sampled_from(BINARY[:5]), places, places),
    st.tuples(st.just("assign"), indices, places, places),
    st.tuples(st.just("reduce"), st.sampled_from(REDUCTIONS), places, st.integers(-1, 2), st.booleans()),
    st.tuples(st.just("where"), places, places, places),
    st.tuples(st.just("astype"), st.sampled_from(DTYPES), places),
)
programs = st.lists(steps, min_size=1, max_size=8)


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
        case "binary", op, a, b:
            return op(at(a), at(b))
        case "number", op, a, number, swapped:
            return op(number, at(a)) if swapped else op(at(a), number)
        case "unary", op, a:
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
    return None


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
