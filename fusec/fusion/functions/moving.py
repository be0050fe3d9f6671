"""np.roll and np.pad: elements are read where they are, with the ends of axes as borders."""

from __future__ import annotations

from collections.abc import Mapping
from operator import add
from typing import Any

import numpy as np

from fusec.base.dtypes import INT64, STORAGE_FLOATS, DType
from fusec.frontends.python.values import Scalar
from fusec.fusion.functions.joining import held
from fusec.fusion.functions.numpy_source import on_traced
from fusec.fusion.functions.reducing import one_axis
from fusec.fusion.functions.routines import copied, joined, reshaped, trace_of, traced
from fusec.fusion.trace import elementwise, tracer
from fusec.fusion.trace.conditions import require, require_extents
from fusec.fusion.trace.elsewhere import moved
from fusec.fusion.trace.tables import FUNCTIONS
from fusec.fusion.trace.trace import Trace, constant
from fusec.fusion.trace.trace_values import ArrayValue, laid_out
from fusec.ir.expr import Const, Expr, apply
from fusec.ir.graph import Neighbour

NEAR = 64  # the largest offset that is part of the code; what is further away is stored in pieces
MODES = {"edge": "nearest", "symmetric": "reflect", "reflect": "mirror", "wrap": "wrap"}


def roll(x: Any, shift: Any, axis: Any = None) -> Any:
    """np.roll."""
    x = traced(x, trace_of(x, shift))
    if axis is None and x.ndim == 1:
        axis = 0
    if axis is None:
        return reshaped(roll(reshaped(x, -1), shift, 0), x.shape)
    pairs = np.broadcast(_integers(shift), _integers(axis))
    if pairs.ndim > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    shifts: dict[int, int] = {}
    for by, along in pairs:
        at = one_axis(along, x.ndim)
        shifts[at] = shifts.get(at, 0) + int(by)
    offsets = {at: _moved_by(by, x._seen.shape[at]) for at, by in shifts.items()}
    require([x], lambda array: all(_moved_by(by, array.shape[at]) == offsets[at] for at, by in shifts.items()))
    moved = {at: offset for at, offset in offsets.items() if offset is not None}
    moves = {}
    for at, offset in moved.items():
        if abs(offset) > NEAR:
            require_extents(x, [at])
            x = _rolled(x, at, x._seen.shape[at] - shifts[at] % x._seen.shape[at])
        else:
            moves[at] = Neighbour(at - x.ndim, offset, "wrap", 0, INT64)
    if not x.size or not moves:
        return x if moved and x.size else copied(x)
    return _moved(x, moves, laid_out(x._seen, x.dtype), None, {})


def _moved_by(by: int, extent: int) -> int | None:
    """The distance from which a roll takes elements; None if nothing moves."""
    return _offset(by, extent) if extent and by % extent else None


def _offset(by: int, extent: int) -> int:
    """How far away the elements are that are rolled; as it is given if it is near, so that extents do not matter."""
    if abs(by) <= min(NEAR, extent - 1):
        return -by
    far = by % extent
    return -far if far <= extent - far else extent - far


def _rolled(x: Any, axis: int, cut: int) -> Any:
    """An array rolled by far: both parts are stored in their places."""
    before = (slice(None),) * axis
    parts = [x[(*before, slice(cut, None))], x[(*before, slice(0, cut))]]
    new = ArrayValue(constant(0, elementwise.known_dtype(x.dtype)).scalar, laid_out(x._seen, x.dtype))
    return joined(parts, axis, new)


def _integers(given: Any) -> Any:
    """Numbers of Python, of which Python needs those that are traced."""
    return [int(each) for each in given] if isinstance(given, (tuple, list)) else np.asarray(given)


_pad = on_traced(np.pad, {})  # which stores the array in a larger one


def pad(x: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    """np.pad."""
    x = traced(x, trace_of(x, pad_width, *options.values()))
    number = options.get("constant_values", 0)
    is_plain = not options or (list(options) == ["constant_values"] and mode == "constant" and not np.ndim(number))
    if not is_plain or not (mode in MODES or mode == "constant") or isinstance(pad_width, dict):
        return _pad(x, pad_width, mode, **options)
    widths = _widths(pad_width, x.ndim)
    if not any(map(any, widths)) or not x.size or max(map(max, widths)) > NEAR:
        return _pad(x, pad_width, mode, **options)
    shape = tuple(extent + low + high for extent, (low, high) in zip(x._seen.shape, widths, strict=True))
    seen = laid_out(x._seen, x.dtype, "F" if x._seen.flags.fnc else "C", shape)
    more = {axis: low + high for axis, (low, high) in enumerate(widths) if low or high}
    if mode == "constant":
        return _with_constant(x, _moves(widths, mode), number, seen, more)
    return _moved(x, _moves(widths, MODES[mode]), seen, None, more)


def _moves(widths: list[tuple[int, int]], mode: str) -> dict[int, Neighbour]:
    axes = len(widths)
    return {
        axis: Neighbour(axis - axes, -low, mode, low + high, INT64)
        for axis, (low, high) in enumerate(widths)
        if low or high
    }


def _widths(given: Any, ndim: int) -> list[tuple[int, int]]:
    """How much is put before and after each axis. Raises NumPy's errors."""
    found = np.asarray([[int(each) for each in pair] if np.ndim(pair) else int(pair) for pair in given]
                       if np.ndim(given) else int(given))  # fmt: skip
    pairs = np.broadcast_to(found, (ndim, 2)).tolist()
    if any(each < 0 for pair in pairs for each in pair):
        raise ValueError("index can't contain negative values")
    return [(low, high) for low, high in pairs]


def _with_constant(x: Any, moves: Mapping[int, Neighbour], given: Any, seen: Any, more: Mapping[int, int]) -> Any:
    """An array with a number around it."""
    trace, dtype = x._trace, elementwise.known_dtype(x.dtype)
    value = trace.adapted(tracer._operand(trace, given), dtype)
    outside = apply("convert", value.expr, target=dtype) if dtype in STORAGE_FLOATS else value.expr
    return _moved(x, moves, seen, outside, more)


def _moved(x: Any, moves: Mapping[int, Neighbour], seen: Any, outside: Expr | None, more: Mapping[int, int]) -> Any:
    """An array with its elements at other positions. more: by axis, how many elements it gains."""
    trace: Trace = x._trace
    trace.extents.claim_changed(x, add, more)
    if outside is None and isinstance(x._read().expr, Const):
        return tracer.made(trace, ArrayValue(x._read().scalar, seen))
    value = held(x, moves)
    dtype: DType = value.dtype
    return tracer.made(trace, ArrayValue(Scalar(dtype, moved(trace, value, moves, seen, outside)), seen))


FUNCTIONS.update({"roll": roll, "pad": pad})
