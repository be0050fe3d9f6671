"""The block programs that prove the fiber executor, compiled by NVRTC and run as PTX: right ones, and spoilt ones."""

import fibers_cuda_texts as texts
import numpy as np
import ptx
import pytest
from cuda_in_ptx import ORDERS, ptx_of
from test_seeded_bugs import Call, cuda_calls

pytest.importorskip("cuda.bindings.nvrtc", reason="the extra fusec[cuda] brings NVRTC")

ARCHS = ("compute_75", "compute_120")
UNSEEN = {  # by this executor: it knows neither races in global memory nor fences, and compares no orders by itself
    "uninitialised workspace",
    "no fence after writing",
    "no fence before reading",
    "blocks that write the same place",
    "plain update of the counter",
    "part of the output left unwritten",
    "result that depends on the order of threads",
    "conversion of a number that is too large",
    "signed overflow",
}
BUGS = [bug for bug in texts.BUGS if bug.name not in UNSEEN]
CALLS = cuda_calls()


def run(module: ptx.Module, entry: str, call: Call, order: ptx.Order) -> dict[str, np.ndarray]:
    """Launch on fresh buffers, which are filled with a pattern where the call gives no values."""
    buffers = {}
    for name, given in call.buffers.items():
        is_given = isinstance(given, np.ndarray)
        buffers[name] = np.array(given, ndmin=1) if is_given else np.full(given.shape or 1, 77, given.dtype)
    args = [buffers[each] if isinstance(each, str) else each for each in call.launch.args]
    ptx.launch(module, entry, call.launch.grid, call.launch.block, args, shared=call.launch.shared, order=order)
    return buffers


@pytest.mark.parametrize(("at", "name"), list(enumerate(texts.PROGRAMS)))
@pytest.mark.sampled(3)
def test_right_block_programs_give_the_right_bits_in_every_order(at, name):
    module = ptx.load(ptx_of(texts.PROGRAMS[name], ARCHS[at % len(ARCHS)]))
    for order in ORDERS:
        got = run(module, name, CALLS[name], order)
        for buffer, expected in CALLS[name].expected.items():
            np.testing.assert_array_equal(got[buffer].reshape(np.shape(expected)), expected)


@pytest.mark.parametrize("at", range(len(BUGS)), ids=[bug.name for bug in BUGS])
@pytest.mark.sampled(5)
def test_spoilt_block_programs_are_refused(at):
    bug = BUGS[at]
    module = ptx.load(ptx_of(bug.text(texts.PROGRAMS, "spoilt"), ARCHS[at % len(ARCHS)]))
    with pytest.raises(ptx.PtxFault):
        run(module, "spoilt", CALLS[bug.program], "ascending")
