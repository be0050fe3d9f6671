"""Copies of arrays fit into a block's shared memory, and code for them is specialised on classes of sizes."""

from hypothesis import given
from hypothesis import strategies as st

from fusec.arguments.layouts import View
from fusec.base import dtypes
from fusec.base.kernel_abi import SHARED_BYTES, strides_in_order
from fusec.kinds.copies import COUNTS, LEAST, copies_of

MANY = 1 << 26
VIEWS = st.lists(st.tuples(st.integers(0, 20_000), st.sampled_from(dtypes.INTEGERS)), max_size=5)


def dense(size: int, dtype: dtypes.DType) -> View:
    return View(0, (size,), (dtype.nbytes,), dtype)


def copies(*views: View, positions: int = MANY) -> tuple[tuple[str, int], ...]:
    named = {str(number): view for number, view in enumerate(views)}
    return copies_of(named.items(), frozenset(named), positions)


@given(VIEWS, st.integers(0, 1 << 20))
def test_copies_fit_into_shared_memory_and_are_repaid(arrays, positions):
    found = copies(*(dense(*each) for each in arrays), positions=positions)
    words = [count * arrays[int(name)][0] for name, count in found]
    nbytes = [max(4, arrays[int(name)][1].nbytes) for name, _ in found]
    assert sum(map(int.__mul__, words, nbytes)) <= SHARED_BYTES
    assert all(count in COUNTS for _, count in found)
    assert not found or positions >= max(LEAST, *words)


@given(st.integers(1, 20_000), st.integers(1, 20_000))
def test_a_larger_array_has_no_more_copies(one, other):
    few, many = (dict(copies(dense(size, dtypes.INT32))).get("0", 0) for size in sorted((one, other)))
    assert few >= many


def test_histograms_of_a_byte_have_copies_for_each_thread_of_a_warp():
    assert copies(dense(256, dtypes.INT32)) == (("0", 32),)
    assert copies(dense(256, dtypes.INT64)) == (("0", 8),)
    assert copies(dense(10_000, dtypes.UINT16)) == (("0", 1),)


def test_other_arrays_have_none():
    assert copies(dense(256, dtypes.FLOAT32), dense(0, dtypes.INT32), dense(1 << 20, dtypes.INT32)) == ()
    assert copies(View(0, (256,), (8,), dtypes.INT32)) == ()
    assert copies(View(0, (4, 4), strides_in_order((4, 4), (1, 0), 4), dtypes.INT32)) == ()
    assert copies_of([("bins", dense(256, dtypes.INT32))], frozenset(), MANY) == ()
