"""Everyday NumPy programs give the same results fused: structure, dtypes, shapes, and bits where NumPy is exact."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
import fusec.xp as xp
from fusec import graph
from fusec.base import background
from fusec.compiler import pipeline
from fusec.dispatch import tiers
from fusec.fusion.schedule import plan
from fusec.graphs.text import print_arrays
from tests.programs import images, neural, simulations, statistics
from tests.programs.program import PROGRAMS

LOADED = (images, neural, simulations, statistics)  # these fill the table
REFUSED = {}
"""Programs that fusec refuses today, with the codes of the errors. A program that works must leave the list."""

KERNELS = {  # today, and at most at the end
    "life": (1, 1),
    "heat_step": (2, 2),
    "softmax": (1, 1),
    "layer_norm": (1, 1),
    "batch_norm": (2, 2),
    "batch_norm_in_training": (2, 2),
    "batch_norm_of_rows": (2, 2),
    "cosine_similarity": (1, 1),
    "adam": (1, 1),
    "affine_relu": (1, 1),
    "gather_relu": (1, 1),
    "mvn_draw": (1, 1),
    "concat_then_reduce": (3, 3),
    "stack_then_reduce": (2, 3),
    "pairwise_distances": (1, 1),
    "black_scholes": (1, 1),
}
"""How many kernels a program has today, and how many it should have. A better count must be entered."""


def assert_same(ours: Any, theirs: Any, rtol: float, atol: float) -> None:
    """Compare two results: NumPy's own structure, dtypes and shapes, and values that differ by no more."""
    assert type(ours) is type(theirs)
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for our, their in zip(ours, theirs, strict=True):
            assert_same(our, their, rtol, atol)
    elif isinstance(theirs, (np.ndarray, np.generic)):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        if theirs.dtype.kind in "fc" or atol:
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(ours, theirs)
    else:
        assert ours == theirs


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_same_results_fused(name):
    program = PROGRAMS[name]
    fused = fusec.fuse(program.function)
    if name in REFUSED:
        with pytest.raises(fusec.FusecError) as raised:
            fused(*program.given(0, 5))
        assert raised.value.code == REFUSED[name]
        return
    for seed, size in ((0, 5), (1, 5), (2, 8)):
        given = program.given(seed, size)
        mine = copy.deepcopy(given)
        expected, found = program.function(*given), fused(*mine)
        assert_same(found, expected, program.rtol, program.atol)
        assert_same(mine, given, program.rtol, program.atol)  # what the function writes


def _with_arrays(given: Any, change: Callable[[Any], Any]) -> Any:
    """The same nested lists and tuples with other arrays."""
    if isinstance(given, (list, tuple)):
        return type(given)(_with_arrays(each, change) for each in given)
    return change(given) if isinstance(given, (np.ndarray, np.generic, fusec.Array)) else given


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_unchanged_on_lazy_arrays(name, monkeypatch):
    program = PROGRAMS[name]
    for seed, size in ((0, 5), (2, 8)):
        given = program.given(seed, size)
        mine = _with_arrays(copy.deepcopy(given), xp.asarray)
        expected = _with_arrays(program.function(*given), np.asarray)
        with monkeypatch.context() as patch:
            for each in LOADED:
                patch.setattr(each, "np", xp)
            found = program.function(*mine)
        pending = [each for each in _flat(found) if isinstance(each, fusec.Array)]
        assert len(pending) == len(_flat(found))  # no result is a NumPy array
        assert_same(_with_arrays(found, np.asarray), expected, program.rtol, program.atol)
        assert_same(_with_arrays(mine, np.asarray), given, program.rtol, program.atol)


@pytest.mark.parametrize("name", PROGRAMS)
def test_first_calls_are_interpreted_and_have_the_bits_of_later_ones(name, monkeypatch):
    answered, outputs = [], tiers._outputs
    monkeypatch.setattr(tiers, "_outputs", lambda *call: answered.append(call) or outputs(*call))
    monkeypatch.setattr(background, "submit", lambda job: True)  # which never does it
    forget()
    program = PROGRAMS[name]
    results = []
    for tiered in (True, False):
        monkeypatch.setenv("FUSEC_TIERS", str(int(tiered)))
        monkeypatch.setenv("FUSEC_CACHE", str(int(not tiered)))
        fused = fusec.fuse(program.function)
        for seed, size in ((0, 5), (2, 8), (3, 20)):
            given = program.given(seed, size)
            results.append((fused(*given), given))
        forget()
    assert answered
    for first, later in zip(results[:3], results[3:], strict=True):
        assert_same_bits(first, later)


def forget():
    """Have kernels compiled anew."""
    plan._map_kernel.cache_clear()
    plan._reducing.cache_clear()
    pipeline.forget_executables()


def assert_same_bits(ours: Any, theirs: Any) -> None:
    """Compare two results, each array and number by its bytes."""
    assert type(ours) is type(theirs)
    if isinstance(theirs, (tuple, list)):
        for our, their in zip(ours, theirs, strict=True):
            assert_same_bits(our, their)
    elif isinstance(theirs, (np.ndarray, np.generic)):
        assert (ours.dtype, ours.shape, ours.strides) == (theirs.dtype, theirs.shape, theirs.strides)
        assert ours.tobytes() == theirs.tobytes()
    else:
        assert ours == theirs or (ours != ours and theirs != theirs)


@pytest.mark.parametrize("name", KERNELS)
def test_a_program_is_as_few_kernels_as_it_was(name):
    program = PROGRAMS[name]
    today, _ = KERNELS[name]
    assert fusec.fuse(program.function).explain(*program.given(0, 5)).kernels == today


def _flat(given: Any) -> list[Any]:
    """The arrays and numbers of nested lists and tuples."""
    if isinstance(given, (list, tuple)):
        return [part for each in given for part in _flat(each)]
    return [] if given is None else [given]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_graph_of_a_program_gives_its_bits(name):
    program = PROGRAMS[name]
    fused, given = fusec.fuse(program.function), program.given(0, 5)
    built = fused.graph(*given).built()
    text = print_arrays(built)
    python = {name: each for name, each in built.functions.items() if name.startswith("python_")}  # numbers
    read = graph.parse(text, functions=python)
    assert str(read) == text.rstrip()
    compiled = read.compile()
    is_open = str(fused.graph(*program.given(1, 8))) == str(read)  # it has names for extents
    for size in (5, 8) if is_open else (5,):
        mine, theirs = program.given(1, size), program.given(1, size)
        wanted, results = _flat(fused(*theirs)), compiled(*_flat(mine)[: len(built.inputs)])
        written = sum(output in {each.name for each in built.inputs} for output, _ in built.outputs)
        found = list(results if isinstance(results, tuple) else (results,))[written:]
        for ours, their in zip([*found, *_flat(mine)], [*wanted, *_flat(theirs)], strict=True):
            assert (np.asarray(ours).dtype, np.shape(ours)) == (np.asarray(their).dtype, np.shape(their))
            assert np.asarray(ours).tobytes() == np.asarray(their).tobytes()


@pytest.mark.parametrize("turns", [1, 2, 30])
def test_a_loop_over_time_steps_costs_as_many_operations_as_it_has(turns):
    def heat(u, n):
        for _ in range(n):
            u = u + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
        return u

    fused, u = fusec.fuse(heat), np.random.default_rng(0).random(50)
    for _ in range(3):
        np.testing.assert_array_equal(fused(u, turns), heat(u, turns))
        u = u[::-1].copy()
    report = fused.explain(u, turns)
    operations = [int(text.split()[0]) for topic, text in report.lines if " over (50,)" in text]
    assert len(operations) == report.kernels == turns
    assert sum(operations) <= 6 * turns
