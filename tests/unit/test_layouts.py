"""Laws of broadcasting, axis merging and overlap: every walk visits exactly the addresses NumPy would."""

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from fusec.arguments import layouts
from fusec.arguments.layouts import View
from fusec.base.dtypes import FLOAT32, from_numpy
from fusec.base.kernel_abi import Step


def view_of(array):
    return View(array.__array_interface__["data"][0], array.shape, array.strides, from_numpy(array.dtype))


@st.composite
def arrays(draw, shape):
    """A float32 array that broadcasts to `shape`: sliced, reversed, transposed or repeated."""
    base = [draw(st.sampled_from([extent, 1])) for extent in shape]
    if draw(st.booleans()):
        base = base[draw(st.integers(0, len(base))) :]
    steps = [draw(st.sampled_from([1, 2, 3, -1, -2])) for _ in base]
    order = draw(st.permutations(range(len(base))))
    memory = np.zeros([base[axis] * abs(steps[axis]) for axis in order], np.float32)
    whole = memory.transpose([order.index(axis) for axis in range(len(base))])
    return whole[(..., *(slice(None, None, step) for step in steps))]


SHAPES = st.lists(st.integers(1, 4), min_size=0, max_size=4).map(tuple)


@st.composite
def operands(draw):
    shape = draw(SHAPES)
    return shape, [draw(arrays(shape)) for _ in range(draw(st.integers(1, 3)))]


def addresses(space, row, start):
    return [
        start + sum(position * stride for position, stride in zip(at, row, strict=True))
        for at in itertools.product(*(range(extent) for extent in space.extents))
    ]


@given(operands(), st.booleans(), st.booleans())
def test_a_nest_visits_the_addresses_that_numpy_visits(drawn, reorder, merge):
    shape, given_arrays = drawn
    views = [view_of(array) for array in given_arrays]
    space = layouts.nest(
        shape, [layouts.broadcast_strides(view, shape) for view in views], reorder=reorder, merge=merge
    )
    walked = []
    expected = []
    for view, array, row, offset in zip(views, given_arrays, space.strides, space.offsets, strict=True):
        walked.append(addresses(space, row, view.pointer + offset))
        seen = np.broadcast_to(array, shape)
        start = seen.__array_interface__["data"][0]
        expected.append(
            [
                start + sum(p * s for p, s in zip(at, seen.strides, strict=True))
                for at in itertools.product(*(range(extent) for extent in shape))
            ]
        )
    pairs, wanted = list(zip(*walked, strict=True)), list(zip(*expected, strict=True))
    assert sorted(pairs) == sorted(wanted)
    if not reorder:
        assert pairs == wanted


@given(operands())
def test_unmerged_spaces_keep_their_shape(drawn):
    shape, given_arrays = drawn
    strides = [layouts.broadcast_strides(view_of(array), shape) for array in given_arrays]
    assert layouts.nest(shape, strides, reorder=False, merge=False).extents == (shape or (1,))


def test_contiguous_arrays_of_any_rank_and_order_merge_to_one_axis():
    for array in (np.zeros((3, 4, 5), "f4"), np.zeros((3, 4, 5), "f4").T, np.zeros((3, 4, 5), "f4")[::-1, ::-1, ::-1]):
        space = layouts.nest(array.shape, [array.strides, array.strides], reorder=True, merge=True)
        assert space.extents == (60,)
        assert space.strides == ((4,), (4,))


@given(operands())
def test_common_shape_is_numpys(drawn):
    _, given_arrays = drawn
    shape = ()
    for array in given_arrays:
        shape = layouts.common_shape(shape, array.shape)
    assert shape == np.broadcast_shapes(*(array.shape for array in given_arrays))


@pytest.mark.parametrize(("left", "right", "axis"), [((2, 3), (4,), 1), ((2, 3), (3, 3), 0), ((5,), (4,), 0)])
def test_shapes_that_differ_name_the_axis(left, right, axis):
    assert layouts.common_shape(left, right) == axis


@given(SHAPES.flatmap(arrays))
def test_bounds_hold_every_element(array):
    low, high = layouts.bounds(view_of(array))
    assert (low, high) == np.lib.array_utils.byte_bounds(array)


def test_internal_overlap_is_seen():
    memory = np.zeros(16, np.float32)
    as_strided = np.lib.stride_tricks.as_strided
    assert layouts.has_internal_overlap(view_of(np.broadcast_to(memory[:1], (4,))))
    assert layouts.has_internal_overlap(view_of(as_strided(memory, (4, 4), (4, 4))))
    assert not layouts.has_internal_overlap(view_of(memory.reshape(4, 4).T[::-1, ::2]))
    assert not layouts.has_internal_overlap(view_of(as_strided(np.zeros(10, np.float64), (3, 2), (16, 24))))
    assert not layouts.has_internal_overlap(view_of(np.zeros((0, 3), np.float32)))


def test_alignment_takes_few_values():
    memory = np.zeros(4099, np.uint8)
    start = -memory.__array_interface__["data"][0] % 64
    keys = set()
    for offset in range(32):
        array = memory[start + offset : start + offset + 400].view(np.float32)
        space = layouts.nest(array.shape, [array.strides], reorder=True, merge=True)
        for vectors in (False, True):
            keys.add(layouts.make_layout(space, [("x", view_of(array))], [], c_order=False, vectors=vectors).aligned)
    assert keys == {1, 4, 16}


def test_steps_are_classified():
    array = np.zeros((4, 6), np.float32)
    views = [view_of(array), view_of(array[:, ::2][:, :3]), view_of(array[:, 0])]
    strides = [(24, 4), (24, 8), (24, 0)]
    space = layouts.MergedSpace((4, 3), tuple(strides), (0, 0, 0))
    layout = layouts.make_layout(space, list(zip("abc", views, strict=True)), [], c_order=True)
    assert [layout.step(name)[-1] for name in "abc"] == [Step.UNIT, Step.ANY, Step.ZERO]


def test_extents_beyond_32_bits_are_wide():
    huge = View(0, (1 << 31,), (0,), FLOAT32)
    space = layouts.nest(huge.shape, [huge.strides], reorder=True, merge=True)
    assert layouts.make_layout(space, [("x", huge)], [], c_order=True).wide
