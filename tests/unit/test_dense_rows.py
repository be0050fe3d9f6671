"""What is found for calls over dense rows of other extents is what is found without a call before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from fusec.arguments.layouts import View
from fusec.base.dtypes import FLOAT64
from fusec.base.kernel_abi import strides_in_order
from fusec.dispatch import reductions
from fusec.dispatch.dense_rows import DenseRows, kind_of
from fusec.dispatch.host import HOST
from fusec.dispatch.spec import CallOptions, Given
from fusec.kinds.launch import ONE_THREAD
from fusec.runtime.cpu.machine import last_level_cache_bytes

WEIGHTED = fusec.ReductionKernel("float64 x, float64 w", "float64 y", "x * w", "a + b", "y = a", "0", "weighted")
EXTENTS = (1, 1, 2, 3, 7, 31, 32, 33, 40, 64, 65, 129, 1000, 1025)


def dense(*shape: int) -> View:
    """An array of a shape in C order."""
    return View(0, shape, strides_in_order(shape, range(len(shape)), 8), FLOAT64)


def given(arrays: list[View], axis: Any, keepdims: bool, *out: View) -> Given:
    """A call without numbers."""
    return Given(dict(zip("xw", arrays, strict=True)), frozenset(), out or None, None, CallOptions(axis, keepdims))


def laid_out(rng: Any, shape: tuple[int, ...]) -> View:
    """An array of a shape, most often dense in C order."""
    found = dense(*shape)
    how, axis = rng.integers(10), int(rng.integers(len(shape)))
    if how == 0:
        return found._replace(pointer=4)
    if how == 1:
        return found._replace(strides=strides_in_order(shape, range(len(shape))[::-1], 8))
    if how == 2:
        return found._replace(strides=tuple(2 * each for each in found.strides))
    if how == 3:
        return found._replace(strides=(*found.strides[:-1], -8))
    if how < 7:  # the same along some axis
        strides = dense(*shape[:axis], 1, *shape[axis + 1 :]).strides
        return found._replace(strides=(*strides[:axis], 0, *strides[axis + 1 :]))
    return found


@pytest.mark.parametrize("seed", range(2))
def test_facts_of_other_extents_are_those_of_the_call_itself(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, found = np.random.default_rng(seed), list[Any]()
    bound_of = DenseRows.bound_of
    monkeypatch.setattr(DenseRows, "bound_of", lambda *args: found.append(bound_of(*args)) or found[-1])
    for _ in range(400):
        ndim = int(rng.integers(1, 5))
        shape = tuple(int(rng.choice(EXTENTS)) for _ in range(ndim))
        axes: list[Any] = [None, -1, -1, 0, ndim - 1, tuple(range(1, ndim)), (0, ndim - 1) if ndim > 1 else (0,)]
        axis, keepdims = axes[rng.integers(len(axes))], bool(rng.integers(2))
        call = given([laid_out(rng, shape), laid_out(rng, shape)], axis, keepdims)
        wanted = reductions._bound(WEIGHTED, call, ONE_THREAD, None)[0]
        assert reductions.bind(WEIGHTED, call, ONE_THREAD, None) == wanted
        call = given(list(call.inputs.values()), axis, keepdims, laid_out(rng, wanted.shapes[0] or (1,)))
        if call.outputs and call.outputs[0].shape == wanted.shapes[0]:
            wanted = reductions._bound(WEIGHTED, call, ONE_THREAD, None)[0]
            assert reductions.bind(WEIGHTED, call, ONE_THREAD, None) == wanted
    assert sum(each is not None for each in found) > 20


def test_calls_of_other_kinds_share_no_facts() -> None:
    x, row = dense(4, 100), View(0, (4, 100), (0, 8), FLOAT64)
    kind = kind_of(WEIGHTED, given([x, x], -1, False))
    assert kind is not None
    assert kind == kind_of(WEIGHTED, given([dense(9, 50)] * 2, -1, False))
    others = [
        given([x, x], 0, False), given([x, x], -1, True), given([dense(1, 100)] * 2, -1, False),
        given([x, row], -1, False), given([x, x], -1, False, dense(4)), given([row, row], -1, False),
        given([x._replace(strides=(800, 16))] * 2, -1, False), given([dense(4, 0)] * 2, -1, False),
        given([x, dense(100)], -1, False), given([x._replace(pointer=4)] * 2, -1, False),
    ]  # fmt: skip
    assert all(kind_of(WEIGHTED, each) != kind for each in others)


def test_plans_that_use_known_code_are_those_of_the_call_itself() -> None:
    rng, found = np.random.default_rng(0), 0
    for _ in range(60):
        shape = tuple(int(rng.choice(EXTENTS)) for _ in range(2))
        call = given([dense(*shape), dense(*shape)], -1, False)
        known = HOST.again(WEIGHTED, call)
        wanted = HOST._plan(WEIGHTED, call, None)
        if known is None:
            continue
        found += 1
        assert (known.bound, known.outputs, known.zeroed) == (wanted.bound, wanted.outputs, wanted.zeroed)
        (ours,), (theirs,) = known.steps, wanted.steps
        assert (ours.launch, ours.arguments) == (theirs.launch, theirs.arguments)
        assert (ours.code.address, ours.code.grain) == (theirs.code.address, theirs.code.grain)
    assert found > 3


def test_plans_of_larger_rows_than_the_caches_hold_have_code_of_their_own() -> None:
    softmax = fusec.fuse(lambda x: np.exp(x - x.max(-1, keepdims=True)))
    x = np.linspace(1, 2, 400).reshape(4, 100)
    softmax(x)
    softmax(x[:3])  # the second call of a kind is recorded
    kernel = next(plan.kernels[0].kernel for plans in softmax._plans.values() for plan in plans)
    plan = kernel.planned((x,), CallOptions(1, True))
    larger = Given({"a0": dense(5, 100)}, frozenset(), None, None, CallOptions(1, True))
    again = HOST.again(kernel, larger)
    assert again is not None
    assert again.kernels == plan.kernels
    rows = last_level_cache_bytes() // 800
    fits, exceeds = (Given({"a0": dense(each, 100)}, *larger[1:]) for each in (rows, rows + 1))
    assert HOST.again(kernel, fits) is not None
    assert HOST.again(kernel, exceeds) is None
