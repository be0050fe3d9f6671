"""Elements that fused functions read elsewhere than at the position at hand: rolled and padded arrays."""

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fusec
from fusec.base.dtypes import FLOAT32, INT64
from fusec.fusion.arguments import CallArguments
from fusec.fusion.trace.trace_values import geometry, parts_of
from fusec.ir.expr import apply, const
from fusec.ir.graph import Input, KernelGraph, Neighbour, Position, Taken
from fusec.ir.text import print_graph
from fusec.ir.verify import verify, verify_graph
from fusec.passes.lower_graph import lower_graph
from tests.programs import images, simulations
from tests.programs.program import PROGRAMS
from tests.support.parse_ir import parse_graph

LOADED = (images, simulations)  # these fill the table
GRID, ROW = np.arange(30.0).reshape(5, 6), np.arange(7)


def kernels(function, *args):
    return int(dict(fusec.fuse(function).explain(*args).lines)["kernels"])


def same(function, *args):
    """The result of a function fused, after it was compared with NumPy's."""
    expected = function(*[np.copy(each) if isinstance(each, np.ndarray) else each for each in args])
    found = fusec.fuse(function)(*args)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert geometry(found)[2] == geometry(expected)[2]
    np.testing.assert_array_equal(found, expected)
    return found


FEW = {
    "roll": (lambda x: np.roll(x, 1) * 2, (ROW,), 1),
    "rolls of both axes": (lambda x: np.roll(x, (1, -2), (0, 1)) - np.roll(np.roll(x, 1, 0), 1, 1), (GRID,), 1),
    "roll of a cheap value": (lambda x: np.roll(x * 2 + 1, 1) + 1, (ROW,), 1),
    "two rolls of a cheap value": (lambda x: np.roll(x + 1, 1) - np.roll(x + 1, -1), (ROW,), 1),
    "roll of a repeated value": (lambda x, y: np.roll(x + y, 1, 0), (GRID, GRID[0]), 1),
    "roll of a row beside a table": (lambda x, y: x + np.roll(y, 2), (GRID, GRID[0]), 1),
    "roll of a column beside a table": (lambda x, y: x * np.roll(y, 2, 0), (GRID, GRID[:, :1]), 1),
    "roll of a slice": (lambda x: np.roll(x[::-2], 1) + 1, (ROW,), 1),
    "slice of a roll": (lambda x: np.roll(x, 1)[1:-1] * 2, (ROW,), 1),
    "every other element of a roll": (lambda x: np.roll(x, 1)[::2] * 2, (ROW,), 2),
    "transposed roll": (lambda x: np.roll(x, 1, 0).T + 1, (GRID,), 1),
    "one row of a roll": (lambda x: np.roll(x, 1, 1)[2] + 1, (GRID,), 1),
    "pads": (lambda x: np.pad(x, 1, mode="edge") + np.pad(x, ((2, 0), (0, 2)), mode="wrap"), (GRID,), 1),
    "differences at a border": (lambda x: np.diff(np.pad(x, 1, mode="reflect")), (ROW,), 1),
    "pad with a number": (lambda x, n: np.pad(x + 1, (1, 2), constant_values=n) * 2, (ROW, 3), 2),
    "window": (lambda x: sum(np.pad(x, 1, mode="edge")[i : i + 5, j : j + 6] for i in range(3) for j in range(3)),
               (GRID,), 1),
    "roll by far": (lambda x: np.roll(x, 90) + 1, (np.arange(200),), 1),
    "total of a roll": (lambda x: (np.roll(x, 1, 1) * x).sum(1), (GRID,), 2),
    "narrow floats": (lambda x: np.roll(x * 3, 1) / 7, (ROW.astype("float16"),), 1),
    "masks": (lambda x: np.roll(x > 3, 1) & ~np.pad(x > 4, 1)[:-2], (ROW,), 2),
    "complex": (lambda x: np.roll(x * 1j, 1).imag + 1, (GRID[0],), 1),
    "in place": (lambda x: np.add(np.roll(x, 1), np.roll(x, -1), out=np.empty_like(x)), (ROW,), 1),
}  # fmt: skip


FEW |= {
    "concatenate": (lambda x, y: np.concatenate([x, y, x]) * 2, (ROW, ROW), 1),
    "concatenate columns": (lambda x, y: np.concatenate([x, y[:, :2]], 1) + 1, (GRID, GRID), 1),
    "concatenate cheap values": (lambda x, y: np.concatenate([x + 1, y * 2]) - 1, (ROW, ROW), 1),
    "concatenate other dtypes": (lambda x, y: np.concatenate([x, y]) / 2, (ROW, GRID[0]), 1),
    "concatenate nothing": (lambda x: np.concatenate([x, x[:0], x[:2]]), (ROW,), 1),
    "slices of what is joined": (lambda x, y: np.concatenate([x, y])[2:-2] + 1, (ROW, ROW), 1),
    "differences of what is joined": (lambda x: np.diff(x, prepend=0, append=x[:1]), (ROW,), 1),
    "stack": (lambda x, y: np.stack([x, y, x + y], -1) * 2, (ROW, ROW), 1),
    "vstack and hstack": (lambda x, y: np.vstack([x, y]) + np.hstack([x, y]).reshape(2, 7), (ROW, ROW), 2),
    "stack of totals": (lambda x: np.stack([x.sum(0), x.max(0)]), (GRID.T.copy(),), 2),
    "joined and reduced": (lambda x, y: np.concatenate([x, y * 2]).sum(), (ROW, ROW), 2),
    "stacked and reduced": (lambda x, y: np.stack([x, y + 1]).max(0), (ROW, ROW), 2),
    "many": (lambda *x: np.concatenate(x), (ROW,) * 12, 12),
    "narrow and long": (lambda x: np.concatenate([x, x]), (np.ones((9000, 3)),), 2),
    "repeat": (lambda x: np.repeat(x, 3) + 1, (GRID,), 1),
    "repeat of a cheap value": (lambda x: np.repeat(x * 2, 2, 0) + 1, (GRID.T,), 1),
    "repeat of both axes": (lambda x: np.repeat(np.repeat(x, 2, 0), 2, 1) + 1, (GRID,), 1),
    "repeat by far": (lambda x: np.repeat(x, 70, 1) + 1, (GRID,), 1),
    "repeat and roll": (lambda x: np.roll(np.repeat(x, 2, 0), 1, 1) * 2, (GRID,), 2),
    "slices of a repeat": (lambda x: np.repeat(x, 2)[1:-1] + np.repeat(x[::-1], 2)[2:], (ROW,), 1),
    "indices into a repeat": (lambda x, i: np.repeat(x, 2)[i], (ROW, np.array([0, -1, 5])), 1),
    "a roll of what is joined": (lambda x: np.roll(np.concatenate([x, x]), 1), (ROW,), 2),
}  # fmt: skip


@pytest.mark.parametrize("name", FEW)
@pytest.mark.sampled(5)
def test_elements_elsewhere_are_read_inside_of_kernels(name):
    function, args, count = FEW[name]
    same(function, *args)
    assert kernels(function, *args) <= count


@pytest.mark.parametrize("name", ["life", "gray_scott", "sobel"])
def test_programs_of_windows_are_one_kernel(name):
    program = PROGRAMS[name]
    assert kernels(program.function, *program.given(0, 8)) == 1


def diffused(u, n):
    for _ in range(n):
        u = u + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
    return u


def size_of(function, *args):
    """How many nodes all kernels of a call have together, and how many operations they do for an element."""
    fused = fusec.fuse(function)
    plan, _ = fused._plan(CallArguments(args, {}, function=fused._function))
    nodes = sum(len(parts_of(expr)) for step in plan.steps for expr in step.group.exprs.values())
    counts = re.findall(r"(\d+) operations over", str(fused.explain(*args)))
    return nodes, sum(map(int, counts))


def test_steps_of_time_cost_what_one_of_them_costs():
    small, large = size_of(diffused, ROW / 7, 5), size_of(diffused, ROW / 7, 50)
    assert large[0] == 10 * small[0]
    assert large[1] == 10 * small[1] <= 6 * 50
    np.testing.assert_allclose(fusec.fuse(diffused)(ROW / 7, 50), diffused(ROW / 7, 50), rtol=1e-13)


@pytest.mark.parametrize("step", [
    lambda u: -2 * u + np.roll(u, 1) + np.roll(u, -1),
    lambda u: u[::-1] + u + np.roll(u, 1),
    lambda u: np.roll(u, 1) - u,
    lambda u: np.pad(u, 1)[2:] * 2 + np.pad(u, 1)[:-2],
])  # fmt: skip
def test_views_of_views_never_multiply_work(step):
    def steps(u, n):
        for _ in range(n):
            u = step(u)
        return u

    (_, few), (_, many) = size_of(steps, ROW, 10), size_of(steps, ROW, 30)
    assert many <= 3.5 * few
    assert few <= 10 * 3 * size_of(step, ROW)[1]
    np.testing.assert_array_equal(fusec.fuse(steps)(ROW, 9), steps(ROW, 9))


def test_arguments_that_are_written_from_their_neighbours():
    def step(u, n):
        for _ in range(n):
            u[...] = np.roll(u, 1) + u
            u[1:] -= np.roll(u, -1)[1:]
        u += np.pad(u, 1)[:-2]
        return u * 2

    fast = fusec.fuse(step)
    for given_ in (np.arange(7), np.arange(20)[::-3], np.arange(6.0), np.zeros(0)):
        mine = given_.copy()
        np.testing.assert_array_equal(fast(given_, 3), step(mine, 3))
        np.testing.assert_array_equal(given_, mine)


def test_calls_with_other_arrays_give_other_results():
    def step(x, i):
        return np.roll(x, 1) - x[i] + np.concatenate([x[1:], x[:1]])

    fast, rng = fusec.fuse(step), np.random.default_rng(1)
    for size, by in ((5, 1), (5, 1), (9, -2), (5, 3), (1, 1), (0, 1), (9, 1), (6, 1)):
        x = rng.normal(size=(size, 2))[::by]
        i = rng.integers(-len(x), len(x), len(x)) if size else np.zeros(0, int)
        for _ in range(2):
            np.testing.assert_array_equal(fast(x, i), step(x, i))
            x += 1
    for _ in range(3):
        x = np.arange(4.0).reshape(2, 2)
        shared = fusec.fuse(lambda a, b: a.__iadd__(np.roll(b, 1, 0)))(x, x[::-1])
        np.testing.assert_array_equal(shared, [[0, 2], [4, 6]])


def test_explain_says_why_a_value_is_stored():
    text = str(fusec.fuse(diffused).explain(ROW / 7, 2))
    assert "a value of shape (7,) is stored: an element is read at 3 positions" in text
    text = str(fusec.fuse(lambda x: np.roll(np.exp(x), 1)).explain(ROW / 7))
    assert "costly to compute is stored" in text


@pytest.mark.parametrize(("call", "args"), [
    (lambda x: np.pad(x, -1), (ROW,)), (lambda x: np.pad(x, 1, mode="edge"), (np.zeros(0),)),
    (lambda x: np.pad(x, ((1, 1), (1, 1), (1, 1))), (GRID,)), (lambda x: np.pad(x, 1, mode="edge", end=1), (ROW,)),
    (lambda x: np.roll(x, 1, 2), (GRID,)),
])  # fmt: skip
def test_errors_are_those_of_numpy(call, args):
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        call(*args)
    with pytest.raises(type(theirs.value)):
        fusec.fuse(call)(*args)


@pytest.mark.parametrize("options", [
    {"mode": "maximum"}, {"mode": "reflect", "reflect_type": "odd"}, {"constant_values": (1, 2)},
    {"pad_width": ((70, 0), (0, 1)), "mode": "edge"}, {"pad_width": {0: 1}, "mode": "wrap"}, {"pad_width": 0},
])  # fmt: skip
def test_other_ways_to_pad_are_numpys(options):
    if isinstance(options.get("pad_width"), dict) and np.lib.NumpyVersion(np.__version__) < "2.2.0":
        pytest.skip("this NumPy does not take dictionaries")
    same(lambda x: np.pad(x, **{"pad_width": 1} | options), GRID)


shapes = st.lists(st.integers(0, 5), min_size=1, max_size=3).map(tuple)
parts = st.sampled_from([slice(None), slice(None, None, -1), slice(1, None), slice(None, None, 2)])


def check_any_array(data, shape, dtype):
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)[data.draw(parts)]
    x = x.T if data.draw(st.booleans()) else x
    shift, axis = data.draw(st.integers(-9, 9)), data.draw(st.integers(-x.ndim, x.ndim - 1))
    width = data.draw(st.tuples(st.integers(0, 7), st.integers(0, 7)))
    mode = data.draw(st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap"]))
    part = data.draw(parts)
    same(lambda x: np.roll(x + x, shift, axis)[part] + np.roll(x, -shift, axis)[part], x)
    if x.size:
        same(lambda x: np.pad(np.roll(x, 1), width, mode=mode), x)


dtypes = st.sampled_from("? u1 i8 f2 f8 c16".split())


@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data(), shapes, dtypes)
def test_rolls_and_pads_of_any_array_are_numpys(data, shape, dtype):
    check_any_array(data, shape, dtype)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), shapes, dtypes)
def test_rolls_and_pads_of_many_arrays_are_numpys(data, shape, dtype):
    check_any_array(data, shape, dtype)


def test_graphs_of_neighbours_are_text_and_programs():
    x = Input("x", FLOAT32)
    index = (Neighbour(0, -1, "wrap", 0, INT64), Position(1, INT64))
    around = (Neighbour(0, 1, "constant", 0, INT64), const(0, INT64))
    value = apply("add", *(Taken(x, const(1, FLOAT32), each, FLOAT32, ()) for each in (index, around)))
    graph = KernelGraph("g", (x,), (("z", value),))
    verify_graph(graph)
    verify(lower_graph(graph))
    assert print_graph(parse_graph(print_graph(graph))) == print_graph(graph)


def _rolled(a):
    v = np.roll(a, 1)
    a += 2
    return v


def _gathered(a):
    v = a[np.array([1, 0, 1])]
    a += 1
    return v * 2


def _padded(a):
    v = np.pad(a, 1, mode="edge")
    a += 2
    return v * 2


@pytest.mark.parametrize("function", [_rolled, _gathered, _padded])
@pytest.mark.parametrize("shape", [(5,), (3, 4)])
def test_what_is_taken_before_its_array_changes_is_copied(function, shape):
    fused = fusec.fuse(function)
    for _ in range(3):
        mine, theirs = (
            np.arange(12.0)[: np.prod(shape)].reshape(shape),
            np.arange(12.0)[: np.prod(shape)].reshape(shape),
        )
        np.testing.assert_array_equal(fused(mine), function(theirs))
        np.testing.assert_array_equal(mine, theirs)


REVERSED = {
    "rolls": lambda u: u + np.roll(u, (1, -2), (0, 1)),
    "pads": lambda u: np.pad(u, ((1, 2), (0, 3)), mode="reflect") * 2,
    "numbers around": lambda u: np.pad(u, 1) + 1,
    "rows beside": lambda u: np.roll(u, 1, 0) + np.arange(u.shape[1]),
    "joined": lambda u: np.concatenate([u, u * 2], 1) + 1,
    "gathered": lambda u: u[[1, 0, 2]] + 1,
}


@pytest.mark.parametrize("name", REVERSED)
def test_arrays_in_fortran_order_are_walked_as_they_lie(name):
    function = REVERSED[name]
    fused = fusec.fuse(function)
    for seed in range(3):
        u = np.asfortranarray(np.random.default_rng(seed).random((5, 7)))
        found, expected = fused(u), function(u)
        np.testing.assert_array_equal(found, expected)
        assert found.strides == expected.strides


def test_kernels_that_ask_for_positions_walk_along_memory():
    flat, turned = (fusec.fuse(lambda u: np.roll(u, 1, 0) + u) for _ in range(2))
    u = np.ones((30, 40))
    assert "stride 1" not in flat.source("cuda", u) + turned.source("cuda", np.asfortranarray(u))


def test_arrays_in_fortran_order_are_written_in_place():
    def step(u):
        u[1:-1] += 0.5 * np.roll(u, 1, 1)[2:]
        u *= np.roll(u, 1, 0)

    fused = fusec.fuse(step)
    for seed in range(3):
        mine = np.asfortranarray(np.random.default_rng(seed).random((6, 7)))
        theirs = mine.copy(order="K")
        fused(mine)
        step(theirs)
        np.testing.assert_array_equal(mine, theirs)
