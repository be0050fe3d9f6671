"""Random functions as graphs: cut in every way, compiled in pieces, they give NumPy's results and the same bits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fusec
from fusec import graph
from fusec.base.records import replace
from fusec.fusion.trace.trace_values import replaced
from fusec.graphs import nodes
from fusec.graphs.building import Graph
from fusec.ir.expr import Const, Expr
from fusec.ir.walk import inner_first
from tests.property.array_programs import arrays, drawn_from
from tests.support.array_programs import ELSEWHERE, FURTHER, STEPS, copies, run

CALM = {"deadline": None, "suppress_health_check": list(HealthCheck)}
PROGRAMS = st.lists(drawn_from((*STEPS, *FURTHER, *ELSEWHERE, *ELSEWHERE)), min_size=1, max_size=8)
ARRAYS = st.lists(arrays, min_size=1, max_size=3)
INSIDE = (nodes.ArrayInput, nodes.Near, nodes.Inside, Const)  # no values by themselves


def in_pieces(built: nodes.ArrayGraph, cuts: Collection[Expr], given_arrays: Sequence[Any]) -> list[Any]:
    """The outputs of a graph, of which some values are computed by graphs of their own and stored in between."""
    known: dict[Expr, Expr] = {each: replace(each, donated=False) for each in built.inputs}
    values = dict(zip([known[each] for each in built.inputs], given_arrays, strict=True))

    def computed(root: Expr) -> Any:
        found = replaced(root, dict(known))
        if found in values:
            return values[found]
        read = {each: None for each in inner_first([found]) if isinstance(each, nodes.ArrayInput)}
        given = {known[each]: None for each in built.inputs}  # which tell the sizes
        one = nodes.ArrayGraph("piece", (*(given | read),), (("y", found),), built.functions)
        return Graph.of(one).compile()(*(values[each] for each in one.inputs))

    for number, node in enumerate(cuts):
        array = computed(node)
        place = nodes.ArrayInput(f"cut{number}", node.type, array.shape, False)  # type: ignore[attr-defined]
        known[node], values[place] = place, array
    return [computed(value) for _, value in built.outputs]


def assert_same(ours: Any, theirs: Any) -> None:
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    np.testing.assert_array_equal(ours, theirs)
    if ours.dtype.kind in "fc":
        numbers = ~np.isnan(theirs)
        np.testing.assert_array_equal(np.signbit(ours.real)[numbers], np.signbit(theirs.real)[numbers])


def check(program: Any, given_arrays: Any, data: Any) -> None:
    fused = fusec.fuse(lambda *xs: run(program, list(xs)))
    with np.errstate(all="ignore"):
        mine, theirs = copies(given_arrays), copies(given_arrays)
        expected, found = run(program, theirs), fused(*mine)
        made = fused.graph(*given_arrays)
        read = graph.parse(str(made), functions=made.functions)
        assert str(read) == str(made)
        built = read.built()
        inner = [each for each in inner_first([value for _, value in built.outputs]) if not isinstance(each, INSIDE)]
        some = data.draw(st.lists(st.sampled_from(inner), unique=True, max_size=4)) if inner else []
        whole = read.compile()(*copies(given_arrays))
        ways = [
            list(whole if isinstance(whole, tuple) else (whole,)),
            in_pieces(built, [each for each in inner if each in some], copies(given_arrays)),
            in_pieces(built, inner, copies(given_arrays)),
        ]
    results = [*(each for each, before in zip(mine, built.inputs, strict=True) if before.donated), *found]
    for ours, theirs_ in zip(found, expected, strict=True):
        assert ours.dtype == theirs_.dtype
        np.testing.assert_array_equal(ours, theirs_)
    for way in ways:
        for ours, fused_result in zip(way, results, strict=True):
            assert_same(ours, fused_result)


@settings(max_examples=10, derandomize=True, **CALM)
@given(PROGRAMS, ARRAYS, st.data())
def test_graphs_cut_in_every_way_give_the_same_bits(program, given_arrays, data):
    check(program, given_arrays, data)


@pytest.mark.slow
@settings(max_examples=500, **CALM)
@given(PROGRAMS, ARRAYS, st.data())
def test_many_graphs_cut_in_every_way_give_the_same_bits(program, given_arrays, data):
    check(program, given_arrays, data)
