"""The PTX interpreter finds seeded bugs, each of them, and runs the same kernels without them."""

import numpy as np
import ptx
import pytest
from cuda_in_ptx import ORDERS, ptx_of
from ptx_texts import PLACES, SUMS

pytest.importorskip("cuda.bindings.nvrtc", reason="the extra fusec[cuda] brings NVRTC")

ARCHS = ("compute_75", "compute_120")  # two generations of NVRTC's code generator
X = np.arange(256, dtype=np.float32) % 7 - 2


@pytest.fixture(scope="module", params=ARCHS)
def sums(request) -> ptx.Module:
    return ptx.load(ptx_of(SUMS, request.param))


@pytest.fixture(scope="module", params=ARCHS)
def places(request) -> ptx.Module:
    return ptx.load(ptx_of(PLACES, request.param))


# --- trees in shared memory, barriers -------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("together", [1, 2])
def test_a_tree_in_shared_memory_adds_a_block(sums, order, together):
    z = np.zeros(2, np.float32)
    ptx.launch(sums, "tree", 2, 128, [X, z], order=order, together=together)
    assert z.tolist() == [X[:128].sum(), X[128:].sum()]


@pytest.mark.parametrize(
    ("entry", "fault", "words"),
    [
        ("tree_without_first_barrier", ptx.SharedRace, "a read beside a write without a barrier"),
        ("tree_without_inner_barrier", ptx.SharedRace, "without a barrier between"),
        ("tree_half_filled", ptx.Uninitialised, "shared memory is read before it is written"),
        ("tree_divergent_barrier", ptx.BarrierDivergence, "64 threads, thread"),
        ("tree_early_exit", ptx.BarrierDivergence, "120 threads"),
        ("tree_overrun", ptx.OutOfBounds, "outside shared memory"),
        ("tree_two_barriers", ptx.BarrierDivergence, "64 threads.*64 threads"),
    ],
)
def test_a_tree_with_one_mistake_is_refused(sums, entry, fault, words):
    with pytest.raises(fault, match=words) as caught:
        ptx.launch(sums, entry, 2, 128, [X, np.zeros(2, np.float32)])
    assert f"in {entry}, line " in str(caught.value)
    assert "of block (0, 0, 0)" in str(caught.value)


@pytest.mark.parametrize("order", ORDERS)
def test_shared_and_global_atomics_make_a_histogram(sums, order):
    x, z = np.arange(500, dtype=np.uint32) ** 2 % 37, np.zeros(16, np.uint32)
    ptx.launch(sums, "histogram", 3, 64, [x, z, 500], shared=64, order=order)
    assert (z == np.bincount(x % 16, minlength=16)).all()
    with pytest.raises(ptx.OutOfBounds):
        ptx.launch(sums, "histogram", 3, 64, [x, z, 500], shared=60)


def test_plain_updates_of_one_shared_counter_race(sums):
    with pytest.raises(ptx.SharedRace):
        ptx.launch(sums, "histogram_racy", 1, 64, [np.ones(64, np.uint32), np.zeros(16, np.uint32), 64], shared=64)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.sampled(3)
def test_a_loop_around_compare_and_swap_may_start_with_a_plain_read(sums, order):
    x, z = (np.arange(96, dtype=np.int32) * 37) % 101, np.zeros(96, np.int32)
    ptx.launch(sums, "largest", 1, 96, [x, z], order=order)
    assert (z == x.max()).all()
    for entry in ("largest_too_early", "largest_before"):
        with pytest.raises(ptx.SharedRace, match="read shared memory beside atomic updates"):
            ptx.launch(sums, entry, 1, 96, [x, z], order=order)
    ptx.launch(sums, "counted_alone", 1, 64, [z[:64]])
    assert (z[:64] == 7).all()


# --- warps -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", ["warp_down", "warp_xor"])
@pytest.mark.parametrize("order", ORDERS)
def test_shuffles_add_a_warp(sums, entry, order):
    z = np.zeros(8, np.float32)
    ptx.launch(sums, entry, 2, 128, [X, z], order=order)
    assert (z == X.reshape(8, 32).sum(axis=1)).all()


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("warp_half_mask", "is not in its own member mask 0xffff"),
        ("warp_divergent", "the others have ended or wait elsewhere"),
        ("warp_absent_source", "reads lane 20, which is not in the member mask 0xffff"),
    ],
)
def test_a_wrong_member_mask_is_refused(sums, entry, words):
    with pytest.raises(ptx.WarpDivergence, match=words):
        ptx.launch(sums, entry, 1, 64, [X, np.zeros(64, np.float32)])


def test_halves_of_a_warp_may_shuffle_with_masks_of_their_own(sums):
    z = np.zeros(64, np.float32)
    ptx.launch(sums, "warp_two_halves", 1, 64, [X, z])
    lanes = np.arange(64)
    assert (z == X[lanes] + X[np.where(lanes % 32 < 16, lanes ^ 1, lanes ^ 2)]).all()


def test_lanes_that_do_not_exist_are_missed(sums):
    with pytest.raises(ptx.WarpDivergence):
        ptx.launch(sums, "warp_down", 1, 48, [X, np.zeros(2, np.float32)])


def test_a_scan_of_shuffles_adds_what_comes_before(sums):
    x, z = np.arange(96, dtype=np.int32) ** 2, np.zeros(96, np.int32)
    ptx.launch(sums, "warp_up", 1, 96, [x, z])
    assert (z == np.cumsum(x.reshape(3, 32), axis=1).ravel()).all()


def test_lanes_of_a_warp_see_each_other_after_syncwarp_only(sums):
    z = np.zeros(64, np.float32)
    ptx.launch(sums, "neighbour", 1, 64, [X, z])
    assert (z == X[np.arange(64) ^ 1]).all()
    with pytest.raises(ptx.SharedRace):
        ptx.launch(sums, "neighbour_racy", 1, 64, [X, z])


def test_what_many_read_one_may_write_after_a_barrier_only(sums):
    z = np.zeros(64, np.float32)
    ptx.launch(sums, "broadcast", 1, 64, [X, z])
    assert (z == 2 * X[0] + 1).all()
    for order in ORDERS:  # whoever of the readers was seen last
        with pytest.raises(ptx.SharedRace, match="a write beside a read"):
            ptx.launch(sums, "broadcast_racy", 1, 64, [X, z], order=order)
        with pytest.raises(ptx.SharedRace, match="a write beside a read"):
            ptx.launch(sums, "broadcast_to_warps", 1, 64, [X, z], order=order)
    ptx.launch(sums, "broadcast_to_warps", 1, 32, [X, z])  # one warp is its own block


def test_lanes_take_turns_between_barriers_of_their_warp(sums):
    z = np.zeros(64, np.float32)
    ptx.launch(sums, "swapped", 1, 64, [X, z])
    lanes = np.arange(64)
    assert (z == 2 * X[lanes ^ 1] + X[lanes]).all()


def test_votes_and_matches_count_lanes(sums):
    x, z = (np.arange(64, dtype=np.int32) * 5 % 11) - 3, np.zeros(64, np.uint32)
    ptx.launch(sums, "votes", 1, 64, [x, z])
    for row, found in zip(x.reshape(2, 32), z.reshape(2, 32), strict=True):
        ballot = sum(1 << lane for lane in range(32) if row[lane] > 0)
        base = ballot + 3 * bool((row == 7).any()) + bool((row < 9).all())
        same = [sum(1 << lane for lane in range(32) if row[lane] == own) for own in row]
        expected = [((base ^ (mask + 32)) + int((x > 3).sum()) * 65536) % 2**32 for mask in same]
        assert found.tolist() == expected


# --- blocks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
def test_the_last_block_sees_what_all_blocks_left(sums, order):
    x, partial, z = np.arange(40 * 32, dtype=np.int32), np.zeros(40, np.int32), np.zeros(1, np.int32)
    for _ in range(2):  # the counter of the module is kept, and reset by the kernel
        ptx.launch(sums, "last_block", 40, 32, [x, partial, z], order=order)
        assert z[0] == x.sum()
        assert (partial == x.reshape(40, 32).sum(axis=1)).all()


def test_blocks_run_in_the_order_that_is_asked_for(sums):
    for order in ORDERS:
        z = np.zeros(96, np.int32)
        ptx.launch(sums, "tickets", 3, 32, [np.zeros(1, np.uint32), z], order=order)
        assert sorted(z) == list(range(96))
        is_up, is_down = (np.diff(z) > 0).all(), (np.diff(z) < 0).all()
        assert (is_up, is_down) == (order == "ascending", order == "descending")


# --- places ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ("copy", None),
        ("copy_past_the_end", ptx.OutOfBounds),
        ("copy_before_the_start", ptx.OutOfBounds),
        ("copy_four", None),
        ("copy_four_misaligned", ptx.Misaligned),
    ],
)
def test_accesses_outside_or_askew_are_refused(places, entry, fault):
    z = np.zeros(100, np.float32)
    if fault is None:
        ptx.launch(places, entry, 4, 32, [X[:100], z, 100])
        assert (z == X[:100]).all()
    else:
        with pytest.raises(fault, match=f"in {entry}, line"):
            ptx.launch(places, entry, 4, 32, [X[:100], z, 100])


def test_null_is_outside_every_buffer(places):
    with pytest.raises(ptx.OutOfBounds, match="4 bytes at 0x"):
        ptx.launch(places, "null", 1, 32, [0])


def test_a_program_that_does_not_end_is_stopped(places):
    with pytest.raises(ptx.StepLimit, match="more than 1000 steps; in forever"):
        ptx.launch(places, "forever", 1, 32, [np.zeros(1, np.int32)], step_limit=1000)


def test_a_division_by_zero_has_no_result(places):
    x, y, z = np.array([7, -7, 9, -(2**31)], np.int32), np.array([2, 2, -4, 3], np.int32), np.zeros(4, np.int32)
    ptx.launch(places, "divided", 1, 4, [x, y, z])
    assert z.tolist() == [3, -3, -2, -715827882]
    with pytest.raises(ptx.Undefined):
        ptx.launch(places, "divided", 1, 4, [x, np.zeros(4, np.int32), z])


def test_more_threads_than_the_kernel_allows_are_refused(places):
    with pytest.raises(ptx.Unsupported, match="blocks of at most 1024 threads, not 2048"):
        ptx.launch(places, "null", 1, 2048, [0])


# --- calls, local memory, tables -------------------------------------------------------------------------------------


def test_functions_call_themselves(places):
    x, z = np.arange(10, dtype=np.int32), np.zeros(10, np.int32)
    ptx.launch(places, "recursion", 1, 10, [x, z])
    assert z.tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]


def test_structs_are_passed_and_returned_by_value(places):
    given = np.zeros(1, np.dtype([("a", "f8"), ("b", "i4"), ("", "i4")]))
    given["a"], given["b"] = 0.25, 50
    z, w = np.zeros(40), np.zeros(40, np.int32)
    ptx.launch(places, "structs", 1, 40, [given.tobytes(), z, w])
    assert (z == np.arange(40) + 9.25).all()
    assert (w == 50 - np.arange(40)).all()


def test_local_arrays_belong_to_their_threads(places):
    x, z = np.arange(40, dtype=np.int32) * 3, np.zeros(40, np.int32)
    ptx.launch(places, "local_array", 1, 40, [x, z])
    assert (z == (x & 15) ** 2 + 2 * np.arange(40) + 1).all()


def test_a_switch_goes_where_the_value_says(places):
    x, z = np.array([6, 5, 4, 3, 2, 0, -5, 100, 4], np.int32), np.zeros(9, np.int32)
    ptx.launch(places, "chosen", 1, 9, [x, z])
    assert z.tolist() == [0b11 << 29, 29, 1, 27, 72, 5, -1, -1, 1]


def test_variables_of_the_module_outlive_a_launch(places):
    module = places
    before = int.from_bytes(module.state["counter"], "little")
    z = np.zeros(8, np.int32)
    ptx.launch(module, "variables", 1, 8, [z])
    assert (z == np.array([3, 1, 4, 1] * 2) + before).all()
    assert int.from_bytes(module.state["counter"], "little") == 6


def test_carries_go_from_sum_to_sum(places):
    x, y = (np.random.default_rng(seed).integers(0, 2**64, 64, np.uint64) for seed in (1, 2))
    x[:4], y[:4] = 2**64 - 1, 2**64 - 1
    z = np.zeros(128, np.uint64)
    ptx.launch(places, "products", 1, 64, [x, y, z])
    for a, b, low, high in zip(x.tolist(), y.tolist(), z[::2].tolist(), z[1::2].tolist(), strict=True):
        assert low | high << 64 == (a * b + a + (b << 64)) % 2**128


def test_grids_and_blocks_have_three_axes(places):
    z = np.full(24 * 30, -1, np.int32)
    ptx.launch(places, "coordinates", (2, 3, 4), (5, 3, 2), [z])
    assert (z == np.repeat(np.arange(24), 30) * 1000 + np.tile(np.arange(30), 24)).all()
