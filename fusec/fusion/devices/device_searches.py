"""Places in sorted arrays on devices: a binary search for each element, in NumPy's order, which has nan last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from fusec.base import dtypes, locks
from fusec.base.dtypes import DType
from fusec.fusion.devices.device_linear import kernel as filling
from fusec.fusion.devices.device_sorts import LIBRARY, comparing
from fusec.fusion.devices.recipes import KernelStage, Part, Recipe, RecipeBuilder, named
from fusec.fusion.functions.matrix_products import MAX_KNOWN, Arrangement
from fusec.fusion.trace.trace_values import LibraryCall
from fusec.runtime.cuda.solvers import Outcome

__all__ = ["LIBRARY", "computes", "recipe"]

EXACT = 1 << 53  # integers up to this are exact in float64
_SIDES = ("left", "right")
_NAMES = {"np.searchsorted": "a v sorter", "np.digitize": "x bins"}


@lru_cache(MAX_KNOWN)
def computes(call: LibraryCall) -> bool:
    """Whether kernels compute a call."""
    if call.name not in _NAMES:
        return False
    given = named(call, call.operands)
    numbers = [given.get(name) for name in _NAMES[call.name].split()]
    is_exact = all(type(each) is not int or abs(each) <= EXACT for each in numbers)
    return is_exact and given.get("side", "left") in _SIDES


def recipe(call: LibraryCall, forms: Sequence[Any], device: int) -> Recipe:
    """How places are found. forms: of the operands, of which some may be numbers, and of the result."""
    del device
    builder = RecipeBuilder(forms)
    *operands, result = [builder.whole(at) if isinstance(each, Arrangement) else each for at, each in enumerate(forms)]
    (_searched if call.name == "np.searchsorted" else _digitized)(builder, named(call, operands), result)
    return builder.made()


def _searched(builder: RecipeBuilder, given: Mapping[str, Any], result: Part) -> None:
    """np.searchsorted."""
    row, (a, v) = _in_common(builder, given["a"], given["v"])
    sorter = () if given.get("sorter") is None else (given["sorter"],)
    is_right = given.get("side", "left") == "right"
    kernel = _search(is_right, is_sorted_by=bool(sorter), may_fall=False, is_complex=row.is_complex)
    _launch(builder, kernel, v, a, *sorter, result)


def _digitized(builder: RecipeBuilder, given: Mapping[str, Any], result: Part) -> None:
    """np.digitize, whose edges may fall. Calls raise ValueError for edges that do both."""
    row, (edges, x) = _in_common(builder, given["bins"], given["x"])
    turns, wrong = (builder.room((1,), dtypes.INT32) for _ in range(2))
    count = edges.form.shape[0]
    if count > 1:
        (step,) = edges.form.strides
        pair = [edges.of((count - 1,), start) for start in (0, step)]
        whole = [each._replace(form=each.form._replace(shape=())) for each in (turns, wrong)]
        whole = [each._replace(form=each.form._replace(strides=())) for each in whole]
        builder.stages.append(KernelStage(_turns(), (*pair, *whole), (0,)))
    else:
        builder.clear(turns)
    kernel = _search(not given.get("right", False), is_sorted_by=False, may_fall=True, is_complex=row.is_complex)
    _launch(builder, kernel, x, edges, turns, result)
    if count > 1:
        text = "bins must be monotonically increasing or decreasing"
        builder.call(Outcome(1, text, ValueError).run, [wrong])


def _launch(builder: RecipeBuilder, kernel: Any, *operands: Part) -> None:
    if 0 not in operands[-1].form.shape:
        builder.stages.append(KernelStage(kernel, operands))


def _in_common(builder: RecipeBuilder, *given: Any) -> tuple[DType, list[Part]]:
    """Arrays and numbers as arrays of the dtype that they have in common."""
    kinds = [each.form.row.numpy if isinstance(each, Part) else np.asarray(each).dtype for each in given]
    row = dtypes.from_numpy(np.result_type(*kinds))
    assert row is not None, "kernels know what known dtypes have in common"
    return row, [_as(builder, each, row) for each in given]


def _as(builder: RecipeBuilder, given: Any, row: DType) -> Part:
    """An array or a number as an array of some dtype."""
    if isinstance(given, Part) and given.form.row == row:
        return given
    made = builder.room(given.form.shape if isinstance(given, Part) else (), row)
    if isinstance(given, Part):
        builder.copy(given, made)
    else:
        builder.stages.append(KernelStage(filling("filled"), (float(given), made)))
    return made


# --- kernels ---------------------------------------------------------------------------------------------------------


@cache
def _search(is_right: bool, is_sorted_by: bool, may_fall: bool, is_complex: bool) -> Any:
    """How many elements of an array come before each key, or do not come behind it.

    The array may be sorted by another one, or fall if a number is 1; then those that do not come before are counted.
    """
    last, inputs = "long long n = a.shape()[0], low = 0, high = n;", "T key, raw T a"
    place = "middle"
    if is_sorted_by:
        inputs += ", raw I sorter"
        place = "min(max((long long)sorter[middle], 0LL), n - 1)"
    if may_fall:
        inputs += ", raw int32 turns"
        last += " bool falls = turns[0] == 1;"
        place = "falls ? n - 1 - middle : middle"
    is_before = "!before(key, beside)" if is_right else "before(beside, key)"
    body = f"""
        {last}
        while (low < high) {{
            long long middle = low + (high - low) / 2, place = {place};
            T beside = a[place];
            if ({is_before}) low = middle + 1; else high = middle;
        }}
        y = {"falls ? n - low : low" if may_fall else "low"};
    """
    name = f"search_{_SIDES[is_right]}{'_by' * is_sorted_by}{'_turned' * may_fall}"
    return comparing(name, inputs, "int64 y", body, is_complex)


@cache
def _turns() -> Any:
    """Whether neighbours fall somewhere, 1, or rise, 2; and whether they do both."""
    with locks.lock:
        from fusec.kernels.reduction_kernel import ReductionKernel

    return ReductionKernel(
        "T x, T y", "int32 turns, int32 wrong", "(double(x) > double(y) ? 1 : 0) | (double(x) < double(y) ? 2 : 0)",
        "a | b", "turns = a; wrong = a == 3", "0", "turns",
    )  # fmt: skip
