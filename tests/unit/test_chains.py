"""Scans in chains: the bits of the order with any number of levels, blocks, threads and rows; what reports say."""

import pickle
import threading

import numpy as np
import pytest

import fusec
from fusec.compiler import disk_cache
from fusec.dispatch import scans
from fusec.ir import scans as order
from fusec.ir.interpret_scans import scanned
from fusec.kinds.launch import Machine
from fusec.passes import scan_rows

CHAINED, PARTED = Machine(1 << 62, 1 << 62, 1, chain=1), Machine(1 << 62, 1 << 62, 1)
BLOCK = 32 * 2048
AFFINE = (
    "float32 p, float64 q, bool starts", "float64 y, bool high", "Line{p, q}", "Line{a.p * b.p, a.q * b.p + b.q}",
    "y = a.q; high = a.q > 1", "Line{1, 0}", "line", "Line", "struct Line { float p; double q; };",
)  # fmt: skip


def uniform(shape, dtype="f4"):
    return np.random.default_rng(0).uniform(-1, 2, shape).astype(dtype)


@pytest.fixture
def chained(monkeypatch):
    """All rows of more than one chunk are done by chains."""
    monkeypatch.setattr(scans, "machine_of", lambda _: CHAINED)


def test_all_levels_of_totals_have_the_bits_of_the_order(chained, monkeypatch):
    """With chunks of 64 elements in place of 2048 there are three levels of totals soon."""
    monkeypatch.setattr(order, "GROUPS", 2)
    monkeypatch.setattr(scan_rows, "GROUPS", 2)
    monkeypatch.setattr(scan_rows, "ELEMENTS", 64)
    monkeypatch.setattr(disk_cache, "default_cache", lambda: None)  # what is compiled here is of another order
    x = uniform(64**3 + 64 * 32 + 70)
    for count in (65, 2048, 2049, 64 * 64, 64 * 64 + 64 * 5 + 3, 64 * 64 * 2, 64 * 64 * 2 + 1, x.size):
        kernel = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, f"add{count}")
        wanted = scanned(x[:count], lambda a, b: a + b, is_last=True)
        for _ in range(3):  # the second call makes a native entry, which the third meets
            assert kernel(x[:count]).tobytes() == wanted.tobytes(), count


def test_chains_give_the_bits_of_single_kernels(monkeypatch):
    """Rows forwards and backwards, exclusive, in segments, of structs, with numbers, several outputs and given ones."""
    shape = (3, 2 * BLOCK + 2048 * 3 + 7)
    p, q, starts = uniform(shape) / 3, uniform(shape, "f8"), np.random.default_rng(1).random(shape) < 0.001
    for inclusive, reverse in ((True, False), (False, True)):
        found = []
        for machine in (PARTED, CHAINED):
            monkeypatch.setattr(scans, "machine_of", lambda _, machine=machine: machine)
            kernel = fusec.ScanKernel(*AFFINE, inclusive=inclusive, segments="starts")
            y, high = kernel(p, q, starts, axis=1, reverse=reverse)
            again = np.empty_like(y.T).T, np.empty_like(high)[:, ::-1]
            kernel(p, q, starts, axis=1, reverse=reverse, out=again)
            assert again[0].tobytes() == y.tobytes()
            assert again[1].tobytes() == high.tobytes()
            flat = kernel(p[0], 0.25, starts[1], reverse=reverse)
            found.append([each.tobytes() for each in (y, high, *flat)])
        assert found[0] == found[1], (inclusive, reverse)


@pytest.mark.parametrize("dtype", ["i1", "c8", "f2", pytest.param("c16", marks=pytest.mark.slow)])
def test_chains_of_other_dtypes(dtype, monkeypatch):
    x, found = (uniform(BLOCK + 5000) * 3).astype(dtype), []
    for machine in (CHAINED, PARTED):
        monkeypatch.setattr(scans, "machine_of", lambda _, machine=machine: machine)
        found.append(fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "add")(x))
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize("machine", [CHAINED, PARTED], ids=["chain", "parted"])
def test_results_in_place_or_beside_their_elements(machine, monkeypatch):
    """In calls that come again, too, which a native entry answers."""
    monkeypatch.setattr(scans, "machine_of", lambda _: machine)
    for inclusive in (True, False):
        kernel = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "add", inclusive=inclusive)
        for shape, axis in (((3 * BLOCK + 5,), 0), ((300, 50), 0)):
            x = np.random.default_rng(0).integers(-9, 9, shape).astype("f4")
            wanted = np.cumsum(x, axis) - (0 if inclusive else x)
            for _ in range(4):
                memory = np.zeros(2 * x.size + 3, "f4")
                for start, end in ((0, 0), (0, 3), (3, 0), (3, x.size + 3)):
                    source, target = (memory[at : at + x.size].reshape(shape) for at in (start, end))
                    source[...] = x
                    kernel(source, axis=axis, out=target)
                    np.testing.assert_array_equal(target, wanted)


def test_threads_of_python_share_the_pool(chained):
    """One call has the pool, the others run alone; all give the same bits."""
    x = uniform(5 * BLOCK + 1)
    kernel = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "add")
    wanted, wrong = kernel(x).tobytes(), []

    def work():
        wrong.extend(at for at in range(20) if kernel(x).tobytes() != wanted)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_reports_and_texts_show_the_kernels_of_a_chain(chained):
    kernel = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "add")
    x = uniform(2 * BLOCK)
    report = str(kernel.explain(x))
    assert report.count("kernel ") == 3
    assert "block by block" in report
    assert "_state" not in report
    kernel(x)
    assert kernel.source("llvm").count("define void") == 3
    assert kernel.source("cuda").count("__global__") == 2  # groups look back, once their words are cleared
    assert kernel.source("metal").count("\nkernel void") == 3  # of which none waits for another
    assert "_advance" not in kernel.source("cuda")


def test_texts_for_a_gpu_do_not_depend_on_what_the_processor_ran(monkeypatch):
    texts = set()
    for machine in (Machine(1, 1, 1), CHAINED, PARTED):
        monkeypatch.setattr(scans, "machine_of", lambda _, machine=machine: machine)
        kernel = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "add")
        kernel(uniform(2 * BLOCK))
        texts.add(kernel.source("cuda"))
    assert len(texts) == 1


def test_what_is_dear_is_not_done_twice_by_two_threads(monkeypatch):
    dear = fusec.ScanKernel(*AFFINE[:4], "y = exp(sin(a.q)) + log(tanh(a.p)); high = 1", *AFFINE[5:])
    light = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "add")
    x, starts = uniform(2 * BLOCK), np.zeros(2 * BLOCK, bool)
    for threads, expected in ((2, (1, 3)), (3, (3, 3))):
        machine = scans.machine_of(threads)
        monkeypatch.setattr(scans, "machine_of", lambda _, machine=machine: machine)
        reports = dear.explain(x, x.astype("f8"), starts), light.explain(x)
        assert tuple(str(each).count("kernel ") for each in reports) == expected
        monkeypatch.undo()
        dear, light = pickle.loads(pickle.dumps((dear, light)))  # without plans


def test_a_process_without_a_pool_takes_several_kernels(chained, monkeypatch):
    monkeypatch.setattr("fusec.runtime.cpu.threads.pool", lambda _=None: None)
    kernel = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "add")
    x = uniform(2 * BLOCK)
    assert "block by block" not in str(kernel.explain(x))
    assert kernel(x).tobytes() == scanned(x, lambda a, b: a + b, is_last=True).tobytes()
