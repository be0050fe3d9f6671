"""Plans of calls that are made of recordings are those that binding makes, for kernels of all kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusec
from fusec.dispatch.call import read
from fusec.dispatch.host import HOST
from fusec.dispatch.spec import CallOptions

EXTENTS = st.sampled_from([0, 1, 1, 2, 3, 4, 7, 16, 31, 32, 33, 40, 65, 129, 1030, 2100])
PLAIN = CallOptions()
SUM = fusec.ReductionKernel("T x, T w", "T y", "x * w", "a + b", "y = a", "0", "products")
RUNS = fusec.ScanKernel("T x, T w", "T y", "x * w", "a + b", "y = a", "0", "runs")
STENCIL = fusec.ElementwiseKernel("raw float64 x, float64 w", "float64 z", "z = x[i] + w + i", "places")
CALLS: dict[str, tuple[Any, tuple[CallOptions, ...]]] = {
    "elements": (fusec.ElementwiseKernel("T x, T w", "T z", "z = x + w", "elements"), (PLAIN,)),
    "places": (STENCIL, (PLAIN,)),
    "totals": (SUM, tuple(CallOptions(axis, keep) for axis in (None, 0, -1, (0, 1)) for keep in (False, True))),
    "scans": (RUNS, (CallOptions(0), CallOptions(-1))),
}  # fmt: skip
LAYOUTS = {
    "dense": lambda shape: np.zeros(shape),
    "turned": lambda shape: np.zeros(shape[::-1]).T,
    "gaps": lambda shape: np.zeros([2 * each for each in shape])[tuple(slice(None, None, 2) for _ in shape)],
    "flipped": lambda shape: np.zeros(shape)[::-1],
    "row": lambda shape: np.zeros((1, *shape[1:])),
    "column": lambda shape: np.zeros((*shape[:-1], 1)),
    "repeated": lambda shape: np.broadcast_to(np.zeros((1, *shape[1:])), shape),
}
SHAPES = st.lists(st.one_of(st.tuples(EXTENTS, EXTENTS), st.tuples(EXTENTS)), min_size=4, max_size=10)


@pytest.mark.parametrize("name", CALLS)
@settings(max_examples=15, deadline=None)
@given(SHAPES, st.sampled_from(sorted(LAYOUTS)), st.sampled_from(sorted(LAYOUTS)), st.integers(0, 7), st.booleans())
def test_plans_of_recordings_are_those_of_the_calls(
    name: str, shapes: list[tuple[int, ...]], one: str, other: str, which: int, out: bool
) -> None:
    kernel, choices = CALLS[name]
    options = choices[which % len(choices)]
    if isinstance(options.axis, tuple):
        shapes = [each if len(each) == 2 else (*each, 3) for each in shapes]
    for shape in shapes:
        arrays = (LAYOUTS[one](shape), LAYOUTS[other](shape))
        try:
            outputs = (np.zeros(np.broadcast_shapes(*(each.shape for each in arrays))),) if out else ()
            call = read(HOST, kernel, arrays, outputs if name == "elements" else (), options)
            known = HOST.again(kernel, call.given(HOST))
            wanted = HOST._plan(kernel, call.given(HOST), None)
        except (ValueError, fusec.FusecError):
            continue
        if known is not None:
            assert (known.bound, known.outputs, known.zeroed) == (wanted.bound, wanted.outputs, wanted.zeroed)
            assert [each.launch for each in known.steps] == [each.launch for each in wanted.steps]
            for ours, theirs in zip(known.steps, wanted.steps, strict=True):
                assert (ours.arguments, ours.code.grain) == (theirs.arguments, theirs.code.grain)
                assert ours.code.address == theirs.code.address
