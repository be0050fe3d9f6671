"""Kernels in blocks: what they compute, compiled, interpreted and by Python; what they refuse; what checks find."""

import inspect
import pickle

import numpy as np
import pytest

import fusec
from fusec import FusecError
from fusec.cli import python_files
from fusec.ir.interpret import interpret
from fusec.ir.loops import Barrier
from fusec.ir.text import print_program
from fusec.ir.uniform import uniformity
from fusec.ir.verify import verify
from fusec.ir.walk import statements
from fusec.passes.blocks import serialise_blocks
from tests.support.parse_ir import parse_program


@fusec.kernel(block=(4, 8))
def turned(a, out):
    """Each tile of an array by itself, from back to front."""
    rows, columns = a.shape
    for i, j in fusec.grid((-(-rows // 4) * 4, -(-columns // 8) * 8)):
        tile = fusec.shared((4, 8), np.float32)
        ty, tx = fusec.thread_index()
        by, bx = fusec.block_index()
        inside = i < rows and j < columns
        tile[ty, tx] = a[i, j] if inside else by * 1000 + bx
        fusec.barrier()
        if inside:
            out[i, j] = tile[3 - ty, 7 - tx]


@fusec.kernel(block=8)
def shifted(x, out, k):
    """An index that may lie outside of a shared array, in a loop that others go on with."""
    for i in fusec.grid(x.size):
        tile = fusec.shared(8, np.int32)
        t = fusec.thread_index()
        tile[t] = x[i]
        for _ in range(3):
            fusec.barrier()
            seen = tile[(t + k) % 8 if x[i] >= 0 else t + k]
            assert seen != 99
            fusec.barrier()
            tile[t] = seen
        out[i] = tile[t]


def ways(kernel):
    """How a kernel can be run."""
    checked = fusec.kernel(kernel.__fusec_origin__, block=kernel.block, bounds="check")
    return kernel, checked, fusec.simulate(kernel), fusec.simulate(kernel, python=True)


@pytest.mark.parametrize("shape", [(4, 8), (5, 19), (1, 1), (0, 3)])
def test_every_way_of_running_gives_the_same(shape):
    a = np.random.default_rng(1).random(shape, dtype="f4")
    found = [np.full(shape, -1, "f4") for _ in range(4)]
    for run, out in zip(ways(turned), found, strict=True):
        assert run(a, out) is None
        np.testing.assert_array_equal(out, found[0])
    whole = np.zeros((8, 24), "f4")
    whole += np.arange(2).repeat(4)[:, None] * 1000 + np.arange(3).repeat(8)
    whole[: shape[0], : shape[1]] = a
    tiles = whole.reshape(2, 4, 3, 8)[:, ::-1, :, ::-1].reshape(8, 24)
    np.testing.assert_array_equal(found[0], tiles[: shape[0], : shape[1]])


def test_a_strided_array_is_one_too():
    a = np.random.default_rng(2).random((16, 32), dtype="f4")
    out = np.zeros((4, 16), "f4")
    turned(a[::-4, ::2], out)
    np.testing.assert_array_equal(out.reshape(4, 2, 8)[::-1, :, ::-1].reshape(4, 16), a[::-4, ::2])


def test_blocks_are_spread_over_threads_and_come_from_the_cache():
    x = np.arange(1 << 16, dtype="i4") % 50
    out = np.zeros_like(x)
    for _ in range(3):
        shifted(x, out, 1)
    np.testing.assert_array_equal(out.reshape(-1, 8), np.roll(x.reshape(-1, 8), -3, 1))
    restored = pickle.loads(pickle.dumps(shifted))
    again = np.zeros_like(x)
    restored(x, again, 1)
    np.testing.assert_array_equal(again, out)


def test_checks_find_the_first_violation_and_the_others_of_the_block_go_on():
    checked = fusec.kernel(shifted.__fusec_origin__, block=8, bounds="check")
    x = np.arange(16, dtype="i4")
    x[13] = -1
    for run in (checked, fusec.simulate(shifted)):
        out = np.zeros(16, "i4")
        with pytest.raises(IndexError, match=r"index 8 of 'tile' is outside its 8 elements") as caught:
            run(x, out, 3)
        assert "in element 13" in str(caught.value)
        np.testing.assert_array_equal(out[:8], [1, 2, 3, 4, 5, 6, 7, 0])
        assert out[13] == 0
    x[13] = 99
    with pytest.raises(RuntimeError, match="an assertion does not hold"):
        checked(x, np.zeros(16, "i4"), 3)


@fusec.kernel(block=8)
def careless(x, out, what):
    for i in fusec.grid(x.size):
        tile = fusec.shared(8, np.int32)
        t = fusec.thread_index()
        if what != 1 or t > 0:
            tile[t] = x[i]
        if what != 2:
            fusec.barrier()
        out[i] = tile[7 - t]
        if what == 3:
            tile[t] = 0


@pytest.mark.parametrize(
    ("what", "said"), [(1, "nobody has written"), (2, "before a barrier after another has written"), (3, "has read it")]
)
def test_simulation_finds_what_a_barrier_or_a_write_is_missing_for(what, said):
    x, out = np.arange(16, dtype="i4"), np.zeros(16, "i4")
    fusec.simulate(careless)(x, out, 0)
    np.testing.assert_array_equal(out.reshape(2, 8), x.reshape(2, 8)[:, ::-1])
    with pytest.raises(FusecError, match=said) as caught:
        fusec.simulate(careless)(x, out, what)
    assert caught.value.span.file.line(caught.value.span.line).strip() in ("out[i] = tile[7 - t]", "tile[t] = 0")


def test_python_says_what_a_position_raises_and_which_barriers_some_miss():
    @fusec.kernel(block=4)
    def failing(x):
        for i in fusec.grid(4):
            fusec.barrier()
            x[i + 2] = 1
            fusec.barrier()

    with pytest.raises(IndexError):
        fusec.simulate(failing, python=True)(np.zeros(4))

    @fusec.kernel(block=4)
    def parted(x):
        for i in fusec.grid(4):
            if x[i] > 0:
                fusec.barrier()

    with pytest.raises(FusecError, match="only a part"):
        fusec.simulate(parted, python=True)(np.arange(4.0))


def test_what_blocks_have_means_nothing_outside_of_them():
    for call in (fusec.barrier, fusec.thread_index, fusec.block_index, lambda: fusec.shared(3, "f4")):
        with pytest.raises(RuntimeError, match="kernels with block="):
            call()


def test_explain_and_source_name_the_block():
    a = np.zeros((8, 8), "f4")
    shown = str(turned.explain(a, a.copy()))
    assert "2 blocks of 32 positions" in shown
    assert "blocks of 4 x 8 threads" in shown
    assert "128 bytes shared" in shown
    assert "__launch_bounds__(32)" in turned.source("cuda")
    assert "threadgroup float tile[32];" in turned.source("metal")
    assert "block(4, 8)" in turned.source("ir")


@pytest.mark.parametrize("given", [0, -1, True, np.True_, 2.0, "8", (), (8, 0), (8, True), (33, 32), 1025, None])
def test_blocks_are_whole_numbers_up_to_1024(given):
    text = "def f(x):\n    for i in fusec.grid(8): x[i] = 1"
    if given is None:
        assert fusec.kernel(text, block=given).block == ()
        return
    with pytest.raises(FusecError, match="F390"):
        fusec.kernel(text, block=given)
    assert fusec.kernel(text, block=np.int64(8)).block == (8,)
    assert fusec.kernel(text, block=[2, 4]).block == (2, 4)


def test_files_that_are_not_run_have_blocks_too(tmp_path):
    text = inspect.getsource(turned.__fusec_origin__).replace("block=(4, 8)", "block=(HEIGHT, 2 * HEIGHT)")
    (tmp_path / "kernels.py").write_text(f"import numpy as np\nimport fusec\nHEIGHT = 4\n\n{text}")
    _, (kernel,) = python_files.read(tmp_path / "kernels.py")
    assert kernel.block == (4, 8)
    assert "tile[32]" in kernel.source("cuda", {"a": "float32", "out": "float32"})
    (tmp_path / "kernels.py").write_text(f"import numpy as np\nimport fusec\n\n{text.replace('HEIGHT', '0')}")
    with pytest.raises(FusecError, match="F390"):
        python_files.read(tmp_path / "kernels.py")


# --- the IR ----------------------------------------------------------------------------------------------------------

TEXT = """\
kernel f(x: int32 raw[1] read, out: int32 raw[1] written, n: int64) block(2, 4) {
    shared tile: int32[8] @1
    let t: int64 = ((_.thread[int64(0)] * int64(4)) + _.thread[int64(1)]) @2
    let i: int64 = ((_.coordinate[int64(0)] * int64(8)) + t) @2
    let k: int64 = int64(0) @3
    let mine: int32 = load(&x[i]) @3
    while (k < n) { @4
        store offset(&tile, t) = mine @5
        barrier @6
        mine = (mine + load(offset(&tile, (t ^ int64(1))))) @7
        barrier @8
        k = (k + int64(1)) @9
        if (mine > int32(1000)) { @10
            continue @11
        }
        mine = (mine + int32(1)) @12
    }
    store &out[i] = mine @13
}
"""


def test_programs_print_and_parse_and_run_in_turn():
    program = parse_program(TEXT)
    verify(program)
    assert parse_program(print_program(program)) == program
    turned_program = serialise_blocks(program)
    verify(turned_program)
    assert not any(isinstance(stmt, Barrier) for stmt in statements(turned_program.body))
    assert parse_program(print_program(turned_program)) == turned_program
    x = np.random.default_rng(3).integers(0, 400, 24).astype("i4")
    found = [np.zeros(24, "i4") for _ in range(2)]
    for each, out in zip((program, turned_program), found, strict=True):
        interpret(each, {"x": x, "out": out}, {"n": 5}, (3, 1))
    np.testing.assert_array_equal(*found)
    assert found[0].any()


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("(k < n)", "(k < t)", 4),
        ("let k: int64 = int64(0)", "let k: int64 = t", 4),
        ("(k + int64(1)) @9", "(k + convert<int64>(mine)) @9", 4),
        ("continue @11", "break @11", 10),
        ("continue @11", "return @11", 10),
    ],
)
def test_a_barrier_that_threads_part_before_is_found_with_its_condition(old, new, line):
    program = parse_program(TEXT.replace(old, new))
    verify(program)
    known = uniformity(program)
    assert {each.barrier for each in known.partings} == {6, 8}
    assert {each.condition for each in known.partings} == {line}
    assert uniformity(parse_program(TEXT)).partings == ()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (" block(2, 4)", "", "a block"),
        ("block(2, 4)", "block(0, 4)", "a block"),
        ("block(2, 4)", "block(64, 32)", "a block"),
        ("tile: int32[8]", "tile: int32[8] = {int32(1)}", "has values"),
        ("_.thread[int64(1)]", "_.thread[int64(2)]", "axes"),
    ],
)
def test_the_verifier_knows_what_blocks_have(old, new, said):
    with pytest.raises(AssertionError, match=said):
        verify(parse_program(TEXT.replace(old, new, 1)))


def test_no_name_of_the_users_is_that_of_what_is_kept():
    @fusec.kernel(block=4)
    def named(x, out):
        for i in fusec.grid(x.size):
            total, total_in2, total_kept, thread0_1, done = x[i], x[i] + 1, x[i] + 2, x[i] + 3, x[i] > 2
            for _ in range(2):
                fusec.barrier()
                total += total_in2
                total_in2, total_kept = total_kept, thread0_1
            if done:
                continue
            out[i] = total * 1000 + total_in2 * 10 + thread0_1

    x = np.arange(8, dtype="i4")
    found = [np.zeros(8, "i4") for _ in range(4)]
    for run, out in zip(ways(named), found, strict=True):
        run(x, out)
        np.testing.assert_array_equal(out, found[0])
    assert found[0][1] == (1 + 2 + 3) * 1000 + 40 + 4
