"""Sorting on devices by kernels: elements find their places in blocks, and then runs are merged, which doubles them.

An element of a run goes as far as there are elements of the run beside it that come before it, which a binary search
counts. Equal elements keep their order, so that every sort is stable. A partition is a whole sort.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from math import prod
from typing import Any

import numpy as np

from fusec.base import dtypes, locks
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import strides_in_order
from fusec.fusion.devices.recipes import KernelStage, Part, Recipe, RecipeBuilder, named
from fusec.fusion.functions.matrix_products import MAX_KNOWN, Arrangement
from fusec.fusion.trace.trace_values import LibraryCall

BLOCK = 32  # elements that are ranked by comparing each with all
_NAMES = {"np.sort": False, "np.partition": False, "np.argsort": True, "np.argpartition": True}


def LIBRARY() -> None:  # noqa: N802 - as the other modules of recipes name theirs
    """No library is needed."""


@lru_cache(MAX_KNOWN)
def computes(call: LibraryCall) -> bool:
    """Whether kernels compute a call."""
    return call.name in _NAMES and len(call.operands) == 1 and not named(call, [None]).get("order")


def recipe(call: LibraryCall, forms: Sequence[Any], device: int) -> Recipe:
    """How a sort is computed. forms: of the operand and the result. Raises what NumPy raises for wrong places."""
    del device
    builder = RecipeBuilder(forms)
    source, result = map(builder.whole, range(2))
    given = named(call, [source])
    axis = given.get("axis", -1) % len(source.form.shape)
    if "kth" in given:
        _check_places(given["kth"], source.form.shape[axis])
    if prod(source.form.shape):
        sort(builder, _moved(source, axis), _moved(result, axis), _NAMES[call.name])
    return builder.made()


def _check_places(kth: Any, extent: int) -> None:
    np.partition(np.zeros(1, bool).repeat(extent), kth)  # raises NumPy's error


def _moved(part: Part, axis: int) -> Part:
    """An array with an axis behind the others."""
    shape, strides = ((*each[:axis], *each[axis + 1 :], each[axis]) for each in (part.form.shape, part.form.strides))
    return part._replace(form=part.form._replace(shape=shape, strides=strides))


def sort(builder: RecipeBuilder, source: Part, result: Part, is_places: bool, keys: Part | None = None) -> None:
    """Sort along the last axis. is_places: the result is the places of elements. keys: where those go as well."""
    *outer, extent = source.form.shape
    row, shape = source.form.row, (prod(outer), extent)
    runs = [BLOCK << at for at in range(max(0, (extent - 1) // BLOCK).bit_length())]
    is_dense = result.form.strides == strides_in_order(result.form.shape, range(len(outer) + 1), result.form.row.nbytes)
    values = [builder.room(shape, row) for _ in range(2)]
    places = [builder.room(shape, dtypes.INT64) for _ in range(2)] if is_places else []
    last = len(runs) % 2  # which of the two has what is sorted
    if is_dense and result.form.row == (dtypes.INT64 if is_places else row):
        (places if is_places else values)[last] = _as_shaped(result, shape)
    builder.copy(source, _as_shaped(values[1], source.form.shape))
    _launch(builder, f"ranked{'_places' * is_places}", row, (values[1], values[1]), (values[0], *places[:1]))
    for at, run in enumerate(runs):
        read, write = at % 2, 1 - at % 2
        inputs: list[Part | float] = [values[read], values[read], *places[read : read + 1], float(run)]
        _launch(builder, f"merged{'_places' * is_places}", row, inputs, (values[write], *places[write : write + 1]))
    made = (places if is_places else values)[last]
    if made.place != result.place:
        builder.copy(_as_shaped(made, result.form.shape), result)
    if keys is not None:
        builder.copy(_as_shaped(values[last], keys.form.shape), keys)


def _as_shaped(part: Part, shape: tuple[int, ...]) -> Part:
    return part._replace(form=_dense(shape, part.form))


def _dense(shape: tuple[int, ...], form: Arrangement) -> Arrangement:
    return form._replace(shape=shape, strides=strides_in_order(shape, range(len(shape)), form.row.nbytes))


def _launch(
    builder: RecipeBuilder, name: str, row: DType, inputs: Sequence[Part | float], outputs: Sequence[Part]
) -> None:
    builder.stages.append(KernelStage(comparing(f"sort_{name}", *_KERNELS[name], row.is_complex), (*inputs, *outputs)))


# --- kernels ---------------------------------------------------------------------------------------------------------

_REAL = "return a < b || (b != b && a == a);"
_COMPLEX = """
    if (real(a) < real(b)) return imag(a) == imag(a) || imag(b) != imag(b);
    if (real(a) > real(b)) return imag(b) != imag(b) && imag(a) == imag(a);
    if (real(a) == real(b) || (real(a) != real(a) && real(b) != real(b)))
        return imag(a) < imag(b) || (imag(b) != imag(b) && imag(a) == imag(a));
    return real(b) != real(b);
"""  # NumPy's order: nan last, and what has one nan before what has two

_RANKED = """
    long long extent = x.shape()[1], j = i % extent, row = i - j;
    long long first = j / {block} * {block}, place = first;
    long long end = first + {block} < extent ? first + {block} : extent;
    for (long long k = first; k < end; k++) {{
        T other = x[row + k];
        if (before(other, key) || (k < j && !before(key, other))) place++;
    }}
    y[row + place] = key;
"""
_MERGED = """
    long long extent = x.shape()[1], length = (long long)run, j = i % extent, row = i - j;
    long long own = j / length, other = own % 2 ? own - 1 : own + 1, place = j;
    long long start = other * length, low = start;
    if (start < extent) {
        long long high = start + length < extent ? start + length : extent;
        while (low < high) {
            long long middle = (low + high) / 2;
            T beside = x[row + middle];
            bool is_first = own % 2 ? !before(key, beside) : before(beside, key);
            if (is_first) low = middle + 1; else high = middle;
        }
        place = own / 2 * 2 * length + (j - own * length) + (low - start);
    }
    y[row + place] = key;
"""
_KERNELS = {
    "ranked": ("T key, raw T x", "raw T y", _RANKED.format(block=BLOCK)),
    "ranked_places": ("T key, raw T x", "raw T y, raw int64 q", _RANKED.format(block=BLOCK) + "q[row + place] = j;"),
    "merged": ("T key, raw T x, float64 run", "raw T y", _MERGED),
    "merged_places": (
        "T key, raw T x, raw int64 p, float64 run", "raw T y, raw int64 q", _MERGED + "q[row + place] = p[i];"
    ),
}  # fmt: skip


@cache
def comparing(name: str, inputs: str, outputs: str, body: str, is_complex: bool) -> Any:
    """A kernel whose function `before` tells which of two numbers comes first, of complex ones or of others."""
    with locks.lock:
        from fusec.kernels.elementwise_kernel import ElementwiseKernel

    order = _COMPLEX if is_complex else _REAL
    preamble = f"template <typename T> __device__ bool before(T a, T b) {{ {order} }}"
    return ElementwiseKernel(inputs, outputs, body, name, preamble=preamble)
